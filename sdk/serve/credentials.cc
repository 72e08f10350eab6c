// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/credentials.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/tls_contexts.h"
#include "common/tls_files.h"
#include "grpc/grpc.h"
#include "grpc/grpc_security.h"

namespace fncache::sdk::serve {
namespace {

void LogWarnings(const TlsFiles& files) {
  for (const std::string& warning : files.warnings) {
    Log(LogLevel::kWarning, warning);
  }
}

// gRPC's class for C++ has no credentials that ask for certificates, its
// library for C has.
class Credentials final : public grpc::ServerCredentials {
 public:
  Credentials(std::string dir, absl::Duration read_again, TlsFiles files)
      : dir_(std::move(dir)),
        read_again_(read_again),
        asks_(!files.ca.empty()),
        files_(std::move(files)),
        read_(absl::Now()) {
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            asks_ ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                  : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            &Credentials::Fetch, this));
  }
  ~Credentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // Called before the first handshake and at each. If it returns new files,
  // gRPC makes a context of them next, on this thread.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<Credentials*>(self)->Fetch(config);
  }
  grpc_ssl_certificate_config_reload_status Fetch(
      grpc_ssl_server_certificate_config** config) {
    MutexLock lock(&mutex_);
    if (used_ && !Replaced())
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    used_ = true;
    const grpc_ssl_pem_key_cert_pair pair = {files_.key.c_str(),
                                             files_.certificate.c_str()};
    // gRPC needs authorities, also if no caller is asked for a certificate.
    const std::string& ca = asks_ ? files_.ca : files_.certificate;
    *config = grpc_ssl_server_certificate_config_create(ca.c_str(), &pair, 1);
    SetUpNextTlsContext();
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  // Reads the files if it is time to. True if they are others, and usable.
  bool Replaced() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::Time now = absl::Now();
    // A clock that was set back must not stop this.
    if (now >= read_ && now - read_ < read_again_) return false;
    read_ = now;
    absl::StatusOr<TlsFiles> files = ReadTlsFiles(dir_, TlsSide::kServer, now);
    if (files.ok() && asks_ == files->ca.empty()) {
      files = absl::FailedPreconditionError(
          absl::StrCat(dir_,
                       "/ca.crt: whether callers need a certificate is "
                       "decided at start"));
    }
    if (!files.ok()) {
      std::string why(files.status().message());
      if (why != refused_) {
        Log(LogLevel::kError,
            "cannot use the new certificates: the old ones stay",
            {{"error", why}});
      }
      refused_ = std::move(why);
      return false;
    }
    refused_.clear();
    if (*files == files_) return false;
    files_ = *std::move(files);
    LogWarnings(files_);
    Log(LogLevel::kInfo, "certificates replaced", {{"dir", dir_}});
    return true;
  }

  const std::string dir_;
  const absl::Duration read_again_;
  const bool asks_;  // callers for a certificate
  grpc_server_credentials* credentials_;
  Mutex mutex_;
  bool used_ ABSL_GUARDED_BY(mutex_) = false;
  TlsFiles files_ ABSL_GUARDED_BY(mutex_);
  absl::Time read_ ABSL_GUARDED_BY(mutex_);
  std::string refused_ ABSL_GUARDED_BY(mutex_);  // why, last
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsCredentials(
    const std::string& dir, absl::Duration read_again) {
  absl::StatusOr<TlsFiles> files =
      ReadTlsFiles(dir, TlsSide::kServer, absl::Now());
  if (!files.ok()) return files.status();
  LogWarnings(*files);
  return std::make_shared<Credentials>(dir, read_again, *std::move(files));
}

}  // namespace fncache::sdk::serve
