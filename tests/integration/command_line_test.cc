// SPDX-License-Identifier: Apache-2.0
// The command line as a contract (DESIGN), of the real binary: exit codes, one
// line of reason for a start that does not fit, help, precedence, --check.

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proxy/admin/command.h"
#include "proxy/settings/settings.h"
#include "tests/common/loopback_socket.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

using Arguments = std::vector<std::string>;

struct Ended {
  int code;
  std::string out;
  std::string err;
};

Ended Fncache(Arguments arguments,
              const Process::Environment& environment = {}) {
  Process process(std::move(arguments), environment);
  Ended ended;
  ended.code = process.Wait();
  ended.out = process.Stdout();
  ended.err = process.Stderr();
  return ended;
}

// `fncache serve` on a laptop, with more.
Arguments Serve(const Arguments& more) {
  Arguments all = {"serve", "--insecure", "--upstream", "127.0.0.1:1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Arguments Check(const Arguments& more) {
  Arguments all = Serve(more);
  all.push_back("--check");
  return all;
}

// Ended with `code` and exactly one line that holds all of `parts`.
void ExpectOneLine(const Ended& ended, int code,
                   const std::vector<std::string>& parts) {
  EXPECT_EQ(ended.code, code) << ended.err;
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(ended.err, MatchesRegex("fncache[^\n]*: [^\n]+\n"));
  for (const std::string& part : parts) {
    EXPECT_THAT(ended.err, HasSubstr(part));
  }
}

class CommandLineTest : public ::testing::Test {
 protected:
  std::string File(const std::string& content) {
    const std::string path = dir_.path() + "/f.yaml";
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  TempDir dir_;
};

// A key as a file writes it, on the line `line`.
std::string InFile(const std::string& key, const std::string& value) {
  const size_t dot = key.find('.');
  if (dot == std::string::npos) return absl::StrCat(key, ": ", value, "\n");
  return absl::StrCat(key.substr(0, dot), ":\n  ", key.substr(dot + 1), ": ",
                      value, "\n");
}

TEST_F(CommandLineTest, BadValuesNameKeyPlaceAndRangeWhereverTheyStand) {
  const std::string kLongPath(108, 'p');
  const std::string kLongGeneration(1025, 'g');
  const struct {
    const char* key;
    const char* bad;
    const char* accepted;
  } kCases[] = {
      {"listen", "localhost", "HOST:PORT"},
      {"function", "", "not empty"},
      {"upstream", "https://function:443", "dns:///HOST:PORT"},
      {"generation", "a\tb", "a text"},
      {"generation", kLongGeneration.c_str(), "at most 1024 bytes"},
      {"insecure", "maybe", "true or false"},
      {"cache.memory", "1", "from 1KiB up"},
      {"cache.disk", "plenty", "from 1MiB up"},
      {"admin", "127.0.0.1:99999", "0 to 65535"},
      {"admin_socket", kLongPath.c_str(), "at most 107 bytes"},
      {"drain", "-1s", "from 0 up"},
      {"drain_delay", "5", "such as 90s"},
      {"log.level", "loud", "debug, info, warn or error"},
      {"log.format", "xml", "text or json"},
      {"mode", "rehearse", "on, off or shadow"},
      {"ttl.max", "1d", "such as 90s"},
      {"ttl.override", "0s", "above 0"},
      {"ttl.default", "soon", "from 0 up"},
      {"ttl.min", "-1ns", "from 0 up"},
      {"ttl.jitter", "1", "below 1"},
      {"ttl.margin", "nan", "from 0 to below 1"},
      {"requeue_ttl", "never", "remaining, original"},
      {"store_fatal", "1", "true or false"},
      {"store_secrets", "disk", "memory, all or none"},
      {"max_released", "0", "from 1 up"},
      {"max_entry_bytes", "3GiB", "from 1 to 2GiB"},
      {"key", "Tag", "content or tag"},
      {"key_hash", "md5", "xxh3 or sha256"},
      {"mask", "observed.composite", "observed.composite.resource"},
      {"bypass_metadata", "a b", "letters, digits"},
      {"operations", "run", "bypass or cache"},
  };
  for (const auto& test : kCases) {
    const Setting& setting = *proxy::settings::ServeSettings().Find(test.key);
    const bool list = setting.kind == Setting::Kind::kList;
    const std::string flag = FlagName(test.key);
    const std::string quoted =
        absl::StrCat(list ? "[" : "", YamlScalar(test.bad), list ? "]" : "");

    ExpectOneLine(Fncache({"serve", absl::StrCat(flag, "=", test.bad)}), 2,
                  {absl::StrCat("serve: ", flag, ": "), test.accepted});
    const std::string variable = EnvironmentName(test.key);
    ExpectOneLine(Fncache({"serve"}, {{variable, list ? quoted : test.bad}}), 2,
                  {absl::StrCat("serve: ", variable, ": "), test.accepted});
    const std::string file = File("\n# c\n" + InFile(test.key, quoted));
    const int line = setting.key.find('.') == std::string::npos ? 3 : 4;
    ExpectOneLine(
        Fncache({"serve", "--config", file}), 2,
        {absl::StrCat(file, ":", line, ": ", test.key, ": "), test.accepted});
  }
}

TEST_F(CommandLineTest, BadEntriesNameTheEntryAndItsLine) {
  const auto with = [this](const std::string& entry) {
    return Fncache(
        {"serve", "--insecure", "--config",
         File("functions:\n- {name: a, listen: 'h:1', upstream: 'x:1'}\n" +
              entry)});
  };
  ExpectOneLine(with("- name: b\n  listen: h:2\n  upstream: 'y:1'\n"
                     "  ttl:\n    max: 1d\n"),
                2, {"f.yaml:7: functions[1].ttl.max: ", "such as 90s"});
  ExpectOneLine(with("- {name: b, listen: 'h:2'}\n"), 2,
                {"f.yaml:3: functions[1].upstream: ", "missing"});
  ExpectOneLine(with("- {name: a, listen: 'h:2', upstream: 'y:1'}\n"), 2,
                {"f.yaml:3: functions[1].name: ", "f.yaml:2"});
  ExpectOneLine(with("- {name: b, listen: 'h:1', upstream: 'y:1'}\n"), 2,
                {"f.yaml:3: functions[1].listen: "});
  ExpectOneLine(with("- {name: b, listen: 'h:2', upstream: 'x:1'}\n"), 2,
                {"f.yaml:3: functions[1].upstream: "});
  ExpectOneLine(with("- {name: b, drain: 1s}\n"), 2,
                {"f.yaml:3: functions[1].drain: ", "unknown key"});
}

TEST_F(CommandLineTest, UpstreamsThatGrpcWouldMisreadAreRefused) {
  for (const char* target :
       {"https://h:443", "grpc://h:443", "h", "dns:///h", "unix:"}) {
    const std::string shown = absl::StrCat("\"", target, "\"");
    ExpectOneLine(
        Fncache({"serve", "--insecure", "--check", "--upstream", target}), 2,
        {absl::StrCat("serve: --upstream: ", shown),
         "HOST:PORT, dns:///HOST:PORT"});
    ExpectOneLine(
        Fncache({"serve", "--insecure", "--config",
                 File(absl::StrCat("functions:\n- name: a\n  listen: h:1\n",
                                   "  upstream: '", target, "'\n"))}),
        2,
        {absl::StrCat("f.yaml:4: functions[0].upstream: ", shown),
         "unix:PATH"});
  }
}

TEST_F(CommandLineTest, WhoeverGivesNothingIsToldOfEverythingThatIsNeeded) {
  ExpectOneLine(Fncache({"serve"}), 2,
                {"upstream and tls_dir: are needed", "--upstream TARGET",
                 "HOST:PORT", "--tls-dir DIR", "--insecure"});
}

TEST_F(CommandLineTest, AMistypedFlagGetsTheNearestOne) {
  ExpectOneLine(Fncache({"serve", "--upstrem", "h:1"}), 2,
                {"unknown flag --upstrem; did you mean --upstream?"});
  ExpectOneLine(Fncache({"serve", "--chekc"}), 2, {"did you mean --check?"});
  ExpectOneLine(Fncache({"serve", "--ttlmax=1h"}), 2,
                {"unknown flag --ttlmax; did you mean --ttl-max?"});
  ExpectOneLine(Fncache({"function", "--insecuer"}), 2,
                {"did you mean --insecure?"});
  ExpectOneLine(Fncache({"demo", "--hlep"}), 2, {"did you mean --help?"});
  const Ended render = Fncache({"render", "--tarce"});
  EXPECT_EQ(render.code, 80);
  EXPECT_THAT(render.err, HasSubstr("did you mean --trace?"));
  const Ended internal = Fncache({"internal", "render", "--timeuot=1s"});
  EXPECT_EQ(internal.code, 80);
  EXPECT_THAT(internal.err, HasSubstr("did you mean --timeout"));
}

TEST_F(CommandLineTest, AListenerThatCannotBindSaysWhy) {
  const LoopbackSocket taken;
  taken.Listen(1);
  const Arguments all_taken[] = {
      {"serve", "--insecure", "--upstream=h:1",
       "--admin=", "--listen=" + taken.target()},
      {"serve", "--insecure", "--upstream=h:1", "--listen=127.0.0.1:0",
       "--admin=" + taken.target()},
      {"function", "--insecure", "--listen=" + taken.target()}};
  for (const Arguments& arguments : all_taken) {
    ExpectOneLine(Fncache(arguments), 1,
                  {"cannot listen on " + taken.target(), "in use"});
  }
  ExpectOneLine(Fncache({"serve", "--insecure", "--upstream=h:1",
                         "--admin=", "--listen=192.0.2.1:9443"}),
                1, {"192.0.2.1:9443: this machine does not have the address"});
  ExpectOneLine(Fncache({"serve", "--insecure", "--upstream=h:1",
                         "--admin=", "--listen=nowhere.invalid:9443"}),
                1, {"nowhere.invalid:9443: its host has no address"});
  const std::string file = File("precious");
  ExpectOneLine(Fncache({"serve", "--insecure", "--upstream=h:1",
                         "--admin=", "--listen=unix:" + file}),
                1,
                {"cannot listen on unix:" + file +
                 ": a file is there that is no socket"});
}

TEST_F(CommandLineTest, WhatIsNotASettingIsRefusedByName) {
  ExpectOneLine(Fncache(Serve({"--cache-size", "1"})), 2, {"--cache-size"});
  ExpectOneLine(Fncache(Serve({"--abandoned=1s"})), 2, {"--abandoned"});
  ExpectOneLine(Fncache(Serve({"stray"})), 2, {"stray"});
  ExpectOneLine(Fncache(Serve({"--drain"})), 2, {"--drain"});
  ExpectOneLine(Fncache(Serve({"--drain", "1s", "--drain=2s"})), 2,
                {"--drain: ", "twice"});
  ExpectOneLine(Fncache(Serve({"--config", "a", "--config", "b"})), 2,
                {"--config", "twice"});
  for (const char* key :
       {"keys: tag", "key.hash: sha256", "abandoned: 1s", "redis: {}",
        "ttl.max: 1h", "cache.dir: /x", "name: a"}) {
    ExpectOneLine(Fncache({"serve", "--config", File(std::string("\n") + key)}),
                  2, {"f.yaml:2: ", "unknown key"});
  }
  ExpectOneLine(
      Fncache({"serve", "--config", File("cache:\n  dir: /x\n  redis: y\n")}),
      2, {"f.yaml:3: cache.redis: unknown key", "dir, memory, disk"});
}

TEST_F(CommandLineTest, WhateverStandsThereTheReasonIsOneLine) {
  ExpectOneLine(Fncache(Serve({"--a\nb"})), 2, {});
  ExpectOneLine(Fncache(Serve({"a\nb\xff\x1b[31m"})), 2, {});
  ExpectOneLine(Fncache(Serve({"--function", "a\nb"})), 2, {"--function"});
  ExpectOneLine(Fncache(Serve({"--mask", "context.\"\n\""})), 2, {"--mask"});
  ExpectOneLine(Fncache(Serve({}), {{"FNCACHE_DRAIN", "1\n2\n3"}}), 2,
                {"FNCACHE_DRAIN"});
  ExpectOneLine(Fncache(Serve({}), {{"FNCACHE_MASK", "[a,\n- b"}}), 2,
                {"FNCACHE_MASK", "[a, b]"});
  ExpectOneLine(Fncache({"serve", "--config", File("\"a\\nb\": c\n")}), 2,
                {"f.yaml:1: "});
  ExpectOneLine(Fncache({"serve", "--config", File("drain: |\n  1\n  2\n")}), 2,
                {"f.yaml:1: drain: "});
  ExpectOneLine(Fncache({"serve", "--config", File("a: [[[[[")}), 2,
                {"f.yaml:1: ", "] is missing"});
  ExpectOneLine(Fncache({"serve", "--config", File("a: 1\na: 2")}), 2,
                {"f.yaml:2: "});
  ExpectOneLine(Fncache({"serve", "--config", File("a: \xff")}), 2, {"UTF-8"});
}

TEST_F(CommandLineTest, AFileThatCannotBeReadIsExitCodeOne) {
  const std::string gone = dir_.path() + "/gone.yaml";
  ExpectOneLine(Fncache(Serve({"--config", gone})), 1, {gone, "No such file"});
  ExpectOneLine(Fncache(Serve({}), {{"FNCACHE_CONFIG", gone}}), 1,
                {gone, "FNCACHE_CONFIG"});
  ExpectOneLine(Fncache(Serve({"--config", dir_.path()})), 1,
                {dir_.path(), "not a regular file"});
  ExpectOneLine(
      Fncache({"serve", "--upstream", "x:1", "--tls-dir", dir_.path()}), 1,
      {"tls_dir", dir_.path()});
  // The flag beats the variable.
  EXPECT_EQ(Fncache(Check({"--config", File("drain: 1s\n")}),
                    {{"FNCACHE_CONFIG", gone}})
                .code,
            0);
}

TEST_F(CommandLineTest, MasksWithKeyTagAreRefusedNamingBoth) {
  const std::string mask = "observed.composite.resource.status";
  ExpectOneLine(Fncache(Serve({"--key", "tag", "--mask", mask})), 2,
                {"--mask: ", "key: tag (--key)"});
  ExpectOneLine(Fncache(Serve({"--mask", mask}), {{"FNCACHE_KEY", "tag"}}), 2,
                {"--mask: ", "key: tag (FNCACHE_KEY)"});
  ExpectOneLine(Fncache(Serve({"--config", File("key: tag\n")}),
                        {{"FNCACHE_MASK", "[" + mask + "]"}}),
                2, {"FNCACHE_MASK: ", "key: tag (", "f.yaml:1)"});
  // A pure proxy's, too: the setting is wrong whenever it is used.
  ExpectOneLine(
      Fncache(Serve({"--mode", "off", "--key", "tag", "--mask", mask})), 2,
      {"mask", "key: tag"});

  // Checks every entry, however defaults and entries are combined.
  const auto with = [&](const std::string& top, const std::string& entry) {
    return Fncache(
        {"serve", "--check", "--insecure", "--config",
         File(top +
              "functions:\n- {name: a, listen: 'h:0', upstream: 'x:1'}\n" +
              "- {name: b, listen: 'h:0', upstream: 'y:1'" + entry + "}\n")});
  };
  const std::string key = "key: tag\n";
  const std::string masks = "mask: [" + mask + "]\n";
  ExpectOneLine(with("", ", key: tag, mask: [" + mask + "]"), 2,
                {"f.yaml:3: functions[1].mask: ", "functions[1].key: tag ",
                 "f.yaml:3)", "\"b\""});
  ExpectOneLine(with(key, ", mask: [" + mask + "]"), 2,
                {"f.yaml:4: functions[1].mask: ", "key: tag (", "f.yaml:1)"});
  ExpectOneLine(with(masks, ", key: tag"), 2,
                {"f.yaml:1: mask: ", "functions[1].key: tag ", "f.yaml:4)"});
  ExpectOneLine(with(key + masks, ""), 2,
                {"f.yaml:2: mask: ", "key: tag (", "f.yaml:1)"});
  // Each function has one of the two only.
  EXPECT_EQ(with("", ", key: tag").code, 0);
  EXPECT_EQ(with(key, ", key: content, mask: [" + mask + "]").code, 0);
  EXPECT_EQ(with(key, ", mask: []").code, 0);
}

TEST_F(CommandLineTest, KeyTagInPlaintextWarns) {
  const Ended ended = Fncache(Check({"--key", "tag", "--key-hash=sha256"}));
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("warning"), HasSubstr("key: tag")));
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("\nkey: tag  # --key\n"),
                    HasSubstr("\nkey_hash: sha256  # --key-hash\n")));
  EXPECT_EQ(Fncache(Check({})).err, "");
}

