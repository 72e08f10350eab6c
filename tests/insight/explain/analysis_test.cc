// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/analysis.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cache/key/digest.h"
#include "cache/key/reencode.h"
#include "common/file.h"
#include "gmock/gmock.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "insight/trace/writer.h"
#include "nlohmann/json.hpp"
#include "proto/function_v1.pb.h"
#include "tests/common/temp_dir.h"
#include "tests/common/test_data.h"

namespace fncache::insight::explain {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
using ::fncache::testing::TempDir;
using ::testing::Contains;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using trace::Outcome;
using trace::TracedCall;

constexpr double kMargin = 0.1;
constexpr absl::Duration kClusterTtl = absl::Seconds(20);

// A trace of a cache that keeps answers for their time and masks nothing.
class Recorder {
 public:
  explicit Recorder(const std::string& dir)
      : digester_({}, {"f", "/m", "g"}, cache::key::MaskSet()),
        beta_digester_({}, {"f", "/beta", "g"}, cache::key::MaskSet()) {
    trace::TraceOptions options;
    options.dir = dir;
    options.writer = "test";
    options.queue_bytes = 1 << 30;
    auto writer = trace::TraceWriter::Create(options);
    EXPECT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
  }

  void Call(const std::string& function, absl::Time at,
            const std::string& request, absl::optional<absl::Duration> ttl,
            absl::Duration cost = absl::Seconds(1),
            const std::string& phase = "") {
    TracedCall call;
    call.arrived = at;
    call.function = function;
    call.phase = phase;
    if (beta_) call.method = "v1beta1";
    call.key =
        (beta_ ? beta_digester_ : digester_).Compute({request}, &scratch_).key;
    absl::Time& until = until_[function + call.key->Hex()];
    if (until > at) {
      call.outcome = Outcome::kHit;
    } else {
      call.outcome = Outcome::kMiss;
      call.function_ttl = ttl;
      call.stored = ttl.has_value();
      call.latency = cost;
      if (ttl.has_value()) until = at + cost + (1 - kMargin) * *ttl;
    }
    call.cost = cost;
    if (bare_) call.outcome = Outcome::kNone;
    trace::TraceWriter::Messages messages;
    messages.held = request.size();
    messages.request = [request, read = read_] { return read ? request : ""; };
    call.composite.name = name_;
    writer_->Write(std::move(call), std::move(messages));
  }

  // One that was not looked up.
  void Bypass(const std::string& function, absl::Time at,
              const std::string& why, const fn::RunFunctionRequest& request) {
    TracedCall call;
    call.arrived = at;
    call.function = function;
    call.outcome = Outcome::kBypass;
    call.detail = why;
    call.cost = absl::Seconds(1);
    trace::TraceWriter::Messages messages;
    const std::string bytes = request.SerializeAsString();
    messages.held = bytes.size();
    messages.request = [bytes] { return bytes; };
    writer_->Write(std::move(call), std::move(messages));
  }

  // As what the writer does not read: only whose it is.
  void Unread(const std::string& name) {
    read_ = false;
    name_ = name;
  }

  // As of callers that know v1beta1 only.
  void Beta(bool beta) { beta_ = beta; }

  // As what a load traces of a function without a cache.
  void NoCache() { bare_ = true; }

  void Done() { writer_.reset(); }

 private:
  const cache::key::Digester digester_;
  const cache::key::Digester beta_digester_;
  cache::key::DigestScratch scratch_;
  std::map<std::string, absl::Time> until_;
  bool read_ = true;
  bool bare_ = false;
  bool beta_ = false;
  std::string name_;
  std::unique_ptr<trace::TraceWriter> writer_;
};

std::string Request(const std::string& name, const std::string& version,
                    const std::string& region = "eu",
                    const std::string& writer = "crossplane") {
  fn::RunFunctionRequest request;
  const auto status = google::protobuf::util::JsonStringToMessage(
      absl::StrCat(
          R"({"observed": {"composite": {"resource": {"apiVersion": "e.org/v1",
          "kind": "XApp", "metadata": {"name": ")",
          name, R"(", "resourceVersion": ")", version,
          R"(", "managedFields": [{"manager": ")", writer,
          R"(", "operation": "Update", "time": "2026-01-01T00:00:00Z"}]},
          "spec": {"region": ")",
          region, R"("}}}}})"),
      &request);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return request.SerializeAsString();
}

