// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/settings.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proxy/settings/check.h"
#include "proxy/settings/flags.h"
#include "proxy/settings/help.h"
#include "tests/common/long_form.h"

namespace fncache::proxy::settings {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Map = std::map<std::string, std::string>;

struct Outcome {
  absl::Status status;
  ResolvedSettings resolved;
  ServeOptions options;
};

Outcome Given(std::vector<std::string> arguments, Map environment = {},
              const std::string& yaml = "") {
  Outcome outcome;
  const auto flags = ParseServeFlags(arguments);
  outcome.status = flags.status();
  if (!flags.ok()) return outcome;
  SettingsInput input;
  input.flags = flags->settings;
  input.environment =
      [environment](const std::string& name) -> absl::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return absl::nullopt;
    return found->second;
  };
  input.file_name = "f.yaml";
  const auto file = ParseYaml(yaml, "f.yaml");
  outcome.status = file.status();
  if (!file.ok()) return outcome;
  input.file = *file;
  auto resolved = ServeSettings().Resolve(input);
  outcome.status = resolved.status();
  if (!resolved.ok()) return outcome;
  outcome.resolved = *std::move(resolved);
  auto options = MakeServeOptions(&outcome.resolved);
  outcome.status = options.status();
  if (options.ok()) outcome.options = *std::move(options);
  return outcome;
}

void ExpectRefused(const Outcome& outcome, std::vector<std::string> parts) {
  ASSERT_FALSE(outcome.status.ok());
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(outcome.status.message(), Not(HasSubstr("\n")));
  for (const std::string& part : parts) {
    EXPECT_THAT(outcome.status.message(), HasSubstr(part));
  }
}

TEST(SettingsTest, NamesFollowFromTheKey) {
  std::set<std::string> flags, variables;
  for (const Setting& setting : ServeSettings().settings()) {
    std::string flag = "--", variable = "FNCACHE_";
    for (const char c : setting.key) {
      flag += c == '.' || c == '_' ? '-' : c;
      variable += c == '.' ? '_' : static_cast<char>(std::toupper(c));
    }
    EXPECT_EQ(FlagName(setting.key), flag);
    EXPECT_EQ(EnvironmentName(setting.key), variable);
    EXPECT_TRUE(flags.insert(flag).second) << flag;
    EXPECT_TRUE(variables.insert(variable).second) << variable;
    EXPECT_NE(setting.help, "");
    EXPECT_NE(setting.accepted, "");
  }
}

TEST(SettingsTest, EveryDefaultIsAccepted) {
  for (const Setting& setting : ServeSettings().settings()) {
    if (!setting.default_value.has_value() || setting.check == nullptr) {
      continue;
    }
    EXPECT_TRUE(setting.check({*setting.default_value}).ok()) << setting.key;
  }
}

TEST(SettingsTest, TableDefaultsAreTheOptionsDefaults) {
  const Outcome outcome = Given({"--insecure", "--upstream", "x:1"});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  const DaemonOptions plain;
  const DaemonOptions& made = outcome.options.daemon;
  EXPECT_EQ(made.cache_memory, plain.cache_memory);
  EXPECT_EQ(made.cache_disk, plain.cache_disk);
  EXPECT_EQ(made.drain, plain.drain);
  EXPECT_EQ(made.admin, plain.admin);
  EXPECT_FALSE(made.cache_dir.has_value());
  const cache::PolicyOptions policy;
  const cache::PolicyOptions& got = made.functions.at(0).policy;
  EXPECT_EQ(got.ttl_max, policy.ttl_max);
  EXPECT_EQ(got.ttl_margin, policy.ttl_margin);
  EXPECT_EQ(got.max_entry_bytes, policy.max_entry_bytes);
  EXPECT_EQ(got.max_released, policy.max_released);
  EXPECT_FALSE(got.ttl_override.has_value());
  EXPECT_EQ(made.functions[0].name, FunctionOptions().name);
  EXPECT_EQ(made.functions[0].key, FunctionOptions().key);
  EXPECT_EQ(made.functions[0].key_hash, FunctionOptions().key_hash);
  EXPECT_EQ(made.functions[0].listen, FunctionOptions().listen);
}

