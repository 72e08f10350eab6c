// SPDX-License-Identifier: Apache-2.0
#include "proxy/reload.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "proxy/telemetry/process_metrics.h"
#include "tests/common/long_form.h"
#include "tests/proxy/reload_testing.h"
#include "tests/proxy/start_daemon.h"

namespace fncache::proxy {
namespace {

namespace fs = std::filesystem;
using grpc::StatusCode;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kQuick = absl::Milliseconds(5);

// How often a text is in another.
int CountOf(const std::string& log, const std::string& text) {
  int count = 0;
  for (size_t at = log.find(text); at != std::string::npos;
       at = log.find(text, at + 1)) {
    ++count;
  }
  return count;
}

TEST_F(ReloadTest, SaysWhatItDid) {
  Start("ttl: {max: 1h}\n");
  ::testing::internal::CaptureStderr();
  const ReloadResult result = Reload("ttl: {max: 2h}\nworkers: 3\n");
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(result.changed.size(), 1u);
  EXPECT_EQ(result.changed[0].key, "ttl.max");
  EXPECT_EQ(result.changed[0].before, "1h");
  EXPECT_EQ(result.changed[0].after, "2h");
  ASSERT_EQ(result.restart.size(), 1u);
  EXPECT_EQ(result.restart[0].key, "workers");
  EXPECT_FALSE(result.unchanged());
  EXPECT_THAT(log, HasSubstr(" info settings were reloaded "));
  EXPECT_THAT(log, HasSubstr("ttl.max=\"1h -> 2h\""));
  EXPECT_THAT(log, HasSubstr("warning settings that take a restart keep their "
                             "values"));
  EXPECT_THAT(log, HasSubstr("workers=\"unset -> 3\""));
  EXPECT_EQ(CountOf(log, "\n"), 2) << log;
  EXPECT_EQ(Metric("fncache_config_last_reload_successful"), 1);
  EXPECT_EQ(Metric("fncache_config_reloads_total{result=\"success\"}"), 1);
  const std::string page = Get("/statusz");
  EXPECT_THAT(page, HasSubstr("ttl.max<td><code>2h</code>"));
  EXPECT_THAT(page, HasSubstr(absl::StrCat(file(), ":6")));
  EXPECT_THAT(page, HasSubstr("workers: unset -&gt; 3"));
  EXPECT_TRUE(Reload("ttl: {max: 2h}\n").unchanged());
  EXPECT_THAT(Get("/statusz"), Not(HasSubstr("workers: unset")));
}

TEST_F(ReloadTest, AFileThatWasCutOffToBeWrittenAnewIsNoSettings) {
  Start("ttl: {max: 1h}\n");
  for (const char* const text : {"", " \n\n"}) {
    ::fncache::testing::WriteFile(file(), text);
    const auto result = daemon_->Reload();
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(std::string(result.status().message()),
                HasSubstr("the file is empty"));
  }
  EXPECT_EQ(Metric("fncache_config_last_reload_successful"), 0);
  EXPECT_TRUE(Reload("ttl: {max: 1h}\n").unchanged());
}

TEST_F(ReloadTest, ABadFileLeavesEverythingAsItWas) {
  Start("ttl: {max: 1h}\n");
  Call({});
  EXPECT_EQ(Call({}).served(), 3240);
  const std::string bad[] = {
      "ttl: {max: 1h, min: 2h}\n",      // they contradict
      "ttl: {max: soon}\nmode: off\n",  // a bad value beside a good one
      "mode: \"off\"\nno_such: 1\n",    // unknown
      "mode: \"off\"\nmask: [\"@ver",   // cut off
      "mode: \"off\"\nkey: tag\nmask: [\"@versions\"]\n",
      "mode: \"off\"\nmask: [spec]\n",
      "\tmode: x\n",
      std::string("mode: \"off\"\n\0\0\0", 15),
  };
  int failures = 0;
  for (const std::string& settings : bad) {
    Write(settings);
    ::testing::internal::CaptureStderr();
    const auto result = daemon_->Reload();
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_FALSE(result.ok()) << settings;
    EXPECT_THAT(log, HasSubstr(" error settings were not reloaded"));
    EXPECT_THAT(log, HasSubstr(file()));
    EXPECT_EQ(CountOf(log, "\n"), 1) << log;
    EXPECT_EQ(Metric("fncache_config_last_reload_successful"), 0);
    EXPECT_EQ(Metric("fncache_config_reloads_total{result=\"failure\"}"),
              ++failures);
    EXPECT_TRUE(Call({}).hit()) << settings;
  }
  const double before =
      Metric("fncache_config_last_reload_success_timestamp_seconds");
  const auto status = nlohmann::json::parse(std::string(absl::StripPrefix(
      Get("/statusz?format=json")
          .substr(Get("/statusz?format=json").find("\r\n\r\n")),
      "\r\n\r\n")));
  EXPECT_EQ(status["reload"]["last_successful"], false);
  EXPECT_THAT(status["reload"]["error"], HasSubstr(file()));
  EXPECT_EQ(status["reload"]["failures"], failures);
  EXPECT_EQ(status["problems"][0]["kind"], "reload_failed");
  EXPECT_THAT(Get("/statusz"), HasSubstr("What it holds now is not in force"));
  EXPECT_TRUE(Reload("ttl: {max: 1h}\n").unchanged());
  EXPECT_EQ(Metric("fncache_config_last_reload_successful"), 1);
  EXPECT_GE(Metric("fncache_config_last_reload_success_timestamp_seconds"),
            before);
}

TEST_F(ReloadTest, WhatIsKeptMustFitToWhatIsNew) {
  Start(absl::StrCat("generation: g\ncache: {dir: \"", dir_.File("cache"),
                     "\"}\n"));
  // By itself it is sound: without cache.dir no generation is needed. But the
  // directory stays.
  Write("");
  const auto result = daemon_->Reload();
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(),
              AllOf(HasSubstr("generation"), HasSubstr("of the start")));
}

TEST_F(ReloadTest, WhatTheWorldRefusesLeavesEverythingAsItWas) {
  Start("");
  ::fncache::testing::WriteFile(dir_.File("taken"), "a file");
  Call({});
  Write(absl::StrCat("mode: \"off\"\ntrace: {dir: \"", dir_.File("taken"),
                     "\"}\n"));
  const auto result = daemon_->Reload();
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(), HasSubstr("trace.dir: "));
  EXPECT_TRUE(Call({}).hit());
}

