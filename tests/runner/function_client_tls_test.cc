// FunctionClient and FunctionServer over TLS.
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/handshake_failure.h"
#include "common/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runner/function_client.h"
#include "runner/function_server.h"
#include "runner/template_responder.h"
#include "tests/common/certificates.h"

namespace fncache::runner {
namespace {

using ::fncache::testing::CertificateDir;
using ::fncache::testing::CertificateOptions;
using ::fncache::testing::CrossplaneAuthority;
using ::fncache::testing::CrossplaneClient;
using ::fncache::testing::CrossplaneServer;
using ::fncache::testing::MakeCertificate;
using ::fncache::testing::Pem;
using ::testing::HasSubstr;

// Far beyond what anything here takes, on any machine.
constexpr absl::Duration kPatience = absl::Minutes(2);

Pem Make(const std::string& name, const Pem* issuer) {
  return MakeCertificate(name, issuer, absl::Now() - absl::Hours(1),
                         absl::Now() + absl::Hours(10));
}

// What comes of one call of "fn".
absl::Status Call(FunctionClient* client, absl::Duration patience = kPatience) {
  apiextensions::fn::proto::v1::RunFunctionRequest request;
  request.mutable_meta()->set_tag("t");
  Mutex mutex;
  CondVar ended;
  absl::optional<absl::Status> status;
  client->Call("fn", request, absl::Now() + patience, [&](CallResult result) {
    MutexLock lock(&mutex);
    status = result.status;
    ended.Signal();
  });
  MutexLock lock(&mutex);
  while (!status.has_value()) ended.Wait(&mutex);
  return *status;
}

// Starts a function with `server` in front of a client with `client`, each with
// its ca.crt, and calls it once.
absl::Status CallThroughTls(const CertificateDir& server,
                            const CertificateDir& client,
                            absl::Duration patience = absl::Seconds(20)) {
  const TemplateResponder responder{{}};
  FunctionServerOptions server_options;
  server_options.listen = "127.0.0.1:0";
  server_options.tls_dir = server.path();
  const auto function = FunctionServer::Start(server_options, &responder);
  if (!function.ok()) return function.status();
  const std::string& address = (*function)->address();
  FunctionClientOptions options;
  options.functions = {{"fn", "localhost" + address.substr(address.find(':'))}};
  options.tls_dir = client.path();
  const auto made = FunctionClient::Create(options);
  if (!made.ok()) return made.status();
  return Call(made->get(), patience);
}

TEST(FunctionClientTlsTest, CrossplanesCertificatesAreAcceptedOnBothSides) {
  const Pem authority = MakeCertificate(CrossplaneAuthority(), nullptr);
  const Pem other = MakeCertificate(CrossplaneAuthority(), nullptr);
  const Pem server = MakeCertificate(CrossplaneServer(), &authority);
  const Pem client = MakeCertificate(CrossplaneClient(), &authority);
  for (const std::string& ca :
       {authority.certificate, authority.certificate + other.certificate,
        other.certificate + authority.certificate}) {
    EXPECT_EQ(CallThroughTls({server, ca}, {client, ca}), absl::OkStatus());
  }
}

TEST(FunctionClientTlsTest, BadCertificatesOfCrossplanesShapeAreRefused) {
  const auto authority = CrossplaneAuthority();
  const auto server = CrossplaneServer();
  const auto client = CrossplaneClient();
  const Pem ours = MakeCertificate(authority, nullptr);
  const Pem other = MakeCertificate(authority, nullptr);
  const Pem good_server = MakeCertificate(server, &ours);
  const Pem good_client = MakeCertificate(client, &ours);
  const auto refused = [&ours](const Pem& shown_by_server,
                               const Pem& shown_by_client) {
    return CallThroughTls({shown_by_server, ours.certificate},
                          {shown_by_client, ours.certificate},
                          absl::Milliseconds(300))
               .code() == absl::StatusCode::kDeadlineExceeded;
  };
  EXPECT_TRUE(refused(MakeCertificate(server, &other), good_client));
  EXPECT_TRUE(refused(MakeCertificate(server, nullptr), good_client));
  EXPECT_TRUE(refused(MakeCertificate(client, &ours), good_client));
  EXPECT_TRUE(refused(good_server, MakeCertificate(client, &other)));
  EXPECT_TRUE(refused(good_server, MakeCertificate(client, nullptr)));
  EXPECT_TRUE(refused(good_server, MakeCertificate(server, &ours)));
}

TEST(FunctionClientTlsTest, FunctionOfAnotherNameIsRefusedAndReported) {
  const Pem authority = MakeCertificate(CrossplaneAuthority(), nullptr);
  CertificateOptions options = CrossplaneServer();
  options.alt_names = "DNS:elsewhere";
  Mutex mutex;
  std::vector<HandshakeFailure> failures;
  const HandshakeObserver observer([&](const HandshakeFailure& failure) {
    MutexLock lock(&mutex);
    failures.push_back(failure);
  });
  const absl::Status status = CallThroughTls(
      CertificateDir(MakeCertificate(options, &authority),
                     authority.certificate),
      CertificateDir(MakeCertificate(CrossplaneClient(), &authority),
                     authority.certificate),
      absl::Milliseconds(500));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  MutexLock lock(&mutex);
  ASSERT_FALSE(failures.empty());
  EXPECT_EQ(failures[0].fault, HandshakeFault::kWrongName);
  EXPECT_EQ(failures[0].words,
            "the function's certificate is not for localhost");
  EXPECT_THAT(failures[0].certificate, HasSubstr("elsewhere"));
}

TEST(FunctionClientTlsTest, BothSidesShowTheirCertificates) {
  const Pem ca = Make("ca", nullptr);
  const Pem other_ca = Make("other ca", nullptr);
  const CertificateDir server_files(Make("localhost", &ca), ca.certificate);
  const CertificateDir ours(Make("runner", &ca), ca.certificate);
  const CertificateDir strangers(Make("runner", &other_ca), ca.certificate);
  const CertificateDir doubtful(Make("runner", &ca), other_ca.certificate);
  const TemplateResponder responder{{}};
  FunctionServerOptions server_options;
  server_options.listen = "127.0.0.1:0";
  server_options.tls_dir = server_files.path();
  const auto server = FunctionServer::Start(server_options, &responder);
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string& address = (*server)->address();
  FunctionClientOptions options;
  options.functions = {{"fn", "localhost" + address.substr(address.find(':'))}};
  options.tls_dir = ours.path();
  auto client = FunctionClient::Create(options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(Call(client->get()), absl::OkStatus());
  for (const CertificateDir* files : {&strangers, &doubtful}) {
    options.tls_dir = files->path();
    client = FunctionClient::Create(options);
    ASSERT_TRUE(client.ok()) << client.status();
    EXPECT_EQ(Call(client->get(), absl::Milliseconds(300)).code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_EQ((*server)->counts().calls, 1u);
}

TEST(FunctionClientTlsTest, MissingCertificatesAreAnErrorThatNamesTheFile) {
  FunctionClientOptions options;
  options.tls_dir = "/nonexistent";
  EXPECT_THAT(std::string(FunctionClient::Create(options).status().message()),
              HasSubstr("/nonexistent/ca.crt"));
}

}  // namespace
}  // namespace fncache::runner
