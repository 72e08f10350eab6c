// SPDX-License-Identifier: Apache-2.0
// The rules of values and documents (SDK design, sections 2 and 3).
#include "fncache/function/value.h"

#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/sdk/model/documents.h"

namespace fncache::sdk {
namespace {

using function::Apply;
using function::Base64;
using function::ChildName;
using function::Concat;
using function::Field;
using function::IntOrString;
using function::Json;
using function::kNull;
using function::List;
using function::Map;
using function::Value;
using function::Yaml;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ValueTest : public ::testing::Test {
 protected:
  Value Observed(absl::string_view yaml) {
    return Documents::Of(documents_.Observed("vpc", yaml));
  }
  std::vector<std::string>& errors() { return documents_.errors; }

  Documents documents_;
};

TEST_F(ValueTest, AnAbsentFieldIsNoErrorUntilItsValueIsTaken) {
  const Value vpc = Observed("status: {id: vpc-1}");
  EXPECT_FALSE(vpc["status"]["arn"].as<std::string>());
  EXPECT_EQ(vpc["status"]["arn"].as<std::string>().value_or("none"), "none");
  EXPECT_THAT(errors(), IsEmpty());
  EXPECT_EQ(vpc["status"]["arn"].as<std::string>().value(), "");
  EXPECT_THAT(errors(),
              ElementsAre("observed.resources.vpc.status.arn is needed"));
}

TEST_F(ValueTest, AFieldOfABooleanIsTrueWhenItIsThereAndTrue) {
  const Value vpc = Observed("{yes: true, no: false, none: null}");
  EXPECT_TRUE(static_cast<bool>(vpc["true"].as<bool>()));
  EXPECT_FALSE(static_cast<bool>(vpc["false"].as<bool>()));
  EXPECT_TRUE(vpc["false"].as<bool>().has_value());
  EXPECT_FALSE(static_cast<bool>(vpc["none"].as<bool>()));
  EXPECT_TRUE(vpc["none"].as<bool>().is_null());
  EXPECT_THAT(errors(), IsEmpty());
}

TEST_F(ValueTest, AnotherTypeIsFatalWithPathAndBothTypes) {
  const Value vpc =
      Observed("{text: x, number: 1.5, list: [1], object: {a: 1}, flag: true}");
  const struct {
    std::string want;
    void (*read)(const Value&);
  } cases[] = {
      {"text: must be a number, is text",
       [](const Value& v) { v["text"].as<double>().value(); }},
      {"number: must be a whole number, is a number",
       [](const Value& v) { v["number"].as<int64_t>().value(); }},
      {"list: must be text, is a list",
       [](const Value& v) { v["list"].as<std::string>().value(); }},
      {"object: must be a boolean, is an object",
       [](const Value& v) { v["object"].as<bool>().value_or(true); }},
      {"flag: must be a whole number or text, is a boolean",
       [](const Value& v) { v["flag"].as<IntOrString>().value(); }},
      {"text: must be a list, is text",
       [](const Value& v) { v["text"].size(); }},
      {"list: must be an object, is a list",
       [](const Value& v) { v["list"].keys(); }},
      {"text: must be an object, is text",
       [](const Value& v) { v["text"]["below"].has_value(); }},
  };
  for (const auto& one : cases) {
    errors().clear();
    one.read(vpc);
    ASSERT_FALSE(errors().empty()) << one.want;
    EXPECT_EQ(errors()[0], "observed.resources.vpc." + one.want);
  }
}

TEST_F(ValueTest, ABrokenOrTooDeepDocumentIsFatalWhenItIsAccessed) {
  Document* const broken = documents_.Absent("vpc");
  broken->SetBytes("\x0a\xff");
  EXPECT_THAT(errors(), IsEmpty());
  EXPECT_FALSE(Documents::Of(broken)["spec"].has_value());
  EXPECT_EQ(errors()[0],
            "observed.resources.vpc: is broken: no Struct of protobuf");
  for (const int depth : {kMaxDepth, kMaxDepth + 1}) {
    google::protobuf::Struct root;
    google::protobuf::Struct* at = &root;
    for (int i = 1; i < depth; ++i) {
      at = (*at->mutable_fields())["a"].mutable_struct_value();
    }
    Document* const deep = documents_.Absent("deep");
    deep->SetBytes(documents_.arena()->Keep(root.SerializeAsString()));
    errors().clear();
    EXPECT_EQ(Documents::Of(deep)["a"].has_value(), depth == kMaxDepth);
    EXPECT_EQ(errors().empty(), depth == kMaxDepth);
  }
  EXPECT_EQ(errors()[0],
            "observed.resources.deep: is nested deeper than 330 levels");
}

TEST_F(ValueTest, PiecesJoinAsProtobufJoinsThem) {
  google::protobuf::Struct a = StructOf("{x: {a: 1, b: 1}, y: [1]}");
  const google::protobuf::Struct b = StructOf("{x: {b: 2}, z: t}");
  const std::string bytes = a.SerializeAsString() + b.SerializeAsString();
  google::protobuf::Struct joined;
  ASSERT_TRUE(joined.ParseFromString(bytes));
  Document* const document = documents_.Absent("r");
  document->SetBytes(bytes);
  Document* const desired = documents_.Desired("r");
  const Value read = Documents::Of(document);
  for (const std::string& key : read.keys()) {
    Documents::Of(desired)[key] = read[key];
  }
  google::protobuf::Value value;
  *value.mutable_struct_value() = joined;
  EXPECT_EQ(Documents::Emitted(desired), text::ToJsonText(value));
}

TEST_F(ValueTest, OnlyWhatWasSetIsEmitted) {
  Document* const bucket = documents_.Desired("bucket");
  Value spec = Documents::Of(bucket)["spec"];
  EXPECT_FALSE(spec["read"]["only"].has_value());
  spec["set"] = 5;
  spec["final"] = Documents::Of(documents_.Composite("{}"))["spec"]["none"];
  EXPECT_EQ(Documents::Emitted(bucket), R"({"spec":{"set":5}})");
}

TEST_F(ValueTest, ObjectsMergeWithEarlierStepsAndAnythingElseReplaces) {
  Document* const bucket = documents_.Desired(
      "bucket", "{spec: {a: 1, b: {c: 2, d: 3}, l: [1, 2]}, kind: Bucket}");
  Value root = Documents::Of(bucket);
  root["spec"]["b"]["c"] = "new";
  root["spec"]["l"] = {7};
  root["spec"]["more"]["x"] = true;
  EXPECT_EQ(root["spec"]["b"]["d"].as<int64_t>().value(), 3);
  EXPECT_EQ(
      Documents::Emitted(bucket),
      R"({"kind":"Bucket","spec":{"a":1,"b":{"c":"new","d":3},"l":[7],"more":{"x":true}}})");
}

TEST_F(ValueTest, AnAssignedObjectMergesWithEarlierStepsAndReplacesOwn) {
  Document* const bucket =
      documents_.Desired("bucket", "{spec: {a: 1, b: {c: 2}}}");
  Value root = Documents::Of(bucket);
  root["spec"]["own"] = 1;
  root["spec"] = Yaml("{b: {d: 4}}");
  EXPECT_EQ(Documents::Emitted(bucket),
            R"({"spec":{"a":1,"b":{"c":2,"d":4}}})");
}

TEST_F(ValueTest, AddAppendsToTheListOfEarlierSteps) {
  Document* const bucket =
      documents_.Desired("bucket", "{spec: {l: [{a: 1}, {a: 2}]}}");
  Value list = Documents::Of(bucket)["spec"]["l"];
  const Value second = list[1];
  list.add()["a"] = 3;
  EXPECT_EQ(list.size(), 3u);
  Value first = list[0];
  first["b"] = second["a"];
  EXPECT_EQ(Documents::Emitted(bucket),
            R"({"spec":{"l":[{"a":1,"b":2},{"a":2},{"a":3}]}})");
}

TEST_F(ValueTest, ClearRemovesAlsoWhatAnEarlierStepSet) {
  Document* const bucket = documents_.Desired(
      "bucket", "{spec: {a: 1, b: {c: 2}}, metadata: {labels: {x: y}}}");
  Value root = Documents::Of(bucket);
  root["spec"]["a"].clear();
  root["spec"]["never"]["there"].clear();
  root["metadata"]["labels"]["x"].clear();
  root["spec"]["b"].clear();
  root["spec"]["b"]["new"] = 1;
  EXPECT_FALSE(root["spec"]["a"].has_value());
  EXPECT_EQ(Documents::Emitted(bucket),
            R"({"metadata":{"labels":{}},"spec":{"b":{"new":1}}})");
}

TEST_F(ValueTest, NullIsWrittenOnlyAsNull) {
  Document* const bucket = documents_.Desired("bucket");
  Documents::Of(bucket)["spec"]["a"] = kNull;
  EXPECT_EQ(Documents::Emitted(bucket), R"({"spec":{"a":null}})");
}

TEST_F(ValueTest, AWriteThroughObservedIsFatal) {
  Value vpc = Observed("spec: {a: 1}");
  const Value absent = Documents::Of(documents_.Composite("{}"))["absent"];
  vpc["spec"]["a"] = 2;
  vpc["spec"]["a"] = absent;
  vpc["spec"].merge(absent);
  vpc["spec"]["a"] = vpc["none"].as<std::string>().optional();
  vpc["spec"]["a"].as<std::string>() = absent.as<std::string>();
  EXPECT_THAT(errors(),
              ElementsAre("observed.resources.vpc.spec.a: is read-only",
                          "observed.resources.vpc.spec.a: is read-only",
                          "observed.resources.vpc.spec: is read-only",
                          "observed.resources.vpc.spec.a: is read-only",
                          "observed.resources.vpc.spec.a: is read-only"));
}

TEST_F(ValueTest, AnAbsentObservedFieldIsAwaitedAndLeftOut) {
  Document* const subnet = documents_.Desired("subnet", "{spec: {vpcId: old}}");
  Value root = Documents::Of(subnet);
  root["spec"]["vpcId"] = Observed("{}")["status"]["vpcId"];
  const std::vector<Wait> waits = WaitsOf(subnet->root());
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(PathInDocument(waits[0].target), "spec.vpcId");
  EXPECT_EQ(SourceName(waits[0].sources[0]), "vpc.status.vpcId");
  EXPECT_EQ(Documents::Emitted(subnet), R"({"spec":{}})");
}

TEST_F(ValueTest, AnAwaitedFieldKeepsWhatTheResourceHas) {
  Document* const subnet =
      documents_.Desired("subnet", "{spec: {vpcId: old, other: 1}}");
  Document* const has =
      documents_.Observed("subnet", "{spec: {vpcId: vpc-1, l: [{a: x}]}}");
  const Value absent = Observed("{}")["status"];
  Value root = Documents::Of(subnet);
  root["spec"]["vpcId"] = absent["vpcId"];
  root["spec"]["none"]["x"] = absent["none"];
  root["spec"]["l"] = {1};
  root["spec"]["l"][0]["a"] = absent["a"];
  std::vector<const Node*> kept;
  EXPECT_EQ(Documents::Emitted(subnet, has, &kept),
            R"({"spec":{"l":[{"a":"x"}],"other":1,"vpcId":"vpc-1"}})");
  std::vector<std::string> names;
  for (const Node* const node : kept) names.push_back(PathInDocument(node));
  EXPECT_THAT(names, ElementsAre("spec.l", "spec.none.x", "spec.vpcId"));
}

TEST_F(ValueTest, AnObjectThatIsAwaitedKeepsTheRestOfTheObserved) {
  Document* const subnet = documents_.Desired("subnet");
  Document* const has =
      documents_.Observed("subnet", "{spec: {tags: {a: x, b: y}}}");
  Value root = Documents::Of(subnet);
  root["spec"]["tags"] = Observed("{}")["status"]["tags"];
  root["spec"]["tags"]["b"] = "own";
  EXPECT_EQ(Documents::Emitted(subnet, has),
            R"({"spec":{"tags":{"a":"x","b":"own"}}})");
}

TEST_F(ValueTest, AssigningOverAnAwaitedValueShowsEarlierStepsAgain) {
  Document* const subnet = documents_.Desired("subnet", "{spec: {a: 1}}");
  Value root = Documents::Of(subnet);
  root["spec"] = Observed("{}")["status"]["spec"];
  root["spec"] = Yaml("{b: 2}");
  EXPECT_THAT(WaitsOf(subnet->root()), IsEmpty());
  EXPECT_EQ(Documents::Emitted(subnet), R"({"spec":{"a":1,"b":2}})");
}

TEST_F(ValueTest, AnAbsentFieldOfTheCompositeLeavesTheTargetAlone) {
  Document* const bucket = documents_.Desired("bucket", "{spec: {a: 1}}");
  Value root = Documents::Of(bucket);
  root["spec"]["a"] = Documents::Of(documents_.Composite("{}"))["spec"]["a"];
  EXPECT_THAT(WaitsOf(bucket->root()), IsEmpty());
  EXPECT_EQ(Documents::Emitted(bucket), R"({"spec":{"a":1}})");
}

TEST_F(ValueTest, AnOptionalValueIsSetIfItIsThere) {
  Document* const bucket = documents_.Desired("bucket");
  Value root = Documents::Of(bucket);
  const Value vpc = Observed("status: {id: x}");
  root["there"] = vpc["status"]["id"].as<std::string>().optional();
  root["absent"] = vpc["status"]["arn"].as<std::string>().optional();
  EXPECT_THAT(WaitsOf(bucket->root()), IsEmpty());
  EXPECT_EQ(Documents::Emitted(bucket), R"({"there":"x"})");
}

TEST_F(ValueTest, ACopyOfAnObjectIsDeepAndHasItsAwaitedFields) {
  Document* const one = documents_.Desired("one");
  Document* const other = documents_.Desired("other");
  Value from = Documents::Of(one)["spec"];
  from["a"]["b"] = 1;
  from["a"]["c"] = Observed("{}")["status"]["id"];
  Documents::Of(other)["spec"] = from;
  from["a"]["b"] = 2;
  EXPECT_EQ(WaitsOf(other->root()).size(), 1u);
  EXPECT_EQ(Documents::Emitted(other), R"({"spec":{"a":{"b":1}}})");
}

TEST_F(ValueTest, ObservedStateIsNotCopiedAsAWhole) {
  const Value vpc = Observed("{metadata: {name: x}, status: {id: y}}");
  for (const char* const field : {"", "metadata", "status"}) {
    errors().clear();
    Document* const copy = documents_.Desired("copy");
    Value root = Documents::Of(copy);
    if (*field == '\0') {
      root = vpc;
    } else {
      root[field] = vpc[field];
    }
    EXPECT_EQ(errors().size(), 1u) << field;
    EXPECT_EQ(Documents::Emitted(copy), "{}");
  }
}

TEST_F(ValueTest, AComputedValueIsAwaitedWithTheSourcesOfItsInputs) {
  const Value vpc = Observed("status: {id: vpc-1}");
  const auto id = vpc["status"]["id"].as<std::string>();
  const auto arn = vpc["status"]["arn"].as<std::string>();
  const auto both =
      Apply([](const std::string& a, const std::string& b) { return a + b; },
            id, arn);
  EXPECT_FALSE(both.has_value());
  EXPECT_THAT(both.sources(), ElementsAre("vpc.status.id", "vpc.status.arn"));
  Document* const desired = documents_.Desired("d");
  Documents::Of(desired)["x"] = both;
  Documents::Of(desired)["y"] = Concat("for ", arn);
  Documents::Of(desired)["z"] = Concat(id, "-", 5, true, 1.5);
  const std::vector<Wait> waits = WaitsOf(desired->root());
  ASSERT_EQ(waits.size(), 2u);
  // Only the sources that are absent.
  ASSERT_EQ(waits[0].sources.size(), 1u);
  EXPECT_EQ(SourceName(waits[0].sources[0]), "vpc.status.arn");
  EXPECT_EQ(Documents::Emitted(desired), R"({"z":"vpc-1-5true1.5"})");
}

TEST_F(ValueTest, ValuesThatNoDocumentHoldsAreFatalWithThePath) {
  Document* const desired = documents_.Desired("d");
  Value root = Documents::Of(desired);
  root["a"] = (int64_t{1} << 53) + 1;
  root["b"] = std::nan("");
  root["c"] = std::numeric_limits<double>::infinity();
  root["d"] = "\xff";
  root["e"] = Concat("x", std::nan(""));
  root["f"] = std::numeric_limits<uint64_t>::max();
  root["g"] = int64_t{1} << 53;
  root["h"] = IntOrString(std::numeric_limits<uint64_t>::max());
  EXPECT_THAT(errors(),
              ElementsAre("desired.resources.d.a: must be a whole number from "
                          "-9007199254740992 to 9007199254740992",
                          "desired.resources.d.b: must be a finite number",
                          "desired.resources.d.c: must be a finite number",
                          "desired.resources.d.d: must be UTF-8",
                          "desired.resources.d.e: must be a finite number",
                          "desired.resources.d.f: must be a whole number from "
                          "-9007199254740992 to 9007199254740992",
                          "desired.resources.d.h: must be a whole number from "
                          "-9007199254740992 to 9007199254740992"));
  EXPECT_EQ(Documents::Emitted(desired), R"({"g":9007199254740992})");
}

TEST_F(ValueTest, ANumberThatIsNotFiniteIsNotCopied) {
  google::protobuf::Struct bytes;
  (*bytes.mutable_fields())["x"].set_number_value(
      std::numeric_limits<double>::infinity());
  Document* const vpc = documents_.Absent("vpc");
  vpc->SetBytes(documents_.arena()->Keep(bytes.SerializeAsString()));
  Value root = Documents::Of(documents_.Desired("d"));
  root["a"] = Documents::Of(vpc)["x"];
  root["b"] = Json(Documents::Of(vpc)["x"]);
  EXPECT_THAT(errors(),
              ElementsAre("desired.resources.d.a: must be a finite number",
                          "desired.resources.d.b: must be a finite number"));
}

TEST_F(ValueTest, ADocumentKeepsTheErrorOfAWriteOutsideACall) {
  Value value;
  {
    const WithReporter none(nullptr);
    value["ok"] = 1;
    value["big"] = int64_t{1} << 60;
    value["text"] = "\xff";
  }
  EXPECT_THAT(errors(), IsEmpty());
  Documents::Of(documents_.Desired("d"))["x"] = value;
  ASSERT_FALSE(errors().empty());
  EXPECT_EQ(errors()[0],
            "big: must be a whole number from -9007199254740992 to "
            "9007199254740992");
}

TEST_F(ValueTest, JsonIsCompactWithSortedKeys) {
  const Value yaml = Yaml("{b: [1, 2.5, null], a: {y: x, c: true}}");
  EXPECT_EQ(Json(yaml).value(),
            R"({"a":{"c":true,"true":"x"},"b":[1,2.5,null]})");
  EXPECT_EQ(Base64(Json(yaml["b"])).value(), "WzEsMi41LG51bGxd");
  EXPECT_FALSE(Json(Observed("{}")["status"]).has_value());
  EXPECT_THAT(Json(Observed("{}")["status"]).sources(),
              ElementsAre("vpc.status"));
}

TEST_F(ValueTest, ConcatSpellsNumbersAsJsonDoes) {
  for (const double number : {0.0001, 1e-7, 1e15, 9007199254740991.0, -0.0, 1.5,
                              -3.0, 1e22, 123456789012345678.0}) {
    Value value;
    value = number;
    EXPECT_EQ(Concat(number).value(), Json(value).value());
    EXPECT_EQ(Concat(value).value(), Json(value).value());
  }
  EXPECT_EQ(Concat(1e15, " ", 9007199254740991.0, " ", 0.0001).value(),
            "1000000000000000 9007199254740991 0.0001");
}

TEST_F(ValueTest, BrokenYamlIsFatal) {
  Document* const desired = documents_.Desired("d");
  Documents::Of(desired)["x"] = Yaml("{");
  ASSERT_FALSE(errors().empty());
  EXPECT_EQ(errors()[0].substr(0, 6), "Yaml: ");
  errors().clear();
  Documents::Of(desired)["x"] = Yaml("{a: [18446744073709551616.5, .nan]}");
  ASSERT_FALSE(errors().empty());
  EXPECT_EQ(errors()[0], "Yaml: a[1]: must be a finite number");
  for (const char* const number : {"9007199254740993", "-9007199254740993"}) {
    errors().clear();
    Documents::Of(desired)["x"] = Yaml(absl::StrCat("a: ", number));
    ASSERT_FALSE(errors().empty());
    EXPECT_EQ(errors()[0],
              "Yaml: a: must be a whole number from -9007199254740992 to "
              "9007199254740992");
  }
  errors().clear();
  Documents::Of(desired)["x"] =
      Yaml("[9007199254740992, -9007199254740992, 1e300]");
  EXPECT_THAT(errors(), IsEmpty());
}

TEST_F(ValueTest, BrokenYamlIsNotShown) {
  Document* const desired = documents_.Desired("d");
  const std::pair<const char*, const char*> texts[] = {
      {"a: *hunter2", "Yaml: the text is no YAML"},
      {"a: &hunter2 [*hunter2]", "Yaml: the text is no YAML"},
      {"a: !!int hunter2", "Yaml: the text is no YAML"},
      {"a: 1\n{hunter2", "Yaml: the text is no YAML, line 3"},
  };
  for (const auto& [text, error] : texts) {
    errors().clear();
    Documents::Of(desired)["x"] = Yaml(text);
    ASSERT_FALSE(errors().empty()) << text;
    EXPECT_EQ(errors()[0], error);
  }
}

TEST_F(ValueTest, AChildNameIsADnsLabel) {
  EXPECT_EQ(ChildName({"xr", "bucket"}).value(), "xr-bucket");
  const std::string cut = ChildName({std::string(80, 'a'), "b"}).value();
  EXPECT_EQ(cut.size(), 63u);
  EXPECT_NE(cut, ChildName({std::string(80, 'a'), "c"}).value());
  const std::string odd = ChildName({"My_Xr", "-"}).value();
  EXPECT_EQ(odd.substr(0, 6), "my-xr-");
  EXPECT_FALSE(ChildName({"a", Observed("{}")["x"]}).has_value());
}

TEST_F(ValueTest, ListsAndMapsOfModels) {
  Document* const desired = documents_.Desired("d", "{m: {b: 1, a: 2}}");
  Map<int64_t> map(function::internal::Ref(ChildOf(desired->root(), "m")));
  map["c"] = 3;
  map.erase("b");
  EXPECT_THAT(map.keys(), ElementsAre("a", "c"));
  List<std::string> list(
      function::internal::Ref(ChildOf(desired->root(), "l")));
  list = {"x", "y"};
  list.push_back("z");
  std::string all;
  for (const Field<std::string> one : list) all += one.value();
  EXPECT_EQ(all, "xyz");
  list[5] = "beyond";
  EXPECT_THAT(errors(), ElementsAre("desired.resources.d.l[5]: the list has 3 "
                                    "elements"));
  EXPECT_EQ(Documents::Emitted(desired),
            R"({"l":["x","y","z"],"m":{"a":2,"c":3}})");
}

TEST_F(ValueTest, EveryReadIsKnown) {
  Document* const vpc = documents_.Observed(
      "my vpc",
      "{status: {id: x, l: [{a: 1}, {a: 2}], o: {p: 1}}, spec: {n: [1]}}");
  const Value root = Documents::Of(vpc);
  root["status"]["id"].as<std::string>().value();
  root["status"]["absent"]["x"].has_value();
  for (size_t i = 0; i < root["status"]["l"].size(); ++i) {
    root["status"]["l"][i]["a"].as<int64_t>().value();
  }
  root["status"]["o"].keys();
  root["spec"]["n"].size();
  std::set<std::string> reads;
  AddReads(vpc, &reads);
  EXPECT_THAT(
      reads,
      ElementsAre(R"(observed.resources."my vpc".resource.spec.n)",
                  R"(observed.resources."my vpc".resource.status.absent.x)",
                  R"(observed.resources."my vpc".resource.status.id)",
                  R"(observed.resources."my vpc".resource.status.l.*.a)",
                  R"(observed.resources."my vpc".resource.status.o)"));
}

TEST_F(ValueTest, HandlesThatWereMovedAreStillHandles) {
  Value a, b;
  a["x"] = 1;
  b["x"] = 2;
  std::swap(a, b);
  EXPECT_EQ(a["x"], 2);
  Value c = std::move(a);
  c["y"] = 3;
  EXPECT_EQ(a["y"], 3);  // NOLINT(bugprone-use-after-move)
}

// Handles of a document that stands alone, taken before the path is there.
TEST_F(ValueTest, AbsentPathsOfADocumentThatStandsAloneCanBeSet) {
  Value value;
  const Value early = value["o"]["x"];
  Value same = value["o"]["x"];
  EXPECT_FALSE(early.has_value());
  EXPECT_TRUE(value.keys().empty());
  same = 1;
  EXPECT_EQ(early, 1);
  EXPECT_EQ(value["o"]["x"], 1);
  value["o"]["a"] = 0;
  EXPECT_THAT(value["o"].keys(), ElementsAre("a", "x"));
  Value first = value["l"][0], second = value["l"][1];
  value["l"].add("p");
  EXPECT_EQ(first, "p");
  second = "q";
  EXPECT_EQ(value["l"].size(), 2u);
  EXPECT_EQ(value["l"][1], "q");
  EXPECT_EQ(function::Json(value).value(),
            R"({"l":["p","q"],"o":{"a":0,"x":1}})");
}

TEST_F(ValueTest, AnElementThatIsSetAgainIsNoOtherOne) {
  Value list = function::Yaml("[1, 2]");
  Value first = list[0];
  first.clear();
  Value second = list[1];
  first = 5;
  list.clear();
  list.add(1);
  second = 7;
  list[0].clear();
  EXPECT_EQ(function::Json(list).value(), "[7]");
  EXPECT_FALSE(list[1].has_value());
  list[1] = 9;
  EXPECT_EQ(function::Json(list).value(), "[7,9]");
}

// Tables of defaults, which functions on all threads read.
TEST_F(ValueTest, ThreadsReadOneDocument) {
  const Value table = function::Yaml("{eu: {zones: [a, b]}, us: {zones: [c]}}");
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&table, thread] {
      for (int i = 0; i < 500; ++i) {
        const std::string region = absl::StrCat("r", (i + thread) % 200);
        Value own;
        own["zone"] =
            table[region]["zones"][0].as<std::string>().value_or("none");
        own["zones"] = table["eu"]["zones"];
        own["far"] = table["us"]["zones"][i % 7];
        own["zone"] = table[i % 2 == 0 ? "eu" : region]["none"];
        EXPECT_EQ(own["zone"], "none");
        EXPECT_EQ(own["zones"].size(), 2u);
        EXPECT_EQ(own["far"].has_value(), i % 7 == 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(table.keys(), ElementsAre("eu", "us"));
}

TEST_F(ValueTest, ElementThatWasRemovedCanBeSetAgain) {
  Value list;
  list.add(1);
  Value removed = list.add(2);
  removed.clear();
  EXPECT_EQ(list.size(), 1u);
  removed = 3;
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1], 3);
}

}  // namespace
}  // namespace fncache::sdk