TEST_F(CommandLineTest, PlaintextIsAskedForByName) {
  ExpectOneLine(Fncache({"serve", "--upstream", "x:1"}), 2,
                {"tls_dir", "--tls-dir", "--insecure"});
  ExpectOneLine(Fncache(Serve({"--tls-dir", dir_.path()})), 2,
                {"insecure", "tls_dir"});
  ExpectOneLine(Fncache({"serve", "--insecure"}), 2,
                {"upstream", "--upstream"});
  const Ended beaten =
      Fncache(Check({}), {{"TLS_SERVER_CERTS_DIR", dir_.path() + "/gone"}});
  EXPECT_EQ(beaten.code, 0) << beaten.err;
  const Ended used = Fncache({"serve", "--upstream", "x:1"},
                             {{"TLS_SERVER_CERTS_DIR", dir_.path() + "/gone"}});
  ExpectOneLine(used, 1, {dir_.path() + "/gone"});
}

TEST_F(CommandLineTest, ATierThatOutlivesTheProcessNeedsAGeneration) {
  const std::string cache = dir_.path() + "/cache";
  ExpectOneLine(Fncache(Serve({"--cache-dir", cache})), 2,
                {"generation", "--generation", "$REVISION_NAME", "none"});
  EXPECT_EQ(
      Fncache(Check({"--cache-dir", cache}), {{"REVISION_NAME", "r"}}).code, 0);
  EXPECT_EQ(Fncache(Check({"--cache-dir", cache, "--generation", "none"})).code,
            0);
}

