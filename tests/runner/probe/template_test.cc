// SPDX-License-Identifier: Apache-2.0
// Probes of the small function, whose templates read known paths.
#include <algorithm>
#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cache/key/mask.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "insight/request/compare.h"
#include "runner/function/template_function.h"
#include "runner/probe/probe.h"
#include "tests/common/long_form.h"
#include "tests/runner/function/random_template.h"
#include "tests/runner/function/respond.h"
#include "tests/runner/messages.h"
#include "tests/runner/probe/fake_function.h"

namespace fncache::runner::probe {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

// `fncache function` in this process, which sends its hints.
class TemplateCaller : public client::FunctionCaller {
 public:
  void Call(const std::string& /*function*/, const RunFunctionRequest& request,
            absl::Time /*deadline*/, Done done) override {
    client::CallResult result;
    std::string hint;
    auto response = function::TryRespond(function_, request, &hint);
    result.hint = std::move(hint);
    result.status = response.status();
    if (response.ok()) result.response = *std::move(response);
    done(std::move(result));
  }

 private:
  const ::fncache::function::Function function_ =
      function::TemplateFunction({});
};

// A path that a template names: keys, and numbers for elements. A key with an
// expression in it ends in `${`.
using NamedPath = std::vector<std::string>;

// Adds the path of the expression that begins behind its `${`.
void AddExpression(absl::string_view text, std::vector<NamedPath>* paths) {
  NamedPath path(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      quoted = !quoted;
    } else if (quoted) {
      path.back() += c == '\\' ? text[++i] : c;
    } else if (c == '.') {
      path.emplace_back();
    } else if (absl::StartsWith(text.substr(i), "${")) {
      path.back() += "${";
      i = text.find('}', i);
    } else if (c == '|' || c == '}') {
      if (text[i - 1] != '"') absl::StripTrailingAsciiWhitespace(&path.back());
      break;
    } else {
      path.back() += c;
    }
  }
  paths->push_back(std::move(path));
}

// Adds all paths that the template names.
void AddNamed(const google::protobuf::Value& value,
              std::vector<NamedPath>* paths) {
  const std::string& text = value.string_value();
  for (size_t at = text.find("${"); at != text.npos;
       at = text.find("${", at + 2)) {
    AddExpression(absl::string_view(text).substr(at + 2), paths);
  }
  for (const auto& one : value.list_value().values()) AddNamed(one, paths);
  const auto& fields = value.struct_value().fields();
  for (const auto& one : fields) AddNamed(one.second, paths);
  // A resource whose readiness is as observed.
  const auto name = fields.find("name");
  if (fields.count("base") == 0 || name == fields.end()) return;
  const std::string& whole = name->second.string_value();
  const size_t end = whole.find("${");
  paths->push_back({"observed", "resources",
                    whole.substr(0, end == whole.npos ? end : end + 2),
                    "resource", "status", "conditions"});
}

bool Matches(const cache::key::MaskElement& hinted, absl::string_view named) {
  if (hinted.any) return absl::c_all_of(named, absl::ascii_isdigit);
  if (absl::ConsumeSuffix(&named, "${")) {
    return absl::StartsWith(hinted.name, named);
  }
  return hinted.name == named;
}

// Whether a path of the hint is at or below one that the template names.
bool IsNamed(const cache::key::MaskPath& hinted,
             const std::vector<NamedPath>& paths) {
  return absl::c_any_of(paths, [&](const NamedPath& path) {
    return path.size() <= hinted.size() &&
           std::equal(path.begin(), path.end(), hinted.begin(),
                      [](const std::string& name, const auto& element) {
                        return Matches(element, name);
                      });
  });
}

// Fields that were found read and are not at, below or above a path of the
// hints.
std::vector<std::string> LeftOut(const ProbeResult& result) {
  std::vector<std::string> paths;
  for (const auto& one : result.hint.paths) paths.push_back(one.path);
  const auto set =
      cache::key::MaskSet::Parse(paths, cache::key::MaskRules::kAnyPath);
  EXPECT_TRUE(set.ok()) << set.status();
  const insight::request::MaskMatcher hinted(*set);
  std::vector<std::string> left_out;
  for (size_t i = 0; i < result.fields.size(); ++i) {
    const Field& field = result.fields[i];
    if (result.results[i] != Search::Result::kRead) continue;
    // Context counts in any case.
    const auto path = cache::key::ReadMaskPath(field.mask);
    if (path.ok() && cache::key::HideableObject(*path) == 0) continue;
    if (hinted.Masks(field.path) ||
        absl::c_any_of(paths, [&](const std::string& path) {
          return absl::StartsWith(path, field.mask + ".");
        })) {
      continue;
    }
    left_out.push_back(field.mask);
  }
  return left_out;
}

std::vector<std::string> ReadOf(const ProbeResult& result) {
  std::vector<std::string> read;
  for (size_t i = 0; i < result.fields.size(); ++i) {
    if (result.results[i] == Search::Result::kRead) {
      read.push_back(result.fields[i].mask);
    }
  }
  return read;
}

