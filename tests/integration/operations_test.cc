// SPDX-License-Identifier: Apache-2.0
// Operations through a real daemon: each call runs the function, unless the
// settings say otherwise; and what the other commands make of such calls.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/function_v1.grpc.pb.h"
#include "tests/common/eventually.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

namespace fn = apiextensions::fn::proto::v1;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kOperation[] = "fncache; fwd=bypass; detail=operation";

// Counts its runs, and says the number of each in its answer's output, as what
// acts would.
class Acting final : public fn::FunctionRunnerService::Service {
 public:
  Acting() {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Acting() override { server_->Shutdown(); }

  grpc::Status RunFunction(grpc::ServerContext*,
                           const fn::RunFunctionRequest* request,
                           fn::RunFunctionResponse* response) override {
    response->mutable_meta()->set_tag(request->meta().tag());
    response->mutable_meta()->mutable_ttl()->set_seconds(3600);
    (*response->mutable_output()->mutable_fields())["run"].set_number_value(
        ++runs_);
    return grpc::Status::OK;
  }

  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }
  int runs() const { return runs_; }

 private:
  std::atomic<int> runs_{0};
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

fn::RunFunctionRequest Parse(const std::string& text) {
  fn::RunFunctionRequest request;
  const auto status =
      google::protobuf::util::JsonStringToMessage(text, &request);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return request;
}

// The request for a step of an Operation. Those that a CronOperation
// makes look alike, as their names are in no request.
fn::RunFunctionRequest Operation() {
  return Parse(R"({"meta": {"tag": "t"}, "desired": {}, "context": {},
      "input": {"apiVersion": "example.org/v1", "kind": "Backup"}})");
}
fn::RunFunctionRequest CronOperation() {
  return Parse(R"({"meta": {"tag": "t"}, "desired": {}, "context": {},
      "input": {"apiVersion": "example.org/v1", "kind": "Report"},
      "requiredResources": {"all": {"items": [{"resource": {
          "apiVersion": "v1", "kind": "ConfigMap"}}]}}})");
}
fn::RunFunctionRequest WatchOperation() {
  return Parse(R"({"meta": {"tag": "t"}, "desired": {}, "context": {},
      "requiredResources": {"ops.crossplane.io/watched-resource": {"items": [{
          "resource": {"apiVersion": "v1", "kind": "ConfigMap",
                       "metadata": {"name": "watched"}}}]}}})");
}

class OperationsTest : public ::testing::Test {
 protected:
  struct Answer {
    std::string cache_status;
    int run = 0;
  };

  std::string Settings(const std::string& more) const {
    return absl::StrCat("insecure: true\nlisten: \"127.0.0.1:0\"\nupstream: \"",
                        function_.target(),
                        "\"\nadmin: \"127.0.0.1:0\"\ndrain: 1s\n", more);
  }
  void Start(const std::string& settings = "",
             const std::vector<std::string>& flags = {}) {
    WriteFile(file_, Settings(settings));
    std::vector<std::string> arguments = {
        "serve", "--config", file_, "--admin-socket", dir_.File("admin.sock")};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    daemon_ = std::make_unique<Process>(arguments);
    ASSERT_TRUE(daemon_->WaitForStderr("(admin:")) << daemon_->Stderr();
    grpc::ChannelArguments channel;
    channel.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    stub_ = fn::FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
        daemon_->Listening()[0], grpc::InsecureChannelCredentials(), channel));
  }
  void Reload(const std::string& settings) {
    WriteFile(file_, Settings(settings));
    daemon_->Signal(SIGHUP);
    ++reloads_;
    ASSERT_TRUE(daemon_->WaitForStderr("settings were reloaded", reloads_))
        << daemon_->Stderr();
  }
  void Stop() {
    daemon_->Signal(SIGTERM);
    EXPECT_EQ(daemon_->Wait(), 0);
  }
  Answer Call(const fn::RunFunctionRequest& request) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    fn::RunFunctionResponse response;
    const grpc::Status status =
        stub_->RunFunction(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto& headers = context.GetServerInitialMetadata();
    const auto header = headers.find("cache-status");
    const auto& output = response.output().fields();
    Answer answer;
    if (header != headers.end()) {
      answer.cache_status.assign(header->second.data(), header->second.size());
    }
    const auto run = output.find("run");
    if (run != output.end()) {
      answer.run = static_cast<int>(run->second.number_value());
    }
    return answer;
  }
  std::string Page(const std::string& path) {
    return HttpGet(daemon_->Listening()[1], path);
  }
  double Bypasses(const std::string& reason) {
    return Sample(Page("/metrics"),
                  absl::StrCat("fncache_bypasses_total{function_name="
                               "\"function\",reason=\"",
                               reason, "\"}"));
  }
  struct Ended {
    int code = 0;
    std::string out;
    std::string err;
  };
  static Ended Fncache(const std::vector<std::string>& arguments) {
    Process process(arguments);
    Ended ended;
    ended.code = process.Wait();
    ended.out = process.Stdout();
    ended.err = process.Stderr();
    return ended;
  }
  std::string RequestFile(const fn::RunFunctionRequest& request) {
    std::string path = dir_.File("request.bin");
    WriteFile(path, request.SerializeAsString());
    return path;
  }

  TempDir dir_;
  const std::string file_ = dir_.File("fncache.yaml");
  Acting function_;
  std::unique_ptr<Process> daemon_;
  std::unique_ptr<fn::FunctionRunnerService::Stub> stub_;
  int reloads_ = 0;
};