TEST_F(CommandLineTest, VariablesThatNearlyAreASettingAreWarnedOf) {
  const Ended ended = Fncache(Check({}), {{"FNCACHE_KEYS", "tag"},
                                          {"FNCACHE_TTLMAX", "1h"},
                                          {"FNCACHE_CONFG", "f.yaml"}});
  EXPECT_EQ(ended.code, 0);
  for (const char* line :
       {"FNCACHE_KEYS is no setting and has no effect; did you mean "
        "FNCACHE_KEY?",
        "did you mean FNCACHE_TTL_MAX?", "did you mean FNCACHE_CONFIG?"}) {
    EXPECT_THAT(ended.err, HasSubstr(line));
  }
}

// It may be the reason why the start is refused.
TEST_F(CommandLineTest, ARefusedStartNamesThemToo) {
  const Ended ended =
      Fncache({"serve", "--insecure"}, {{"FNCACHE_UPSTREM", "127.0.0.1:9"}});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("upstream: is needed"));
  EXPECT_THAT(ended.err, HasSubstr("did you mean FNCACHE_UPSTREAM?"));
}

// Kubernetes makes such of every Service whose name begins with `fncache`.
TEST_F(CommandLineTest, OtherUnknownVariablesAreIgnored) {
  const Ended ended =
      Fncache(Check({}), {{"FNCACHE_PORT", "tcp://10.0.0.1:9443"},
                          {"FNCACHE_SERVICE_HOST", "10.0.0.1"},
                          {"FNCACHE_PORT_9443_TCP_PROTO", "tcp"},
                          {"FNCACHE_LISTEN_PORT", "tcp://10.0.0.1:9443"},
                          {"FNCACHE_KEY_SERVICE_PORT_A", "1"},
                          {"FNCACHE_", "x"},
                          {"FNCACHE_COLOUR", "blue"}});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
}

