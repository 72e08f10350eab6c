// SPDX-License-Identifier: Apache-2.0
#include "common/log.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"

namespace fncache {
namespace {

using ::testing::MatchesRegex;

constexpr char kTime[] =
    "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z";

std::string Logged(const std::function<void()>& log) {
  ::testing::internal::CaptureStderr();
  log();
  return ::testing::internal::GetCapturedStderr();
}

// Settings of the process come back as they were.
class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override { InitLogging(LogLevel::kInfo, LogFormat::kText); }

  static std::string Text(absl::string_view message,
                          std::initializer_list<LogField> fields) {
    InitLogging(LogLevel::kInfo, LogFormat::kText);
    const std::string line =
        Logged([&] { Log(LogLevel::kInfo, message, fields); });
    EXPECT_THAT(line, MatchesRegex(absl::StrCat(kTime, " info .*\n")));
    // The line without `TIME info ` (24 characters of time).
    return line.size() > 31 ? line.substr(30, line.size() - 31) : "";
  }

  // One object, as a reader of JSON sees it.
  static google::protobuf::Struct Json(absl::string_view message,
                                       std::initializer_list<LogField> fields) {
    InitLogging(LogLevel::kInfo, LogFormat::kJson);
    const std::string line =
        Logged([&] { Log(LogLevel::kWarning, message, fields); });
    EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
    google::protobuf::Struct object;
    const auto status =
        google::protobuf::util::JsonStringToMessage(line, &object);
    EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << line;
    return object;
  }
};

TEST_F(LogTest, ZapsFormHasLevelAndSecondsFirst) {
  InitLogging(LogLevel::kDebug, LogFormat::kZap);
  const absl::Time before = absl::Now();
  const std::pair<LogLevel, const char*> levels[] = {
      {LogLevel::kDebug, "debug"},
      {LogLevel::kInfo, "info"},
      {LogLevel::kWarning, "warn"},
      {LogLevel::kError, "error"}};
  for (const auto& [level, name] : levels) {
    const std::string line = Logged([&, level = level] {
      Log(level, "say \"hi\"", {{"key", "a\nb"}});
    });
    google::protobuf::Struct object;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(line, &object).ok())
        << line;
    EXPECT_EQ(line.rfind(absl::StrCat("{\"level\":\"", name, "\",\"ts\":"), 0),
              0u)
        << line;
    EXPECT_EQ(object.fields().at("msg").string_value(), "say \"hi\"");
    EXPECT_EQ(object.fields().at("key").string_value(), "a\nb");
    EXPECT_NEAR(object.fields().at("ts").number_value(),
                absl::ToDoubleSeconds(before - absl::UnixEpoch()), 60);
  }
  InitLogging(LogLevel::kInfo, LogFormat::kText);
}

TEST_F(LogTest, PlainValuesStayPlain) {
  EXPECT_EQ(Text("hello", {{"address", "[::1]:80"}, {"n", 7}}),
            "hello address=[::1]:80 n=7");
  EXPECT_EQ(Text("hello", {{"name", "caf\xc3\xa9"}}), "hello name=caf\xc3\xa9");
}

TEST_F(LogTest, ValueThatLooksLikeALineOfItsOwnIsQuoted) {
  EXPECT_EQ(Text("hello", {{"peer", "a b\n2026 info x"}, {"n", 7}}),
            "hello peer=\"a b\\u000a2026 info x\" n=7");
}

TEST_F(LogTest, NothingThatATerminalObeysReachesIt) {
  EXPECT_EQ(Text("a\x1b[31mb", {{"k", "\x7f"}}), "a\\u001b[31mb k=\"\\u007f\"");
  EXPECT_EQ(Text("a\r\nb", {{"k",
                             "\xc2\x9b"
                             "31m"}}),
            "a\\u000d\\u000ab k=\"\\u009b31m\"");
  EXPECT_EQ(Text("a\xe2\x80\xae", {{"k", "\xe2\x81\xa6"}}),
            "a\\u202e k=\\u2066");
}

TEST_F(LogTest, ValuesThatReadAsMoreAreQuoted) {
  EXPECT_EQ(Text("m", {{"k", "a=b"}}), "m k=\"a=b\"");
  EXPECT_EQ(Text("m", {{"k", ""}}), "m k=\"\"");
  EXPECT_EQ(Text("m", {{"k", "a\"b"}}), "m k=\"a\\\"b\"");
  EXPECT_EQ(Text("m", {{"k", "a\\b"}}), "m k=\"a\\\\b\"");
}

