// SPDX-License-Identifier: Apache-2.0
// The search against functions that read known paths.
#include "runner/probe/probe.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/long_form.h"
#include "tests/runner/messages.h"
#include "tests/runner/probe/fake_function.h"

namespace fncache::runner::probe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::MatchesRegex;
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
    if (result.fields[i].real && result.results[i] == wanted) {
      masks.push_back(result.fields[i].mask);
    }
  }
  return masks;
}
// Fields that no request has, and that the function was found to read.
std::vector<std::string> AddedAndRead(const ProbeResult& result) {
  std::vector<std::string> masks;
  for (size_t i = 0; i < result.fields.size(); ++i) {
    if (!result.fields[i].real && result.results[i] == Result::kRead) {
      masks.push_back(result.fields[i].mask);
    }
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
  auto result = RunProbe({request}, variation, {}, options, &function);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_EQ(result->calls, function.calls());
  EXPECT_LE(result->calls, calls);
  return *std::move(result);
}

// All of `read` was found and nothing else, except lists: a function that reads
// all elements of a list depends on their number.
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

// The fields of the composite's spec; empty if there is none.
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
  // Leaves, managedFields, and nothing of what users ask for.
  EXPECT_THAT(MasksOf(result),
              IsSupersetOf({absl::StrCat(kResource, "metadata.resourceVersion"),
                            absl::StrCat(kResource, "metadata.managedFields"),
                            absl::StrCat(kResource, "metadata.generation"),
                            absl::StrCat(kResource, "metadata.name")}));
  for (const std::string& mask : MasksOf(result)) {
    EXPECT_FALSE(absl::StartsWith(mask, SpecOf(""))) << mask;
    EXPECT_NE(mask[0], '@') << mask;
    EXPECT_FALSE(absl::EndsWith(mask, ".kind")) << mask;
  }
}

// A function that reads nothing takes one call for each kind of question.
TEST(Probe, NothingReadTakesFewCalls) {
  const ProbeResult result = Probe(WithSpec(R"({"a": 1, "b": 2})"), Reads({}));
  EXPECT_THAT(ReadOf(result), IsEmpty());
  // The request, and what it would be if it were ready, twice each; altered,
  // left out, set to each of four values, and three times at random.
  EXPECT_LE(result.calls, 2 * (2 + 2 + 4 + 3));
}

// A function or a cache behind it may take equal tags for equal requests: the
// protocol allows that.
TEST(Probe, AFunctionThatRemembersAnswersByTagIsNotBelieved) {
  auto request = WithSpec(R"({"a": "x", "b": "y", "c": "z"})");
  request.mutable_meta()->set_tag(std::string(64, 'a'));
  request.mutable_meta()->add_capabilities(
      apiextensions::fn::proto::v1::CAPABILITY_CAPABILITIES);
  const FakeFunction::Answer reads = Reads({SpecOf("a"), SpecOf("c")});
  std::map<std::string, RunFunctionResponse> remembered;
  int calls = 0;
  const ProbeResult result = Probe(
      request, [&](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        ++calls;
        // All else that Crossplane says of the call stays.
        EXPECT_EQ(asked.meta().capabilities_size(), 1);
        const std::string& tag = asked.meta().tag();
        EXPECT_THAT(tag, MatchesRegex("[0-9a-f]{64}"));
        EXPECT_NE(tag, request.meta().tag());
        const auto inserted = remembered.try_emplace(tag);
        if (inserted.second) reads(asked, &inserted.first->second);
        *said = inserted.first->second;
      });
  EXPECT_THAT(ReadOf(result), ElementsAre(SpecOf("a"), SpecOf("c")));
  EXPECT_THAT(result.unstable, IsEmpty());
  EXPECT_TRUE(result.complete);
  // No two calls have a tag in common, also those of the request as it came.
  EXPECT_EQ(remembered.size(), static_cast<size_t>(calls));
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
  for (int round = 0; round < fncache::testing::FewerSanitized(200); ++round) {
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
              SayFatal(said, "a is not x");
            });
  EXPECT_THAT(ReadOf(result), ElementsAre(SpecOf("a")));
}