TEST_F(ReloadTest, ATraceThatCannotChangeGoesOn) {
  const std::string trace =
      absl::StrCat("trace: {level: keys, dir: \"", dir_.File("trace"), "\"");
  Start(trace + "}\n");
  Call({});
  Write(absl::StrCat("trace: {dir: \"", file(), "\"}\n"));
  EXPECT_FALSE(daemon_->Reload().ok());
  Call({});
  Reload("");
  EXPECT_EQ(Metric("fncache_trace_records_total{result=\"written\"}"), 2);
}

TEST_F(ReloadTest, TheFileIsFollowed) {
  Start("", kQuick);
  Write("ttl: {max: 1h}\nttl: {max: 2h}\n");  // not sound
  ASSERT_TRUE(Eventually(
      [&] { return Metric("fncache_config_last_reload_successful") == 0; }));
  Write("mode: \"off\"\n");
  ASSERT_TRUE(Eventually([&] { return Call({}).cache == "fwd=bypass"; }));
  ASSERT_TRUE(Eventually(
      [&] { return Metric("fncache_config_last_reload_successful") == 1; }));
}

TEST_F(ReloadTest, OneContentIsSpokenOfOnce) {
  Start("", kQuick);
  ::testing::internal::CaptureStderr();
  const auto failures = [&] {
    return Metric("fncache_config_reloads_total{result=\"failure\"}");
  };
  const auto successes = [&] {
    return Metric("fncache_config_reloads_total{result=\"success\"}");
  };
  std::filesystem::remove(file());
  ASSERT_TRUE(Eventually([&] { return failures() == 1; }));
  absl::SleepFor(20 * kQuick);
  EXPECT_EQ(failures(), 1) << "it is still gone";
  Write("mode: ");  // null is no mode
  ASSERT_TRUE(Eventually([&] { return failures() == 2; }));
  absl::SleepFor(20 * kQuick);
  EXPECT_EQ(failures(), 2);
  Write("");
  ASSERT_TRUE(Eventually([&] { return successes() == 1; }));
  Write("");  // written again, the same
  absl::SleepFor(20 * kQuick);
  EXPECT_EQ(successes(), 1);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(CountOf(log, "\n"), 3) << log;
}

