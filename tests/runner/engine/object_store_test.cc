// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/object_store.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/runner/messages.h"
#include "text/deterministic_bytes.h"
#include "text/object.h"

namespace fncache::runner::engine {

using google::protobuf::Struct;
using google::protobuf::Value;
namespace {

namespace fn = apiextensions::fn::proto::v1;

Struct Object(absl::string_view json) { return FromJson<Struct>(json); }

Struct Named(absl::string_view api_version, absl::string_view kind,
             absl::string_view object_namespace, absl::string_view name) {
  Struct object;
  text::SetText(&object, {"apiVersion"}, api_version);
  text::SetText(&object, {"kind"}, kind);
  if (!object_namespace.empty()) {
    text::SetText(&object, {"metadata", "namespace"}, object_namespace);
  }
  text::SetText(&object, {"metadata", "name"}, name);
  return object;
}

fn::ResourceSelector Selector(absl::string_view json) {
  return FromJson<fn::ResourceSelector>(json);
}

// Returns what was found as namespace/name, in its order.
std::string Names(const fn::Resources& found) {
  return absl::StrJoin(
      found.items(), " ", [](std::string* out, const fn::Resource& item) {
        absl::StrAppend(
            out, text::FindText(item.resource(), {"metadata", "namespace"}),
            "/", text::FindText(item.resource(), {"metadata", "name"}));
      });
}

TEST(ObjectStoreTest, SharedObjectsAreNotCopied) {
  auto objects = std::make_shared<std::vector<Struct>>();
  objects->push_back(Named("v1", "K", "n", "a"));
  objects->push_back(Named("v1", "K", "n", "b"));
  const Struct* const second = &objects->back();
  ObjectStore store;
  store.Add(std::move(objects));
  ASSERT_NE(store.Get("v1", "K", "n", "a"), nullptr);
  EXPECT_EQ(store.Get("v1", "K", "n", "b"), second);
}

TEST(ObjectStoreTest, SharedAndOwnObjectsReplaceEachOther) {
  auto objects = std::make_shared<std::vector<Struct>>();
  objects->push_back(Object(R"({"apiVersion": "v1", "kind": "K", "x": 2})"));
  ObjectStore store;
  store.Add(Object(R"({"apiVersion": "v1", "kind": "K", "x": 1})"));
  const Struct* const first = store.Get("v1", "K", "", "");
  store.Add(std::move(objects));
  EXPECT_EQ(text::Find(*store.Get("v1", "K", "", ""), {"x"})->number_value(),
            2);
  store.Add(Object(R"({"apiVersion": "v1", "kind": "K", "x": 3})"));
  EXPECT_EQ(text::Find(*store.Get("v1", "K", "", ""), {"x"})->number_value(),
            3);
  // An object that was replaced lives on with the store.
  EXPECT_EQ(text::Find(*first, {"x"})->number_value(), 1);
}

TEST(ObjectStoreTest, GetsByAllFourParts) {
  ObjectStore store;
  store.Add(Named("apps/v1", "Deployment", "ns", "a"));
  EXPECT_NE(store.Get("apps/v1", "Deployment", "ns", "a"), nullptr);
  EXPECT_EQ(store.Get("apps/v2", "Deployment", "ns", "a"), nullptr);
  EXPECT_EQ(store.Get("v1", "Deployment", "ns", "a"), nullptr);
  EXPECT_EQ(store.Get("apps/v1", "Deployments", "ns", "a"), nullptr);
  EXPECT_EQ(store.Get("apps/v1", "Deployment", "", "a"), nullptr);
  EXPECT_EQ(store.Get("apps/v1", "Deployment", "ns", ""), nullptr);
}

TEST(ObjectStoreTest, TheLaterObjectReplacesTheEarlier) {
  ObjectStore store;
  store.Add(Object(R"({"apiVersion": "v1", "kind": "A",
                       "metadata": {"name": "a"}, "spec": {"old": 1}})"));
  store.Add(Object(R"({"apiVersion": "v1", "kind": "A",
                       "metadata": {"name": "a"}, "spec": {"new": 2}})"));
  const Struct* const found = store.Get("v1", "A", "", "a");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(text::Find(*found, {"spec", "old"}), nullptr);
  EXPECT_NE(text::Find(*found, {"spec", "new"}), nullptr);
  EXPECT_EQ(store.Select(Selector(R"({"apiVersion": "v1", "kind": "A"})"))
                .items_size(),
            1);
}

TEST(ObjectStoreTest, PartsThatAreNoTextCountAsEmpty) {
  ObjectStore store;
  store.Add(Object(R"({"apiVersion": "v1", "kind": "A",
                       "metadata": {"name": 5, "namespace": ["x"]}})"));
  store.Add(Object(R"({"apiVersion": 1, "kind": "B", "metadata": "none"})"));
  EXPECT_NE(store.Get("v1", "A", "", ""), nullptr);
  EXPECT_NE(store.Get("", "B", "", ""), nullptr);
}

// Kubernetes parses apiVersion into group and version before it compares.
TEST(ObjectStoreTest, AnEmptyGroupMayBeWrittenWithASlash) {
  ObjectStore store;
  store.Add(Named("/v1", "A", "", "a"));
  EXPECT_NE(store.Get("v1", "A", "", "a"), nullptr);
  EXPECT_EQ(
      Names(store.Select(Selector(R"({"apiVersion": "v1", "kind": "A"})"))),
      "/a");
}

TEST(ObjectStoreTest, AnApiVersionWithTwoSlashesLeavesNoKind) {
  ObjectStore store;
  store.Add(Named("a/b/c", "A", "", "a"));
  EXPECT_NE(store.Get("x/y/z", "Other", "", "a"), nullptr);
  EXPECT_EQ(store.Get("a", "A", "", "a"), nullptr);
  EXPECT_EQ(store.Get("a/b", "A", "", "a"), nullptr);
}

TEST(ObjectStoreTest, ByNameIsExact) {
  ObjectStore store;
  store.Add(Named("v1", "A", "ns", "a"));
  const auto names = [&](absl::string_view json) {
    return Names(store.Select(Selector(json)));
  };
  EXPECT_EQ(names(R"({"apiVersion": "v1", "kind": "A", "namespace": "ns",
                      "matchName": "a"})"),
            "ns/a");
  EXPECT_EQ(names(R"({"apiVersion": "v1", "kind": "A", "matchName": "a"})"),
            "");
  EXPECT_EQ(names(R"({"apiVersion": "", "kind": "A", "namespace": "ns",
                      "matchName": "a"})"),
            "");
  EXPECT_EQ(names(R"({"apiVersion": "v1", "kind": "AList", "namespace": "ns",
                      "matchName": "a"})"),
            "");
  EXPECT_EQ(names(R"({"apiVersion": "v1", "kind": "A", "namespace": "ns",
                      "matchName": ""})"),
            "");
}

