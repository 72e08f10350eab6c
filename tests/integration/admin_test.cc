// SPDX-License-Identifier: Apache-2.0
// `fncache admin` and `fncache health` against a daemon, as operators run them.
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/version.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/function_v1.grpc.pb.h"
#include "tests/common/eventually.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"
#include "tests/integration/terminal.h"

namespace fncache::testing {
namespace {

using apiextensions::fn::proto::v1::FunctionRunnerService;
using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using Texts = std::vector<std::string>;

struct Ended {
  int code = -1;
  std::string out;
  std::string err;
};

Ended Fncache(const Texts& arguments,
              const Process::Environment& environment = {}) {
  Process process(arguments, environment);
  Ended ended;
  ended.code = process.Wait();
  ended.out = process.Stdout();
  ended.err = process.Stderr();
  return ended;
}

class AdminTest : public ::testing::Test {
 protected:
  AdminTest()
      : function_({"function", "--listen", "127.0.0.1:0", "--insecure", "--ttl",
                   "1h"}) {
    EXPECT_TRUE(function_.WaitForStderr("listening on "));
  }

  std::unique_ptr<Process> StartDaemon(
      Texts more = {}, const Process::Environment& environment = {}) {
    Texts arguments = {
        "serve",      "--insecure",  "--listen",   "127.0.0.1:0",
        "--admin",    "127.0.0.1:0", "--upstream", function_.Listening().at(0),
        "--function", "buckets"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto daemon = std::make_unique<Process>(arguments, environment);
    EXPECT_TRUE(daemon->WaitForStderr("listening on ", 2));
    address_ = daemon->Listening().at(0);
    admin_ = daemon->Listening().at(1);
    return daemon;
  }
  std::unique_ptr<Process> StartDaemonOnSocket() {
    auto daemon = StartDaemon({"--admin-socket", socket_});
    EXPECT_TRUE(daemon->WaitForStderr("serving fncache admin on " + socket_));
    return daemon;
  }
  Ended Admin(Texts arguments) {
    arguments.insert(arguments.begin(), {"admin", "--socket", socket_});
    return Fncache(arguments);
  }

  void Call(const std::string& composite, const std::string& version) {
    RunFunctionRequest request;
    const auto status = google::protobuf::util::JsonStringToMessage(
        absl::StrCat(
            R"({"meta": {"tag": "t"}, "observed": {"composite": {"resource": {
                "apiVersion": "example.org/v1", "kind": "XApp", "metadata": {
                "name": ")",
            composite, R"(", "namespace": "team", "resourceVersion": ")",
            version, R"("}, "spec": {"password": "hidden-value"}}}}})"),
        &request);
    ASSERT_TRUE(status.ok()) << status.ToString();
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    const auto stub = FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
        address_, grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    RunFunctionResponse response;
    const grpc::Status called = stub->RunFunction(&context, request, &response);
    ASSERT_TRUE(called.ok()) << called.error_message();
  }

  TempDir dir_;
  const std::string socket_ = dir_.File("admin.sock");
  Process function_;
  std::string address_;
  std::string admin_;
};

