// SPDX-License-Identifier: Apache-2.0
// The settings of the shared tier as the real binary takes them: exit codes,
// one line of reason, warnings, and nothing of what the files contain.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class SharedSettingsTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& content) {
    const std::string path = absl::StrCat(dir_.path(), "/", name);
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  // Runs `fncache serve` for one function, by default with a good secret.
  void Serve(std::vector<std::string> more, bool secret = true) {
    std::vector<std::string> all = {"serve",       "--insecure",   "--upstream",
                                    "127.0.0.1:1", "--generation", "g"};
    if (secret) {
      all.insert(all.end(), {"--shared-secret-file", secret_});
    }
    all.insert(all.end(), more.begin(), more.end());
    Process process(all);
    code_ = process.Wait();
    out_ = process.Stdout();
    err_ = process.Stderr();
  }

  // The run ended with `code` and exactly one line that has all of `parts`.
  void ExpectOneLine(int code, const std::vector<std::string>& parts) {
    EXPECT_EQ(code_, code) << err_;
    EXPECT_EQ(out_, "");
    EXPECT_THAT(err_, MatchesRegex("fncache serve: [^\n]+\n"));
    for (const std::string& part : parts) EXPECT_THAT(err_, HasSubstr(part));
    EXPECT_THAT(err_, Not(HasSubstr("hidden")));
  }

  TempDir dir_;
  const std::string secret_ =
      File("secret", "hidden-0123456789-0123456789-0123456789\n");
  int code_ = 0;
  std::string out_;
  std::string err_;
};

TEST_F(SharedSettingsTest, AWrongUrlIsExitCodeTwoWithoutItsPassword) {
  Serve({"--shared-url", "redis://ada:hidden@cache:6379"});
  ExpectOneLine(2,
                {"--shared-url: has a user or password", "accepted: redis://",
                 "shared.username", "shared.password_file"});
  EXPECT_THAT(err_, Not(HasSubstr("ada")));
  const std::string file =
      File("f.yaml", "shared:\n  url: redis://ada:hidden@cache:6379\n");
  Serve({"--config", file});
  ExpectOneLine(2, {file + ":2: shared.url: has a user or password"});
  Serve({"--shared-url", "http://cache:6379"});
  ExpectOneLine(2, {"--shared-url: has another scheme"});
  Serve({"--shared-url", "redis://cache"});
  ExpectOneLine(2, {"--shared-url: has no port"});
  Serve({"--shared-url", "redis://cache:6379/1"});
  ExpectOneLine(2, {"--shared-url: has a path after HOST:PORT"});
}

TEST_F(SharedSettingsTest, ContradictionsAreExitCodeTwo) {
  const std::string url = "--shared-url=redis://127.0.0.1:1";
  Serve({url, "--cache-dir", dir_.path() + "/cache"});
  ExpectOneLine(2, {"--shared-url: contradicts cache.dir"});
  Serve({url}, /*secret=*/false);
  ExpectOneLine(2, {"--shared-url: needs shared.secret_file"});
  Serve({});
  ExpectOneLine(2, {"--shared-secret-file: has no effect without shared.url"});
  Serve({url, "--shared-username", "fleet"});
  ExpectOneLine(2, {"--shared-username: ", "without shared.password_file"});
  Serve({url, "--shared-tls-dir", dir_.path()});
  ExpectOneLine(2, {"--shared-tls-dir: ", "rediss://"});
  Serve({url, "--shared-server-name", "cache"});
  ExpectOneLine(2, {"--shared-server-name: ", "rediss://"});
  const std::string file =
      File("f.yaml", absl::StrCat("shared:\n  url: redis://127.0.0.1:1\n"
                                  "  secret_file: ",
                                  File("short", "hidden\n"), "\n"));
  Serve({"--config", file}, /*secret=*/false);
  ExpectOneLine(2, {file + ":3: shared.secret_file: ", "/short is too short",
                    "at least 32 bytes"});
}

TEST_F(SharedSettingsTest, AFunctionWithoutGenerationIsExitCodeTwo) {
  Process process({"serve", "--insecure", "--upstream", "127.0.0.1:1",
                   "--shared-url", "unix:/r", "--shared-secret-file", secret_});
  EXPECT_EQ(process.Wait(), 2);
  EXPECT_THAT(process.Stderr(),
              HasSubstr("generation: is needed with shared.url"));
}

TEST_F(SharedSettingsTest, FilesThatCannotBeReadAreExitCodeOne) {
  const std::string url = "--shared-url=rediss://127.0.0.1:1";
  const std::string gone = dir_.path() + "/gone";
  for (const char* const check : {"--check", "--ttl-max=1h"}) {
    Serve({url, "--shared-secret-file", gone, check}, /*secret=*/false);
    ExpectOneLine(1, {"shared.secret_file: " + gone});
    Serve({url, "--shared-password-file", gone, check});
    ExpectOneLine(1, {"shared.password_file: " + gone});
    Serve({url, "--shared-tls-dir", dir_.path(), check});
    ExpectOneLine(1, {"shared.tls_dir: " + dir_.path() + "/ca.crt"});
  }
}

TEST_F(SharedSettingsTest, TheCheckStaysOffTheNetworkAndHidesSecrets) {
  // No server listens there.
  Serve({"--shared-url", "rediss://localhost:1", "--shared-username", "fleet",
         "--shared-password-file", File("password", "hidden\n"), "--check"});
  EXPECT_EQ(code_, 0) << err_;
  EXPECT_EQ(err_, "");
  EXPECT_THAT(out_, AllOf(HasSubstr("url: rediss://localhost:1 "),
                          HasSubstr("password_file: "), HasSubstr(secret_),
                          Not(HasSubstr("hidden"))));
}

TEST_F(SharedSettingsTest, TheCheckWarns) {
  Serve({"--shared-url", "redis://cache.example:6379", "--store-secrets", "all",
         "--check"});
  EXPECT_EQ(code_, 0) << err_;
  EXPECT_THAT(err_, AllOf(HasSubstr("sends the password in clear"),
                          HasSubstr("never go to the shared tier")));
}

}  // namespace
}  // namespace fncache::testing
