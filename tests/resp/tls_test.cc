// SPDX-License-Identifier: Apache-2.0
// The client with TLS, beside the daemon's own hook on TLS contexts.
#include <signal.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "common/tls_contexts.h"
#include "gtest/gtest.h"
#include "resp/client.h"
#include "tests/common/certificates.h"
#include "tests/resp/commands.h"
#include "tests/resp/redis_server.h"

namespace fncache::resp::testing {
namespace {

using fncache::testing::CertificateDir;
using fncache::testing::CertificateOptions;
using fncache::testing::MakeCertificate;
using fncache::testing::Pem;
using fncache::testing::TempDir;
using fncache::testing::WriteFile;

class ClientTlsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    SetUpTlsContexts();
    signal(SIGPIPE, SIG_IGN);  // as the daemon does
  }

  void SetUp() override {
    if (!RedisServer::HasTls()) GTEST_SKIP() << "the server has no TLS";
  }

  ClientTlsTest() {
    CertificateOptions options;
    options.authority = true;
    options.subject = {{"CN", "authority"}};
    options.key_identifiers = true;
    authority_ = MakeCertificate(options, nullptr);
  }

  std::unique_ptr<CertificateDir> Dir(
      const std::string& alt_names = "DNS:localhost,IP:127.0.0.1") {
    CertificateOptions options;
    options.alt_names = alt_names;
    return Dir(options);
  }
  std::unique_ptr<CertificateDir> Dir(const CertificateOptions& options) {
    return std::make_unique<CertificateDir>(
        MakeCertificate(options, &authority_), authority_.certificate);
  }

  static RedisOptions WithTls(const CertificateDir& dir) {
    RedisOptions options;
    options.tcp = true;
    options.tls_dir = dir.path();
    return options;
  }

  // A directory with an authority and without a pair.
  std::string TrustOnly(const Pem& authority) {
    WriteFile(trust_.File("ca.crt"), authority.certificate);
    return trust_.path();
  }

  static std::unique_ptr<Client> ClientOf(const Endpoint& endpoint,
                                          const std::string& tls_dir,
                                          const std::string& name = "") {
    ClientOptions options;
    options.endpoint = endpoint;
    options.tls_dir = tls_dir;
    options.server_name = name;
    options.connections = 2;
    return Client::Create(std::move(options));
  }

  // The reason for which such a client is down.
  static std::string WhyDown(const Endpoint& endpoint,
                             const std::string& tls_dir,
                             const std::string& name = "") {
    const auto client = ClientOf(endpoint, tls_dir, name);
    EXPECT_TRUE(GoesDown(*client));
    return client->NodeOf("").why;
  }

  Pem authority_;
  TempDir trust_;
};

