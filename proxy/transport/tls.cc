// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/tls.h"

#include "absl/time/clock.h"
#include "common/log.h"
#include "common/tls_context.h"
#include "common/tls_contexts.h"

namespace fncache::proxy::transport {

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
    // Log an error only when it changes, not at every poll of the files.
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
    // A reader that finds the new files finds their generation, too.
    generation_.fetch_add(1, std::memory_order_release);
  }
  Log(LogLevel::kInfo, "certificates replaced", {{"dir", dir_}});
  if (notice_ != nullptr) notice_(true);
}

TlsSource::TlsSource(std::unique_ptr<TlsWatcher> watcher, TlsSide side)
    : watcher_(std::move(watcher)), side_(side) {}

TlsSource::~TlsSource() = default;

SSL* TlsSource::New() {
  MutexLock lock(&mutex_);
  const uint64_t generation = watcher_->generation();
  if (context_ == nullptr || generation_ != generation) {
    auto made = MakeTlsContext(*watcher_->files(), side_);
    if (made.ok()) {
      context_ = *std::move(made);
      generation_ = generation;
    } else {
      // The files were checked before, so this is an error of OpenSSL.
      Log(LogLevel::kError, "no TLS",
          {{"error", std::string(made.status().message())}});
    }
  }
  return context_ == nullptr ? nullptr : SSL_new(context_.get());
}

SSL* ClientTls::NewSsl(const std::string& name) {
  SSL* const ssl = source_.New();
  if (ssl != nullptr && !IsIpAddress(name)) {
    SSL_set_tlsext_host_name(ssl, name.c_str());
  }
  return ssl;
}

std::string CheckFunctionName(SSL* ssl, const std::string& name) {
  return CheckPeerName(ssl, name, "upstream_server_name");
}

std::string ExplainHandshake(SSL* ssl) { return HandshakeWords(ssl); }

}  // namespace fncache::proxy::transport
