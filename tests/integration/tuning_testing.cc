// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/tuning_testing.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/message_differencer.h"
#include "proxy/settings/settings.h"
#include "tests/common/eventually.h"
#include "tests/common/threads_rest.h"
#include "tests/proxy/start_daemon.h"

namespace fncache::testing {
namespace {

constexpr int64_t kEpoch = 1'795'000'000;

// Printed after all tests: a row for each function.
class ClosingTable : public ::testing::Environment {
 public:
  void TearDown() override {
    if (rows_.empty()) return;
    std::printf("%-12s %7s %18s %10s  %-28s %6s\n", "function", "calls",
                "hits across drift", "questions", "verdict", "wrong");
    for (const std::string& row : rows_) std::printf("%s\n", row.c_str());
  }
  void Add(std::string row) { rows_.push_back(std::move(row)); }

 private:
  std::vector<std::string> rows_;
};
ClosingTable* const closing_table = static_cast<ClosingTable*>(
    ::testing::AddGlobalTestEnvironment(new ClosingTable));

}  // namespace

pb::Value& At(pb::Struct* object, const std::vector<std::string>& path) {
  pb::Struct* within = object;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    within = (*within->mutable_fields())[path[i]].mutable_struct_value();
  }
  return (*within->mutable_fields())[path.back()];
}

const pb::Value* Find(const pb::Struct& object,
                      const std::vector<std::string>& path) {
  const pb::Struct* within = &object;
  for (size_t i = 0; i < path.size(); ++i) {
    const auto found = within->fields().find(path[i]);
    if (found == within->fields().end()) return nullptr;
    if (i + 1 == path.size()) return &found->second;
    within = &found->second.struct_value();
  }
  return nullptr;
}

std::string Text(const pb::Struct& object,
                 const std::vector<std::string>& path) {
  const pb::Value* const value = Find(object, path);
  return value == nullptr ? "" : value->string_value();
}

double Number(const pb::Struct& object, const std::vector<std::string>& path) {
  const pb::Value* const value = Find(object, path);
  return value == nullptr ? -1 : value->number_value();
}

std::string TimeText(int64_t seconds) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                          absl::FromUnixSeconds(kEpoch + seconds),
                          absl::UTCTimeZone());
}

int64_t SecondsOf(const std::string& time) {
  absl::Time parsed;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, time, &parsed, &error)) return -1;
  return absl::ToUnixSeconds(parsed) - kEpoch;
}

const pb::Struct& Composite(const Request& request) {
  return request.observed().composite().resource();
}
const pb::Struct& Resource(const Request& request, const std::string& name) {
  return request.observed().resources().at(name).resource();
}
const pb::Struct& Required(const Request& request) {
  return request.required_resources().at("config").items(0).resource();
}
std::string Version(const pb::Struct& object) {
  return Text(object, {"metadata", "resourceVersion"});
}

Request Cluster::Make() const {
  Request request;
  request.mutable_meta()->set_tag(
      absl::StrFormat("%032x%032x", versions, beats));
  At(request.mutable_input(), {"kind"}).set_string_value("Input");
  At(request.mutable_input(), {"which"}).set_string_value(input);
  pb::Struct* const composite =
      request.mutable_observed()->mutable_composite()->mutable_resource();
  At(composite, {"apiVersion"}).set_string_value("example.org/v1");
  At(composite, {"kind"}).set_string_value("Bucket");
  At(composite, {"metadata", "name"}).set_string_value(name);
  At(composite, {"metadata", "resourceVersion"})
      .set_string_value(std::to_string(100000 + 7 * versions));
  At(composite, {"spec", "tier"}).set_string_value(tier);
  auto& resources = *request.mutable_observed()->mutable_resources();
  for (const std::string which : {"a", "b", "cron"}) {
    pb::Struct* const object = resources[which].mutable_resource();
    At(object, {"metadata", "name"}).set_string_value(which);
    At(object, {"metadata", "generation"}).set_number_value(generation);
    At(object, {"metadata", "resourceVersion"})
        .set_string_value(
            std::to_string(200000 + 5 * versions + (which == "b" ? lead : 0)));
    pb::Struct* const writer = At(object, {"metadata", "managedFields"})
                                   .mutable_list_value()
                                   ->add_values()
                                   ->mutable_struct_value();
    At(writer, {"manager"}).set_string_value(manager);
    At(writer, {"time"}).set_string_value(TimeText(60 * beats));
    pb::Struct* const condition = At(object, {"status", "conditions"})
                                      .mutable_list_value()
                                      ->add_values()
                                      ->mutable_struct_value();
    At(condition, {"type"}).set_string_value("Ready");
    At(condition, {"status"}).set_string_value(ready);
    At(condition, {"lastTransitionTime"})
        .set_string_value(TimeText(transition));
    At(object, {"status", "phase"}).set_string_value(phase);
    At(object, {"status", "replicas"}).set_number_value(replicas);
    At(object, {"status", "availableReplicas"}).set_number_value(available);
    At(object, {"status", "observedGeneration"})
        .set_number_value(observed_generation);
    if (which == "cron") {
      At(object, {"status", "lastScheduleTime"})
          .set_string_value(TimeText(60 * beats));
      At(object, {"status", "lastSuccessfulTime"})
          .set_string_value(TimeText(60 * beats + success));
    } else {
      At(object, {"status", "atProvider", "lastSync"})
          .set_string_value(TimeText(60 * beats + (which == "b" ? lead : 0)));
    }
    if (which == "a" && finished.kind_case() != pb::Value::KIND_NOT_SET) {
      At(object, {"status", "finishedAt"}) = finished;
    }
  }
  pb::Struct* const required = (*request.mutable_required_resources())["config"]
                                   .add_items()
                                   ->mutable_resource();
  At(required, {"metadata", "resourceVersion"})
      .set_string_value(std::to_string(300000 + 3 * versions));
  At(required, {"data", "color"}).set_string_value(color);
  return request;
}

