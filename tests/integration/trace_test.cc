// SPDX-License-Identifier: Apache-2.0
// A daemon's trace of its calls: all that it promises, nothing that is secret,
// within its bound, over a kill and a full disk.
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/setting.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "insight/trace/block.h"
#include "insight/trace/reader.h"
#include "insight/trace/ring.h"
#include "nlohmann/json.hpp"
#include "proto/function_v1.grpc.pb.h"
#include "proto/function_v1.pb.h"
#include "proto/function_v1beta1.grpc.pb.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

namespace fs = std::filesystem;
using apiextensions::fn::proto::v1::FunctionRunnerService;
using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;
using insight::trace::Outcome;
using insight::trace::ReadCall;
using insight::trace::Reason;
using insight::trace::TraceReader;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Lt;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::Values;
using Texts = std::vector<std::string>;

constexpr char kWritten[] = "fncache_trace_records_total{result=\"written\"}";
constexpr char kDroppedDisk[] =
    "fncache_trace_records_total{result=\"dropped_disk\"}";
constexpr char kDroppedQueue[] =
    "fncache_trace_records_total{result=\"dropped_queue\"}";
constexpr char kSampledOut[] =
    "fncache_trace_records_total{result=\"sampled_out\"}";
constexpr char kUp[] = "fncache_trace_up";

// A request of the composite `name`, with a value in its spec.
RunFunctionRequest Request(const std::string& name, const std::string& value) {
  RunFunctionRequest request;
  const auto status = google::protobuf::util::JsonStringToMessage(
      absl::StrReplaceAll(
          R"({"meta": {"tag": "tag-@-%"}, "observed": {"composite": {
              "resource": {"apiVersion": "example.org/v1", "kind": "XApp",
              "metadata": {"name": "@", "namespace": "ns", "uid": "uid-@"},
              "spec": {"value": "#"}}}},
              "desired": {"composite": {"resource": {"status": {"a": 1}}}}})",
          {{"@", name}, {"#", value}, {"%", absl::StrCat(value.size())}}),
      &request);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return request;
}

// The same with secrets in all places that a trace must keep them out of: their
// values begin with `hidden`, their keys with `secretly`; `plain` is neither.
RunFunctionRequest RequestWithSecrets() {
  RunFunctionRequest request = Request("a", "plain-value");
  RunFunctionRequest secrets;
  // aGlkZGVuMQ== is hidden1.
  const auto status = google::protobuf::util::JsonStringToMessage(
      R"({"credentials": {"plain-source": {"credentialData": {"data": {
            "secretly1": "aGlkZGVuMQ=="}}}},
          "observed": {
            "composite": {"connectionDetails": {"secretly2": "aGlkZGVuMQ=="}},
            "resources": {
              "database": {"resource": {"kind": "Database"},
                "connectionDetails": {"secretly3": "aGlkZGVuMQ=="}},
              "secret": {"resource": {"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "plain-name", "annotations": {
                  "kubectl.kubernetes.io/last-applied-configuration":
                    "{\"data\":{\"secretly4\":\"hidden2\"}}"}},
                "data": {"secretly4": "hidden2"},
                "stringData": {"secretly5": "hidden3"}}}}},
          "desired": {
            "composite": {"connectionDetails": {"secretly6": "aGlkZGVuMQ=="}},
            "resources": {"object": {"resource": {"apiVersion": "e.org/v1",
              "kind": "Object", "spec": {"manifest": {"apiVersion": "v1",
              "kind": "Secret", "stringData": {"key": "hidden4"}}}}}}},
          "context": {"found": [{"apiVersion": "v1", "kind": "Secret",
            "data": {"key": "hidden5"}}]},
          "requiredResources": {"plain-required": {"items": [{"resource": {
            "apiVersion": "v1", "kind": "Secret", "data": {
            "secretly7": "hidden6"}}}]}},
          "extraResources": {"plain-extra": {"items": [{"resource": {
            "apiVersion": "v1", "kind": "Secret", "data": {
            "secretly8": "hidden7"}}}]}}})",
      &secrets);
  EXPECT_TRUE(status.ok()) << status.ToString();
  request.MergeFrom(secrets);
  return request;
}

// Text that cannot be compressed.
std::string Noise(size_t size) {
  static std::mt19937_64* const random = new std::mt19937_64(7);
  std::string text;
  while (text.size() < size) absl::StrAppend(&text, absl::Hex((*random)()));
  return text;
}

