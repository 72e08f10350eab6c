// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/access_log.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/eventually.h"
#include "tests/common/temp_dir.h"

namespace fncache::proxy::telemetry {
namespace {

using ::fncache::testing::ReadFile;
using ::fncache::testing::TempDir;
using ::testing::HasSubstr;
using ::testing::Not;

AccessRecord Record() {
  AccessRecord record;
  record.ended = absl::FromUnixMillis(1'800'000'000'042);
  record.function = "function-a";
  record.api_version = "example.org/v1";
  record.kind = "XBucket";
  record.object_namespace = "team-a";
  record.name = "bucket-1";
  record.outcome = Outcome::kMiss;
  record.reason = insight::trace::Reason::kChanged;
  record.detail = "context.now";
  record.key = {0x0123456789abcdef, 0xfedcba9876543210};
  record.latency = absl::Microseconds(1'234'567);
  record.upstream_latency = absl::Microseconds(1'200'000);
  return record;
}

CallRecord Call(Outcome outcome, absl::Duration latency = absl::Seconds(1),
                int code = 0) {
  CallRecord call;
  call.method = Method::kV1;
  call.outcome = outcome;
  call.latency = latency;
  call.code = code;
  return call;
}

class AccessLogTest : public ::testing::Test {
 protected:
  AccessLogTest()
      : log_(std::make_unique<AccessLog>(instruments_.access_log())) {
    options_.calls = LoggedCalls::kAll;
    options_.file = dir_.File("access.log");
  }

  void Configure() {
    const absl::Status status = log_->Configure(options_);
    ASSERT_TRUE(status.ok()) << status;
  }
  // The line of a record.
  std::string Line(const AccessRecord& record) {
    const std::string before =
        access(options_.file.c_str(), F_OK) == 0 ? ReadFile(options_.file) : "";
    Configure();
    log_->Write(record);
    EXPECT_TRUE(Eventually([&] { return ReadFile(options_.file) != before; }));
    return ReadFile(options_.file).substr(before.size());
  }
  uint64_t written() { return instruments_.access_log().written.Value(); }
  uint64_t dropped() { return instruments_.access_log().dropped.Value(); }
  // Until the writer has dealt with `lines` of them.
  bool Settled(uint64_t lines) {
    return Eventually([&] { return written() + dropped() >= lines; });
  }

