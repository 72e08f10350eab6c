// SPDX-License-Identifier: Apache-2.0
// A function's hint beside what a probe finds.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runner/probe/hints.h"
#include "runner/probe/probe.h"
#include "runner/probe/report.h"
#include "tests/runner/messages.h"
#include "tests/runner/probe/fake_function.h"

namespace fncache::runner::probe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kSpec[] = "observed.composite.resource.spec.";

std::string SpecOf(const std::string& key) { return kSpec + key; }

// A spec with s0 to s39, and `tier`.
RunFunctionRequest Request() {
  std::string spec = R"("tier": "silver")";
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(&spec, R"(, "s)", i, R"(": "text)", i, "\"");
  }
  return FromJson<RunFunctionRequest>(absl::StrCat(
      R"({"observed": {"composite": {"resource": {"spec": {)", spec, "}}}}}"));
}

std::string Hint(const std::vector<std::string>& paths, bool pure = true) {
  return absl::StrCat("reads=(\"", absl::StrJoin(paths, "\" \""), "\")",
                      pure ? ", pure" : "");
}

FakeFunction::Hint Always(const absl::optional<std::string>& hint) {
  return [hint](const RunFunctionRequest&) { return hint; };
}

ProbeResult Probe(FakeFunction function, bool trust = false) {
  ProbeOptions options;
  options.trust_hint = trust;
  auto result = RunProbe({Request()}, {}, {}, options, &function);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : ProbeResult();
}

std::vector<std::string> Of(const ProbeResult& result,
                            Search::Result wanted = Search::Result::kRead) {
  std::vector<std::string> masks;
  for (size_t i = 0; i < result.fields.size(); ++i) {
    if (result.fields[i].real && result.results[i] == wanted) {
      masks.push_back(result.fields[i].mask);
    }
  }
  return masks;
}

std::string Text(const ProbeResult& result) {
  return ReportText({"f", "a request", 0, result});
}

std::vector<std::string> Paths(const ProbeResult& result, bool read) {
  std::vector<std::string> paths;
  for (const HintFindings::Path& one : result.hint.paths) {
    if (one.read == read) paths.push_back(one.path);
  }
  return paths;
}

TEST(ProbeHint, IsComparedWithWhatWasFound) {
  const ProbeResult result = Probe(FakeFunction(
      Reads({SpecOf("s3"), SpecOf("s4")}),
      Always(Hint({SpecOf("s3"), SpecOf("s4"), SpecOf("s5"), "context.x"}))));
  EXPECT_THAT(Of(result), ElementsAre(SpecOf("s3"), SpecOf("s4")));
  EXPECT_THAT(Paths(result, true), ElementsAre(SpecOf("s3"), SpecOf("s4")));
  EXPECT_THAT(Paths(result, false), ElementsAre("context.x", SpecOf("s5")));
  EXPECT_THAT(result.hint.unnamed, IsEmpty());
  EXPECT_EQ(result.hint.calls_saved, 0);
  const std::string text = Text(result);
  EXPECT_THAT(text,
              HasSubstr("\nhint of the function (fncache-depends): 4 paths, "
                        "pure\n"));
  EXPECT_THAT(text, HasSubstr("spec.s4  read\n"));
  EXPECT_THAT(text, HasSubstr("spec.s5  not found read\n"));
  EXPECT_THAT(text, Not(HasSubstr("BUG")));
}

TEST(ProbeHint, AParentNamesWhatIsReadInIt) {
  const ProbeResult result = Probe(FakeFunction(
      Reads({SpecOf("s3")}), Always(Hint({"observed.composite.resource"}))));
  EXPECT_THAT(Paths(result, true), ElementsAre("observed.composite.resource"));
  EXPECT_THAT(result.hint.unnamed, IsEmpty());
}

TEST(ProbeHint, OneThatLeavesOutAReadFieldIsABug) {
  const ProbeResult result =
      Probe(FakeFunction(Reads({SpecOf("s3"), SpecOf("s9"), SpecOf("s30")}),
                         Always(Hint({SpecOf("s9")}))));
  EXPECT_THAT(result.hint.unnamed, ElementsAre(SpecOf("s3"), SpecOf("s30")));
  EXPECT_THAT(
      Text(result),
      HasSubstr(absl::StrCat(
          "\nBUG of the function: its hint says that these do not decide the "
          "answer, and they do: 2 paths\n  ",
          SpecOf("s3"), "\n  ", SpecOf("s30"), "\n")));
  EXPECT_THAT(ReportJson({"f", "a request", 0, result}),
              HasSubstr(absl::StrCat("\"unnamed\": [\n      \"", SpecOf("s3"),
                                     "\",\n      \"", SpecOf("s30"), "\"")));
}

