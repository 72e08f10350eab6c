// SPDX-License-Identifier: Apache-2.0
// The search against functions that read known paths.
#include "runner/probe/probe.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runner/messages.h"
#include "tests/runner/probe/fake_function.h"

namespace fncache::runner::probe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;
using Result = Search::Result;

constexpr char kResource[] = "observed.composite.resource.";

RunFunctionRequest WithSpec(const std::string& json) {
  return FromJson<RunFunctionRequest>(absl::StrCat(
      R"({"observed": {"composite": {"resource": {"apiVersion": "e.org/v1",
      "kind": "XApp", "metadata": {"name": "a", "resourceVersion": "17",
      "generation": 3, "managedFields": [{"manager": "m", "time":
      "2026-01-01T00:00:00Z"}]}, "spec": )",
      json, "}}}}"));
}

std::vector<std::string> Of(const ProbeResult& result, Result wanted) {
  std::vector<std::string> masks;
  for (size_t i = 0; i < result.fields.size(); ++i) {
    if (result.results[i] == wanted) masks.push_back(result.fields[i].mask);
  }
  return masks;
}
std::vector<std::string> ReadOf(const ProbeResult& result) {
  return Of(result, Result::kRead);
}
std::vector<std::string> MasksOf(const ProbeResult& result) {
  std::vector<std::string> masks;
  for (const ProposedMask& mask : result.masks) masks.push_back(mask.mask);
  return masks;
}

ProbeResult Probe(const RunFunctionRequest& request,
                  FakeFunction::Answer answer, int calls = 1000,
                  const Variation& variation = {}) {
  FakeFunction function(std::move(answer));
  ProbeOptions options;
  options.function = "f";
  options.calls = calls;
  auto result = RunProbe({request}, variation, options, &function);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_EQ(result->calls, function.calls());
  EXPECT_LE(result->calls, calls);
  return *std::move(result);
}

// All of `read` was found and nothing else, but for lists: whoever reads
// something of all elements of a list depends on how many there are.
void ExpectRead(const ProbeResult& result,
                const std::vector<std::string>& read) {
  const std::vector<std::string> found = ReadOf(result);
  EXPECT_THAT(found, IsSupersetOf(read));
  for (const std::string& path : found) {
    const bool known =
        std::any_of(read.begin(), read.end(), [&](const std::string& one) {
          return one == path || absl::StartsWith(one, path + ".*");
        });
    EXPECT_TRUE(known) << path;
  }
}

std::string SpecOf(const std::string& key) {
  return absl::StrCat(kResource, "spec.", key);
}

// What is in the composite's spec; nothing where there is none.
google::protobuf::Map<std::string, google::protobuf::Value> SpecFieldsOf(
    const RunFunctionRequest& request) {
  const auto& fields = request.observed().composite().resource().fields();
  const auto spec = fields.find("spec");
  if (spec == fields.end()) return {};
  return spec->second.struct_value().fields();
}

TEST(Probe, FindsWhatIsReadAndNothingElse) {
  const auto request =
      WithSpec(R"({"size": 3, "region": "eu", "on": true, "tags": ["a", "b"],
                   "deep": {"er": {"value": "x"}}})");
  const std::vector<std::string> read = {SpecOf("region"), SpecOf("on"),
                                         SpecOf("deep.er.value"),
                                         SpecOf("tags.*")};
  const ProbeResult result = Probe(request, Reads(read));
  ExpectRead(result, read);
  EXPECT_THAT(Of(result, Result::kUntried), IsEmpty());
  EXPECT_THAT(result.unstable, IsEmpty());
  EXPECT_TRUE(result.complete);
  // The set and paths beside, none that hides something read.
  EXPECT_THAT(MasksOf(result), Contains("@versions"));
  EXPECT_THAT(MasksOf(result), Contains(SpecOf("size")));
  EXPECT_THAT(MasksOf(result), Not(Contains(SpecOf("deep"))));
}

// A function that reads nothing takes one call for each kind of question.
TEST(Probe, NothingReadTakesFewCalls) {
  const ProbeResult result = Probe(WithSpec(R"({"a": 1, "b": 2})"), Reads({}));
  EXPECT_THAT(ReadOf(result), IsEmpty());
  EXPECT_LE(result.calls, 8);
}

