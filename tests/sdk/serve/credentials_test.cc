// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/credentials.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "common/tls_contexts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/certificates.h"
#include "tests/common/eventually.h"
#include "tests/common/tls_handshake.h"
#include "tests/sdk/serve/serving.h"

namespace fncache::sdk::serve {
namespace {

using testing::CertificateDir;
using testing::FreeTls;
using ::testing::HasSubstr;
using testing::MakeCertificate;
using testing::Pem;
using testing::TlsContext;

struct Files {
  Pem authority = MakeCertificate(testing::CrossplaneAuthority(), nullptr);
  Pem server = MakeCertificate(testing::CrossplaneServer(), &authority);
  Pem client = MakeCertificate(testing::CrossplaneClient(), &authority);
};
const Files& One() {
  static const auto* const files = new Files;
  return *files;
}
const Files& Other() {
  static const auto* const files = new Files;
  return *files;
}

// Whether a client with these files gets HTTP/2's first frame from the server.
// Its context is ours, so that it accepts Crossplane's certificates.
bool Accepted(const std::string& address, const Pem* identity,
              const std::string& ca) {
  SetUpNextTlsContext();
  const TlsContext context =
      testing::MakeTlsContext(TlsSide::kClient, identity, ca, 0);
  const size_t colon = address.rfind(':');
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(colon + 1), &port));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(port));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  const std::unique_ptr<SSL, FreeTls> ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), fd);
  char byte = 0;
  const bool accepted =
      SSL_connect(ssl.get()) == 1 && SSL_read(ssl.get(), &byte, 1) == 1;
  ERR_clear_error();
  close(fd);
  return accepted;
}

class CredentialsTest : public ::testing::Test, public Serving {
 protected:
  void StartWith(const CertificateDir& dir) {
    options.insecure = false;
    options.tls_certs_dir = dir.path();
    Start();
  }
};

TEST_F(CredentialsTest, CrossplanesCertificatesAreAccepted) {
  const CertificateDir dir(One().server, One().authority.certificate);
  StartWith(dir);
  EXPECT_TRUE(
      Accepted(server->address(), &One().client, One().authority.certificate));
}

TEST_F(CredentialsTest, CallersOfAnotherAuthorityAreRefused) {
  const CertificateDir dir(One().server, One().authority.certificate);
  StartWith(dir);
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(Accepted(server->address(), &Other().client,
                        One().authority.certificate));
  EXPECT_FALSE(
      Accepted(server->address(), nullptr, One().authority.certificate));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("TLS handshake with a caller failed: "));
}

TEST_F(CredentialsTest, WithoutAuthorityCallersNeedNoCertificate) {
  const CertificateDir dir(One().server, "");
  StartWith(dir);
  EXPECT_TRUE(
      Accepted(server->address(), nullptr, One().authority.certificate));
}

TEST_F(CredentialsTest, ContextsOfTheHostProcessStayAsTheyAre) {
  const CertificateDir dir(One().server, One().authority.certificate);
  StartWith(dir);
  ASSERT_TRUE(
      Accepted(server->address(), &One().client, One().authority.certificate));
  // OpenSSL itself accepts no certificate of Crossplane's, and gives tickets.
  const TlsContext ours = testing::MakeTlsContext(
      TlsSide::kServer, &One().server, One().authority.certificate);
  const TlsContext theirs = testing::MakeTlsContext(
      TlsSide::kClient, &One().client, One().authority.certificate);
  EXPECT_FALSE(testing::ShakeHands(ours.get(), theirs.get()).client);
  const Pem authority = MakeCertificate(
      "a", nullptr, absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(1));
  const Pem leaf =
      MakeCertificate("b", &authority, absl::Now() - absl::Hours(1),
                      absl::Now() + absl::Hours(1));
  const TlsContext plain = testing::MakeTlsContext(TlsSide::kServer, &leaf, "");
  const TlsContext client =
      testing::MakeTlsContext(TlsSide::kClient, nullptr, authority.certificate);
  const auto made = testing::ShakeHands(plain.get(), client.get());
  EXPECT_TRUE(made.client);
  EXPECT_GT(made.tickets, 0);
}