struct Answer {
  grpc::Status status;
  RunFunctionResponse response;
  std::string cache_status;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

std::vector<ReadCall> ReadAll(TraceReader* reader) {
  std::vector<ReadCall> calls;
  ReadCall call;
  while (reader->Next(&call)) calls.push_back(call);
  return calls;
}

std::vector<ReadCall> CallsOf(const std::string& trace) {
  auto reader = TraceReader::Open(trace);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? ReadAll(reader->get()) : std::vector<ReadCall>();
}

// The bytes of all files, and of what is compressed in them.
std::string AllBytes(const std::string& trace) {
  std::string all;
  for (const auto& file : fs::directory_iterator(trace)) {
    const std::string bytes = ReadFile(file.path().string());
    all += bytes;
    size_t at = insight::trace::kFileMagic.size();
    std::string block;
    while (insight::trace::ReadBlock(bytes, &at, &block) ==
           insight::trace::BlockRead::kRead) {
      all += block;
    }
  }
  return all;
}

unsigned ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

// As fncache explain and replay find it.
json InfoOf(const std::string& trace) {
  Process info({"replay", trace, "--info", "--json", "-"});
  EXPECT_EQ(info.Wait(), 0) << info.Stderr();
  return json::parse(info.Stdout(), nullptr, /*allow_exceptions=*/false);
}

class TraceTest : public ::testing::Test {
 protected:
  void StartFunction(const Texts& more = {"--ttl", "1h"}) {
    Texts arguments = {"function", "--listen", "127.0.0.1:0", "--insecure"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    function_ = std::make_unique<Process>(arguments);
    ASSERT_TRUE(function_->WaitForStderr("listening on "));
  }

  Texts Arguments(const std::string& trace, const Texts& more) {
    Texts arguments = {"serve",       "--insecure",
                       "--listen",    "127.0.0.1:0",
                       "--admin",     "127.0.0.1:0",
                       "--upstream",  function_->Listening().at(0),
                       "--trace-dir", trace};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // By a shell's `prefix`, where there is one.
  void StartDaemon(const std::string& trace, const Texts& more,
                   const std::string& prefix = "") {
    Texts arguments = Arguments(trace, more);
    std::string program = FNCACHE_BINARY;
    if (!prefix.empty()) {
      arguments.insert(arguments.begin(),
                       {"-c", prefix + "; exec \"$0\" \"$@\"", program});
      program = "sh";
    }
    daemon_ =
        std::make_unique<Process>(arguments, Process::Environment(), program);
    ASSERT_TRUE(daemon_->WaitForStderr("listening on ", 2))
        << daemon_->Stderr();
    std::string served;
    for (const std::string& address : daemon_->Listening()) {
      int status = 0;
      HttpGet(address, "/healthz", &status);
      (status == 200 ? admin_ : served) = address;
    }
    grpc::ChannelArguments no_proxy;
    no_proxy.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    channel_ = grpc::CreateCustomChannel(
        served, grpc::InsecureChannelCredentials(), no_proxy);
    stub_ = FunctionRunnerService::NewStub(channel_);
  }

  void StopDaemon() {
    daemon_->Signal(SIGTERM);
    EXPECT_EQ(daemon_->Wait(), 0) << daemon_->Stderr();
  }

  Answer Call(const RunFunctionRequest& request,
              const Metadata& metadata = {}) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    context.set_wait_for_ready(true);
    for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
    Answer answer;
    answer.status = stub_->RunFunction(&context, request, &answer.response);
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    const auto found = context.GetServerInitialMetadata().find("cache-status");
    if (found != context.GetServerInitialMetadata().end()) {
      answer.cache_status.assign(found->second.data(), found->second.size());
    }
    return answer;
  }

  double Metric(const std::string& name) {
    return Sample(HttpGet(admin_, "/metrics"), name);
  }
  // Until a metric is at least `value`.
  void WaitFor(const std::string& name, double value) {
    const absl::Time until = absl::Now() + kPatience;
    while (Metric(name) < value && absl::Now() < until) {
      std::this_thread::yield();
    }
    EXPECT_GE(Metric(name), value) << name;
  }
  void WaitUntilDown() {
    const absl::Time until = absl::Now() + kPatience;
    while (Metric(kUp) != 0 && absl::Now() < until) std::this_thread::yield();
    EXPECT_EQ(Metric(kUp), 0);
  }
  // Calls continue meanwhile, and cause retries of the disk. Returns their
  // number.
  int CallUntilUp() {
    const absl::Time until = absl::Now() + kPatience;
    int calls = 0;
    while (Metric(kUp) != 1 && absl::Now() < until) {
      Call(Request("late", "v"));
      ++calls;
    }
    EXPECT_EQ(Metric(kUp), 1);
    // A record that waited may have brought it up again, so that no call was
    // made: this one is written.
    Call(Request("late", "v"));
    return calls + 1;
  }

  const TempDir dir_;
  const std::string trace_ = dir_.path() + "/trace";
  std::unique_ptr<Process> function_;
  std::unique_ptr<Process> daemon_;
  std::string admin_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<FunctionRunnerService::Stub> stub_;
};

class TraceLevelTest : public TraceTest,
                       public ::testing::WithParamInterface<const char*> {};

TEST_P(TraceLevelTest, RecordsTellOfEachCall) {
  const std::string level = GetParam();
  StartFunction();
  // Tags are all of the key in the last round: the composite is found anyway.
  for (const bool by_tag : {false, true}) {
    SCOPED_TRACE(by_tag);
    const std::string trace = absl::StrCat(trace_, by_tag);
    Texts more = {"--trace-level", level, "--generation", "g"};
    if (by_tag) more.insert(more.end(), {"--key", "tag"});
    StartDaemon(trace, more);
    const RunFunctionRequest first = Request("a", "one");
    const RunFunctionRequest second = Request("a", "twotwo");
    const Texts told = {
        Call(first, {{"fncache-phase", "settle"}}).cache_status,
        Call(first, {{"fncache-phase", "measure"}}).cache_status,
        Call(second, {{"fncache-phase", "not a word"}}).cache_status,
        Call(second, {{"cache-control", "no-store"}}).cache_status};
    StopDaemon();

    auto reader = TraceReader::Open(trace);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ((*reader)->header().writer, "serve");
    EXPECT_EQ((*reader)->header().sample, 1);
    EXPECT_EQ((*reader)->header().settings.at("trace.level"), level);
    const std::vector<ReadCall> calls = ReadAll(reader->get());
    ASSERT_THAT(calls, SizeIs(4));
    for (size_t i = 0; i < calls.size(); ++i) {
      SCOPED_TRACE(i);
      const auto& call = calls[i].call;
      EXPECT_EQ(call.function, "function");
      EXPECT_EQ(call.method, "v1");
      EXPECT_EQ(call.generation, "g");
      EXPECT_EQ(call.composite.api_version, "example.org/v1");
      EXPECT_EQ(call.composite.kind, "XApp");
      EXPECT_EQ(call.composite.object_namespace, "ns");
      EXPECT_EQ(call.composite.name, "a");
      EXPECT_EQ(call.composite.uid, "uid-a");
      EXPECT_EQ(call.request_bytes, (i < 2 ? first : second).ByteSizeLong());
      EXPECT_EQ(call.function_ttl, absl::Hours(1));
      EXPECT_EQ(call.status, 0);
      EXPECT_GT(call.cost, absl::ZeroDuration());
      EXPECT_GT(call.latency, absl::ZeroDuration());
      EXPECT_GT(call.response_bytes, 0u);
      EXPECT_TRUE(call.told_ttl.has_value());
      EXPECT_EQ(calls[i].request_message.empty(), level != "full");
      EXPECT_EQ(calls[i].response_message.empty(), level != "full");
      EXPECT_EQ(calls[i].nodes == nullptr, level == "keys");
    }
    EXPECT_THAT(told[0], HasSubstr("detail=new"));
    EXPECT_EQ(calls[0].call.outcome, Outcome::kMiss);
    EXPECT_EQ(calls[0].call.reason, Reason::kNew);
    EXPECT_EQ(calls[0].call.phase, "settle");
    EXPECT_TRUE(calls[0].call.stored);
    EXPECT_EQ(calls[0].call.lifetime, absl::Hours(1));
    EXPECT_TRUE(calls[0].call.key.has_value());

    EXPECT_THAT(told[1], HasSubstr("hit"));
    EXPECT_EQ(calls[1].call.outcome, Outcome::kHit);
    EXPECT_EQ(calls[1].call.reason, Reason::kNone);
    EXPECT_EQ(calls[1].call.phase, "measure");
    EXPECT_EQ(calls[1].call.key, calls[0].call.key);
    EXPECT_EQ(calls[1].call.cost,
              absl::Trunc(calls[0].call.cost, absl::Microseconds(1)));
    EXPECT_LE(*calls[1].call.told_ttl, absl::Hours(1));

    EXPECT_THAT(told[2],
                HasSubstr("changed: observed.composite.resource.spec.value"));
    EXPECT_EQ(calls[2].call.outcome, Outcome::kMiss);
    EXPECT_EQ(calls[2].call.reason, Reason::kChanged);
    EXPECT_EQ(calls[2].call.detail, "observed.composite.resource.spec.value");
    EXPECT_EQ(calls[2].call.phase, "");
    EXPECT_NE(calls[2].call.key, calls[0].call.key);
    if (level != "keys") {
      ASSERT_THAT(calls[2].changed, SizeIs(1));
      EXPECT_EQ((*reader)->PathOf(calls[2].changed[0]),
                "observed.composite.resource.spec.value");
    }

    EXPECT_EQ(calls[3].call.outcome, Outcome::kBypass);
    EXPECT_FALSE(calls[3].call.stored);
  }
}

TEST_P(TraceLevelTest, SecretsAreInNoByteOfItAndNobodyElseReadsIt) {
  const std::string level = GetParam();
  StartFunction();
  StartDaemon(trace_, {"--trace-level", level}, "umask 0");
  RunFunctionRequest request = RequestWithSecrets();
  const Answer answer = Call(request);
  // They come back in the answer.
  ASSERT_THAT(answer.response.SerializeAsString(),
              AllOf(HasSubstr("hidden1"), HasSubstr("secretly6")));
  Call(request);
  // One that changes is in a `changed`, too.
  (*request.mutable_credentials()
        ->at("plain-source")
        .mutable_credential_data()
        ->mutable_data())["secretly1"] = "hidden8";
  Call(request);
  StopDaemon();
  ASSERT_THAT(CallsOf(trace_), SizeIs(3));

  const std::string bytes = AllBytes(trace_);
  EXPECT_FALSE(absl::StrContains(bytes, "hidden"));
  EXPECT_FALSE(absl::StrContains(bytes, "secretly"));
  EXPECT_FALSE(absl::StrContains(bytes, "aGlkZGVu"));
  EXPECT_FALSE(absl::StrContains(daemon_->Stderr(), "hidden"));
  for (const char* const value : {"plain-value", "plain-name"}) {
    EXPECT_EQ(absl::StrContains(bytes, value), level == "full") << value;
  }
  EXPECT_EQ(absl::StrContains(bytes, "plain-required"), level != "keys");

  EXPECT_EQ(ModeOf(trace_), 0700u);
  size_t files = 0;
  for (const auto& file : fs::directory_iterator(trace_)) {
    EXPECT_EQ(ModeOf(file.path().string()), 0600u) << file.path();
    ++files;
  }
  EXPECT_EQ(files, 2u) << "the trace and its lock";
}

INSTANTIATE_TEST_SUITE_P(Levels, TraceLevelTest,
                         Values("keys", "paths", "full"),
                         [](const auto& level) {
                           return std::string(level.param);
                         });

// Two cases: an answer that is not kept, and one that is past its time.
TEST_F(TraceTest, TheReasonOfAMissIsTheOneThatTheCallerWasTold) {
  StartFunction({"--ttl", "0"});
  StartDaemon(trace_, {"--trace-level", "keys"});
  Texts told;
  for (int i = 0; i < 2; ++i) {
    told.push_back(Call(Request("a", "v")).cache_status);
  }
  StopDaemon();
  auto calls = CallsOf(trace_);
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_THAT(told, ElementsAre(HasSubstr("detail=new"),
                                HasSubstr("not-stored: no-ttl")));
  EXPECT_EQ(calls[0].call.reason, Reason::kNew);
  EXPECT_FALSE(calls[0].call.stored);
  EXPECT_EQ(calls[0].call.lifetime, absl::nullopt);
  EXPECT_EQ(calls[1].call.reason, Reason::kNotStored);
  EXPECT_EQ(calls[1].call.detail, "no-ttl");

  const std::string other = trace_ + "2";
  StartFunction({"--ttl", "100ms"});
  StartDaemon(other, {"--trace-level", "keys"});
  size_t count = 0;
  std::string last;
  const absl::Time until = absl::Now() + kPatience;
  while (!absl::StrContains(last, "detail=expired") && absl::Now() < until) {
    last = Call(Request("a", "v")).cache_status;
    ++count;
  }
  StopDaemon();
  calls = CallsOf(other);
  ASSERT_THAT(calls, SizeIs(count));
  EXPECT_EQ(calls.back().call.outcome, Outcome::kMiss);
  EXPECT_EQ(calls.back().call.reason, Reason::kExpired);
  for (size_t i = 1; i + 1 < calls.size(); ++i) {
    EXPECT_EQ(calls[i].call.outcome, Outcome::kHit);
  }
}

// The callers send the same requests, and one of them knows v1beta1 only.
TEST_F(TraceTest, ExplainSaysWhatTheDaemonSaysOfBothMethods) {
  namespace beta = apiextensions::fn::proto::v1beta1;
  StartFunction();
  const std::string socket = dir_.path() + "/admin.sock";
  StartDaemon(trace_, {"--trace-level", "paths", "--admin-socket", socket});
  const auto older = beta::FunctionRunnerService::NewStub(channel_);
  for (const char* const value : {"one", "two"}) {
    const RunFunctionRequest request = Request("a", value);
    Call(request);
    beta::RunFunctionRequest same;
    ASSERT_TRUE(same.ParseFromString(request.SerializeAsString()));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    beta::RunFunctionResponse response;
    const grpc::Status status = older->RunFunction(&context, same, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  using Counts = std::map<std::string, int>;
  const Counts wanted = {{"new", 2}, {"changed", 2}};
  Process admin({"admin", "--socket", socket, "explain", "--json"});
  EXPECT_EQ(admin.Wait(), 0) << admin.Stderr();
  Counts told;
  const json last = json::parse(admin.Stdout())["last"];
  for (const json& miss : last) {
    ++told[miss["reason"].get<std::string>()];
  }
  EXPECT_EQ(told, wanted);
  StopDaemon();
  Process explain({"explain", trace_, "--json"});
  EXPECT_EQ(explain.Wait(), 0) << explain.Stderr();
  Counts traced;
  const json reasons = json::parse(explain.Stdout())["reasons"];
  for (const json& reason : reasons) {
    traced[reason["name"].get<std::string>()] = reason["misses"].get<int>();
  }
  EXPECT_EQ(traced, wanted);
}

TEST_F(TraceTest, ADirectoryThatCannotBeUsedEndsTheStartAndIsNamed) {
  StartFunction();
  WriteFile(dir_.File("file"), "content");
  fs::create_directory(dir_.File("linked"));
  fs::create_symlink(dir_.File("file"), dir_.File("linked/lock"));
  fs::create_directory(dir_.File("closed"));
  fs::permissions(dir_.File("closed"), fs::perms::owner_read);
  Texts unusable = {dir_.File("file"),
                    dir_.File("file/below"),
                    dir_.File("no/parent"),
                    dir_.File("linked"),
                    "/proc",
                    "/proc/none"};
  // Nothing is closed to root.
  if (geteuid() != 0) unusable.push_back(dir_.File("closed"));
  for (const std::string& trace : unusable) {
    Process daemon(Arguments(trace, {}));
    EXPECT_EQ(daemon.Wait(), 1) << trace;
    EXPECT_THAT(daemon.Stderr(),
                AllOf(HasSubstr("trace.dir: "), HasSubstr(trace)));
    EXPECT_THAT(daemon.Listening(), IsEmpty()) << trace;
  }
  EXPECT_EQ(ReadFile(dir_.File("file")), "content");

  StartDaemon(trace_, {});
  Process second(Arguments(trace_, {}));
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_THAT(second.Stderr(),
              AllOf(HasSubstr("trace.dir: "), HasSubstr("another process")));

  const std::pair<const char*, const char*> kWrong[] = {{"level", "loud"},
                                                        {"file_size", "1KiB"},
                                                        {"files", "1"},
                                                        {"sample", "0"},
                                                        {"sample", "1.5"}};
  for (const auto& [setting, value] : kWrong) {
    const std::string flag = FlagName(absl::StrCat("trace.", setting));
    Process daemon(Arguments(trace_, {flag, value}));
    EXPECT_EQ(daemon.Wait(), 2) << flag;
    EXPECT_THAT(daemon.Stderr(), HasSubstr(flag + ": "));
  }
}

TEST_F(TraceTest, TheDirectoryHoldsNoMoreThanItsBoundUnderMuchTraffic) {
  constexpr uint64_t kFileSize = 64 << 10, kFiles = 3;
  StartFunction();
  StartDaemon(trace_, {"--trace-level", "full", "--trace-file-size", "64KiB",
                       "--trace-files", "3"});
  constexpr int kCalls = 300;
  uint64_t most = 0;
  const auto look = [&] {
    uint64_t bytes = 0, files = 0;
    for (const auto& file : fs::directory_iterator(trace_)) {
      std::error_code gone;
      const uint64_t size = file.file_size(gone);
      if (gone || !absl::EndsWith(file.path().string(), ".trace")) continue;
      EXPECT_THAT(size, Le(kFileSize));
      bytes += size;
      ++files;
    }
    EXPECT_THAT(files, Le(kFiles));
    most = std::max(most, bytes);
  };
  for (int i = 0; i < kCalls; ++i) {
    Call(Request(absl::StrCat("xr-", i), Noise(4 << 10)));
    look();
  }
  StopDaemon();
  look();
  EXPECT_THAT(most, AllOf(Gt(kFileSize), Le(kFileSize * kFiles)));
  const auto files = insight::trace::TraceFiles(trace_);
  ASSERT_TRUE(files.ok());
  EXPECT_THAT(*files, SizeIs(kFiles));
  EXPECT_THAT(files->back(), Not(HasSubstr("fncache-000003")));
  // The newest ones are there, without a gap, and end with the last call.
  const auto calls = CallsOf(trace_);
  ASSERT_THAT(calls, SizeIs(AllOf(Gt(5u), Lt(size_t{kCalls}))));
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].call.composite.name,
              absl::StrCat("xr-", kCalls - calls.size() + i));
  }
}

TEST_F(TraceTest, ASampleIsOfCompositesEachWithAllOfItsCalls) {
  constexpr int kComposites = 60, kRounds = 4;
  StartFunction();
  StartDaemon(trace_, {"--trace-level", "keys", "--trace-sample", "0.4"});
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kComposites; ++i) {
      Call(Request(absl::StrCat("xr-", i), absl::StrCat(round / 2)));
    }
  }
  WaitFor(kWritten, 1);
  const double out = Metric(kSampledOut);
  EXPECT_EQ(Metric(kDroppedQueue) + Metric(kDroppedDisk), 0);
  StopDaemon();
  std::map<std::string, int> seen;
  const auto calls = CallsOf(trace_);
  for (const ReadCall& call : calls) ++seen[call.call.composite.name];
  EXPECT_THAT(seen.size(), AllOf(Gt(5u), Lt(50u)));
  for (const auto& [name, count] : seen) EXPECT_EQ(count, kRounds) << name;
  EXPECT_EQ(static_cast<double>(calls.size()) + out, kComposites * kRounds);
  EXPECT_EQ(InfoOf(trace_)["sample"], 0.4);
}

