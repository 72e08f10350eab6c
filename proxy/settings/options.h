// SPDX-License-Identifier: Apache-2.0
// The daemon's options, as plain data. They are made from settings (flags,
// environment, YAML), and the daemon is built from them.
//
// Names, defaults, ranges and help of the settings are in
// proxy/settings/settings.cc. They follow DESIGN's "The command line is a
// contract".
#ifndef FNCACHE_PROXY_SETTINGS_OPTIONS_H_
#define FNCACHE_PROXY_SETTINGS_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "cache/key/mask.h"
#include "cache/policy.h"
#include "common/log.h"
#include "insight/trace/traced_call.h"
#include "proxy/telemetry/access_log_options.h"

namespace fncache::proxy::settings {

// Bytes of the longest generation, in settings and in purges. The most bans of
// generations (cache/store/bans.h) must fit into the file that is read back,
// because a larger file bans everything.
inline constexpr size_t kMaxGenerationBytes = 1024;

// One function behind the proxy.
struct FunctionOptions {
  std::string name = "function";
  // HOST:PORT, or a unix socket (CheckListen). Port 0 takes a free port.
  std::string listen = "0.0.0.0:9443";
  // Any gRPC target.
  std::string upstream;
  // A component of every key; may be empty if no tier outlives the process. The
  // setting's value `none` is the text "none" here.
  std::string generation;
  cache::PolicyOptions policy;
  cache::key::KeySource key = cache::key::KeySource::kContent;
  cache::key::KeyHash key_hash = cache::key::KeyHash::kXxh3;
  // None with KeySource::kTag.
  cache::key::MaskSet masks;
  // Lower-case request metadata keys that make a call a bypass, besides
  // `authorization`.
  std::vector<std::string> bypass_metadata;
  // True: requests without an observed composite are treated like all others.
  // False: they are bypasses.
  bool cache_operations = false;
  // True: entries answer across drift once the function has shown that it does
  // not read it. Not with KeySource::kTag.
  bool tune = false;
  // Questions that each run for a caller adds to the budget. [0, 1]
  double tune_share = 0.1;

  // True: keys follow what responses say that they depend on. Not with
  // KeySource::kTag.
  bool vary = false;

  bool varies() const { return vary && policy.mode != cache::Mode::kOff; }
  // Tuning works: not where nothing is served from the cache.
  bool tunes() const { return tune && policy.mode == cache::Mode::kOn; }
};

// The shared tier (docs/fleets.md).
struct SharedOptions {
  // redis://HOST:PORT, rediss://HOST:PORT or unix:PATH; empty = no shared tier.
  std::string url;
  std::string secret_file;
  std::string username;
  std::string password_file;
  std::string tls_dir;
  std::string server_name;
  std::string prefix = "fncache";
  absl::Duration timeout = absl::Milliseconds(50);
  uint64_t max_entry_bytes = 1 << 20;
};

struct DaemonOptions {
  // At least one; names and listen addresses distinct.
  std::vector<FunctionOptions> functions;
  // Certificates of the listeners; absent = plaintext (--insecure).
  absl::optional<std::string> tls_dir;
  // Certificates for the upstream side; absent = plaintext.
  absl::optional<std::string> upstream_tls_dir;
  // The name that the function's certificate must have; empty = the target's
  // host.
  std::string upstream_server_name;
  // Admin endpoint HOST:PORT; empty = none.
  std::string admin = "127.0.0.1:9901";
  // Path of the admin socket; empty = none, absent = a default path
  // (proxy/admin/start.h).
  absl::optional<std::string> admin_socket;
  // Absent = memory only.
  absl::optional<std::string> cache_dir;
  uint64_t cache_memory = 256ull << 20;
  uint64_t cache_disk = 4ull << 30;
  // Not with cache_dir.
  SharedOptions shared;
  absl::Duration drain = absl::Seconds(25);
  absl::Duration drain_delay = absl::ZeroDuration();
  // Empty = no trace.
  std::string trace_dir;
  insight::trace::Level trace_level = insight::trace::Level::kPaths;
  uint64_t trace_file_size = 64ull << 20;
  int trace_files = 8;
  double trace_sample = 1;
  // 0 = misses are not explained.
  uint64_t explain_memory = 16ull << 20;
  // Threads that serve calls; 0 = as many as cores may be used, at most 8.
  int workers = 0;
  // The limit of bytes that all calls in progress may use together.
  uint64_t inflight_bytes = 256ull << 20;
  uint64_t max_request_bytes = 256ull << 20;
  uint64_t max_response_bytes = 256ull << 20;
  uint64_t max_metadata_bytes = 64ull << 10;
  int max_streams = 1024;
  int max_connections = 4096;
  // Zero = no limit, for both.
  absl::Duration idle_timeout = absl::Hours(1);
  absl::Duration max_connection_age = absl::ZeroDuration();
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  telemetry::AccessLogOptions access_log;
};

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_OPTIONS_H_