TEST_F(ClientTlsTest, CommandsRun) {
  const auto dir = Dir();
  const RedisServer server(WithTls(*dir));
  const auto client = ClientOf(server.endpoint(), TrustOnly(authority_));
  ASSERT_TRUE(ComesUp(*client)) << client->NodeOf("").why;
  const std::string value(300'000, 'v');
  EXPECT_EQ(Ask(*client, {"SET", "a", value}).outcome, Outcome::kReply);
  EXPECT_EQ(Ask(*client, {"GET", "a"}, kLong, true, 1 << 20).reply.text, value);
}

TEST_F(ClientTlsTest, TheNameIsVerified) {
  const auto dir = Dir("DNS:redis.test");
  const RedisServer server(WithTls(*dir));
  const std::string trust = TrustOnly(authority_);
  // The endpoint's host, an address that the certificate does not have.
  std::string why = WhyDown(server.endpoint(), trust);
  EXPECT_TRUE(absl::StrContains(why, "127.0.0.1")) << why;
  why = WhyDown(server.endpoint(), trust, "other.test");
  EXPECT_TRUE(absl::StrContains(why, "other.test")) << why;
  const auto client = ClientOf(server.endpoint(), trust, "redis.test");
  EXPECT_TRUE(ComesUp(*client)) << client->NodeOf("").why;
}

TEST_F(ClientTlsTest, AnUnknownAuthorityIsRefused) {
  const auto dir = Dir();
  const RedisServer server(WithTls(*dir));
  CertificateOptions options;
  options.authority = true;
  options.subject = {{"CN", "another"}};
  std::string why =
      WhyDown(server.endpoint(), TrustOnly(MakeCertificate(options, nullptr)));
  EXPECT_TRUE(absl::StrContains(why, "certificate")) << why;
  // The system's authorities do not have it either.
  why = WhyDown(server.endpoint(), "");
  EXPECT_TRUE(absl::StrContains(why, "certificate")) << why;
}

TEST_F(ClientTlsTest, AnExpiredCertificateIsRefused) {
  CertificateOptions options;
  options.until = absl::Now() - absl::Minutes(5);
  const auto dir = Dir(options);
  const RedisServer server(WithTls(*dir));
  const std::string why = WhyDown(server.endpoint(), TrustOnly(authority_));
  EXPECT_TRUE(absl::StrContains(why, "expired")) << why;
}

TEST_F(ClientTlsTest, APlainPortIsNoTls) {
  RedisOptions options;
  options.tcp = true;
  const RedisServer server(options);
  Endpoint endpoint = server.endpoint();
  endpoint.tls = true;
  const std::string why = WhyDown(endpoint, TrustOnly(authority_));
  EXPECT_FALSE(why.empty());
}

TEST_F(ClientTlsTest, ATlsPortIsNotPlain) {
  const auto dir = Dir();
  const RedisServer server(WithTls(*dir));
  Endpoint endpoint = server.endpoint();
  endpoint.tls = false;
  EXPECT_FALSE(WhyDown(endpoint, "").empty());
}

TEST_F(ClientTlsTest, AServerThatWantsThePairGetsIt) {
  const auto dir = Dir();
  RedisOptions options = WithTls(*dir);
  options.tls_clients = true;
  const RedisServer server(options);
  const std::string why = WhyDown(server.endpoint(), TrustOnly(authority_));
  EXPECT_TRUE(absl::StrContains(why, "certificate required")) << why;
  const auto client = ClientOf(server.endpoint(), dir->path());
  EXPECT_TRUE(ComesUp(*client)) << client->NodeOf("").why;
}

TEST_F(ClientTlsTest, FilesAreReadAtEachConnection) {
  const auto dir = Dir();
  const RedisServer server(WithTls(*dir));
  const auto client = ClientOf(server.endpoint(), trust_.path());
  ASSERT_TRUE(GoesDown(*client));
  TrustOnly(authority_);
  EXPECT_TRUE(ComesUp(*client));
}

TEST_F(ClientTlsTest, AStoppedServerIsFoundAndComesBack) {
  const auto dir = Dir();
  RedisServer server(WithTls(*dir));
  const auto client = ClientOf(server.endpoint(), TrustOnly(authority_));
  ASSERT_TRUE(ComesUp(*client));
  server.Stop();
  EXPECT_TRUE(GoesDown(*client));
  server.Continue();
  EXPECT_TRUE(ComesUp(*client));
}

TEST_F(ClientTlsTest, NodesThatAnnounceAddressesAreVerifiedAsTheUrlsHost) {
  const auto dir = Dir("DNS:localhost");
  RedisCluster cluster(3, WithTls(*dir));
  Endpoint endpoint = cluster.node(0).endpoint();
  endpoint.host = "localhost";
  const auto client = ClientOf(endpoint, TrustOnly(authority_));
  ASSERT_TRUE(ComesUp(*client)) << client->NodeOf("").why;
  // The endpoint, and three nodes by address.
  EXPECT_TRUE(Eventually([&] {
    for (const char* key : {"a", "b", "c"}) LookUp(*client, key);
    return client->figures().nodes.size() == 4;
  }));
  EXPECT_TRUE(AllUp(*client, 4));
}

TEST_F(ClientTlsTest, NodesThatAnnounceNamesAreVerifiedAsThese) {
  for (const bool has_name : {true, false}) {
    const auto dir =
        Dir(has_name ? "IP:127.0.0.1,DNS:node.test" : "IP:127.0.0.1");
    RedisOptions options = WithTls(*dir);
    options.arguments = {"--cluster-announce-hostname", "node.test"};
    RedisCluster cluster(3, options);
    const auto client =
        ClientOf(cluster.node(0).endpoint(), TrustOnly(authority_));
    ASSERT_TRUE(ComesUp(*client)) << client->NodeOf("").why;
    // The endpoint by its own name, and three nodes by theirs.
    EXPECT_TRUE(Eventually([&] {
      for (const char* key : {"a", "b", "c"}) LookUp(*client, key);
      return client->figures().nodes.size() == 4;
    }));
    if (has_name) {
      EXPECT_TRUE(AllUp(*client, 4));
    } else {
      EXPECT_TRUE(GoesDown(*client, "a"));
      EXPECT_TRUE(Eventually([&] {
        return absl::StrContains(client->NodeOf("a").why, "node.test");
      })) << client->NodeOf("a").why;
    }
  }
}

}  // namespace
}  // namespace fncache::resp::testing