// The strongest of the given layers wins, in every combination.
TEST(SettingsTest, PrecedenceHoldsInRandomCombinations) {
  const int rounds = fncache::testing::ShortOrLong(
      fncache::testing::FewerSanitized(1600), 5000);
  std::mt19937 random(7);
  const char* const kKeys[] = {"ttl.max",         "ttl.margin", "store_fatal",
                               "max_entry_bytes", "mask",       "drain"};
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::string> flags = {"--insecure"};
    Map environment;
    std::map<std::string, std::string> top, entry;
    std::map<std::string, SettingSource> expected;
    std::map<std::string, std::string> text;
    for (const std::string key : kKeys) {
      const Setting& setting = *ServeSettings().Find(key);
      const bool list = setting.kind == Setting::Kind::kList;
      expected[key] = SettingSource::kDefault;
      // From the weakest to the strongest, each with its own value.
      for (int layer = 0; layer < 4; ++layer) {
        if (random() % 2 == 0) continue;
        std::string value = "0." + std::to_string(layer + 1);
        if (key == "ttl.max" || key == "drain") value += "s";
        if (key == "store_fatal") value = random() % 2 ? "true" : "false";
        if (key == "max_entry_bytes") value = std::to_string(layer + 1) + "MB";
        if (list) value = "context.k" + std::to_string(layer);
        const std::string in_yaml = list ? "[" + value + "]" : value;
        if (layer == 0) {
          top[key] = in_yaml;
          expected[key] = SettingSource::kFile;
        } else if (layer == 1) {
          environment[EnvironmentName(key)] = in_yaml;
          expected[key] = SettingSource::kEnvironment;
        } else if (layer == 2) {
          flags.push_back(FlagName(key) + "=" + value);
          expected[key] = SettingSource::kFlag;
        } else if (setting.scope == SettingScope::kBoth) {
          entry[key] = in_yaml;
          expected[key] = SettingSource::kEntry;
        } else {
          continue;
        }
        text[key] = value;
      }
    }
    const auto append = [](const std::map<std::string, std::string>& values,
                           const std::string& indent, std::string* yaml) {
      std::string nested;
      for (const auto& [key, value] : values) {
        if (key.rfind("ttl.", 0) == 0) {
          nested += indent + "  " + key.substr(4) + ": " + value + "\n";
        } else {
          *yaml += indent + key + ": " + value + "\n";
        }
      }
      if (!nested.empty()) *yaml += indent + "ttl:\n" + nested;
    };
    std::string yaml;
    append(top, "", &yaml);
    yaml += "functions:\n  - name: a\n    listen: a:1\n    upstream: 'u:1'\n";
    append(entry, "    ", &yaml);
    const Outcome outcome = Given(flags, environment, yaml);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status << "\n" << yaml;
    for (const std::string key : kKeys) {
      const bool daemon =
          ServeSettings().Find(key)->scope == SettingScope::kDaemon;
      const SettingValue& value = daemon ? outcome.resolved.top.at(key)
                                         : outcome.resolved.entries[0].at(key);
      ASSERT_EQ(value.source, expected[key]) << key << "\n" << yaml;
      if (value.source != SettingSource::kDefault) {
        ASSERT_EQ(value.text(), text[key]) << key << "\n" << yaml;
      }
    }
  }
}

