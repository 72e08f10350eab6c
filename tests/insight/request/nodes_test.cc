// SPDX-License-Identifier: Apache-2.0
#include "insight/request/nodes.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache/key/mask.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "insight/request/compare.h"
#include "insight/request/identity.h"
#include "insight/request/outline.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/key_oracle.h"
#include "tests/cache/key/random_encoding.h"
#include "tests/cache/key/random_request.h"

namespace fncache::insight::request {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Looks = std::vector<std::tuple<std::string, uint64_t, int, uint64_t>>;

// The nodes that masks leave, in an order of their own.
Looks LooksOf(const RequestNodes& read, const MaskMatcher& masks) {
  Looks looks;
  for (size_t i = 0; i < read.nodes().size(); ++i) {
    const Node& node = read.nodes()[i];
    const std::string path = read.Spell(i);
    if (node.kind == NodeKind::kMap || masks.Masks(path)) continue;
    looks.emplace_back(path, node.path, static_cast<int>(node.kind),
                       node.value);
  }
  std::sort(looks.begin(), looks.end());
  return looks;
}

fn::RunFunctionRequest FromJson(const std::string& json) {
  fn::RunFunctionRequest request;
  const auto status =
      google::protobuf::util::JsonStringToMessage(json, &request);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return request;
}

std::vector<std::string> PathsOf(const std::string& json) {
  RequestNodes nodes(FingerprintSecret::Random());
  EXPECT_TRUE(nodes.Read({FromJson(json).SerializeAsString()}));
  std::vector<std::string> paths;
  for (size_t i = 0; i < nodes.nodes().size(); ++i) {
    paths.push_back(nodes.Spell(i));
  }
  return paths;
}

TEST(RequestNodes, PathsAreSpelledAsMasksSpellThem) {
  EXPECT_THAT(PathsOf(R"({"observed": {"composite": {"resource": {
          "spec": {"a.b": [1, {"c": null}]}}}}, "meta": {"tag": "t"}})"),
              ElementsAre("meta", "observed", "observed.composite",
                          "observed.composite.resource",
                          "observed.composite.resource.spec",
                          "observed.composite.resource.spec.\"a.b\"",
                          "observed.composite.resource.spec.\"a.b\"[0]",
                          "observed.composite.resource.spec.\"a.b\"[1]",
                          "observed.composite.resource.spec.\"a.b\"[1].c"));
}

TEST(RequestNodes, SecretsAreOneNodeWithoutTheirKeys) {
  const auto paths = PathsOf(R"({
      "credentials": {"aws": {"credentialData": {"data": {"hidden": "eA=="}}}},
      "observed": {"composite": {"connectionDetails": {"hidden": "eA=="}},
        "resources": {"s": {"resource": {"apiVersion": "v1", "kind": "Secret",
          "data": {"hidden": "x"}, "stringData": {"hidden": "y"}}}}}})");
  EXPECT_THAT(paths, Contains("credentials.aws.credential_data.data.*"));
  EXPECT_THAT(paths, Contains("observed.composite.connection_details.*"));
  EXPECT_THAT(paths, Contains("observed.resources.s.resource.data.*"));
  EXPECT_THAT(paths, Contains("observed.resources.s.resource.stringData.*"));
  for (const std::string& path : paths) {
    EXPECT_FALSE(absl::StrContains(path, "hidden")) << path;
  }
}

TEST(RequestNodes, MetadataOfSecretsNamesNoneOfTheirKeys) {
  for (const std::string& path : PathsOf(R"({"observed": {"resources": {"s": {
      "resource": {"apiVersion": "v1", "kind": "Secret", "metadata": {
        "name": "n", "annotations": {"hidden": "{}"},
        "managedFields": [{"fieldsV1": {"f:data": {"f:hidden": {}}}}]}}}}}})")) {
    EXPECT_FALSE(absl::StrContains(path, "hidden")) << path;
  }
}

TEST(RequestNodes, OtherKindsOfASecretsDataAreOtherSecrets) {
  const FingerprintSecret secret = FingerprintSecret::Random();
  const auto looks = [&secret](const std::string& data) {
    RequestNodes nodes(secret);
    EXPECT_TRUE(nodes.Read(
        {FromJson(absl::StrCat(R"({"observed": {"composite": {"resource": {
            "apiVersion": "v1", "kind": "Secret", "data": )",
                               data, "}}}}"))
             .SerializeAsString()}));
    return LooksOf(nodes, MaskMatcher(cache::key::MaskSet()));
  };
  const std::vector<std::string> all = {"{}",   "[]",          "null",
                                        "\"\"", "{\"a\": {}}", "{\"a\": []}"};
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < all.size(); ++j) {
      EXPECT_EQ(looks(all[i]) == looks(all[j]), i == j) << all[i] << all[j];
    }
  }
}

