// SPDX-License-Identifier: Apache-2.0
#include "runner/client/function_credentials.h"

#include <functional>
#include <utility>
#include <vector>

#include "common/handshake_failure.h"
#include "common/tls_contexts.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace fncache::runner::client {
namespace {

// gRPC's own check of the name, after the handshake; reports what it refuses.
class NameVerifier : public grpc::experimental::ExternalCertificateVerifier {
 public:
  using Request = grpc::experimental::TlsCustomVerificationCheckRequest;

  explicit NameVerifier(std::string setting) : setting_(std::move(setting)) {}

  bool Verify(Request* request, std::function<void(grpc::Status)> callback,
              grpc::Status* status) override {
    // The verifier of names answers at once, without the callback.
    const bool done = by_name_.Verify(request, std::move(callback), status);
    if (done && !status->ok()) {
      *status = grpc::Status(status->error_code(), Report(*request));
    }
    return done;
  }
  void Cancel(Request* request) override { by_name_.Cancel(request); }

 private:
  // Returns what is wrong.
  std::string Report(const Request& request) const {
    std::vector<std::string> names;
    for (const auto& all : {request.dns_names(), request.ip_names()}) {
      for (const grpc::string_ref& name : all) {
        names.emplace_back(name.data(), name.size());
      }
    }
    const grpc::string_ref called = request.target_name();
    const grpc::string_ref common_name = request.common_name();
    return ReportWrongName(
        {called.data(), called.size()}, setting_,
        CertificateText({common_name.data(), common_name.size()}, names));
  }

  const std::string setting_;
  grpc::experimental::HostNameCertificateVerifier by_name_;
};

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> FunctionCredentials(
    const TlsFiles& files, std::string name_setting) {
  SetUpTlsContexts();
  std::vector<grpc::experimental::IdentityKeyCertPair> pairs;
  if (!files.certificate.empty()) {
    pairs.push_back({files.key, files.certificate});
  }
  const bool identity = !pairs.empty();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
          files.ca, pairs));
  options.watch_root_certs();
  if (identity) options.watch_identity_key_cert_pairs();
#ifndef __clang_analyzer__  // which takes gRPC's taking over for a leak
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<NameVerifier>(
          std::move(name_setting)));
#endif
  options.set_check_call_host(false);
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace fncache::runner::client