TEST(SettingsTest, BadValuesNameKeyPlaceAndRange) {
  const std::vector<std::string> base = {"--insecure", "--upstream", "x:1"};
  const auto with = [&base](std::vector<std::string> more) {
    std::vector<std::string> all = base;
    all.insert(all.end(), more.begin(), more.end());
    return Given(all);
  };
  ExpectRefused(with({"--ttl-max", "-1s"}), {"--ttl-max: ", "from 0"});
  ExpectRefused(with({"--ttl-margin", "1"}), {"--ttl-margin: ", "below 1"});
  ExpectRefused(with({"--ttl-margin", "nan"}), {"--ttl-margin: "});
  ExpectRefused(with({"--ttl-override", "0"}), {"--ttl-override: ", "above 0"});
  ExpectRefused(with({"--max-released", "0"}), {"--max-released: ", "from 1"});
  ExpectRefused(with({"--mode", "rehearse"}), {"mode", "on, off or shadow"});
  ExpectRefused(with({"--store-fatal=maybe"}), {"--store-fatal: ", "true or"});
  ExpectRefused(with({"--mask", "observed"}), {"mask"});
  ExpectRefused(with({"--drain", "1s", "--drain", "2s"}), {"drain", "twice"});
  ExpectRefused(with({"--listen", "x"}), {"listen", "HOST:PORT"});
  ExpectRefused(with({"--listen", "x:65536"}), {"listen", "65535"});
  ExpectRefused(with({"--key", "tags"}), {"--key", "content or tag"});
  ExpectRefused(with({"--key-hash", "SHA256"}),
                {"--key-hash: ", "xxh3 or sha256"});
  for (const char* flag :
       {"--stale-while-revalidate", "--stale-if-error", "--finish-abandoned"}) {
    ExpectRefused(with({flag, "-1s"}), {flag, "a duration from 0 up"});
    ExpectRefused(with({flag, "10"}), {flag, "such as 30s"});
  }
  ExpectRefused(with({"--abandoned", "1s"}), {"--abandoned"});
  ExpectRefused(with({"stray"}), {"stray"});
  ExpectRefused(Given(base, {{"FNCACHE_MASK", "context.a"}}),
                {"FNCACHE_MASK: ", "[a, b]"});
  ExpectRefused(Given(base, {}, "drain: 1s\nttl:\n  max: soon\n"),
                {"f.yaml:3", "ttl.max", "such as 90s"});
  ExpectRefused(Given(base, {}, "ttl.max: 1h\n"), {"f.yaml:1", "unknown key"});
  ExpectRefused(Given(base, {}, "\nhash: sha256\n"),
                {"f.yaml:2", "hash", "unknown key"});
  ExpectRefused(Given(base, {}, "drain: 1s\ndrain: 2s\n"),
                {"f.yaml:2", "drain"});
  ExpectRefused(Given(base, {}, "a: &x 1\nb: *x\n"), {"f.yaml:1", "alias"});
  ExpectRefused(Given(base, {}, "[a]"), {"f.yaml:1", "map"});
}

TEST(SettingsTest, UnknownVariablesAreIgnored) {
  EXPECT_TRUE(Given({"--insecure", "--upstream", "x:1"},
                    {{"FNCACHE_PORT", "tcp://1.2.3.4:80"},
                     {"FNCACHE_KEY_HASH", "sha256"}})
                  .status.ok());
}

TEST(SettingsTest, MistypedVariablesAreToldFromKubernetes) {
  std::vector<std::string> names = {"FNCACHE_",     "FNCACHE_CONFIG", "PATH",
                                    "FNCACHE_PORT", "FNCACHE_COLOUR", "KEYS"};
  for (const Setting& setting : ServeSettings().settings()) {
    const std::string variable = EnvironmentName(setting.key);
    names.push_back(variable);
    // Variables of a Service with as unlucky a name as can be.
    for (const char* tail :
         {"_SERVICE_HOST", "_SERVICE_PORT", "_SERVICE_PORT_A", "_PORT",
          "_PORT_9_TCP", "_PORT_9_TCP_PROTO", "_PORT_9_TCP_PORT",
          "_PORT_9_TCP_ADDR", "_PORT_9_UDP"}) {
      names.push_back(variable + tail);
    }
  }
  EXPECT_THAT(MistypedVariables(names), ::testing::IsEmpty());
  EXPECT_THAT(MistypedVariables({"FNCACHE_LISTNE", "FNCACHE_MASKS"}),
              ::testing::ElementsAre(
                  HasSubstr("FNCACHE_LISTNE is no setting and has no effect; "
                            "did you mean FNCACHE_LISTEN?"),
                  HasSubstr("did you mean FNCACHE_MASK?")));
}

TEST(SettingsTest, EmptyTextAfterEqualsIsAValue) {
  const Outcome outcome =
      Given({"--admin=", "--upstream=x:1", "--insecure=true"});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.options.daemon.admin, "");
}