TEST(RequestNodes, WhatIsNoRequestIsRefused) {
  RequestNodes nodes(FingerprintSecret::Random());
  EXPECT_FALSE(nodes.Read({"\x12\x7f"}));
  EXPECT_THAT(nodes.nodes(), IsEmpty());
  EXPECT_TRUE(nodes.Read({}));
}

TEST(RequestNodes, OneSecretGivesOtherFingerprintsThanAnother) {
  const std::string bytes =
      FromJson(R"({"input": {"a": "b"}})").SerializeAsString();
  RequestNodes one(FingerprintSecret::Random());
  RequestNodes other(FingerprintSecret::Random());
  ASSERT_TRUE(one.Read({bytes}) && other.Read({bytes}));
  EXPECT_EQ(one.nodes().back().path, other.nodes().back().path);
  EXPECT_NE(one.nodes().back().value, other.nodes().back().value);
}

// The key contract, seen through nodes: the same nodes if and only if the same
// request, under each set of masks.
TEST(RequestNodesProperty, NodesAreEqualIfAndOnlyIfRequestsAre) {
  cache::key::Random random(7);
  const FingerprintSecret secret = FingerprintSecret::Random();
  RequestNodes a(secret), b(secret);
  int equal = 0, different = 0;
  for (int round = 0; round < 1500; ++round) {
    const fn::RunFunctionRequest first = cache::key::RandomRequest(&random);
    fn::RunFunctionRequest second = first;
    for (size_t i = random.Below(3); i > 0; --i) {
      cache::key::Mutate(&second, &random);
    }
    const std::string left =
        cache::key::Encode(first, cache::key::Style::kAnyEncoder, &random);
    const std::string right =
        cache::key::Encode(second, cache::key::Style::kWild, &random);
    const bool read_left = a.Read({left});
    const bool read_right = b.Read({right});
    fn::RunFunctionRequest parsed_left, parsed_right;
    ASSERT_EQ(read_left, cache::key::ProtobufParses(left, &parsed_left));
    ASSERT_EQ(read_right, cache::key::ProtobufParses(right, &parsed_right));
    if (!read_left || !read_right) continue;
    // The masks of each set that the cache accepts: others may lead into
    // capabilities and connection details, each of which is one node.
    std::vector<cache::key::MaskSet> sets;
    for (const cache::key::MaskSet& set : cache::key::MaskSets()) {
      std::vector<std::string> accepted;
      for (const std::string& mask : set.canonical()) {
        if (cache::key::MaskSet::Parse({mask}).ok()) accepted.push_back(mask);
      }
      sets.push_back(*cache::key::MaskSet::Parse(accepted));
      if (sets.back().canonical().empty() && sets.size() > 1) sets.pop_back();
    }
    ASSERT_GE(sets.size(), 5u);
    const cache::key::MaskSet& masks = sets[random.Below(sets.size())];
    const MaskMatcher matcher(masks);
    const bool same = LooksOf(a, matcher) == LooksOf(b, matcher);
    ASSERT_EQ(same, cache::key::SameRequest(masks, parsed_left, parsed_right))
        << "round " << round << " under "
        << absl::StrJoin(masks.canonical(), " ") << "\n"
        << first.DebugString() << "\n---\n"
        << second.DebugString();
    ++(same ? equal : different);
  }
  EXPECT_GT(equal, 300);
  EXPECT_GT(different, 300);
}

TEST(RequestNodesProperty, AnySlicesGiveTheSameNodes) {
  cache::key::Random random(11);
  const FingerprintSecret secret = FingerprintSecret::Random();
  RequestNodes whole(secret), sliced(secret);
  const MaskMatcher none{cache::key::MaskSet()};
  for (int round = 0; round < 200; ++round) {
    const std::string bytes = cache::key::Encode(
        cache::key::RandomRequest(&random), cache::key::Style::kPlain, &random);
    const size_t cut = random.Below(bytes.size() + 1);
    const absl::string_view text(bytes);
    ASSERT_EQ(whole.Read({text}),
              sliced.Read({text.substr(0, cut), "", text.substr(cut)}));
    EXPECT_EQ(LooksOf(whole, none), LooksOf(sliced, none));
  }
}