TEST_F(AdminTest, StatsTellWhatWasCounted) {
  const auto daemon = StartDaemonOnSocket();
  Call("a", "1");
  Call("a", "1");
  Call("a", "2");
  const Ended text = Admin({"stats"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, StartsWith("fncache "));
  EXPECT_THAT(text.out, HasSubstr("\nbuckets "));
  EXPECT_THAT(text.out, HasSubstr("33.3%"));
  EXPECT_THAT(text.out, Not(HasSubstr("\033")));
  const Ended numbers = Admin({"stats", "--json"});
  EXPECT_EQ(numbers.code, 0) << numbers.err;
  const json said = json::parse(numbers.out);
  EXPECT_EQ(said["state"], "ready");
  EXPECT_GT(said["process"]["resident_bytes"], 1 << 20);
  const json& function = said["functions"][0];
  EXPECT_EQ(function["name"], "buckets");
  EXPECT_EQ(function["upstream"], function_.Listening().at(0));
  const json& counts = function["since_start"];
  EXPECT_EQ(counts["calls_by_outcome"]["hit"], 1);
  EXPECT_EQ(counts["calls_by_outcome"]["miss"], 2);
  EXPECT_EQ(counts["misses_by_reason"]["new"], 1);
  EXPECT_EQ(counts["misses_by_reason"]["changed"], 1);
  EXPECT_EQ(counts["upstream_calls_by_code"]["OK"], 2);
  EXPECT_EQ(counts["fills"], 2);
  EXPECT_EQ(counts["latency_by_outcome"]["hit"]["count"], 1);
  EXPECT_GT(counts["latency_by_outcome"]["hit"]["p50_seconds"], 0);
  EXPECT_EQ(counts["upstream_latency"]["count"], 2);
  EXPECT_EQ(said["tiers"][0]["tier"], "memory");
  EXPECT_EQ(said["tiers"][0]["entries"], 2);
  EXPECT_GT(said["inflight_bytes"]["limit"], 0);
  // The same numbers as the page's.
  const json page = json::parse(HttpGet(admin_, "/statusz?format=json"));
  const json& shown = page["functions"][0]["since_start"];
  for (const char* const what :
       {"calls_by_outcome", "errors_served_over_by_code"}) {
    EXPECT_EQ(counts[what], shown[what]);
  }
  // In the same words.
  for (const auto& [name, value] : counts.items()) {
    EXPECT_TRUE(shown.contains(name)) << name;
  }
}

TEST_F(AdminTest, ExplainTellsTheLastMissesAndTheMask) {
  const auto daemon = StartDaemonOnSocket();
  Call("a", "1");
  Call("a", "2");
  Call("b", "1");
  const Ended text = Admin({"explain", "--last", "2"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, StartsWith("buckets: 3 misses since the start\n"));
  EXPECT_THAT(text.out, HasSubstr("not asked"));
  EXPECT_THAT(text.out, Not(HasSubstr("@versions")));
  EXPECT_THAT(text.out, HasSubstr("XApp team/b"));
  EXPECT_THAT(text.out, Not(HasSubstr("hidden-value")));
  const json said = json::parse(Admin({"explain", "--json"}).out);
  ASSERT_EQ(said["last"].size(), 3u);
  EXPECT_EQ(said["last"][0]["composite"], "XApp team/b");
  EXPECT_EQ(said["last"][0]["reason"], "new");
  const json& changed = said["last"][1];
  EXPECT_EQ(changed["reason"], "changed");
  EXPECT_EQ(changed["detail"],
            "observed.composite.resource.metadata.resourceVersion");
  EXPECT_EQ(changed["mask"],
            "observed.composite.resource.metadata.resourceVersion");
  EXPECT_EQ(changed["key"].get<std::string>().size(), 32u);
  EXPECT_EQ(json::parse(Admin({"explain", "--json", "--last=0"}).out)["last"],
            json::array());
  const Ended none = Admin({"explain", "--function", "none"});
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.err,
            absl::StrCat("fncache admin explain: ", socket_,
                         ": no function is called \"none\"; there are: "
                         "buckets\n"));
  const Ended lengthy =
      Admin({"explain", "--function", std::string(20'000, 'n')});
  EXPECT_EQ(lengthy.code, 1);
  EXPECT_LT(lengthy.err.size(), 400u);
}

TEST_F(AdminTest, ConfigReadsBack) {
  const auto daemon = StartDaemonOnSocket();
  const Ended config = Admin({"config"});
  EXPECT_EQ(config.code, 0) << config.err;
  EXPECT_THAT(config.out, HasSubstr("function: buckets  # --function\n"));
  EXPECT_THAT(config.out, HasSubstr(absl::StrCat("admin_socket: ", socket_,
                                                 "  # --admin-socket\n")));
  const std::string file = dir_.File("f.yaml");
  WriteFile(file, config.out);
  EXPECT_EQ(Fncache({"serve", "--check", "--config", file}).code, 0);
}

TEST_F(AdminTest, WatchPrintsOneLookAfterTheOther) {
  const auto daemon = StartDaemonOnSocket();
  Process watch(
      {"admin", "--socket", socket_, "stats", "--watch=100ms", "--json"});
  ASSERT_TRUE(watch.WaitForStdout("{", 1));
  Call("a", "1");
  int looks = 0;
  const auto calls = [&] {
    uint64_t sum = 0;
    looks = 0;
    for (const absl::string_view line :
         absl::StrSplit(watch.Stdout(), '\n', absl::SkipEmpty())) {
      const json look = json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (look.is_discarded()) break;  // not whole yet, or cut off by the kill
      sum += look["functions"][0]["interval"]["calls"].get<uint64_t>();
      ++looks;
    }
    return sum;
  };
  ASSERT_TRUE(Eventually([&] { return calls() > 0; }));
  ASSERT_TRUE(watch.WaitForStdout("{", looks + 2));
  watch.Signal(SIGKILL);
  watch.Wait();
  EXPECT_EQ(calls(), 1u) << "each call is told in one interval";

  Process plain({"admin", "--socket", socket_, "stats", "--watch", "100ms"});
  ASSERT_TRUE(plain.WaitForStdout("fncache ", 3));
  EXPECT_THAT(plain.Stdout(), Not(HasSubstr("\033")));
  // The daemon ends, and so does a command that cannot wait for it.
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0);
  EXPECT_EQ(plain.Wait(), 1);
  EXPECT_THAT(plain.Stderr(),
              MatchesRegex("fncache admin stats: [^\n]*admin.sock: [^\n]*\n"));
}

// `fncache admin stats --watch` on a terminal.
class WatchTest : public AdminTest {
 protected:
  std::unique_ptr<Process> Watch(const std::string& term = "xterm") {
    return std::make_unique<Process>(
        Texts{"-c",
              "exec \"$0\" admin --socket \"$1\" stats --watch 100ms "
              "<\"$2\" >\"$2\"",
              FNCACHE_BINARY, socket_, terminal_.name()},
        Process::Environment{{"TERM", term}, {"NO_COLOR", ""}}, "/bin/sh");
  }
  // Reads what came.
  const Seen& Look() {
    const std::string came = terminal_.Read();
    raw_ += came;
    seen_.Take(came);
    return seen_;
  }
  bool Shows(const std::string& text) {
    return Eventually([&] {
      for (const std::string& line : Look().lines()) {
        if (absl::StrContains(line, text)) return true;
      }
      return false;
    });
  }

  Terminal terminal_;
  Seen seen_{80, 24};
  std::string raw_;
};

TEST_F(WatchTest, IsALiveTableThatLeavesTheTerminalAsItWas) {
  const auto daemon = StartDaemonOnSocket();
  terminal_.Resize(80, 24);
  const termios before = terminal_.settings();
  const auto watch = Watch();
  EXPECT_TRUE(Shows("buckets "));
  EXPECT_TRUE(Look().alternate());
  EXPECT_FALSE(Look().cursor());
  EXPECT_EQ(terminal_.settings().c_lflag & (ICANON | ECHO), 0u);
  Call("a", "1");
  EXPECT_TRUE(Shows("in all         0          0       1"));
  // Only the table is there, nothing is left of pictures before.
  const Texts lines = Look().lines();
  EXPECT_THAT(lines[0], StartsWith("fncache "));
  EXPECT_THAT(lines[23], IsEmpty());
  EXPECT_EQ(Look().scrolled(), 0);
  // Pictures are drawn over each other: the screen is cleared once.
  const size_t cleared = raw_.find("\033[2J");
  EXPECT_NE(cleared, std::string::npos);
  EXPECT_EQ(raw_.find("\033[2J", cleared + 1), std::string::npos);
  terminal_.Type("q");
  EXPECT_EQ(watch->Wait(), 0);
  EXPECT_EQ(watch->Stderr(), "");
  EXPECT_FALSE(Look().alternate());
  EXPECT_TRUE(Look().cursor());
  EXPECT_EQ(terminal_.settings().c_lflag, before.c_lflag);
}

TEST_F(WatchTest, SignalsEndItWithTheTerminalAsItWas) {
  const auto daemon = StartDaemonOnSocket();
  terminal_.Resize(80, 24);
  const termios before = terminal_.settings();
  for (const auto& [signal, code] : std::vector<std::pair<int, int>>{
           {SIGINT, 0}, {SIGTERM, 128 + SIGTERM}}) {
    const auto watch = Watch();
    ASSERT_TRUE(Eventually([this] { return Look().alternate(); }));
    ASSERT_TRUE(Shows("buckets "));
    watch->Signal(signal);
    EXPECT_EQ(watch->Wait(), code);
    EXPECT_FALSE(Look().alternate());
    EXPECT_TRUE(Look().cursor());
    EXPECT_EQ(terminal_.settings().c_lflag, before.c_lflag);
  }
}

TEST_F(WatchTest, LeavesAtOnceWhileTheDaemonHangs) {
  const auto daemon = StartDaemonOnSocket();
  terminal_.Resize(80, 24);
  for (const bool key : {true, false}) {
    const auto watch = Watch();
    // The table before it may still be on the screen, so it alone says nothing.
    ASSERT_TRUE(Eventually([this] { return Look().alternate(); }));
    ASSERT_TRUE(Shows("buckets "));
    daemon->Signal(SIGSTOP);
    // A table that does not come any more: there is a look under way.
    ASSERT_TRUE(Eventually([this] {
      const size_t before = raw_.size();
      absl::SleepFor(absl::Milliseconds(300));
      Look();
      return raw_.size() == before;
    }));
    const absl::Time start = absl::Now();
    if (key) {
      terminal_.Type("q");
    } else {
      watch->Signal(SIGINT);
    }
    EXPECT_EQ(watch->Wait(), 0);
    EXPECT_LT(absl::Now() - start, kPatience / 2);
    EXPECT_FALSE(Look().alternate());
    daemon->Signal(SIGCONT);
  }
}

TEST_F(WatchTest, FollowsTheTerminalsSize) {
  const auto daemon = StartDaemonOnSocket();
  terminal_.Resize(80, 24);
  const auto watch = Watch();
  ASSERT_TRUE(Shows("fills "));
  Look();
  seen_ = Seen(40, 8);
  terminal_.Resize(40, 8);
  watch->Signal(SIGWINCH);
  // The first new picture discards output that was still made for the old size.
  ASSERT_TRUE(Eventually([&] {
    const std::string came = terminal_.Read();
    const size_t home = came.rfind("\033[H");
    if (home == std::string::npos) return false;
    Seen picture(40, 8);
    for (absl::string_view line : absl::StrSplit(came.substr(home), "\r\n")) {
      if (line.size() > 60) return false;
    }
    picture.Take(came.substr(home));
    return absl::StartsWith(picture.lines()[0], "fncache ") &&
           picture.scrolled() == 0;
  }));
  watch->Signal(SIGINT);
  EXPECT_EQ(watch->Wait(), 0);
}

TEST_F(WatchTest, WaitsForADaemonThatComesBack) {
  auto daemon = StartDaemonOnSocket();
  terminal_.Resize(80, 24);
  const auto watch = Watch();
  ASSERT_TRUE(Shows("buckets "));
  daemon->Signal(SIGKILL);
  daemon->Wait();
  EXPECT_TRUE(Shows("retrying"));
  daemon = StartDaemonOnSocket();
  EXPECT_TRUE(Eventually(
      [this] { return absl::StartsWith(Look().lines()[0], "fncache "); }));
  terminal_.Type("q");
  EXPECT_EQ(watch->Wait(), 0);
}

TEST_F(WatchTest, ADumbTerminalGetsPlainText) {
  const auto daemon = StartDaemonOnSocket();
  terminal_.Resize(80, 24);
  const auto watch = Watch("dumb");
  std::string text;
  EXPECT_TRUE(Eventually([&] {
    text += terminal_.Read();
    return absl::StrContains(text, "fills ");
  }));
  EXPECT_THAT(text, Not(HasSubstr("\033")));
}

TEST_F(AdminTest, TheSocketIsBesideTheDiskTier) {
  const std::string cache = dir_.File("cache");
  const Texts more = {"--cache-dir", cache, "--generation", "g"};
  auto daemon = StartDaemon(more);
  ASSERT_TRUE(daemon->WaitForStderr("serving fncache admin on " + cache +
                                    "/admin.sock"));
  struct stat file = {};
  ASSERT_EQ(stat((cache + "/admin.sock").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode, static_cast<mode_t>(S_IFSOCK | 0600));
  EXPECT_EQ(Fncache({"admin", "--cache-dir", cache, "stats"}).code, 0);
  EXPECT_EQ(Fncache({"admin", "stats"}, {{"FNCACHE_CACHE_DIR", cache}}).code,
            0);
  // A command that names a directory means its daemon, and no other one.
  const Ended other =
      Fncache({"admin", "--cache-dir", dir_.File("other"), "purge", "--all"},
              {{"FNCACHE_ADMIN_SOCKET", cache + "/admin.sock"},
               {"FNCACHE_CACHE_DIR", cache}});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr(dir_.File("other/admin.sock") +
                                   ": No such file or directory"));
  EXPECT_THAT(Fncache({"admin", "--cache-dir", cache, "purge", "--all"}).out,
              HasSubstr(", on " + cache + "/admin.sock; "));
  EXPECT_EQ(Fncache({"admin", "stats", "--socket", cache + "/admin.sock"}).code,
            0);
  EXPECT_EQ(Fncache({"admin", "stats"},
                    {{"FNCACHE_ADMIN_SOCKET", cache + "/admin.sock"}})
                .code,
            0);
  // One that is killed leaves its socket, which the next one takes over.
  daemon->Signal(SIGKILL);
  daemon->Wait();
  EXPECT_EQ(Fncache({"admin", "--cache-dir", cache, "stats"}).code, 1);
  daemon = StartDaemon(more);
  EXPECT_EQ(Fncache({"admin", "--cache-dir", cache, "stats"}).code, 0);
  // A successor waits for the directory's lock, and has the socket then.
  Process next({"serve", "--insecure", "--listen", "127.0.0.1:0",
                "--admin=", "--upstream", "127.0.0.1:1", "--cache-dir", cache,
                "--generation", "g"});
  ASSERT_TRUE(next.WaitForStderr("waiting for another process"));
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0);
  EXPECT_TRUE(next.WaitForStderr("serving fncache admin on "));
  EXPECT_EQ(Fncache({"admin", "--cache-dir", cache, "stats"}).code, 0);
  next.Signal(SIGTERM);
  EXPECT_EQ(next.Wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(cache + "/admin.sock"));
}

TEST_F(AdminTest, TheSocketIsInTheRuntimeDirectoryElse) {
  const Process::Environment runtime = {{"XDG_RUNTIME_DIR", dir_.path()}};
  const auto daemon = StartDaemon({}, runtime);
  ASSERT_TRUE(daemon->WaitForStderr("serving fncache admin on " +
                                    dir_.File("fncache/admin.sock")));
  EXPECT_EQ(Fncache({"admin", "stats"}, runtime).code, 0);
  const auto second = StartDaemon({}, runtime);
  EXPECT_TRUE(second->WaitForStderr("no admin socket: "));
  EXPECT_THAT(second->Stderr(), HasSubstr("another process serves it"));
  const auto none = StartDaemon({"--admin-socket="}, runtime);
  EXPECT_THAT(none->Stderr(), Not(HasSubstr("fncache admin")));
}

// As on a machine, or in a shell, without $XDG_RUNTIME_DIR.
TEST_F(AdminTest, TheSocketIsInTheUsersFolderAtLast) {
  if (std::filesystem::exists("/run/fncache")) {
    GTEST_SKIP() << "/run/fncache is there, and goes before the user's";
  }
  const Process::Environment nothing = {{"XDG_RUNTIME_DIR", ""}};
  const std::string folder = absl::StrCat("/tmp/fncache-", geteuid());
  const auto daemon = StartDaemon({}, nothing);
  if (absl::StrContains(daemon->Stderr(), "another process serves it")) {
    GTEST_SKIP() << "another daemon of this user has " << folder;
  }
  ASSERT_TRUE(daemon->WaitForStderr(
      absl::StrCat("serving fncache admin on ", folder, "/admin.sock")));
  const Ended stats = Fncache({"admin", "stats"}, nothing);
  EXPECT_EQ(stats.code, 0) << stats.err;
  EXPECT_THAT(stats.out, HasSubstr("buckets"));
  struct stat made = {};
  ASSERT_EQ(lstat(folder.c_str(), &made), 0);
  EXPECT_TRUE(S_ISDIR(made.st_mode));
  EXPECT_EQ(made.st_mode & 07777, 0700u);
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder + "/admin.sock"));
  // Here, because no other test of a run starts a daemon in that folder.
  const Ended nowhere =
      Fncache({"admin", "stats"}, {{"XDG_RUNTIME_DIR", dir_.path()}});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err,
              HasSubstr(absl::StrCat("no admin socket at ",
                                     dir_.File("fncache/admin.sock"))));
  // Nothing is left here, unless another daemon began to use it.
  rmdir(folder.c_str());
}

