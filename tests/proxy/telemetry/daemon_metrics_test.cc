// SPDX-License-Identifier: Apache-2.0
// A whole daemon counts real calls, and is read as Prometheus reads it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "proxy/daemon.h"
#include "tests/common/http_get.h"
#include "tests/common/temp_dir.h"
#include "tests/proxy/start_daemon.h"

namespace fncache::proxy::telemetry {
namespace {

namespace fn = apiextensions::fn::proto::v1;

// Takes 20 ms and gives a TTL of a minute; fails where the tag says so.
class SlowFunction : public fn::FunctionRunnerService::Service {
 public:
  explicit SlowFunction(int port = 0) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port),
                             grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  grpc::Status RunFunction(grpc::ServerContext*,
                           const fn::RunFunctionRequest* request,
                           fn::RunFunctionResponse* response) override {
    absl::SleepFor(absl::Milliseconds(20));
    if (request->meta().tag() == "fail") {
      return grpc::Status(grpc::StatusCode::INTERNAL, "asked to");
    }
    response->mutable_meta()->set_tag(request->meta().tag());
    auto* const ttl = response->mutable_meta()->mutable_ttl();
    if (request->meta().tag() == "brief") {
      ttl->set_nanos(1);
    } else {
      ttl->set_seconds(60);
    }
    response->mutable_desired()->mutable_composite()->set_ready(fn::READY_TRUE);
    return grpc::Status::OK;
  }

  int port() const { return port_; }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class DaemonMetricsTest : public ::testing::Test {
 protected:
  void SetUp() override { Start({}, {}); }

  // Another daemon, in place of the one before.
  void Start(const absl::optional<std::string>& cache_dir,
             Daemon::Extras extras,
             const settings::FunctionOptions& like = {}) {
    settings::DaemonOptions options;
    options.cache_dir = cache_dir;
    options.shared = shared_;
    settings::FunctionOptions function = like;
    function.name = "function-a";
    function.listen = "127.0.0.1:0";
    function.upstream = function_->address();
    options.functions.push_back(function);
    options.admin = "127.0.0.1:0";
    options.drain = absl::Seconds(1);
    auto daemon = StartDaemon(options, std::move(extras));
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    stub_ = fn::FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
        daemon_->addresses()[0], grpc::InsecureChannelCredentials(),
        arguments));
  }

  grpc::StatusCode Call(const std::string& resource, const std::string& tag,
                        const std::string& cache_control = "") {
    fn::RunFunctionRequest request;
    request.mutable_meta()->set_tag(tag);
    request.mutable_observed()->mutable_composite()->mutable_resource();
    (*request.mutable_observed()->mutable_resources())[resource];
    grpc::ClientContext context;
    if (!cache_control.empty()) {
      context.AddMetadata("cache-control", cache_control);
    }
    fn::RunFunctionResponse response;
    return stub_->RunFunction(&context, request, &response).error_code();
  }

  std::string Scrape() { return Get("/metrics"); }

  std::string Get(const std::string& path) {
    const std::vector<std::string> parts =
        absl::StrSplit(daemon_->admin_address(), ':');
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(parts.back(), &port));
    return ::fncache::testing::HttpGet(port, path);
  }

  // The series' value, -1 where it is not there.
  static double Value(const std::string& scrape, absl::string_view series) {
    double value = -1;
    for (const absl::string_view line : absl::StrSplit(scrape, '\n')) {
      if (absl::StartsWith(line, absl::StrCat(series, " "))) {
        EXPECT_TRUE(absl::SimpleAtod(line.substr(series.size() + 1), &value));
      }
    }
    return value;
  }

  settings::SharedOptions shared_;
  std::unique_ptr<SlowFunction> function_ = std::make_unique<SlowFunction>();
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<fn::FunctionRunnerService::Stub> stub_;
};

