// SPDX-License-Identifier: Apache-2.0
#include "cache/key/drift_kinds.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cache/key/digest.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/drift_oracle.h"
#include "tests/cache/key/key_oracle.h"
#include "tests/cache/key/random_drift.h"
#include "tests/cache/key/random_encoding.h"
#include "tests/cache/key/random_request.h"
#include "tests/common/long_form.h"

namespace fncache::cache::key {
namespace {

namespace pb = google::protobuf;
using apiextensions::fn::proto::v1::RunFunctionRequest;

class Kinds {
 public:
  std::string Drifts(const std::string& bytes) {
    return std::string(digester_.Compute({bytes}, &scratch_).drifts);
  }
  DriftKinds operator()(const std::string& bytes) {
    return KindsOf(Drifts(bytes));
  }

 private:
  const Digester digester_{
      Seed{},
      {"f", "m", "g", KeySource::kContent, KeyHash::kXxh3, /*drift=*/true},
      MaskSet()};
  DigestScratch scratch_;
};

// The indices of the kinds that differ.
std::set<size_t> Differing(const DriftKinds& a, const DriftKinds& b) {
  EXPECT_EQ(a.size(), b.size());
  std::set<size_t> differing;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    EXPECT_EQ(a[i].kind, b[i].kind);
    EXPECT_EQ(a[i].is_time, b[i].is_time);
    if (a[i].value != b[i].value) differing.insert(i);
  }
  return differing;
}

pb::Value& Field(pb::Value* value, const std::string& key) {
  return (*value->mutable_struct_value()->mutable_fields())[key];
}

RunFunctionRequest Request() {
  RunFunctionRequest request;
  auto& object = *(*request.mutable_observed()->mutable_resources())["bucket"]
                      .mutable_resource()
                      ->mutable_fields();
  Field(&object["metadata"], "resourceVersion").set_string_value("12");
  pb::Value* const managed = Field(&object["metadata"], "managedFields")
                                 .mutable_list_value()
                                 ->add_values();
  Field(managed, "manager").set_string_value("crossplane");
  Field(managed, "time").set_string_value("2026-11-22T09:42:57Z");
  pb::Value* const condition =
      Field(&object["status"], "conditions").mutable_list_value()->add_values();
  Field(condition, "lastTransitionTime")
      .set_string_value("2026-11-22T09:42:57Z");
  Field(&Field(&object["status"], "atProvider"), "lastSync")
      .set_string_value("2026-11-22T09:42:57Z");
  auto& composite =
      *request.mutable_observed()->mutable_composite()->mutable_resource();
  Field(&(*composite.mutable_fields())["metadata"], "resourceVersion")
      .set_string_value("7");
  auto& required = *(*request.mutable_required_resources())["r"]
                        .add_items()
                        ->mutable_resource();
  Field(&(*required.mutable_fields())["status"], "lastTransitionTime")
      .set_string_value("2026-11-22T09:42:57Z");
  return request;
}

// Questions keep it, so a proof says nothing of another one.
TEST(DriftKinds, TellHowDriftIsWritten) {
  Kinds kinds;
  const auto form = [&](const std::string& version, const std::string& time) {
    RunFunctionRequest request = Request();
    auto& object = *(*request.mutable_observed()->mutable_resources())["bucket"]
                        .mutable_resource()
                        ->mutable_fields();
    Field(&object["metadata"], "resourceVersion").set_string_value(version);
    Field(&Field(&object["status"], "atProvider"), "lastSync")
        .set_string_value(time);
    uint64_t all = 0;
    for (const DriftKind& kind : kinds(request.SerializeAsString()))
      all = all * 31 + kind.form;
    return all;
  };
  const uint64_t usual = form("12", "2026-11-22T09:42:57Z");
  EXPECT_EQ(form("99", "2036-01-02T19:00:00Z"), usual);
  EXPECT_NE(form("100", "2026-11-22T09:42:57Z"), usual);
  std::set<uint64_t> forms = {usual};
  for (const char* const rest :
       {".5Z", "+00:00", "-00:00", "+02:00", ".5+02:00"}) {
    const std::string time = "2026-11-22T09:42:57";
    EXPECT_TRUE(forms.insert(form("12", time + rest)).second) << rest;
  }
  EXPECT_EQ(form("12", "2026-11-22T09:42:57.70Z"),
            form("12", "2026-11-22T09:42:57.5Z"));
}

TEST(DriftKinds, HaveNamesForPeople) {
  Kinds kinds;
  const std::string bytes = Request().SerializeAsString();
  const std::string drifts = kinds.Drifts(bytes);
  std::set<std::string> names;
  const size_t count = kinds(bytes).size();
  for (size_t i = 0; i < count; ++i) names.insert(KindName(drifts, i));
  EXPECT_EQ(names,
            (std::set<std::string>{
                "composite metadata resourceVersion",
                "metadata resourceVersion", "metadata managedFields",
                "metadata managedFields times", "status lastTransitionTime",
                "status lastSync", "required status lastTransitionTime"}));
  EXPECT_EQ(count, names.size());
  EXPECT_EQ(KindName(drifts, count), "");
}

TEST(DriftKinds, TimesInManagedFieldsAreAKindOfTheirOwn) {
  Kinds kinds;
  RunFunctionRequest request = Request();
  const std::string bytes = request.SerializeAsString();
  const DriftKinds before = kinds(bytes);
  const std::string drifts = kinds.Drifts(bytes);
  pb::Value& metadata =
      (*(*request.mutable_observed()->mutable_resources())["bucket"]
            .mutable_resource()
            ->mutable_fields())["metadata"];
  pb::Value* const managed =
      Field(&metadata, "managedFields").mutable_list_value()->mutable_values(0);
  Field(managed, "time").set_string_value("2026-11-22T09:43:57Z");
  std::set<size_t> moved =
      Differing(before, kinds(request.SerializeAsString()));
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(KindName(drifts, *moved.begin()), "metadata managedFields times");
  EXPECT_TRUE(before[*moved.begin()].is_time);
  Field(managed, "time").set_string_value("2026-11-22T09:42:57Z");
  Field(managed, "manager").set_string_value("argocd");
  moved = Differing(before, kinds(request.SerializeAsString()));
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(KindName(drifts, *moved.begin()), "metadata managedFields");
  EXPECT_FALSE(before[*moved.begin()].is_time);
}

// The API server sorts the entries by time.
TEST(DriftKinds, TheOrderOfManagedFieldsGoesWithTheirTimes) {
  Kinds kinds;
  RunFunctionRequest request = Request();
  pb::ListValue* const list =
      Field(&(*(*request.mutable_observed()->mutable_resources())["bucket"]
                   .mutable_resource()
                   ->mutable_fields())["metadata"],
            "managedFields")
          .mutable_list_value();
  const auto set = [&](pb::Value* entry, const std::string& manager,
                       const std::string& field) {
    Field(entry, "manager").set_string_value(manager);
    Field(entry, "time").set_string_value("2026-11-22T09:42:57Z");
    Field(&Field(entry, "fieldsV1"), field).mutable_struct_value();
  };
  set(list->mutable_values(0), "crossplane", "f:spec");
  set(list->add_values(), "provider", "f:status");
  const std::string bytes = request.SerializeAsString();
  const DriftKinds before = kinds(bytes);
  const std::string drifts = kinds.Drifts(bytes);
  const auto moved = [&] {
    std::set<std::string> names;
    for (const size_t kind :
         Differing(before, kinds(request.SerializeAsString()))) {
      names.insert(KindName(drifts, kind));
    }
    return names;
  };
  EXPECT_TRUE(moved().empty());
  Field(list->mutable_values(1), "time")
      .set_string_value("2026-11-22T09:43:57Z");
  list->mutable_values()->SwapElements(0, 1);
  const std::set<std::string> times = {"metadata managedFields times"};
  EXPECT_EQ(moved(), times);
  Field(list->mutable_values(0), "time")
      .set_string_value("2026-11-22T09:42:57Z");
  EXPECT_TRUE(moved().empty()) << "such a request is a miss";
  // Entries that swap what is in them are others.
  set(list->mutable_values(0), "crossplane", "f:status");
  EXPECT_EQ(moved().count("metadata managedFields"), 1u);
  set(list->mutable_values(0), "provider", "f:status");
  EXPECT_TRUE(moved().empty());
  set(list->add_values(), "kubectl", "f:spec");
  EXPECT_EQ(moved().count("metadata managedFields"), 1u);
  list->mutable_values()->RemoveLast();
  EXPECT_TRUE(moved().empty());
  list->mutable_values()->RemoveLast();
  EXPECT_EQ(moved().count("metadata managedFields"), 1u);
}

TEST(DriftKinds, EndAfterOneMoreThanAreTuned) {
  RunFunctionRequest request;
  auto& object = *(*request.mutable_observed()->mutable_resources())["bucket"]
                      .mutable_resource()
                      ->mutable_fields();
  Kinds kinds;
  for (size_t i = 0; i < 1000; ++i) {
    Field(&object["status"], "t" + std::to_string(i))
        .set_string_value("2026-11-22T09:42:57Z");
    if (i < kMostKinds + 2) {
      EXPECT_EQ(kinds(request.SerializeAsString()).size(),
                std::min(i + 1, kMostKinds + 1));
    }
  }
  EXPECT_EQ(kinds(request.SerializeAsString()).size(), kMostKinds + 1);
}

// By the model: sections and keys with what is under them, and apart the times
// in managedFields.
TEST(DriftKindsProperty, DifferIfAndOnlyIfTheModelsDo) {
  Random random(362);
  Kinds kinds;
  int differing = 0;
  for (int i = 0; i < testing::ShortOrLong(500, 30'000); ++i) {
    RunFunctionRequest request = RandomRequest(&random);
    AddDrift(&request, &random);
    RunFunctionRequest other = request;
    for (size_t j = random.Below(4); j > 0; --j) MutateDrift(&other, &random);
    RunFunctionRequest bare = request;
    RunFunctionRequest other_bare = other;
    TakeOutDrift(&bare);
    TakeOutDrift(&other_bare);
    if (!SameMessage(bare, other_bare)) continue;  // they have two keys
    const DriftKinds a = kinds(Encode(request, Style::kWild, &random));
    const DriftKinds b = kinds(Encode(other, Style::kAnyEncoder, &random));
    if (a.size() > kMostKinds) continue;
    const std::set<size_t> moved = Differing(a, b);
    std::map<std::string, std::string> values;
    std::map<std::string, std::string> other_values;
    bool managed = false;
    const auto collect = [&](RunFunctionRequest* from,
                             std::map<std::string, std::string>* all) {
      for (const FoundDrift& drift : FindDrift(from)) {
        std::string& text =
            (*all)[drift.section + " " + drift.key + " " + drift.type];
        // Which elements of a list they are matters as well.
        text += drift.path + "=";
        text += ValueBytes(*drift.value);
      }
    };
    collect(&request, &values);
    collect(&other, &other_values);
    size_t expected = 0;
    for (const auto& [kind, text] : values) {
      if (text == other_values[kind]) continue;
      ++expected;
      managed = managed || kind.back() == 'm';
    }
    // managedFields that differ are one kind or two: times with the order of
    // entries, and the rest.
    if (managed) {
      EXPECT_GE(moved.size(), expected);
      EXPECT_LE(moved.size(), 2 * expected);
    } else {
      EXPECT_EQ(moved.size(), expected);
    }
    differing += moved.empty() ? 0 : 1;
  }
  EXPECT_GT(differing, 150);
}

}  // namespace
}  // namespace fncache::cache::key