// Lists, objects, keys of every form, counts, requirements, readiness.
TEST(ProbeTemplates, HintsNameWhatIsReadAndNothingThatTheTemplateDoesNot) {
  const int templates =
      fncache::testing::FewerSanitized(fncache::testing::ShortOrLong(50, 200));
  int probed = 0, faults = 0, calls = 0, trusted_calls = 0, saved = 0;
  size_t read = 0, hinted = 0;
  for (uint64_t seed = 0; probed < templates; ++seed) {
    SCOPED_TRACE(seed);
    const RunFunctionRequest request = function::RandomTemplate(seed);
    TemplateCaller function;
    const auto result = RunProbe({request}, {}, {}, {}, &function);
    if (absl::IsFailedPrecondition(result.status())) {
      ++faults;
      continue;
    }
    ASSERT_TRUE(result.ok()) << result.status();
    ++probed;
    calls += result->calls;
    // With the hint believed, the findings are the same.
    ProbeOptions options;
    options.trust_hint = true;
    const auto trusted = RunProbe({request}, {}, {}, options, &function);
    ASSERT_TRUE(trusted.ok()) << trusted.status();
    EXPECT_EQ(ReadOf(*trusted), ReadOf(*result));
    trusted_calls += trusted->calls;
    saved += trusted->hint.calls_saved;
    read += absl::c_count(result->results, Search::Result::kRead);
    hinted += result->hint.paths.size();
    EXPECT_EQ(result->hint.hints, result->hint.answers);
    EXPECT_THAT(result->hint.unnamed, IsEmpty());
    EXPECT_THAT(LeftOut(*result), IsEmpty());
    std::vector<NamedPath> named;
    google::protobuf::Value input;
    *input.mutable_struct_value() = request.input();
    AddNamed(input, &named);
    for (const auto& one : result->hint.paths) {
      if (one.path == "observed.composite.resource.kind" ||
          one.path == "observed.composite.resource.apiVersion") {
        continue;  // of the response's composite
      }
      EXPECT_TRUE(IsNamed(*cache::key::ReadMaskPath(one.path), named))
          << one.path;
    }
  }
  std::printf(
      "%d templates (%d more were faults): %d calls, %zu fields read, %zu "
      "paths "
      "hinted; %d calls with the hints believed, which decide %d questions\n",
      probed, faults, calls, read, hinted, trusted_calls, saved);
  EXPECT_LT(trusted_calls, calls);
  EXPECT_GE(read, templates);
  EXPECT_GE(hinted, templates);
}

TEST(ProbeTemplates, TwoHundredRandomOnes) {
  std::mt19937_64 random(12);
  for (int round = 0; round < fncache::testing::FewerSanitized(200); ++round) {
    SCOPED_TRACE(round);
    // A composite and two resources with a few values each, some of which the
    // template reads.
    std::vector<std::string> paths;
    std::vector<std::string> objects;
    for (const std::string object :
         {"observed.composite.resource.", "observed.resources.a.resource.",
          "observed.resources.b.resource."}) {
      std::string spec;
      for (uint64_t i = 0, n = 1 + random() % 20; i < n; ++i) {
        const char* const values[] = {"\"text\"", "17", "true", "\"v1.2\"",
                                      "\"2026-01-01T00:00:00Z\""};
        absl::StrAppend(&spec, i == 0 ? "" : ", ", "\"f", i,
                        "\": ", values[random() % 5]);
        paths.push_back(absl::StrCat(object, "spec.f", i));
      }
      objects.push_back(absl::StrCat(
          R"({"resource": {"metadata": {"resourceVersion": "5"}, "spec": {)",
          spec, "}}}"));
    }
    std::shuffle(paths.begin(), paths.end(), random);
    paths.resize(std::min<size_t>(paths.size(), random() % 8));
    std::string status;
    for (size_t i = 0; i < paths.size(); ++i) {
      // A missing value is a fault, or has a default.
      absl::StrAppend(&status, i == 0 ? "" : ", ", "\"s", i, "\": \"${",
                      paths[i], i % 2 == 0 ? "" : "|none", "}\"");
    }
    const auto request = FromJson<RunFunctionRequest>(absl::StrCat(
        R"({"observed": {"composite": )", objects[0],
        R"(, "resources": {"a": )", objects[1], R"(, "b": )", objects[2],
        R"(}}, "input": {"apiVersion": "function.fncache.dev/v1alpha1",
        "kind": "Template", "spec": {"status": {)",
        status, "}}}}"));
    TemplateCaller function;
    const auto result = RunProbe({request}, {}, {}, {}, &function);
    ASSERT_TRUE(result.ok()) << result.status();
    std::vector<std::string> read, untried;
    for (size_t i = 0; i < result->fields.size(); ++i) {
      if (!result->fields[i].real) continue;
      if (result->results[i] == Search::Result::kRead) {
        read.push_back(result->fields[i].mask);
      } else if (result->results[i] == Search::Result::kUntried) {
        untried.push_back(result->fields[i].mask);
      }
    }
    EXPECT_THAT(read, UnorderedElementsAreArray(paths));
    EXPECT_THAT(untried, IsEmpty());
    // The hints name each path that was read, and no other but the kind that
    // the response's composite takes over.
    std::set<std::string> hinted;
    for (const auto& one : result->hint.paths) hinted.insert(one.path);
    const bool rendered = hinted.erase("observed.composite.resource.kind") > 0;
    EXPECT_EQ(hinted.erase("observed.composite.resource.apiVersion") > 0,
              rendered);
    EXPECT_THAT(result->hint.unnamed, IsEmpty());
    EXPECT_THAT(hinted, UnorderedElementsAreArray(paths));
  }
}

}  // namespace
}  // namespace fncache::runner::probe