absl::Time At(double seconds) {
  return absl::FromUnixSeconds(1'800'000'000) + absl::Seconds(seconds);
}

Analysis Of(const std::string& dir, const AnalysisOptions& options = {}) {
  const auto analysis =
      Analyze([dir] { return trace::TraceReader::Open(dir); }, options);
  EXPECT_TRUE(analysis.ok()) << analysis.status();
  return *analysis;
}

std::map<std::string, uint64_t> Counts(const std::vector<Misses>& shares) {
  std::map<std::string, uint64_t> counts;
  for (const Misses& share : shares) counts[share.name] = share.misses;
  return counts;
}

std::vector<std::string> MasksOf(const Analysis& analysis) {
  std::vector<std::string> masks;
  for (const MaskGain& share : analysis.masks) {
    masks.insert(masks.end(), share.masks.begin(), share.masks.end());
  }
  return masks;
}

// The versions of the composite.
const std::vector<std::string>& Versions() {
  static const auto* const versions = new std::vector<std::string>{
      "observed.composite.resource.metadata.managedFields",
      "observed.composite.resource.metadata.resourceVersion"};
  return *versions;
}

std::vector<std::string> PathsOf(const Analysis& analysis) {
  std::vector<std::string> paths;
  for (const PathMisses& share : analysis.paths) paths.push_back(share.path);
  return paths;
}

using Reasons = std::map<std::string, uint64_t>;

TEST(Analysis, EachMissHasItsReason) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  Recorder recorder(path);
  const absl::Duration ttl = absl::Seconds(60);
  recorder.Call("f", At(0), Request("a", "1"), ttl);              // new
  recorder.Call("f", At(10), Request("a", "1"), ttl);             // hit
  recorder.Call("f", At(20), Request("a", "2"), ttl);             // changed
  recorder.Call("f", At(100), Request("a", "2"), ttl);            // expired
  recorder.Call("f", At(101), Request("b", "1"), absl::nullopt);  // new
  recorder.Call("f", At(102), Request("b", "1"), ttl);  // not stored before
  recorder.Done();
  const Analysis analysis = Of(path);
  EXPECT_EQ(analysis.calls, 6u);
  EXPECT_EQ(analysis.hits, 1u);
  EXPECT_EQ(analysis.misses, 5u);
  EXPECT_EQ(analysis.composites, 2u);
  EXPECT_DOUBLE_EQ(analysis.seconds, 5);
  EXPECT_EQ(Counts(analysis.reasons), (Reasons{{"new", 2},
                                               {"changed", 1},
                                               {"expired", 1},
                                               {"not-stored: no-ttl", 1}}));
}

// Their messages are not compared either: a runner that gets UNIMPLEMENTED
// calls again, with v1beta1 and the same request.
TEST(Analysis, RequestsOfTheOtherMethodAreNotCompared) {
  for (const bool read : {true, false}) {
    SCOPED_TRACE(read);
    const TempDir dir;
    const std::string path = dir.path() + "/t";
    Recorder recorder(path);
    if (!read) recorder.Unread("a");
    const absl::Duration ttl = absl::Seconds(60);
    int at = 0;
    for (const char* version : {"1", "2"}) {
      for (const bool beta : {false, true}) {
        recorder.Beta(beta);
        recorder.Call("f", At(++at), Request("a", version), ttl);
      }
    }
    recorder.Done();
    const Analysis analysis = Of(path);
    EXPECT_EQ(Counts(analysis.reasons), (Reasons{{"new", 2}, {"changed", 2}}));
    if (!read) continue;
    ASSERT_EQ(PathsOf(analysis),
              std::vector<std::string>{
                  "observed.composite.resource.metadata.resourceVersion"});
    EXPECT_EQ(analysis.paths[0].misses, 2u);
  }
}

// Objects may get what the function reads, and functions compare generations
// and the words of conditions.
TEST(Analysis, MasksAreOverLeavesOfTheResourcesThatChanged) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  Recorder recorder(path);
  const absl::Duration ttl = absl::Seconds(60);
  fn::RunFunctionRequest request;
  ASSERT_TRUE(request.ParseFromString(Request("a", "1")));
  const auto write = [&](double at, const std::string& json) {
    auto& resources = *request.mutable_observed()->mutable_resources();
    resources["db"].mutable_resource()->Clear();
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(
                    json, resources["db"].mutable_resource())
                    .ok());
    resources["idle"].mutable_resource();
    recorder.Call("f", At(at), request.SerializeAsString(), ttl);
  };
  const auto object = [](int generation, const std::string& status) {
    return absl::StrCat(R"({"metadata": {"generation": )", generation,
                        R"(}, "status": )", status, "}");
  };
  write(0, object(1, R"({"at": {"beat": 1}})"));
  write(1, object(1, R"({"at": {"beat": 2}})"));
  write(2, object(1, R"({"at": {"beat": 2, "id": "x"}})"));
  write(3, object(1, R"({"at": {"beat": 2}, "conditions": [
      {"type": "Ready", "status": "True", "lastTransitionTime": "a"}]})"));
  write(4, object(1, R"({"at": {"beat": 2}, "conditions": [
      {"type": "Ready", "status": "True", "lastTransitionTime": "b"}]})"));
  write(5, object(2, R"({"at": {"beat": 2}, "conditions": [
      {"type": "Ready", "status": "False", "lastTransitionTime": "b"}]})"));
  recorder.Done();
  const Analysis analysis = Of(path);
  // Not the identifier, which came and went.
  EXPECT_THAT(MasksOf(analysis),
              UnorderedElementsAre(
                  "@times", "observed.resources.db.resource.status.at.beat"));
  const std::string text = AnalysisText(analysis, "path");
  EXPECT_THAT(text, ::testing::HasSubstr("not asked"));
  EXPECT_THAT(text, ::testing::HasSubstr("fncache probe"));
}

