// SPDX-License-Identifier: Apache-2.0
#include "http2/loop.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace fncache::http2 {
namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr int64_t kMilli = 1'000'000;
constexpr int64_t kMinute = 60'000 * kMilli;

struct IterationEnd final : Loop::Ender {
  void OnIterationEnd() override { ++ends; }
  int ends = 0;
};

TEST(LoopTest, ATurnByItselfWaitsUntilItShould) {
  Loop loop;
  const int64_t until = Now() + 300'000;
  loop.RunOnce(until);
  EXPECT_GE(Now(), until);
  loop.RunOnce(0);  // does not wait
}

TEST(LoopTest, ATurnByItselfServesWhatIsDue) {
  Loop loop;
  std::string done;
  // Not due before the test ends, however long the machine stalls.
  loop.After(absl::Hours(1), [&] { done += "much later "; });
  loop.After(absl::Microseconds(300), [&] { done += "soon "; });
  loop.RunOnce(Now() + kMinute);
  EXPECT_EQ(done, "soon ");
  loop.Post([&] { done += "posted "; });
  loop.RunOnce(Now() + kMinute);
  EXPECT_EQ(done, "soon posted ");
  loop.After(absl::Milliseconds(3), [&] { done += "later "; });
  loop.RunOnce(Now() + kMinute);
  EXPECT_EQ(done, "soon posted later ");
}

TEST(LoopTest, WhatWasBegunBetweenTurnsEndsBeforeTheWait) {
  Loop loop;
  IterationEnd iteration_end;
  loop.AtIterationEnd(&iteration_end);
  int ends_at_post = 0;
  loop.Post([&] { ends_at_post = iteration_end.ends; });
  loop.RunOnce(Now() + kMinute);
  EXPECT_EQ(ends_at_post, 1);
  EXPECT_EQ(iteration_end.ends, 1);
}

// One end of a pair of sockets, at which something can be read.
class Ready final : public Loop::Watcher {
 public:
  explicit Ready(Loop* loop) : loop_(loop) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds_), 0);
    EXPECT_EQ(write(fds_[1], "x", 1), 1);
    EXPECT_TRUE(loop->Watch(fds_[0], EPOLLIN, this));
  }
  ~Ready() {
    loop_->Unwatch(fds_[0], this);
    close(fds_[0]);
    close(fds_[1]);
  }
  void Prefetch() const override { ++*asked_; }
  void OnReady(uint32_t /*events*/) override {
    if (on_ready) on_ready();
  }

  std::function<void()> on_ready;

 private:
  Loop* const loop_;
  int fds_[2];
  // Touched where it is asked ahead: a sanitizer sees whether it is there.
  const std::unique_ptr<int> asked_ = std::make_unique<int>(0);
};

class LongWork final : public Loop::LongWorker {
 public:
  LongWork(int number, std::vector<int>* done) : number_(number), done_(done) {}
  void OnLongWork() override { done_->push_back(number_); }

 private:
  const int number_;
  std::vector<int>* const done_;
};

TEST(LoopTest, LongWorkIsDoneInOrderAndOthersHaveTheirTurns) {
  Loop loop;
  std::vector<int> done;
  std::vector<std::unique_ptr<LongWork>> work;
  for (int i = 0; i < 10; ++i) {
    work.push_back(std::make_unique<LongWork>(i, &done));
    loop.Queue(work.back().get());
    loop.Queue(work.back().get());
  }
  loop.Unqueue(work[3].get());
  loop.Unqueue(work[3].get());
  std::vector<size_t> before;  // of it, as others are served
  Ready ready(&loop);
  ready.on_ready = [&] { before.push_back(done.size()); };
  for (int i = 0; i < 6; ++i) loop.RunOnce(Now() + kMinute);
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(before, (std::vector<size_t>{0, 2, 4, 6, 8, 9}));
}

// The loop does not wait for events while there is some.
TEST(LoopTest, LongWorkIsDoneWhereNothingElseIs) {
  Loop loop;
  std::vector<int> done;
  LongWork work(1, &done);
  loop.Queue(&work);
  loop.RunOnce(Now() + kMinute);
  EXPECT_EQ(done, std::vector<int>{1});
}

TEST(LoopTest, WhoIsServedLaterInATurnMayGo) {
  for (size_t keeper = 0; keeper < 5; ++keeper) {
    Loop loop;
    std::vector<std::unique_ptr<Ready>> all;
    int served = 0;
    for (size_t i = 0; i < 5; ++i) {
      all.push_back(std::make_unique<Ready>(&loop));
      all.back()->on_ready = [&, i] {
        ++served;
        if (i != keeper) return;
        for (size_t j = 0; j < all.size(); ++j) {
          if (j != keeper) all[j] = nullptr;
        }
      };
    }
    loop.RunOnce(Now() + kMinute);
    EXPECT_EQ(served, static_cast<int>(keeper) + 1);
  }
}

}  // namespace
}  // namespace fncache::http2
