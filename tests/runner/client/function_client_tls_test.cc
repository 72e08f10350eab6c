// SPDX-License-Identifier: Apache-2.0
// FunctionClient and a function of the SDK over TLS.
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/handshake_failure.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runner/client/function_client.h"
#include "tests/common/certificates.h"
#include "tests/common/handshake_failures.h"
#include "tests/runner/function/served.h"
#include "tests/runner/function_calls.h"

namespace fncache::runner::client {
namespace {

using ::fncache::testing::CertificateDir;
using ::fncache::testing::CertificateOptions;
using ::fncache::testing::CrossplaneAuthority;
using ::fncache::testing::CrossplaneClient;
using ::fncache::testing::CrossplaneServer;
using ::fncache::testing::HandshakeFailures;
using ::fncache::testing::MakeCertificate;
using ::fncache::testing::Pem;
using ::testing::HasSubstr;

Pem Make(const std::string& name, const Pem* issuer) {
  return MakeCertificate(name, issuer, absl::Now() - absl::Hours(1),
                         absl::Now() + absl::Hours(10));
}

// Calls `server` as localhost and returns the outcome.
absl::Status CallOf(const ::fncache::function::Server& server,
                    const CertificateDir& files, absl::Duration patience) {
  const std::string& address = server.address();
  FunctionClientOptions options;
  options.functions = {{"fn", "localhost" + address.substr(address.find(':'))}};
  options.tls_dir = files.path();
  const auto client = FunctionClient::Create(options);
  if (!client.ok()) return client.status();
  return Call(client->get(), absl::Now() + patience).status;
}

// The same with a function that is there for this call only.
absl::Status CallThroughTls(const CertificateDir& server,
                            const CertificateDir& client,
                            absl::Duration patience = absl::Seconds(20)) {
  const auto served =
      function::Serve(function::TemplateFunction({}), server.path());
  return CallOf(*served, client, patience);
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
  HandshakeFailures reported;
  const CertificateDir theirs(MakeCertificate(options, &authority),
                              authority.certificate);
  const CertificateDir ours(MakeCertificate(CrossplaneClient(), &authority),
                            authority.certificate);
  // A machine that stalls gets more time for a handshake.
  for (absl::Duration patience = absl::Milliseconds(500);
       reported.All().empty() && patience < absl::Minutes(1); patience *= 10) {
    EXPECT_EQ(CallThroughTls(theirs, ours, patience).code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  const std::vector<HandshakeFailure> failures = reported.All();
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
  std::atomic<int> calls{0};
  const auto server =
      function::Serve([&](::fncache::function::Context& /*ctx*/) { ++calls; },
                      server_files.path());
  EXPECT_EQ(CallOf(*server, ours, absl::Minutes(2)), absl::OkStatus());
  for (const CertificateDir* files : {&strangers, &doubtful}) {
    EXPECT_EQ(CallOf(*server, *files, absl::Milliseconds(300)).code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_EQ(calls, 1);
}

TEST(FunctionClientTlsTest, MissingCertificatesAreAnErrorThatNamesTheFile) {
  FunctionClientOptions options;
  options.tls_dir = "/nonexistent";
  EXPECT_THAT(std::string(FunctionClient::Create(options).status().message()),
              HasSubstr("/nonexistent/ca.crt"));
}

}  // namespace
}  // namespace fncache::runner::client