// Values that a daemon masked are in its trace, and were in none of its keys.
class MaskedTrace : public ::testing::Test {
 protected:
  // A daemon's trace: keys are made under its masks, and so are hits.
  void Write(const std::string& mask, const std::vector<double>& beats) {
    trace::TraceOptions options;
    options.dir = path_;
    options.writer = "serve";
    options.settings = {{"functions.f.mask", mask}};
    auto writer = trace::TraceWriter::Create(options);
    ASSERT_TRUE(writer.ok()) << writer.status();
    const cache::key::Digester digester({}, {"f", "/m", "g"},
                                        *cache::key::MaskSet::Parse({mask}));
    cache::key::DigestScratch scratch;
    std::set<std::string> known;
    for (size_t i = 0; i < beats.size(); ++i) {
      fn::RunFunctionRequest message;
      // A version at each call, and a beat of its own.
      ASSERT_TRUE(message.ParseFromString(Request("a", absl::StrCat(i))));
      auto& status = (*message.mutable_observed()
                           ->mutable_composite()
                           ->mutable_resource()
                           ->mutable_fields())["status"];
      (*status.mutable_struct_value()->mutable_fields())["beat"]
          .set_number_value(beats[i]);
      const std::string request = message.SerializeAsString();
      TracedCall call;
      call.arrived = At(static_cast<double>(i));
      call.function = "f";
      call.key = digester.Compute({request}, &scratch).key;
      const bool hit = !known.insert(call.key->Hex()).second;
      call.outcome = hit ? Outcome::kHit : Outcome::kMiss;
      call.reason = hit           ? trace::Reason::kNone
                    : i == first_ ? trace::Reason::kNew
                                  : trace::Reason::kChanged;
      call.lifetime = absl::Hours(1);
      call.told_ttl = absl::Hours(1);
      if (!hit) call.function_ttl = absl::Hours(1);
      call.stored = !hit;
      if (hit && beats[i] == beats[0]) {
        call.age = absl::Seconds(static_cast<double>(i));
      }
      call.cost = absl::Milliseconds(1);
      // A trace that begins later does not have the first calls.
      if (i < first_) continue;
      trace::TraceWriter::Messages messages;
      messages.held = request.size();
      messages.request = [request] { return request; };
      (*writer)->Write(std::move(call), std::move(messages));
    }
  }

  size_t first_ = 0;
  const TempDir dir_;
  const std::string path_ = dir_.path() + "/t";
};

constexpr char kVersion[] =
    "observed.composite.resource.metadata.resourceVersion";
constexpr char kBeat[] = "observed.composite.resource.status.beat";

TEST_F(MaskedTrace, WhatIsMaskedIsNeitherToldNorProposed) {
  Write(kVersion, {1, 1, 2, 2, 3});
  const Analysis analysis = Of(path_);
  EXPECT_EQ(analysis.hits, 2u);
  EXPECT_EQ(Counts(analysis.reasons), (Reasons{{"new", 1}, {"changed", 2}}));
  EXPECT_THAT(PathsOf(analysis), UnorderedElementsAre(kBeat));
  EXPECT_THAT(MasksOf(analysis), UnorderedElementsAre(kBeat));
  EXPECT_EQ(analysis.masks[0].together, 2u);
}

TEST_F(MaskedTrace, MasksThatAreAskedAboutAreInForceToo) {
  Write(kVersion, {1, 1, 2, 2, 3});
  AnalysisOptions options;
  options.masked = {kBeat};
  EXPECT_THAT(Of(path_, options).masks, IsEmpty());
}

