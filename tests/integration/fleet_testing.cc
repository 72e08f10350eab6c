// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/fleet_testing.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "tests/common/eventually.h"

namespace fncache::testing {
namespace {

using Object = google::protobuf::Map<std::string, google::protobuf::Value>;

// A purge is in force everywhere this long after its answer.
constexpr absl::Duration kEverywhere = absl::Seconds(2);
// A busy machine may add this to the median of misses.
constexpr absl::Duration kBusy = absl::Milliseconds(250);
constexpr absl::Duration kLookup = absl::Milliseconds(60);

// Printed after all tests: a row for each fault.
class FaultTable : public ::testing::Environment {
 public:
  void TearDown() override {
    if (rows_.empty()) return;
    std::printf("| %-40s | %5s | %-23s | %-23s |\n", "misses, ms", "calls",
                "with tier: p50/p99/max", "without: p50/p99/max");
    for (const std::string& row : rows_) std::printf("%s\n", row.c_str());
  }
  void Add(std::string row) { rows_.push_back(std::move(row)); }

 private:
  std::vector<std::string> rows_;
};
FaultTable* const fault_table = static_cast<FaultTable*>(
    ::testing::AddGlobalTestEnvironment(new FaultTable));

// Text that no other name or run has, and that does not compress well.
std::string Padding(const std::string& name, int run, int bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  uint64_t state = std::hash<std::string>()(absl::StrCat(name, "/", run)) | 1;
  std::string text(bytes, ' ');
  for (int i = 0; i < bytes; ++i) {
    if (i % 16 == 0) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
    }
    text[i] = kDigits[(state >> (i % 16 * 4)) & 15];
  }
  return text;
}

fn::RunFunctionRequest RequestFor(const Wanted& wanted,
                                  const std::string& tag) {
  fn::RunFunctionRequest request;
  request.mutable_meta()->set_tag(tag);
  Object& object = *request.mutable_observed()
                        ->mutable_composite()
                        ->mutable_resource()
                        ->mutable_fields();
  object["apiVersion"].set_string_value("example.org/v1");
  object["kind"].set_string_value("XApp");
  (*object["metadata"].mutable_struct_value()->mutable_fields())["name"]
      .set_string_value(wanted.name);
  Object& spec = *object["spec"].mutable_struct_value()->mutable_fields();
  spec["ttl"].set_number_value(wanted.ttl);
  spec["bytes"].set_number_value(wanted.bytes);
  if (!wanted.note.empty()) spec["note"].set_string_value(wanted.note);
  return request;
}

absl::Duration At(const std::vector<absl::Duration>& sorted, double quantile) {
  return sorted[static_cast<size_t>(quantile * (sorted.size() - 1))];
}

std::string Shown(std::vector<absl::Duration> times) {
  std::sort(times.begin(), times.end());
  return absl::StrFormat("%.1f / %.1f / %.1f",
                         absl::ToDoubleMilliseconds(At(times, 0.5)),
                         absl::ToDoubleMilliseconds(At(times, 0.99)),
                         absl::ToDoubleMilliseconds(times.back()));
}

}  // namespace

// ------------------------------------------------------------------- Servers

RedisOptions Tcp(std::vector<std::string> arguments) {
  RedisOptions options;
  options.tcp = true;
  options.arguments = std::move(arguments);
  return options;
}

RedisOptions Tls(const std::string& dir, bool asks_for_the_pair) {
  RedisOptions options = Tcp();
  options.tls_dir = dir;
  options.tls_clients = asks_for_the_pair;
  return options;
}

RedisOptions WithUsers(std::string acl) {
  RedisOptions options = Tcp();
  options.acl = std::move(acl);
  return options;
}

RedisOptions ClockAhead(int milliseconds) {
  RedisOptions options = Tcp();
  options.environment = {"LD_PRELOAD=" + Preload("clock_ahead"),
                         absl::StrCat("CLOCK_AHEAD=", milliseconds)};
  return options;
}

std::string Preload(const std::string& library) {
  const std::filesystem::path build =
      std::filesystem::absolute(FNCACHE_BINARY).parent_path();
  return absl::StrCat(build.string(), "/tests/integration/lib", library, ".so");
}

// -------------------------------------------------------------- The function

FleetFunction::FleetFunction(std::string build) : build_(std::move(build)) {
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  EXPECT_NE(port_, 0);
}

