// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "common/method.h"
#include "common/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/eventually.h"
#include "tests/sdk/serve/serving.h"

namespace fncache::sdk::serve {
namespace {

using function::CallEnd;
using function::Continuation;
using function::Metadata;

class InterceptorTest : public ::testing::Test, public Serving {
 protected:
  // The ends that OnEnd reported.
  std::vector<CallEnd> Ends() {
    MutexLock lock(&mutex_);
    return ends_;
  }
  std::function<void(const CallEnd&)> Collects() {
    return [this](const CallEnd& end) {
      MutexLock lock(&mutex_);
      ends_.push_back(end);
    };
  }

 private:
  Mutex mutex_;
  std::vector<CallEnd> ends_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(InterceptorTest, SeesMethodAndMetadata) {
  std::string seen;
  options.interceptor = [&](std::string_view method, const Metadata& metadata,
                            Continuation next) {
    seen = method;
    const auto [first, last] = metadata.equal_range("x-mark");
    for (auto one = first; one != last; ++one) {
      seen += " " + std::string(one->second);
    }
    next.Continue();
  };
  Start();
  EXPECT_TRUE(Call({}, [](grpc::ClientContext* context) {
                context->AddMetadata("x-mark", "one");
                context->AddMetadata("x-mark", "two");
              }).ok());
  EXPECT_EQ(seen, std::string(kRunFunctionV1) + " one two");
}

TEST_F(InterceptorTest, FinishEndsTheCallWithoutItsFunction) {
  std::atomic<int> runs{0};
  options.interceptor = [](std::string_view, const Metadata&,
                           Continuation next) {
    next.Finish(absl::UnavailableError("not now"));
    next.Continue();  // too late
  };
  Start([&](function::Context&) { ++runs; });
  const grpc::Status status = Call(Large(1 << 20));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "not now");
  EXPECT_EQ(runs, 0);
}

TEST_F(InterceptorTest, EndIsReportedBeforeTheCallerGetsIt) {
  options.interceptor = [this](std::string_view, const Metadata&,
                               Continuation next) {
    next.OnEnd(Collects());
    next.Continue();
  };
  Start();
  ASSERT_TRUE(Call(Tagged("abc")).ok());
  const auto ends = Ends();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].code, absl::StatusCode::kOk);
  EXPECT_EQ(ends[0].tag, "abc");
  EXPECT_GT(ends[0].duration, absl::ZeroDuration());
  EXPECT_LT(ends[0].duration, absl::Minutes(1));
}

TEST_F(InterceptorTest, LateOnEndIsCalledAtOnce) {
  std::unique_ptr<Continuation> kept;
  options.interceptor = [&](std::string_view, const Metadata&,
                            Continuation next) {
    kept = std::make_unique<Continuation>(next);
    next.Continue();
  };
  Start();
  ASSERT_TRUE(Call().ok());
  server.reset();
  kept->OnEnd(Collects());
  EXPECT_EQ(Ends().size(), 1u);
  kept->Continue();
  kept->Finish(absl::InternalError("too late"));
}

// None of the calls has a thread while it waits.
TEST_F(InterceptorTest, ManyCallsWaitAtOnce) {
  constexpr int kCalls = 500;
  Mutex mutex;
  std::vector<Continuation> waiting;
  options.interceptor = [&](std::string_view, const Metadata&,
                            Continuation next) {
    MutexLock lock(&mutex);
    waiting.push_back(std::move(next));
  };
  options.threads = 1;
  Start();
  struct One {
    grpc::ClientContext context;
    v1::RunFunctionResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::RunFunctionResponse>>
        reader;
  };
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<One>> calls;
  for (int i = 0; i < kCalls; ++i) {
    calls.push_back(std::make_unique<One>());
    One& one = *calls.back();
    one.reader = stub->AsyncRunFunction(&one.context, {}, &queue);
    one.reader->Finish(&one.response, &one.status, &one);
  }
  EXPECT_TRUE(Eventually([&] {
    MutexLock lock(&mutex);
    return waiting.size() == kCalls;
  }));
  for (const Continuation& next : waiting) next.Continue();
  for (int i = 0; i < kCalls; ++i) {
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_TRUE(static_cast<One*>(tag)->status.ok());
  }
}

TEST_F(InterceptorTest, WaitEndsWithTheCallersDeadline) {
  Mutex mutex;
  std::vector<Continuation> kept;
  options.interceptor = [&](std::string_view, const Metadata&,
                            Continuation next) {
    next.OnEnd(Collects());
    MutexLock lock(&mutex);
    kept.push_back(std::move(next));
  };
  Start();
  // A call that a machine delays beyond its deadline does not get to the
  // interceptor.
  for (absl::Duration deadline = absl::Milliseconds(300);
       Ends().empty() && deadline < absl::Minutes(1); deadline *= 4) {
    EXPECT_EQ(Call({},
                   [&](grpc::ClientContext* context) {
                     context->set_deadline(
                         absl::ToChronoTime(absl::Now() + deadline));
                   })
                  .error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_TRUE(Eventually([&] {
      MutexLock lock(&mutex);
      return Ends().size() == kept.size();
    }));
  }
  // No call is left that Stop would wait for.
  server->Stop(absl::InfiniteDuration());
  const std::vector<CallEnd> ends = Ends();
  ASSERT_FALSE(ends.empty());
  for (const CallEnd& end : ends) {
    EXPECT_EQ(end.code, absl::StatusCode::kCancelled);
  }
  MutexLock lock(&mutex);
  for (const Continuation& next : kept) next.Continue();
}

TEST_F(InterceptorTest, DroppedCallIsInternal) {
  options.interceptor = [](std::string_view, const Metadata&, Continuation) {};
  Start();
  EXPECT_EQ(Call().error_code(), grpc::StatusCode::INTERNAL);
}

}  // namespace
}  // namespace fncache::sdk::serve