std::string RandomValue(std::mt19937_64* random, int depth) {
  const auto pick = [random](uint64_t most) { return (*random)() % most; };
  switch (pick(depth > 0 ? 7 : 4)) {
    case 0:
      return absl::StrCat(pick(1000));
    case 1:
      return pick(2) == 0 ? "true" : "false";
    case 2:
    case 3:
      return absl::StrCat("\"", std::string(1 + pick(8), 'a' + pick(26)),
                          pick(99), "\"");
    case 4: {
      std::string list;
      for (uint64_t i = 0, n = 1 + pick(3); i < n; ++i) {
        absl::StrAppend(&list, i == 0 ? "" : ", ",
                        RandomValue(random, depth - 1));
      }
      return absl::StrCat("[", list, "]");
    }
    default: {
      std::string object;
      for (uint64_t i = 0, n = 1 + pick(5); i < n; ++i) {
        absl::StrAppend(&object, i == 0 ? "" : ", ", "\"k", i,
                        "\": ", RandomValue(random, depth - 1));
      }
      return absl::StrCat("{", object, "}");
    }
  }
}

TEST(Probe, TwoHundredRandomFunctions) {
  std::mt19937_64 random(20261123);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    std::string spec;
    const int keys = 2 + static_cast<int>(random() % 12);
    for (int i = 0; i < keys; ++i) {
      absl::StrAppend(&spec, i == 0 ? "" : ", ", "\"f", i,
                      "\": ", RandomValue(&random, 3));
    }
    const auto request = WithSpec(absl::StrCat("{", spec, "}"));
    // Reads some values, wherever they are.
    const RequestFields fields({request});
    std::vector<std::string> values;
    for (const probe::Field& field : fields.fields()) {
      if (!field.container) values.push_back(field.mask);
    }
    std::shuffle(values.begin(), values.end(), random);
    values.resize(std::min<size_t>(values.size(), random() % 7));
    const ProbeResult result = Probe(request, Reads(values), 3000);
    ExpectRead(result, values);
    EXPECT_THAT(Of(result, Result::kUntried), IsEmpty());
    EXPECT_TRUE(result.complete);
  }
}

TEST(Probe, ReadsOneOnlyWhereAnotherIsThere) {
  const auto request = WithSpec(R"({"a": "x", "b": "y", "c": "z"})");
  const ProbeResult result = Probe(
      request, [](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        if (!At(asked, SpecOf("a")).empty())
          Say(said, "b", At(asked, SpecOf("b")));
      });
  EXPECT_THAT(ReadOf(result), ElementsAre(SpecOf("a"), SpecOf("b")));
}

// Neither of the two matters while the other is there: only both together do.
TEST(Probe, FallsBackToAnotherPath) {
  const auto request =
      WithSpec(R"({"a": "x", "b": "x", "c": "z", "d": {"e": 1}})");
  const ProbeResult result = Probe(
      request, [](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        Say(said, "there",
            At(asked, SpecOf("a")).empty() && At(asked, SpecOf("b")).empty()
                ? "no"
                : "yes");
      });
  EXPECT_THAT(ReadOf(result), ElementsAre(SpecOf("a"), SpecOf("b")));
}

TEST(Probe, WhetherSomethingIsThere) {
  const auto request = WithSpec(R"({"a": {"b": 1, "c": {"d": 2}}, "e": [1]})");
  const ProbeResult result = Probe(
      request, [](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        const auto spec = SpecFieldsOf(asked);
        Say(said, "a", spec.count("a") != 0 ? "yes" : "no");
      });
  // Not what is in it.
  EXPECT_THAT(ReadOf(result), ElementsAre(SpecOf("a")));
  EXPECT_THAT(MasksOf(result), Not(Contains(SpecOf("a"))));
}

TEST(Probe, HowManyThereAre) {
  const auto request =
      WithSpec(R"({"zones": ["a", "b"], "labels": {"x": "y"}})");
  const ProbeResult result = Probe(
      request, [](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        const auto spec = SpecFieldsOf(asked);
        const auto zones = spec.find("zones");
        const auto labels = spec.find("labels");
        Say(said, "zones",
            absl::StrCat(zones == spec.end()
                             ? 0
                             : zones->second.list_value().values_size()));
        Say(said, "labels",
            absl::StrCat(labels == spec.end()
                             ? 0
                             : labels->second.struct_value().fields_size()));
      });
  EXPECT_THAT(ReadOf(result),
              IsSupersetOf({SpecOf("zones"), SpecOf("labels")}));
  EXPECT_THAT(ReadOf(result), Not(Contains(SpecOf("zones.*"))));
}