FleetFunction::~FleetFunction() {
  Release();
  server_->Shutdown(absl::ToChronoTime(absl::Now()));
  server_->Wait();
}

grpc::Status FleetFunction::RunFunction(grpc::ServerContext* context,
                                        const fn::RunFunctionRequest* request,
                                        fn::RunFunctionResponse* response) {
  const absl::Time began = absl::Now();
  const auto& object = request->observed().composite().resource().fields();
  const std::string name =
      object.at("metadata").struct_value().fields().at("name").string_value();
  const auto& spec = object.at("spec").struct_value().fields();
  int run = 0;
  {
    MutexLock lock(&mutex_);
    ++runs_;
    run = ++runs_of_[name];
    if (held_names_.count(name) > 0) {
      ++held_;
      while (held_names_.count(name) > 0) released_.Wait(&mutex_);
      --held_;
    }
  }
  response->mutable_meta()->set_tag(request->meta().tag());
  response->mutable_meta()->mutable_ttl()->set_seconds(
      static_cast<int64_t>(spec.at("ttl").number_value()));
  Object& answer = *response->mutable_desired()
                        ->mutable_composite()
                        ->mutable_resource()
                        ->mutable_fields();
  answer["name"].set_string_value(name);
  answer["build"].set_string_value(build_);
  const auto note = spec.find("note");
  if (note != spec.end()) answer["note"] = note->second;
  answer["run"].set_number_value(run);
  answer["began"].set_string_value(absl::StrCat(absl::ToUnixNanos(began)));
  answer["padding"].set_string_value(
      Padding(name, run, static_cast<int>(spec.at("bytes").number_value())));
  return grpc::Status::OK;
}

std::string FleetFunction::target() const {
  return absl::StrCat("127.0.0.1:", port_);
}
int FleetFunction::runs() const {
  MutexLock lock(&mutex_);
  return runs_;
}
int FleetFunction::RunsOf(const std::string& name) const {
  MutexLock lock(&mutex_);
  const auto found = runs_of_.find(name);
  return found == runs_of_.end() ? 0 : found->second;
}
void FleetFunction::Hold(const std::string& name) {
  MutexLock lock(&mutex_);
  held_names_.insert(name);
}
int FleetFunction::held() const {
  MutexLock lock(&mutex_);
  return held_;
}
void FleetFunction::Release() {
  MutexLock lock(&mutex_);
  held_names_.clear();
  released_.SignalAll();
}

// ------------------------------------------------------------------ Replicas

FleetTest::FleetTest() : function_(std::make_unique<FleetFunction>()) {}

FleetTest::~FleetTest() { function_->Release(); }

int FleetTest::StartReplica(ReplicaOptions options) {
  const int i = count_;
  replicas_[i] = std::make_unique<Replica>();
  Replica& replica = *replicas_[i];
  replica.options = std::move(options);
  replica.socket = dir_.File(absl::StrCat("admin-", i, ".sock"));
  StartProcess(&replica);
  ++count_;
  return i;
}

void FleetTest::StartProcess(Replica* replica) {
  const ReplicaOptions& options = replica->options;
  const std::string file = replica->socket + ".yaml";
  std::string settings = absl::StrCat(
      "insecure: true\nlisten: \"127.0.0.1:0\"\nadmin: \"127.0.0.1:0\"\n"
      "drain: 1s\nupstream: \"",
      (options.function == nullptr ? *function_ : *options.function).target(),
      "\"\ngeneration: ", options.generation, "\nadmin_socket: \"",
      replica->socket, "\"\n", options.more);
  if (options.hides_notes) {
    absl::StrAppend(&settings,
                    "mask: [\"observed.composite.resource.spec.note\"]\n");
  }
  if (!options.url.empty()) {
    const std::string secret = replica->socket + ".secret";
    WriteFile(secret, options.secret + "\n");
    absl::StrAppend(&settings, "shared:\n  url: \"", options.url,
                    "\"\n  secret_file: \"", secret, "\"\n", options.shared);
  }
  WriteFile(file, settings);
  auto process = std::make_unique<Process>(
      std::vector<std::string>{"serve", "--config", file}, options.environment);
  ASSERT_TRUE(process->WaitForStderr("(admin:"))
      << settings << process->Stderr();
  const std::vector<std::string> at = process->Listening();
  ASSERT_EQ(at.size(), 2u) << process->Stderr();
  grpc::ChannelArguments channel;
  channel.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  channel.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel.SetMaxReceiveMessageSize(-1);
  std::shared_ptr<Stub> stub =
      fn::FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
          at[0], grpc::InsecureChannelCredentials(), channel));
  MutexLock lock(&mutex_);
  replica->process = std::move(process);
  replica->admin = at[1];
  replica->stub = std::move(stub);
}

