// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/tls.h"

#include "absl/time/clock.h"
#include "common/function_credentials.h"
#include "common/log.h"
#include "common/tls_contexts.h"
#include "grpc/grpc.h"
#include "grpc/grpc_security.h"

namespace fncache::proxy::transport {
namespace {

grpc_ssl_server_certificate_config* MakeConfig(const TlsFiles& files) {
  const grpc_ssl_pem_key_cert_pair pair = {files.key.c_str(),
                                           files.certificate.c_str()};
  // gRPC insists on roots. Where callers are asked for no certificate, nothing
  // is ever checked against them.
  const std::string& roots = files.ca.empty() ? files.certificate : files.ca;
  return grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
}

// Server credentials that follow a watcher. gRPC's own reloading
// (TlsServerCredentials with a file watcher) takes up whatever lies there. The
// older interface asks before each handshake whether there is a newer
// certificate, and is answered here with checked ones only.
class Reloading {
 public:
  explicit Reloading(const TlsWatcher* watcher)
      : watcher_(watcher),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                watcher->files()->ca.empty()
                    ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                    : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY,
                &Fetch, this))) {}
  ~Reloading() { grpc_server_credentials_release(credentials_); }
  Reloading(const Reloading&) = delete;
  Reloading& operator=(const Reloading&) = delete;

  grpc_server_credentials* credentials() const { return credentials_; }

 private:
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<Reloading*>(self)->DoFetch(config);
  }

  grpc_ssl_certificate_config_reload_status DoFetch(
      grpc_ssl_server_certificate_config** config) {
    const uint64_t generation = watcher_->generation();
    if (given_.exchange(generation) == generation) {
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    *config = MakeConfig(*watcher_->files());
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const TlsWatcher* const watcher_;
  std::atomic<uint64_t> given_{0};
  grpc_server_credentials* const credentials_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TlsWatcher>> TlsWatcher::Create(
    std::string dir, TlsSide side, Notice notice, absl::Duration interval) {
  absl::StatusOr<TlsFiles> files = ReadTlsFiles(dir, side, absl::Now());
  if (!files.ok()) return files.status();
  for (const std::string& warning : files->warnings) {
    Log(LogLevel::kWarning, warning);
  }
  return std::unique_ptr<TlsWatcher>(new TlsWatcher(
      std::move(dir), side, std::move(notice), interval, *std::move(files)));
}

TlsWatcher::TlsWatcher(std::string dir, TlsSide side, Notice notice,
                       absl::Duration interval, TlsFiles files)
    : dir_(std::move(dir)),
      side_(side),
      notice_(std::move(notice)),
      interval_(interval),
      files_(std::make_shared<const TlsFiles>(std::move(files))),
      thread_([this] { Run(); }) {}

TlsWatcher::~TlsWatcher() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    stopped_.Signal();
  }
  thread_.join();
}

std::shared_ptr<const TlsFiles> TlsWatcher::files() const {
  MutexLock lock(&mutex_);
  return files_;
}

void TlsWatcher::Run() {
  for (;;) {
    {
      MutexLock lock(&mutex_);
      const absl::Time until = absl::Now() + interval_;
      while (!stop_ && absl::Now() < until) {
        stopped_.WaitWithTimeout(&mutex_, until - absl::Now());
      }
      if (stop_) return;
    }
    Check();
  }
}

void TlsWatcher::Check() {
  absl::StatusOr<TlsFiles> read = ReadTlsFiles(dir_, side_, absl::Now());
  const std::shared_ptr<const TlsFiles> current = files();
  std::string error;
  if (!read.ok()) {
    error = std::string(read.status().message());
  } else if (*read == *current) {
    last_error_.clear();
    return;
  } else if (side_ == TlsSide::kServer &&
             read->ca.empty() != current->ca.empty()) {
    // gRPC fixes at start whether callers need a certificate.
    error = dir_ + (read->ca.empty() ? "/ca.crt has gone" : "/ca.crt is new") +
            ": that needs a restart";
  }
  if (!error.empty()) {
    // An error is logged when it changes, not at every look at the files.
    if (error == last_error_) return;
    last_error_ = error;
    Log(LogLevel::kError, "certificates not taken up, the old ones stay in use",
        {{"dir", dir_}, {"error", error}});
    if (notice_ != nullptr) notice_(false);
    return;
  }
  last_error_.clear();
  for (const std::string& warning : read->warnings) {
    Log(LogLevel::kWarning, warning);
  }
  {
    MutexLock lock(&mutex_);
    files_ = std::make_shared<const TlsFiles>(*std::move(read));
  }
  generation_.fetch_add(1, std::memory_order_release);
  Log(LogLevel::kInfo, "certificates replaced", {{"dir", dir_}});
  if (notice_ != nullptr) notice_(true);
}

std::shared_ptr<grpc_server_credentials> ServerTls::Credentials() {
  SetUpTlsContexts();
  auto reloading = std::make_shared<Reloading>(watcher_.get());
  grpc_server_credentials* const credentials = reloading->credentials();
  return {reloading, credentials};
}

std::shared_ptr<grpc::ChannelCredentials> ClientTls::Credentials() {
  return FunctionCredentials(*watcher_->files(), "upstream_server_name");
}

}  // namespace fncache::proxy::transport
