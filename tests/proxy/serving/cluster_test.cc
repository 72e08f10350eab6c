// SPDX-License-Identifier: Apache-2.0
// Plays the requests of a real control plane, in order and at their times,
// through the daemon, which must reach the hit rates that docs/hit-rates.md
// promises, phase by phase, and give every answer as the function gave it.
//
// The recording (shared/data/cluster, whose README says how it was made) is not
// part of a clone: without it these tests say so and are skipped.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "tests/common/temp_dir.h"
#include "tests/common/test_data.h"
#include "tests/common/threads_rest.h"
#include "tests/proxy/simulated_daemon.h"

namespace fncache::proxy::serving {
namespace {

namespace fs = std::filesystem;
namespace fn = apiextensions::fn::proto::v1;
using ::fncache::testing::ReadFile;
using google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

// The masks of docs/hit-rates.md for versions and times.
constexpr char kVersionsAndTimes[] =
    "observed.composite.resource.metadata.resourceVersion, "
    "observed.composite.resource.metadata.managedFields, "
    "observed.resources.*.resource.metadata.resourceVersion, "
    "observed.resources.*.resource.metadata.managedFields, \"@times\"";

// The field that the recording's provider writes at every poll.
constexpr char kHeartbeat[] =
    "observed.resources.*.resource.status.atProvider.lastChecked";

// One line of calls.tsv, and its messages.
struct Call {
  absl::Duration at;  // since the recording's start
  std::string function;
  std::string phase;
  fn::RunFunctionRequest request;
  fn::RunFunctionResponse response;
};

fs::path Folder() { return ::fncache::testing::DataFolder() / "cluster"; }

std::vector<Call> ReadCalls(const fs::path& folder) {
  std::vector<Call> calls;
  std::ifstream in(folder / "calls.tsv");
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    Call call;
    int64_t ms = 0;
    EXPECT_TRUE(parts.size() == 9 && absl::SimpleAtoi(parts[1], &ms)) << line;
    call.at = absl::Milliseconds(ms);
    call.function = parts[2];
    call.phase = parts[3];
    EXPECT_TRUE(call.request.ParseFromString(ReadFile(folder / parts[5])));
    EXPECT_TRUE(call.response.ParseFromString(ReadFile(folder / parts[6])));
    calls.push_back(std::move(call));
  }
  return calls;
}

const std::vector<Call>& Calls() {
  static const auto* const calls = new std::vector<Call>(ReadCalls(Folder()));
  return *calls;
}

// Answers the call whose number is in the metadata as it was answered then.
class RecordedFunction : public fn::FunctionRunnerService::Service {
 public:
  RecordedFunction() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  grpc::Status RunFunction(grpc::ServerContext* context,
                           const fn::RunFunctionRequest*,
                           fn::RunFunctionResponse* response) override {
    const auto number = context->client_metadata().find("x-call");
    size_t index = 0;
    if (number == context->client_metadata().end() ||
        !absl::SimpleAtoi(
            absl::string_view(number->second.data(), number->second.size()),
            &index)) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "which call?"};
    }
    *response = Calls()[index].response;
    // No call of the recording has it.
    if (context->client_metadata().count("cache-control") > 0) ++questions_;
    return grpc::Status::OK;
  }
  // Waits until no further question comes. Questions follow at once.
  void WaitForQuestions() const {
    ::fncache::testing::AwaitRest(
        [this] { return questions(); },
        [] { return ::fncache::testing::ThreadsRest(getpid()); });
  }
  int questions() const { return questions_; }
  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  int port_ = 0;
  std::atomic<int> questions_{0};
  std::unique_ptr<grpc::Server> server_;
};

// The settings that the README recommends: its block of YAML with `tune`.
std::string RecommendedSettings() {
  const std::string page = ReadFile(FNCACHE_SOURCE_DIR "/README.md");
  const size_t tune = page.find("\ntune: on");
  const size_t start = page.rfind("\n```yaml", tune);
  const size_t end = page.find("\n```", tune);
  EXPECT_NE(tune, std::string::npos);
  const size_t line = page.find('\n', start + 1);
  return page.substr(line + 1, end - line);
}

struct Count {
  int calls = 0;
  int hits = 0;
  int questions = 0;
  int Percent() const {
    return calls == 0 ? -1 : (200 * hits + calls) / (2 * calls);
  }
};
// By phase.
using Rates = std::map<std::string, Count>;