TEST_F(OperationsTest, ThreeEqualOperationsRunThreeTimes) {
  Start("log: {access: all, access_format: json, access_file: " +
        dir_.File("access.log") + "}\n");
  EXPECT_EQ(Bypasses("operation"), 0);
  for (int i = 1; i <= 3; ++i) {
    const Answer answer = Call(Operation());
    EXPECT_EQ(answer.cache_status, kOperation);
    EXPECT_EQ(answer.run, i);
  }
  EXPECT_EQ(function_.runs(), 3);
  EXPECT_EQ(Bypasses("operation"), 3);
  EXPECT_EQ(Bypasses("metadata"), 0);
  EXPECT_EQ(Sample(Page("/metrics"),
                   "function_run_function_response_cache_"
                   "writes_total{function_name=\"function\"}"),
            0);
  const json page = json::parse(Page("/statusz?format=json"));
  const json& counts = page["functions"][0]["since_start"];
  EXPECT_EQ(counts["bypasses_by_reason"]["operation"], 3);
  EXPECT_EQ(counts["calls_by_outcome"]["bypass"], 3);
  EXPECT_THAT(Page("/statusz"), HasSubstr("operation 3"));
  const Ended stats =
      Fncache({"admin", "--socket", dir_.File("admin.sock"), "stats"});
  EXPECT_EQ(stats.code, 0) << stats.err;
  EXPECT_THAT(stats.out, HasSubstr("bypasses"));
  const Ended numbers = Fncache(
      {"admin", "--socket", dir_.File("admin.sock"), "stats", "--json"});
  EXPECT_EQ(json::parse(numbers.out)["functions"][0]["since_start"]
                                    ["bypasses_by_reason"]["operation"],
            3)
      << numbers.out;
  Stop();
  const std::string log = ReadFile(dir_.File("access.log"));
  EXPECT_THAT(log, HasSubstr(R"("outcome":"bypass","detail":"operation")"));
}

TEST_F(OperationsTest, EachKindIsOne) {
  Start();
  int runs = 0;
  for (const auto& request : {Operation(), CronOperation(), WatchOperation(),
                              Parse(R"({"observed": {}})"),
                              Parse(R"({"observed": {"composite": {}}})"),
                              fn::RunFunctionRequest()}) {
    for (int i = 0; i < 3; ++i) {
      const Answer answer = Call(request);
      EXPECT_EQ(answer.cache_status, kOperation) << request.ShortDebugString();
      EXPECT_EQ(answer.run, ++runs);
    }
  }
  EXPECT_EQ(function_.runs(), runs);
  EXPECT_EQ(Bypasses("operation"), runs);
  // A composite's request is looked up, as ever.
  const auto composite =
      Parse(R"({"observed": {"composite": {"resource": {}}}})");
  EXPECT_THAT(Call(composite).cache_status, StartsWith("fncache; fwd=miss"));
  EXPECT_THAT(Call(composite).cache_status, StartsWith("fncache; hit"));
}

