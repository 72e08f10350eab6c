// SPDX-License-Identifier: Apache-2.0
// A whole daemon's purges and look-ups of keys, as its admin service will ask
// for them; and purges across restarts, of which kill -9 is the hardest.
#include "proxy/purge.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proxy/daemon.h"
#include "tests/common/http_get.h"
#include "tests/common/temp_dir.h"
#include "tests/proxy/serving/scripted.h"
#include "tests/proxy/start_daemon.h"

namespace fncache::proxy {
namespace {

using serving::Request;
using serving::Response;
using serving::ScriptedFunction;
using ::testing::HasSubstr;
using Kind = cache::store::Bans::Kind;

// Says how many calls there have been, for an hour.
class CountingFunction : public ScriptedFunction {
 public:
  CountingFunction()
      : ScriptedFunction([this](const serving::FunctionCallPtr& call) {
          call->Answer(Response("", absl::StrCat("answer ", ++count_), 3600)
                           .SerializeAsString());
        }) {}

 private:
  std::atomic<int> count_{0};
};

struct Answer {
  std::string text;
  std::string cache_status;
};

Answer Ask(const std::string& address, const std::string& name) {
  const auto channel = Connect(address);
  auto caller = std::make_shared<serving::Caller>();
  caller->context.set_deadline(
      absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  caller->Start(channel, kRunFunctionV1, Request(name, "t"));
  const grpc::Status status = caller->Wait();
  EXPECT_TRUE(status.ok()) << status.error_message();
  if (!status.ok()) return {};
  return {caller->response().results(0).message(), caller->cache_status()};
}

class DaemonPurgeTest : public ::testing::Test {
 protected:
  settings::DaemonOptions Options() {
    settings::DaemonOptions options;
    for (const char* const name : {"first", "second"}) {
      settings::FunctionOptions function;
      function.name = name;
      function.generation = "r1";
      function.listen = "127.0.0.1:0";
      function.upstream = function_.target();
      options.functions.push_back(function);
    }
    options.admin = "127.0.0.1:0";
    options.cache_memory = 16 << 20;
    options.cache_dir = directory_.path() + "/cache";
    options.cache_disk = 64 << 20;
    options.drain = absl::Seconds(20);
    return options;
  }
  void Start(settings::DaemonOptions options) {
    daemon_ = nullptr;
    Daemon::Extras extras;
    extras.disk_retry = absl::Milliseconds(5);
    auto daemon = StartDaemon(std::move(options), std::move(extras));
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
  }
  void Start() { Start(Options()); }
  Answer Ask(const std::string& name, size_t function = 0) {
    return proxy::Ask(daemon_->addresses()[function], name);
  }
  bool Hits(const std::string& name, size_t function = 0) {
    return absl::StartsWith(Ask(name, function).cache_status, "fncache; hit");
  }
  LookUpOrder About(const std::string& name,
                    const std::string& function = "first") {
    LookUpOrder order;
    order.request = Request(name, "another tag");
    order.function = function;
    return order;
  }
  PurgeOrder Of(Kind kind, const std::string& function = "") {
    PurgeOrder order;
    order.what = kind;
    order.function = function;
    order.generation = "r1";
    return order;
  }
  PurgeOrder OfKey(const std::string& name) {
    PurgeOrder order;
    order.key = *daemon_->KeyOf(About(name));
    return order;
  }
  std::vector<EntryReport> LookUp(const LookUpOrder& order) {
    const auto reports = daemon_->LookUp(order);
    EXPECT_TRUE(reports.ok()) << reports.status();
    return *reports;
  }
  std::string Metrics() {
    const std::string& address = daemon_->admin_address();
    int port = 0;
    EXPECT_TRUE(
        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    return ::fncache::testing::HttpGet(port, "/metrics");
  }
  // Until it is there, and does not only wait to be written.
  void AwaitDisk(const std::string& name) {
    EXPECT_TRUE(Eventually([&] {
      return LookUp(About(name)).size() == 2 &&
             absl::StrContains(Metrics(),
                               "fncache_queue_depth{queue=\"disk_fills\"} 0\n");
    }));
  }

  CountingFunction function_;
  ::fncache::testing::TempDir directory_;
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(DaemonPurgeTest, EveryKindTakesWhatItSays) {
  struct Row {
    PurgeOrder order;
    bool first, second;  // still hit
  };
  Start();
  const auto rows = std::vector<Row>{
      {OfKey("a"), false, true},
      {Of(Kind::kFunction, "first"), false, true},
      {Of(Kind::kGeneration, "first"), false, true},
      {Of(Kind::kGeneration), false, false},
      {Of(Kind::kFunction), false, false},
      {Of(Kind::kAll), false, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(static_cast<int>(row.order.what));
    Ask("a", 0);
    Ask("a", 1);
    ASSERT_TRUE(Hits("a", 0));
    ASSERT_TRUE(Hits("a", 1));
    AwaitDisk("a");
    const auto result = daemon_->Purge(row.order);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->durable);
    EXPECT_EQ(result->removed, row.order.what == Kind::kKey ? 2u
                               : row.second                 ? 1u
                                                            : 2u);
    // In this process and in the next one.
    Start();
    EXPECT_EQ(LookUp(About("a")).size(),
              row.order.what == Kind::kKey ? 0u : 1u);
    for (const EntryReport& report : LookUp(About("a"))) {
      ASSERT_TRUE(report.ban.has_value());
      EXPECT_FALSE(report.ban->soft);
      EXPECT_LE(report.remaining, absl::ZeroDuration());
    }
    EXPECT_EQ(Hits("a", 0), row.first);
    EXPECT_EQ(Hits("a", 1), row.second);
    ASSERT_TRUE(Hits("a", 0)) << "it is filled anew";
  }
}

TEST_F(DaemonPurgeTest, OrdersThatAreNoneSaySo) {
  Start();
  Ask("a");
  auto purged = daemon_->Purge(Of(Kind::kFunction, "frist"));
  EXPECT_TRUE(absl::IsNotFound(purged.status()));
  EXPECT_THAT(std::string(purged.status().message()),
              HasSubstr("no function frist here, only first, second"));
  EXPECT_TRUE(absl::IsInvalidArgument(
      daemon_->Purge(Of(Kind::kAll, "first")).status()));
  auto looked = daemon_->LookUp(About("a", ""));
  EXPECT_TRUE(absl::IsInvalidArgument(looked.status()));
  EXPECT_THAT(std::string(looked.status().message()),
              HasSubstr("first, second"));
  EXPECT_TRUE(absl::IsNotFound(daemon_->LookUp(About("a", "x")).status()));
  LookUpOrder order;
  order.function = "first";
  order.request = "\xff";
  EXPECT_TRUE(absl::IsInvalidArgument(daemon_->LookUp(order).status()));
  order = About("a");
  order.method = Method::kOther;
  EXPECT_TRUE(absl::IsInvalidArgument(daemon_->LookUp(order).status()));
  // A key is of one function, which is not the one that was named.
  PurgeOrder key = OfKey("a");
  key.function = "second";
  purged = daemon_->Purge(key);
  EXPECT_TRUE(absl::IsNotFound(purged.status()));
  EXPECT_THAT(std::string(purged.status().message()),
              HasSubstr("is of the function first, not of second"));
  order = About("a", "x");
  order.key = key.key;
  EXPECT_TRUE(absl::IsNotFound(daemon_->LookUp(order).status()));
  EXPECT_TRUE(Hits("a")) << "nothing was purged";
  key.function = "first";
  EXPECT_TRUE(daemon_->Purge(key).ok());
  EXPECT_FALSE(Hits("a"));
}

TEST_F(DaemonPurgeTest, LongNamesAreNotEchoedWhole) {
  Start();
  Ask("a");
  const std::string name(20'000, 'n');
  PurgeOrder key = OfKey("a");
  key.function = name;
  LookUpOrder look_up = About("a");
  look_up.function = name;
  for (const absl::Status& status :
       {daemon_->Purge(Of(Kind::kFunction, name)).status(),
        daemon_->Purge(key).status(), daemon_->LookUp(look_up).status()}) {
    EXPECT_TRUE(absl::IsNotFound(status));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(" " + name.substr(0, 100) + "..."));
    EXPECT_LT(status.message().size(), 300u);
  }
}

// The file of bans has capacity for the maximum number of the longest
// generations.
TEST_F(DaemonPurgeTest, AGenerationIsBoundedSoThatBansStayReadable) {
  Start();
  PurgeOrder order = Of(Kind::kGeneration, "first");
  order.generation = std::string(900'000, 'g');
  const auto refused = daemon_->Purge(order);
  EXPECT_EQ(refused.status(), absl::InvalidArgumentError(
                                  "generation: has 900000 bytes; accepted: "
                                  "a text of at most 1024 bytes"));
  order.generation = std::string(1024, 'g');
  EXPECT_TRUE(daemon_->Purge(order).ok());
  EXPECT_LT(
      cache::store::Bans::kMostGenerations * settings::kMaxGenerationBytes,
      size_t{64} << 20)
      << "what the directory reads";
}

TEST_F(DaemonPurgeTest, AGenerationThatNobodyHadIsToldApart) {
  Start();
  Ask("a");
  AwaitDisk("a");
  PurgeOrder order = Of(Kind::kGeneration, "first");
  order.generation = "r1-with-a-typo";
  auto purged = daemon_->Purge(order);
  ASSERT_TRUE(purged.ok()) << purged.status();
  EXPECT_TRUE(purged->unknown_generation);
  EXPECT_EQ(purged->removed, 0u);
  EXPECT_EQ(purged->covered, 1u);
  EXPECT_TRUE(Hits("a"));
  purged = daemon_->Purge(Of(Kind::kGeneration, "first"));
  ASSERT_TRUE(purged.ok()) << purged.status();
  EXPECT_FALSE(purged->unknown_generation);
  EXPECT_FALSE(daemon_->Purge(Of(Kind::kAll))->unknown_generation);
}

// Every reason for which a call would not be answered from an entry.
TEST_F(DaemonPurgeTest, ALookUpTellsWhetherAnEntryWouldBeServed) {
  const auto expect = [this](const LookUpOrder& order, bool served,
                             const std::string& why) {
    const auto reports = LookUp(order);
    EXPECT_FALSE(reports.empty()) << why;
    for (const EntryReport& report : reports) {
      EXPECT_EQ(report.served, served) << why;
      EXPECT_EQ(report.served_why, why);
    }
  };
  Start();
  Ask("a");
  AwaitDisk("a");
  expect(About("a"), true, "");
  LookUpOrder by_key;
  by_key.key = *daemon_->KeyOf(About("a"));
  auto options = Options();
  options.functions[0].policy.mode = cache::Mode::kOff;
  Start(options);
  expect(About("a"), false, "mode is off");
  options.functions[0].policy.mode = cache::Mode::kShadow;
  Start(options);
  expect(About("a"), false, "mode is shadow, so the function is always asked");
  options = Options();
  options.functions[0].generation = "r2";
  Start(options);
  expect(by_key, false, "the function is of another generation now");
  options = Options();
  options.functions[0].name = "another";
  Start(options);
  expect(by_key, false, "its function is not in the settings");
  // Past its time there is stale serving, or none.
  options = Options();
  options.functions[0].policy.stale_while_revalidate = absl::Hours(1);
  Start(options);
  PurgeOrder soft = Of(Kind::kFunction, "first");
  soft.soft = true;
  ASSERT_TRUE(daemon_->Purge(soft).ok());
  expect(About("a"), true, "stale, while a refresh calls the function");
  options = Options();
  options.functions[0].policy.stale_if_error = absl::Hours(1);
  Start(options);
  expect(About("a"), false, "past its time; only where the function fails");
  Start();
  expect(About("a"), false, "past its time");
  ASSERT_TRUE(daemon_->Purge(Of(Kind::kFunction, "first")).ok());
  expect(About("a"), false, "it is purged");
}

TEST_F(DaemonPurgeTest, SoftIsRefusedWhereNothingStaleIsServed) {
  Start();
  Ask("a");
  for (PurgeOrder order : {OfKey("a"), Of(Kind::kFunction, "second"),
                           Of(Kind::kGeneration, "first"), Of(Kind::kAll)}) {
    order.soft = true;
    const auto purged = daemon_->Purge(order);
    EXPECT_TRUE(absl::IsFailedPrecondition(purged.status()));
    EXPECT_THAT(std::string(purged.status().message()),
                HasSubstr("stale_while_revalidate and stale_if_error"));
  }
  EXPECT_TRUE(Hits("a"));
}

TEST_F(DaemonPurgeTest, ALookUpTellsWhatTheTiersHave) {
  Start();
  EXPECT_TRUE(LookUp(About("a")).empty());
  Ask("a");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Hits("a"));
  AwaitDisk("a");
  const auto reports = LookUp(About("a"));
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].tier, cache::Tier::kMemory);
  EXPECT_EQ(reports[1].tier, cache::Tier::kDisk);
  for (const EntryReport& report : reports) {
    EXPECT_EQ(report.key, *daemon_->KeyOf(About("a")));
    EXPECT_EQ(report.function, "first");
    EXPECT_EQ(report.generation, "r1");
    EXPECT_GT(report.age, absl::ZeroDuration());
    EXPECT_LT(report.age, absl::Minutes(5));
    // Served for nine tenths of its lifetime.
    EXPECT_LE(report.remaining, absl::Minutes(54));
    EXPECT_GT(report.remaining, absl::Minutes(49));
    EXPECT_EQ(report.ttl, absl::Hours(1));
    EXPECT_EQ(report.lifetime, absl::Hours(1));
    ASSERT_TRUE(report.told_ttl.has_value());
    EXPECT_LT(*report.told_ttl, absl::Hours(1));
    EXPECT_GT(report.size, 10u);
    EXPECT_FALSE(report.secrets);
    EXPECT_FALSE(report.ban.has_value());
  }
  EXPECT_EQ(reports[0].hits, 3) << "it counts no further";
  EXPECT_EQ(reports[1].hits, 0);
  // By its key alone.
  LookUpOrder order;
  order.key = *daemon_->KeyOf(About("a"));
  EXPECT_EQ(LookUp(order).size(), 2u);
  EXPECT_EQ(LookUp(order)[0].generation, "r1");
  // The two versions of the protocol have keys of their own.
  order = About("a");
  order.method = Method::kV1beta1;
  EXPECT_TRUE(LookUp(order).empty());
  // After a restart it is on disk alone, however often it is looked at.
  Start();
  for (int i = 0; i < 3; ++i) {
    const auto below = LookUp(About("a"));
    ASSERT_EQ(below.size(), 1u);
    EXPECT_EQ(below[0].tier, cache::Tier::kDisk);
  }
}

TEST_F(DaemonPurgeTest, AnEntryOfAnotherBuildIsToldByItsKey) {
  Start();
  Ask("a");
  AwaitDisk("a");
  LookUpOrder order;
  order.key = *daemon_->KeyOf(About("a"));
  auto options = Options();
  options.functions[0].generation = "r2";
  Start(options);
  EXPECT_TRUE(LookUp(About("a")).empty());
  ASSERT_EQ(LookUp(order).size(), 1u);
  EXPECT_EQ(LookUp(order)[0].generation, "r1");
  EXPECT_FALSE(LookUp(order)[0].ban.has_value());
  // It is purged while it is not in use, and is when it is again.
  PurgeOrder purge = Of(Kind::kGeneration, "first");
  ASSERT_TRUE(daemon_->Purge(purge).ok());
  ASSERT_TRUE(LookUp(order)[0].ban.has_value());
  EXPECT_EQ(LookUp(order)[0].ban->kind, Kind::kGeneration);
  Start();
  EXPECT_FALSE(Hits("a"));
}

TEST_F(DaemonPurgeTest, MetricsCountPurgesAndBans) {
  Start();
  Ask("a");
  AwaitDisk("a");
  ASSERT_TRUE(daemon_->Purge(OfKey("a")).ok());
  ASSERT_TRUE(daemon_->Purge(Of(Kind::kFunction, "first")).ok());
  ASSERT_TRUE(daemon_->Purge(Of(Kind::kFunction, "first")).ok());
  ASSERT_TRUE(daemon_->Purge(Of(Kind::kGeneration, "second")).ok());
  const std::string text = Metrics();
  for (const char* const line :
       {"fncache_purges_total{scope=\"key\"} 1\n",
        "fncache_purges_total{scope=\"function\"} 2\n",
        "fncache_purges_total{scope=\"generation\"} 1\n",
        "fncache_purges_total{scope=\"all\"} 0\n",
        "fncache_bans{scope=\"function\"} 1\n",
        "fncache_bans{scope=\"generation\"} 1\n",
        "fncache_bans{scope=\"key\"} 0\n", "fncache_bans{scope=\"all\"} 0\n",
        "fncache_bans_saved 1\n",
        "fncache_evictions_total{function_name=\"first\",tier=\"memory\","
        "reason=\"purged\"} 1\n",
        "fncache_evictions_total{function_name=\"first\",tier=\"disk\","
        "reason=\"purged\"} 1\n",
        // A purged entry is neither expired nor evicted.
        "function_run_function_response_cache_deletes_total{function_name="
        "\"first\"} 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(DaemonPurgeTest, APurgeThatARestartWouldForgetSaysSo) {
  Start();
  Ask("a");
  AwaitDisk("a");
  const std::string in_the_way = *Options().cache_dir + "/bans.new/full";
  ASSERT_TRUE(std::filesystem::create_directories(in_the_way));
  const auto purged = daemon_->Purge(Of(Kind::kAll));
  EXPECT_TRUE(absl::IsUnavailable(purged.status()));
  EXPECT_THAT(std::string(purged.status().message()),
              HasSubstr("purged, but a restart would forget it"));
  EXPECT_FALSE(Hits("a")) << "it is in force";
  std::filesystem::remove_all(*Options().cache_dir + "/bans.new");
  EXPECT_TRUE(Eventually(
      [&] { return std::filesystem::exists(*Options().cache_dir + "/bans"); }));
}

// ------------------------------------------------------------------ kill -9

constexpr char kChildDir[] = "FNCACHE_TEST_PURGE_DIR";
constexpr char kChildUpstream[] = "FNCACHE_TEST_PURGE_UPSTREAM";
constexpr char kChildPipe[] = "FNCACHE_TEST_PURGE_PIPE";
constexpr char kChildOrder[] = "FNCACHE_TEST_PURGE_ORDER";

// A daemon that tells where it listens, makes the purge that it was started for
// as soon as it is asked to (by SIGUSR1), and says so. Then it is killed.
void Child() {
  sigset_t asked;
  sigemptyset(&asked);
  sigaddset(&asked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &asked, nullptr);
  settings::DaemonOptions options;
  settings::FunctionOptions function;
  function.generation = "r1";
  function.listen = "127.0.0.1:0";
  function.upstream = getenv(kChildUpstream);
  options.functions.push_back(function);
  options.admin = "";
  options.cache_memory = 16 << 20;
  options.cache_dir = getenv(kChildDir);
  options.cache_disk = 64 << 20;
  auto daemon = StartDaemon(options, {});
  if (!daemon.ok()) _exit(3);
  const int pipe = atoi(getenv(kChildPipe));
  const auto tell = [pipe](const std::string& line) {
    const std::string whole = line + "\n";
    if (write(pipe, whole.data(), whole.size()) !=
        static_cast<ssize_t>(whole.size())) {
      _exit(4);
    }
  };
  tell((*daemon)->addresses()[0]);
  int signal = 0;
  sigwait(&asked, &signal);
  PurgeOrder order;
  int what = 0;
  if (!absl::SimpleAtoi(getenv(kChildOrder), &what)) _exit(5);
  order.what = static_cast<Kind>(what);
  order.generation = "r1";
  if (order.what == Kind::kFunction) order.function = "function";
  if (order.what == Kind::kKey) {
    LookUpOrder about;
    about.request = Request("a", "t");
    order.key = *(*daemon)->KeyOf(about);
  }
  if (!(*daemon)->Purge(order).ok()) _exit(6);
  tell("purged");
  pause();
}

class ChildDaemon {
 public:
  ChildDaemon(const std::string& dir, const std::string& upstream, Kind order) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const std::string pipe_text = std::to_string(ends[1]);
    const std::string order_text = std::to_string(static_cast<int>(order));
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      setenv(kChildDir, dir.c_str(), 1);
      setenv(kChildUpstream, upstream.c_str(), 1);
      setenv(kChildPipe, pipe_text.c_str(), 1);
      setenv(kChildOrder, order_text.c_str(), 1);
      execl("/proc/self/exe", "proxy_test", "--gtest_filter=PurgeKillTest.*",
            nullptr);
      _exit(2);
    }
    close(ends[1]);
    from_ = fdopen(ends[0], "r");
    address_ = Line();
  }
  ~ChildDaemon() {
    Kill();
    fclose(from_);
  }
  const std::string& address() const { return address_; }
  // Returns as soon as the purge is answered.
  void Purge() {
    kill(pid_, SIGUSR1);
    EXPECT_EQ(Line(), "purged");
  }
  void Kill() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    pid_ = -1;
  }

 private:
  // Past what gtest prints, which goes elsewhere.
  std::string Line() {
    char line[256];
    if (fgets(line, sizeof(line), from_) == nullptr) return "";
    std::string text = line;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  pid_t pid_ = -1;
  FILE* from_ = nullptr;
  std::string address_;
};

TEST(PurgeKillTest, AnAnsweredPurgeSurvivesKillNine) {
  if (getenv(kChildDir) != nullptr) Child();
  for (const Kind kind :
       {Kind::kAll, Kind::kFunction, Kind::kGeneration, Kind::kKey}) {
    SCOPED_TRACE(static_cast<int>(kind));
    CountingFunction function;
    const ::fncache::testing::TempDir directory;
    const std::string dir = directory.path() + "/cache";
    std::string before;
    {
      // Stored entries, on disk too, before the process that purges.
      ChildDaemon daemon(dir, function.target(), kind);
      before = Ask(daemon.address(), "a").text;
      Ask(daemon.address(), "b");
      absl::SleepFor(absl::Seconds(1));  // the time after which it survives
    }
    {
      ChildDaemon daemon(dir, function.target(), kind);
      const Answer hit = Ask(daemon.address(), "a");
      EXPECT_EQ(hit.text, before);
      EXPECT_TRUE(absl::StartsWith(hit.cache_status, "fncache; hit"));
      daemon.Purge();
      daemon.Kill();
    }
    std::string after;
    {
      ChildDaemon daemon(dir, function.target(), kind);
      const Answer miss = Ask(daemon.address(), "a");
      EXPECT_NE(miss.text, before) << "it was purged";
      EXPECT_FALSE(absl::StartsWith(miss.cache_status, "fncache; hit"));
      after = miss.text;
      EXPECT_EQ(absl::StartsWith(Ask(daemon.address(), "b").cache_status,
                                 "fncache; hit"),
                kind == Kind::kKey);
      absl::SleepFor(absl::Seconds(1));
    }
    ChildDaemon daemon(dir, function.target(), kind);
    EXPECT_EQ(Ask(daemon.address(), "a").text, after)
        << "and what came after the purge was not";
  }
}

}  // namespace
}  // namespace fncache::proxy