TEST_F(AdminTest, TheLogBeginsWithTheVersion) {
  // Warnings come later: this variable has a typing error.
  const auto daemon = StartDaemon({}, {{"FNCACHE_TTL_MIM", "1h"}});
  const std::string said = daemon->Stderr();
  EXPECT_THAT(said.substr(0, said.find('\n')),
              MatchesRegex(absl::StrCat(
                  "[^ ]+ info starting fncache version=", Version(),
                  "( commit=[0-9a-f]+(-modified)?)?")));
  // The same as `fncache version` says.
  const std::string version = Fncache({"version"}).out;
  const size_t commit = version.find("(commit ");
  if (commit != std::string::npos) {
    EXPECT_THAT(said, HasSubstr(absl::StrCat("commit=",
                                             version.substr(commit + 8, 12))));
  }
  EXPECT_THAT(said, HasSubstr("FNCACHE_TTL_MIM"));
  EXPECT_THAT(Fncache({"serve", "--insecure", "--upstream", "127.0.0.1:1",
                       "--listen", "127.0.0.1:0", "--admin=", "--check"})
                  .err,
              Not(HasSubstr("starting")));
}

TEST_F(AdminTest, AGivenSocketThatIsServedEndsTheStart) {
  const auto daemon = StartDaemonOnSocket();
  const Ended second = Fncache({"serve", "--insecure", "--listen",
                                "127.0.0.1:0", "--admin=", "--upstream",
                                "127.0.0.1:1", "--admin-socket", socket_});
  EXPECT_EQ(second.code, 1);
  EXPECT_EQ(second.err, absl::StrCat("fncache serve: admin_socket: ", socket_,
                                     ": another process serves it\n"));
  EXPECT_EQ(Admin({"stats"}).code, 0);
}