// The keys of an object are read, and only one of its fields is named.
TEST(ProbeHint, OneThatLeavesOutTheKeysOfAnObjectIsABug) {
  const auto keys = [](const RunFunctionRequest& request,
                       RunFunctionResponse* response) {
    const auto& fields = request.observed().composite().resource().fields();
    const auto spec = fields.find("spec");
    if (spec == fields.end()) return;
    std::string all;
    for (const auto& one : std::map<std::string, google::protobuf::Value>(
             spec->second.struct_value().fields().begin(),
             spec->second.struct_value().fields().end())) {
      absl::StrAppend(&all, one.first, " ");
    }
    Say(response, "keys", all);
  };
  const ProbeResult result =
      Probe(FakeFunction(keys, Always(Hint({SpecOf("s0")}))));
  EXPECT_FALSE(result.hint.unnamed.empty());
  EXPECT_THAT(
      Probe(FakeFunction(keys, Always(Hint({std::string(kSpec).substr(
                                   0, std::string(kSpec).size() - 1)}))))
          .hint.unnamed,
      IsEmpty());
}

// Each of two fields hides the other one.
TEST(ProbeHint, FieldsThatMatterTogetherOnlyAreNamedTogether) {
  const auto either = [](const RunFunctionRequest& request,
                         RunFunctionResponse* response) {
    const bool first = absl::StrContains(At(request, SpecOf("s1")), " text1;");
    const bool second =
        absl::StrContains(At(request, SpecOf("s33")), " text33;");
    Say(response, "either", first || second ? "yes" : "no");
  };
  const ProbeResult result =
      Probe(FakeFunction(either, Always(Hint({"input"}))));
  EXPECT_THAT(result.hint.unnamed,
              ElementsAre(SpecOf("s1") + " with " + SpecOf("s33")));
}

// A field that is read for another request is in that request's hint only.
TEST(ProbeHint, OneThatGrowsWithTheRequestIsHonest) {
  const auto gold = [](const RunFunctionRequest& request) {
    return absl::StrContains(At(request, SpecOf("tier")), " gold;");
  };
  const auto answer = [gold](const RunFunctionRequest& request,
                             RunFunctionResponse* response) {
    if (gold(request)) Say(response, "s7", At(request, SpecOf("s7")));
  };
  const auto hint = [gold](const RunFunctionRequest& request) {
    std::vector<std::string> paths = {SpecOf("tier")};
    if (gold(request)) paths.push_back(SpecOf("s7"));
    return absl::optional<std::string>(Hint(paths));
  };
  auto request = FromJson<RunFunctionRequest>(
      R"({"input": {"a": "eq .spec.tier \"gold\""}})");
  request.MergeFrom(Request());
  for (const bool trust : {false, true}) {
    FakeFunction function(answer, hint);
    ProbeOptions options;
    options.trust_hint = trust;
    const auto result = RunProbe({request}, {}, {}, options, &function);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(Of(*result), ElementsAre(SpecOf("s7"), SpecOf("tier")));
    EXPECT_THAT(Paths(*result, true),
                ElementsAre(SpecOf("s7"), SpecOf("tier")));
    EXPECT_THAT(result->hint.unnamed, IsEmpty());
  }
}

TEST(ProbeHint, ATrustedOneSavesCallsAndFindsTheSame) {
  const FakeFunction function(
      Reads({SpecOf("s3"), SpecOf("s4")}),
      Always(Hint({SpecOf("s3"), SpecOf("s4"), SpecOf("s5")})));
  const ProbeResult asked = Probe(function);
  const ProbeResult trusted = Probe(function, /*trust=*/true);
  EXPECT_THAT(Of(trusted), ElementsAre(SpecOf("s3"), SpecOf("s4")));
  EXPECT_EQ(Of(trusted, Search::Result::kUnread),
            Of(asked, Search::Result::kUnread));
  EXPECT_TRUE(trusted.complete);
  EXPECT_LT(trusted.calls, asked.calls);
  EXPECT_GT(trusted.hint.calls_saved, 0);
  EXPECT_THAT(Text(trusted),
              HasSubstr(absl::StrCat(
                  "With --trust-hint ", trusted.hint.calls_saved,
                  " calls were not made, because the function's hint decides "
                  "the answer. All that is called unread, and the masks, rest "
                  "on that hint, which was not tried.\n")));
  EXPECT_THAT(Text(trusted), Not(HasSubstr("Every path that is called")));
  EXPECT_THAT(Text(asked), HasSubstr("Every path that is called"));
}

TEST(ProbeHint, NoneAndBrokenOnesAreOneLine) {
  const struct {
    absl::optional<std::string> hint;
    std::string line;
  } kCases[] = {
      {absl::nullopt, "none; --trust-hint has no effect\n"},
      {"",
       "refused, it is no dictionary of RFC 9651; --trust-hint has no "
       "effect\n"},
      {"pure", "refused, it has no `reads`; --trust-hint has no effect\n"},
      {Hint({SpecOf("s3")}, /*pure=*/false),
       "1 path; it does not say `pure`, so something else than the request may "
       "decide the answer\n"},
  };
  for (const auto& one : kCases) {
    const ProbeResult result = Probe(
        FakeFunction(Reads({SpecOf("s3")}), Always(one.hint)), /*trust=*/true);
    EXPECT_THAT(Of(result), ElementsAre(SpecOf("s3")));
    EXPECT_THAT(Text(result), HasSubstr("(fncache-depends): " + one.line));
    EXPECT_EQ(result.hint.calls_saved > 0, result.hint.hints > 0);
  }
}

}  // namespace
}  // namespace fncache::runner::probe
