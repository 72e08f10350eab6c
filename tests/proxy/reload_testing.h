// SPDX-License-Identifier: Apache-2.0
// The common base of tests of a daemon that reloads its settings: the daemon
// with its file, in simulated time, and a function whose answers identify the
// request that they belong to.
#ifndef FNCACHE_TESTS_PROXY_RELOAD_TESTING_H_
#define FNCACHE_TESTS_PROXY_RELOAD_TESTING_H_

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "proxy/daemon.h"
#include "tests/common/http_get.h"
#include "tests/common/temp_dir.h"
#include "tests/proxy/serving/scripted.h"
#include "tests/proxy/start_daemon.h"

namespace fncache::proxy {

namespace fn = apiextensions::fn::proto::v1;

// A request's content and the function's behaviour.
struct Ask {
  std::string spec = "1";     // never masked
  std::string version = "1";  // what @versions hides
  std::string tag = "tag";
  std::string resource;    // a resource's name, if there is to be one
  int ttl_seconds = 3600;  // of the answer; negative = none
  int bytes = 0;           // of the answer, about
  bool fatal = false;      // the answer is
  bool secret = false;     // the answer holds one
  bool hold = false;       // the function waits for Release
  bool operation = false;  // no composite asks: it is the input instead
  std::string metadata;    // a key that the call carries; x-hint: get a hint
  size_t metadata_bytes = 1;

  // The answer's text, which identifies the request.
  std::string text() const { return absl::StrCat(spec, "/", version); }
};

inline fn::RunFunctionRequest RequestOf(const Ask& ask) {
  fn::RunFunctionRequest request;
  request.mutable_meta()->set_tag(ask.tag);
  auto& composite = *(ask.operation ? request.mutable_input()
                                    : request.mutable_observed()
                                          ->mutable_composite()
                                          ->mutable_resource())
                         ->mutable_fields();
  auto& spec = *composite["spec"].mutable_struct_value()->mutable_fields();
  spec["id"].set_string_value(ask.spec);
  spec["ttl"].set_number_value(ask.ttl_seconds);
  spec["bytes"].set_number_value(ask.bytes);
  spec["fatal"].set_bool_value(ask.fatal);
  spec["secret"].set_bool_value(ask.secret);
  spec["hold"].set_bool_value(ask.hold);
  (*composite["metadata"]
        .mutable_struct_value()
        ->mutable_fields())["resourceVersion"]
      .set_string_value(ask.version);
  if (!ask.resource.empty()) {
    (*request.mutable_observed()->mutable_resources())[ask.resource];
  }
  return request;
}

// The object that asks.
inline const google::protobuf::Struct& ObjectOf(
    const fn::RunFunctionRequest& request) {
  const fn::Resource& composite = request.observed().composite();
  return composite.has_resource() ? composite.resource() : request.input();
}

inline fn::RunFunctionResponse ResponseTo(
    const fn::RunFunctionRequest& request) {
  const auto& composite = ObjectOf(request).fields();
  const auto& spec = composite.at("spec").struct_value().fields();
  fn::RunFunctionResponse response;
  response.mutable_meta()->set_tag(request.meta().tag());
  const int ttl = static_cast<int>(spec.at("ttl").number_value());
  if (ttl >= 0) response.mutable_meta()->mutable_ttl()->set_seconds(ttl);
  auto* const result = response.add_results();
  result->set_severity(spec.at("fatal").bool_value() ? fn::SEVERITY_FATAL
                                                     : fn::SEVERITY_NORMAL);
  result->set_message(absl::StrCat(spec.at("id").string_value(), "/",
                                   composite.at("metadata")
                                       .struct_value()
                                       .fields()
                                       .at("resourceVersion")
                                       .string_value()));
  const auto bytes = static_cast<size_t>(spec.at("bytes").number_value());
  if (bytes > 0) response.add_results()->set_message(std::string(bytes, 'x'));
  if (spec.at("secret").bool_value()) {
    (*response.mutable_desired()
          ->mutable_composite()
          ->mutable_connection_details())["password"] = "hidden";
  }
  return response;
}

class ReloadTest : public ::testing::Test {
 protected:
  struct Answer {
    grpc::StatusCode code = grpc::StatusCode::UNKNOWN;
    std::string message;  // of the status
    std::string cache;    // cache-status, behind "fncache; "
    std::string text;     // as Ask::text
    int64_t ttl = -1;     // that it says; -1 = none
    bool hit() const { return cache.rfind("hit", 0) == 0; }
    // For how long it will still be served, in seconds.
    int64_t served() const {
      int64_t seconds = -1;
      EXPECT_TRUE(hit()) << cache;
      EXPECT_TRUE(absl::SimpleAtoi(
          std::vector<std::string>(absl::StrSplit(cache, "ttl=")).back(),
          &seconds))
          << cache;
      return seconds;
    }
  };