TEST_F(TraceTest, AKillLeavesATraceUpToTheLastWholeBlock) {
  StartFunction();
  StartDaemon(trace_, {});
  for (int i = 0; i < 20; ++i) Call(Request("a", absl::StrCat(i)));
  WaitFor(kWritten, 20);
  Call(Request("a", "perhaps"));
  daemon_->Signal(SIGKILL);
  EXPECT_EQ(daemon_->Wait(), 128 + SIGKILL);
  json info = InfoOf(trace_);
  EXPECT_THAT(info["calls"].get<int>(), AllOf(Ge(20), Le(21)));
  EXPECT_EQ(info["damaged"], 0);

  // As if it had come while a block was being written.
  auto files = insight::trace::TraceFiles(trace_);
  ASSERT_TRUE(files.ok());
  const std::string last = ReadFile(files->back());
  WriteFile(files->back(), last + last.substr(8, 30));
  info = InfoOf(trace_);
  EXPECT_THAT(info["calls"].get<int>(), AllOf(Ge(20), Le(21)));
  EXPECT_EQ(info["damaged"], 1);
  const int calls = info["calls"];

  // The next daemon continues, in the next file.
  StartDaemon(trace_, {});
  Call(Request("a", "0"));
  StopDaemon();
  info = InfoOf(trace_);
  EXPECT_EQ(info["calls"], calls + 1);
  files = insight::trace::TraceFiles(trace_);
  ASSERT_TRUE(files.ok());
  EXPECT_THAT(*files, SizeIs(2));
}