TEST(Probe, FatalCountsAsADifference) {
  const ProbeResult result =
      Probe(WithSpec(R"({"a": "x", "b": "y"})"),
            [](const RunFunctionRequest& asked, RunFunctionResponse* said) {
              if (absl::StrContains(At(asked, SpecOf("a")), " x;")) return;
              auto* const one = said->add_results();
              one->set_severity(apiextensions::fn::proto::v1::SEVERITY_FATAL);
              one->set_message("a is not x");
            });
  EXPECT_THAT(ReadOf(result), ElementsAre(SpecOf("a")));
}

TEST(Probe, AFatalAnswerCannotBeProbed) {
  FakeFunction function(
      [](const RunFunctionRequest&, RunFunctionResponse* said) {
        auto* const one = said->add_results();
        one->set_severity(apiextensions::fn::proto::v1::SEVERITY_FATAL);
        one->set_message("no such zone");
      });
  const auto result = RunProbe({WithSpec("{}")}, {}, {}, &function);
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status()));
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("no such zone"));
}

TEST(Probe, WhatVariesByItselfIsSaidAndNotCompared) {
  int calls = 0;
  const ProbeResult result = Probe(
      WithSpec(R"({"a": "x", "b": "y"})"),
      [&calls](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        Say(said, "now", absl::StrCat(++calls));
        Say(said, "a", At(asked, SpecOf("a")));
      });
  EXPECT_THAT(result.unstable, ElementsAre("desired.composite.resource.now"));
  EXPECT_THAT(ReadOf(result), ElementsAre(SpecOf("a")));
  EXPECT_TRUE(result.complete);
}

// It does so for the first time in the middle of the search.
TEST(Probe, WhatVariesLaterMakesTheSearchBeginAnew) {
  int calls = 0;
  const ProbeResult result = Probe(
      WithSpec(R"({"a": "x", "b": "y", "c": 1, "d": 2, "e": 3})"),
      [&calls](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        Say(said, "minute", absl::StrCat(++calls / 6));
        Say(said, "a", At(asked, SpecOf("a")));
      });
  EXPECT_THAT(result.unstable,
              ElementsAre("desired.composite.resource.minute"));
  EXPECT_THAT(ReadOf(result), ElementsAre(SpecOf("a")));
  EXPECT_EQ(result.restarts, 1);
}

TEST(Probe, WhatCallsDoNotReachIsUntried) {
  std::string spec;
  for (int i = 0; i < 500; ++i) {
    absl::StrAppend(&spec, i == 0 ? "" : ", ", "\"k", i, "\": \"v", i, "\"");
  }
  const auto request = WithSpec(absl::StrCat("{", spec, "}"));
  const std::vector<std::string> read = {SpecOf("k3"), SpecOf("k250"),
                                         SpecOf("k251"), SpecOf("k499")};
  for (const int calls : {3, 5, 8, 13, 21, 34}) {
    const ProbeResult result = Probe(request, Reads(read), calls);
    SCOPED_TRACE(calls);
    EXPECT_LE(result.calls, calls);
    EXPECT_FALSE(result.complete);
    EXPECT_THAT(Of(result, Result::kUntried), Not(IsEmpty()));
    // What it says is true as far as it goes.
    EXPECT_THAT(read, IsSupersetOf(ReadOf(result)));
    for (const std::string& path : read) {
      EXPECT_THAT(Of(result, Result::kUnread), Not(Contains(path)));
      EXPECT_THAT(MasksOf(result), Not(Contains(path)));
    }
  }
}