// The recording through a daemon with these policy settings, all functions
// alike.
Rates Play(const std::string& settings) {
  RecordedFunction function;
  std::vector<std::string> names;
  for (const Call& call : Calls()) {
    if (std::find(names.begin(), names.end(), call.function) == names.end()) {
      names.push_back(call.function);
    }
  }
  const bool tuned = absl::StrContains(settings, "tune: on");
  SimulatedDaemon daemon(settings, function.target(), names);
  Rates rates;
  int questions = 0;
  for (size_t i = 0; i < Calls().size(); ++i) {
    const Call& call = Calls()[i];
    daemon.SetTime(call.at);
    const SimulatedDaemon::Answer answer =
        daemon.Call(call.function, call.request, {{"x-call", absl::StrCat(i)}});
    Count& count = rates[call.phase];
    ++count.calls;
    count.hits += answer.hit;
    // With any mask, the answer is this very call's, except for its TTL.
    fn::RunFunctionResponse expected = call.response;
    *expected.mutable_meta()->mutable_ttl() = answer.response.meta().ttl();
    EXPECT_TRUE(MessageDifferencer::Equals(answer.response, expected))
        << "call " << i + 1 << " of " << call.phase;
    if (!tuned) continue;
    // Questions follow the answer to a request that differs in drift, or whose
    // entry was too old.
    if (absl::StrContains(answer.status, "drift: ") ||
        absl::StrContains(answer.status, "fwd=stale")) {
      function.WaitForQuestions();
    }
    count.questions += function.questions() - questions;
    questions = function.questions();
  }
  return rates;
}

// The lines of the table in docs/hit-rates.md, by the recording's phases.
const std::vector<std::pair<std::string, std::string>>& Phases() {
  static const auto* const phases =
      new std::vector<std::pair<std::string, std::string>>{
          {"create", "creating, until all are ready"},
          {"settle", "settling"},
          {"ttl", "idle, timers only"},
          {"heartbeat", "a provider's heartbeat"},
          {"owner", "writes that change versions only"},
          {"restart", "Crossplane restarts"}};
  return *phases;
}

class ClusterHeavyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::is_directory(Folder())) {
      GTEST_SKIP() << "no " << Folder() << ": the recording of a control plane "
                   << "is not here";
    }
    ASSERT_EQ(Calls().size(), 564u);
  }
};

// Its columns: `tune: on` or what is masked; in each cell the function's own
// TTL (18 s of 20 are served), then a lifetime of a day.
TEST_F(ClusterHeavyTest, HitRatesAreThoseOfTheDocument) {
  const std::string sets =
      "\"@versions\", \"@times\", \"@composite-conditions\"";
  const std::vector<std::string> columns = {
      "", "tune: on\n", absl::StrCat("mask: [", kVersionsAndTimes, "]\n"),
      absl::StrCat("mask: [", sets, "]\n"),
      absl::StrCat("mask: [", sets, ", ", kHeartbeat, "]\n")};
  std::map<std::string, std::string> rows;
  for (const std::string& masks : columns) {
    const Rates own = Play(masks);
    const Rates day =
        Play(absl::StrCat(masks, "ttl: {min: 24h}\nrequeue_ttl: original\n"));
    for (const auto& [phase, words] : Phases()) {
      absl::StrAppend(&rows[phase], " ", own.at(phase).Percent(), " / ",
                      day.at(phase).Percent(), " |");
    }
  }
  const std::string page = ReadFile(FNCACHE_SOURCE_DIR "/docs/hit-rates.md");
  for (const auto& [phase, words] : Phases()) {
    EXPECT_THAT(
        page, HasSubstr(absl::StrCat("\n| ", words, " |", rows[phase], "\n")));
  }
}

// DESIGN, "Tuning": every answer is the call's own (Play compares it), nothing
// is asked while composites are created, and questions stay in their budget.
TEST_F(ClusterHeavyTest, TuningHitsHeartbeatsWithinItsBudget) {
  constexpr int kFirstQuestions = 40;
  constexpr double kTuneShare = 0.1;
  constexpr int kFunctions = 3;
  for (const std::string& settings :
       {std::string("tune: on\n"), RecommendedSettings()}) {
    SCOPED_TRACE(settings);
    const Rates tuned = Play(settings);
    EXPECT_EQ(tuned.at("create").questions, 0);
    EXPECT_GE(tuned.at("heartbeat").Percent(), 75);
    EXPECT_GE(tuned.at("owner").Percent(), 35);
    int runs = 0;
    int questions = 0;
    for (const auto& [phase, count] : tuned) {
      runs += count.calls - count.hits;
      questions += count.questions;
    }
    std::printf("%zu calls, %d runs for them, %d questions\n", Calls().size(),
                runs, questions);
    EXPECT_GT(questions, 0);
    EXPECT_LE(runs + questions,
              (1 + kTuneShare) * Calls().size() + kFunctions * kFirstQuestions);
  }
}

TEST_F(ClusterHeavyTest, ReadmesFiguresAreThose) {
  const std::string page = ReadFile(FNCACHE_SOURCE_DIR "/README.md");
  for (const auto& [name, settings] :
       {std::pair<std::string, std::string>{"none", ""},
        {"those to begin with", RecommendedSettings()},
        {"masks instead of `tune: on`",
         absl::StrCat("mask: [", kVersionsAndTimes, ", ", kHeartbeat,
                      "]\nttl: {min: 24h}\nrequeue_ttl: original\n")}}) {
    const Rates rates = Play(settings);
    std::string row = absl::StrCat("\n| ", name, " |");
    for (const auto& [phase, words] : Phases()) {
      absl::StrAppend(&row, " ", rates.at(phase).Percent(), " |");
    }
    EXPECT_THAT(page, HasSubstr(absl::StrCat(row, "\n")));
  }
}

}  // namespace
}  // namespace fncache::proxy::serving