  ReloadTest()
      : clock_(absl::FromUnixSeconds(1'900'000'000)),
        function_([this](const serving::FunctionCallPtr& call) {
          const fn::RunFunctionRequest request = call->request();
          const auto& spec =
              ObjectOf(request).fields().at("spec").struct_value().fields();
          if (spec.at("hold").bool_value()) {
            MutexLock lock(&mutex_);
            held_.push_back(call);
            return;
          }
          if (call->metadata.count("x-hint") > 0) {
            call->AddTrailer("fncache-depends",
                             "reads=(\"observed.composite.resource.spec\")");
          }
          call->Answer(ResponseTo(request).SerializeAsString());
        }) {}
  void TearDown() override {
    ReleaseAll();
    if (daemon_ != nullptr) daemon_->Drain();
  }

  // The beginning of every file of the tests.
  std::string Base() const {
    return absl::StrCat("insecure: true\nlisten: \"127.0.0.1:0\"\nupstream: \"",
                        function_.target(),
                        "\"\nadmin: \"127.0.0.1:0\"\ndrain: 1s\n");
  }
  std::string file() const { return dir_.File("fncache.yaml"); }
  // Replaces the file at once: a daemon that follows it never reads an
  // unfinished one, however long this thread stalls.
  void Write(const std::string& settings) {
    const std::string fresh = dir_.File("fncache.yaml.new");
    ::fncache::testing::WriteFile(fresh, Base() + settings);
    std::filesystem::rename(fresh, file());
  }
  void Start(const std::string& settings,
             absl::Duration interval = absl::InfiniteDuration()) {
    Write(settings);
    StartFrom(file(), interval);
  }
  void StartFrom(const std::string& path, absl::Duration interval) {
    const settings::SettingsSource source({}, {}, path);
    auto text = source.ReadFile();
    ASSERT_TRUE(text.ok()) << text.status();
    auto effective = source.Resolve(*text);
    ASSERT_TRUE(effective.ok()) << effective.status();
    Daemon::Extras extras;
    extras.clock = &clock_;
    extras.config_interval = interval;
    extras.start.emplace(StartSettings{source, effective->resolved, *text, {}});
    auto daemon =
        StartDaemon(std::move(effective->options.daemon), std::move(extras));
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
    channel_ = Connect(daemon_->addresses()[0]);
  }
  // The file says this now, and is read.
  ReloadResult Reload(const std::string& settings) {
    Write(settings);
    auto result = daemon_->Reload();
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : ReloadResult();
  }

  std::shared_ptr<serving::Caller> Send(
      const Ask& ask, std::shared_ptr<grpc::Channel> channel = nullptr) {
    auto caller = std::make_shared<serving::Caller>();
    caller->context.set_deadline(
        absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    if (!ask.metadata.empty()) {
      caller->context.AddMetadata(ask.metadata,
                                  std::string(ask.metadata_bytes, 'm'));
    }
    caller->Start(channel == nullptr ? channel_ : channel, kRunFunctionV1,
                  RequestOf(ask).SerializeAsString());
    return caller;
  }
  static Answer AnswerOf(const std::shared_ptr<serving::Caller>& caller) {
    const grpc::Status status = caller->Wait();
    Answer answer;
    answer.code = status.error_code();
    answer.message = status.error_message();
    const auto& headers = caller->context.GetServerInitialMetadata();
    const auto header = headers.find("cache-status");
    if (header != headers.end()) {
      answer.cache = std::string(header->second.data(), header->second.size())
                         .substr(std::string("fncache; ").size());
    }
    if (!status.ok()) return answer;
    fn::RunFunctionResponse response;
    EXPECT_TRUE(response.ParseFromString(caller->bytes()));
    if (response.results_size() > 0)
      answer.text = response.results(0).message();
    if (response.meta().has_ttl()) answer.ttl = response.meta().ttl().seconds();
    return answer;
  }
  // Calls, and holds the answer against what was asked; `masked`: the version
  // may be another one's.
  Answer Call(const Ask& ask, bool masked = false) {
    const Answer answer = AnswerOf(Send(ask));
    if (answer.code == grpc::StatusCode::OK && !masked) {
      EXPECT_EQ(answer.text, ask.text());
    }
    return answer;
  }

  size_t held() {
    MutexLock lock(&mutex_);
    return held_.size();
  }
  // Answers the calls that the function holds.
  void ReleaseAll() {
    std::deque<serving::FunctionCallPtr> held;
    {
      MutexLock lock(&mutex_);
      held.swap(held_);
    }
    for (const auto& call : held) {
      call->Answer(ResponseTo(call->request()).SerializeAsString());
    }
  }

  std::string Get(const std::string& path) {
    const std::vector<std::string> parts =
        absl::StrSplit(daemon_->admin_address(), ':');
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(parts.back(), &port));
    return ::fncache::testing::HttpGet(port, path);
  }
  // The value of a sample, with its labels as exposed; -1 if it is not there.
  double Metric(const std::string& name) {
    for (const absl::string_view line : absl::StrSplit(Get("/metrics"), '\n')) {
      double value = 0;
      if (absl::StartsWith(line, name + " ") &&
          absl::SimpleAtod(line.substr(name.size() + 1), &value)) {
        return value;
      }
    }
    return -1;
  }

  ::fncache::testing::TempDir dir_;
  SimulatedClock clock_;
  Mutex mutex_;
  std::deque<serving::FunctionCallPtr> held_ ABSL_GUARDED_BY(mutex_);
  serving::ScriptedFunction function_;
  std::unique_ptr<Daemon> daemon_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace fncache::proxy

#endif  // FNCACHE_TESTS_PROXY_RELOAD_TESTING_H_