TEST(Probe, AFatalAnswerCannotBeProbed) {
  FakeFunction function(
      [](const RunFunctionRequest&, RunFunctionResponse* said) {
        SayFatal(said, "no such zone");
      });
  const auto result = RunProbe({WithSpec("{}")}, {}, {}, {}, &function);
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
  EXPECT_GE(result.restarts, 1);
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
    // Its findings are true, although incomplete.
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
    EXPECT_LT(result.calls, 250);
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
  EXPECT_LE(result.calls, 90);
  RecordProperty("calls", result.calls);
  // Varying paths are proposed, most frequent first, and nothing that hides a
  // read path.
  ASSERT_FALSE(result.masks.empty());
  EXPECT_EQ(result.masks[0].mask,
            "observed.resources.*.resource.metadata.resourceVersion");
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
  const auto result = RunProbe({a, b}, {}, {}, {}, &function);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(ReadOf(*result), ElementsAre(SpecOf("a"), SpecOf("b")));
  EXPECT_THAT(Of(*result, Result::kUnread), Contains(SpecOf("c")));
}

// A composite with two resources: a VPC, and subnets that wait for its
// identifier. Nothing of the request has that yet.
RunFunctionRequest Network(const std::string& vpc_status,
                           const std::string& input) {
  return FromJson<RunFunctionRequest>(absl::StrCat(
      R"({"input": )", input, R"(, "observed": {"composite": {"resource": {
      "apiVersion": "e.org/v1", "kind": "XNetwork", "metadata": {"name": "n",
      "uid": "u-1", "resourceVersion": "17", "labels": {"team": "a"}},
      "spec": {"region": "eu"}}},
      "resources": {
        "vpc": {"resource": {"apiVersion": "e.org/v1", "kind": "VPC",
          "metadata": {"name": "n-vpc", "generation": 2,
            "resourceVersion": "18"}, "status": )",
      vpc_status, R"(}},
        "subnet": {"resource": {"apiVersion": "e.org/v1", "kind": "Subnet",
          "metadata": {"name": "n-subnet", "generation": 1,
            "resourceVersion": "19"},
          "status": {"atProvider": {"lastChecked": "2026-01-01T00:00:00Z"}}}}
      }}})"));
}

const google::protobuf::Value* ValueAt(
    const RunFunctionRequest& request, const std::string& resource,
    std::initializer_list<const char*> path) {
  const auto found = request.observed().resources().find(resource);
  if (found == request.observed().resources().end()) return nullptr;
  const google::protobuf::Struct* object = &found->second.resource();
  const google::protobuf::Value* value = nullptr;
  for (const char* name : path) {
    if (value != nullptr) object = &value->struct_value();
    const auto field = object->fields().find(name);
    if (field == object->fields().end()) return nullptr;
    value = &field->second;
  }
  return value;
}

// Both resources are desired, as in a template.
void DesireBoth(RunFunctionResponse* said) {
  (*said->mutable_desired()->mutable_resources())["vpc"];
  (*said->mutable_desired()->mutable_resources())["subnet"];
}

constexpr char kVpcStatus[] =
    R"({"atProvider": {"state": "pending", "lastChecked":
        "2026-01-01T00:00:00Z"}})";
constexpr char kVpcId[] =
    "observed.resources.vpc.resource.status.atProvider.vpcId";

// The languages of templates and programs, and how they spell the path.
class ProbeAbsent : public ::testing::TestWithParam<const char*> {};