TEST(SettingsTest, PlaintextIsAskedForByName) {
  ExpectRefused(Given({"--upstream", "x:1"}), {"tls_dir", "--insecure"});
  ExpectRefused(Given({"--upstream", "x:1", "--insecure", "--tls-dir", "/d"}),
                {"insecure", "tls_dir"});
  ExpectRefused(Given({"--upstream", "x:1", "--insecure"}, {}, "tls_dir: /d"),
                {"insecure", "f.yaml:1"});
  ExpectRefused(
      Given({"--upstream", "x:1", "--insecure"}, {{"FNCACHE_TLS_DIR", "/d"}}),
      {"insecure", "FNCACHE_TLS_DIR"});
  const Map crossplane = {{"TLS_SERVER_CERTS_DIR", "/tls/server"}};
  EXPECT_EQ(Given({"--upstream", "x:1"}, crossplane).options.daemon.tls_dir,
            "/tls/server");
  const Outcome beaten = Given({"--upstream", "x:1", "--insecure"}, crossplane);
  ASSERT_TRUE(beaten.status.ok()) << beaten.status;
  EXPECT_FALSE(beaten.options.daemon.tls_dir.has_value());
}

TEST(SettingsTest, GenerationIsNeededWithATierThatOutlivesTheProcess) {
  const std::vector<std::string> flags = {"--insecure", "--upstream", "x:1",
                                          "--cache-dir", "/c"};
  ExpectRefused(Given(flags), {"generation", "none"});
  const Outcome outcome = Given(flags, {{"REVISION_NAME", "r1"}});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.options.daemon.functions[0].generation, "r1");
  ExpectRefused(Given({"--insecure", "--cache-dir", "/c"}, {},
                      "functions:\n- {name: a, listen: 'h:1', upstream: 'x:1', "
                      "generation: g}\n"
                      "- {name: b, listen: 'h:2', upstream: 'y:1'}\n"),
                {"generation", "\"b\""});
}

TEST(SettingsTest, EntriesShareNothingAndStandAlone) {
  const std::string kTwo =
      "functions:\n- {name: a, listen: 'h:1', upstream: 'x:1'}\n";
  EXPECT_TRUE(Given({"--insecure"}, {{"FUNCTION_NAME", "z"}},
                    kTwo + "- {name: b, listen: 'h:2', upstream: 'y:1'}\n")
                  .status.ok());
  ExpectRefused(Given({"--insecure"}, {},
                      kTwo + "- {name: a, listen: 'h:2', upstream: 'y:1'}\n"),
                {"f.yaml:3", "functions[1].name"});
  ExpectRefused(
      Given({"--insecure"}, {},
            kTwo + "- {name: b, listen: '0.0.0.0:1', upstream: 'y:1'}\n"),
      {"functions[1].listen"});
  ExpectRefused(Given({"--insecure"}, {},
                      kTwo + "- {name: b, listen: 'h:2', upstream: 'x:1'}\n"),
                {"functions[1].upstream"});
  EXPECT_TRUE(Given({"--insecure"}, {},
                    "functions:\n- {name: a, listen: 'h:0', upstream: 'x:1'}\n"
                    "- {name: b, listen: 'h:0', upstream: 'y:1'}\n")
                  .status.ok());
  ExpectRefused(Given({"--insecure"}, {}, "functions:\n- {name: a}\n"),
                {"f.yaml:2", "functions[0].listen"});
  ExpectRefused(Given({"--insecure", "--upstream", "u:1"}, {}, kTwo),
                {"--upstream", "functions"});
  ExpectRefused(Given({"--insecure"}, {}, "listen: 'h:9'\n" + kTwo),
                {"f.yaml:1", "listen"});
  ExpectRefused(Given({"--insecure"}, {}, "functions: []\n"), {"functions"});
  ExpectRefused(Given({"--insecure"}, {},
                      "functions:\n- {name: a, listen: 'h:1', upstream: 'x:1', "
                      "drain: 1s}\n"),
                {"functions[0].drain", "unknown key"});
}

TEST(SettingsTest, EffectiveSettingsReadBackAsThemselves) {
  const Outcome first = Given(
      {"--insecure", "--mask", "context.\"example.org/now\"",
       "--mask=context.b", "--ttl-min=90s", "--admin="},
      {{"FNCACHE_GENERATION", "a: \"b\" # \xc3\xa9"}},
      "functions:\n- {name: a, listen: '[::]:0', upstream: 'unix:/a b'}\n"
      "- {name: b, listen: 'h:1', upstream: 'y:1', ttl: {margin: 0.25}}\n");
  ASSERT_TRUE(first.status.ok()) << first.status;
  const std::string yaml = SettingsAsYaml(ServeSettings(), first.resolved);
  const Outcome second = Given({}, {}, yaml);
  ASSERT_TRUE(second.status.ok()) << second.status << "\n" << yaml;
  ASSERT_EQ(second.resolved.entries.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    for (const auto& [key, value] : first.resolved.entries[i]) {
      EXPECT_EQ(second.resolved.entries[i].at(key).values, value.values) << key;
    }
  }
  for (const auto& [key, value] : first.resolved.top) {
    EXPECT_EQ(second.resolved.top.at(key).values, value.values) << key;
  }
}