TEST_F(OperationsTest, OnesThatAreToBeCachedAre) {
  Start("operations: cache\n");
  int runs = 0;
  for (const auto& request : {Operation(), CronOperation(), WatchOperation()}) {
    EXPECT_EQ(Call(request).cache_status,
              "fncache; fwd=miss; stored; detail=new");
    ++runs;
    for (int i = 0; i < 2; ++i) {
      const Answer answer = Call(request);
      EXPECT_THAT(answer.cache_status, StartsWith("fncache; hit; ttl="));
      EXPECT_EQ(answer.run, runs);
    }
  }
  EXPECT_EQ(function_.runs(), 3);
  EXPECT_EQ(Bypasses("operation"), 0);
}

TEST_F(OperationsTest, TheSettingChangesWhileTheDaemonRuns) {
  Start();
  EXPECT_EQ(Call(Operation()).cache_status, kOperation);
  Reload("operations: cache\n");
  EXPECT_THAT(daemon_->Stderr(), HasSubstr("operations=\"bypass -> cache\""));
  EXPECT_THAT(Call(Operation()).cache_status, StartsWith("fncache; fwd=miss"));
  EXPECT_THAT(Call(Operation()).cache_status, StartsWith("fncache; hit"));
  Reload("operations: bypass\n");
  EXPECT_EQ(Call(Operation()).cache_status, kOperation);
  EXPECT_EQ(function_.runs(), 3);
}

TEST_F(OperationsTest, ALookupSaysThatTheyAreNotServed) {
  Start("operations: cache\n");
  Call(Operation());
  const std::vector<std::string> lookup = {
      "admin",  "--socket",  dir_.File("admin.sock"),
      "lookup", "--request", RequestFile(Operation())};
  EXPECT_THAT(Fncache(lookup).out, HasSubstr("served              yes\n"));
  Reload("");
  EXPECT_THAT(Fncache(lookup).out,
              HasSubstr("served              no: the request is an "
                        "operation's, which is a bypass\n"));
}

TEST_F(OperationsTest, ALoadOfThemRunsTheFunctionEachTime) {
  Start();
  const std::vector<std::string> load = {"load",
                                         "--request",
                                         RequestFile(Operation()),
                                         daemon_->Listening()[0],
                                         "--concurrency",
                                         "2",
                                         "--total",
                                         "20",
                                         "--json",
                                         "-"};
  const Ended ended = Fncache(load);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(function_.runs(), 20);
  EXPECT_EQ(Bypasses("operation"), 20);
}

TEST_F(OperationsTest, ReplayPlaysThemAsTheDaemonTreatedThem) {
  const std::string trace = dir_.File("trace");
  Start("operations: cache\n", {"--trace-dir", trace});
  for (int i = 0; i < 3; ++i) Call(Operation());
  Stop();
  const Ended replayed =
      Fncache({"replay", trace, "--what-if", "ttl.min=24h", "--json", "-"});
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  const json settings = json::parse(replayed.out)["settings"][0];
  EXPECT_EQ(settings["hits"], 2) << replayed.out;
  EXPECT_EQ(settings["misses"], 1);
  EXPECT_EQ(settings["bypasses"], 0);
  const Ended asked =
      Fncache({"replay", trace, "--what-if", "operations=bypass"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_THAT(asked.err,
              HasSubstr("operations are played as the daemon of the trace "
                        "treated them"));
}

TEST_F(OperationsTest, ATraceTellsThemFromMisses) {
  const std::string trace = dir_.File("trace");
  Start("", {"--trace-dir", trace, "--trace-level", "full"});
  for (int i = 0; i < 3; ++i) Call(Operation());
  Stop();
  const Ended explained = Fncache({"explain", trace});
  EXPECT_EQ(explained.code, 0) << explained.err;
  EXPECT_THAT(explained.out,
              AllOf(HasSubstr("not looked up: 3 operation"),
                    HasSubstr("0 misses"), Not(HasSubstr("mask"))));
  const Ended said = Fncache({"explain", trace, "--json"});
  EXPECT_EQ(json::parse(said.out)["bypasses_by_reason"]["operation"], 3);
  // Without limits of lifetime: they would have been hits, were they no
  // operations.
  const Ended replayed =
      Fncache({"replay", trace, "--what-if", "ttl.min=24h", "--json", "-"});
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  const json settings = json::parse(replayed.out)["settings"][0];
  EXPECT_EQ(settings["hits"], 0) << replayed.out;
  EXPECT_EQ(settings["misses"], 0);
  EXPECT_EQ(settings["bypasses"], 3);
  EXPECT_EQ(settings["function_runs"], 3);
}

}  // namespace
}  // namespace fncache::testing