TEST_P(ProbeAbsent, AFieldThatIsWaitedForIsFoundByItsNameInTheInput) {
  const auto request =
      Network(kVpcStatus, absl::StrCat(R"({"source": ")", GetParam(), R"("})"));
  const ProbeResult result = Probe(
      request, [](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        DesireBoth(said);
        const auto* const id =
            ValueAt(asked, "vpc", {"status", "atProvider", "vpcId"});
        Say(said, "subnet", id == nullptr ? "pending" : id->string_value());
      });
  EXPECT_THAT(AddedAndRead(result), ElementsAre(kVpcId));
  EXPECT_TRUE(result.complete);
  // No object that will contain it is masked.
  EXPECT_THAT(MasksOf(result),
              Not(Contains("observed.resources.vpc.resource.status.atProvider."
                           "lastChecked")));
  EXPECT_THAT(MasksOf(result),
              Contains("observed.resources.*.resource.status.atProvider."
                       "lastChecked"));
  for (const std::string& mask : MasksOf(result)) {
    EXPECT_FALSE(absl::EndsWith(mask, "atProvider")) << mask;
    EXPECT_FALSE(absl::EndsWith(mask, "status")) << mask;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Spellings, ProbeAbsent,
    ::testing::Values(
        "{{ .observed.resources.vpc.resource.status.atProvider.vpcId }}",
        "{{ $at := (getComposedResource . 'vpc').status.atProvider }}"
        "{{ $at.vpcId }}",
        "{{ dig 'status' 'atProvider' 'vpcId' '' $vpc }}",
        "id = ocds?.vpc?.Resource?.status?.atProvider?.vpcId or 'pending'",
        "vpc['status'].get('atProvider', {}).get('vpcId', '')",
        "status.atProvider.vpcId"));

// The container is not there either.
TEST(Probe, AFieldInAnObjectThatIsNotThereIsFoundToo) {
  const auto request =
      Network("{}", R"({"fromFieldPath": "status.atProvider.vpcId"})");
  const ProbeResult result = Probe(
      request, [](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        DesireBoth(said);
        const auto* const id =
            ValueAt(asked, "vpc", {"status", "atProvider", "vpcId"});
        Say(said, "subnet", id == nullptr ? "pending" : id->string_value());
      });
  EXPECT_THAT(AddedAndRead(result), ElementsAre(kVpcId));
}

// Once the field is there, the function reads others, and desires more.
TEST(Probe, WhatIsReadOnceAFieldIsThereIsFoundToo) {
  const auto request =
      Network(kVpcStatus, R"({"source": "vpc.status.atProvider.vpcId"})");
  const ProbeResult result = Probe(request, [](const RunFunctionRequest& asked,
                                               RunFunctionResponse* said) {
    DesireBoth(said);
    if (ValueAt(asked, "vpc", {"status", "atProvider", "vpcId"}) == nullptr) {
      return Say(said, "subnet", "pending");
    }
    const auto* const state =
        ValueAt(asked, "vpc", {"status", "atProvider", "state"});
    Say(said, "subnet", state == nullptr ? "-" : state->string_value());
    (*said->mutable_desired()->mutable_resources())["gateway"];
  });
  EXPECT_THAT(AddedAndRead(result), ElementsAre(kVpcId));
  const std::string state =
      "observed.resources.vpc.resource.status.atProvider.state";
  EXPECT_THAT(ReadOf(result), Contains(state));
  EXPECT_THAT(MasksOf(result), Not(Contains(state)));
  EXPECT_THAT(result.not_probed, ElementsAre("gateway"));
  for (const std::string& mask : MasksOf(result)) {
    EXPECT_FALSE(absl::StrContains(mask, "resources.*")) << mask;
    EXPECT_NE(mask, "@times");
  }
}

// The text that is tried first makes the function fail. Fields that it reads
// once this one is a number, or a boolean, must not look unread.
TEST(Probe, AValueThatFailsHidesNothing) {
  using google::protobuf::Value;
  for (const auto wanted : {Value::kNumberValue, Value::kBoolValue}) {
    const auto request =
        Network(kVpcStatus, R"({"source": "vpc.status.atProvider.peers"})");
    const ProbeResult result = Probe(
        request,
        [wanted](const RunFunctionRequest& asked, RunFunctionResponse* said) {
          DesireBoth(said);
          const auto* const peers =
              ValueAt(asked, "vpc", {"status", "atProvider", "peers"});
          if (peers == nullptr) return Say(said, "subnet", "no peers");
          if (peers->kind_case() != wanted)
            return SayFatal(said, "no such count");
          const auto* const state =
              ValueAt(asked, "vpc", {"status", "atProvider", "state"});
          Say(said, "subnet", state == nullptr ? "-" : state->string_value());
        });
    EXPECT_THAT(AddedAndRead(result),
                ElementsAre("observed.resources.vpc.resource.status.atProvider."
                            "peers"));
    EXPECT_THAT(
        ReadOf(result),
        Contains("observed.resources.vpc.resource.status.atProvider.state"));
    EXPECT_THAT(result.failing, IsEmpty());
  }
}

// No value that is tried is a list.
TEST(Probe, AFieldThatFailsWithEveryValueIsNamed) {
  const auto request =
      Network(kVpcStatus, R"({"source": "vpc.status.atProvider.peers"})");
  const ProbeResult result = Probe(
      request, [](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        DesireBoth(said);
        const auto* const peers =
            ValueAt(asked, "vpc", {"status", "atProvider", "peers"});
        if (peers != nullptr && !peers->has_list_value()) {
          return SayFatal(said, "no list");
        }
        Say(said, "subnet", "pending");
      });
  EXPECT_THAT(
      result.failing,
      ElementsAre("observed.resources.vpc.resource.status.atProvider.peers"));
}

// With text it does not fail, however early the calls end.
TEST(Probe, AFieldThatWasNotTriedToTheEndIsNotCalledFailing) {
  const auto request =
      Network(kVpcStatus, R"({"source": "vpc.status.atProvider.vpcId"})");
  const FakeFunction::Answer answer = [](const RunFunctionRequest& asked,
                                         RunFunctionResponse* said) {
    DesireBoth(said);
    const auto* const id =
        ValueAt(asked, "vpc", {"status", "atProvider", "vpcId"});
    if (id == nullptr) return Say(said, "subnet", "pending");
    if (!id->has_string_value()) return SayFatal(said, "no text");
    Say(said, "subnet", id->string_value());
  };
  const int all = Probe(request, answer).calls;
  ASSERT_GT(all, 10);
  for (int calls = 6; calls <= all; ++calls) {
    EXPECT_THAT(Probe(request, answer, calls).failing, IsEmpty()) << calls;
  }
}

// A boolean of the composite's spec turns it on.
TEST(Probe, WhatIsReadOnceABooleanIsTrueIsFoundToo) {
  const ProbeResult result = Probe(
      WithSpec(R"({"public": false, "a": "x", "b": "y"})"),
      [](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        const auto& object = asked.observed().composite().resource().fields();
        const auto spec = object.find("spec");
        if (spec == object.end()) return;
        const auto& fields = spec->second.struct_value().fields();
        const auto on = fields.find("public");
        const bool is_on = on != fields.end() && on->second.bool_value();
        Say(said, "a", is_on ? At(asked, SpecOf("a")) : "off");
      });
  EXPECT_THAT(ReadOf(result), ElementsAre(SpecOf("a"), SpecOf("public")));
  EXPECT_THAT(Of(result, Result::kUnread), Contains(SpecOf("b")));
}

// A list of which one element is read may get that element later.
TEST(Probe, NothingOfAListThatIsReadIsMasked) {
  const auto request =
      Network(R"({"endpoints": [{"address": "10.0.0.1"}], "zones": [
          {"name": "a"}]})",
              "{}");
  const ProbeResult result = Probe(request, [](const RunFunctionRequest& asked,
                                               RunFunctionResponse* said) {
    DesireBoth(said);
    const auto* const list = ValueAt(asked, "vpc", {"status", "endpoints"});
    if (list == nullptr || list->list_value().values_size() < 2) return;
    const auto& fields = list->list_value().values(1).struct_value().fields();
    const auto found = fields.find("address");
    Say(said, "second",
        found == fields.end() ? "-" : found->second.string_value());
  });
  const std::string status = "observed.resources.vpc.resource.status.";
  EXPECT_THAT(ReadOf(result), Contains(status + "endpoints"));
  EXPECT_THAT(MasksOf(result), Not(Contains(status + "endpoints.*.address")));
  EXPECT_THAT(MasksOf(result), Contains(status + "zones.*.name"));
}

