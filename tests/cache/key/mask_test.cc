// SPDX-License-Identifier: Apache-2.0
#include "cache/key/mask.h"

#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "cache/key/digest.h"
#include "cache/key/reencode.h"
#include "common/utf8.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/request_data.h"

namespace fncache::cache::key {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct Refused {
  const char* path;
  const char* why;
};

TEST(Mask, WhatACacheMayIgnore) {
  for (const char* path :
       {"observed.composite.resource.metadata.labels",
        "observed.composite.resource.metadata.resourceVersion",
        "observed.composite.resource.spec.crossplane",
        "observed.composite.resource.*.x", "observed.composite.resource.status",
        "observed.composite.resource.status.conditions.*.lastTransitionTime",
        "observed.resources.bucket.resource.spec.forProvider",
        "observed.resources.*.resource.metadata.managedFields",
        "observed.resources.\"a.b\".resource.\"x y\"",
        "required_resources.*.items.*.resource.status",
        "required_resources.envs.items.*.resource.metadata.uid",
        "observed.resources.a.resource.spec.\"*\"",
        "extra_resources.*.items.*.resource.status", "context.key",
        "context.\"example.org/now\"", "context.\"example.org/now\".*.x"}) {
    EXPECT_EQ(MaskSet::Parse({path}).status(), absl::OkStatus()) << path;
  }
}

// The CPU time of this thread: it does not count while the machine stalls.
absl::Duration ThreadCpu() {
  timespec spent = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return absl::DurationFromTimespec(spent);
}

// The work of Parse for these masks: the least of a few times.
absl::Duration TimeToParse(const std::vector<std::string>& masks) {
  absl::Duration least = absl::InfiniteDuration();
  for (int i = 0; i < 5; ++i) {
    const absl::Duration start = ThreadCpu();
    EXPECT_TRUE(MaskSet::Parse(masks).ok());
    least = std::min(least, ThreadCpu() - start);
  }
  return least;
}

// Half of them differ early and half of them late, and of each three one has a
// star.
std::vector<std::string> ManyMasks(int count) {
  std::vector<std::string> masks;
  for (int i = 0; i < count; ++i) {
    const std::string name = absl::StrCat("name-", i);
    const char* const first = i % 3 == 0 ? "*" : "some";
    masks.push_back(i % 2 == 0 ? absl::StrCat("observed.resources.", name,
                                              ".resource.", first, ".field")
                               : absl::StrCat("observed.composite.resource.",
                                              first, ".status.", name));
  }
  return masks;
}

TEST(Mask, ThousandsOfMasksAreReadInTimeThatGrowsAsTheyDo) {
  const absl::Duration some = TimeToParse(ManyMasks(2000));
  const absl::Duration many = TimeToParse(ManyMasks(8000));
  // 4 times as many; were each held against each, it would be 16 times as long.
  EXPECT_LT(many / some, 10) << some << ", " << many;
  EXPECT_EQ(MaskSet::Parse(ManyMasks(8000))->paths().size(), 8000);
}

TEST(Mask, OfManyMasksThoseThatOthersCoverAreLeftOut) {
  std::vector<std::string> masks = ManyMasks(300);
  masks.push_back("observed.resources.*.resource.some");
  masks.push_back("observed.composite.resource.*.status");
  EXPECT_THAT(MaskSet::Parse(masks)->canonical(),
              Contains("observed.resources.*.resource.some"));
  // Left are the other one and those with a star below a resource.
  EXPECT_EQ(MaskSet::Parse(masks)->paths().size(), 52);
}

TEST(Mask, ALongOneIsCitedByItsBeginning) {
  const std::string key(5000, 'k');
  const std::string umlauts = absl::StrReplaceAll(key, {{"k", "\xc3\xa4"}});
  for (const std::string& path :
       {"context." + key + "[0]", "observed." + key, "meta." + umlauts,
        "observed.composite.ready." + key, "context.\"" + umlauts, "@" + key,
        "context." + key + "\xff", "context.a b" + key}) {
    const std::string error(MaskSet::Parse({path}).status().message());
    EXPECT_THAT(error, HasSubstr("...`")) << error;
    EXPECT_LT(error.size(), 700) << error;
    EXPECT_TRUE(IsUtf8(error)) << error;
    // Its beginning, and no more of it than the limit.
    EXPECT_THAT(error, StartsWith("`" + Printable(path.substr(0, 5))));
    EXPECT_THAT(error, Not(HasSubstr(std::string(101, 'k'))));
  }
  const std::string warned = MaskSet::Parse({"context." + key})->warnings()[0];
  EXPECT_THAT(warned, Not(HasSubstr(std::string(101, 'k'))));
  // Characters that a terminal would obey are shown as text.
  EXPECT_THAT(MaskSet::Parse({"context.a\x1b[31m"}).status().message(),
              HasSubstr("\\x1b"));
}

TEST(Mask, APathDeeperThanAnyRequestIsRefused) {
  std::string path = "context.a";
  for (int i = 0; i < 998; ++i) path += ".a";
  EXPECT_TRUE(MaskSet::Parse({path}).ok());
  EXPECT_THAT(MaskSet::Parse({path + ".a"}).status().message(),
              HasSubstr("more than 1000 elements"));
  for (int i = 0; i < 300000; ++i) path += ".a";
  EXPECT_THAT(MaskSet::Parse({path}).status().message(),
              HasSubstr("more than 1000 elements"));
}

TEST(Mask, WhatACacheMayNotIgnoreIsRefusedWithTheReason) {
  for (const char* path : {"meta",
                           "meta.tag",
                           "meta.capabilities",
                           "observed",
                           "observed.composite",
                           "observed.composite.resource",
                           "observed.composite.ready",
                           "observed.composite.connection_details.a",
                           "observed.resources",
                           "observed.resources.*",
                           "observed.resources.a",
                           "observed.resources.*.resource",
                           "observed.resources.*.ready",
                           "desired",
                           "desired.composite.resource.spec",
                           "desired.resources.*.resource.spec",
                           "input",
                           "input.spec",
                           "context",
                           "context.*",
                           "context.*.a",
                           "credentials",
                           "credentials.a",
                           "credentials.a.credential_data.data.password",
                           "required_resources",
                           "required_resources.*",
                           "required_resources.a.items",
                           "required_resources.a.items.*",
                           "required_resources.a.items.*.resource",
                           "extra_resources.a.items.*.resource",
                           "required_resources.a.items.*.ready",
                           "required_schemas.a",
                           "required_schemas.a.openapi_v3.info"}) {
    const absl::Status status = MaskSet::Parse({path}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << path;
    EXPECT_THAT(status.message(), HasSubstr(path));
    EXPECT_THAT(status.message(), HasSubstr("may not be masked"));
    // Any of them can be left out of a comparison.
    EXPECT_EQ(MaskSet::Parse({path}, MaskRules::kAnyPath).status(),
              absl::OkStatus())
        << path;
  }
}

// Names, labels and what users ask for are in there.
TEST(Mask, AWholeSpecOrMetadataIsRefusedWithTheReason) {
  for (const std::string object :
       {"observed.composite.resource", "observed.resources.db.resource",
        "observed.resources.*.resource",
        "required_resources.*.items.*.resource",
        "extra_resources.a.items.*.resource"}) {
    for (const char* whole :
         {"spec", "metadata", "spec.*", "metadata.*", "*", "*.*"}) {
      const std::string path = absl::StrCat(object, ".", whole);
      const absl::Status status = MaskSet::Parse({path}).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << path;
      EXPECT_THAT(status.message(),
                  ::testing::AllOf(HasSubstr(path),
                                   HasSubstr("may not be "
                                             "masked"),
                                   HasSubstr("a whole spec or metadata")));
      EXPECT_TRUE(MaskSet::Parse({path}, MaskRules::kAnyPath).ok()) << path;
    }
    EXPECT_TRUE(MaskSet::Parse({object + ".spec.\"*\""}).ok());
    EXPECT_TRUE(MaskSet::Parse({object + ".metadata.*.x"}).ok());
  }
}

// In a quoted name a star is one character like others.
TEST(Mask, AQuotedStarIsAnOrdinaryCharacter) {
  const auto masks =
      MaskSet::Parse({"observed.resources.\"bucket-*\".resource.status.x"});
  ASSERT_TRUE(masks.ok()) << masks.status();
  EXPECT_THAT(masks->canonical(),
              ElementsAre("observed.resources.\"bucket-*\".resource.status.x"));
}

TEST(Mask, WhatUsersAskForWarns) {
  const MaskSet masks = *MaskSet::Parse(
      {"observed.composite.resource.spec.size",
       "observed.composite.resource.spec.crossplane.resourceRefs",
       "observed.composite.resource.spec.crossplane",
       "observed.composite.resource.*.region",
       "observed.resources.db.resource.spec.forProvider.size",
       "observed.composite.resource.status.size"});
  EXPECT_THAT(masks.warnings(),
              ElementsAre(::testing::AllOf(
                              HasSubstr("observed.composite.resource.*.region"),
                              HasSubstr("what users ask for")),
                          HasSubstr("observed.composite.resource.spec.size")));
}

TEST(Mask, WhatIsNoPathIsRefusedWithTheReason) {
  const Refused refused[] = {
      {"", "empty"},
      {".", "empty"},
      {"context.", "empty"},
      {".context", "empty"},
      {"context..a", "empty"},
      {"context.\"a", "not closed"},
      {"context.\"a\"b", "only a dot"},
      {"context.\"a\\n\"", "backslash"},
      {"context.\"a\\", "backslash"},
      {"context.a\"b\"", "must be quoted"},
      {"context.a*", "`*` stands for a whole key"},
      {"context.**", "`*` stands for a whole key"},
      {"observed.resources.bucket-*.resource.status.x",
       "`bucket-*`: `*` stands for a whole key"},
      {"context.a b", "must be quoted"},
      {" context.a", "must be quoted"},
      {"context.a\\.b", "must be quoted"},
      {"context.a.0", "indices"},
      {"context.a[0]", "indices"},
      {"context.a.[*]", "indices"},
      {"required_resources.a.items.0.resource.spec", "indices"},
      {"required_resources.a.items.first.resource.spec", "list"},
      {"required_resources.a.items.\"0\".resource.spec", "list"},
      {"observed.composite.resources.a", "no field `resources`"},
      {"Observed", "no field"},
      {"observed.composit", "no field"},
      {"metadata.name", "RunFunctionRequest has no field"},
      {"credentials.a.source", "no field"},
      {"observed.*.resource.a", "not for a field of State"},
      {"*", "not for a field"},
      {"meta.tag.x", "nothing below"},
      {"meta.capabilities.*.x", "nothing below"},
      {"observed.composite.ready.x", "nothing below"},
      {"observed.composite.connection_details.a.b", "nothing below"},
      {"context.\xff", "UTF-8"},
  };
  for (const Refused& one : refused) {
    for (const MaskRules rules : {MaskRules::kCache, MaskRules::kAnyPath}) {
      const absl::Status status = MaskSet::Parse({one.path}, rules).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << one.path;
      EXPECT_THAT(status.message(), HasSubstr(one.why)) << one.path;
    }
  }
}

TEST(Mask, OneWrongPathAmongManyIsNamed) {
  EXPECT_THAT(MaskSet::Parse({"context.a", "context.b c", "context.d"})
                  .status()
                  .message(),
              HasSubstr("`context.b c`"));
}

TEST(Mask, MaskedContextWarns) {
  const MaskSet masks =
      *MaskSet::Parse({"observed.composite.resource.status",
                       "context.\"example.org/now\"", "context.a.b"});
  EXPECT_THAT(masks.warnings(),
              ElementsAre(HasSubstr("context.\"example.org/now\""),
                          HasSubstr("context.a.b")));
  EXPECT_THAT(MaskSet::Parse({"observed.composite.resource.a"})->warnings(),
              IsEmpty());
}

TEST(Mask, EqualSetsHaveOneSpelling) {
  const auto canonical = [](const std::vector<std::string>& paths) {
    return MaskSet::Parse(paths, MaskRules::kAnyPath)->canonical();
  };
  EXPECT_THAT(canonical({}), IsEmpty());
  EXPECT_THAT(canonical({"context.b", "context.a", "context.\"b\""}),
              ElementsAre("context.a", "context.b"));
  EXPECT_THAT(canonical({"context.\"a.b\"", "context.\"\"", "context.\"12\"",
                         "context.\"*\"", "context.\"q\\\"\\\\\""}),
              ElementsAre("context.\"\"", "context.\"*\"", "context.\"12\"",
                          "context.\"a.b\"", "context.\"q\\\"\\\\\""));
  // A mask that another one covers adds nothing.
  EXPECT_THAT(canonical({"context.a.b", "context.a", "context.a.*.c"}),
              ElementsAre("context.a"));
  EXPECT_THAT(canonical({"context.a.b", "context.*.b", "context.*.b.c"}),
              ElementsAre("context.*.b"));
  EXPECT_THAT(canonical({"context.*.b", "context.a.*"}),
              ElementsAre("context.*.b", "context.a.*"));
  EXPECT_THAT(canonical({"context.\"*\".b", "context.*.b"}),
              ElementsAre("context.*.b"));
  // A canonical spelling is its own.
  const std::vector<std::string> odd =
      canonical({"context.\"a.b\"", "context.\"12\".\"q\\\"\"", "context.c"});
  EXPECT_EQ(canonical(odd), odd);
}

TEST(Mask, StarsBesideNamesAreBounded) {
  // Each level doubles the trie: * beside a name, in every combination.
  std::vector<std::string> paths;
  for (int i = 0; i < 24; ++i) {
    std::string path = "context.k";
    for (int j = 0; j < 24; ++j) path += i == j ? ".a" : ".*";
    paths.push_back(path);
  }
  EXPECT_THAT(MaskSet::Parse(paths).status().message(),
              HasSubstr("too many paths"));
}

using apiextensions::fn::proto::v1::RunFunctionRequest;

RunFunctionRequest FromJson(const std::string& json) {
  RunFunctionRequest request;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &request).ok())
      << json;
  return request;
}

