// SPDX-License-Identifier: Apache-2.0
#include "proxy/shared_tier.h"

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cache/store/seal.h"
#include "common/file.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/status.h"
#include "common/tls_files.h"
#include "resp/url.h"

namespace fncache::proxy {
namespace {

using cache::store::Seal;

constexpr size_t kMostBytes = 64 << 10;
// Three threads that look up, the writer, the record of bans, and one more, as
// a connection that is closed takes a moment to be replaced.
constexpr int kConnections = 6;

// Sets `out` to the content without one final newline, or leaves it.
absl::Status ReadSecret(const std::string& path, std::string* out) {
  absl::StatusOr<std::string> content = ReadSmallFile(path, kMostBytes);
  if (!content.ok()) return content.status();
  if (absl::EndsWith(*content, "\n")) content->pop_back();
  out->swap(*content);
  return absl::OkStatus();
}

// The login of the moment. Thread-safe.
class Password {
 public:
  Password(std::string username, std::string path, std::string password)
      : path_(std::move(path)),
        login_{std::move(username), std::move(password)} {}

  resp::Login Read() {
    MutexLock lock(&mutex_);
    const absl::Status read = ReadSecret(path_, &login_.password);
    if (!read.ok() && !failed_) {
      Log(LogLevel::kWarning,
          "cannot read the password of the shared tier: the last one stays",
          {{"why", read.message()}});
    }
    failed_ = !read.ok();
    return login_;
  }

 private:
  const std::string path_;
  Mutex mutex_;
  resp::Login login_ ABSL_GUARDED_BY(mutex_);
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<SharedTier> ReadSharedTier(
    const settings::SharedOptions& options) {
  SharedTier tier;
  absl::StatusOr<resp::Endpoint> endpoint = resp::ParseUrl(options.url);
  if (!endpoint.ok()) return Prefixed("shared.url", endpoint.status());
  tier.client.endpoint = *std::move(endpoint);
  absl::Status status = ReadSecret(options.secret_file, &tier.secret);
  if (!status.ok()) return Prefixed("shared.secret_file", status);
  if (tier.secret.size() < Seal::kMinSecret) {
    return absl::OutOfRangeError(absl::StrCat(
        options.secret_file, " is too short; accepted: a file of at least ",
        Seal::kMinSecret, " bytes without a final newline"));
  }
  if (!options.password_file.empty()) {
    std::string password;
    status = ReadSecret(options.password_file, &password);
    if (!status.ok()) return Prefixed("shared.password_file", status);
    const auto login = std::make_shared<Password>(
        options.username, options.password_file, std::move(password));
    tier.client.login = [login] { return absl::make_optional(login->Read()); };
  }
  if (!options.tls_dir.empty()) {
    absl::StatusOr<TlsFiles> files =
        ReadTlsFiles(options.tls_dir, TlsSide::kClient, absl::Now());
    if (!files.ok()) return Prefixed("shared.tls_dir", files.status());
    for (const std::string& warning : files->warnings) {
      tier.warnings.push_back(absl::StrCat("shared.tls_dir: ", warning));
    }
  }
  tier.client.tls_dir = options.tls_dir;
  tier.client.server_name = options.server_name;
  tier.client.connections = kConnections;
  tier.client.probe = {"EVAL", "return 1", "1",
                       absl::StrCat(options.prefix, ":1:probe")};
  return tier;
}

}  // namespace fncache::proxy