// With `tune: on`, no key has drift in it.
class TunedTrace : public ::testing::Test {
 protected:
  TunedTrace() {
    trace::TraceOptions options;
    options.dir = path_;
    options.writer = "serve";
    auto writer = trace::TraceWriter::Create(options);
    EXPECT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
  }
  // A request whose resource has this version, status and managers.
  static std::string Of(int version, const std::string& status,
                        const std::string& managers = R"({"manager": "a"})") {
    fn::RunFunctionRequest request;
    const auto parsed = google::protobuf::util::JsonStringToMessage(
        absl::StrCat(
            R"({"observed": {"composite": {"resource": {"kind": "XApp",
            "metadata": {"name": "a"}}}, "resources": {"r": {"resource":
            {"metadata": {"resourceVersion": ")",
            version, R"(", "managedFields": [)", managers, R"(]}, "status": {)",
            status, "}}}}}}"),
        &request);
    EXPECT_TRUE(parsed.ok()) << parsed.ToString();
    return request.SerializeAsString();
  }
  // Each call that has another key than those before is a miss. A miss over
  // drift has the key of one before.
  void Call(const std::string& request, bool drifts = false) {
    const cache::key::Digester digester(
        {},
        {"f", "/m", "g", cache::key::KeySource::kContent,
         cache::key::KeyHash::kXxh3, tuned_},
        cache::key::MaskSet());
    TracedCall call;
    call.arrived = At(static_cast<double>(keys_.size()));
    call.function = "f";
    call.key = digester.Compute({request}, &scratch_).key;
    call.outcome = Outcome::kMiss;
    call.reason = drifts          ? trace::Reason::kDrift
                  : keys_.empty() ? trace::Reason::kNew
                                  : trace::Reason::kChanged;
    EXPECT_EQ(keys_.insert(call.key->Hex()).second, !drifts);
    call.lifetime = call.function_ttl = absl::Hours(1);
    call.stored = true;
    trace::TraceWriter::Messages messages;
    messages.held = request.size();
    messages.tuned = tuned_;
    messages.request = [request] { return request; };
    writer_->Write(std::move(call), std::move(messages));
  }
  Analysis Read(const AnalysisOptions& options = {}) {
    writer_->Close();
    return explain::Of(path_, options);
  }

  bool tuned_ = true;
  const TempDir dir_;
  const std::string path_ = dir_.path() + "/t";

 private:
  std::unique_ptr<trace::TraceWriter> writer_;
  std::set<std::string> keys_;
  cache::key::DigestScratch scratch_;
};

constexpr char kWord[] = "observed.resources.r.resource.status.word";
constexpr char kAt[] = R"("at": "2026-11-22T09:42:57Z", "word": "x")";
constexpr char kLater[] = R"("at": "2026-11-22T09:43:57Z", "word": )";

TEST_F(TunedTrace, DriftIsNeitherNamedNorProposed) {
  Call(Of(1, kAt, R"({"manager": "a"}, {"manager": "b", "v": 1})"));
  Call(Of(2, absl::StrCat(kLater, R"("x")"), R"({"manager": "c"})"), true);
  Call(Of(3, R"("at": "2026-11-22T09:44:57Z", "word": "y")",
          R"({"manager": "d"})"));
  Call(Of(4, absl::StrCat(kLater, R"("z")"), "{}"));
  Call(Of(5, absl::StrCat(kLater, R"("x")")), true);
  const Analysis analysis = Read();
  EXPECT_EQ(Counts(analysis.reasons),
            (Reasons{{"new", 1}, {"changed", 2}, {"drift", 2}}));
  EXPECT_THAT(
      PathsOf(analysis),
      UnorderedElementsAre("observed.resources.*.resource.status.word"));
  // The mask saves two calls. Without it, equal keys show two hits already,
  // which are no merit of a mask.
  EXPECT_THAT(MasksOf(analysis), UnorderedElementsAre(kWord));
  EXPECT_EQ(analysis.masks[0].together, 2u);
  // Keys that are asked about instead have drift in them.
  AnalysisOptions options;
  options.in_force = false;
  const Analysis without = Read(options);
  EXPECT_THAT(
      PathsOf(without),
      Contains("observed.resources.*.resource.metadata.resourceVersion"));
  EXPECT_THAT(PathsOf(without),
              Contains("observed.resources.*.resource.status.at"));
}

TEST_F(TunedTrace, DriftThatAppearsOrBecomesAWordChangesTheKey) {
  Call(Of(1, ""));
  Call(Of(2, kAt));
  Call(Of(3, R"("at": "soon", "word": "x")"));
  const Analysis analysis = Read();
  EXPECT_THAT(
      PathsOf(analysis),
      UnorderedElementsAre("observed.resources.*.resource.status.at",
                           "observed.resources.*.resource.status.word"));
  EXPECT_EQ(analysis.paths[0].path, "observed.resources.*.resource.status.at");
  EXPECT_EQ(analysis.paths[0].misses, 2u);
}

TEST_F(TunedTrace, TheSettingIsNoChangeOfDrift) {
  tuned_ = false;
  Call(Of(1, kAt));
  tuned_ = true;
  Call(Of(1, absl::StrCat(R"("at": "2026-11-22T09:42:57Z", "word": "y")")));
  tuned_ = false;
  Call(Of(1, R"("at": "2026-11-22T09:42:57Z", "word": "z")"));
  EXPECT_THAT(
      PathsOf(Read()),
      UnorderedElementsAre("observed.resources.*.resource.status.word"));
}

// The entry was filled before the trace began: only hits show it.
TEST_F(MaskedTrace, AHitShowsThatThereIsAnEntry) {
  first_ = 1;
  Write(kVersion, {1, 1, 2});
  const Analysis analysis = Of(path_);
  EXPECT_EQ(analysis.hits, 1u);
  ASSERT_THAT(MasksOf(analysis), UnorderedElementsAre(kBeat));
  EXPECT_EQ(analysis.masks[0].together, 1u);
}

TEST(Analysis, ATraceThatIsShorterThanItsTtlsSaysSo) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  Recorder recorder(path);
  recorder.Call("f", At(0), Request("a", "1"), absl::Seconds(60));
  recorder.Call("f", At(10), Request("a", "2"), absl::Seconds(60));
  recorder.Done();
  const Analysis shorter = Of(path);
  EXPECT_THAT(AnalysisText(shorter, "path"),
              ::testing::HasSubstr("the trace covers 10s, less than the "
                                   "longest TTL in it (1m0s): it is too short "
                                   "for timers"));
  EXPECT_THAT(AnalysisJson(shorter),
              ::testing::HasSubstr("\"too_short_for_timers\": true"));
  EXPECT_EQ(TooShortForTimers(absl::Seconds(60), absl::Seconds(60)), "");
}

