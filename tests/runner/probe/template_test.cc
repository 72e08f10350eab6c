// SPDX-License-Identifier: Apache-2.0
// Probes of the small function, whose templates read known paths.
#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runner/function/template_function.h"
#include "runner/probe/probe.h"
#include "tests/common/long_form.h"
#include "tests/runner/function/respond.h"
#include "tests/runner/messages.h"
#include "tests/runner/probe/fake_function.h"

namespace fncache::runner::probe {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

// The paths of a hint, none of which has a quote.
std::set<std::string> ReadsOf(absl::string_view hint) {
  EXPECT_TRUE(absl::ConsumePrefix(&hint, "reads=(")) << hint;
  EXPECT_TRUE(absl::ConsumeSuffix(&hint, ")")) << hint;
  std::set<std::string> reads;
  for (absl::string_view path : absl::StrSplit(hint, ' ', absl::SkipEmpty())) {
    EXPECT_TRUE(absl::ConsumePrefix(&path, "\"") &&
                absl::ConsumeSuffix(&path, "\""));
    reads.insert(std::string(path));
  }
  return reads;
}

TEST(ProbeTemplates, TwoHundredRandomOnes) {
  const auto rendering = function::TemplateFunction({});
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
    FakeFunction function(
        [&](const RunFunctionRequest& asked, RunFunctionResponse* said) {
          *said = function::Respond(rendering, asked);
        });
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
    // The hint of the same run: each path that was read, and no other but the
    // kind that the response's composite takes over.
    std::string hint;
    ASSERT_TRUE(function::TryRespond(rendering, request, &hint).ok());
    std::set<std::string> hinted = ReadsOf(hint);
    const bool rendered = hinted.erase("observed.composite.resource.kind") > 0;
    EXPECT_EQ(hinted.erase("observed.composite.resource.apiVersion") > 0,
              rendered);
    EXPECT_THAT(hinted, UnorderedElementsAreArray(paths));
  }
}

}  // namespace
}  // namespace fncache::runner::probe