// A file size limit fails writes as a full disk does, and needs no privileges.
TEST_F(TraceTest, WhatCannotBeWrittenIsDroppedAndCountedAndCallsAreAnswered) {
  StartFunction();
  StartDaemon(trace_, {"--trace-level", "full"});
  const auto limit = [this](rlim_t bytes) {
    struct rlimit size = {};
    ASSERT_EQ(prlimit(daemon_->pid(), RLIMIT_FSIZE, nullptr, &size), 0);
    size.rlim_cur = bytes == RLIM_INFINITY ? size.rlim_max : bytes;
    ASSERT_EQ(prlimit(daemon_->pid(), RLIMIT_FSIZE, &size, nullptr), 0);
  };
  limit(4096);
  constexpr int kCalls = 20;
  for (int i = 0; i < kCalls; ++i) {
    Call(Request(absl::StrCat("xr-", i), Noise(4 << 10)));
  }
  WaitUntilDown();
  EXPECT_GE(Metric(kDroppedDisk), 1);
  EXPECT_TRUE(daemon_->WaitForStderr("the trace cannot be written"));
  limit(RLIM_INFINITY);
  const int more = CallUntilUp();
  EXPECT_TRUE(daemon_->WaitForStderr("the trace can be written"));
  const double dropped = Metric(kDroppedDisk);
  StopDaemon();
  auto reader = TraceReader::Open(trace_);
  ASSERT_TRUE(reader.ok());
  const auto calls = ReadAll(reader->get());
  EXPECT_THAT(calls, Not(IsEmpty()));
  EXPECT_EQ(static_cast<double>(calls.size()) + dropped, kCalls + more);
  EXPECT_EQ(static_cast<double>((*reader)->dropped()), dropped);
}