std::string KeyUnder(const MaskSet& masks, const RunFunctionRequest& request) {
  const Digester digester(TestSeed(), {"f", "m", "g"}, masks);
  DigestScratch scratch;
  const std::string bytes = request.SerializeAsString();
  const Digest digest = digester.Compute({bytes}, &scratch);
  EXPECT_TRUE(digest.keyed);
  return digest.key.Hex();
}

struct Masked {
  std::vector<std::string> masks;
  const char* a;
  const char* b;
  bool equal;
};

TEST(Mask, MaskingRemovesFieldsAndEntriesAndKeepsParentsAndCounts) {
  const Masked cases[] = {
      // A masked entry and an absent one are equal, and so is what is below.
      {{"context.a"}, R"({"context":{"a":1}})", R"({"context":{}})", true},
      {{"context.a"},
       R"({"context":{"a":{"b":2}}})",
       R"({"context":{}})",
       true},
      // Its parent stays.
      {{"context.a"}, R"({"context":{"a":1}})", R"({})", false},
      {{"context.a.b"},
       R"({"context":{"a":{"b":1}}})",
       R"({"context":{}})",
       false},
      {{"context.a.b"},
       R"({"context":{"a":{"b":1}}})",
       R"({"context":{"a":{}}})",
       true},
      // Others stay.
      {{"context.a"},
       R"({"context":{"a":1,"b":1}})",
       R"({"context":{"a":1,"b":2}})",
       false},
      // A path through what is neither map nor list means nothing.
      {{"context.a.b"},
       R"({"context":{"a":"x"}})",
       R"({"context":{"a":"y"}})",
       false},
      {{"context.a.b"},
       R"({"context":{"a":[{"b":1}]}})",
       R"({"context":{"a":[{"b":2}]}})",
       false},
      // Lists keep their count.
      {{"context.a.*"},
       R"({"context":{"a":[1,{"x":2}]}})",
       R"({"context":{"a":["x",[]]}})",
       true},
      {{"context.a.*"},
       R"({"context":{"a":[1,2]}})",
       R"({"context":{"a":[1]}})",
       false},
      {{"context.a.*"},
       R"({"context":{"a":{"x":1}}})",
       R"({"context":{"a":{}}})",
       true},
      {{"context.a.*"},
       R"({"context":{"a":[]}})",
       R"({"context":{"a":{}}})",
       false},
      {{"context.a.*.t"},
       R"({"context":{"a":[{"t":1,"u":2},{"t":3}]}})",
       R"({"context":{"a":[{"u":2},{}]}})",
       true},
      {{"context.a.*.t"},
       R"({"context":{"a":[{"t":1,"u":2}]}})",
       R"({"context":{"a":[{"u":3}]}})",
       false},
      {{"context.a.*.*.t"},
       R"({"context":{"a":[[{"t":1}],{"k":{"t":2}}]}})",
       R"({"context":{"a":[[{}],{"k":{}}]}})",
       true},
      // Keys as they are.
      {{"context.\"a.b\""},
       R"({"context":{"a.b":1}})",
       R"({"context":{}})",
       true},
      {{"context.\"*\""}, R"({"context":{"a":1}})", R"({"context":{}})", false},
      {{"context.\"*\""}, R"({"context":{"*":1}})", R"({"context":{}})", true},
      {{"context.\"\""}, R"({"context":{"":1}})", R"({"context":{}})", true},
      // Struct's inner fields are keys like others.
      {{"context.fields.a"},
       R"({"context":{"a":1}})",
       R"({"context":{"a":2}})",
       false},
      // `*` and a name beside it.
      {{"context.a.*.x", "context.a.k.y"},
       R"({"context":{"a":{"k":{"x":1,"y":2,"z":3},"l":{"x":1,"y":2}}}})",
       R"({"context":{"a":{"k":{"z":3},"l":{"y":2}}}})",
       true},
      {{"context.a.*.x", "context.a.k.y"},
       R"({"context":{"a":{"l":{"x":1,"y":2}}}})",
       R"({"context":{"a":{"l":{"x":1,"y":3}}}})",
       false},
      // Resources of every kind.
      {{"observed.composite.resource.metadata.resourceVersion",
        "observed.resources.*.resource.metadata.resourceVersion"},
       R"({"observed":{"composite":{"resource":{"metadata":
           {"resourceVersion":"1","name":"x"}}},"resources":
           {"r":{"resource":{"metadata":{"resourceVersion":"2"}}}}}})",
       R"({"observed":{"composite":{"resource":{"metadata":
           {"resourceVersion":"7","name":"x"}}},"resources":
           {"r":{"resource":{"metadata":{}}}}}})",
       true},
      {{"required_resources.*.items.*.resource.status"},
       R"({"requiredResources":{"a":{"items":[{"resource":{"status":{"x":1}}}]}}})",
       R"({"requiredResources":{"a":{"items":[{"resource":{}}]}}})",
       true},
      {{"required_resources.*.items.*.resource.status"},
       R"({"requiredResources":{"a":{"items":[{"resource":{}},{}]}}})",
       R"({"requiredResources":{"a":{"items":[{"resource":{}}]}}})",
       false},
      {{"extra_resources.a.items.*.resource.*"},
       R"({"extraResources":{"a":{"items":[{"resource":{"x":1}}]}}})",
       R"({"extraResources":{"a":{"items":[{"resource":{}}]}}})",
       true},
      {{"extra_resources.a.items.*.resource.*"},
       R"({"extraResources":{"b":{"items":[{"resource":{"x":1}}]}}})",
       R"({"extraResources":{"b":{"items":[{"resource":{}}]}}})",
       false},
      // Any path.
      {{"required_resources.a.items.*"},
       R"({"requiredResources":{"a":{"items":[{"resource":{},"ready":1}]}}})",
       R"({"requiredResources":{"a":{"items":[{}]}}})",
       true},
      {{"meta.capabilities.*"},
       R"({"meta":{"capabilities":[1,2]}})",
       R"({"meta":{"capabilities":[3,0]}})",
       true},
      {{"meta.capabilities.*"},
       R"({"meta":{"capabilities":[1,2]}})",
       R"({"meta":{"capabilities":[1]}})",
       false},
      {{"meta.capabilities"},
       R"({"meta":{"capabilities":[1,2]}})",
       R"({"meta":{}})",
       true},
      {{"observed.composite.connection_details.a"},
       R"({"observed":{"composite":{"connectionDetails":{"a":"eA=="}}}})",
       R"({"observed":{"composite":{}}})",
       true},
      {{"credentials.*.credential_data.data.p"},
       R"({"credentials":{"c":{"credentialData":{"data":{"p":"eA=="}}}}})",
       R"({"credentials":{"c":{"credentialData":{}}}})",
       true},
      {{"observed.composite.ready"},
       R"({"observed":{"composite":{"ready":1}}})",
       R"({"observed":{"composite":{}}})",
       true},
      {{"observed"}, R"({"observed":{"composite":{}}})", R"({})", true},
  };
  for (const Masked& one : cases) {
    const MaskSet masks = *MaskSet::Parse(one.masks, MaskRules::kAnyPath);
    RunFunctionRequest a = FromJson(one.a);
    RunFunctionRequest b = FromJson(one.b);
    EXPECT_EQ(KeyUnder(masks, a) == KeyUnder(masks, b), one.equal)
        << one.a << ' ' << one.b;
    // Without the masks they are two.
    EXPECT_NE(KeyUnder(MaskSet(), a), KeyUnder(MaskSet(), b)) << one.a;
    ClearMasked(masks, &a);
    ClearMasked(masks, &b);
    EXPECT_EQ(KeyUnder(MaskSet(), a) == KeyUnder(MaskSet(), b), one.equal)
        << one.a << ' ' << one.b;
  }
}