TEST(ObjectStoreTest, AKindThatEndsInListIsFoundByName) {
  ObjectStore store;
  store.Add(Named("v1", "ShoppingList", "", "a"));
  EXPECT_EQ(Names(store.Select(Selector(
                R"({"apiVersion": "v1", "kind": "ShoppingList",
                    "matchName": "a"})"))),
            "/a");
}

TEST(ObjectStoreTest, AListOfAKindThatEndsInListIsOfWhatIsBefore) {
  ObjectStore store;
  store.Add(Named("v1", "Shopping", "", "item"));
  store.Add(Named("v1", "ShoppingList", "", "list"));
  store.Add(Named("v1", "List", "", "bare"));
  const auto names = [&](absl::string_view kind) {
    fn::ResourceSelector selector;
    selector.set_api_version("v1");
    selector.set_kind(std::string(kind));
    return Names(store.Select(selector));
  };
  EXPECT_EQ(names("Shopping"), "/item");
  EXPECT_EQ(names("ShoppingList"), "/item");
  // Nothing would be left of it.
  EXPECT_EQ(names("List"), "/bare");
  EXPECT_EQ(names("Shop"), "");
}

TEST(ObjectStoreTest, AListIsOfOneGroupAndOfAnyVersionWhereNoneIsAsked) {
  ObjectStore store;
  store.Add(Named("ex.org/v1", "A", "", "one"));
  store.Add(Named("ex.org/v2", "A", "", "two"));
  store.Add(Named("ex.com/v1", "A", "", "other"));
  store.Add(Named("v1", "A", "", "core"));
  const auto names = [&](absl::string_view api_version) {
    fn::ResourceSelector selector;
    selector.set_api_version(std::string(api_version));
    selector.set_kind("A");
    return Names(store.Select(selector));
  };
  EXPECT_EQ(names("ex.org/v1"), "/one");
  EXPECT_EQ(names("ex.org/"), "/one /two");
  EXPECT_EQ(names("ex.org/v3"), "");
  EXPECT_EQ(names(""), "/core");
}

TEST(ObjectStoreTest, AListIsOfOneNamespaceOrOfAll) {
  ObjectStore store;
  store.Add(Named("v1", "A", "x", "a"));
  store.Add(Named("v1", "A", "y", "a"));
  store.Add(Named("v1", "A", "", "a"));
  EXPECT_EQ(
      Names(store.Select(Selector(R"({"apiVersion": "v1", "kind": "A"})"))),
      "/a x/a y/a");
  EXPECT_EQ(Names(store.Select(Selector(
                R"({"apiVersion": "v1", "kind": "A", "namespace": ""})"))),
            "/a x/a y/a");
  EXPECT_EQ(Names(store.Select(Selector(
                R"({"apiVersion": "v1", "kind": "A", "namespace": "y"})"))),
            "y/a");
}

TEST(ObjectStoreTest, AListIsSortedByTheBytesOfNamespaceAndName) {
  ObjectStore store;
  for (const absl::string_view at :
       {"a/b", "a-b/a", "a/a-b", "a/a/", "A/z", "a/\xC3\xA9", "a/Z", "a0/a"}) {
    const std::vector<std::string> parts =
        absl::StrSplit(at, absl::MaxSplits('/', 1));
    store.Add(Named("v1", "A", parts[0], parts[1]));
  }
  // '-' is before '/', '0' behind it.
  EXPECT_EQ(
      Names(store.Select(Selector(R"({"apiVersion": "v1", "kind": "A"})"))),
      "A/z a-b/a a/Z a/a-b a/a/ a/b a/\xC3\xA9 a0/a");
}

TEST(ObjectStoreTest, AllLabelsHaveToBeEqual) {
  ObjectStore store;
  store.Add(Object(R"({"apiVersion": "v1", "kind": "A", "metadata": {
      "name": "both", "labels": {"x": "1", "y": "2", "z": ""}}})"));
  store.Add(Object(R"({"apiVersion": "v1", "kind": "A", "metadata": {
      "name": "one", "labels": {"x": "1", "y": "3"}}})"));
  store.Add(Object(
      R"({"apiVersion": "v1", "kind": "A", "metadata": {"name": "none"}})"));
  const auto names = [&](absl::string_view labels) {
    return Names(store.Select(Selector(absl::StrCat(
        R"({"apiVersion": "v1", "kind": "A", "matchLabels": {"labels": )",
        labels, "}}"))));
  };
  EXPECT_EQ(names(R"({"x": "1"})"), "/both /one");
  EXPECT_EQ(names(R"({"x": "1", "y": "2"})"), "/both");
  EXPECT_EQ(names(R"({"x": "2"})"), "");
  EXPECT_EQ(names(R"({"q": ""})"), "");
  EXPECT_EQ(names(R"({"z": ""})"), "/both");
  EXPECT_EQ(names("{}"), "/both /none /one");
}