TEST_F(AdminTest, WrongUsageIsToldBeforeADaemonIsAskedFor) {
  const std::vector<std::pair<Texts, std::string>> kCases = {
      {{}, "a command is missing; accepted: stats, lookup, purge"},
      {{"stat"}, "did you mean stats?"},
      {{"stats", "--watch=1ms"}, "--watch: \"1ms\" is not accepted"},
      {{"stats", "--wathc"}, "did you mean --watch?"},
      {{"lookup"}, "one of --key and --request is needed"},
      {{"lookup", "--key", "abc"}, "accepted: 32 hex digits"},
      {{"lookup", "--key", std::string(32, 'a'), "--request", "/dev/null"},
       "one of --key and --request"},
      {{"purge"}, "one of --key, --function and --all is needed"},
      {{"purge", "--all", "--function", "a"}, "--all goes with --soft only"},
      {{"purge", "--generation", "g"}, "--generation needs --function"},
      {{"purge", "--key", std::string(32, 'a'), "--generation", "g"},
       "--key does not go with --generation"},
      {{"explain", "--last=-1"}, "a whole number from 0 up"},
      {{"trace"}, "accepted: start, stop"},
      {{"trace", "start", "--level", "all"}, "accepted: keys, paths, full"},
      {{"trace", "start", "--for", "soon"}, "such as 10m"},
      {{"log"}, "accepted: debug, info, warn, error"},
      {{"log", "loud"}, "accepted: debug, info, warn, error"},
      {{"log", "debug", "--for=-1s"}, "such as 10m"},
      {{"shadow", "extra"}, "unexpected argument extra"},
      {{"tune", "extra"}, "unexpected argument extra"},
  };
  for (const auto& [arguments, why] : kCases) {
    const Ended ended = Admin(arguments);
    EXPECT_EQ(ended.code, 2) << why;
    EXPECT_EQ(ended.out, "");
    EXPECT_THAT(ended.err, MatchesRegex("fncache admin[^\n]*: [^\n]+\n"));
    EXPECT_THAT(ended.err, HasSubstr(why));
    EXPECT_THAT(ended.err, HasSubstr(" --help\n"));
  }
}