// -------------------------------------------------------------- The function

Function::Function(Behaviour behaviour) : behaviour_(std::move(behaviour)) {
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port_);
  builder.SetMaxReceiveMessageSize(64 << 20);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

Function::~Function() { Stop(); }

void Function::Stop() {
  Release();
  server_->Shutdown();
}

void Function::Fill(const Reply& reply, Response* response) {
  At((*response->mutable_desired()->mutable_resources())["bucket"]
         .mutable_resource(),
     {"spec", "text"})
      .set_string_value(reply.text);
  response->mutable_meta()->mutable_ttl()->set_seconds(reply.ttl);
  if (!reply.fatal) return;
  fn::Result* const result = response->add_results();
  result->set_severity(fn::SEVERITY_FATAL);
  result->set_message(reply.text);
}

grpc::Status Function::RunFunction(grpc::ServerContext* context,
                                   const Request* request, Response* response) {
  Asked asked = {*request, false, {}};
  for (const auto& [key, value] : context->client_metadata()) {
    asked.metadata.emplace(std::string(key.data(), key.size()),
                           std::string(value.data(), value.size()));
    asked.question |= key == "cache-control" && value == "no-store";
  }
  const bool question = asked.question;
  {
    MutexLock lock(&mutex_);
    asked_.push_back(std::move(asked));
    ++running_;
    if (question) {
      ++questions_;
      most_questions_ = std::max(most_questions_, ++running_questions_);
    }
    const int before = released_times_;
    if (question ? hold_questions_ : hold_calls_) {
      ++held_;
      while (released_times_ == before) released_.Wait(&mutex_);
      --held_;
    }
  }
  const Reply reply = behaviour_(*request);
  MutexLock lock(&mutex_);
  --running_;
  if (question) --running_questions_;
  if (reply.code != grpc::StatusCode::OK) return {reply.code, "refused"};
  response->mutable_meta()->set_tag(request->meta().tag());
  Fill(reply, response);
  return grpc::Status::OK;
}

std::string Function::target() const {
  return absl::StrCat("127.0.0.1:", port_);
}
int Function::runs() const {
  MutexLock lock(&mutex_);
  return static_cast<int>(asked_.size());
}
int Function::questions() const {
  MutexLock lock(&mutex_);
  return questions_;
}
int Function::running() const {
  MutexLock lock(&mutex_);
  return running_;
}
int Function::most_questions() const {
  MutexLock lock(&mutex_);
  return most_questions_;
}
std::vector<Function::Asked> Function::asked() const {
  MutexLock lock(&mutex_);
  return asked_;
}
void Function::HoldQuestions() {
  MutexLock lock(&mutex_);
  hold_questions_ = true;
}
void Function::HoldCalls() {
  MutexLock lock(&mutex_);
  hold_calls_ = true;
}
int Function::held() const {
  MutexLock lock(&mutex_);
  return held_;
}
void Function::Step() {
  MutexLock lock(&mutex_);
  ++released_times_;
  released_.SignalAll();
}
void Function::Release() {
  MutexLock lock(&mutex_);
  hold_questions_ = hold_calls_ = false;
  ++released_times_;
  released_.SignalAll();
}

// ------------------------------------------------------------------- The test

std::string Got::why() const {
  const size_t found = cache.find("detail=\"drift: ");
  if (found == cache.npos) return "";
  const size_t start = found + 15;
  return cache.substr(start, cache.find('"', start) - start);
}

TuningTest::~TuningTest() {
  if (function_ != nullptr) function_->Release();
  if (daemon_ != nullptr) daemon_->Drain();
}

std::string TuningTest::Settings(const std::string& more) const {
  return absl::StrCat("insecure: true\nlisten: \"127.0.0.1:0\"\nupstream: \"",
                      function_->target(),
                      "\"\nadmin: \"127.0.0.1:0\"\ndrain: 1s\n", more);
}

void TuningTest::Connect(const std::string& address) {
  grpc::ChannelArguments channel;
  channel.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  channel.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  stub_ = fn::FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), channel));
}

std::unique_ptr<fn::FunctionRunnerService::Stub> TuningTest::Stub() const {
  grpc::ChannelArguments channel;
  channel.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  channel.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return fn::FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
      process_ != nullptr ? process_->Listening()[0] : daemon_->addresses()[0],
      grpc::InsecureChannelCredentials(), channel));
}