TEST_F(DaemonMetricsTest, CallsAreCountedAsWhatTheyWere) {
  ASSERT_EQ(Call("a", "1"), grpc::OK);              // miss
  ASSERT_EQ(Call("a", "2"), grpc::OK);              // hit
  ASSERT_EQ(Call("a", "3"), grpc::OK);              // hit
  ASSERT_EQ(Call("a", "4", "no-store"), grpc::OK);  // request
  ASSERT_EQ(Call("b", "fail"), grpc::INTERNAL);     // miss

  // No later: a call is counted before its caller has the answer.
  const std::string scrape = Scrape();
  EXPECT_EQ(Value(scrape,
                  "fncache_requests_in_flight{function_name=\"function-a\","
                  "method=\"v1\"}"),
            0);
  const auto builtin = [&](absl::string_view name) {
    return Value(scrape, absl::StrCat("function_run_function_response_cache_",
                                      name, "{function_name=\"function-a\"}"));
  };
  EXPECT_EQ(builtin("hits_total"), 2);
  EXPECT_EQ(builtin("misses_total"), 2);
  EXPECT_EQ(builtin("errors_total"), 0);
  EXPECT_EQ(builtin("writes_total"), 1);
  EXPECT_EQ(builtin("read_seconds_count"), 2);
  EXPECT_GE(builtin("write_seconds_count"), 1);
  const auto requests = [&](absl::string_view outcome) {
    return Value(scrape,
                 absl::StrCat("fncache_requests_total{function_name=\"function-"
                              "a\",method=\"v1\",outcome=\"",
                              outcome, "\"}"));
  };
  EXPECT_EQ(requests("hit"), 2);
  EXPECT_EQ(requests("miss"), 2);
  EXPECT_EQ(requests("request"), 1);
  EXPECT_EQ(requests("bypass"), 0);
  const auto upstream = [&](absl::string_view code) {
    return Value(scrape, absl::StrCat("fncache_upstream_requests_total{"
                                      "function_name=\"function-a\",code=\"",
                                      code, "\"}"));
  };
  EXPECT_EQ(upstream("OK"), 2);
  EXPECT_EQ(upstream("INTERNAL"), 1);
  // Two hits saved a call of 20 ms or more each.
  EXPECT_GE(Value(scrape,
                  "fncache_function_seconds_saved_total{function_name="
                  "\"function-a\"}"),
            0.04);
  EXPECT_EQ(Value(scrape, "fncache_tier_entries{tier=\"memory\"}"), 1);
  EXPECT_GT(Value(scrape, "fncache_tier_bytes{tier=\"memory\"}"), 0);
  EXPECT_EQ(Value(scrape, "fncache_flights{function_name=\"function-a\"}"), 0);
  EXPECT_EQ(Value(scrape, "fncache_ready"), 1);
}

TEST_F(DaemonMetricsTest, ATierIsDownForAsLongAsItsFileSystemIsReadOnly) {
  const ::fncache::testing::TempDir dir;
  const auto mounted = [&](unsigned long flags) {
    return mount("none", dir.path().c_str(), "tmpfs", flags, "size=64m") == 0;
  };
  if (!mounted(MS_RDONLY)) {
    GTEST_SKIP() << "may not mount here: " << strerror(errno);
  }
  Daemon::Extras extras;
  EXPECT_EQ(extras.disk_retry, absl::Seconds(30));
  extras.disk_retry = absl::Milliseconds(5);
  Start(dir.path() + "/cache", std::move(extras));
  EXPECT_TRUE(daemon_->ready());
  const std::string up = "fncache_tier_up{tier=\"disk\"}";
  EXPECT_EQ(Value(Scrape(), up), 0);
  EXPECT_EQ(Value(Scrape(), "fncache_tier_up{tier=\"memory\"}"), 1);
  const std::string hits =
      "function_run_function_response_cache_hits_total{function_name="
      "\"function-a\"}";
  ASSERT_EQ(Call("a", "1"), grpc::OK);
  ASSERT_EQ(Call("a", "2"), grpc::OK);
  EXPECT_EQ(Value(Scrape(), hits), 1) << "memory serves meanwhile";

  ASSERT_TRUE(mounted(MS_REMOUNT));
  while (Value(Scrape(), up) != 1) {
  }
  ASSERT_EQ(Call("a", "3"), grpc::OK);
  std::string scrape = Scrape();
  EXPECT_EQ(Value(scrape, hits), 1) << "memory was emptied";
  EXPECT_EQ(Value(scrape, "fncache_tier_entries{tier=\"memory\"}"), 1);
  ASSERT_EQ(Call("a", "4"), grpc::OK);
  EXPECT_EQ(Value(Scrape(), hits), 2);
  while (Value(Scrape(), "fncache_tier_entries{tier=\"disk\"}") != 1) {
  }
  daemon_ = nullptr;
  EXPECT_EQ(umount(dir.path().c_str()), 0);
}

