// SPDX-License-Identifier: Apache-2.0
// Stale serving and abandoned calls as people run them: functions that are
// slower than their callers wait, or gone, behind a daemon.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

namespace fn = apiextensions::fn::proto::v1;

struct Answer {
  grpc::Status status;
  fn::RunFunctionResponse response;
  std::string cache_status;
};

// The shortest request that is a composite's.
fn::RunFunctionRequest OfComposite() {
  fn::RunFunctionRequest request;
  request.mutable_meta()->set_tag("t");
  request.mutable_observed()->mutable_composite()->mutable_resource();
  return request;
}

class StaleHeavyTest : public ::testing::Test {
 protected:
  void StartFunction(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"function", "--listen", "127.0.0.1:0",
                                          "--insecure"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    function_ = std::make_unique<Process>(arguments);
    ASSERT_TRUE(function_->WaitForStderr("listening on "));
    upstream_ = function_->Listening().at(0);
  }

  void StartDaemon(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "serve",   "--insecure",  "--listen",   "127.0.0.1:0",
        "--admin", "127.0.0.1:0", "--upstream", upstream_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    daemon_ = std::make_unique<Process>(arguments);
    ASSERT_TRUE(daemon_->WaitForStderr("listening on ", 2));
    std::string address;
    for (const std::string& at : daemon_->Listening()) {
      int status = 0;
      HttpGet(at, "/healthz", &status);
      (status == 200 ? admin_ : address) = at;
    }
    grpc::ChannelArguments channel;
    channel.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    stub_ = fn::FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), channel));
  }

  Answer Call(const fn::RunFunctionRequest& request,
              absl::Duration patience = kPatience) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
    context.set_wait_for_ready(true);
    Answer answer;
    answer.status = stub_->RunFunction(&context, request, &answer.response);
    const auto& headers = context.GetServerInitialMetadata();
    const auto found = headers.find("cache-status");
    if (found != headers.end()) {
      answer.cache_status.assign(found->second.data(), found->second.size());
    }
    return answer;
  }

  double Metric(const std::string& name, const std::string& label = "") {
    return Sample(HttpGet(admin_, "/metrics"),
                  absl::StrCat(name, "{function_name=\"function\"",
                               label.empty() ? "" : ",", label, "}"));
  }
  ::testing::AssertionResult Reaches(const std::string& name, double value,
                                     const std::string& label = "") {
    const absl::Time until = absl::Now() + kPatience;
    double last = -1;
    while (absl::Now() < until) {
      last = Metric(name, label);
      if (last >= value) return ::testing::AssertionSuccess();
      absl::SleepFor(absl::Milliseconds(20));
    }
    return ::testing::AssertionFailure() << name << " is " << last;
  }

  std::string upstream_;
  std::string admin_;
  std::unique_ptr<Process> function_;
  std::unique_ptr<Process> daemon_;
  std::unique_ptr<fn::FunctionRunnerService::Stub> stub_;
};

// A composite in its cluster, as far as what the runner writes goes.
class Composite {
 public:
  fn::RunFunctionRequest Request() const {
    fn::RunFunctionRequest request;
    request.mutable_meta()->set_tag(absl::StrCat("tag of ", version_));
    auto& object = *request.mutable_observed()
                        ->mutable_composite()
                        ->mutable_resource()
                        ->mutable_fields();
    object["apiVersion"].set_string_value("example.org/v1");
    object["kind"].set_string_value("XApp");
    auto& metadata = *object["metadata"].mutable_struct_value();
    (*metadata.mutable_fields())["name"].set_string_value("app");
    (*metadata.mutable_fields())["resourceVersion"].set_string_value(
        absl::StrCat(version_));
    auto& conditions = *(*object["status"]
                              .mutable_struct_value()
                              ->mutable_fields())["conditions"]
                            .mutable_list_value();
    const auto add = [&](const char* type, bool status,
                         const std::string& message) {
      auto& condition =
          *conditions.add_values()->mutable_struct_value()->mutable_fields();
      condition["type"].set_string_value(type);
      condition["status"].set_string_value(status ? "True" : "False");
      condition["message"].set_string_value(message);
    };
    add("Responsive", true, "");
    if (!error_.empty()) add("Synced", false, error_);
    return request;
  }
  // The reconciler writes a failure into the status. One that says what is
  // there already writes nothing.
  void Fail(const std::string& error) {
    if (error == error_) return;
    error_ = error;
    ++version_;
  }