// As Kubernetes mounts a ConfigMap: fncache.yaml -> ..data/fncache.yaml, ..data
// -> a folder that is swapped for another one.
TEST_F(ReloadTest, SwappedLinksAreFollowed) {
  const auto put = [this](const std::string& folder, const std::string& text) {
    fs::create_directory(dir_.File(folder));
    ::fncache::testing::WriteFile(dir_.File(folder + "/fncache.yaml"),
                                  Base() + text);
    fs::create_directory_symlink(folder, dir_.File("..data_tmp"));
    fs::rename(dir_.File("..data_tmp"), dir_.File("..data"));
  };
  put("..2026_1", "");
  fs::create_symlink("..data/fncache.yaml", dir_.File("mounted.yaml"));
  StartFrom(dir_.File("mounted.yaml"), kQuick);
  Call({});
  EXPECT_TRUE(Call({}).hit());
  put("..2026_2", "mode: \"off\"\n");
  fs::remove_all(dir_.File("..2026_1"));
  ASSERT_TRUE(Eventually([&] { return Call({}).cache == "fwd=bypass"; }));
  put("..2026_3", "");
  fs::remove_all(dir_.File("..2026_2"));
  ASSERT_TRUE(Eventually([&] { return Call({}).hit(); }));
}

// Writes in place and in ten pieces; the longest time between two of them. If a
// busy machine delays the writer for longer than kStill, the daemon may take an
// unfinished file for a whole one.
constexpr absl::Duration kStill = absl::Milliseconds(15);

absl::Duration WriteSlowly(const std::string& file, const std::string& text,
                           std::ios::openmode mode, absl::Time last) {
  constexpr size_t kPieces = 10;
  absl::Duration longest;
  std::ofstream out(file, mode);
  const size_t size = text.size() / kPieces + 1;
  for (size_t at = 0; at < text.size(); at += size) {
    out << text.substr(at, size) << std::flush;
    longest = std::max(longest, absl::Now() - last);
    last = absl::Now();
    absl::SleepFor(absl::Milliseconds(3));
  }
  return longest;
}

// A writer in place takes its time; the content meanwhile may be valid too.
TEST_F(ReloadTest, AFileIsReadWhenItIsWritten) {
  Start("mask: [\"@versions\"]\nttl: {max: 1h}\n", kQuick);
  const auto counted = [this](const std::string& result) {
    return Metric("fncache_config_reloads_total{result=\"" + result + "\"}");
  };
  for (int value = 100; value < 150; ++value) {
    const double failures = counted("failure");
    const double successes = counted("success");
    const absl::Duration stood = WriteSlowly(
        file(),
        absl::StrCat(Base(),
                     "mask: [\"@versions\"]\nttl: {max: 1h}\nmax_released: ",
                     value, "\n"),
        std::ios::trunc, absl::Now());
    ASSERT_TRUE(Eventually([&] {
      for (const telemetry::ListedSetting& setting : daemon_->Settings()) {
        if (setting.key == "max_released") {
          return setting.values[0] == absl::StrCat(value);
        }
      }
      return false;
    }));
    if (stood > kStill) continue;
    EXPECT_EQ(counted("failure"), failures) << "it stood never still before";
    EXPECT_EQ(counted("success"), successes + 1);
    return;
  }
  FAIL() << "the writer was delayed each time";
}