TEST(SettingsTest, NamedMaskSetsAreShownWithTheirPaths) {
  const Outcome first =
      Given({"--insecure"}, {{"FNCACHE_MASK", "[\"@times\", context.a]"}},
            "mask: [\"@composite-conditions\"]\n"
            "functions:\n"
            "- {name: a, listen: 'h:1', upstream: 'x:1'}\n"
            "- {name: b, listen: 'h:2', upstream: 'y:1', mask: [\"@versions\", "
            "\"@composite-conditions\"]}\n"
            "- {name: c, listen: 'h:3', upstream: 'z:1', mask: []}\n");
  ASSERT_TRUE(first.status.ok()) << first.status;
  const std::string yaml = SettingsAsYaml(ServeSettings(), first.resolved);
  EXPECT_THAT(
      yaml,
      HasSubstr("    mask: [\"@times\", context.a]  # FNCACHE_MASK\n"
                "    #   context.a\n"
                "    #   extra_resources.*.items.*.resource.status.conditions."
                "*.lastTransitionTime\n"));
  EXPECT_THAT(
      yaml,
      HasSubstr("    mask: [\"@versions\", \"@composite-conditions\"]  # "
                "f.yaml:4\n"
                "    #   extra_resources.*.items.*.resource.metadata.generation"
                "\n"));
  EXPECT_THAT(yaml, HasSubstr("    mask: []  # f.yaml:5\n    bypass"));
  // Paths speak for themselves.
  EXPECT_THAT(
      SettingsAsYaml(
          ServeSettings(),
          Given({"--insecure", "--upstream=x:1", "--mask=context.a"}).resolved),
      HasSubstr("mask: [context.a]  # --mask\nbypass"));
  const Outcome second = Given({}, {}, yaml);
  ASSERT_TRUE(second.status.ok()) << second.status << "\n" << yaml;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(second.options.daemon.functions[i].masks.canonical(),
              first.options.daemon.functions[i].masks.canonical());
  }
}

TEST(SettingsTest, NamedMaskSetsNeedQuotesAndTheMessageSaysSo) {
  const std::vector<std::string> reserved = {
      "reserves @ at the start of a text: it needs quotes, \"@versions\""};
  ExpectRefused(Given({"--insecure", "--upstream=x:1"}, {},
                      "mask: [@versions, @times]\n"),
                reserved);
  ExpectRefused(Given({"--insecure", "--upstream=x:1"},
                      {{"FNCACHE_MASK", "[@versions]"}}),
                {"FNCACHE_MASK: ", reserved[0], "accepted: paths below"});
  ExpectRefused(
      Given({"--insecure", "--upstream=x:1"}, {{"FNCACHE_MASK", "@versions"}}),
      {"FNCACHE_MASK: ", "YAML flow list"});
  EXPECT_TRUE(Given({"--insecure", "--upstream=x:1", "--mask", "@versions"})
                  .status.ok());
  ExpectRefused(Given({"--insecure", "--upstream=x:1", "--mask", "@all"}),
                {"--mask: ", "`@all`: no set has this name",
                 "@versions, @times, @composite-conditions"});
}

TEST(SettingsTest, LeastLifetimeIsAtMostTheBound) {
  ExpectRefused(Given({"--insecure", "--upstream=x:1", "--ttl-min=25h"}),
                {"--ttl-min: 25h is more than ttl.max (24h, default)",
                 "ttl.max: 0 for no bound"});
  ExpectRefused(Given({"--insecure", "--ttl-max=1h"}, {},
                      "functions:\n"
                      "- {name: a, listen: 'h:1', upstream: 'x:1'}\n"
                      "- {name: b, listen: 'h:2', upstream: 'y:1',\n"
                      "   ttl: {min: 2h}}\n"),
                {"f.yaml:4: functions[1].ttl.min", "(1h, --ttl-max)", "\"b\""});
  for (const char* most : {"25h", "0", "30h"}) {
    const Outcome outcome =
        Given({"--insecure", "--upstream=x:1", "--ttl-min=25h",
               std::string("--ttl-max=") + most});
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  }
}