// A small file system of its own, where the tests may make one.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    fs::create_directory(path);
    mounted_ = mount("tmpfs", path.c_str(), "tmpfs", 0, "size=1m") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  void Fill() {
    std::ofstream filler(path_ + "/filler", std::ios::binary);
    while (filler.write(std::string(4096, 'x').data(), 4096).flush()) {
    }
  }
  void Empty() { fs::remove(path_ + "/filler"); }

 private:
  const std::string path_;
  bool mounted_ = false;
};

TEST_F(TraceTest, AFullDiskDropsRecordsAndKeepsWhatIsThere) {
  SmallDisk disk(dir_.File("disk"));
  if (!disk.mounted()) GTEST_SKIP() << "no file system may be mounted here";
  const std::string trace = dir_.File("disk/trace");
  StartFunction();
  StartDaemon(trace, {"--trace-level", "full", "--trace-file-size", "64KiB",
                      "--trace-files", "12"});
  int calls = 0;
  for (; calls < 20; ++calls) {
    Call(Request(absl::StrCat("early-", calls), Noise(4 << 10)));
  }
  WaitFor(kWritten, 1);
  disk.Fill();
  for (; calls < 60; ++calls) {
    Call(Request(absl::StrCat("full-", calls), Noise(4 << 10)));
  }
  WaitUntilDown();
  EXPECT_GE(Metric(kDroppedDisk), 1);
  disk.Empty();
  calls += CallUntilUp();
  const double dropped = Metric(kDroppedDisk);
  StopDaemon();
  auto reader = TraceReader::Open(trace);
  ASSERT_TRUE(reader.ok());
  const auto read = ReadAll(reader->get());
  ASSERT_THAT(read, Not(IsEmpty()));
  EXPECT_THAT(read.front().call.composite.name, HasSubstr("early-"));
  EXPECT_EQ(read.back().call.composite.name, "late");
  EXPECT_EQ(static_cast<double>((*reader)->dropped()), dropped);
  EXPECT_THAT(static_cast<double>(read.size()) + dropped,
              Le(static_cast<double>(calls)));
}

}  // namespace
}  // namespace fncache::testing