 private:
  int version_ = 1;
  std::string error_;
};

constexpr absl::Duration kRunnersPatience = absl::Seconds(2);

class ConvergingHeavyTest : public StaleHeavyTest {
 protected:
  ConvergingHeavyTest() {
    StartFunction({"--cost", "sleep=3s", "--ttl", "1h"});
  }

  // How many reconciles there are up to the one that is answered; each that
  // times out is followed by the next when the function is done.
  int ReconcilesUntilAHit() {
    Composite composite;
    for (int reconciles = 1; reconciles < 6; ++reconciles) {
      const Answer answer = Call(composite.Request(), kRunnersPatience);
      if (answer.status.ok()) {
        EXPECT_TRUE(absl::StartsWith(answer.cache_status, "fncache; hit; ttl="))
            << answer.cache_status;
        return reconciles;
      }
      EXPECT_EQ(answer.status.error_code(),
                grpc::StatusCode::DEADLINE_EXCEEDED);
      composite.Fail("cannot run pipeline step: deadline exceeded");
      EXPECT_TRUE(
          Reaches("fncache_abandoned_calls_finished_total", reconciles));
    }
    return -1;
  }
};

TEST_F(ConvergingHeavyTest, TheSecondCallOfASlowFunctionIsAHit) {
  StartDaemon({"--finish-abandoned", "1m"});
  const fn::RunFunctionRequest request = OfComposite();
  EXPECT_EQ(Call(request, kRunnersPatience).status.error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  // The daemon may learn of the deadline after the caller.
  EXPECT_TRUE(Reaches("fncache_abandoned_calls_running", 1));
  EXPECT_TRUE(Reaches("fncache_abandoned_calls_finished_total", 1));
  const Answer second = Call(request, kRunnersPatience);
  EXPECT_TRUE(second.status.ok()) << second.status.error_message();
  EXPECT_TRUE(absl::StartsWith(second.cache_status, "fncache; hit; ttl="))
      << second.cache_status;
  EXPECT_EQ(Metric("fncache_upstream_requests_total", "code=\"OK\""), 1);
}

TEST_F(ConvergingHeavyTest, WhoComesWhileItStillRunsJoinsIt) {
  StartDaemon({"--finish-abandoned", "1m"});
  const fn::RunFunctionRequest request = OfComposite();
  EXPECT_EQ(Call(request, kRunnersPatience).status.error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  const Answer second = Call(request);
  EXPECT_TRUE(second.status.ok()) << second.status.error_message();
  EXPECT_EQ(second.cache_status, "fncache; fwd=miss; collapsed; stored");
  EXPECT_EQ(Metric("fncache_upstream_requests_total", "code=\"OK\""), 1);
}

TEST_F(ConvergingHeavyTest, WithTheConditionMaskedTheSecondReconcileHits) {
  StartDaemon({"--finish-abandoned", "1m", "--mask", "@composite-conditions",
               "--mask", "@versions"});
  EXPECT_EQ(ReconcilesUntilAHit(), 2);
}

TEST_F(ConvergingHeavyTest, WithoutMasksTheThirdReconcileHits) {
  StartDaemon({"--finish-abandoned", "1m"});
  EXPECT_EQ(ReconcilesUntilAHit(), 3);
}

TEST_F(ConvergingHeavyTest, AStopDoesNotWaitForTheFunction) {
  StartDaemon({"--finish-abandoned", "1m", "--drain", "30s"});
  const fn::RunFunctionRequest request = OfComposite();
  EXPECT_EQ(Call(request, absl::Milliseconds(500)).status.error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Reaches("fncache_abandoned_calls_running", 1));
  const absl::Time begin = absl::Now();
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
}

// Answers from disk outlive their time, the function and the daemon.
TEST_F(StaleHeavyTest, AFunctionThatIsGoneIsAnsweredForAfterARestartToo) {
  TempDir dir;
  StartFunction({"--ttl", "1s"});
  const std::vector<std::string> settings = {
      "--cache-dir", dir.path() + "/cache", "--generation",
      "g1",          "--stale-if-error",    "1h"};
  StartDaemon(settings);
  const fn::RunFunctionRequest request = OfComposite();
  EXPECT_EQ(Call(request).cache_status,
            "fncache; fwd=miss; stored; detail=new");
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0);
  function_ = nullptr;
  absl::SleepFor(absl::Seconds(1));  // its time is over
  StartDaemon(settings);
  const absl::Time begin = absl::Now();
  const Answer answer = Call(request);
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_TRUE(absl::StartsWith(answer.cache_status, "fncache; hit; ttl=-"))
      << answer.cache_status;
  EXPECT_EQ(answer.response.meta().tag(), "t");
  EXPECT_GE(answer.response.meta().ttl().seconds(), 10);
  EXPECT_EQ(Metric("fncache_stale_if_error_total", "code=\"UNAVAILABLE\""), 1);
  // A call with an old answer does not wait for a function that is not there.
  EXPECT_LT(absl::Now() - begin, kPatience / 2);
}

TEST_F(StaleHeavyTest, ARefreshBringsTheNewAnswer) {
  StartFunction({"--ttl", "1s", "--cost", "sleep=300ms"});
  StartDaemon({"--stale-while-revalidate", "1h"});
  const fn::RunFunctionRequest request = OfComposite();
  ASSERT_TRUE(Call(request).status.ok());
  absl::SleepFor(absl::Seconds(1));
  const absl::Time begin = absl::Now();
  const Answer stale = Call(request);
  EXPECT_TRUE(absl::StartsWith(stale.cache_status, "fncache; hit; ttl=-"))
      << stale.cache_status;
  EXPECT_TRUE(Reaches("fncache_upstream_requests_total", 2, "code=\"OK\""));
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(250));
  EXPECT_EQ(Metric("fncache_refreshes_total"), 1);
  EXPECT_EQ(Metric("fncache_refreshes_failed_total"), 0);
  EXPECT_EQ(
      Metric("fncache_requests_total", "method=\"v1\",outcome=\"stale_hit\""),
      1);
}

