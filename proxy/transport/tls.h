// SPDX-License-Identifier: Apache-2.0
// TLS with certificates that may be replaced while the daemon runs.
//
// A watcher per directory reads the files every few seconds. (A Kubernetes
// Secret is a directory of symlinks that is swapped, so file events would say
// little.) It checks new files as at start. If they are bad, the old ones stay
// in use. Existing connections stay open; new handshakes use the new files.
//
// ServerTls and ClientTls are thread-safe. They outlive the listeners and
// upstreams that use them.
#ifndef FNCACHE_PROXY_TRANSPORT_TLS_H_
#define FNCACHE_PROXY_TRANSPORT_TLS_H_

#include <openssl/ssl.h>

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
#include "common/openssl_owned.h"
#include "common/tls_files.h"

namespace fncache::proxy::transport {

// Keeps the files of one directory up to date.
class TlsWatcher {
 public:
  // Called at each attempt to take up changed files, on the watcher's thread.
  using Notice = std::function<void(bool taken_up)>;

  // Returns the errors of ReadTlsFiles.
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

// Makes TLS sessions from the newest files of a watcher, for one side.
class TlsSource {
 public:
  TlsSource(std::unique_ptr<TlsWatcher> watcher, TlsSide side);
  ~TlsSource();
  TlsSource(const TlsSource&) = delete;
  TlsSource& operator=(const TlsSource&) = delete;

  // A session for a new connection; null if OpenSSL has no memory.
  SSL* New();
  // Grows with each change of the files.
  uint64_t generation() const { return watcher_->generation(); }

 private:
  const std::unique_ptr<TlsWatcher> watcher_;
  const TlsSide side_;
  Mutex mutex_;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  Owned<SSL_CTX> context_ ABSL_GUARDED_BY(mutex_);
};

// The listeners' side. If the directory has a ca.crt, callers need a
// certificate of that authority.
class ServerTls {
 public:
  explicit ServerTls(std::unique_ptr<TlsWatcher> watcher)
      : source_(std::move(watcher), TlsSide::kServer) {}
  SSL* NewSsl() { return source_.New(); }

 private:
  TlsSource source_;
};

// The upstream side.
class ClientTls {
 public:
  explicit ClientTls(std::unique_ptr<TlsWatcher> watcher)
      : source_(std::move(watcher), TlsSide::kClient) {}
  // A session for a connection to a function of this name.
  SSL* NewSsl(const std::string& name);
  // A connection keeps the certificates that it was made with. When this number
  // has changed, new connections are needed.
  uint64_t generation() const { return source_.generation(); }

 private:
  TlsSource source_;
};

// The error text if the function's certificate is not for this name; otherwise
// empty. An error is reported, too (common/handshake_failure.h).
std::string CheckFunctionName(SSL* ssl, const std::string& name);
// Why a handshake failed, if that was reported.
std::string ExplainHandshake(SSL* ssl);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_TLS_H_
