// SPDX-License-Identifier: Apache-2.0
// TLS with certificates that may be replaced while the daemon runs.
//
// A watcher per directory reads the files every few seconds (a Kubernetes
// Secret is a directory of symlinks that is swapped, so file events would tell
// little), checks them as at start, and only then uses them: a bad pair keeps
// the old one. Connections that exist live on; new handshakes use the new
// files.
//
// ServerTls and ClientTls are thread-safe. They outlive the servers and
// channels that use their credentials.
#ifndef FNCACHE_PROXY_TRANSPORT_TLS_H_
#define FNCACHE_PROXY_TRANSPORT_TLS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "common/tls_files.h"
#include "grpc/grpc_security.h"
#include "grpcpp/security/credentials.h"

namespace fncache::proxy::transport {

// Keeps the files of one directory up to date.
class TlsWatcher {
 public:
  // Is told of each attempt to take up changed files; on the watcher's thread.
  using Notice = std::function<void(bool taken_up)>;

  // Fails as ReadTlsFiles does.
  static absl::StatusOr<std::unique_ptr<TlsWatcher>> Create(
      std::string dir, TlsSide side, Notice notice = nullptr,
      absl::Duration interval = absl::Seconds(2));
  ~TlsWatcher();
  TlsWatcher(const TlsWatcher&) = delete;
  TlsWatcher& operator=(const TlsWatcher&) = delete;

  std::shared_ptr<const TlsFiles> files() const;
  // Grows with each change of files().
  uint64_t generation() const {
    return generation_.load(std::memory_order_acquire);
  }
  // When the first certificate in use ends.
  absl::Time expiry() const { return files()->earliest_expiry; }

 private:
  TlsWatcher(std::string dir, TlsSide side, Notice notice,
             absl::Duration interval, TlsFiles files);
  void Run();
  void Check();

  const std::string dir_;
  const TlsSide side_;
  const Notice notice_;
  const absl::Duration interval_;
  std::string last_error_;  // the watcher's thread only
  std::atomic<uint64_t> generation_{1};
  mutable Mutex mutex_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const TlsFiles> files_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// The listeners' side. Where the directory has a ca.crt, callers need a
// certificate of that authority.
class ServerTls {
 public:
  explicit ServerTls(std::unique_ptr<TlsWatcher> watcher)
      : watcher_(std::move(watcher)) {}

  // Credentials for one listener, following the files.
  std::shared_ptr<grpc_server_credentials> Credentials();

 private:
  const std::unique_ptr<TlsWatcher> watcher_;
};

// The upstream side. A channel keeps the certificates of the time at which it
// was made: make a new one when generation() has changed.
class ClientTls {
 public:
  explicit ClientTls(std::unique_ptr<TlsWatcher> watcher)
      : watcher_(std::move(watcher)) {}

  std::shared_ptr<grpc::ChannelCredentials> Credentials();
  uint64_t generation() const { return watcher_->generation(); }

 private:
  const std::unique_ptr<TlsWatcher> watcher_;
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_TLS_H_