TEST(Analysis, WithoutACacheNothingWasEvicted) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  Recorder recorder(path);
  recorder.NoCache();
  for (const int at : {0, 5, 100}) {
    recorder.Call("f", At(at), Request("a", "1"), absl::Seconds(60));
  }
  recorder.Done();
  EXPECT_EQ(Counts(Of(path).reasons),
            (Reasons{{"new", 1}, {"no-cache", 1}, {"expired", 1}}));
}

TEST(Analysis, WhatWasNotReadIsCountedAndSaid) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  Recorder recorder(path);
  const absl::Duration ttl = absl::Seconds(60);
  recorder.Call("f", At(0), Request("a", "1"), ttl);
  recorder.Call("f", At(1), Request("a", "2"), ttl);
  recorder.Unread("b");
  recorder.Call("f", At(2), Request("b", "1"), ttl);
  recorder.Call("f", At(3), Request("b", "2"), ttl);
  recorder.Done();
  const Analysis analysis = Of(path);
  EXPECT_EQ(Counts(analysis.reasons), (Reasons{{"new", 2}, {"changed", 2}}));
  EXPECT_EQ(analysis.pathless, 1u);
  EXPECT_THAT(AnalysisText(analysis, "path"),
              ::testing::HasSubstr("Of 1 changed ones the trace has no paths"));
}

TEST(Analysis, WhatChangedIsToldWithItsWriterAndItsMask) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  Recorder recorder(path);
  const absl::Duration ttl = absl::Seconds(60);
  recorder.Call("f", At(0), Request("a", "1"), ttl);
  recorder.Call("f", At(1), Request("a", "2", "eu", "provider"), ttl);
  recorder.Call("f", At(2), Request("a", "3", "us", "user"), ttl);
  recorder.Done();
  const Analysis analysis = Of(path);
  const auto version = std::find_if(
      analysis.paths.begin(), analysis.paths.end(),
      [&](const PathMisses& share) { return share.path == kVersion; });
  ASSERT_NE(version, analysis.paths.end());
  EXPECT_EQ(version->misses, 2u);
  EXPECT_TRUE(version->allowed);
  EXPECT_EQ(version->section, "composite");
  EXPECT_EQ(Counts(analysis.writers), (Reasons{{"provider", 1}, {"user", 1}}));
  // The version's write alone would have been a hit, the region's would not.
  ASSERT_THAT(analysis.masks, SizeIs(::testing::Ge(1u)));
  EXPECT_EQ(analysis.masks[0].masks, Versions());
  EXPECT_EQ(analysis.masks[0].alone, 1u);
  EXPECT_EQ(analysis.masks[0].together, 1u);
}