std::string WithoutComments(const std::string& yaml) {
  std::string out;
  for (const absl::string_view line : absl::StrSplit(yaml, '\n')) {
    const absl::string_view kept = line.substr(0, line.find("  # "));
    if (kept.empty() || absl::StrContains(kept, "unset")) continue;
    absl::StrAppend(&out, kept, "\n");
  }
  return out;
}

TEST_F(CommandLineTest, CheckPrintsWhatReadsBack) {
  const struct {
    Arguments flags;
    Process::Environment environment;
    std::string file;
  } kCases[] = {
      {{"--insecure", "--upstream", "x:1"}, {}, ""},
      {{"--insecure", "--upstream", "unix:/a b", "--admin=", "--ttl-min", "5s",
        "--mask", "observed.composite.resource.status.\"a.b\"", "--mode=off",
        "--generation", "g: \"1\" # 2"},
       {{"FNCACHE_BYPASS_METADATA", "[x-debug, \"trace\"]"},
        {"FUNCTION_NAME", "caf\xc3\xa9"}},
       "requeue_ttl: 90s\ncache: {memory: 64MB}\n"},
      {{"--insecure", "--ttl-margin", "0.2"},
       {{"REVISION_NAME", "r1"}},
       "cache: {dir: /c}\nfunctions:\n"
       "- {name: a, listen: '[::]:0', upstream: 'x:1', ttl: {margin: 0.3}}\n"
       "- {name: b, listen: 'h:0', upstream: 'y:1', mask: "
       "[observed.resources.*."
       "resource.status]}\n"},
  };
  for (const auto& test : kCases) {
    Arguments arguments = {"serve", "--check", "--config", File(test.file)};
    arguments.insert(arguments.end(), test.flags.begin(), test.flags.end());
    const Ended first = Fncache(arguments, test.environment);
    ASSERT_EQ(first.code, 0) << first.err;
    EXPECT_EQ(first.err, "");
    const Ended second =
        Fncache({"serve", "--check", "--config", File(first.out)});
    ASSERT_EQ(second.code, 0) << second.err << first.out;
    EXPECT_EQ(WithoutComments(second.out), WithoutComments(first.out));
    EXPECT_THAT(WithoutComments(first.out), HasSubstr("insecure: true\n"));
  }
}

