// SPDX-License-Identifier: Apache-2.0
#include "common/tls_contexts.h"

#include <openssl/bio.h>
#include <openssl/err.h>

#include <string>
#include <vector>

#include "common/handshake_failure.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/certificates.h"
#include "tests/common/handshake_failures.h"
#include "tests/common/tls_handshake.h"

namespace fncache {
namespace {

using testing::FreeTls;
using testing::Handshake;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MakeCertificate;
using testing::MakeTlsContext;
using testing::Pem;
using testing::ShakeHands;
using ::testing::SizeIs;
using testing::TlsContext;

// Every test with both versions of TLS. The contexts are made as gRPC makes its
// own: no code passes them to SetUpTlsContexts.
class TlsContextsTest : public ::testing::TestWithParam<int> {
 protected:
  struct Files {
    Pem authority = MakeCertificate(testing::CrossplaneAuthority(), nullptr);
    Pem server = MakeCertificate(testing::CrossplaneServer(), &authority);
    Pem client = MakeCertificate(testing::CrossplaneClient(), &authority);
    Pem other_authority =
        MakeCertificate(testing::CrossplaneAuthority(), nullptr);
    Pem other_client =
        MakeCertificate(testing::CrossplaneClient(), &other_authority);
  };
  static const Files& files() {
    static const auto* const files = new Files;
    return *files;
  }

  TlsContextsTest() { SetUpTlsContexts(); }

  // The side that is ours, with Crossplane's files, and a peer.
  TlsContext Server() const {
    return MakeTlsContext(TlsSide::kServer, &files().server,
                          files().authority.certificate, GetParam());
  }
  TlsContext Client(
      const Pem* identity = &files().client,
      const std::string& ca = files().authority.certificate) const {
    return MakeTlsContext(TlsSide::kClient, identity, ca, GetParam());
  }

  std::vector<HandshakeFailure> Failures() { return failures_.All(); }