// The command is carried out, but its answer is lost: no command is silent.
TEST_F(AdminTest, AClosedStandardOutputIsAFailure) {
  const auto daemon = StartDaemonOnSocket();
  for (const std::string arguments :
       {"stats", "stats --json", "stats --watch", "explain", "config",
        "purge --all", "trace stop", "log info", "shadow", "tune",
        "lookup --key 0123456789abcdef0123456789abcdef"}) {
    Process closed(
        {"-c",
         absl::StrCat("exec \"$0\" admin --socket \"$1\" ", arguments, " >&-"),
         FNCACHE_BINARY, socket_},
        {}, "/bin/sh");
    EXPECT_EQ(closed.Wait(), 1) << arguments;
    EXPECT_THAT(closed.Stderr(),
                AllOf(MatchesRegex("fncache admin [^\n]+\n"),
                      HasSubstr("standard output: it is closed\n")))
        << arguments;
  }
}

TEST_F(AdminTest, WithoutADaemonCommandsSaySoAndFail) {
  for (const Texts& arguments :
       {Texts{"stats"}, Texts{"stats", "--watch"}, Texts{"explain"},
        Texts{"config"}, Texts{"reload"}, Texts{"purge", "--all"},
        Texts{"trace", "stop"}, Texts{"log", "debug"}, Texts{"shadow"},
        Texts{"tune", "--json"},
        Texts{"lookup", "--key", std::string(32, 'a')}}) {
    const Ended ended = Admin(arguments);
    EXPECT_EQ(ended.code, 1);
    EXPECT_EQ(ended.out, "");
    EXPECT_THAT(ended.err,
                HasSubstr(absl::StrCat(socket_,
                                       ": No such file or directory; is the "
                                       "daemon running?")));
  }
  EXPECT_EQ(Admin({"lookup", "--request", dir_.File("none")}).code, 1);
}

