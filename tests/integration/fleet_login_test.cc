// SPDX-License-Identifier: Apache-2.0
// A fleet whose server does not let it in, or not as it should: logins, users'
// rights and TLS. Calls are misses at worst, and the log says why.
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/common/certificates.h"
#include "tests/common/eventually.h"
#include "tests/integration/fleet_testing.h"

namespace fncache::testing {
namespace {

class FleetLoginTest : public FleetTest {
 protected:
  // Two replicas that log in as this user with dir_/password.
  void StartAs(const std::string& user, const std::string& url) {
    ReplicaOptions options;
    options.url = url;
    options.shared =
        absl::StrCat(user.empty() ? "" : "  username: " + user + "\n",
                     "  password_file: \"", password_, "\"\n");
    for (int i = 0; i < 2; ++i) {
      ASSERT_NO_FATAL_FAILURE(StartReplica(options));
    }
  }
  // Waits until each replica's log has a line with each of the texts, which
  // says why the tier is down.
  void ExpectReason(const std::string& text) {
    for (int i = 0; i < replicas(); ++i) {
      EXPECT_TRUE(replica(i).process->WaitForStderr(text));
    }
    EXPECT_TRUE(TierBecomes(false));
  }

  const std::string password_ = dir_.File("password");
};

TEST_F(FleetLoginTest, AWrongPasswordIsDownUntilTheFileHasTheRightOne) {
  RedisOptions options = Tcp({"--requirepass", "right"});
  options.cli = {"--pass", "right"};
  RedisServer server(options);
  WriteFile(password_, "wrong\n");
  ASSERT_NO_FATAL_FAILURE(StartAs("", server.url()));
  ExpectReason("WRONGPASS");
  MeasureMisses("a wrong password");
  WriteFile(password_, "right\n");
  EXPECT_TRUE(AllShare());
  for (int i = 0; i < replicas(); ++i) {
    EXPECT_FALSE(absl::StrContains(replica(i).process->Stderr(), "right"));
  }
}

TEST_F(FleetLoginTest, ARotatedPasswordIsUsedAtTheNextLogin) {
  RedisServer server(
      WithUsers("user default on nopass ~* &* +@all\n"
                "user cache on >old ~* &* +@all\n"));
  WriteFile(password_, "old");
  ASSERT_NO_FATAL_FAILURE(StartAs("cache", server.url()));
  EXPECT_TRUE(AllShare());
  Load load(this);
  // As one should: both are right for a while.
  server.Cli({"ACL", "SETUSER", "cache", ">new"});
  WriteFile(password_, "new");
  server.Cli({"ACL", "SETUSER", "cache", "<old"});
  server.Cli({"CLIENT", "KILL", "USER", "cache"});
  EXPECT_TRUE(AllShare());
  // At once.
  server.Cli({"ACL", "SETUSER", "cache", "<new", ">third"});
  server.Cli({"CLIENT", "KILL", "USER", "cache"});
  for (int i = 0; i < replicas(); ++i) {
    // The log has the first reason, which is that the connections were closed.
    EXPECT_TRUE(Eventually([&] {
      return absl::StrContains(HttpGet(replica(i).admin, "/statusz"),
                               "WRONGPASS");
    }));
  }
  MeasureMisses("a password that was rotated");
  WriteFile(password_, "third");
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetLoginTest, AUserWithoutEvalIsDownUntilItHasThat) {
  RedisServer server(
      WithUsers("user default on nopass ~* &* +@all\n"
                "user cache on >word ~* &* +@all -eval\n"));
  WriteFile(password_, "word");
  ASSERT_NO_FATAL_FAILURE(StartAs("cache", server.url()));
  ExpectReason("eval");
  MeasureMisses("a user without EVAL");
  server.Cli({"ACL", "SETUSER", "cache", "+eval"});
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetLoginTest, AUserWithoutThePrefixIsDownUntilItHasThat) {
  RedisServer server(
      WithUsers("user default on nopass ~* &* +@all\n"
                "user cache on >word ~other:* &* +@all\n"));
  WriteFile(password_, "word");
  ASSERT_NO_FATAL_FAILURE(StartAs("cache", server.url()));
  ExpectReason("NOPERM");
  MeasureMisses("a user without the prefix");
  server.Cli({"ACL", "SETUSER", "cache", "~fncache:*"});
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetLoginTest, ARightThatIsTakenAwayIsDownUntilItIsGivenBack) {
  RedisServer server(
      WithUsers("user default on nopass ~* &* +@all\n"
                "user cache on >word ~* &* +@all\n"));
  WriteFile(password_, "word");
  ASSERT_NO_FATAL_FAILURE(StartAs("cache", server.url()));
  EXPECT_TRUE(AllShare());
  Load load(this);
  server.Cli({"ACL", "SETUSER", "cache", "-eval"});
  MeasureMisses("EVAL is taken away");
  EXPECT_TRUE(TierBecomes(false));
  server.Cli({"ACL", "SETUSER", "cache", "+eval"});
  EXPECT_TRUE(AllShare());
}

// ----------------------------------------------------------------------- TLS

// An authority with its servers' certificates.
struct Authority {
  Pem pem =
      MakeCertificate("an authority", nullptr, absl::Now() - absl::Hours(1),
                      absl::Now() + absl::Hours(1));
  Pem Server(const std::string& alt_names) const {
    CertificateOptions options;
    options.subject = {{"CN", "server"}};
    options.alt_names = alt_names;
    return MakeCertificate(options, &pem);
  }
  Pem Expired() const {
    CertificateOptions options;
    options.from = absl::Now() - absl::Hours(10);
    options.until = absl::Now() - absl::Hours(1);
    return MakeCertificate(options, &pem);
  }
};

class FleetTlsTest : public FleetLoginTest {
 protected:
  void SetUp() override {
    if (!RedisServer::HasTls()) GTEST_SKIP() << "the server has no TLS";
  }