TEST_F(DaemonMetricsTest, ADaemonIsReadyWithoutTheServerOfItsSharedTier) {
  const ::fncache::testing::TempDir dir;
  shared_.url = "unix:" + dir.File("nothing.sock");
  shared_.secret_file = dir.File("secret");
  ::fncache::testing::WriteFile(shared_.secret_file, std::string(32, 's'));
  Start({}, {});
  EXPECT_TRUE(absl::StartsWith(Get("/readyz"), "HTTP/1.1 200 "));
  EXPECT_TRUE(absl::StartsWith(Get("/healthz"), "HTTP/1.1 200 "));
  ASSERT_EQ(Call("a", "1"), grpc::OK);
  ASSERT_EQ(Call("a", "2"), grpc::OK);
  const std::string scrape = Scrape();
  EXPECT_EQ(Value(scrape, "fncache_tier_up{tier=\"shared\"}"), 0);
  EXPECT_EQ(Value(scrape, "fncache_tier_up{tier=\"memory\"}"), 1);
  EXPECT_EQ(Value(scrape, "fncache_shared_lookups_total{result=\"miss\"}"), 0);
  EXPECT_GE(Value(scrape, "fncache_shared_lookups_total{result=\"down\"}"), 1);
  for (const char* const series :
       {"fncache_tier_errors_total{tier=\"shared\",kind=\"corrupt\"}",
        "fncache_tier_writes_total{function_name=\"function-a\",tier="
        "\"shared\"}",
        "fncache_queue_depth{queue=\"shared_lookups\"}"}) {
    EXPECT_EQ(Value(scrape, series), 0) << series;
  }
  EXPECT_TRUE(
      absl::StrContains(Get("/statusz"), "The shared tier is down since "));
  daemon_ = nullptr;
}

TEST_F(DaemonMetricsTest, AnExpiredEntryIsDeletedWithTheBytesItWasWrittenAs) {
  ASSERT_EQ(Call("a", "brief"), grpc::OK);
  ASSERT_EQ(Call("a", "brief"), grpc::OK);  // the first is past its time
  const std::string scrape = Scrape();
  const auto builtin = [&](absl::string_view name) {
    return Value(scrape, absl::StrCat("function_run_function_response_cache_",
                                      name, "{function_name=\"function-a\"}"));
  };
  EXPECT_EQ(builtin("writes_total"), 2);
  EXPECT_EQ(builtin("deletes_total"), 1);
  EXPECT_GT(builtin("bytes_deleted_total"), 0);
  EXPECT_EQ(builtin("bytes_deleted_total"), builtin("bytes_written_total") / 2);
}

TEST_F(DaemonMetricsTest, AKeyWhoseRefreshFailedIsToldForAsLongAsItBacksOff) {
  settings::FunctionOptions stale;
  stale.policy.stale_while_revalidate = absl::Hours(1);
  Start({}, {}, stale);
  const std::string backing_off =
      "fncache_keys_backing_off{function_name=\"function-a\"}";
  ASSERT_EQ(Call("a", "brief"), grpc::OK);
  EXPECT_EQ(Value(Scrape(), backing_off), 0);
  ASSERT_EQ(Call("a", "fail"), grpc::OK);  // from the old answer
  std::string scrape;
  do {
    scrape = Scrape();
  } while (Value(scrape,
                 "fncache_refreshes_failed_total{function_name="
                 "\"function-a\"}") != 1);
  EXPECT_EQ(Value(scrape, backing_off), 1);
  while (Value(Scrape(), backing_off) != 0) {
  }
}

TEST_F(DaemonMetricsTest, AFunctionThatIsGoneIsToldWithTheReasonUntilItIsBack) {
  const auto reachable = [&] {
    return Value(Scrape(),
                 "fncache_function_reachable{function_name=\"function-a\"}");
  };
  // The daemon looks every few seconds.
  const auto becomes = [&](double value) {
    const absl::Time until = absl::Now() + absl::Seconds(60);
    while (reachable() != value && absl::Now() < until) {
      absl::SleepFor(absl::Milliseconds(50));
    }
    return reachable() == value;
  };
  EXPECT_EQ(reachable(), 1);
  const int port = function_->port();
  function_ = nullptr;
  std::thread caller([&] { EXPECT_EQ(Call("a", "1"), grpc::OK); });
  EXPECT_TRUE(becomes(0));
  const std::string page = Get("/statusz");
  EXPECT_NE(page.find("<li class=error>"), page.npos);
  EXPECT_NE(page.find("Connection refused"), page.npos) << page;
  function_ = std::make_unique<SlowFunction>(port);
  caller.join();
  EXPECT_TRUE(becomes(1));
  EXPECT_EQ(Get("/statusz").find("<li class=error>"), page.npos);
}

}  // namespace
}  // namespace fncache::proxy::telemetry