TEST_F(ReloadTest, WhoAsksDuringAWriteWaitsForItsEnd) {
  Start("mask: [\"@versions\"]\n");
  // The first half would be in order by itself, without a mask.
  const std::string half = Base() + "ttl: {max: 1h}\n";
  const std::string rest = "mask: [\"@versions\"]\nmax_released: 7\n";
  absl::StatusOr<ReloadResult> result = absl::UnknownError("never asked");
  absl::Duration stood;
  int tries = 0;
  do {
    Reload("mask: [\"@versions\"]\n# anew\n");
    const absl::Time begun = absl::Now();
    ::fncache::testing::WriteFile(file(), half);
    std::atomic<bool> asked{false};
    std::thread asks([&] {
      asked = true;
      result = daemon_->Reload();
    });
    while (!asked) std::this_thread::yield();
    stood = WriteSlowly(file(), rest, std::ios::app, begun);
    asks.join();
  } while (stood > kStill && ++tries < 50);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<std::string> changed;
  for (const auto& change : result->changed) changed.push_back(change.key);
  EXPECT_THAT(changed,
              ::testing::UnorderedElementsAre("ttl.max", "max_released"))
      << "the mask is in the part that came later";
}

TEST_F(ReloadTest, WithoutAFileThereIsNothingToRead) {
  const settings::SettingsSource source({{"insecure", "true"},
                                         {"upstream", function_.target()},
                                         {"listen", "127.0.0.1:0"},
                                         {"admin", "127.0.0.1:0"}},
                                        {}, "");
  auto effective = source.Resolve("");
  ASSERT_TRUE(effective.ok()) << effective.status();
  Daemon::Extras extras;
  extras.config_interval = kQuick;
  extras.start.emplace(StartSettings{source, effective->resolved, "", {}});
  auto daemon =
      StartDaemon(std::move(effective->options.daemon), std::move(extras));
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  daemon_ = *std::move(daemon);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(absl::IsFailedPrecondition(daemon_->Reload().status()));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("stay as they were at the start"));
  EXPECT_EQ(Metric("fncache_config_last_reload_successful"), 1);
  EXPECT_EQ(Metric("fncache_config_reloads_total{result=\"failure\"}"), 0);
}

// A mask that comes while a call is at the function, and goes again.
TEST_F(ReloadTest, CallsUnderWayFinishUnderTheirSettings) {
  Start("");
  Ask one;
  one.hold = true;
  Ask two = one;
  two.version = "2";
  const auto first = Send(one);
  ASSERT_TRUE(Eventually([&] { return held() == 1; }));
  Reload("mask: [\"@versions\"]\n");
  // Under the mask it is another key: it joins no earlier call.
  const auto second = Send(two);
  ASSERT_TRUE(Eventually([&] { return held() == 2; }));
  // The next caller joins these.
  const auto third = Send(one);
  ASSERT_TRUE(Eventually([&] {
    return Metric(
               "fncache_collapsed_callers_waiting{function_name="
               "\"function\"}") == 1;
  }));
  Reload("");
  const auto fourth = Send(one);
  ASSERT_TRUE(Eventually([&] {
    return Metric(
               "fncache_collapsed_callers_waiting{function_name="
               "\"function\"}") == 2;
  })) << "the key of the first, whose flight it joins";
  EXPECT_EQ(held(), 2u);
  ReleaseAll();
  EXPECT_EQ(AnswerOf(first).text, one.text());
  EXPECT_EQ(AnswerOf(second).text, two.text());
  EXPECT_EQ(AnswerOf(third).text, two.text()) << "as the mask has it";
  EXPECT_EQ(AnswerOf(fourth).text, one.text());
  EXPECT_TRUE(Call(one).hit());
  const auto unmasked = Send(two);
  ASSERT_TRUE(Eventually([&] { return held() == 1; }))
      << "what was stored under the mask is not found without it";
  ReleaseAll();
  EXPECT_EQ(AnswerOf(unmasked).text, two.text());
  Reload("mask: [\"@versions\"]\n");
  EXPECT_TRUE(Call(one, /*masked=*/true).hit());
}