TEST_F(LogTest, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(Text("a\xff", {{"k", "\xc3"}}), "a\xef\xbf\xbd k=\"\xef\xbf\xbd\"");
}

TEST_F(LogTest, FormatCharactersMeanNothing) {
  EXPECT_EQ(Text("100 %s {} %v", {{"k", "{0}%n"}}), "100 %s {} %v k={0}%n");
  EXPECT_EQ(Json("{} %v", {{"k", "{}"}}).fields().at("msg").string_value(),
            "{} %v");
}

TEST_F(LogTest, JsonHoldsEveryField) {
  const auto object = Json("listening", {{"address", "h:1"}, {"n", 7}});
  EXPECT_EQ(object.fields().at("msg").string_value(), "listening");
  EXPECT_EQ(object.fields().at("level").string_value(), "warning");
  EXPECT_EQ(object.fields().at("address").string_value(), "h:1");
  EXPECT_EQ(object.fields().at("n").string_value(), "7");
  EXPECT_THAT(object.fields().at("time").string_value(), MatchesRegex(kTime));
}

TEST_F(LogTest, JsonReadsBackAsWhatWasSaid) {
  std::string all;
  for (char c = 1; c > 0; ++c) all += c;
  all += std::string("\0", 1) + "\xc3\xa9\xf0\x9f\x98\x80\xe2\x80\xa8\xc2\x85";
  const auto object = Json(all, {{"k", all}, {all, "v"}});
  EXPECT_EQ(object.fields().at("msg").string_value(), all);
  EXPECT_EQ(object.fields().at("k").string_value(), all);
  EXPECT_EQ(object.fields().at(all).string_value(), "v");
}

TEST_F(LogTest, JsonOfWhatIsNotUtf8IsJson) {
  const auto object = Json("\xed\xa0\x80", {{"k", "a\xff"}});
  EXPECT_EQ(object.fields().at("k").string_value(), "a\xef\xbf\xbd");
}

TEST_F(LogTest, ALineMayWaitForTheNext) {
  InitLogging(LogLevel::kInfo, LogFormat::kText);
  const std::vector<LogField> fields = {{"version", "1"}};
  EXPECT_EQ(Logged([&] {
              LogBeforeTheNext("replaced", {});
              LogBeforeTheNext("starting", fields);
              Log(LogLevel::kDebug, "not printed");
            }),
            "");
  EXPECT_THAT(
      Logged([] {
        Log(LogLevel::kInfo, "a");
        Log(LogLevel::kInfo, "b");
      }),
      MatchesRegex(absl::StrCat(kTime, " info starting version=1\n", kTime,
                                " info a\n", kTime, " info b\n")));
  // It is of level info, and of the form that is set.
  InitLogging(LogLevel::kWarning, LogFormat::kJson);
  EXPECT_THAT(Logged([&] {
                LogBeforeTheNext("starting", fields);
                Log(LogLevel::kWarning, "a");
              }),
              ::testing::Not(::testing::HasSubstr("starting")));
  InitLogging(LogLevel::kInfo, LogFormat::kJson);
  EXPECT_THAT(Logged([&] {
                LogBeforeTheNext("starting", fields);
                Log(LogLevel::kWarning, "a");
              }),
              MatchesRegex("[{][^\n]*\"msg\":\"starting\",\"version\":\"1\"[}]"
                           "\n[{][^\n]*\n"));
}

TEST_F(LogTest, NothingBelowTheLevelIsPrinted) {
  for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo,
                               LogLevel::kWarning, LogLevel::kError}) {
    InitLogging(level, LogFormat::kText);
    const std::string lines = Logged([] {
      Log(LogLevel::kDebug, "one");
      Log(LogLevel::kInfo, "two");
      Log(LogLevel::kWarning, "three");
      Log(LogLevel::kError, "four");
    });
    EXPECT_EQ(absl::StrContains(lines, "one"), level <= LogLevel::kDebug);
    EXPECT_EQ(absl::StrContains(lines, "two"), level <= LogLevel::kInfo);
    EXPECT_EQ(absl::StrContains(lines, "three"), level <= LogLevel::kWarning);
    EXPECT_TRUE(absl::StrContains(lines, "four"));
  }
}

}  // namespace
}  // namespace fncache