TEST_F(AdminTest, AStopEndsWithAClientConnected) {
  const auto daemon = StartDaemonOnSocket();
  Process watch({"admin", "--socket", socket_, "stats", "--watch=1h"});
  ASSERT_TRUE(watch.WaitForStdout("fills ", 1));
  const absl::Time start = absl::Now();
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0);
  EXPECT_LT(absl::Now() - start, kPatience / 2);
  EXPECT_FALSE(std::filesystem::exists(socket_));
}

TEST_F(AdminTest, HealthAsksTheDaemon) {
  const auto daemon = StartDaemonOnSocket();
  EXPECT_EQ(Fncache({"health", "--admin", admin_}).code, 0);
  EXPECT_EQ(Fncache({"health", "--admin", admin_}).out, "ok\n");
  EXPECT_EQ(Fncache({"health", "--admin", admin_, "--ready"}).out, "ready\n");
  EXPECT_EQ(Fncache({"health"}, {{"FNCACHE_ADMIN", admin_}}).code, 0);
  const std::string port = admin_.substr(admin_.rfind(':'));
  EXPECT_EQ(Fncache({"health", "--admin", "0.0.0.0" + port}).code, 0);
  EXPECT_EQ(Fncache({"health", "--admin", port}).code, 0);
  const std::string file = dir_.File("f.yaml");
  WriteFile(file, absl::StrCat("admin: ", admin_, "\n"));
  EXPECT_EQ(Fncache({"health", "--config", file}).code, 0);
  EXPECT_EQ(Fncache({"health"}, {{"FNCACHE_CONFIG", file}}).code, 0);
  // A stopped daemon is not healthy.
  daemon->Signal(SIGSTOP);
  const Ended still =
      Fncache({"health", "--admin", admin_, "--timeout", "200ms"});
  EXPECT_EQ(still.code, 1);
  EXPECT_THAT(still.err, MatchesRegex("fncache health: [^\n]+\n"));
  daemon->Signal(SIGCONT);
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0);
  const Ended gone = Fncache({"health", "--admin", admin_});
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.err, AllOf(HasSubstr(admin_), MatchesRegex("[^\n]+\n")));
}