// The stricter of the settings of before and after decides, either way round.
TEST_F(ReloadTest, FillsObeyTheStricterSettings) {
  const struct {
    const char* before;
    const char* after;
    bool secret;
    bool stored;
  } kCases[] = {
      {"mode: \"on\"\n", "mode: \"off\"\n", false, false},
      {"mode: \"off\"\n", "mode: \"on\"\n", false, false},
      {"store_secrets: memory\n", "store_secrets: none\n", true, false},
      {"store_secrets: none\n", "store_secrets: all\n", true, false},
      {"store_secrets: memory\n", "store_secrets: none\n", false, true},
      {"store_secrets: memory\n", "store_secrets: all\n", true, true},
      {"ttl: {max: 1h}\n", "ttl: {max: 2h}\n", true, true},
  };
  Start("");
  int n = 0;
  for (const auto& one : kCases) {
    SCOPED_TRACE(absl::StrCat(one.before, one.after));
    Reload(one.before);
    Ask ask;
    ask.spec = absl::StrCat("case ", n++);
    ask.secret = one.secret;
    ask.hold = true;
    const auto caller = Send(ask);
    ASSERT_TRUE(Eventually([&] { return held() == 1; }));
    Reload(one.after);
    ReleaseAll();
    const Answer answer = AnswerOf(caller);
    EXPECT_EQ(answer.text, ask.text());
    EXPECT_EQ(answer.cache.find("stored") != std::string::npos, one.stored)
        << answer.cache;
    Reload("store_secrets: memory\n");
    const auto again = Send(ask);
    if (!one.stored) {
      ASSERT_TRUE(Eventually([&] { return held() == 1; }));
      ReleaseAll();
    }
    EXPECT_EQ(AnswerOf(again).hit(), one.stored);
  }
}

// An entry that may not be on disk any more is not found there. The note of
// functions that may have left entries stays, so that the next start drops
// them.
TEST_F(ReloadTest, TighteningHoldsForWhatIsOnDisk) {
  const std::string disk =
      absl::StrCat("generation: g\ncache: {memory: 64KiB, dir: \"",
                   dir_.File("cache"), "\"}\nmax_entry_bytes: 8KiB\n");
  const auto note = [this] {
    return ::fncache::testing::ReadFile(dir_.File("cache/secrets"));
  };
  Start(disk);
  EXPECT_EQ(note(), "fncache secrets 1\nend\n");
  Reload(disk + "store_secrets: all\n");
  EXPECT_EQ(note(), "fncache secrets 1\nfunction\nend\n");
  Ask secret;
  secret.secret = true;
  Call(secret);
  const auto crowd_out = [&](const std::string& name) {
    Ask ask;
    ask.bytes = 4000;
    for (int i = 0; i < 40; ++i) {
      ask.spec = absl::StrCat(name, i);
      Call(ask);
    }
  };
  crowd_out("a");
  ASSERT_TRUE(Eventually(
      [&] { return Metric("fncache_tier_entries{tier=\"disk\"}") == 41; }));
  EXPECT_TRUE(Call(secret).hit()) << "from the disk";
  crowd_out("b");
  Reload(disk + "store_secrets: memory\n");
  EXPECT_FALSE(Call(secret).hit());
  EXPECT_TRUE(Call(secret).hit()) << "memory may have it";
  crowd_out("c");
  EXPECT_FALSE(Call(secret).hit()) << "the disk may not";
  EXPECT_EQ(note(), "fncache secrets 1\nfunction\nend\n")
      << "there may still be some";
  daemon_->Drain();
  daemon_ = nullptr;
  ::testing::internal::CaptureStderr();
  Start(disk);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("store_secrets was tightened"));
  EXPECT_EQ(note(), "fncache secrets 1\nend\n");
  EXPECT_EQ(Metric("fncache_tier_entries{tier=\"disk\"}"), 0);
}

TEST_F(ReloadTest, EntriesOfAGenerationThatComesBackAreReachable) {
  const auto with = [this](const std::string& generation) {
    return absl::StrCat("cache: {memory: 64KiB, dir: \"", dir_.File("cache"),
                        "\"}\nmax_entry_bytes: 8KiB\ngeneration: ", generation,
                        "\n");
  };
  Start(with("one"));
  Ask ask;
  Call(ask);
  Reload(with("two"));
  EXPECT_FALSE(Call(ask).hit());
  Ask other;
  other.spec = "of two";
  Call(other);
  Ask much;
  much.bytes = 4000;
  for (int i = 0; i < 40; ++i) {
    much.spec = absl::StrCat("x", i);
    Call(much);
  }
  ASSERT_TRUE(Eventually([&] {
    return Metric("fncache_queue_depth{queue=\"disk_fills\"}") == 0;
  }));
  Reload(with("one"));
  EXPECT_FALSE(Call(other).hit());
  const Answer answer = Call(ask);
  EXPECT_TRUE(answer.hit()) << "on the disk: " << answer.cache;
  daemon_->Drain();
  daemon_ = nullptr;
  Start(with("one"));
  EXPECT_TRUE(Call(ask).hit()) << "and over a restart";
  daemon_->Drain();
  daemon_ = nullptr;
  Start(with("two"));
  EXPECT_TRUE(Call(other).hit());
}