TEST(SettingsTest, KeyAndItsHashAreChosenPerFunction) {
  const Outcome outcome =
      Given({"--insecure", "--key=tag"}, {{"FNCACHE_KEY_HASH", "sha256"}},
            "functions:\n"
            "- {name: a, listen: 'h:1', upstream: 'x:1'}\n"
            "- {name: b, listen: 'h:2', upstream: 'y:1', key: content}\n"
            "- {name: c, listen: 'h:3', upstream: 'z:1', key_hash: xxh3}\n");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  const auto& functions = outcome.options.daemon.functions;
  ASSERT_EQ(functions.size(), 3);
  EXPECT_EQ(functions[0].key, cache::key::KeySource::kTag);
  EXPECT_EQ(functions[0].key_hash, cache::key::KeyHash::kSha256);
  EXPECT_EQ(functions[1].key, cache::key::KeySource::kContent);
  EXPECT_EQ(functions[1].key_hash, cache::key::KeyHash::kSha256);
  EXPECT_EQ(functions[2].key, cache::key::KeySource::kTag);
  EXPECT_EQ(functions[2].key_hash, cache::key::KeyHash::kXxh3);
  // Once, however many functions there are.
  ASSERT_EQ(outcome.options.warnings.size(), 1);
  EXPECT_THAT(outcome.options.warnings[0], HasSubstr("key: tag"));
}

TEST(SettingsTest, HelpNamesEverySetting) {
  const std::string help = ServeHelp();
  for (const Setting& setting : ServeSettings().settings()) {
    EXPECT_THAT(help, HasSubstr("  " + FlagName(setting.key) + " "));
    EXPECT_THAT(help, HasSubstr("(env " + EnvironmentName(setting.key) + ")"));
  }
}

TEST(SettingsTest, ReferencePageIsTheTable) {
  const std::string path = FNCACHE_SOURCE_DIR "/docs/settings.md";
  if (std::getenv("FNCACHE_TEST_REGENERATE") != nullptr) {
    std::ofstream(path) << ServeReference();
  }
  std::ifstream in(path);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(page, ServeReference())
      << "To print docs/settings.md anew: FNCACHE_TEST_REGENERATE=1 "
         "proxy_test --gtest_filter='*ReferencePageIsTheTable'; then "
         "scripts/chart-schema writes the chart's schema anew";
}

TEST(SettingsTest, LimitsAreNumbersWithinTheirRanges) {
  const std::vector<std::string> base = {
      "--insecure", "--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:9"};
  const auto with = [&](const std::string& flag, const std::string& value) {
    std::vector<std::string> all = base;
    all.push_back(flag);
    all.push_back(value);
    return Given(all);
  };
  const Outcome plain = Given(base);
  ASSERT_TRUE(plain.status.ok()) << plain.status;
  EXPECT_EQ(plain.options.daemon.inflight_bytes, 256ull << 20);
  EXPECT_EQ(plain.options.daemon.max_metadata_bytes, 64ull << 10);
  EXPECT_EQ(plain.options.daemon.max_streams, 1024);
  EXPECT_EQ(plain.options.daemon.max_connections, 4096);
  EXPECT_EQ(plain.options.daemon.idle_timeout, absl::Hours(1));
  EXPECT_EQ(plain.options.daemon.max_connection_age, absl::ZeroDuration());
  EXPECT_EQ(with("--workers", "3").options.daemon.workers, 3);
  EXPECT_EQ(with("--inflight-bytes", "1GiB").options.daemon.inflight_bytes,
            1ull << 30);
  EXPECT_EQ(with("--idle-timeout", "0").options.daemon.idle_timeout,
            absl::ZeroDuration());
  EXPECT_EQ(
      with("--max-connection-age", "90s").options.daemon.max_connection_age,
      absl::Seconds(90));
  const struct {
    const char* flag;
    std::vector<const char*> refused;
    const char* accepted;
  } kCases[] = {
      {"--workers", {"0", "65", "-1", "two", "1.5", ""}, "from 1 to 64"},
      {"--inflight-bytes", {"0", "1MB", "2TiB", "x"}, "from 1MiB to 1TiB"},
      {"--max-request-bytes", {"0", "1000", "4GiB"}, "from 1KiB to 4095MiB"},
      {"--max-response-bytes", {"0", "1000", "4GiB"}, "from 1KiB to 4095MiB"},
      {"--max-metadata-bytes", {"1KiB", "129KiB"}, "from 4KiB to 128KiB"},
      {"--max-streams", {"0", "1000001"}, "from 1 to 1000000"},
      {"--max-connections", {"0", "1000001"}, "from 1 to 1000000"},
      {"--idle-timeout", {"500ms", "-1s", "1"}, "from 1s up, or 0"},
      {"--max-connection-age", {"500ms", "-1s", "1"}, "from 1s up, or 0"},
  };
  for (const auto& test : kCases) {
    for (const char* value : test.refused) {
      SCOPED_TRACE(absl::StrCat(test.flag, " ", value));
      ExpectRefused(with(test.flag, value), {test.flag, test.accepted});
    }
  }
}

