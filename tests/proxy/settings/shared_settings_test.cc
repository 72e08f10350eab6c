// SPDX-License-Identifier: Apache-2.0
// The settings of the shared tier, and what they contradict.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proxy/settings/address.h"
#include "proxy/settings/source.h"

namespace fncache::proxy::settings {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Given = std::vector<std::pair<std::string, std::string>>;

// The settings of one function with a generation, as flags.
absl::StatusOr<EffectiveSettings> Resolve(const Given& more,
                                          const std::string& yaml = "") {
  Given flags = {
      {"insecure", "true"}, {"upstream", "x:1"}, {"generation", "g"}};
  flags.insert(flags.end(), more.begin(), more.end());
  return SettingsSource(flags, {}, yaml.empty() ? "" : "f.yaml").Resolve(yaml);
}

// The same with a URL and a secret.
absl::StatusOr<EffectiveSettings> With(const Given& more) {
  Given all = {{"shared.url", "rediss://cache.example:6379"},
               {"shared.secret_file", "/s/secret"}};
  for (const auto& [key, text] : more) {
    if (key == "shared.url") {
      all[0].second = text;
    } else {
      all.emplace_back(key, text);
    }
  }
  return Resolve(all);
}

std::string ErrorOf(const absl::StatusOr<EffectiveSettings>& settings) {
  EXPECT_TRUE(absl::IsInvalidArgument(settings.status())) << settings.status();
  EXPECT_THAT(settings.status().message(), Not(HasSubstr("\n")));
  return std::string(settings.status().message());
}

TEST(SharedSettingsTest, DefaultsAreThoseOfTheOptions) {
  const auto settings = Resolve({});
  ASSERT_TRUE(settings.ok()) << settings.status();
  const SharedOptions& made = settings->options.daemon.shared;
  const SharedOptions plain;
  EXPECT_EQ(made.url, "");
  EXPECT_EQ(made.prefix, plain.prefix);
  EXPECT_EQ(made.timeout, plain.timeout);
  EXPECT_EQ(made.max_entry_bytes, plain.max_entry_bytes);
}

TEST(SharedSettingsTest, EachSettingReachesItsOption) {
  const auto settings = With({{"shared.username", "fleet"},
                              {"shared.password_file", "/s/password"},
                              {"shared.tls_dir", "/tls"},
                              {"shared.server_name", "cache"},
                              {"shared.prefix", "team:a_b.c-1"},
                              {"shared.timeout", "5ms"},
                              {"shared.max_entry_bytes", "16MiB"}});
  ASSERT_TRUE(settings.ok()) << settings.status();
  const SharedOptions& made = settings->options.daemon.shared;
  EXPECT_EQ(made.url, "rediss://cache.example:6379");
  EXPECT_EQ(made.secret_file, "/s/secret");
  EXPECT_EQ(made.username, "fleet");
  EXPECT_EQ(made.password_file, "/s/password");
  EXPECT_EQ(made.tls_dir, "/tls");
  EXPECT_EQ(made.server_name, "cache");
  EXPECT_EQ(made.prefix, "team:a_b.c-1");
  EXPECT_EQ(made.timeout, absl::Milliseconds(5));
  EXPECT_EQ(made.max_entry_bytes, 16 << 20);
  EXPECT_THAT(settings->options.warnings, IsEmpty());
}

TEST(SharedSettingsTest, ValuesOutsideTheirRangesAreRefused) {
  const struct {
    const char* key;
    std::vector<std::string> bad;
    const char* accepted;
  } kCases[] = {
      {"shared.timeout", {"4ms", "1001ms", "0", "-1s"}, "from 5ms to 1s"},
      {"shared.max_entry_bytes", {"1023", "17MiB", "0"}, "from 1KiB to 16MiB"},
      {"shared.prefix",
       {"", "a b", "a{b}", "\xc3\xa9", std::string(65, 'a')},
       "1 to 64 letters"},
  };
  for (const auto& test : kCases) {
    for (const std::string& bad : test.bad) {
      EXPECT_THAT(ErrorOf(With({{test.key, bad}})), HasSubstr(test.accepted))
          << bad;
    }
  }
  EXPECT_TRUE(With({{"shared.prefix", std::string(64, 'a')}}).ok());
  EXPECT_TRUE(With({{"shared.timeout", "1s"}}).ok());
  EXPECT_TRUE(With({{"shared.max_entry_bytes", "1KiB"}}).ok());
}

TEST(SharedSettingsTest, AUrlIsRefusedWithTheReasonAndWhatIsAccepted) {
  const struct {
    const char* url;
    const char* why;
  } kCases[] = {
      {"http://cache:6379", "has another scheme"},
      {"cache:6379", "has another scheme"},
      {"redis://cache", "has no port"},
      {"rediss://[::1]", "has no port"},
      {"redis://cache:0", "has no port from 1 to 65535"},
      {"redis://cache:6379/0", "has a path after HOST:PORT"},
      {"redis://::1:6379", "without brackets"},
      {"unix:", "has no path"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(ErrorOf(With({{"shared.url", test.url}})),
                AllOf(HasSubstr("--shared-url: "), HasSubstr(test.why),
                      HasSubstr("accepted: redis://HOST:PORT, "
                                "rediss://HOST:PORT (TLS) or unix:PATH")));
  }
  for (const char* const url :
       {"redis://localhost:1", "rediss://[fd00::1]:6379", "unix:/run/redis"}) {
    EXPECT_TRUE(With({{"shared.url", url}}).ok()) << url;
  }
}

TEST(SharedSettingsTest, AUserOrPasswordInTheUrlIsNeverRepeated) {
  for (const char* const url :
       {"redis://ada:open@cache:6379", "rediss://:open@cache:6379/1",
        "http://ada:open@cache:1", "redis://ada:open\t@cache:6379",
        "redis://ada:open@cache"}) {
    const std::string flag = ErrorOf(With({{"shared.url", url}}));
    const std::string file =
        ErrorOf(Resolve({}, absl::StrCat("shared:\n  url: \"", url, "\"\n")));
    EXPECT_THAT(file, HasSubstr("f.yaml:2: shared.url: "));
    for (const std::string& error : {flag, file}) {
      EXPECT_THAT(error, AllOf(Not(HasSubstr("open")), Not(HasSubstr("ada")),
                               HasSubstr("shared.password_file")));
    }
  }
}

TEST(SharedSettingsTest, ContradictionsNameBothSettings) {
  EXPECT_THAT(ErrorOf(With({{"cache.dir", "/c"}})),
              AllOf(HasSubstr("--shared-url: "),
                    HasSubstr("contradicts cache.dir (--cache-dir)"),
                    HasSubstr("accepted: one of the two")));
  EXPECT_THAT(ErrorOf(With({{"shared.username", "fleet"}})),
              AllOf(HasSubstr("--shared-username: "),
                    HasSubstr("without shared.password_file")));
  for (const char* const url : {"redis://cache:6379", "unix:/run/redis"}) {
    EXPECT_THAT(ErrorOf(With({{"shared.url", url}, {"shared.tls_dir", "/t"}})),
                AllOf(HasSubstr("--shared-tls-dir: "), HasSubstr("rediss://")));
    EXPECT_THAT(
        ErrorOf(With({{"shared.url", url}, {"shared.server_name", "n"}})),
        AllOf(HasSubstr("--shared-server-name: "), HasSubstr("rediss://")));
  }
  EXPECT_THAT(ErrorOf(Resolve({{"shared.url", "redis://cache:6379"}})),
              HasSubstr("--shared-url: needs shared.secret_file"));
  for (const char* const key :
       {"shared.secret_file", "shared.username", "shared.password_file",
        "shared.tls_dir", "shared.server_name"}) {
    EXPECT_THAT(ErrorOf(Resolve({{key, "x"}})),
                AllOf(HasSubstr("has no effect without shared.url"),
                      HasSubstr("accepted: both, or none")));
  }
  EXPECT_THAT(ErrorOf(Resolve({}, "\nshared:\n  tls_dir: /t\n")),
              HasSubstr("f.yaml:3: shared.tls_dir: "));
}

TEST(SharedSettingsTest, EmptyTextsAreUnset) {
  EXPECT_TRUE(Resolve({{"shared.url", ""}, {"shared.secret_file", ""}}).ok());
  EXPECT_TRUE(With({{"shared.url", "unix:/r"}, {"shared.tls_dir", ""}}).ok());
  EXPECT_TRUE(With({{"cache.dir", ""}}).ok());
}

TEST(SharedSettingsTest, EachFunctionNeedsAGeneration) {
  const auto settings =
      SettingsSource({{"insecure", "true"},
                      {"shared.url", "unix:/r"},
                      {"shared.secret_file", "/s"}},
                     {}, "f.yaml")
          .Resolve(
              "functions:\n- {name: a, listen: 'h:1', upstream: 'x:1', "
              "generation: g}\n- {name: b, listen: 'h:2', upstream: 'y:1'}\n");
  EXPECT_THAT(ErrorOf(settings),
              AllOf(HasSubstr("generation: is needed with shared.url"),
                    HasSubstr("\"b\"")));
}

TEST(SharedSettingsTest, APasswordInClearIsWarnedOf) {
  for (const char* const url :
       {"redis://cache:6379", "redis://10.0.0.1:6379", "redis://[fd00::1]:1"}) {
    const auto settings = With({{"shared.url", url}});
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_THAT(settings->options.warnings,
                ElementsAre(AllOf(HasSubstr("shared.url: redis:// to another"),
                                  HasSubstr("password in clear"))))
        << url;
  }
  for (const char* const url :
       {"redis://localhost:6379", "redis://127.1.2.3:6379", "redis://[::1]:1",
        "redis://[0:0:0:0:0:0:0:1]:1", "redis://LOCALHOST:1", "unix:/r",
        "rediss://cache:6379"}) {
    const auto settings = With({{"shared.url", url}});
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_THAT(settings->options.warnings, IsEmpty()) << url;
  }
}

TEST(SharedSettingsTest, ConnectionDetailsInAllTiersAreWarnedOf) {
  const auto settings = With({{"store_secrets", "all"}});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_THAT(settings->options.warnings,
              ElementsAre(AllOf(HasSubstr("store_secrets: all"),
                                HasSubstr("never go to the shared tier"))));
  EXPECT_THAT(Resolve({{"store_secrets", "all"}})->options.warnings, IsEmpty());
}

TEST(SharedSettingsTest, NamesOfOtherHostsAreNotLoopback) {
  for (const char* const text : {"localhost.example:1", "128.0.0.1:1",
                                 "127.evil.example:1", "[::2]:1", ""}) {
    EXPECT_FALSE(IsLoopback(text)) << text;
  }
  EXPECT_TRUE(IsLoopback("[::ffff:127.0.0.1]:1"));
}

}  // namespace
}  // namespace fncache::proxy::settings