  testing::HandshakeFailures failures_;
};

INSTANTIATE_TEST_SUITE_P(Versions, TlsContextsTest,
                         ::testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         [](const auto& info) {
                           return info.param == TLS1_2_VERSION ? "Tls12"
                                                               : "Tls13";
                         });

TEST_P(TlsContextsTest, BothSidesAcceptCrossplanes) {
  const Handshake made = ShakeHands(Server().get(), Client().get());
  EXPECT_TRUE(made.server);
  EXPECT_TRUE(made.client);
  EXPECT_THAT(Failures(), IsEmpty());
}

TEST_P(TlsContextsTest, NothingIsResumed) {
  const TlsContext server = Server();
  const TlsContext client = Client();
  const Handshake first = ShakeHands(server.get(), client.get());
  ASSERT_TRUE(first.server);
  EXPECT_EQ(first.tickets, 0);
  // A client that tries all the same.
  ASSERT_NE(first.session, nullptr);
  const Handshake second =
      ShakeHands(server.get(), client.get(), first.session.get());
  EXPECT_TRUE(second.server);
  EXPECT_TRUE(second.client);
  EXPECT_FALSE(second.resumed);
}

TEST_P(TlsContextsTest, RefusedCallerIsReportedOnce) {
  const Handshake made =
      ShakeHands(Server().get(), Client(&files().other_client).get());
  EXPECT_FALSE(made.server);
  EXPECT_FALSE(made.client);
  // Both sides are ours here: one refuses, the other gets the alert.
  const auto failures = Failures();
  ASSERT_THAT(failures, SizeIs(2));
  EXPECT_EQ(failures[0].side, TlsSide::kServer);
  EXPECT_EQ(failures[0].fault, HandshakeFault::kUnknownAuthority);
  EXPECT_THAT(failures[0].words,
              HasSubstr("another authority than that of the same name"));
  EXPECT_THAT(failures[0].certificate, HasSubstr("CN=Crossplane"));
  EXPECT_EQ(failures[1].side, TlsSide::kClient);
  EXPECT_EQ(failures[1].fault, HandshakeFault::kRefusedByPeer);
  EXPECT_THAT(failures[1].words,
              HasSubstr("the function does not accept our certificate"));
}

TEST_P(TlsContextsTest, RefusedFunctionIsReportedOnce) {
  const TlsContext client =
      Client(&files().client, files().other_authority.certificate);
  const Handshake made = ShakeHands(Server().get(), client.get());
  EXPECT_FALSE(made.server);
  EXPECT_FALSE(made.client);
  const auto failures = Failures();
  ASSERT_THAT(failures, SizeIs(2));
  EXPECT_EQ(failures[0].side, TlsSide::kClient);
  EXPECT_EQ(failures[0].fault, HandshakeFault::kUnknownAuthority);
  EXPECT_THAT(failures[0].words, HasSubstr("the function's certificate"));
  EXPECT_EQ(failures[1].side, TlsSide::kServer);
  EXPECT_EQ(failures[1].fault, HandshakeFault::kRefusedByPeer);
}

TEST_P(TlsContextsTest, CallerWithoutCertificateIsReported) {
  const Handshake made = ShakeHands(Server().get(), Client(nullptr).get());
  EXPECT_FALSE(made.server);
  const auto failures = Failures();
  ASSERT_THAT(failures, SizeIs(2));
  EXPECT_EQ(failures[0].side, TlsSide::kServer);
  EXPECT_EQ(failures[0].fault, HandshakeFault::kNoCertificate);
  // TLS 1.2 has no alert of its own for that.
  EXPECT_EQ(failures[1].side, TlsSide::kClient);
  EXPECT_EQ(failures[1].fault, GetParam() == TLS1_2_VERSION
                                   ? HandshakeFault::kProtocol
                                   : HandshakeFault::kRefusedByPeer);
  EXPECT_EQ(failures[1].words,
            GetParam() == TLS1_2_VERSION
                ? "the function ended the handshake: handshake failure; it may "
                  "want a certificate, and we have none"
                : "the function wants a certificate, and we have none (no "
                  "tls.crt): certificate required");
}

// gRPC limits its contexts to P-256, which in TLS 1.2 goes for certificates,
// too.
TEST_P(TlsContextsTest, CertificatesOfOtherCurvesAreAccepted) {
  testing::CertificateOptions options = testing::CrossplaneClient();
  options.rsa_bits = 0;
  options.curve = "P-384";
  const Pem caller = MakeCertificate(options, &files().authority);
  const TlsContext server = Server();
  ASSERT_EQ(SSL_CTX_set1_groups_list(server.get(), "P-256"), 1);
  const Handshake made = ShakeHands(server.get(), Client(&caller).get());
  EXPECT_TRUE(made.server);
  EXPECT_TRUE(made.client);
  EXPECT_THAT(Failures(), IsEmpty());
}

TEST_P(TlsContextsTest, NoVersionInCommonIsReported) {
  const int other =
      GetParam() == TLS1_2_VERSION ? TLS1_3_VERSION : TLS1_2_VERSION;
  const TlsContext client = MakeTlsContext(
      TlsSide::kClient, &files().client, files().authority.certificate, other);
  EXPECT_FALSE(ShakeHands(Server().get(), client.get()).server);
  const auto failures = Failures();
  ASSERT_THAT(failures, SizeIs(2));
  EXPECT_EQ(failures[0].fault, HandshakeFault::kProtocol);
  EXPECT_EQ(failures[1].fault, HandshakeFault::kProtocol);
}

// A side that gets these bytes from its peer.
void Feed(SSL_CTX* context, TlsSide side, const std::string& bytes) {
  const std::unique_ptr<SSL, FreeTls> ssl(SSL_new(context));
  BIO* ours = nullptr;
  BIO* theirs = nullptr;
  ASSERT_EQ(BIO_new_bio_pair(&ours, 0, &theirs, 0), 1);
  SSL_set_bio(ssl.get(), ours, ours);
  if (side == TlsSide::kServer) {
    SSL_set_accept_state(ssl.get());
  } else {
    SSL_set_connect_state(ssl.get());
  }
  ASSERT_EQ(BIO_write(theirs, bytes.data(), bytes.size()),
            static_cast<int>(bytes.size()));
  EXPECT_NE(SSL_do_handshake(ssl.get()), 1);
  EXPECT_NE(SSL_do_handshake(ssl.get()), 1);
  ERR_clear_error();
  BIO_free(theirs);
}

TEST_P(TlsContextsTest, PlaintextIsReported) {
  const TlsContext server = Server();
  const TlsContext client = Client();
  for (const char* request :
       {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
        "POST /x HTTP/1.1\r\n\r\n"}) {
    Feed(server.get(), TlsSide::kServer, request);
  }
  // SETTINGS of a server of gRPC; an answer of one of HTTP/1.
  Feed(client.get(), TlsSide::kClient,
       std::string("\0\0\x6\4\0\0\0\0\0\0\5\0\0\x40\0", 15));
  Feed(client.get(), TlsSide::kClient, "HTTP/1.1 400 Bad Request\r\n\r\n");
  const auto failures = Failures();
  ASSERT_THAT(failures, SizeIs(5));
  for (size_t i = 0; i < failures.size(); ++i) {
    EXPECT_EQ(failures[i].fault, HandshakeFault::kPlaintext) << i;
    EXPECT_EQ(failures[i].side, i < 3 ? TlsSide::kServer : TlsSide::kClient);
    EXPECT_THAT(failures[i].words, HasSubstr("plaintext"));
  }
}

TEST_P(TlsContextsTest, GarbageIsReported) {
  const TlsContext server = Server();
  Feed(server.get(), TlsSide::kServer, std::string(64, '\xff'));
  Feed(server.get(), TlsSide::kServer,
       std::string("\x16\3\1\0\5hello", 10));  // a record, but no message
  const auto failures = Failures();
  ASSERT_THAT(failures, SizeIs(2));
  EXPECT_EQ(failures[0].fault, HandshakeFault::kProtocol);
  EXPECT_EQ(failures[1].fault, HandshakeFault::kProtocol);
}

TEST_P(TlsContextsTest, PeerWithoutHttp2IsReported) {
  const TlsContext server = Server();
  const TlsContext client = Client();
  ASSERT_EQ(SSL_CTX_set_alpn_protos(client.get(), nullptr, 0), 0);
  ShakeHands(server.get(), client.get());
  // To each side the other one does not speak it.
  const auto failures = Failures();
  ASSERT_THAT(failures, SizeIs(2));
  for (const HandshakeFailure& failure : failures) {
    EXPECT_EQ(failure.fault, HandshakeFault::kProtocol);
    EXPECT_THAT(failure.words, HasSubstr("HTTP/2 over TLS (ALPN)"));
  }
}

TEST_P(TlsContextsTest, SilentPeerIsNoFailure) {
  Feed(Server().get(), TlsSide::kServer, "");
  EXPECT_THAT(Failures(), IsEmpty());
}

}  // namespace
}  // namespace fncache