// ---- fncache admin purge --soft

class SoftPurgeHeavyTest : public StaleHeavyTest {
 protected:
  // The admin socket is beside the disk tier.
  void StartDaemonWithDisk(std::vector<std::string> more) {
    more.insert(more.end(), {"--cache-dir", cache_, "--generation", "g1"});
    StartDaemon(more);
    ASSERT_TRUE(daemon_->WaitForStderr("serving fncache admin on "));
  }
  // Its exit code.
  int PurgeSoftly(std::string* said) {
    Process purge({"admin", "--cache-dir", cache_, "purge", "--function",
                   "function", "--soft"});
    const int code = purge.Wait();
    *said = code == 0 ? purge.Stdout() : purge.Stderr();
    return code;
  }
  static bool IsFresh(const Answer& answer) {
    return answer.status.ok() &&
           absl::StartsWith(answer.cache_status, "fncache; hit; ttl=") &&
           !IsStale(answer);
  }
  static bool IsStale(const Answer& answer) {
    return answer.status.ok() &&
           absl::StartsWith(answer.cache_status, "fncache; hit; ttl=-");
  }
  ::testing::AssertionResult BecomesFresh() {
    const absl::Time until = absl::Now() + kPatience;
    Answer answer;
    while (absl::Now() < until) {
      answer = Call(request_);
      if (IsFresh(answer)) return ::testing::AssertionSuccess();
      absl::SleepFor(absl::Milliseconds(20));
    }
    return ::testing::AssertionFailure() << answer.cache_status;
  }