RunFunctionRequest FiveThousand() {
  std::string resources;
  for (int i = 0; i < 50; ++i) {
    std::string status;
    for (int j = 0; j < 97; ++j) {
      absl::StrAppend(&status, j == 0 ? "" : ", ", "\"f", j, "\": \"v", i,
                      "\"");
    }
    absl::StrAppend(&resources, i == 0 ? "" : ", ", "\"r", i,
                    R"(": {"resource": {"metadata": {"resourceVersion": "1"},
                    "status": {)",
                    status, "}}}");
  }
  return FromJson<RunFunctionRequest>(
      absl::StrCat(R"({"observed": {"resources": {)", resources, "}}}"));
}

std::string StatusOf(int resource, int field) {
  return absl::StrCat("observed.resources.r", resource, ".resource.status.f",
                      field);
}

TEST(ProbeHeavy, FiveThousandPathsTakeFewCalls) {
  const RunFunctionRequest request = FiveThousand();
  std::mt19937_64 random(7);
  for (int round = 0; round < 5; ++round) {
    std::set<std::string> chosen;
    while (chosen.size() < 3) {
      chosen.insert(StatusOf(random() % 50, random() % 97));
    }
    const std::vector<std::string> read(chosen.begin(), chosen.end());
    const ProbeResult result = Probe(request, Reads(read));
    EXPECT_GE(result.fields.size(), 5000u);
    EXPECT_THAT(ReadOf(result), UnorderedElementsAreArray(read));
    EXPECT_LT(result.calls, 150);
    RecordProperty(absl::StrCat("calls", round), result.calls);
    // A mask for all resources would hide a path that is read in one of them.
    for (const std::string& mask : MasksOf(result)) {
      for (const std::string& path : read) EXPECT_NE(mask, path);
    }
  }
}

TEST(ProbeHeavy, FewerWhereATraceSaysWhatVariesTogether) {
  const RunFunctionRequest request = FiveThousand();
  // Versions at every call; of each resource 5 fields at every seventh.
  Variation variation;
  for (int call = 0; call < 100; ++call) {
    std::vector<std::string> changed;
    for (int i = 0; i < 50; ++i) {
      changed.push_back(absl::StrCat("observed.resources.r", i,
                                     ".resource.metadata.resourceVersion"));
      for (int j = 0; j < 5 && call % 7 == i % 7; ++j) {
        changed.push_back(StatusOf(i, j));
      }
    }
    variation.AddCall({changed.begin(), changed.end()});
  }
  const std::vector<std::string> read = {StatusOf(8, 0), StatusOf(8, 3),
                                         StatusOf(15, 2)};
  const ProbeResult result = Probe(request, Reads(read), 1000, variation);
  EXPECT_THAT(ReadOf(result), UnorderedElementsAreArray(read));
  EXPECT_LE(result.calls, 48);
  RecordProperty("calls", result.calls);
  // What varied is proposed, most often first, and nothing that hides a read
  // path.
  ASSERT_FALSE(result.masks.empty());
  EXPECT_EQ(result.masks[0].mask, "@versions");
  EXPECT_THAT(MasksOf(result),
              Contains("observed.resources.*.resource.status.f1"));
  for (const char* path : {"f0", "f2", "f3"}) {
    EXPECT_THAT(MasksOf(result),
                Not(Contains(absl::StrCat(
                    "observed.resources.*.resource.status.", path))));
  }
}

TEST(Probe, AMaskServesAllInputs) {
  RunFunctionRequest a = WithSpec(R"({"a": "x", "b": "y", "c": "z"})");
  RunFunctionRequest b = a;
  (*a.mutable_input()->mutable_fields())["read"].set_string_value("a");
  (*b.mutable_input()->mutable_fields())["read"].set_string_value("b");
  FakeFunction function([](const RunFunctionRequest& asked,
                           RunFunctionResponse* said) {
    const std::string key = asked.input().fields().at("read").string_value();
    Say(said, key, At(asked, SpecOf(key)));
  });
  const auto result = RunProbe({a, b}, {}, {}, &function);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(ReadOf(*result), ElementsAre(SpecOf("a"), SpecOf("b")));
  EXPECT_THAT(MasksOf(*result), Contains(SpecOf("c")));
}

TEST(Probe, AFunctionThatIsGoneIsAnError) {
  class Gone : public client::FunctionCaller {
   public:
    void Call(const std::string& /*function*/,
              const RunFunctionRequest& /*request*/, absl::Time /*deadline*/,
              Done done) override {
      client::CallResult result;
      if (++calls_ > 4) result.status = absl::UnavailableError("gone");
      done(std::move(result));
    }

   private:
    int calls_ = 0;
  };
  Gone gone;
  const auto result = RunProbe({WithSpec(R"({"a": 1})")}, {}, {}, &gone);
  EXPECT_TRUE(absl::IsUnavailable(result.status())) << result.status();
}

// A caller that was put out by what was altered, and answers again.
TEST(Probe, AnErrorForAnAlteredRequestIsADifference) {
  class Picky : public client::FunctionCaller {
   public:
    void Call(const std::string& /*function*/,
              const RunFunctionRequest& request, absl::Time /*deadline*/,
              Done done) override {
      client::CallResult result;
      if (!absl::StrContains(At(request, SpecOf("a")), " x;")) {
        result.status = absl::UnavailableError("it fell over");
      }
      done(std::move(result));
    }
  };
  Picky picky;
  const auto result =
      RunProbe({WithSpec(R"({"a": "x", "b": "y"})")}, {}, {}, &picky);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(ReadOf(*result), ElementsAre(SpecOf("a")));
}

}  // namespace
}  // namespace fncache::runner::probe
