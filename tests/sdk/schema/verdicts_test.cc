// SPDX-License-Identifier: Apache-2.0
// Validate compared with a JSON Schema validator, Python's
// openapi-schema-validator, on mutated objects: both find the same broken rules
// at the same paths, of the rules that both know.
//
// Where that package is not installed, its recorded verdicts stand for it. With
// FNCACHE_RECORD_VERDICTS=1 the test records them anew.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/field_path.h"
#include "fncache/function/value.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "sdk/schema/validate.h"
#include "tests/sdk/schema/random_object.h"
#include "tests/sdk/schema/real_schemas.h"

namespace fncache::sdk::schema {
namespace {

namespace fs = std::filesystem;
using text::Json;

constexpr char kScript[] = "python3 -B tests/sdk/schema/verdicts.py ";
constexpr size_t kObjects = 2000;
// For a verdict that the other validator cannot give.
constexpr char kNone[] = "?";

// Broken rules, each `PATH:RULE`, in order.
using Verdict = std::set<std::string>;

struct Case {
  Json schema;
  std::vector<Json> objects;
};

bool ValidatorIsThere() {
  return std::system(absl::StrCat(kScript, "--check").c_str()) == 0;
}

Json WithoutTexts(Json schema) {
  if (schema.is_object()) {
    for (auto field = schema.begin(); field != schema.end();) {
      const bool text = field.key() == "description" && field->is_string();
      field = text ? schema.erase(field) : std::next(field);
    }
  }
  for (Json& below : schema) {
    if (below.is_structured()) below = WithoutTexts(std::move(below));
  }
  return schema;
}

// `count` objects of `schemas` in all; some have up to three mutations.
std::vector<Case> MutatedObjects(const std::vector<Json>& schemas, size_t count,
                                 uint64_t seed) {
  RandomObject random(seed);
  std::vector<Case> cases;
  for (size_t i = 0; i < schemas.size(); ++i) {
    cases.push_back({schemas[i], {}});
    const size_t objects =
        count / schemas.size() + (i < count % schemas.size() ? 1 : 0);
    for (size_t j = 0; j < objects; ++j) {
      Json object = random.Make(schemas[i]);
      const size_t mutations = random.Below(4);
      for (size_t k = 0; k < mutations; ++k) {
        random.Mutate(schemas[i], &object);
      }
      cases.back().objects.push_back(std::move(object));
    }
  }
  return cases;
}

// The verdicts of the other validator, one for each object.
std::vector<std::string> OtherVerdicts(const std::vector<Case>& cases) {
  std::string folder = ::testing::TempDir() + "/verdictsXXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream in(folder + "/in");
  for (const Case& one : cases) {
    Json line = Json::array({one.schema});
    for (const Json& object : one.objects) line.push_back(object);
    in << line.dump() << "\n";
  }
  in.close();
  EXPECT_EQ(std::system(
                absl::StrCat(kScript, folder, "/in ", folder, "/out").c_str()),
            0);
  std::vector<std::string> verdicts;
  std::ifstream out(folder + "/out");
  for (std::string line; std::getline(out, line);) {
    for (const Json& found : Json::parse(line)) {
      if (found.is_null()) {
        verdicts.push_back(kNone);
        continue;
      }
      Verdict verdict;
      for (const Json& error : found) {
        std::string path;
        for (const Json& name : error[0]) {
          path = name.is_string() ? PathBelow(path, name.get<std::string>())
                                  : PathOfElement(path, name.get<size_t>());
        }
        verdict.insert(absl::StrCat(path, ":", error[1].get<std::string>()));
      }
      verdicts.push_back(absl::StrJoin(verdict, " "));
    }
  }
  fs::remove_all(folder);
  return verdicts;
}

std::string RuleOf(absl::string_view text) {
  static const auto* const rules =
      new std::vector<std::pair<const char*, const char*>>{
          {"must be a whole number or text", "int-or-string"},
          {"must be a whole number", "type"},
          {"must be at least", "minimum"},
          {"must be more than", "minimum"},
          {"must be at most", "maximum"},
          {"must be less than", "maximum"},
          {"must be a multiple", "multipleOf"},
          {"must fit", "format"},
          {"must be a time", "date-time"},
          {"must match", "pattern"},
          {"must not have equal", "uniqueItems"},
          {"is required", "required"},
          {"is not known", "unknown"},
          {"has a form that is not", "not"}};
  for (const auto& [start, rule] : *rules) {
    if (absl::StartsWith(text, start)) return rule;
  }
  if (absl::StrContains(text, ", is ")) return "type";
  if (absl::StrContains(text, "(anyOf)")) return "anyOf";
  if (absl::StrContains(text, "(oneOf)")) return "oneOf";
  for (const char* const what :
       {"Length character", "Items element", "Properties field"}) {
    const std::vector<std::string> names = absl::StrSplit(what, ' ');
    if (!absl::StrContains(text, names[1])) continue;
    return absl::StrCat(absl::StrContains(text, "least") ? "min" : "max",
                        names[0]);
  }
  return "enum";
}

Verdict VerdictOf(const function::Value& schema, const Json& object) {
  Verdict verdict;
  const function::Value value = function::Yaml(object.dump());
  for (const auto& problem : Validate(schema.ref().get(), value.ref().get())) {
    verdict.insert(absl::StrCat(problem.path, ":", RuleOf(problem.text)));
  }
  return verdict;
}

std::string PathIn(absl::string_view broken) {
  return std::string(broken.substr(0, broken.rfind(':')));
}

// Leaves what both know. A value of a wrong type has no other problem of the
// same schema here, and all others there.
void LeaveCommon(Verdict* ours, Verdict* theirs) {
  for (const char* const own : {":unknown", ":date-time"}) {
    for (auto one = ours->begin(); one != ours->end();) {
      one = absl::EndsWith(*one, own) ? ours->erase(one) : std::next(one);
    }
  }
  const Verdict all = *ours;
  for (const std::string& one : all) {
    if (!absl::EndsWith(one, ":type") &&
        !absl::EndsWith(one, ":int-or-string")) {
      continue;
    }
    const std::string path = PathIn(one);
    bool found = false;
    for (auto other = theirs->begin(); other != theirs->end();) {
      const bool same = PathIn(*other) == path;
      found = found || same;
      other = same ? theirs->erase(other) : std::next(other);
    }
    // Kubernetes' own type is not in the other validator.
    if (!found && absl::EndsWith(one, ":type")) continue;
    for (auto own = ours->begin(); own != ours->end();) {
      own = PathIn(*own) == path ? ours->erase(own) : std::next(own);
    }
  }
}

// Compares; returns how many objects have a problem.
size_t Compare(const std::vector<Case>& cases,
               const std::vector<std::string>& verdicts) {
  size_t broken = 0;
  size_t at = 0;
  size_t different = 0;
  for (const Case& one : cases) {
    const function::Value schema = function::Yaml(one.schema.dump());
    for (const Json& object : one.objects) {
      if (at >= verdicts.size()) break;
      const std::string& other = verdicts[at++];
      if (other == kNone) continue;
      Verdict ours = VerdictOf(schema, object);
      Verdict theirs =
          other.empty() ? Verdict() : Verdict(absl::StrSplit(other, ' '));
      broken += other.empty() ? 0 : 1;
      LeaveCommon(&ours, &theirs);
      EXPECT_EQ(absl::StrJoin(ours, " "), absl::StrJoin(theirs, " "))
          << object << "\n"
          << one.schema.dump().substr(0, 3000);
      if (ours != theirs && ++different == 10) return broken;
    }
  }
  EXPECT_EQ(at, verdicts.size());
  return broken;
}

// FNV-1a, 64 bits.
std::string HashOf(const std::vector<Case>& cases) {
  uint64_t hash = 14695981039346656037u;
  for (const Case& one : cases) {
    for (const char byte : one.schema.dump() + Json(one.objects).dump()) {
      hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
    }
  }
  return absl::StrFormat("%016x", hash);
}

TEST(VerdictsTest, MutatedObjectsGetThoseOfAJsonSchemaValidator) {
  const std::string folder = FNCACHE_SOURCE_DIR "/tests/data/schemas/";
  const std::vector<Json> schemas =
      YamlDocuments(ReadFile(folder + "schemas.yaml"));
  const auto cases = MutatedObjects(schemas, kObjects, 38);
  const std::string recorded_file = folder + "verdicts.txt";
  // The first line is of the objects, each other one of an object's verdict.
  const std::string first = absl::StrCat("objects ", HashOf(cases));
  if (ValidatorIsThere()) {
    std::vector<std::string> verdicts = OtherVerdicts(cases);
    Compare(cases, verdicts);
    if (std::getenv("FNCACHE_RECORD_VERDICTS") != nullptr) {
      verdicts.insert(verdicts.begin(), first);
      std::ofstream(recorded_file) << absl::StrJoin(verdicts, "\n") << "\n";
    }
  }
  std::vector<std::string> recorded =
      absl::StrSplit(ReadFile(recorded_file), '\n');
  recorded.pop_back();
  ASSERT_EQ(recorded.size(), kObjects + 1);
  ASSERT_EQ(recorded[0], first) << "record them: see the top of this file";
  recorded.erase(recorded.begin());
  const size_t broken = Compare(cases, recorded);
  EXPECT_GT(broken, kObjects / 3);
  EXPECT_LT(broken, kObjects * 9 / 10);
}

TEST(VerdictsTest, ObjectsOfRealSchemasGetThoseOfAJsonSchemaValidator) {
  if (!ValidatorIsThere()) {
    GTEST_SKIP() << "no openapi-schema-validator: pip install it";
  }
  std::vector<Json> schemas;
  for (const NamedSchema& one : DefinitionSchemas()) {
    schemas.push_back(WithoutTexts(*one.schema));
  }
  for (const NamedSchema& one : DocumentSchemas()) {
    schemas.push_back(WithoutTexts(*one.schema));
  }
  if (schemas.empty()) GTEST_SKIP() << "no FNCACHE_TEST_DATA";
  EXPECT_GT(schemas.size(), 100u);
  const auto cases = MutatedObjects(schemas, kObjects, 39);
  const size_t broken = Compare(cases, OtherVerdicts(cases));
  EXPECT_GT(broken, kObjects / 3);
}

}  // namespace
}  // namespace fncache::sdk::schema