TEST_F(CommandLineTest, CheckWarnsOnStderrAndSaysTheSettingsOnStdout) {
  const Ended ended = Fncache(Check({"--mask", "context.\"example.org/now\""}));
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("warning"), HasSubstr("context")));
  EXPECT_THAT(ended.out, HasSubstr("upstream: 127.0.0.1:1  # --upstream\n"));
}

// Each layer says another value; layers are taken away from the strongest on.
TEST_F(CommandLineTest, EntryThenFlagThenVariableThenFileThenDefault) {
  const std::string top = "insecure: true\nttl: {max: 2h}\n";
  const std::string entry =
      "functions:\n- {name: a, listen: 'h:0', upstream: 'x:1', ttl: {max: "
      "5h}}\n";
  const Process::Environment environment = {{"FNCACHE_TTL_MAX", "3h"}};
  const auto effective = [this](const std::string& file, Arguments flags,
                                const Process::Environment& variables) {
    Arguments arguments = {"serve", "--check", "--config", File(file)};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Ended ended = Fncache(arguments, variables);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.out;
  };
  EXPECT_THAT(effective(top + entry, {"--ttl-max=4h"}, environment),
              AllOf(HasSubstr("max: 5h  # "), Not(HasSubstr("max: 4h"))));
  const Arguments upstream = {"--upstream", "x:1"};
  EXPECT_THAT(
      effective(top, {"--upstream", "x:1", "--ttl-max=4h"}, environment),
      HasSubstr("max: 4h  # --ttl-max\n"));
  EXPECT_THAT(effective(top, upstream, environment),
              HasSubstr("max: 3h  # FNCACHE_TTL_MAX\n"));
  EXPECT_THAT(effective(top, upstream, {}),
              AllOf(HasSubstr("max: 2h  # "), HasSubstr("f.yaml:2\n")));
  EXPECT_THAT(effective("insecure: true\n", upstream, {}),
              HasSubstr("max: 24h  # default\n"));
  // A default for all, another of one.
  const std::string two =
      effective(top + entry + "- {name: b, listen: 'h:0', upstream: 'y:1'}\n",
                {"--ttl-max=4h"}, environment);
  EXPECT_THAT(two, AllOf(HasSubstr("max: 5h"), HasSubstr("max: 4h")));
}