// A word that the field has not had yet.
TEST(Probe, AFieldIsSetToWhatTheInputComparesItWith) {
  const auto request = Network(
      kVpcStatus,
      R"({"source": "{{ if eq $vpc.status.atProvider.state \"available\" }}"})");
  const std::string state =
      "observed.resources.vpc.resource.status.atProvider.state";
  const ProbeResult result = Probe(
      request, [](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        DesireBoth(said);
        const auto* const value =
            ValueAt(asked, "vpc", {"status", "atProvider", "state"});
        const bool available =
            value != nullptr && value->string_value() == "available";
        Say(said, "subnet", available ? "created" : "pending");
      });
  EXPECT_THAT(ReadOf(result), ElementsAre(state));
  EXPECT_THAT(MasksOf(result), Not(Contains(state)));
}

// Another request of the trace has a value that this one does not have.
TEST(Probe, AFieldIsSetToWhatOtherRequestsHave) {
  const auto request = Network(kVpcStatus, "{}");
  Knowledge knowledge;
  knowledge.seen.Add(Network(
      R"({"atProvider": {"state": "available", "zone": "eu-1"}})", "{}"));
  FakeFunction function(
      [](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        DesireBoth(said);
        const auto* const state =
            ValueAt(asked, "vpc", {"status", "atProvider", "state"});
        const auto* const zone =
            ValueAt(asked, "vpc", {"status", "atProvider", "zone"});
        const bool available =
            state != nullptr && state->string_value() == "available";
        Say(said, "subnet", available ? "created" : "pending");
        Say(said, "zone", zone == nullptr ? "" : zone->string_value());
      });
  const auto result = RunProbe({request}, {}, knowledge, {}, &function);
  ASSERT_TRUE(result.ok()) << result.status();
  const std::string at = "observed.resources.vpc.resource.status.atProvider.";
  EXPECT_THAT(ReadOf(*result), ElementsAre(at + "state"));
  EXPECT_THAT(AddedAndRead(*result), ElementsAre(at + "zone"));
}

TEST(Probe, ASchemaNamesFieldsThatAreNotThere) {
  const auto request = Network(kVpcStatus, "{}");
  Knowledge knowledge;
  knowledge.schemas.push_back(FromJson<google::protobuf::Struct>(R"({
      "x-kubernetes-group-version-kind": [
        {"group": "e.org", "version": "v1", "kind": "VPC"}],
      "properties": {"status": {"properties": {"atProvider": {"properties": {
        "vpcId": {"type": "string"}, "routes": {"type": "integer"}}}}}}})"));
  FakeFunction function(
      [](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        DesireBoth(said);
        const auto* const id =
            ValueAt(asked, "vpc", {"status", "atProvider", "vpcId"});
        Say(said, "subnet", id == nullptr ? "pending" : id->string_value());
      });
  const auto result = RunProbe({request}, {}, knowledge, {}, &function);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(AddedAndRead(*result), ElementsAre(kVpcId));
}

// As function-auto-ready: no field of a resource that is not ready matters
// unless all others are as they should be.
void AutoReady(const RunFunctionRequest& asked, RunFunctionResponse* said) {
  for (const auto& [name, resource] : asked.observed().resources()) {
    const auto* const generation =
        ValueAt(asked, name, {"metadata", "generation"});
    bool ready = false;
    if (const auto* const conditions =
            ValueAt(asked, name, {"status", "conditions"})) {
      for (const auto& one : conditions->list_value().values()) {
        const auto& fields = one.struct_value().fields();
        const auto of = [&fields](const char* key) {
          const auto found = fields.find(key);
          return found == fields.end() ? google::protobuf::Value()
                                       : found->second;
        };
        if (of("type").string_value() != "Ready" ||
            of("status").string_value() != "True") {
          continue;
        }
        ready =
            generation == nullptr || of("observedGeneration").number_value() ==
                                         generation->number_value();
      }
    }
    (*said->mutable_desired()->mutable_resources())[name].set_ready(
        ready ? apiextensions::fn::proto::v1::READY_TRUE
              : apiextensions::fn::proto::v1::READY_UNSPECIFIED);
  }
}

// The state of the resources, when they are asked about, makes no difference.
TEST(Probe, WhatAutoReadyComparesIsReadWhereNothingIsReady) {
  for (const char* status :
       {R"({})", R"({"conditions": []})",
        R"({"conditions": [{"type": "Synced", "status": "True",
            "observedGeneration": 2}]})",
        R"({"conditions": [{"type": "Ready", "status": "False",
            "observedGeneration": 1}]})",
        R"({"conditions": [{"type": "Ready", "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 2}]})"}) {
    SCOPED_TRACE(status);
    const ProbeResult result = Probe(Network(status, "{}"), AutoReady);
    EXPECT_TRUE(result.complete);
    for (const std::string& mask : MasksOf(result)) {
      for (const char* compared :
           {"generation", "observedGeneration", "conditions.*.status",
            "conditions.*.type"}) {
        EXPECT_FALSE(absl::EndsWith(mask, compared)) << mask;
      }
      EXPECT_NE(mask, "@versions");
    }
    EXPECT_THAT(MasksOf(result),
                Contains("observed.resources.*.resource.metadata."
                         "resourceVersion"));
  }
}

