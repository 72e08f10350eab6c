// SPDX-License-Identifier: Apache-2.0
#include "cache/key/hint.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/cache/key/request_data.h"

namespace fncache::cache::key {
namespace {

struct Vector {
  std::string name;
  std::vector<std::string> fields;
  std::string reads;
  std::string pure;
  std::string refused;
};

std::vector<Vector> ReadVectors(const std::string& page) {
  std::vector<Vector> vectors;
  const size_t at = page.find("## Vectors");
  if (at == page.npos) return vectors;
  for (const absl::string_view line : absl::StrSplit(page.substr(at), '\n')) {
    const size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const absl::string_view name = line.substr(0, colon);
    // A field keeps its spaces behind the column.
    const absl::string_view rest = line.substr(colon + 1);
    const std::string text(absl::StripAsciiWhitespace(rest));
    if (name == "vector") {
      vectors.emplace_back().name = text;
    } else if (vectors.empty()) {
      continue;
    } else if (name == "field") {
      vectors.back().fields.emplace_back(absl::StripLeadingAsciiWhitespace(
          rest.size() < 3 ? absl::string_view() : rest.substr(3)));
      if (vectors.back().name == "spaces") {
        vectors.back().fields.back().insert(0, "  ");
      }
    } else if (name == "reads") {
      vectors.back().reads = text;
    } else if (name == "pure") {
      vectors.back().pure = text;
    } else if (name == "refused") {
      vectors.back().refused = text;
    } else {
      ADD_FAILURE() << "the page has another line: " << line;
    }
  }
  return vectors;
}

absl::StatusOr<Hint> Parse(const std::vector<std::string>& fields) {
  const std::vector<absl::string_view> values(fields.begin(), fields.end());
  return Hint::Parse(values);
}
Hint Of(const std::string& field) {
  auto hint = Parse({field});
  EXPECT_TRUE(hint.ok()) << field << ": " << hint.status();
  return hint.ok() ? *hint : Hint();
}
std::string WhyNot(const std::string& field) {
  const auto hint = Parse({field});
  return hint.ok() ? "taken" : std::string(hint.status().message());
}

TEST(HintFormat, EveryVectorHolds) {
  const std::vector<Vector> vectors = ReadVectors(ReadFile(
      std::filesystem::path(FNCACHE_SOURCE_DIR) / "docs" / "depends.md"));
  ASSERT_GE(vectors.size(), 30u);
  for (const Vector& vector : vectors) {
    SCOPED_TRACE(vector.name);
    const auto hint = Parse(vector.fields);
    if (!vector.refused.empty()) {
      EXPECT_EQ(hint.ok() ? "" : hint.status().message(), vector.refused);
      continue;
    }
    ASSERT_TRUE(hint.ok()) << hint.status();
    EXPECT_EQ(absl::StrJoin(hint->reads(), " "), vector.reads);
    EXPECT_EQ(hint->pure() ? "yes" : "no", vector.pure);
  }
}

TEST(Hint, IsBounded) {
  std::string many = "reads=(";
  for (size_t i = 0; i <= Hint::kMostPaths; ++i)
    absl::StrAppend(&many, "\"input\" ");
  EXPECT_EQ(WhyNot(many + ")"), "has more than 2048 paths");
  EXPECT_EQ(
      WhyNot("reads=(\"input." + std::string(Hint::kMostBytes, 'a') + "\")"),
      "has more than 65536 bytes");
  // Each name has what the star beside it says.
  std::string wide = "reads=(";
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&wide, "\"observed.resources.r", i, ".resource.a\" ");
    absl::StrAppend(&wide, "\"observed.resources.*.resource.b", i, ".c", i,
                    "\" ");
  }
  EXPECT_EQ(WhyNot(wide + ")"), "has too many paths with `*`");
}

TEST(Hint, SaysNoPathWhereItIsRefused) {
  for (const char* field :
       {"reads=(\"observed.secret\")", "reads=(\"secret", "secret=(",
        "reads=(\"@secret\")", "reads=(\"observed.resources.0.secret\")"}) {
    EXPECT_EQ(WhyNot(field).find("secret"), std::string::npos) << field;
  }
}

TEST(Hint, IsEqualByWhatItSays) {
  EXPECT_EQ(Of("reads=(\"observed\" \"observed.composite\")"),
            Of("reads=(\"observed\");x, y"));
  EXPECT_FALSE(Of("reads=(\"observed\")") == Of("reads=(\"observed\"), pure"));
  EXPECT_FALSE(Of("reads=(\"observed\")") == Of("reads=()"));
}

TEST(Hint, CountsWhatIsReadAndWhatNoMaskMayHide) {
  const Hint hint =
      Of("reads=(\"observed.composite.resource.spec.a.b\" "
         "\"observed.resources.*.resource.status.conditions.*.type\" "
         "\"observed.resources.db.resource\")");
  const auto counts = [&hint](const std::string& path) {
    const auto set = MaskSet::Parse({path}, MaskRules::kAnyPath);
    EXPECT_TRUE(set.ok()) << set.status();
    return hint.Counts(set->paths()[0]);
  };
  for (const char* path :
       {"observed.composite.resource.spec.a", "observed.composite.resource",
        "observed.composite.resource.spec.a.b",
        "observed.composite.resource.spec.a.b.c.d",
        "observed.composite.resource.metadata",
        "observed.composite.resource.spec", "input.size", "desired.composite",
        "context.\"a.b\".c", "observed.composite.ready",
        "observed.resources.x.connection_details.k", "credentials.k",
        "observed.resources.x.resource.status.conditions",
        "observed.resources.x.resource.status.conditions.*",
        "observed.resources.x.resource.status.conditions.*.type",
        "observed.resources.db.resource.status.anything",
        "observed.resources.x.resource.status.conditions.key.type"}) {
    EXPECT_TRUE(counts(path)) << path;
  }
  for (const char* path :
       {"observed.composite.resource.spec.b",
        "observed.composite.resource.metadata.name",
        "observed.composite.resource.kind",
        "observed.composite.resource.spec.a.c",
        "observed.resources.x.resource.status.conditions.*.reason",
        "observed.resources.x.resource.status.phase",
        "required_resources.v.items.*.resource.kind"}) {
    EXPECT_FALSE(counts(path)) << path;
  }
}

}  // namespace
}  // namespace fncache::cache::key
