// SPDX-License-Identifier: Apache-2.0
// `fncache serve --check-shared` against real servers.

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/certificates.h"
#include "tests/integration/process.h"
#include "tests/resp/redis_server.h"

namespace fncache::testing {
namespace {

using ::fncache::resp::testing::RedisCluster;
using ::fncache::resp::testing::RedisOptions;
using ::fncache::resp::testing::RedisServer;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// A bound and a policy of which nothing is warned.
const std::vector<std::string> kBounded = {
    "--maxmemory", "64mb", "--maxmemory-policy", "volatile-lru"};

class SharedCheckTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& content) {
    const std::string path = absl::StrCat(dir_.path(), "/", name);
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  void Check(const std::string& url,
             const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {
        "serve",
        "--insecure",
        "--upstream",
        "127.0.0.1:1",
        "--generation",
        "g",
        "--shared-url",
        url,
        "--shared-secret-file",
        File("secret", "hidden" + std::string(32, 's')),
        "--check-shared"};
    all.insert(all.end(), more.begin(), more.end());
    Process process(all);
    code_ = process.Wait();
    out_ = process.Stdout();
    err_ = process.Stderr();
    EXPECT_THAT(out_ + err_, Not(HasSubstr("hidden")));
  }

  void ExpectFailed(const std::string& words) {
    EXPECT_EQ(code_, 1) << out_;
    EXPECT_THAT(err_, AllOf(HasSubstr("fncache serve: shared.url: "),
                            HasSubstr(words)));
    EXPECT_THAT(out_, Not(HasSubstr("# Shared tier")));
  }

  TempDir dir_;
  int code_ = 0;
  std::string out_;
  std::string err_;
};

TEST_F(SharedCheckTest, DescribesAServerThatWorks) {
  RedisOptions options;
  options.arguments = kBounded;
  const RedisServer server(options);
  Check(server.url());
  EXPECT_EQ(code_, 0) << err_;
  EXPECT_EQ(err_, "");
  EXPECT_THAT(
      out_,
      AllOf(HasSubstr("url: "), HasSubstr("# Shared tier:\n"),
            HasSubstr("login, TIME, fill, read and delete: done\n"),
            ContainsRegex("version [0-9]+\\.[0-9.]+, master\n"),
            HasSubstr("Cluster: no\n"), HasSubstr("round trip: "),
            HasSubstr("clock difference: "), HasSubstr("memory bound: 64MiB\n"),
            HasSubstr("eviction policy: volatile-lru\n")));
  EXPECT_EQ(server.Cli({"DBSIZE"}), "0") << "the value is deleted";
}

TEST_F(SharedCheckTest, ListsTheNodesOfACluster) {
  RedisOptions options;
  options.arguments = kBounded;
  RedisCluster cluster(3, options);
  Check(cluster.node(0).url());
  EXPECT_EQ(code_, 0) << err_;
  EXPECT_THAT(out_, HasSubstr("Cluster: yes\n"));
}

TEST_F(SharedCheckTest, WarnsOfNoBoundAndOfNoEviction) {
  const RedisServer server;
  Check(server.url());
  EXPECT_EQ(code_, 0) << err_;
  EXPECT_THAT(err_, AllOf(HasSubstr("warning the server has no memory bound"),
                          HasSubstr("maxmemory-policy is noeviction")));
  EXPECT_THAT(out_, HasSubstr("memory bound: none\n"));
}

TEST_F(SharedCheckTest, SaysTheServersWordsForAWrongPassword) {
  RedisOptions options;
  options.acl = "user default off\nuser fleet on >hidden ~fncache:1:* +@all\n";
  options.cli = {"--user", "fleet", "--pass", "hidden"};
  const RedisServer server(options);
  Check(server.url(), {"--shared-username", "fleet", "--shared-password-file",
                       File("password", "hidden-too\n")});
  ExpectFailed("WRONGPASS invalid username-password pair");
  Check(server.url(), {"--shared-username", "fleet", "--shared-password-file",
                       File("password", "hidden\n")});
  EXPECT_EQ(code_, 0) << err_;
}

TEST_F(SharedCheckTest, AUserThatMayNotAskForTheBoundIsEnough) {
  RedisOptions options;
  options.acl =
      "user default off\nuser admin on >admin ~* +@all\n"
      "user fleet on >hidden ~fncache:1:* +@read +@write +eval +time +ping "
      "+info +cluster\n";
  options.cli = {"--user", "admin", "--pass", "admin"};
  const RedisServer server(options);
  Check(server.url(), {"--shared-username", "fleet", "--shared-password-file",
                       File("password", "hidden\n")});
  EXPECT_EQ(code_, 0) << err_;
  EXPECT_THAT(out_, HasSubstr("unknown, this user may not ask (NOPERM"));
}

TEST_F(SharedCheckTest, FailsWithoutEvalOrThePrefix) {
  RedisOptions options;
  options.acl =
      "user default on nopass ~* +@all\n"
      "user noeval on >hidden ~* +@all -eval\n"
      "user other on >hidden ~other:* +@all\n";
  const RedisServer server(options);
  for (const char* const user : {"noeval", "other"}) {
    Check(server.url(), {"--shared-username", user, "--shared-password-file",
                         File("password", "hidden\n")});
    ExpectFailed("NOPERM");
  }
}

TEST_F(SharedCheckTest, FailsWithoutAServer) {
  const std::string path = dir_.path() + "/none.sock";
  Check("unix:" + path);
  ExpectFailed(path + ": ");
}

TEST_F(SharedCheckTest, ChecksTheServersCertificate) {
  const absl::Time now = absl::Now();
  const auto make = [now](const std::string& name, const Pem* issuer) {
    return MakeCertificate(name, issuer, now - absl::Hours(1),
                           now + absl::Hours(1));
  };
  const Pem ca = make("ca", nullptr);
  const Pem other = make("other", nullptr);
  const CertificateDir certificates(make("localhost", &ca), ca.certificate);
  RedisOptions options;
  options.tcp = true;
  options.tls_dir = certificates.path();
  options.arguments = kBounded;
  const RedisServer server(options);

  TempDir good, bad;
  std::ofstream(good.path() + "/ca.crt") << ca.certificate;
  std::ofstream(bad.path() + "/ca.crt") << other.certificate;
  Check(server.url(), {"--shared-tls-dir", good.path()});
  EXPECT_EQ(code_, 0) << err_;
  Check(server.url(), {"--shared-tls-dir", bad.path()});
  ExpectFailed("certificate");
  Check(server.url(), {"--shared-tls-dir", good.path(), "--shared-server-name",
                       "elsewhere.example"});
  ExpectFailed("elsewhere.example");
}

TEST_F(SharedCheckTest, NeedsAUrl) {
  Process process(
      {"serve", "--insecure", "--upstream", "127.0.0.1:1", "--check-shared"});
  EXPECT_EQ(process.Wait(), 2);
  EXPECT_EQ(process.Stderr(),
            "fncache serve: shared.url: is needed with --check-shared\n");
}

}  // namespace
}  // namespace fncache::testing