TEST(ObjectStoreTest, OneLabelThatIsNoTextHidesAllOfAnObjectsLabels) {
  ObjectStore store;
  store.Add(Object(R"({"apiVersion": "v1", "kind": "A", "metadata": {
      "name": "a", "labels": {"x": "1", "y": 2}}})"));
  EXPECT_EQ(Names(store.Select(Selector(
                R"({"apiVersion": "v1", "kind": "A",
                    "matchLabels": {"labels": {"x": "1"}}})"))),
            "");
}

TEST(ObjectStoreTest, ItemsHaveTheirResourceOnlyAndWhole) {
  constexpr absl::string_view kObject = R"({
      "apiVersion": "v1", "kind": "A", "metadata": {"name": "a"},
      "spec": {"none": null, "empty": {}, "list": [], "number": 0.5},
      "status": {"conditions": [{"type": "Ready", "status": "True"}]}})";
  ObjectStore store;
  store.Add(Object(kObject));
  for (const absl::string_view match : {R"(, "matchName": "a")", ""}) {
    ExpectJson(store.Select(Selector(absl::StrCat(
                   R"({"apiVersion": "v1", "kind": "A")", match, "}"))),
               absl::StrCat(R"({"items": [{"resource": )", kObject, "}]}"));
  }
}

// The rules once more, as plainly as they can be said: every object is tried.
bool Wanted(const fn::ResourceSelector& selector, const Struct& object) {
  const auto text = [&](text::ObjectPath path) {
    return text::FindText(object, path);
  };
  const std::string api_version = text({"apiVersion"});
  const std::string kind = text({"kind"});
  const std::string object_namespace = text({"metadata", "namespace"});
  if (selector.has_match_name()) {
    return selector.api_version() == api_version && selector.kind() == kind &&
           selector.namespace_() == object_namespace &&
           selector.match_name() == text({"metadata", "name"});
  }
  const auto split = [](const std::string& from) {
    return from.find('/') == std::string::npos
               ? std::make_pair(std::string(), from)
               : std::make_pair(from.substr(0, from.find('/')),
                                from.substr(from.find('/') + 1));
  };
  std::string wanted_kind = selector.kind();
  if (wanted_kind.size() > 4 && absl::EndsWith(wanted_kind, "List")) {
    wanted_kind.resize(wanted_kind.size() - 4);
  }
  const auto [wanted_group, wanted_version] = split(selector.api_version());
  const auto [group, version] = split(api_version);
  if (wanted_kind != kind || wanted_group != group) return false;
  if (!wanted_version.empty() && !version.empty() &&
      wanted_version != version) {
    return false;
  }
  if (!selector.namespace_().empty() &&
      selector.namespace_() != object_namespace) {
    return false;
  }
  for (const auto& [name, value] : selector.match_labels().labels()) {
    const Value* const label = text::Find(object, {"metadata", "labels", name});
    if (label == nullptr || label->string_value() != value) return false;
  }
  return true;
}