void TuningTest::Start(Behaviour behaviour, const std::string& settings) {
  behaviour_ = behaviour;
  function_ = std::make_unique<Function>(std::move(behaviour));
  WriteFile(file_,
            Settings(absl::StrCat("tune: on\ntune_share: 1\n", settings)));
  const proxy::settings::SettingsSource source({}, {}, file_);
  auto text = source.ReadFile();
  ASSERT_TRUE(text.ok()) << text.status();
  auto effective = source.Resolve(*text);
  ASSERT_TRUE(effective.ok()) << effective.status();
  proxy::Daemon::Extras extras;
  extras.clock = &clock_;
  extras.config_interval = absl::InfiniteDuration();
  extras.start.emplace(
      proxy::StartSettings{source, effective->resolved, *text, {}});
  auto daemon = proxy::StartDaemon(std::move(effective->options.daemon),
                                   std::move(extras));
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  daemon_ = *std::move(daemon);
  Connect(daemon_->addresses()[0]);
}

void TuningTest::Reload(const std::string& settings) {
  WriteFile(file_, Settings(settings));
  const auto result = daemon_->Reload();
  ASSERT_TRUE(result.ok()) << result.status();
}

void TuningTest::StartProcess(Behaviour behaviour,
                              const std::string& settings) {
  behaviour_ = behaviour;
  function_ = std::make_unique<Function>(std::move(behaviour));
  RestartProcess(absl::StrCat("tune: on\ntune_share: 1\n", settings));
}

void TuningTest::RestartProcess(const std::string& settings) {
  WriteFile(file_, Settings(settings));
  process_ = std::make_unique<Process>(std::vector<std::string>{
      "serve", "--config", file_, "--admin-socket", dir_.File("admin.sock")});
  ASSERT_TRUE(process_->WaitForStderr("(admin:")) << process_->Stderr();
  Connect(process_->Listening()[0]);
}

std::string TuningTest::Get(const std::string& path) const {
  return HttpGet(
      process_ != nullptr ? process_->Listening()[1] : daemon_->admin_address(),
      path);
}

Got TuningTest::Call(
    const Request& request,
    const std::vector<std::pair<std::string, std::string>>& metadata) {
  clock_.Advance(absl::Milliseconds(1));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
  if (compresses_) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  Got got;
  got.status = stub_->RunFunction(&context, request, &got.response);
  ++calls_;
  const auto& headers = context.GetServerInitialMetadata();
  const auto header = headers.find("cache-status");
  if (header != headers.end()) {
    got.cache = std::string(header->second.data(), header->second.size())
                    .substr(std::string("fncache; ").size());
  }
  const bool times = cluster_.beats != last_beats_;
  last_beats_ = cluster_.beats;
  if (got.across()) {
    ++hits_;
    hits_of_times_ += times ? 1 : 0;
  }
  if (!got.status.ok()) return got;
  EXPECT_EQ(got.response.meta().tag(), request.meta().tag());
  bool right;
  if (accepts_ != nullptr) {
    right = accepts_(request, got.response);
  } else {
    Response own;
    const Reply reply =
        (expected_ != nullptr ? expected_ : behaviour_)(request);
    Function::Fill(reply, &own);
    right = reply.code == grpc::StatusCode::OK &&
            own.meta().ttl().seconds() >= got.response.meta().ttl().seconds();
    own.clear_meta();
    Response without_meta = got.response;
    without_meta.clear_meta();
    right = right && pb::util::MessageDifferencer::Equals(own, without_meta);
  }
  if (!right) ++wrong_;
  EXPECT_TRUE(right || may_be_wrong_) << got.cache << "\n"
                                      << request.ShortDebugString() << "\n"
                                      << got.response.ShortDebugString();
  return got;
}

Got TuningTest::CallAndWait() {
  Got got = CallOnce();
  if (!got.hit()) WaitUntilQuiet();
  return got;
}

bool TuningTest::TickUntil(const std::function<bool(const Got&)>& done,
                           int most) {
  for (int i = 0; i < most; ++i) {
    cluster_.Tick();
    if (done(CallAndWait())) return true;
  }
  return false;
}

bool TuningTest::TickVersionsUntil(const std::function<bool(const Got&)>& done,
                                   int most) {
  for (int i = 0; i < most; ++i) {
    ++cluster_.versions;
    if (done(CallAndWait())) return true;
  }
  return false;
}

void TuningTest::WaitUntilQuiet() {
  AwaitRest([this] { return function_->runs(); },
            [this] {
              return function_->running() == 0 && ThreadsRest(getpid()) &&
                     (process_ == nullptr || ThreadsRest(process_->pid()));
            });
}

void TuningTest::Report(const std::string& name, const std::string& verdict) {
  closing_table->Add(absl::StrFormat("%-12s %7d %18d %10d  %-28s %6d", name,
                                     calls_, hits_, function_->questions(),
                                     verdict, wrong_));
}

}  // namespace fncache::testing