TEST(SplitPath, TakesWhatSpellWritesAndNothingElse) {
  const auto names = [](absl::string_view path) {
    std::vector<std::string> found;
    for (const PathSegment& part : SplitPath(path)) found.push_back(part.name);
    return found;
  };
  EXPECT_THAT(names("a.\"b.\\\"c\"[3][4].d"),
              ElementsAre("a", "b.\"c", "[3]", "[4]", "d"));
  for (const char* wrong : {"", ".", "a.", "a..b", "[1]", "a[", "a[x]", "a[1]b",
                            "\"a", "a\"b.\"[", "a[]"}) {
    if (absl::string_view(wrong) == "a\"b.\"[") continue;
    EXPECT_THAT(SplitPath(wrong), IsEmpty()) << wrong;
  }
}

TEST(MaskFor, HidesThePathWhereTheContractAllowsIt) {
  EXPECT_EQ(MaskFor("observed.composite.resource.metadata.resourceVersion"),
            "observed.composite.resource.metadata.resourceVersion");
  EXPECT_EQ(MaskFor("observed.resources.b-1.resource.status.conditions[2]."
                    "lastTransitionTime"),
            "observed.resources.*.resource.status.conditions.*."
            "lastTransitionTime");
  EXPECT_EQ(MaskFor("required_resources.r.items[0].resource.metadata."
                    "managedFields[1].time"),
            "required_resources.*.items.*.resource.metadata.managedFields");
  EXPECT_EQ(MaskFor("context.\"example.org/x\".y"),
            "context.\"example.org/x\"");
  for (const char* not_allowed :
       {"observed.composite.resource", "input.spec", "desired.composite",
        "desired.resources.a.resource.spec", "credentials.a",
        "observed.composite.ready", "nonsense[", "context"}) {
    EXPECT_EQ(MaskFor(not_allowed), "") << not_allowed;
  }
}

// A mask that hid more than the path would be answered wrongly.
TEST(MaskFor, AKeyThatIsAStarIsNoWildcard) {
  EXPECT_EQ(MaskFor("observed.composite.resource.spec.\"*\""),
            "observed.composite.resource.spec.\"*\"");
  EXPECT_EQ(MaskFor("observed.composite.resource.metadata.labels.\"*\".x"),
            "observed.composite.resource.metadata.labels.\"*\".x");
}

TEST(MaskFor, WhatItProposesHidesThePath) {
  cache::key::Random random(5);
  RequestNodes nodes(FingerprintSecret::Random());
  int proposed = 0;
  for (int round = 0; round < 200; ++round) {
    const std::string bytes =
        cache::key::RandomRequest(&random).SerializeAsString();
    if (!nodes.Read({bytes})) continue;
    for (size_t i = 0; i < nodes.nodes().size(); ++i) {
      const std::string path = nodes.Spell(i);
      const std::string mask = MaskFor(path);
      if (mask.empty()) continue;
      ++proposed;
      const auto set = cache::key::MaskSet::Parse({mask});
      ASSERT_TRUE(set.ok()) << mask;
      EXPECT_TRUE(MaskMatcher(*set).Masks(path)) << path << " by " << mask;
    }
  }
  EXPECT_GT(proposed, 100);
}

TEST(Identity, TheCompositeIsReadWithoutNodesToo) {
  const std::string bytes = FromJson(R"({"meta": {"tag": "t"},
      "observed": {"composite": {"resource": {"apiVersion": "example.org/v1",
        "kind": "XApp", "metadata": {"name": "n", "namespace": "ns",
        "uid": "u"}}}}})")
                                .SerializeAsString();
  RequestNodes nodes(FingerprintSecret::Random());
  ASSERT_TRUE(nodes.Read({bytes}));
  const absl::string_view text(bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    for (const CompositeName& name :
         {CompositeOf(nodes.nodes()),
          ReadComposite({text.substr(0, cut), text.substr(cut)})}) {
      EXPECT_EQ(name.api_version, "example.org/v1");
      EXPECT_EQ(name.kind, "XApp");
      EXPECT_EQ(name.object_namespace, "ns");
      EXPECT_EQ(name.name, "n");
      EXPECT_EQ(name.uid, "u");
    }
    EXPECT_FALSE(ReadComposite({"\x12\x7f", text.substr(0, cut)}).known());
  }
}