  TempDir dir_;
  const std::string cache_ = dir_.path() + "/cache";
  const fn::RunFunctionRequest request_ = OfComposite();
  std::string said_;
};

TEST_F(SoftPurgeHeavyTest, AnEntryIsServedStaleWhileOneRefreshIsUnderWay) {
  StartFunction({"--ttl", "1h", "--cost", "sleep=2s"});
  StartDaemonWithDisk({"--stale-while-revalidate", "1h"});
  ASSERT_TRUE(Call(request_).status.ok());
  ASSERT_TRUE(IsFresh(Call(request_)));
  ASSERT_EQ(PurgeSoftly(&said_), 0) << said_;
  EXPECT_TRUE(absl::StartsWith(said_, "made stale: function function, on "))
      << said_;
  // All of these find the refresh of the first under way.
  const absl::Time begin = absl::Now();
  int stale = 0;
  while (Metric("fncache_upstream_requests_total", "code=\"OK\"") < 2) {
    const Answer answer = Call(request_);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    if (IsFresh(answer)) break;
    ASSERT_TRUE(IsStale(answer)) << answer.cache_status;
    ++stale;
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_GE(absl::Now() - begin, absl::Seconds(1.9));
  EXPECT_GT(stale, 1);
  EXPECT_TRUE(BecomesFresh());
  EXPECT_EQ(Metric("fncache_refreshes_total"), 1);
  EXPECT_EQ(Metric("fncache_upstream_requests_total", "code=\"OK\""), 2);
}

TEST_F(SoftPurgeHeavyTest, ItHoldsAfterKillMinusNine) {
  StartFunction({"--ttl", "1h"});
  const std::vector<std::string> settings = {"--stale-while-revalidate", "1h"};
  StartDaemonWithDisk(settings);
  ASSERT_TRUE(Call(request_).status.ok());
  // It is written behind the answer.
  const absl::Time until = absl::Now() + kPatience;
  while (Sample(HttpGet(admin_, "/metrics"),
                "fncache_tier_entries{tier=\"disk\"}") < 1 &&
         absl::Now() < until) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  ASSERT_EQ(PurgeSoftly(&said_), 0) << said_;
  EXPECT_TRUE(absl::StrContains(said_, "It holds after a restart, too."))
      << said_;
  daemon_->Signal(SIGKILL);
  daemon_->Wait();
  StartDaemonWithDisk(settings);
  const Answer answer = Call(request_);
  EXPECT_TRUE(IsStale(answer)) << answer.cache_status;
  EXPECT_TRUE(BecomesFresh());
}

TEST_F(SoftPurgeHeavyTest, WithoutAWindowItIsRefusedAndOneOfBeforeIsAMiss) {
  StartFunction({"--ttl", "1h"});
  StartDaemonWithDisk({});
  ASSERT_TRUE(Call(request_).status.ok());
  EXPECT_EQ(PurgeSoftly(&said_), 1);
  EXPECT_TRUE(absl::StrContains(
      said_, "stale_while_revalidate and stale_if_error are both 0"))
      << said_;
  EXPECT_TRUE(IsFresh(Call(request_))) << "nothing was purged";
  // One that was made while there was a window, which is none any more.
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0);
  StartDaemonWithDisk({"--stale-while-revalidate", "1h"});
  ASSERT_EQ(PurgeSoftly(&said_), 0) << said_;
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0);
  StartDaemonWithDisk({});
  const Answer answer = Call(request_);
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_TRUE(absl::StrContains(answer.cache_status, "; fwd="))
      << answer.cache_status;
  EXPECT_TRUE(IsFresh(Call(request_)));
}

}  // namespace
}  // namespace fncache::testing