TEST_F(CredentialsTest, CallsArriveOverTls) {
  const absl::Time from = absl::Now() - absl::Hours(1);
  const absl::Time until = absl::Now() + absl::Hours(1);
  const Pem authority = MakeCertificate("authority", nullptr, from, until);
  const Pem leaf = MakeCertificate("function", &authority, from, until);
  const Pem caller = MakeCertificate("runner", &authority, from, until);
  const CertificateDir dir(leaf, authority.certificate);
  StartWith(dir);
  grpc::SslCredentialsOptions credentials;
  credentials.pem_root_certs = authority.certificate;
  credentials.pem_private_key = caller.key;
  credentials.pem_cert_chain = caller.certificate;
  channel = Connect(server->address(), grpc::SslCredentials(credentials));
  stub = v1::FunctionRunnerService::NewStub(channel);
  const grpc::Status status = Call(Tagged("tls"));
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.meta().tag(), "tls");
}

TEST_F(CredentialsTest, InsecureWinsOverCertificates) {
  const CertificateDir dir(One().server, One().authority.certificate);
  options.tls_certs_dir = dir.path();
  Start();
  EXPECT_TRUE(Call().ok());
}

TEST_F(CredentialsTest, MissingFilesAreNamed) {
  options.insecure = false;
  options.tls_certs_dir = "/nonexistent";
  EXPECT_THAT(
      std::string(function::Server::Start(options, Nothing).status().message()),
      HasSubstr("/nonexistent/tls.crt"));
}

// A server of these credentials alone, which reads the files at each handshake.
class ReplacedFilesTest : public ::testing::Test {
 protected:
  ReplacedFilesTest() {
    auto credentials = TlsCredentials(dir_.path(), absl::ZeroDuration());
    EXPECT_TRUE(credentials.ok()) << credentials.status();
    credentials_ = *std::move(credentials);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", credentials_, &port);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~ReplacedFilesTest() override { server_->Shutdown(); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_.path() + "/" + name) << text;
  }

  const CertificateDir dir_{One().server, One().authority.certificate};
  grpc::CallbackGenericService service_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(ReplacedFilesTest, NewFilesApplyToNewConnections) {
  EXPECT_TRUE(Accepted(address_, &One().client, One().authority.certificate));
  EXPECT_FALSE(
      Accepted(address_, &Other().client, Other().authority.certificate));
  Write("tls.crt", Other().server.certificate);
  Write("tls.key", Other().server.key);
  Write("ca.crt", Other().authority.certificate);
  EXPECT_TRUE(
      Accepted(address_, &Other().client, Other().authority.certificate));
  EXPECT_FALSE(Accepted(address_, &One().client, One().authority.certificate));
}

TEST_F(ReplacedFilesTest, FilesThatDoNotFitAreIgnoredAndReportedOnce) {
  ::testing::internal::CaptureStderr();
  Write("tls.crt", Other().server.certificate);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Accepted(address_, &One().client, One().authority.certificate));
  }
  Write("tls.crt", One().server.certificate);
  unlink((dir_.path() + "/ca.crt").c_str());
  EXPECT_TRUE(Accepted(address_, &One().client, One().authority.certificate));
  EXPECT_FALSE(Accepted(address_, nullptr, One().authority.certificate));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("is not the key of the certificate"));
  EXPECT_THAT(log, HasSubstr("decided at start"));
  size_t lines = 0;
  for (size_t at = 0;
       (at = log.find("the old ones stay", at)) != std::string::npos; ++at) {
    ++lines;
  }
  EXPECT_EQ(lines, 2u);
}

}  // namespace
}  // namespace fncache::sdk::serve