TEST(Analysis, MasksThatHelpOnlyTogetherAreFound) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  Recorder recorder(path);
  for (int i = 0; i < 10; ++i) {
    fn::RunFunctionRequest request;
    ASSERT_TRUE(request.ParseFromString(Request("a", absl::StrCat(i))));
    auto& status = (*request.mutable_observed()
                         ->mutable_composite()
                         ->mutable_resource()
                         ->mutable_fields())["status"];
    (*status.mutable_struct_value()->mutable_fields())["beat"].set_number_value(
        i);
    recorder.Call("f", At(i), request.SerializeAsString(), absl::Seconds(60),
                  absl::Milliseconds(1));
  }
  recorder.Done();
  const Analysis analysis = Of(path);
  ASSERT_FALSE(analysis.masks.empty());
  EXPECT_EQ(analysis.masks.back().together, 9u);
  for (const MaskGain& mask : analysis.masks) EXPECT_EQ(mask.alone, 0u);
}

TEST(Analysis, NothingIsProposedWhereNothingHelps) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  Recorder recorder(path);
  recorder.Call("f", At(0), Request("a", "1"), absl::Seconds(1));
  recorder.Call("f", At(100), Request("a", "2"), absl::Seconds(1));
  recorder.Done();
  EXPECT_THAT(Of(path).masks, IsEmpty());
  // With longer lives it would have.
  AnalysisOptions longer;
  longer.lifetime = absl::Hours(24);
  EXPECT_THAT(Of(path, longer).masks, Contains(Field(&MaskGain::together, 1)));
}

TEST(Analysis, CallsAreChosenByFunctionCompositeAndPhase) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  Recorder recorder(path);
  const absl::Duration ttl = absl::Seconds(60);
  recorder.Call("f", At(0), Request("a", "1"), ttl, absl::Seconds(1), "settle");
  recorder.Call("f", At(1), Request("a", "2"), ttl, absl::Seconds(1),
                "measure");
  recorder.Call("g", At(2), Request("b", "1"), ttl, absl::Seconds(1),
                "measure");
  recorder.Done();
  AnalysisOptions options;
  options.function = "g";
  EXPECT_EQ(Of(path, options).calls, 1u);
  options = {};
  options.composite = "a";
  EXPECT_EQ(Of(path, options).calls, 2u);
  options = {};
  options.phase = "measure";
  // Calls before the phase still count as earlier requests.
  EXPECT_EQ(Counts(Of(path, options).reasons),
            (Reasons{{"changed", 1}, {"new", 1}}));
  options = {};
  options.last = 1;
  EXPECT_EQ(Of(path, options).misses, 1u);
}

// An operation acts: no mask makes hits of its calls, and none is tried.
TEST(Analysis, OperationsAreToldApartFromMisses) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  Recorder recorder(path);
  recorder.Call("f", At(0), Request("a", "1"), absl::Seconds(60));
  for (int i = 1; i <= 3; ++i) {
    recorder.Bypass("f", At(i), "operation", fn::RunFunctionRequest());
  }
  recorder.Bypass("f", At(4), "authorization", fn::RunFunctionRequest());
  // As an earlier version of the daemon wrote it.
  recorder.Bypass("f", At(5), "", fn::RunFunctionRequest());
  recorder.Done();
  const Analysis analysis = Of(path);
  EXPECT_EQ(analysis.calls, 6u);
  EXPECT_EQ(analysis.misses, 1u);
  EXPECT_EQ(analysis.bypasses, 5u);
  EXPECT_EQ(analysis.composites, 1u);
  EXPECT_THAT(MasksOf(analysis), IsEmpty());
  const std::string text = AnalysisText(analysis, "path");
  EXPECT_THAT(text, ::testing::HasSubstr(
                        "\nnot looked up: 1 authorization, 3 operation\n"));
  const auto json =
      nlohmann::json::parse(AnalysisJson(analysis), nullptr, false);
  EXPECT_EQ(json["bypasses"], 5);
  EXPECT_EQ(json["bypasses_by_reason"]["operation"], 3);
  EXPECT_EQ(json["bypasses_by_reason"]["authorization"], 1);
}