TEST(Mask, LengthsThatShrinkAreWrittenAnew) {
  // Masked parts of every size around the steps of a varint's length.
  const MaskSet masks =
      *MaskSet::Parse({"context.a.b", "context.list.*.x", "context.list.*.y"});
  const RunFunctionRequest bare =
      FromJson(R"({"context":{"a":{},"list":[{"z":1},"s"]}})");
  for (int size :
       {0,   1,   90,  100, 110, 120,   121,   122,   123,   124,
        125, 126, 127, 128, 129, 16000, 16300, 16380, 16384, 2100000}) {
    const std::string text(size, 'x');
    RunFunctionRequest request = bare;
    auto& fields = *request.mutable_context()->mutable_fields();
    (*fields["a"].mutable_struct_value()->mutable_fields())["b"]
        .set_string_value(text);
    (*fields["list"]
          .mutable_list_value()
          ->mutable_values(0)
          ->mutable_struct_value()
          ->mutable_fields())["y"]
        .set_string_value(text);
    EXPECT_EQ(KeyUnder(masks, request), KeyUnder(masks, bare)) << size;
  }
}

TEST(NamedMaskSets, AreWhatDesignSays) {
  const auto paths = [](const std::string& name) {
    return MaskSet::Parse({name})->canonical();
  };
  std::vector<std::string> versions;
  std::vector<std::string> times;
  for (const std::string object :
       {"extra_resources.*.items.*.resource", "observed.composite.resource",
        "observed.resources.*.resource",
        "required_resources.*.items.*.resource"}) {
    versions.push_back(object + ".metadata.generation");
    versions.push_back(object + ".metadata.managedFields");
    versions.push_back(object + ".metadata.resourceVersion");
    versions.push_back(object + ".status.conditions.*.observedGeneration");
    times.push_back(object + ".status.conditions.*.lastTransitionTime");
  }
  EXPECT_EQ(paths("@versions"), versions);
  EXPECT_EQ(paths("@times"), times);
  EXPECT_THAT(paths("@composite-conditions"),
              ElementsAre("observed.composite.resource.status.conditions"));
  EXPECT_EQ(NamedMaskSets().size(), 3u);
}