// As function-auto-ready checks a StatefulSet: four numbers and two revisions,
// of which none matters while any other is not as it should be.
TEST(Probe, WhatASetIsReadyByIsReadWhileItIsNotReady) {
  const auto request = FromJson<RunFunctionRequest>(R"({"observed": {
      "resources": {"set": {"resource": {"apiVersion": "apps/v1",
      "kind": "StatefulSet", "metadata": {"name": "s", "generation": 4,
      "resourceVersion": "9"}, "spec": {"replicas": 3}, "status": {
      "readyReplicas": 1, "currentReplicas": 2, "currentRevision": "s-1",
      "updateRevision": "s-2", "collisionCount": 0}}}}}})");
  const std::string status = "observed.resources.set.resource.status.";
  const ProbeResult result = Probe(
      request, [](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        const auto at = [&asked](std::initializer_list<const char*> path) {
          const auto* const value = ValueAt(asked, "set", path);
          return value == nullptr ? google::protobuf::Value() : *value;
        };
        const double replicas = at({"spec", "replicas"}).number_value();
        const std::string revision =
            at({"status", "currentRevision"}).string_value();
        const bool ready =
            at({"status", "readyReplicas"}).number_value() == replicas &&
            at({"status", "currentReplicas"}).number_value() == replicas &&
            !revision.empty() &&
            revision == at({"status", "updateRevision"}).string_value();
        (*said->mutable_desired()->mutable_resources())["set"];
        Say(said, "ready", ready ? "yes" : "no");
      });
  EXPECT_THAT(
      ReadOf(result),
      IsSupersetOf({status + "readyReplicas", status + "currentReplicas",
                    status + "currentRevision", status + "updateRevision",
                    std::string("observed.resources.set.resource.spec."
                                "replicas")}));
  EXPECT_THAT(MasksOf(result),
              Contains("observed.resources.*.resource.status.collisionCount"));
}