  const TempDir dir_;
  Instruments instruments_{{"function-a"}};
  AccessLogOptions options_;
  std::unique_ptr<AccessLog> log_;
};

TEST_F(AccessLogTest, ALineTellsWhatBecameOfTheCall) {
  EXPECT_EQ(Line(Record()),
            "2027-01-15T08:00:00.042Z info call function=function-a "
            "api_version=example.org/v1 kind=XBucket namespace=team-a "
            "name=bucket-1 outcome=miss reason=changed detail=context.now "
            "key=0123456789abcdeffedcba9876543210 latency_seconds=1.234567 "
            "upstream_seconds=1.200000 status=OK\n");
}

TEST_F(AccessLogTest, WhatIsNotKnownHasNoField) {
  AccessRecord record;
  record.ended = absl::FromUnixSeconds(1'800'000'000);
  record.function = "f";
  record.outcome = Outcome::kBypass;
  record.latency = absl::Microseconds(7);
  record.code = 14;
  EXPECT_EQ(Line(record),
            "2027-01-15T08:00:00.000Z info call function=f outcome=bypass "
            "latency_seconds=0.000007 status=UNAVAILABLE\n");
  options_.format = LogFormat::kJson;
  EXPECT_EQ(Line(record),
            "{\"time\":\"2027-01-15T08:00:00.000Z\",\"level\":\"info\","
            "\"msg\":\"call\",\"function\":\"f\",\"outcome\":\"bypass\","
            "\"latency_seconds\":0.000007,\"status\":\"UNAVAILABLE\"}\n");
}

TEST_F(AccessLogTest, AsJsonItIsAnObjectALine) {
  options_.format = LogFormat::kJson;
  const auto line = nlohmann::json::parse(Line(Record()));
  EXPECT_EQ(line["time"], "2027-01-15T08:00:00.042Z");
  EXPECT_EQ(line["msg"], "call");
  EXPECT_EQ(line["function"], "function-a");
  EXPECT_EQ(line["api_version"], "example.org/v1");
  EXPECT_EQ(line["kind"], "XBucket");
  EXPECT_EQ(line["namespace"], "team-a");
  EXPECT_EQ(line["name"], "bucket-1");
  EXPECT_EQ(line["outcome"], "miss");
  EXPECT_EQ(line["reason"], "changed");
  EXPECT_EQ(line["detail"], "context.now");
  EXPECT_EQ(line["key"], "0123456789abcdeffedcba9876543210");
  EXPECT_DOUBLE_EQ(line["latency_seconds"], 1.234567);
  EXPECT_DOUBLE_EQ(line["upstream_seconds"], 1.2);
  EXPECT_EQ(line["status"], "OK");
}

TEST_F(AccessLogTest, ThePageShowsALine) {
  options_.format = LogFormat::kJson;
  AccessRecord record = Record();
  record.ended = absl::FromUnixMillis(1'795'594'011'042);
  record.function = "function-kcl";
  record.detail = "context.\"example.org/now\"";
  record.latency = absl::Microseconds(1'204'567);
  record.upstream_latency = absl::Microseconds(1'203'211);
  EXPECT_THAT(ReadFile(FNCACHE_SOURCE_DIR "/docs/watching.md"),
              HasSubstr("\n" + Line(record)));
}

TEST_F(AccessLogTest, NothingThatACallerChoseMakesALineOrAFieldOfItsOwn) {
  const std::vector<std::string> evil = {"a\nb",
                                         "a\r\nb",
                                         "a b=c",
                                         "a\"b",
                                         "a\\",
                                         "\x1b[31m",
                                         "\xc2\x9b",
                                         "\xff",
                                         "\xe2\x80\xa8",
                                         "\xe2\x80\xae",
                                         std::string("a\0b", 3),
                                         "\xe2\x80",
                                         "<script>"};
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    options_.format = format;
    for (const std::string& text : evil) {
      AccessRecord record = Record();
      record.api_version = record.kind = record.object_namespace = record.name =
          record.detail = record.function = text;
      const std::string line = Line(record);
      EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
      for (const char c : line.substr(0, line.size() - 1)) {
        EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f) << line;
      }
      EXPECT_THAT(line, Not(HasSubstr("\xe2\x80\xae")));
      EXPECT_THAT(line, Not(HasSubstr("\xe2\x80\xa8")));
      if (format == LogFormat::kJson) {
        const auto json = nlohmann::json::parse(line);
        EXPECT_EQ(json["outcome"], "miss");
        EXPECT_EQ(json.size(), 15u) << line;
        if (text == "a\nb" || text == "a\"b" || text == "a b=c") {
          EXPECT_EQ(json["name"], text);
        }
      } else if (absl::StrContains(text, ' ')) {
        EXPECT_THAT(line, HasSubstr(" name=\"a b=c\" outcome=miss "));
      }
    }
  }
}

TEST_F(AccessLogTest, LongNamesAreCutBetweenCharacters) {
  AccessRecord record = Record();
  const std::string name =
      std::string(AccessRecord::kMostText - 1, 'x') + "\xc3\xa9" + "tail";
  record.name = name;
  EXPECT_THAT(Line(record),
              HasSubstr(absl::StrCat(
                  " name=", std::string(AccessRecord::kMostText - 1, 'x'),
                  " outcome=")));
}

TEST_F(AccessLogTest, ChoosesCallsAsToldAndAtOnce) {
  EXPECT_FALSE(log_->on());
  EXPECT_FALSE(log_->Wants(Call(Outcome::kMiss)));
  Configure();
  EXPECT_TRUE(log_->Wants(Call(Outcome::kHit)));
  options_.calls = LoggedCalls::kMisses;
  Configure();
  EXPECT_TRUE(log_->on());
  EXPECT_FALSE(log_->Wants(Call(Outcome::kHit)));
  EXPECT_FALSE(log_->Wants(Call(Outcome::kCollapsed)));
  EXPECT_TRUE(log_->Wants(Call(Outcome::kCollapsed, absl::Seconds(1), 4)));
  for (const Outcome outcome :
       {Outcome::kMiss, Outcome::kStale, Outcome::kBypass, Outcome::kRequest}) {
    EXPECT_TRUE(log_->Wants(Call(outcome)));
  }
  options_.calls = LoggedCalls::kSlow;
  options_.slow = absl::Milliseconds(20);
  Configure();
  EXPECT_FALSE(log_->Wants(Call(Outcome::kMiss, absl::Microseconds(19'999))));
  EXPECT_TRUE(log_->Wants(Call(Outcome::kHit, absl::Milliseconds(20))));
  options_.calls = LoggedCalls::kNone;
  Configure();
  EXPECT_FALSE(log_->Wants(Call(Outcome::kMiss)));
}

TEST_F(AccessLogTest, ASampleIsAShareOfTheCalls) {
  options_.sample = 0.25;
  Configure();
  int wanted = 0;
  for (int i = 0; i < 10'000; ++i) wanted += log_->Wants(Call(Outcome::kHit));
  EXPECT_GT(wanted, 2'200);  // 2,500 give or take seven deviations
  EXPECT_LT(wanted, 2'800);
}

TEST_F(AccessLogTest, ManyThreadsLinesAreAllThereAndWhole) {
  Configure();
  constexpr int kThreads = 4;
  constexpr int kLines = 3'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kLines; ++i) {
        const std::string name = absl::StrCat(t, "-", i);
        AccessRecord record = Record();
        record.name = name;
        log_->Write(record);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(Settled(kThreads * kLines));
  EXPECT_EQ(dropped(), 0u);
  log_ = nullptr;
  const std::string text = ReadFile(options_.file);
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  EXPECT_EQ(lines.back(), "");
  lines.pop_back();
  ASSERT_EQ(lines.size(), size_t{kThreads * kLines});
  int next[kThreads] = {};
  for (const std::string& line : lines) {
    const size_t at = line.find(" name=") + 6;
    const int thread = line[at] - '0';
    // A thread's lines stay in order.
    EXPECT_EQ(line.substr(at, line.find(' ', at) - at),
              absl::StrCat(thread, "-", next[thread]++));
    EXPECT_THAT(line, ::testing::EndsWith(" status=OK"));
  }
}

TEST_F(AccessLogTest, TheEndWritesWhatWaits) {
  Configure();
  for (int i = 0; i < 1'000; ++i) log_->Write(Record());
  log_ = nullptr;
  EXPECT_EQ(written(), 1'000u);
  const std::string text = ReadFile(options_.file);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1'000);
}

TEST_F(AccessLogTest, AFileThatWasMovedAwayGetsASuccessorOnceTold) {
  Configure();
  log_->Write(Record());
  ASSERT_TRUE(Settled(1));
  const std::string old = dir_.File("access.log.1");
  ASSERT_EQ(rename(options_.file.c_str(), old.c_str()), 0);
  log_->Write(Record());
  ASSERT_TRUE(Settled(2));
  EXPECT_NE(access(options_.file.c_str(), F_OK), 0);
  log_->Reopen();
  ASSERT_TRUE(
      Eventually([&] { return access(options_.file.c_str(), F_OK) == 0; }));
  // It is there a moment before it is in use.
  uint64_t lines = 2;
  ASSERT_TRUE(Eventually([&] {
    log_->Write(Record());
    EXPECT_TRUE(Settled(++lines));
    return !ReadFile(options_.file).empty();
  }));
  EXPECT_EQ(dropped(), 0u);
  const std::string both = ReadFile(old) + ReadFile(options_.file);
  EXPECT_EQ(static_cast<uint64_t>(std::count(both.begin(), both.end(), '\n')),
            lines);
}

TEST_F(AccessLogTest, WhereTheSuccessorCannotBeMadeTheOldFileStays) {
  ASSERT_EQ(mkdir(dir_.File("sub").c_str(), 0700), 0);
  options_.file = dir_.File("sub/access.log");
  Configure();
  log_->Write(Record());
  ASSERT_TRUE(Settled(1));
  ASSERT_EQ(rename(dir_.File("sub").c_str(), dir_.File("gone").c_str()), 0);
  log_->Reopen();
  log_->Write(Record());
  ASSERT_TRUE(Settled(2));
  EXPECT_EQ(dropped(), 0u);
  const std::string text = ReadFile(dir_.File("gone/access.log"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST_F(AccessLogTest, AFileThatCannotBeOpenedIsNamedAndTheFormerOptionsStay) {
  Configure();
  const std::string good = options_.file;
  options_.file = dir_.File("no/such/file");
  options_.calls = LoggedCalls::kMisses;
  const absl::Status status = log_->Configure(options_);
  EXPECT_THAT(std::string(status.message()), HasSubstr(options_.file));
  EXPECT_TRUE(log_->Wants(Call(Outcome::kHit)));
  log_->Write(Record());
  ASSERT_TRUE(Settled(1));
  EXPECT_THAT(ReadFile(good), HasSubstr("bucket-1"));
}

TEST_F(AccessLogTest, AFifoWithoutAReaderIsRefusedAndHangsNothing) {
  options_.file = dir_.File("fifo");
  ASSERT_EQ(mkfifo(options_.file.c_str(), 0600), 0);
  EXPECT_FALSE(log_->Configure(options_).ok());
}

// A pipe that is not read. Calls that write do not wait, lines that do not fit
// are counted, and the end comes within moments.
TEST_F(AccessLogTest, APipeThatNobodyReadsCostsLinesAndNoTime) {
  options_.file = dir_.File("fifo");
  ASSERT_EQ(mkfifo(options_.file.c_str(), 0600), 0);
  const int reader = open(options_.file.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  Configure();
  constexpr uint64_t kLines = 200'000;
  absl::Duration longest;
  for (uint64_t i = 0; i < kLines; ++i) {
    const absl::Time before = absl::Now();
    log_->Write(Record());
    longest = std::max(longest, absl::Now() - before);
  }
  // A write that waited for the pipe would wait for ever.
  EXPECT_LT(longest, absl::Seconds(60));
  EXPECT_GT(dropped(), 0u);
  const absl::Time before = absl::Now();
  log_ = nullptr;
  EXPECT_LT(absl::Now() - before, absl::Seconds(60));
  EXPECT_EQ(written() + dropped(), kLines);
  // The pipe contains whole lines, as many as were counted.
  std::string text;
  char buffer[65536];
  for (ssize_t n = 0; (n = read(reader, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  close(reader);
  EXPECT_EQ(static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n')),
            written());
}

TEST_F(AccessLogTest, OneLineOfTheLogSaysThatLinesAreDropped) {
  options_.file = dir_.File("fifo");
  ASSERT_EQ(mkfifo(options_.file.c_str(), 0600), 0);
  const int reader = open(options_.file.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ::testing::internal::CaptureStderr();
  Configure();
  while (dropped() < 1'000) log_->Write(Record());
  log_ = nullptr;
  close(reader);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_THAT(said, HasSubstr(" warning the access log cannot be written as "
                              "fast as calls end: lines are dropped lines="));
  EXPECT_THAT(said, HasSubstr("file=" + options_.file));
}

TEST_F(AccessLogTest, ASlowReaderGetsAllThatWasNotDropped) {
  options_.file = dir_.File("fifo");
  ASSERT_EQ(mkfifo(options_.file.c_str(), 0600), 0);
  const int reader = open(options_.file.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  Configure();
  constexpr uint64_t kLines = 2'000;
  for (uint64_t i = 0; i < kLines; ++i) log_->Write(Record());
  uint64_t lines = 0;
  char buffer[5'000];
  EXPECT_TRUE(Eventually([&] {
    const ssize_t n = read(reader, buffer, sizeof buffer);
    if (n > 0) lines += std::count(buffer, buffer + n, '\n');
    return lines == kLines;
  }));
  close(reader);
  EXPECT_EQ(written(), kLines);
}

TEST_F(AccessLogTest, AReaderThatWentCostsLinesAndIsNotAsked) {
  signal(SIGPIPE, SIG_IGN);
  options_.file = dir_.File("fifo");
  ASSERT_EQ(mkfifo(options_.file.c_str(), 0600), 0);
  const int reader = open(options_.file.c_str(), O_RDONLY | O_NONBLOCK);
  Configure();
  close(reader);
  log_->Write(Record());
  ASSERT_TRUE(Settled(1));
  EXPECT_EQ(dropped(), 1u);
}

// A file system that is full for a while: /dev/full takes nothing. A limit of
// the file's size takes only the beginning of a line.
TEST_F(AccessLogTest, AFullDiskCostsLines) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  options_.file = "/dev/full";
  Configure();
  log_->Write(Record());
  ASSERT_TRUE(Settled(1));
  EXPECT_EQ(dropped(), 1u);
  EXPECT_EQ(written(), 0u);
}

TEST_F(AccessLogTest, AfterATornLineTheNextOneBeginsAnew) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  Configure();
  log_->Write(Record());
  ASSERT_TRUE(Settled(1));
  const size_t line = ReadFile(options_.file).size();
  rlimit limit = before;
  limit.rlim_cur = line + line / 2;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  log_->Write(Record());
  const bool settled = Settled(2);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_TRUE(settled);
  EXPECT_EQ(dropped(), 1u);
  log_->Write(Record());
  ASSERT_TRUE(Settled(3));
  const std::string text = ReadFile(options_.file);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1], lines[0].substr(0, line / 2));
  EXPECT_EQ(lines[2], lines[0]);
  EXPECT_EQ(written(), 2u);
}

TEST_F(AccessLogTest, OptionsChangeUnderWriters) {
  Configure();
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> asked{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        if (!log_->Wants(Call(Outcome::kMiss))) continue;
        ++asked;
        log_->Write(Record());
      }
    });
  }
  for (int i = 0; i < 60; ++i) {
    options_.file = dir_.File(absl::StrCat("access.", i % 3));
    options_.format = i % 2 == 0 ? LogFormat::kText : LogFormat::kJson;
    options_.calls = i % 5 == 0 ? LoggedCalls::kNone : LoggedCalls::kAll;
    options_.sample = i % 7 == 0 ? 0.5 : 1;
    Configure();
    if (i % 4 == 0) log_->Reopen();
    absl::SleepFor(absl::Milliseconds(3));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  log_ = nullptr;
  EXPECT_EQ(written() + dropped(), asked.load());
}

TEST_F(AccessLogTest, WithoutAFileLinesGoToStderr) {
  options_.file.clear();
  ::testing::internal::CaptureStderr();
  Configure();
  log_->Write(Record());
  log_ = nullptr;
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, ::testing::StartsWith("2027-01-15T08:00:00.042Z info call "
                                          "function=function-a "));
}

// Once stderr is read again a line tells what is missing, however much of the
// log itself waits for it.
TEST_F(AccessLogTest, OfStderrThatNobodyReadALineTellsWhatIsMissing) {
  options_.file.clear();
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const int stderr_before = dup(STDERR_FILENO);
  ASSERT_GE(dup2(ends[1], STDERR_FILENO), 0);
  close(ends[1]);
  Configure();
  while (dropped() < 1'000) log_->Write(Record());
  std::string text;
  constexpr char kTold[] =
      " warning stderr took no lines of the access log: some were dropped "
      "lines=";
  std::thread reader([&] {
    char buffer[65536];
    for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<size_t>(n));
    }
  });
  EXPECT_TRUE(Eventually([&] { return written() > 20'000; }));
  log_ = nullptr;
  dup2(stderr_before, STDERR_FILENO);
  close(stderr_before);
  reader.join();
  close(ends[0]);
  const size_t told = text.find(kTold);
  ASSERT_NE(told, std::string::npos);
  EXPECT_EQ(text.find(kTold, told + 1), std::string::npos);
  EXPECT_THAT(text.substr(told + sizeof kTold - 1),
              ::testing::StartsWith(absl::StrCat(dropped(), "\n")));
  EXPECT_EQ(static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n')),
            written() + 1);
}

}  // namespace
}  // namespace fncache::proxy::telemetry
