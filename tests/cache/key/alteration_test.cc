// SPDX-License-Identifier: Apache-2.0
// Questions: altered requests have the key of the request, and other drift.
#include "cache/key/alteration.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "cache/key/digest.h"
#include "cache/key/reencode.h"
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

constexpr Question kQuestions[] = {Question::kLongAgo, Question::kFarAhead,
                                   Question::kShuffled, Question::kReverse};

absl::Time Now() { return absl::FromUnixSeconds(1'795'000'000); }

RunFunctionRequest Parsed(const std::string& bytes) {
  RunFunctionRequest request;
  EXPECT_TRUE(ParseRequest(bytes, &request));
  return request;
}

// The texts of all times and versions, those in managedFields too, by path.
std::map<std::string, std::string> Texts(RunFunctionRequest* request) {
  std::map<std::string, std::string> texts;
  for (const FoundDrift& drift : FindDrift(request)) {
    if (drift.type != 'm') texts[drift.path] = drift.value->string_value();
  }
  return texts;
}

// A composed resource with these versions and these times in its status.
RunFunctionRequest Request(const std::vector<std::string>& versions,
                           const std::vector<std::string>& times) {
  RunFunctionRequest request;
  request.mutable_meta()->set_tag("the caller's");
  for (size_t i = 0; i < std::max(versions.size(), times.size()); ++i) {
    auto& object = *(*request.mutable_observed()
                          ->mutable_resources())["r" + std::to_string(i)]
                        .mutable_resource()
                        ->mutable_fields();
    if (i < versions.size()) {
      (*object["metadata"]
            .mutable_struct_value()
            ->mutable_fields())["resourceVersion"]
          .set_string_value(versions[i]);
    }
    if (i < times.size()) {
      (*object["status"].mutable_struct_value()->mutable_fields())["t"]
          .set_string_value(times[i]);
    }
  }
  return request;
}

std::string Altered4(const RunFunctionRequest& request, Question question,
                     Altered altered = Altered::kAll, uint64_t seed = 1) {
  const auto bytes = Alter(request.SerializeAsString(), MaskSet(), question,
                           altered, seed, Now());
  EXPECT_TRUE(bytes.has_value());
  return bytes.value_or("");
}

TEST(Alteration, LongAgoIsTenYearsAgoAndTheLowestVersion) {
  RunFunctionRequest request =
      Parsed(Altered4(Request({"4711", "8"}, {"2026-11-22T09:42:57Z",
                                              "2026-11-22T09:42:57.123+02:00"}),
                      Question::kLongAgo));
  const auto texts = Texts(&request);
  EXPECT_EQ(texts.at("/composed/r0/metadata/resourceVersion"), "1000");
  EXPECT_EQ(texts.at("/composed/r1/metadata/resourceVersion"), "1");
  EXPECT_EQ(texts.at("/composed/r0/status/t"), "2016-11-18T11:06:40Z");
  // The same instant.
  EXPECT_EQ(texts.at("/composed/r1/status/t"), "2016-11-18T13:06:40.000+02:00");
}

TEST(Alteration, FarAheadIsInTenYearsAndTheHighestVersion) {
  RunFunctionRequest request = Parsed(
      Altered4(Request({"4711", "1234567890123456789", "12345678901234567890"},
                       {"2026-11-22T09:42:57.5-11:30"}),
               Question::kFarAhead));
  const auto texts = Texts(&request);
  EXPECT_EQ(texts.at("/composed/r0/metadata/resourceVersion"), "9999");
  EXPECT_EQ(texts.at("/composed/r1/metadata/resourceVersion"),
            "9223372036854775807");
  EXPECT_EQ(texts.at("/composed/r2/metadata/resourceVersion"),
            "09223372036854775807");
  EXPECT_EQ(texts.at("/composed/r0/status/t"), "2036-11-16T23:36:40.0-11:30");
}

TEST(Alteration, TheFourthQuestionHasTheReverseOrderOfTheThird) {
  const std::vector<std::string> versions = {"4711", "4712", "4713", "4714"};
  const std::vector<std::string> times = {
      "2026-11-22T09:42:57Z", "2026-11-22T09:42:58Z", "2026-11-22T09:42:59Z",
      "2026-11-22T09:43:00Z"};
  const RunFunctionRequest request = Request(versions, times);
  int orders = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RunFunctionRequest third =
        Parsed(Altered4(request, Question::kShuffled, Altered::kAll, seed));
    RunFunctionRequest fourth =
        Parsed(Altered4(request, Question::kReverse, Altered::kAll, seed));
    const auto before = Texts(&third);
    const auto after = Texts(&fourth);
    for (const auto& [path_a, a] : before) {
      for (const auto& [path_b, b] : before) {
        if (path_a == path_b || path_a.substr(13) != path_b.substr(13))
          continue;
        EXPECT_NE(a, b);
        EXPECT_EQ(a<b, after.at(path_a)> after.at(path_b));
        if (path_a < path_b && a < b) ++orders;
      }
    }
  }
  // Half of 240 pairs, as the order is random.
  EXPECT_GT(orders, 80);
  EXPECT_LT(orders, 160);
}

TEST(Alteration, EachTextOfManagedFieldsAndEachNamedFieldIsAnother) {
  RunFunctionRequest request = Request({"4711"}, {});
  auto& fields = *(*request.mutable_observed()->mutable_resources())["r0"]
                      .mutable_resource()
                      ->mutable_fields();
  const auto field = [](pb::Value* value, const std::string& key) {
    return &(*value->mutable_struct_value()->mutable_fields())[key];
  };
  pb::Value* const entry = field(&fields["metadata"], "managedFields")
                               ->mutable_list_value()
                               ->add_values();
  field(entry, "manager")->set_string_value("tool-10z");
  field(entry, "operation")->set_string_value("Update");
  pb::Value* const owned = field(entry, "fieldsV1");
  field(field(owned, "f:spec"), "f:replicas")->mutable_struct_value();
  field(field(owned, "f:spec"), ".")->mutable_struct_value();
  for (const Altered altered : {Altered::kAll, Altered::kVersions}) {
    const RunFunctionRequest after =
        Parsed(Altered4(request, Question::kFarAhead, altered));
    const auto& found = after.observed()
                            .resources()
                            .at("r0")
                            .resource()
                            .fields()
                            .at("metadata")
                            .struct_value()
                            .fields()
                            .at("managedFields")
                            .list_value()
                            .values(0)
                            .struct_value()
                            .fields();
    EXPECT_EQ(found.at("manager").string_value(), "vqqn-32b");
    EXPECT_EQ(found.at("operation").string_value(), "Wrfcvg");
    const auto& spec = found.at("fieldsV1").struct_value().fields();
    ASSERT_EQ(spec.count("f:urge"), 1u);
    const auto& names = spec.at("f:urge").struct_value().fields();
    EXPECT_EQ(names.count("f:tgrnkecu"), 1u);
    EXPECT_EQ(names.count("."), 1u);
    EXPECT_EQ(names.size(), 2u);
  }
}

TEST(Alteration, OfVersionsLeavesTimesAsTheyAre) {
  const RunFunctionRequest request =
      Request({"4711"}, {"2026-11-22T09:42:57Z"});
  for (const Question question : kQuestions) {
    RunFunctionRequest altered =
        Parsed(Altered4(request, question, Altered::kVersions));
    const auto texts = Texts(&altered);
    EXPECT_EQ(texts.at("/composed/r0/status/t"), "2026-11-22T09:42:57Z");
    EXPECT_NE(texts.at("/composed/r0/metadata/resourceVersion"), "4711");
  }
}

TEST(Alteration, GivesEachRequestItsOwnTag) {
  const RunFunctionRequest request = Request({"1"}, {});
  std::vector<std::string> tags;
  for (const Question question : kQuestions) {
    tags.push_back(Parsed(Altered4(request, question)).meta().tag());
  }
  tags.push_back(Parsed(*WithOwnTag(request.SerializeAsString())).meta().tag());
  for (const std::string& tag : tags) {
    EXPECT_EQ(tag.size(), 64u);
    EXPECT_EQ(tag.find_first_not_of("0123456789abcdef"), tag.npos);
    EXPECT_EQ(std::count(tags.begin(), tags.end(), tag), 1);
  }
  // Without meta there is no tag: the key would be another one.
  RunFunctionRequest bare = request;
  bare.clear_meta();
  EXPECT_FALSE(Parsed(*WithOwnTag(bare.SerializeAsString())).has_meta());
}

TEST(Alteration, RefusesWhatIsNoRequest) {
  EXPECT_FALSE(
      Alter("\x0a", MaskSet(), Question::kLongAgo, Altered::kAll, 1, Now())
          .has_value());
  EXPECT_FALSE(WithOwnTag("\x0a").has_value());
}

// Whether managedFields have something that is altered: a text, or a name that
// follows a colon.
bool HasWords(const pb::Value& value) {
  const auto has = [](absl::string_view text) {
    return std::any_of(text.begin(), text.end(), absl::ascii_isalnum);
  };
  if (value.has_list_value()) {
    for (const pb::Value& inner : value.list_value().values()) {
      if (HasWords(inner)) return true;
    }
  }
  if (value.has_struct_value()) {
    for (const auto& [name, inner] : value.struct_value().fields()) {
      const size_t colon = name.find(':');
      if (colon != std::string::npos &&
          has(absl::string_view(name).substr(colon))) {
        return true;
      }
      if (HasWords(inner)) return true;
    }
  }
  return value.has_string_value() && has(value.string_value());
}

// The text with zeros for digits.
std::string FormOf(std::string text) {
  for (char& c : text) {
    if (absl::ascii_isdigit(c)) c = '0';
  }
  return text;
}

TEST(AlterationProperty, TheKeyIsTheSameAndTheDriftIsNot) {
  Random random(361);
  const std::vector<MaskSet> mask_sets = {
      MaskSet(), *MaskSet::Parse({"@times"}),
      *MaskSet::Parse(
          {"observed.resources.*.resource.status.conditions",
           "observed.composite.resource.metadata.resourceVersion"})};
  int drifts = 0;
  for (int i = 0; i < testing::ShortOrLong(300, 20'000); ++i) {
    RunFunctionRequest request = RandomRequest(&random);
    AddDrift(&request, &random);
    const MaskSet& masks = mask_sets[random.Below(mask_sets.size())];
    const Digester digester(
        Seed{},
        {"f", "m", "g", KeySource::kContent, KeyHash::kXxh3, /*drift=*/true},
        masks);
    DigestScratch scratch;
    const std::string bytes = Encode(request, Style::kWild, &random);
    const Key key = digester.Compute({bytes}, &scratch).key;
    // The view of messages, and that of bytes, are the same.
    RunFunctionRequest unmasked = request;
    ClearMasked(masks, &unmasked);
    const std::vector<FoundDrift> before = FindDrift(&unmasked);
    std::vector<int> differ(before.size());
    int visited = 0;
    RunFunctionRequest again = request;
    VisitDrift(masks, &again,
               [&](DriftSection, DriftType, absl::string_view, pb::Value*) {
                 ++visited;
               });
    ASSERT_EQ(visited, static_cast<int>(before.size()));
    const uint64_t seed = random.Bits();
    for (const Question question : kQuestions) {
      const auto altered =
          Alter(bytes, masks, question, Altered::kAll, seed, Now());
      ASSERT_TRUE(altered.has_value());
      ASSERT_EQ(digester.Compute({*altered}, &scratch).key, key);
      RunFunctionRequest after = Parsed(*altered);
      ClearMasked(masks, &after);
      const std::vector<FoundDrift> found = FindDrift(&after);
      ASSERT_EQ(found.size(), before.size());
      for (size_t j = 0; j < found.size(); ++j) {
        ASSERT_EQ(found[j].path, before[j].path);
        if (found[j].type != 'm') {
          EXPECT_EQ(FormOf(found[j].value->string_value()),
                    FormOf(before[j].value->string_value()));
          differ[j] +=
              found[j].value->string_value() != before[j].value->string_value()
                  ? 1
                  : 0;
        } else {
          EXPECT_EQ(found[j].value->ByteSizeLong(),
                    before[j].value->ByteSizeLong());
          // A list without words stays as it is.
          differ[j] += !HasWords(*before[j].value) ||
                               !SameMessage(*found[j].value, *before[j].value)
                           ? 1
                           : 0;
        }
      }
    }
    for (size_t j = 0; j < before.size(); ++j) {
      EXPECT_GE(differ[j], 3) << before[j].path;
      ++drifts;
    }
  }
  EXPECT_GT(drifts, 600);
}

}  // namespace
}  // namespace fncache::cache::key