TEST(Analysis, JsonAndTextSayTheSame) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  Recorder recorder(path);
  recorder.Call("f", At(0), Request("a", "1"), absl::Seconds(60));
  recorder.Call("f", At(1), Request("a", "2"), absl::Seconds(60));
  recorder.Done();
  const Analysis analysis = Of(path);
  const auto json =
      nlohmann::json::parse(AnalysisJson(analysis), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["misses"], 2);
  EXPECT_EQ(json["masks"][0]["mask"], Versions()[0]);
  EXPECT_EQ(json["masks"][1]["mask"], Versions()[1]);
  EXPECT_EQ(json["masks"][1]["group"], 0);
  EXPECT_EQ(json["masks"][0]["function_asked"], false);
  for (const char* by : {"path", "section", "writer"}) {
    EXPECT_THAT(AnalysisText(analysis, by), ::testing::HasSubstr("changed"));
    EXPECT_THAT(AnalysisText(analysis, by),
                ::testing::HasSubstr(Versions()[1]));
  }
}

TEST(Compare, NamesWhatDiffersAndNoValue) {
  const auto differences =
      Compare(Request("a", "1", "secretregion"), Request("a", "2", "us", "w"));
  ASSERT_TRUE(differences.ok());
  std::vector<std::string> paths;
  for (const Difference& one : *differences) {
    paths.push_back(one.path);
    EXPECT_EQ(one.change, "changed");
    EXPECT_EQ(one.writer, "w");
    EXPECT_TRUE(one.allowed);
    EXPECT_EQ(one.mask.empty(), absl::StrContains(one.path, ".spec."));
  }
  EXPECT_THAT(
      paths,
      UnorderedElementsAre(
          "observed.composite.resource.metadata.resourceVersion",
          "observed.composite.resource.spec.region",
          "observed.composite.resource.metadata.managedFields[0].manager"));
  EXPECT_TRUE(Compare("", "")->empty());
  EXPECT_FALSE(Compare("\x12\x7f", "").ok());
  EXPECT_FALSE(Compare("", "\x12\x7f").ok());
}

// Requests of a real control plane (its README explains the causes).
class ClusterTrace : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto folders = fncache::testing::DataFolders({"cluster"});
    if (folders.empty()) {
      GTEST_SKIP() << "the recordings of a cluster are not there";
    }
    const std::string folder = folders[0].string();
    const auto table = ReadSmallFile(folder + "/calls.tsv", 1 << 20);
    ASSERT_TRUE(table.ok()) << table.status();
    for (const absl::string_view line :
         absl::StrSplit(*table, '\n', absl::SkipEmpty())) {
      const std::vector<std::string> cells = absl::StrSplit(line, '\t');
      ASSERT_GE(cells.size(), 9u);
      int64_t milliseconds = 0, microseconds = 0;
      ASSERT_TRUE(absl::SimpleAtoi(cells[1], &milliseconds));
      ASSERT_TRUE(absl::SimpleAtoi(cells[7], &microseconds));
      const auto request =
          ReadSmallFile(absl::StrCat(folder, "/", cells[5]), 1 << 20);
      ASSERT_TRUE(request.ok()) << request.status();
      recorded_.push_back({std::string(cells[2]), std::string(cells[3]),
                           *request,
                           At(static_cast<double>(milliseconds) / 1000),
                           absl::Microseconds(microseconds)});
    }
    Recorder recorder(path_);
    for (const Recorded& one : recorded_) {
      recorder.Call(one.function, one.at, one.request, kClusterTtl, one.cost,
                    one.phase);
    }
    recorder.Done();
  }

  Analysis OfPhase(const std::string& phase,
                   absl::Duration lifetime = absl::ZeroDuration()) {
    AnalysisOptions options;
    options.phase = phase;
    options.lifetime = lifetime;
    return Of(path_, options);
  }

  struct Recorded {
    std::string function, phase, request;
    absl::Time at;
    absl::Duration cost;
  };
  std::vector<Recorded> recorded_;
  const TempDir dir_;
  const std::string path_ = dir_.path() + "/t";
};