TEST_F(CommandLineTest, CrossplanesVariablesAreDefaultsOnly) {
  const Process::Environment crossplane = {{"FUNCTION_NAME", "f-env"},
                                           {"REVISION_NAME", "r-env"}};
  EXPECT_THAT(Fncache(Check({}), crossplane).out,
              AllOf(HasSubstr("function: f-env  # $FUNCTION_NAME\n"),
                    HasSubstr("generation: r-env  # $REVISION_NAME\n")));
  EXPECT_THAT(
      Fncache(Check({"--config", File("function: f\ngeneration: r\n")}),
              crossplane)
          .out,
      AllOf(HasSubstr("function: f  # "), HasSubstr("generation: r  # ")));
}

TEST_F(CommandLineTest, SizesOfKubernetesAndAddressesOfGoAreTaken) {
  const Ended checked =
      Fncache(Check({"--listen", ":9443", "--cache-memory", "256Mi"}));
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_THAT(checked.out, AllOf(HasSubstr("memory: 256Mi  # "),
                                 HasSubstr("listen: \":9443\"  # ")));
  // It reads back.
  EXPECT_EQ(Fncache({"serve", "--check", "--config", File(checked.out)}).code,
            0);
  Process function({"function", "--insecure", "--listen", ":0"});
  ASSERT_TRUE(function.WaitForStderr("listening on 0.0.0.0:"));
  Process daemon({"serve", "--insecure", "--listen", ":0", "--admin", ":0",
                  "--upstream", "127.0.0.1:1"});
  ASSERT_TRUE(daemon.WaitForStderr("listening on 0.0.0.0:", 2));
}