TEST(ObjectStoreTest, SelectsWhatTryingEveryObjectSelects) {
  std::mt19937 random(20260821);
  const auto one_of = [&](const std::vector<std::string>& texts) {
    return texts[random() % texts.size()];
  };
  const std::vector<std::string> versions = {"v1",   "v2", "g/v1", "g/v2",
                                             "h/v1", "g/", "",     "g-h/v1"};
  const std::vector<std::string> kinds = {"A", "AList", "B", "AListList",
                                          "List"};
  const std::vector<std::string> namespaces = {"", "n", "n-m", "n/m", "m"};
  const std::vector<std::string> names = {"a", "b", "a-b", "b/c", ""};
  const std::vector<std::string> labels = {"x", "y", "z"};
  size_t found_any = 0;
  for (int round = 0; round < 300; ++round) {
    ObjectStore store;
    // The oracle's store: a list, in which a later object replaces an earlier.
    std::vector<Struct> objects;
    const auto id = [](const Struct& object) {
      return absl::StrJoin({text::FindText(object, {"apiVersion"}),
                            text::FindText(object, {"kind"}),
                            text::FindText(object, {"metadata", "namespace"}),
                            text::FindText(object, {"metadata", "name"})},
                           "\n");
    };
    for (size_t n = random() % 60; n > 0; --n) {
      Struct object = Named(one_of(versions), one_of(kinds), one_of(namespaces),
                            one_of(names));
      for (const std::string& label : labels) {
        if (random() % 2 == 0) {
          text::SetText(&object, {"metadata", "labels", label},
                        one_of({"1", "2", ""}));
        }
      }
      text::SetText(&object, {"spec"}, absl::StrCat(random()));
      objects.erase(std::remove_if(objects.begin(), objects.end(),
                                   [&](const Struct& other) {
                                     return id(other) == id(object);
                                   }),
                    objects.end());
      objects.push_back(object);
      store.Add(object);
    }
    for (int i = 0; i < 30; ++i) {
      fn::ResourceSelector selector;
      selector.set_api_version(one_of(versions));
      selector.set_kind(one_of(kinds));
      if (random() % 2 == 0) selector.set_namespace_(one_of(namespaces));
      switch (random() % 3) {
        case 0:
          selector.set_match_name(one_of(names));
          break;
        case 1:
          selector.mutable_match_labels();
          for (const std::string& label : labels) {
            if (random() % 3 == 0) {
              (*selector.mutable_match_labels()->mutable_labels())[label] =
                  one_of({"1", "2", ""});
            }
          }
          break;
        default:
          break;
      }
      const fn::Resources found = store.Select(selector);
      std::vector<std::string> is;
      std::vector<std::string> sorted_names;
      for (const fn::Resource& item : found.items()) {
        is.push_back(text::DeterministicBytes(item.resource()));
        sorted_names.push_back(absl::StrCat(
            text::FindText(item.resource(), {"metadata", "namespace"}), "/",
            text::FindText(item.resource(), {"metadata", "name"})));
      }
      std::vector<std::string> wanted;
      for (const Struct& object : objects) {
        if (Wanted(selector, object))
          wanted.push_back(text::DeterministicBytes(object));
      }
      EXPECT_TRUE(std::is_sorted(sorted_names.begin(), sorted_names.end()))
          << ToJson(found);
      std::sort(is.begin(), is.end());
      std::sort(wanted.begin(), wanted.end());
      ASSERT_EQ(is, wanted) << ToJson(selector);
      if (!is.empty()) ++found_any;
    }
  }
  EXPECT_GT(found_any, 1000U);
}