void FleetTest::Start(int n, const std::string& url,
                      const std::string& shared) {
  for (int i = 0; i < n; ++i) {
    ReplicaOptions options;
    options.url = url;
    options.shared = shared;
    ASSERT_NO_FATAL_FAILURE(StartReplica(options));
  }
  ASSERT_TRUE(TierBecomes(true));
}

void FleetTest::StartAgain(int i) {
  StartProcess(replicas_[i].get());
  replicas_[i]->away = false;
}

void FleetTest::Kill(int i) {
  replicas_[i]->away = true;
  replicas_[i]->process->Signal(SIGKILL);
  replicas_[i]->process->Wait();
  EXPECT_TRUE(Eventually([&] { return replicas_[i]->calling == 0; }));
}

std::string FleetTest::Metrics(int i) const {
  return HttpGet(replicas_[i]->admin, "/metrics");
}

double FleetTest::Metric(int i, const std::string& name,
                         const std::string& label) const {
  double sum = -1;
  const std::string all = Metrics(i);
  for (absl::string_view line : absl::StrSplit(all, '\n')) {
    if (!absl::ConsumePrefix(&line, name) || line.empty() ||
        (line[0] != '{' && line[0] != ' ')) {
      continue;
    }
    const size_t space = line.rfind(' ');
    double value = 0;
    if (!absl::StrContains(line.substr(0, space), label) ||
        !absl::SimpleAtod(line.substr(space + 1), &value)) {
      continue;
    }
    sum = std::max(sum, 0.0) + value;
  }
  return sum;
}

bool FleetTest::IsUp(int i) const {
  return Metric(i, "fncache_tier_up", "tier=\"shared\"") == 1;
}

::testing::AssertionResult FleetTest::TierOf(int i, bool up) const {
  if (Eventually([&] {
        const double is = Metric(i, "fncache_tier_up", "tier=\"shared\"");
        return is == (up ? 1 : 0);
      })) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << "the tier of replica " << i << " is not " << (up ? "up" : "down");
}