TEST(SettingsTest, TheAccessLogIsChosenByAWordOrADuration) {
  using telemetry::LoggedCalls;
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = {"--insecure", "--listen", "127.0.0.1:0",
                                    "--upstream", "127.0.0.1:9"};
    all.insert(all.end(), more.begin(), more.end());
    return Given(all);
  };
  const auto log = [&](std::vector<std::string> more) {
    const Outcome outcome = with(std::move(more));
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    return outcome.options.daemon.access_log;
  };
  EXPECT_EQ(log({}).calls, LoggedCalls::kNone);
  EXPECT_EQ(log({}).sample, 1);
  EXPECT_EQ(log({}).file, "");
  EXPECT_EQ(log({"--log-access", "off"}).calls, LoggedCalls::kNone);
  EXPECT_EQ(log({"--log-access", "misses"}).calls, LoggedCalls::kMisses);
  EXPECT_EQ(log({"--log-access", "all"}).calls, LoggedCalls::kAll);
  EXPECT_EQ(log({"--log-access", "slow=1m30s"}).calls, LoggedCalls::kSlow);
  EXPECT_EQ(log({"--log-access", "slow=1m30s"}).slow, absl::Seconds(90));
  EXPECT_EQ(log({"--log-access-sample", "0.01"}).sample, 0.01);
  EXPECT_EQ(log({"--log-access-file", "a.log"}).file, "a.log");
  // Without a word of its own it has the log's form, in whichever order.
  EXPECT_EQ(log({}).format, LogFormat::kText);
  EXPECT_EQ(log({"--log-format", "json"}).format, LogFormat::kJson);
  EXPECT_EQ(log({"--log-access-format", "text", "--log-format", "json"}).format,
            LogFormat::kText);
  EXPECT_EQ(log({"--log-access-format", "json"}).format, LogFormat::kJson);
  for (const char* value : {"", "on", "hits", "slow", "slow=", "slow=0",
                            "slow=-1s", "slow=1", "All", "misses,all"}) {
    SCOPED_TRACE(value);
    ExpectRefused(with({"--log-access", value}),
                  {"--log-access", "off, misses, all, or slow=DURATION"});
  }
  for (const char* value : {"0", "1.1", "-1", "x", "nan"}) {
    ExpectRefused(with({"--log-access-sample", value}),
                  {"--log-access-sample", "a fraction over 0, to 1"});
  }
  ExpectRefused(with({"--log-access-format", "xml"}), {"text or json"});
}

TEST(SettingsTest, AFunctionThatIsTheProxyItselfIsRefused) {
  ExpectRefused(Given({"--insecure", "--listen", "127.0.0.1:9443", "--upstream",
                       "dns:///localhost:9443"}),
                {"leads back", "127.0.0.1:9443"});
  ExpectRefused(Given({"--insecure", "--listen", "0.0.0.0:9443", "--upstream",
                       "127.0.0.1:9443"}),
                {"--upstream", "leads back"});
  ExpectRefused(Given({"--insecure", "--listen", "unix:/run/f.sock",
                       "--upstream", "unix:///run/f.sock"}),
                {"--upstream", "leads back", "unix:/run/f.sock"});
}