uint64_t Resident() { return telemetry::ReadProcess().resident_bytes; }

// Settings come and go under load, a thousand times. No caller gets an error,
// or the answer to another request, and nothing is left behind.
TEST_F(ReloadTest, ManyReloadsUnderLoad) {
  const int reloads = testing::ShortOrLong(200, 1000);
  const std::string kSound[] = {
      "",
      "mask: [\"@versions\"]\n",
      "ttl: {max: 10s}\nmax_entry_bytes: 1KiB\ncache: {memory: 1MiB}\n",
      "mode: \"off\"\n",
      "mask: [\"@versions\", \"@times\"]\nttl: {margin: 0.5}\n",
      "generation: other\nmax_released: 1\nstore_secrets: none\n",
      "key_hash: sha256\nrequeue_ttl: original\n",
      "max_streams: 100\nmax_request_bytes: 1MiB\ninflight: {bytes: 1MiB}\n",
      "idle_timeout: 1s\nbypass_metadata: [x-some]\nttl: {min: 1m}\n",
  };
  constexpr int kCallers = 4;
  // The memory of misses would grow for a while, so it is off.
  const std::string always = "log: {level: error}\nexplain: {memory: 0}\n";
  Start(always);
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0};
  std::atomic<int> hits{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&, i] {
      std::mt19937 random(static_cast<unsigned>(i));
      const auto channel = Connect(daemon_->addresses()[0]);
      while (!stop) {
        Ask ask;
        ask.spec = absl::StrCat(random() % 200);
        ask.version = absl::StrCat(random() % 3);
        ask.secret = random() % 4 == 0;
        ask.bytes = random() % 8 == 0 ? 3000 : 0;
        ask.ttl_seconds = random() % 16 == 0 ? -1 : 3600;
        ask.metadata = random() % 8 == 0 ? "x-some" : "";
        const Answer answer = AnswerOf(Send(ask, channel));
        ++calls;
        if (answer.hit()) ++hits;
        ASSERT_EQ(answer.code, StatusCode::OK) << answer.message;
        // A field that masks hide may be another request's; the rest never is.
        ASSERT_EQ(answer.text.substr(0, answer.text.find('/')), ask.spec);
      }
    });
  }
  uint64_t tenth = 0;
  for (int i = 1; i <= reloads; ++i) {
    Reload(always + kSound[i % std::size(kSound)]);
    const int until = calls + 3;
    ASSERT_TRUE(Eventually([&] { return calls > until; }));
    if (i == reloads / 10) tenth = Resident();
  }
  const uint64_t last = Resident();
  stop = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_GT(calls, reloads);
  EXPECT_GT(hits, 0);
  std::cout << "resident after a tenth of the reloads: " << tenth
            << ", after all: " << last << "\n";
#if !defined(FNCACHE_TSAN) && !defined(FNCACHE_ASAN)
  EXPECT_LT(last, tenth + (8 << 20)) << "of a reload something stays";
#endif
  EXPECT_EQ(Metric("fncache_config_reloads_total{result=\"success\"}"),
            reloads);
  // Entries that were stored under masks meanwhile are not found without them.
  Reload(always);
  for (int spec = 0; spec < 200; ++spec) {
    for (int version = 0; version < 3; ++version) {
      Ask ask;
      ask.spec = absl::StrCat(spec);
      ask.version = absl::StrCat(version);
      Call(ask);
    }
  }
}

}  // namespace
}  // namespace fncache::proxy