// It is unknown which paths the function reads of a resource that does not
// exist.
TEST(Probe, MasksNameResourcesWhereOneIsNotObserved) {
  const auto request = Network(kVpcStatus, "{}");
  const auto answer = [](const RunFunctionRequest&, RunFunctionResponse* said) {
    DesireBoth(said);
    (*said->mutable_desired()->mutable_resources())["later"];
  };
  const ProbeResult result = Probe(request, answer);
  EXPECT_THAT(result.not_probed, ElementsAre("later"));
  for (const std::string& mask : MasksOf(result)) {
    EXPECT_FALSE(absl::StartsWith(mask, "observed.resources.*")) << mask;
  }
  EXPECT_THAT(
      MasksOf(result),
      IsSupersetOf({"observed.resources.vpc.resource.metadata.resourceVersion",
                    "observed.resources.subnet.resource.metadata."
                    "resourceVersion"}));
  // Nor of one that other requests of the trace had.
  Knowledge knowledge;
  RunFunctionRequest other = request;
  (*other.mutable_observed()->mutable_resources())["third"] =
      other.observed().resources().at("vpc");
  knowledge.seen.Add(other);
  FakeFunction function([](const RunFunctionRequest&,
                           RunFunctionResponse* said) { DesireBoth(said); });
  const auto third = RunProbe({request}, {}, knowledge, {}, &function);
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_THAT(third->not_probed, ElementsAre("third"));
}

// One that answers otherwise to any field that is new costs a few calls only.
TEST(Probe, AFunctionThatTakesAnyNewFieldForADifferenceIsProbedAllTheSame) {
  std::string names;
  for (int i = 0; i < 200; ++i) absl::StrAppend(&names, " .x.name", i);
  const auto request =
      Network(kVpcStatus, absl::StrCat(R"({"source": ")", names, R"("})"));
  const ProbeResult result = Probe(
      request, [](const RunFunctionRequest& asked, RunFunctionResponse* said) {
        DesireBoth(said);
        const auto* const at = ValueAt(asked, "vpc", {"status", "atProvider"});
        Say(said, "fields",
            absl::StrCat(at == nullptr ? 0 : at->struct_value().fields_size()));
      });
  EXPECT_TRUE(result.complete);
  EXPECT_FALSE(result.guesses_complete);
  EXPECT_THAT(MasksOf(result),
              Contains("observed.resources.*.resource.metadata."
                       "resourceVersion"));
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
  const auto result = RunProbe({WithSpec(R"({"a": 1})")}, {}, {}, {}, &gone);
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
      RunProbe({WithSpec(R"({"a": "x", "b": "y"})")}, {}, {}, {}, &picky);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(ReadOf(*result), ElementsAre(SpecOf("a")));
}

}  // namespace
}  // namespace fncache::runner::probe