TEST(SecretDataTest, IsDecodedData) {
  const auto data = SecretData(Object(R"({
      "apiVersion": "v1", "kind": "Secret",
      "data": {"user": "YWRtaW4=", "one": "YQ==", "three": "YWJj",
               "empty": "", "null": null, "bytes": "AP+A/w==",
               "lines": "YWRt\r\naW4=\n",
               "list": [97, null, 300, -1, 4294967393, 1e20], "none": []},
      "stringData": {"user": "not this", "more": "nor this"}})"));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(*data, (std::map<std::string, std::string>{
                       {"user", "admin"},
                       {"one", "a"},
                       {"three", "abc"},
                       {"empty", ""},
                       {"null", ""},
                       {"bytes", std::string("\0\xFF\x80\xFF", 4)},
                       {"lines", "admin"},
                       {"list", std::string("a\0,\xFF\x61\0", 6)},
                       {"none", ""}}));
}

TEST(SecretDataTest, IsEmptyWithoutData) {
  for (const absl::string_view json :
       {"{}", R"({"data": null})", R"({"data": {}})"}) {
    const auto data = SecretData(Object(json));
    ASSERT_TRUE(data.ok()) << json << data.status();
    EXPECT_TRUE(data->empty()) << json;
  }
}

std::string SecretProblem(absl::string_view json) {
  const auto data = SecretData(Object(json));
  EXPECT_EQ(data.status().code(), absl::StatusCode::kInvalidArgument) << json;
  return std::string(data.status().message());
}

TEST(SecretDataTest, SaysWhereTheBase64Ends) {
  const std::pair<const char*, int> kCases[] = {
      {"YQ", 0},      {"Y", 0},     {"YQ=", 3},     {"YQ==YQ==", 4},
      {"YQ===", 4},   {"YWJj=", 4}, {"YWJjY", 4},   {"YW.j", 2},
      {"Y W J j", 1}, {"_-_-", 0},  {"\xc3\xa4", 0}};
  for (const auto& [value, at] : kCases) {
    EXPECT_EQ(SecretProblem(absl::StrCat(R"({"data": {"a": "YQ==", "k": ")",
                                         value, R"("}})")),
              absl::StrCat("error decoding from json: illegal base64 data at "
                           "input byte ",
                           at))
        << value;
  }
}

// The errors of the reference's converter for an object that is no Secret.
TEST(SecretDataTest, AnObjectOfAnotherFormIsAnError) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"data": "x"})", "cannot restore map from string"},
      {R"({"data": []})", "cannot restore map from slice"},
      {R"({"data": {"k": 5}})", "cannot restore slice from float64"},
      {R"({"data": {"k": {}}})", "cannot restore slice from map"},
      {R"({"data": {"k": [97, "x", 1.5]}})", "unrecognized type: uint8"},
      {R"({"data": {"k": [97, 1.5]}})", "cannot convert float64 to uint8"},
      {R"({"stringData": {"k": 1}})", "unrecognized type: string"},
      {R"({"immutable": "x"})", "unrecognized type: bool"},
      {R"({"type": 5})", "unrecognized type: string"},
      {R"({"metadata": "x"})", "cannot restore struct from: string"},
      {R"({"metadata": {"generation": 1.5}})",
       "cannot convert float64 to int64"},
      {R"({"metadata": {"labels": {"a": 1}}})", "unrecognized type: string"},
      {R"({"metadata": {"ownerReferences": {}}})",
       "cannot restore slice from map"},
      {R"({"metadata": {"creationTimestamp": 5}})",
       "json: cannot unmarshal number into Go value of type string"}};
  for (const auto& [json, problem] : kCases) {
    EXPECT_EQ(SecretProblem(json), problem) << json;
  }
}

}  // namespace
}  // namespace fncache::runner::engine