TEST_F(ClusterTrace, TheTrueCausesAreNamed) {
  constexpr char kThingVersion[] =
      "observed.resources.*.resource.metadata.resourceVersion";
  constexpr char kThingManaged[] =
      "observed.resources.*.resource.metadata.managedFields";
  // Nothing is written while it idles: answers' time is over.
  EXPECT_EQ(Counts(OfPhase("ttl").reasons), (Reasons{{"expired", 45}}));
  // A provider writes the time of its last look.
  const Analysis heartbeat = OfPhase("heartbeat");
  EXPECT_EQ(Counts(heartbeat.reasons), (Reasons{{"changed", 108}}));
  EXPECT_EQ(Counts(heartbeat.writers), (Reasons{{"provider", 108}}));
  EXPECT_THAT(PathsOf(heartbeat),
              UnorderedElementsAre(kThingVersion, kThingManaged,
                                   "observed.resources.*.resource.status."
                                   "atProvider.lastChecked"));
  // One field manager after another applies a label that is there already, but
  // for the first one.
  const Analysis owner = OfPhase("owner");
  EXPECT_EQ(Counts(owner.reasons),
            (Reasons{{"changed", 162}, {"expired", 18}}));
  EXPECT_EQ(Counts(owner.writers),
            (Reasons{{"owner-20", 54}, {"owner-21", 54}, {"owner-22", 54}}));
  EXPECT_THAT(PathsOf(owner),
              UnorderedElementsAre(
                  kThingVersion, kThingManaged,
                  "observed.resources.*.resource.metadata.labels.e2e/x"));
  ASSERT_FALSE(owner.masks.empty());
  EXPECT_THAT(owner.masks[0].masks,
              ::testing::Each(::testing::AnyOf(
                  ::testing::EndsWith(".resource.metadata.resourceVersion"),
                  ::testing::EndsWith(".resource.metadata.managedFields"))));
  for (const std::string& mask : owner.masks[0].masks) {
    EXPECT_FALSE(absl::StrContains(mask, "resources.*")) << mask;
  }
  // Six composites and three functions.
  EXPECT_EQ(Counts(OfPhase("create").reasons)["new"], 18u);
}

// They are nearly as good as those that hide versions and times of every object
// (and a number that providers write here), and no set of masks could do better
// than the one that hides all of every observed object: by the messages
// themselves, without nodes or traces.
TEST_F(ClusterTrace, TheMasksThatAreProposedAreNearlyAsGoodAsSuchCouldBe) {
  const auto leaves = cache::key::MaskSet::Parse(
      {"@times", "observed.composite.resource.metadata.resourceVersion",
       "observed.composite.resource.metadata.managedFields",
       "observed.resources.*.resource.metadata.resourceVersion",
       "observed.resources.*.resource.metadata.managedFields",
       "observed.resources.*.resource.status.atProvider"});
  ASSERT_TRUE(leaves.ok());
  const auto all = cache::key::MaskSet::Parse(
      {"observed.composite.resource.*", "observed.resources.*.resource.*"},
      cache::key::MaskRules::kAnyPath);
  ASSERT_TRUE(all.ok());
  struct Hits {
    std::map<std::string, absl::Time> until;
    std::map<std::string, double> of;  // by phase
  };
  Hits by_leaves, by_all;
  const std::pair<const cache::key::MaskSet*, Hits*> kSets[] = {
      {&*leaves, &by_leaves}, {&*all, &by_all}};
  std::map<std::string, double> calls;
  for (const Recorded& one : recorded_) {
    fn::RunFunctionRequest request;
    ASSERT_TRUE(request.ParseFromString(one.request));
    // Which composite it is, and which resources it has, is not hidden.
    const std::string name = request.observed()
                                 .composite()
                                 .resource()
                                 .fields()
                                 .at("metadata")
                                 .struct_value()
                                 .fields()
                                 .at("name")
                                 .string_value();
    ++calls[one.phase];
    for (const auto& [masks, hits] : kSets) {
      fn::RunFunctionRequest masked = request;
      cache::key::ClearMasked(*masks, &masked);
      std::string bytes;
      {
        google::protobuf::io::StringOutputStream out(&bytes);
        google::protobuf::io::CodedOutputStream coded(&out);
        coded.SetSerializationDeterministic(true);
        masked.SerializeToCodedStream(&coded);
      }
      absl::Time& end = hits->until[absl::StrCat(one.function, name, bytes)];
      if (end > one.at) {
        ++hits->of[one.phase];
      } else {
        end = one.at + one.cost + (1 - kMargin) * kClusterTtl;
      }
    }
  }
  for (const auto& [phase, count] : calls) {
    const Analysis analysis = OfPhase(phase);
    const double proposed = static_cast<double>(
        analysis.hits +
        (analysis.masks.empty() ? 0 : analysis.masks.back().together));
    std::printf(
        "%s: now %.1f %%, proposed %.1f %%, such %.1f %%, any %.1f %%\n",
        phase.c_str(), 100.0 * analysis.hits / analysis.calls,
        100.0 * proposed / analysis.calls, 100 * by_leaves.of[phase] / count,
        100 * by_all.of[phase] / count);
    EXPECT_EQ(count, analysis.calls);
    EXPECT_GE(proposed, by_leaves.of[phase] - 0.02 * count) << phase;
    EXPECT_LE(proposed, by_all.of[phase] + 0.02 * count) << phase;
  }
}

}  // namespace
}  // namespace fncache::insight::explain