TEST_F(AdminTest, HealthSaysWhatItCannotAsk) {
  EXPECT_EQ(Fncache({"health"}, {{"FNCACHE_ADMIN", ""}}).code, 1);
  EXPECT_EQ(Fncache({"health", "--config", dir_.File("none")}).code, 1);
  EXPECT_EQ(Fncache({"health", "--admin", "localhost"}).code, 2);
  EXPECT_EQ(Fncache({"health", "--admin", "127.0.0.1:0"}).code, 2);
  EXPECT_EQ(Fncache({"health", "--timeout", "soon"}).code, 2);
  EXPECT_EQ(Fncache({"health", "--redy"}).code, 2);
  const std::string file = dir_.File("f.yaml");
  WriteFile(file, "admni: 127.0.0.1:1\n");
  EXPECT_EQ(Fncache({"health", "--config", file}).code, 2);
}

// A daemon that drains is alive, and no longer ready.
TEST_F(AdminTest, HealthTellsReadinessFromLife) {
  const auto daemon =
      StartDaemon({"--admin-socket", socket_, "--drain-delay", "1m"});
  daemon->Signal(SIGTERM);
  ASSERT_TRUE(daemon->WaitForStderr("draining"));
  EXPECT_EQ(Fncache({"health", "--admin", admin_}).code, 0);
  const Ended ready = Fncache({"health", "--ready", "--admin", admin_});
  EXPECT_EQ(ready.code, 1);
  EXPECT_THAT(ready.err, HasSubstr("/readyz: draining (503)"));
  EXPECT_EQ(json::parse(Admin({"stats", "--json"}).out)["state"], "draining");
}