::testing::AssertionResult FleetTest::TierBecomes(bool up) const {
  for (int i = 0; i < count_; ++i) {
    if (replicas_[i]->away || replicas_[i]->options.url.empty()) continue;
    const auto result = TierOf(i, up);
    if (!result) return result;
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult FleetTest::Reaches(int i, const std::string& name,
                                              const std::string& label,
                                              double value) const {
  if (Eventually([&] { return Metric(i, name, label) >= value; })) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << name << "{" << label << "} is " << Metric(i, name, label);
}

FleetTest::Ended FleetTest::Admin(int i,
                                  std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(),
                   {"admin", "--socket", replicas_[i]->socket});
  Process process(arguments);
  Ended ended;
  ended.code = process.Wait();
  ended.out = process.Stdout();
  ended.err = process.Stderr();
  return ended;
}

std::string FleetTest::KeyOf(const std::string& name) const {
  for (int i = 0; i < count_; ++i) {
    if (replicas_[i]->away) continue;
    const Ended ended = Admin(i, {"explain", "--json", "--last", "1000"});
    const auto said = nlohmann::json::parse(ended.out, nullptr, false);
    if (said.is_discarded()) continue;
    for (const auto& miss : said["last"]) {
      if (miss["composite"] == "XApp " + name) return miss["key"];
    }
  }
  ADD_FAILURE() << "no miss of " << name;
  return "";
}

// --------------------------------------------------------------------- Calls

std::string FleetTest::NewName() { return absl::StrCat("new-", ++names_); }

std::shared_ptr<FleetTest::Stub> FleetTest::StubOf(
    const Replica& replica) const {
  MutexLock lock(&mutex_);
  return replica.stub;
}

Answered FleetTest::Call(int i, const Wanted& wanted) {
  // -1: the daemon without the tier.
  Replica& replica = i < 0 ? *alone_ : *replicas_[i];
  static std::atomic<int> tags{0};
  const auto request = RequestFor(wanted, absl::StrCat("tag ", ++tags));
  const std::shared_ptr<Stub> stub = StubOf(replica);
  grpc::ClientContext context;
  Answered answered;
  answered.replica = i;
  answered.sent = absl::Now();
  context.set_deadline(absl::ToChronoTime(answered.sent + kPatience));
  fn::RunFunctionResponse response;
  ++replica.calling;
  answered.status = stub->RunFunction(&context, request, &response);
  answered.took = absl::Now() - answered.sent;
  const auto& headers = context.GetServerInitialMetadata();
  const auto found = headers.find("cache-status");
  if (found != headers.end()) {
    absl::string_view cache(found->second.data(), found->second.size());
    absl::ConsumePrefix(&cache, "fncache; ");
    answered.cache = std::string(cache);
    answered.hit = absl::StartsWith(cache, "hit");
  }
  if (answered.status.ok()) {
    EXPECT_EQ(response.meta().tag(), request.meta().tag());
    Check(replica, wanted, response, &answered);
  } else if (!replica.away) {
    ADD_FAILURE() << "a call of replica " << i << " for " << wanted.name
                  << " failed: " << answered.status.error_message();
  }
  --replica.calling;
  return answered;
}

void FleetTest::Check(const Replica& replica, const Wanted& wanted,
                      const fn::RunFunctionResponse& response,
                      Answered* answered) {
  const auto& fields = response.desired().composite().resource().fields();
  const auto text = [&fields](const char* name) {
    const auto found = fields.find(name);
    return found == fields.end() ? "" : found->second.string_value();
  };
  EXPECT_EQ(text("name"), wanted.name) << "a foreign response";
  answered->run = static_cast<int>(fields.at("run").number_value());
  EXPECT_TRUE(text("padding") ==
              Padding(wanted.name, answered->run, wanted.bytes))
      << "a torn response for " << wanted.name;
  const FleetFunction* const function = replica.options.function;
  EXPECT_EQ(text("build"),
            (function == nullptr ? *function_ : *function).build());
  if (!replica.options.hides_notes) {
    EXPECT_EQ(text("note"), wanted.note) << "an answer to another note";
  }
  int64_t began = 0;
  EXPECT_TRUE(absl::SimpleAtoi(text("began"), &began));
  answered->began = absl::FromUnixNanos(began);
  const bool stale = absl::StartsWith(answered->cache, "hit; ttl=-");
  const absl::Duration age = answered->sent - answered->began;
  EXPECT_TRUE(stale || age <= absl::Seconds(wanted.ttl) + lateness_)
      << wanted.name << " has expired: it is " << age << " old, and lives "
      << wanted.ttl << " s; " << answered->cache;
  MutexLock lock(&mutex_);
  for (Rule& rule : rules_) {
    if (!rule.purged.name.empty() && rule.purged.name != wanted.name) continue;
    if (answered->began >= rule.floor || (rule.purged.soft && stale)) continue;
    absl::Time from = rule.answered + kEverywhere;
    const auto later = rule.from.find(answered->replica);
    if (later != rule.from.end()) from = later->second;
    if (answered->sent >= from) {
      ADD_FAILURE() << "replica " << answered->replica << " served "
                    << wanted.name << " of run " << answered->run << " "
                    << answered->sent - rule.answered
                    << " after the answer of its purge; " << answered->cache;
    } else if (later == rule.from.end()) {
      last_old_ = std::max(last_old_, answered->sent - rule.answered);
    }
  }
}

std::string FleetTest::Filled(int from, int bytes) {
  constexpr char kWrites[] = "fncache_shared_writes_total";
  const Wanted wanted(NewName(), 3600, bytes);
  const double before = Metric(from, kWrites, "result=\"stored\"");
  Call(from, wanted);
  Eventually(
      [&] { return Metric(from, kWrites, "result=\"stored\"") > before; },
      absl::Seconds(2));
  return wanted.name;
}

::testing::AssertionResult FleetTest::Shares(int from, int to, int bytes) {
  Answered answered;
  if (Eventually([&] {
        const std::string name = Filled(from, bytes);
        answered = Call(to, {name, 3600, bytes});
        return answered.hit && answered.run == 1 &&
               function_->RunsOf(name) == 1;
      })) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << "replica " << to << " does not get what replica " << from
         << " fills: " << answered.cache;
}

::testing::AssertionResult FleetTest::AllShare() {
  const auto up = TierBecomes(true);
  if (!up) return up;
  std::vector<int> there;
  for (int i = 0; i < count_; ++i) {
    if (!replicas_[i]->away) there.push_back(i);
  }
  for (size_t k = 0; k < there.size(); ++k) {
    const auto shares = Shares(there[k], there[(k + 1) % there.size()]);
    if (!shares) return shares;
  }
  return ::testing::AssertionSuccess();
}

// -------------------------------------------------------------------- Purges

FleetTest::Ended FleetTest::Purge(int i, std::vector<std::string> arguments,
                                  const Purged& purged) {
  size_t at = 0;
  {
    MutexLock lock(&mutex_);
    at = rules_.size();
    rules_.push_back({purged, absl::Now(), absl::InfiniteFuture(), {}});
    for (const int each : purged.exempt) {
      rules_[at].from[each] = absl::InfiniteFuture();
    }
  }
  arguments.insert(arguments.begin(), "purge");
  Ended ended = Admin(i, std::move(arguments));
  MutexLock lock(&mutex_);
  rules_[at].answered = absl::Now();
  return ended;
}

void FleetTest::EndExemption(int i, absl::Duration later) {
  MutexLock lock(&mutex_);
  for (Rule& rule : rules_) rule.from[i] = absl::Now() + later;
}

void FleetTest::AwaitPurge() const {
  absl::Time until;
  {
    MutexLock lock(&mutex_);
    until = rules_.back().answered + kEverywhere;
  }
  absl::SleepFor(until - absl::Now());
}

absl::Duration FleetTest::LastOld() const {
  MutexLock lock(&mutex_);
  return last_old_;
}

// ---------------------------------------------------------------------- Load

std::vector<Wanted> FleetTest::Load::Usual() {
  std::vector<Wanted> wanted;
  for (int i = 0; i < 12; ++i) {
    wanted.push_back({absl::StrCat("load-", i), i % 4 == 0 ? 2 : 3600,
                      i % 4 == 1 ? 13'000 : 1000});
  }
  return wanted;
}

FleetTest::Load::Load(FleetTest* test, int callers, std::vector<Wanted> wanted)
    : test_(test), wanted_(std::move(wanted)) {
  for (int i = 0; i < callers; ++i) {
    callers_.emplace_back([this, i] { Run(i); });
  }
}

void FleetTest::Load::Stop() {
  ended_ = true;
  for (std::thread& caller : callers_) caller.join();
  callers_.clear();
}

void FleetTest::Load::Await(int more) const {
  const int until = calls_ + more;
  EXPECT_TRUE(Eventually([&] { return calls_ >= until; }));
}

void FleetTest::Load::Run(int caller) {
  for (int i = caller; !ended_; ++i) {
    const int at = i % test_->count_;
    if (!test_->replicas_[at]->away) {
      const bool fresh = i % 8 == 0;
      test_->Call(at, fresh ? Wanted(test_->NewName())
                            : wanted_[(i / 3) % wanted_.size()]);
      ++calls_;
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
}

void FleetTest::MeasureMisses(const std::string& fault, int calls) {
  if (alone_ == nullptr) {
    alone_ = std::make_unique<Replica>();
    alone_->socket = dir_.File("alone.sock");
    ASSERT_NO_FATAL_FAILURE(StartProcess(alone_.get()));
  }
  Call(-1, NewName());  // connects
  std::vector<absl::Duration> with;
  std::vector<absl::Duration> without;
  for (int i = 0; i < calls; ++i) {
    const int at = i % count_;
    if (replicas_[at]->away) continue;
    with.push_back(Call(at, NewName()).took);
    without.push_back(Call(-1, NewName()).took);
  }
  fault_table->Add(absl::StrFormat("| %-40s | %5d | %-23s | %-23s |", fault,
                                   with.size(), Shown(with), Shown(without)));
  std::sort(with.begin(), with.end());
  std::sort(without.begin(), without.end());
  EXPECT_LE(At(with, 0.5), At(without, 0.5) + kLookup + kBusy);
}

}  // namespace fncache::testing
