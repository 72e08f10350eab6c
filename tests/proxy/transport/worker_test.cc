// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/worker.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/thread_pool.h"
#include "gtest/gtest.h"
#include "tests/common/eventually.h"

namespace fncache::proxy::transport {
namespace {

// It looks to a worker like a call that is served.
class FakeCall final : public Activity {
 public:
  FakeCall() : Activity(Kind::kUnary) {}
  void CancelActivity() override {}
};

class TestJob final : public Job {
 public:
  TestJob(Worker* worker, std::atomic<int>* done)
      : worker_(worker), done_(done) {}
  // On the worker's thread.
  void Offload(Worker::Effort effort) {
    home_ = std::this_thread::get_id();
    if (worker_->Offload(this, effort)) OnWorked();
  }
  void Work() override {
    thread_ = std::this_thread::get_id();
    works_.fetch_add(1);
  }
  void OnWorked() override {
    EXPECT_EQ(std::this_thread::get_id(), home_);
    EXPECT_EQ(works_.load(), 1);
    EXPECT_FALSE(worked_);
    worked_ = true;
    done_->fetch_add(1);
  }
  bool elsewhere() const { return thread_ != home_; }

 private:
  Worker* const worker_;
  std::atomic<int>* const done_;
  std::thread::id home_;    // the worker's thread
  std::thread::id thread_;  // the one that worked
  bool worked_ = false;
  std::atomic<int> works_{0};
};

class WorkerJobsTest : public ::testing::Test {
 protected:
  static constexpr int kJobs = 64;

  // Offloads all jobs in one task, beside so many calls, and stops the worker
  // at once. Returns how many jobs another thread has done.
  int Offload(Worker* worker, int calls,
              Worker::Effort effort = Worker::Effort::kUsual) {
    std::vector<std::unique_ptr<TestJob>> jobs;
    for (int i = 0; i < kJobs; ++i) {
      jobs.push_back(std::make_unique<TestJob>(worker, &done_));
    }
    std::vector<FakeCall> fakes(calls);
    worker->Start();
    worker->Post([&] {
      for (FakeCall& call : fakes) worker->Enter(&call);
      for (const auto& job : jobs) job->Offload(effort);
      for (FakeCall& call : fakes) worker->Leave(&call);
    });
    worker->Stop();
    assistants_ = nullptr;
    EXPECT_EQ(done_.load(), kJobs);
    int elsewhere = 0;
    for (const auto& job : jobs) elsewhere += job->elsewhere() ? 1 : 0;
    return elsewhere;
  }

  // Makes assistants for one worker; they are gone once Offload has stopped it.
  ThreadPool* MakeAssistants(size_t max_waiting) {
    assistants_ = std::make_unique<ThreadPool>(1, max_waiting);
    return assistants_.get();
  }

  std::atomic<int> done_{0};
  std::unique_ptr<ThreadPool> assistants_;
};

TEST_F(WorkerJobsTest, AssistantsDoThemBesideOtherCallsAndStopWaits) {
  Worker worker(0, MakeAssistants(100));
  EXPECT_GT(Offload(&worker, 2), 0);
}

TEST_F(WorkerJobsTest, ASingleCallsJobIsDoneAtOnce) {
  Worker worker(0, MakeAssistants(100));
  EXPECT_EQ(Offload(&worker, 1), 0);
}

TEST_F(WorkerJobsTest, WithoutAssistantsTheyAreDoneAtOnce) {
  Worker worker(0);
  EXPECT_EQ(Offload(&worker, 2), 0);
}

TEST_F(WorkerJobsTest, JobsThatAssistantsDoNotTakeAreDoneAllTheSame) {
  Worker worker(0, MakeAssistants(0));
  EXPECT_EQ(Offload(&worker, 2), 0);
}

TEST_F(WorkerJobsTest, ALongJobHoldsTheWorkerUpNowhere) {
  Worker worker(0, MakeAssistants(100));
  EXPECT_EQ(Offload(&worker, 1, Worker::Effort::kLong), kJobs);
}

TEST_F(WorkerJobsTest, WhatGoesOnHoldsTheWorkerUpNowhereHoweverMuchThereIs) {
  Worker worker(0, MakeAssistants(100));
  EXPECT_EQ(Offload(&worker, 2, Worker::Effort::kGoesOn), kJobs);
}

TEST_F(WorkerJobsTest, UsualJobsDoNotWaitForLongOnes) {
  Worker worker(0, MakeAssistants(100));
  absl::Notification end;
  ThreadPool::Work work = [&](bool /*run*/) { end.WaitForNotification(); };
  ASSERT_TRUE(assistants_->Submit(&work, /*is_long=*/true));
  std::thread ender([&] {
    EXPECT_TRUE(Eventually([&] { return done_ == kJobs; }));
    end.Notify();
  });
  EXPECT_EQ(Offload(&worker, 2), 0);
  ender.join();
}

TEST_F(WorkerJobsTest, LongJobsThatAssistantsDoNotTakeAreDoneAllTheSame) {
  Worker worker(0, MakeAssistants(0));
  EXPECT_EQ(Offload(&worker, 1, Worker::Effort::kLong), 0);
}

// Has three parts, of which one is done when it is begun.
class LongJob final : public Job {
 public:
  explicit LongJob(Worker* worker) : worker_(worker) {}
  void Begin() {
    if (worker_->Offload(this)) OnWorked();
  }
  void Work() override { parts.fetch_add(1); }
  void OnWorked() override {
    while (parts < 3) {
      if (!worker_->Offload(this, Worker::Effort::kGoesOn)) return;
    }
    over.Notify();
  }
  std::atomic<int> parts{0};
  absl::Notification over;

 private:
  Worker* const worker_;
};

TEST_F(WorkerJobsTest, ASingleCallsJobThatGoesOnLetsOthersHaveTheirTurn) {
  Worker worker(0, MakeAssistants(100));
  LongJob job(&worker);
  FakeCall call;
  worker.Start();
  worker.Post([&] {
    worker.Enter(&call);
    job.Begin();
    EXPECT_EQ(job.parts, 1);
    worker.Leave(&call);
  });
  EXPECT_TRUE(job.over.WaitForNotificationWithTimeout(absl::Seconds(20)));
  EXPECT_EQ(job.parts, 3);
  worker.Stop();
  assistants_ = nullptr;
}

TEST_F(WorkerJobsTest, WithoutAssistantsAJobThatGoesOnIsDoneAtOnce) {
  Worker worker(0);
  LongJob job(&worker);
  worker.Start();
  worker.Post([&] {
    job.Begin();
    EXPECT_EQ(job.parts, 3);
  });
  worker.Stop();
  EXPECT_TRUE(job.over.HasBeenNotified());
}

TEST(WorkerTest, ATimerThatNeverComesHoldsUpNoOther) {
  Worker worker(0);
  absl::Notification came;
  worker.Start();
  worker.Post([&] {
    worker.After(absl::InfiniteDuration(), [] { ADD_FAILURE(); });
    worker.After(absl::Milliseconds(1), [&] { came.Notify(); });
  });
  EXPECT_TRUE(came.WaitForNotificationWithTimeout(absl::Seconds(20)));
  worker.Stop();
}

}  // namespace
}  // namespace fncache::proxy::transport