TEST(SettingsTest, SizesAndAddressesMayBeWrittenAsKubernetesAndGoDo) {
  const Outcome made =
      Given({"--insecure", "--upstream", "x:1", "--listen", ":9443", "--admin",
             ":9901", "--cache-memory", "256Mi"},
            {{"FNCACHE_CACHE_DISK", "2Gi"}}, "inflight: {bytes: 64Mi}\n");
  ASSERT_TRUE(made.status.ok()) << made.status;
  const DaemonOptions& daemon = made.options.daemon;
  EXPECT_EQ(daemon.functions.at(0).listen, "0.0.0.0:9443");
  EXPECT_EQ(daemon.admin, "0.0.0.0:9901");
  EXPECT_EQ(daemon.cache_memory, uint64_t{256} << 20);
  EXPECT_EQ(daemon.cache_disk, uint64_t{2} << 30);
  ExpectRefused(Given({"--insecure"}, {},
                      "functions:\n"
                      "- {name: a, listen: ':9443', upstream: 'x:1'}\n"
                      "- {name: b, listen: '0.0.0.0:9443', upstream: 'x:2'}\n"),
                {"f.yaml:3", "functions[1].listen", "already used by"});
  ExpectRefused(Given({"--insecure", "--upstream", "x:1", "--listen", ":9901"}),
                {"collides with listen \"0.0.0.0:9901\""});
  ExpectRefused(Given({"--insecure", "--upstream", ":9444"}),
                {"--upstream", "has no host to call"});
  ExpectRefused(
      Given({"--insecure", "--upstream", "x:1", "--cache-memory", "256M"}),
      {"--cache-memory", "256MiB or 256Mi"});
}

TEST(SettingsTest, FunctionsListenOnUnixSockets) {
  const Outcome one = Given(
      {"--insecure", "--upstream", "x:1", "--listen", "unix:/run/f.sock"});
  ASSERT_TRUE(one.status.ok()) << one.status;
  EXPECT_EQ(one.options.daemon.functions.at(0).listen, "unix:/run/f.sock");
  const std::string first =
      "functions:\n- {name: a, listen: 'unix:/run/a', upstream: 'x:1'}\n";
  const auto with = [&](const std::string& listen) {
    return Given({"--insecure"}, {},
                 absl::StrCat(first, "- {name: b, listen: '", listen,
                              "', upstream: 'y:1'}\n"));
  };
  EXPECT_TRUE(with("unix-abstract:b").status.ok());
  ExpectRefused(with("unix:///run/a"),
                {"f.yaml:3", "functions[1].listen", "already used by"});
  ExpectRefused(with("unix:/" + std::string(107, 'b')),
                {"f.yaml:3", "functions[1].listen", "too long: 108 bytes",
                 "accepted: HOST:PORT", "unix:PATH"});
  ExpectRefused(Given({"--insecure", "--upstream", "x:1", "--admin-socket",
                       "/run/f.sock", "--listen", "unix:/run/f.sock"}),
                {"--admin-socket", "collides with listen"});
  // Where metrics are asked for is an address.
  ExpectRefused(
      Given({"--insecure", "--upstream", "x:1", "--admin", "unix:/run/f.sock"}),
      {"--admin", "no port"});
}

TEST(SettingsTest, ATraceIsNotWrittenInWhatTheDiskTierRemoves) {
  const std::vector<std::string> kBase = {
      "--insecure",   "--upstream",   "localhost:1", "--cache-dir",
      "/var/cache/f", "--generation", "g",           "--trace-dir"};
  const auto with = [&](const std::string& trace) {
    std::vector<std::string> arguments = kBase;
    arguments.push_back(trace);
    return Given(arguments).status;
  };
  for (const char* const own :
       {"/var/cache/f", "/var/cache/f/", "/var/cache/f/db",
        "/var/cache/./f/x/../db/y", "/var/cache/f/damaged/"}) {
    EXPECT_THAT(
        std::string(with(own).message()),
        ::testing::AllOf(HasSubstr("--trace-dir: "), HasSubstr("cache's own"),
                         HasSubstr("accepted: ")))
        << own;
  }
  // One volume may be all that a pod has.
  for (const char* const other : {"/var/cache/f/trace", "/var/cache/f/dbx",
                                  "/var/cache", "/var/cache/g", "/var/trace"}) {
    EXPECT_TRUE(with(other).ok()) << other << ": " << with(other);
  }
}

}  // namespace
}  // namespace fncache::proxy::settings