// No encoder writes this, but a sampler by composite and a complete reader must
// mean the same one.
TEST(Identity, OfSeveralCompositesTheFirstThatHasANameCounts) {
  const auto observed = [](const std::string& composite) {
    return FromJson(absl::StrCat(R"({"observed": {"composite": {"resource": {)",
                                 composite, "}}}}"))
        .SerializeAsString();
  };
  const std::string bytes =
      absl::StrCat(observed(""), observed(R"("metadata": {"name": "first"})"),
                   observed(R"("metadata": {"name": "second"})"));
  EXPECT_EQ(ReadComposite({bytes}).name, "first");
  Outline outline;
  ASSERT_TRUE(ReadOutline({bytes}, &outline));
  EXPECT_EQ(outline.composite.name, "first");
  // The bytes after the name are not read.
  EXPECT_EQ(ReadComposite({absl::StrCat(bytes, "\x12\x7f")}).name, "first");
}

TEST(Identity, IsOfTheCompositeTheInputAndWhatIsRequired) {
  RequestNodes nodes(FingerprintSecret::Random());
  const FingerprintSecret secret = FingerprintSecret::Random();
  const auto identity = [&secret](const std::string& json) {
    RequestNodes read(secret);
    EXPECT_TRUE(read.Read({FromJson(json).SerializeAsString()}));
    return IdentityOf("f", read.nodes());
  };
  const auto request = [](const std::string& name, const std::string& version,
                          const std::string& rest) {
    return absl::StrCat(
        R"({"observed": {"composite": {"resource": {"kind": "X",
            "metadata": {"name": ")",
        name, R"(", "resourceVersion": ")", version, "\"}}}}", rest, "}");
  };
  const uint64_t base = identity(request("a", "1", R"(, "input": {"k": 1})"));
  EXPECT_EQ(base, identity(request("a", "2", R"(, "input": {"k": 1})")));
  EXPECT_NE(base, identity(request("b", "1", R"(, "input": {"k": 1})")));
  EXPECT_NE(base, identity(request("a", "1", R"(, "input": {"k": 2})")));
  EXPECT_NE(base, identity(request("a", "1",
                                   R"(, "input": {"k": 1},
                                      "requiredResources": {"r": {}})")));
}

TEST(Writers, TheNewestEntryOfEachObjectIsTold) {
  RequestNodes nodes(FingerprintSecret::Random());
  ASSERT_TRUE(nodes.Read({FromJson(R"({"observed": {"resources": {"b": {
      "resource": {"metadata": {"managedFields": [
        {"manager": "old", "operation": "Apply",
         "time": "2026-01-01T00:00:00Z"},
        {"manager": "new", "operation": "Update", "subresource": "status",
         "time": "2026-01-02T00:00:00Z"},
        {"manager": "older", "operation": "Apply",
         "time": "2025-01-02T00:00:00Z"}]}}}}}})")
                              .SerializeAsString()}));
  const auto writers = WritersOf(nodes.nodes());
  ASSERT_EQ(writers.size(), 1u);
  EXPECT_EQ(writers[0].object, "observed.resources.b.resource");
  EXPECT_EQ(writers[0].manager, "new");
  EXPECT_EQ(writers[0].operation, "Update");
  EXPECT_EQ(writers[0].subresource, "status");
}

TEST(Writers, OnlyObjectsOfTheProtocolHaveThem) {
  RequestNodes nodes(FingerprintSecret::Random());
  ASSERT_TRUE(nodes.Read({FromJson(R"({"input": {"resource": {"metadata": {
      "managedFields": [{"manager": "m"}]}}}})")
                              .SerializeAsString()}));
  EXPECT_THAT(WritersOf(nodes.nodes()), IsEmpty());
}

TEST(Sections, ArePartsOfTheRequest) {
  EXPECT_EQ(SectionOf("observed.composite.resource.spec"), "composite");
  EXPECT_EQ(SectionOf("observed.resources.a.resource.spec"),
            "observed resource");
  EXPECT_EQ(SectionOf("context.a"), "context");
  EXPECT_EQ(SectionOf("required_resources.a.items[0].resource.spec"),
            "required resource");
  EXPECT_EQ(ObjectOf("required_resources.a.items[0].resource.spec.x"),
            "required_resources.a.items[0].resource");
  EXPECT_EQ(ObjectOf("context.a"), "");
}

}  // namespace
}  // namespace fncache::insight::request