TEST_F(CommandLineTest, HelpGoesToStdoutInEightyColumns) {
  for (const Arguments& arguments :
       {Arguments{"--help"},
        Arguments{"-h"},
        Arguments{"help"},
        Arguments{"serve", "--help"},
        Arguments{"serve", "-h"},
        Arguments{"serve", "--insecure", "--help"},
        Arguments{"function", "--help"},
        Arguments{"demo", "--help"},
        Arguments{"load", "--help"},
        Arguments{"explain", "--help"},
        Arguments{"probe", "--help"},
        Arguments{"advise", "--help"},
        Arguments{"replay", "--help"},
        Arguments{"sdk", "--help"},
        Arguments{"sdk", "generate", "--help"},
        Arguments{"sdk", "init", "--help"},
        Arguments{"health", "--help"},
        Arguments{"admin", "--help"},
        Arguments{"admin", "stats", "--help"},
        Arguments{"admin", "lookup", "--help"},
        Arguments{"admin", "purge", "--help"},
        Arguments{"admin", "explain", "--help"},
        Arguments{"admin", "config", "--help"},
        Arguments{"admin", "reload", "--help"},
        Arguments{"admin", "trace", "--help"},
        Arguments{"admin", "trace", "start", "--help"},
        Arguments{"admin", "trace", "stop", "--help"},
        Arguments{"admin", "log", "--help"},
        Arguments{"admin", "shadow", "--help"},
        Arguments{"admin", "tune", "--help"}}) {
    const Ended ended = Fncache(arguments);
    EXPECT_EQ(ended.code, 0);
    EXPECT_EQ(ended.err, "");
    EXPECT_THAT(ended.out, HasSubstr("Usage: fncache"));
    for (const absl::string_view line : absl::StrSplit(ended.out, '\n')) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
}

// The lines of a text, without the end of the last one.
std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
}