TEST(NamedMaskSets, AddUpWithPathsInAnyOrder) {
  const auto mixed = MaskSet::Parse(
      {"@times", "context.now", "@composite-conditions", "@times"});
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  std::vector<std::string> spelled;
  for (const NamedMaskSet& set : NamedMaskSets()) {
    if (set.name == "@versions") continue;
    spelled.insert(spelled.end(), set.paths.begin(), set.paths.end());
  }
  spelled.push_back("context.now");
  const auto same = MaskSet::Parse(spelled);
  EXPECT_EQ(mixed->canonical(), same->canonical());
  // The composite's times are covered by its conditions.
  EXPECT_EQ(mixed->canonical().size(), 1 + 1 + 3u);
  EXPECT_THAT(mixed->warnings(), ::testing::SizeIs(1));
}

TEST(NamedMaskSets, WarnOfNothing) {
  for (const NamedMaskSet& set : NamedMaskSets()) {
    const auto masks = MaskSet::Parse({set.name});
    ASSERT_TRUE(masks.ok()) << masks.status();
    EXPECT_THAT(masks->warnings(), IsEmpty());
  }
}

TEST(NamedMaskSets, AnotherNameIsRefusedWithTheOnesThereAre) {
  for (const char* name : {"@", "@version", "@Versions", "@versions ",
                           "@versions.x", "@composite_conditions"}) {
    const auto masks = MaskSet::Parse({name});
    ASSERT_FALSE(masks.ok()) << name;
    EXPECT_THAT(std::string(masks.status().message()),
                ::testing::AllOf(
                    HasSubstr(name),
                    HasSubstr("@versions, @times, @composite-conditions")));
  }
}

TEST(NamedMaskSets, SignIsAnOrdinaryCharacterElsewhere) {
  EXPECT_TRUE(
      MaskSet::Parse({"observed.composite.resource.spec.@version"}).ok());
}

// It would mask a key that does not exist.
TEST(NamedMaskSets, NameBelowAPathIsRefusedUnlessQuoted) {
  const auto bare = MaskSet::Parse({"observed.resources.*.resource.@versions"});
  ASSERT_FALSE(bare.ok());
  EXPECT_THAT(std::string(bare.status().message()),
              HasSubstr("`@versions` is the name of a set, which stands alone; "
                        "a map key of this name is quoted"));
  const std::string quoted = "observed.resources.*.resource.\"@versions\"";
  const auto key = MaskSet::Parse({quoted});
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_THAT(key->canonical(), ::testing::ElementsAre(quoted));
}

TEST(NamedMaskSets, QuotesThatAShellLeftAreNamed) {
  const auto masks = MaskSet::Parse({"\"@versions\""});
  ASSERT_FALSE(masks.ok());
  EXPECT_THAT(std::string(masks.status().message()),
              HasSubstr("without them it names a set"));
}

}  // namespace
}  // namespace fncache::cache::key