// Connections on which nothing is said.
class ManyConnections {
 public:
  ManyConnections(const std::string& address, int count) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int port = 0;
    EXPECT_TRUE(
        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    to.sin_port = htons(static_cast<uint16_t>(port));
    for (int i = 0; i < count; ++i) {
      fds_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      EXPECT_EQ(connect(fds_.back(), reinterpret_cast<const sockaddr*>(&to),
                        sizeof to),
                0);
    }
  }
  ~ManyConnections() {
    for (const int fd : fds_) close(fd);
  }
  ManyConnections(const ManyConnections&) = delete;
  ManyConnections& operator=(const ManyConnections&) = delete;

 private:
  std::vector<int> fds_;
};

// Callers that have taken all files a daemon may have leave it some to be asked
// by.
TEST_F(AdminTest, HealthIsToldWhileCallersHaveTheOpenFiles) {
  Process daemon({"-c", "ulimit -n 100; exec \"$0\" \"$@\"", FNCACHE_BINARY,
                  "serve", "--insecure", "--listen", "127.0.0.1:0", "--admin",
                  "127.0.0.1:0", "--upstream", function_.Listening().at(0),
                  "--admin-socket", socket_, "--workers", "2"},
                 {}, "/bin/sh");
  ASSERT_TRUE(daemon.WaitForStderr("listening on ", 2));
  ASSERT_TRUE(daemon.WaitForStderr("serving fncache admin on "));
  const std::string admin = daemon.Listening().at(1);
  const auto ready = [&] {
    int status = 0;
    HttpGet(admin, "/readyz", &status);
    return status;
  };
  ASSERT_TRUE(Eventually([&] { return ready() == 200; }));
  {
    const ManyConnections callers(daemon.Listening().at(0), 300);
    ASSERT_TRUE(daemon.WaitForStderr("cannot accept connections"));
    EXPECT_TRUE(Eventually([&] { return ready() == 503; }));
    EXPECT_EQ(Fncache({"health", "--admin", admin}).out, "ok\n");
    EXPECT_EQ(Fncache({"health", "--ready", "--admin", admin}).code, 1);
    EXPECT_EQ(Admin({"stats"}).code, 0);
    EXPECT_GE(
        Sample(HttpGet(admin, "/metrics"),
               "fncache_accept_failures_total{function_name=\"function\"}"),
        1);
  }
  EXPECT_TRUE(Eventually([&] { return ready() == 200; }));
}

TEST_F(AdminTest, TheTcpPortStaysReadOnly) {
  const auto daemon = StartDaemonOnSocket();
  for (const char* page :
       {"/metrics", "/statusz", "/healthz", "/readyz", "/"}) {
    Process curl({"-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST",
                  absl::StrCat("http://", admin_, page)},
                 {}, "curl");
    EXPECT_EQ(curl.Wait(), 0);
    EXPECT_EQ(curl.Stdout(), "405") << page;
  }
}

}  // namespace
}  // namespace fncache::testing