TEST_F(CommandLineTest, EveryHelpHasOneStyle) {
  std::vector<Arguments> commands = {{"load", "report"},
                                     {"internal", "render"}};
  for (const std::string& line : Lines(Fncache({"--help"}).out)) {
    if (!absl::StartsWith(line, "  ")) continue;
    commands.push_back({line.substr(2, line.find(' ', 2) - 2)});
  }
  EXPECT_GT(commands.size(), 12u);
  for (const std::string& word : proxy::admin::AdminWords()) {
    commands.push_back({"admin", word});
  }
  commands.push_back({"sdk", "generate"});
  commands.push_back({"sdk", "init"});
  commands.push_back({"admin", "trace", "start"});
  commands.push_back({"admin", "trace", "stop"});
  for (Arguments arguments : commands) {
    const std::string name = absl::StrJoin(arguments, " ");
    SCOPED_TRACE(name);
    // `fncache help admin stats` is `fncache admin stats --help`.
    Arguments help = arguments;
    help.insert(help.begin(), "help");
    arguments.push_back("--help");
    const Ended ended = Fncache(arguments);
    EXPECT_EQ(Fncache(help).out, ended.out);
    EXPECT_EQ(ended.code, 0);
    EXPECT_EQ(ended.err, "");
    const std::string& text = ended.out;
    // A sentence of what it is for, the usage, and its flags.
    const size_t usage = text.find("\n\nUsage: fncache ");
    ASSERT_NE(usage, std::string::npos);
    EXPECT_TRUE(absl::ascii_isupper(text.front()));
    EXPECT_EQ(text[usage - 1], '.');
    EXPECT_THAT(text, HasSubstr("\n  -h, --help"));
    // Nothing that only the parser's author understands.
    for (const char* const odd :
         {"OPTIONS", "Options:", "TEXT REQUIRED", "(1x)", " in [", ":INT",
          ":POSITIVE", "SUBCOMMAND]\n", " ...\n", "-h,--help", "\n\n\n",
          " \n"}) {
      EXPECT_THAT(text, Not(HasSubstr(odd)));
    }
    EXPECT_EQ(text.find("Print this"), text.rfind("Print this"));
    if (arguments[0] != "admin" || arguments.size() == 2) {
      EXPECT_THAT(text, HasSubstr("\nExit codes: 0"));
    }
    for (const std::string& line : Lines(text)) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
}

TEST_F(CommandLineTest, HelpOfServeBeginsWithTheSettingsThatMatter) {
  const std::string help = Fncache({"serve", "--help"}).out;
  const size_t first = help.find("The settings that matter first:\n");
  ASSERT_NE(first, std::string::npos);
  EXPECT_LT(first, help.find("Examples:"));
  const std::string rows =
      help.substr(first, help.find("\n\n", first) + 1 - first);
  std::vector<std::string> flags;
  for (const std::string& line : Lines(rows)) {
    const size_t dashes = line.find("--");
    if (dashes != 6) continue;
    flags.push_back(line.substr(dashes, line.find(' ', dashes) - dashes));
  }
  EXPECT_THAT(flags, ElementsAre("--upstream", "--listen", "--tls-dir",
                                 "--cache-dir", "--mask", "--ttl-min"));
}

TEST_F(CommandLineTest, HelpOfACommandBelowAnother) {
  EXPECT_THAT(Fncache({"help", "admin", "stats"}).out,
              HasSubstr("\nUsage: fncache admin stats [flags]\n"));
  ExpectOneLine(Fncache({"help", "admin", "stat"}), 2,
                {"unknown command \"stat\" of admin; did you mean stats?",
                 "accepted: stats, lookup, "});
  ExpectOneLine(Fncache({"help", "serve", "stats"}), 2,
                {"unknown command \"stats\" of serve; accepted: none"});
  ExpectOneLine(Fncache({"help", "--man", "admin", "stats"}), 2, {"--man: "});
}

TEST_F(CommandLineTest, EveryCommandHasHelpAndIsListed) {
  const std::string all = Fncache({"--help"}).out;
  for (const char* command :
       {"serve", "function", "demo", "load", "explain", "probe", "advise",
        "replay", "admin", "health", "sdk"}) {
    EXPECT_THAT(all, HasSubstr(absl::StrCat("\n  ", command, " ")));
    const Ended ended = Fncache({command, "--help"});
    EXPECT_EQ(ended.code, 0) << command;
    EXPECT_EQ(ended.err, "");
    EXPECT_THAT(ended.out, HasSubstr(absl::StrCat("fncache ", command)));
  }
}

TEST_F(CommandLineTest, HelpOfServeMentionsEverySetting) {
  const std::string help = Fncache({"serve", "--help"}).out;
  for (const Setting& setting : proxy::settings::ServeSettings().settings()) {
    EXPECT_THAT(help,
                HasSubstr(absl::StrCat("  ", FlagName(setting.key), " ")));
    EXPECT_THAT(help, HasSubstr(EnvironmentName(setting.key)));
  }
  EXPECT_THAT(help, HasSubstr("  --config FILE"));
  EXPECT_THAT(help, HasSubstr("  --check\n"));
}

TEST_F(CommandLineTest, TheBinaryItself) {
  const Ended nothing = Fncache({});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_EQ(nothing.out, "");
  EXPECT_THAT(nothing.err, HasSubstr("Usage: fncache COMMAND"));
  ExpectOneLine(Fncache({"sevre"}), 2,
                {"sevre", "did you mean serve?", "function"});
  ExpectOneLine(Fncache({"a\nb"}), 2, {});
  ExpectOneLine(Fncache({""}), 2, {});
  const Ended version = Fncache({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out,
              MatchesRegex("fncache [0-9]+\\.[0-9]+\\.[0-9]+( \\(commit "
                           "[0-9a-f]+(-modified)?\\))?\n"));
  EXPECT_EQ(version.err, "");
  EXPECT_EQ(Fncache({"version"}).out, version.out);
  EXPECT_EQ(Fncache({"help", "serve"}).out, Fncache({"serve", "--help"}).out);
  ExpectOneLine(Fncache({"help", "sevre"}), 2, {"did you mean serve?"});
  ExpectOneLine(Fncache({"version", "--hepl"}), 2, {"did you mean --help?"});
}

}  // namespace
}  // namespace fncache::testing
