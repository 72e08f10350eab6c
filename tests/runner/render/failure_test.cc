// SPDX-License-Identifier: Apache-2.0
#include "runner/render/failure.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/utf8.h"
#include "gtest/gtest.h"

namespace fncache::runner::render {
namespace {

const std::vector<client::FunctionTarget>& Functions() {
  static const auto* const functions = new std::vector<client::FunctionTarget>{
      {"function-a", "127.0.0.1:1"}, {"function-b", "dns:///b:9443"}};
  return *functions;
}

Rendered Failed(const std::string& message) {
  Rendered rendered;
  rendered.outcome.status = absl::InternalError(message);
  return rendered;
}

Rendered FailedAt(const std::string& function, const std::string& why) {
  Rendered rendered = Failed("message");
  rendered.failed_call =
      FailedCall{"buckets", function, absl::UnavailableError(why)};
  return rendered;
}

std::string LastLine(const Rendered& rendered, const std::string& title = "") {
  const std::vector<std::string> lines = absl::StrSplit(
      FailureLines(rendered, title, Functions()), '\n', absl::SkipEmpty());
  return lines.empty() ? "" : lines.back();
}

TEST(FailureLinesTest, WithoutAFailedCallTheReferencesMessageIsAll) {
  EXPECT_EQ(FailureLines(Failed("a\nb"), "", Functions()),
            "crossplane: error: cannot render composite resource: crossplane "
            "internal render returned error with output: crossplane: error: a\n"
            "                                      b\n"
            "                   : exit status 1\n");
}

TEST(FailureLinesTest, TheLastLineNamesStepFunctionTargetAndError) {
  EXPECT_EQ(
      LastLine(
          FailedAt("function-b", "rpc error: code = Unavailable desc = x")),
      "fncache render: step \"buckets\" failed: function \"function-b\" at "
      "dns:///b:9443: Unavailable: x");
  Rendered late = FailedAt(
      "function-a",
      "rpc error: code = DeadlineExceeded desc = context deadline exceeded");
  late.timed_out = true;
  EXPECT_EQ(LastLine(late, "xrs/a.yaml"),
            "fncache render: xrs/a.yaml: step \"buckets\" failed: function "
            "\"function-a\" at 127.0.0.1:1: no answer in time (--timeout is "
            "over)");
}

TEST(FailureLinesTest, KnownFunctionsAreListedWhereOneIsMissing) {
  EXPECT_EQ(LastLine(FailedAt("function-c", "unknown function")),
            "fncache render: step \"buckets\" failed: function \"function-c\" "
            "is not listed; listed are: function-a, function-b; add it to "
            "FUNCTIONS, or give --function function-c=HOST:PORT");
}

TEST(FailureLinesTest, AFatalResultSaysAllInItsOwnWords) {
  Rendered rendered = Failed("no\nway\n");
  rendered.outcome.fatal = true;
  EXPECT_EQ(FailureLines(rendered, "a.yaml", Functions()),
            "crossplane: error: a.yaml: cannot render composite resource: "
            "crossplane internal render: pipeline returned fatal: crossplane: "
            "error: no\n"
            "                                      way\n");
}

TEST(FailureLinesTest, NothingThatATerminalObeysIsPrinted) {
  const std::string hostile = "\033]0;t\007\xc2\x9b\xe2\x80\xae\r\x7f";
  Rendered rendered = Failed(hostile);
  for (const std::string& function : {hostile, std::string("function-a")}) {
    rendered.failed_call =
        FailedCall{hostile, function,
                   absl::InternalError(absl::StrCat(
                       "rpc error: code = Internal desc = ", hostile))};
    for (const absl::string_view line :
         absl::StrSplit(FailureLines(rendered, hostile, Functions()), '\n')) {
      EXPECT_EQ(Printable(line), line);
    }
  }
}

TEST(FailureLinesTest, ALongErrorIsCutBetweenCharacters) {
  std::string why = "rpc error: code = Internal desc = ";
  for (int i = 0; i < 1000; ++i) why += "\xe2\x82\xac";
  const std::string line = LastLine(FailedAt("function-a", why));
  EXPECT_LT(line.size(), 600u);
  EXPECT_TRUE(IsUtf8(line));
  EXPECT_EQ(line.substr(line.size() - 3), "...");
}

}  // namespace
}  // namespace fncache::runner::render