  // Two replicas with the authority in dir_/ca/ca.crt.
  void StartTls(const RedisServer& server, const std::string& ca,
                const std::string& shared = "") {
    std::filesystem::create_directory(tls_dir_);
    WriteFile(tls_dir_ + "/ca.crt", ca);
    ReplicaOptions options;
    options.url = absl::StrCat("rediss://127.0.0.1:", server.port());
    options.shared = absl::StrCat("  tls_dir: \"", tls_dir_, "\"\n", shared);
    for (int i = 0; i < 2; ++i) {
      ASSERT_NO_FATAL_FAILURE(StartReplica(options));
    }
  }

  const Authority authority_ = {};
  const std::string tls_dir_ = dir_.File("ca");
};

TEST_F(FleetTlsTest, ACertificateOfTheAuthorityIsTrusted) {
  const CertificateDir pair(authority_.Server("IP:127.0.0.1"),
                            authority_.pem.certificate);
  RedisServer server(Tls(pair.path()));
  ASSERT_NO_FATAL_FAILURE(StartTls(server, authority_.pem.certificate));
  EXPECT_TRUE(AllShare());
  Load load(this);
  load.Await(50);
  server.Stop();
  MeasureMisses("SIGSTOP of a server with TLS");
  EXPECT_TRUE(TierBecomes(false));
  server.Continue();
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetTlsTest, AWrongNameIsDown) {
  const CertificateDir pair(authority_.Server("DNS:other.example"),
                            authority_.pem.certificate);
  RedisServer server(Tls(pair.path()));
  ASSERT_NO_FATAL_FAILURE(StartTls(server, authority_.pem.certificate));
  ExpectReason("the shared tier is down");
  MeasureMisses("TLS: a wrong name");
  // With that name it works.
  ReplicaOptions named = replica(0).options;
  named.shared += "  server_name: other.example\n";
  const int third = StartReplica(named);
  EXPECT_TRUE(TierOf(third, true));
  EXPECT_FALSE(IsUp(0));
}

TEST_F(FleetTlsTest, AnUnknownAuthorityIsDownUntilTheFileHasIt) {
  const CertificateDir pair(authority_.Server("IP:127.0.0.1"),
                            authority_.pem.certificate);
  RedisServer server(Tls(pair.path()));
  ASSERT_NO_FATAL_FAILURE(StartTls(server, Authority().pem.certificate));
  ExpectReason("the shared tier is down");
  MeasureMisses("TLS: an unknown authority");
  WriteFile(tls_dir_ + "/ca.crt", authority_.pem.certificate);
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetTlsTest, AnExpiredCertificateIsDown) {
  const CertificateDir pair(authority_.Expired(), authority_.pem.certificate);
  RedisServer server(Tls(pair.path()));
  ASSERT_NO_FATAL_FAILURE(StartTls(server, authority_.pem.certificate));
  ExpectReason("expired");
  MeasureMisses("TLS: an expired certificate");
}

TEST_F(FleetTlsTest, APlainPortIsDown) {
  RedisServer server(Tcp());
  ASSERT_NO_FATAL_FAILURE(StartTls(server, authority_.pem.certificate));
  ExpectReason("the shared tier is down");
  MeasureMisses("TLS: a plain port");
}

TEST_F(FleetTlsTest, APlainConnectionToATlsPortIsDown) {
  const CertificateDir pair(authority_.Server("IP:127.0.0.1"),
                            authority_.pem.certificate);
  RedisServer server(Tls(pair.path()));
  for (int i = 0; i < 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(
        StartReplica({absl::StrCat("redis://127.0.0.1:", server.port())}));
  }
  ExpectReason("the shared tier is down");
  MeasureMisses("a plain connection to a TLS port");
}

TEST_F(FleetTlsTest, AServerThatWantsACertificateIsDownUntilThePairIsThere) {
  const CertificateDir pair(authority_.Server("IP:127.0.0.1"),
                            authority_.pem.certificate);
  RedisServer server(Tls(pair.path(), true));
  ASSERT_NO_FATAL_FAILURE(StartTls(server, authority_.pem.certificate));
  ExpectReason("the shared tier is down");
  MeasureMisses("TLS: a server that asks for the pair");
  const Pem client = authority_.Server("DNS:client");
  WriteFile(tls_dir_ + "/tls.key", client.key);
  WriteFile(tls_dir_ + "/tls.crt", client.certificate);
  EXPECT_TRUE(AllShare());
}

}  // namespace
}  // namespace fncache::testing
