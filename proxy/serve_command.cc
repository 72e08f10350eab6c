// SPDX-License-Identifier: Apache-2.0
#include "proxy/serve_command.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cache/store/seal.h"
#include "common/huge_heap.h"
#include "common/log.h"
#include "common/standard_streams.h"
#include "common/status.h"
#include "common/threads.h"
#include "common/tls_files.h"
#include "common/utf8.h"
#include "common/version.h"
#include "proxy/admin/server.h"
#include "proxy/serve.h"
#include "proxy/settings/check.h"
#include "proxy/settings/flags.h"
#include "proxy/settings/help.h"
#include "proxy/settings/settings.h"
#include "proxy/settings/source.h"
#include "proxy/shared_check.h"
#include "proxy/shared_tier.h"

namespace fncache::proxy {
namespace {

// Exit code: the settings are valid, but a resource that they need is not
// available: a file, a port, a directory.
constexpr int kUnavailable = 1;
// Exit code: the settings are not valid.
constexpr int kUsage = 2;

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "fncache serve: %s\n",
               Printable(status.message()).c_str());
  return code;
}

std::map<std::string, std::string> Environment() {
  std::map<std::string, std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const absl::string_view text = *variable;
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos) continue;
    // If a variable is set twice, the first one counts, as for getenv.
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::vector<std::string> NamesOf(
    const std::map<std::string, std::string>& variables) {
  std::vector<std::string> names;
  for (const auto& [name, value] : variables) names.push_back(name);
  return names;
}

// The most threads that the daemon has at once. These are workers and their
// assistants (one for each core), threads of the admin endpoint and the lower
// tier, one that stops each listener, and a few that watch files and signals.
int Threads(const settings::DaemonOptions& options) {
  constexpr int kAdmin = 66;
  constexpr int kRest = 16;
  const int cores =
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  // Threads that look up, write and keep the record, and one for each node of a
  // Cluster of ten.
  const int shared = options.shared.url.empty() ? 0 : 16;
  const bool socket = options.admin_socket != std::string();
  return GrpcThreads() + 2 * cores + (options.admin.empty() ? 0 : kAdmin) +
         (socket ? admin::kServerThreads : 0) +
         static_cast<int>(options.functions.size()) + shared + kRest;
}

// Uses one heap for all threads. By default the C library gives each thread its
// own heap. Memory that one thread's entries leave free there is useless to
// other threads: with traffic that moves between threads a full memory tier
// took two and a half times its limit. One heap costs no measurable CPU time.
//
// The heap also keeps some free memory. By default the C library returns the
// end of the heap as soon as 128 KiB of it are free, which a few messages are.
// Then each call fetched its pages again: 12 pages, a tenth of the CPU time,
// for a message of 130 KB. For the same reason messages of that size have no
// mappings of their own. HeapKeeper returns memory that a burst of calls leaves
// free. With 64 messages of 1 MB at once the kept memory is most of their
// memory: a hit with 16 MiB kept cost three times as much as with 64.
//
// A large heap uses huge pages. The memory tier calls FollowHeap for that.
void TuneHeap() {
#ifdef M_ARENA_MAX
  // An operator who sets these variables has reasons, so they are left alone.
  if (std::getenv("MALLOC_ARENA_MAX") == nullptr) mallopt(M_ARENA_MAX, 1);
  if (std::getenv("MALLOC_TRIM_THRESHOLD_") == nullptr) {
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
  }
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") == nullptr) {
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
  }
#endif
  UseHugeHeap();
}

void LogStart(const std::string& commit) {
  std::vector<LogField> fields = {{"version", Version()}};
  if (!commit.empty()) fields.push_back({"commit", commit});
  LogBeforeTheNext("starting fncache", fields);
}

// Checks that the certificates that the settings name exist and are valid.
absl::Status CheckCertificates(bool check, settings::ServeOptions* options) {
  const struct {
    const absl::optional<std::string>& dir;
    const char* key;
    TlsSide side;
  } kSides[] = {
      {options->daemon.tls_dir, "tls_dir", TlsSide::kServer},
      {options->daemon.upstream_tls_dir, "upstream_tls_dir", TlsSide::kClient},
  };
  for (const auto& side : kSides) {
    if (!side.dir.has_value()) continue;
    const absl::StatusOr<TlsFiles> files =
        ReadTlsFiles(*side.dir, side.side, absl::Now());
    if (!files.ok()) {
      return Prefixed(side.key, files.status());
    }
    if (side.side == TlsSide::kServer && files->ca.empty()) {
      settings::WarnOfTags("without ca.crt", options);
    }
    if (!check) continue;  // a start reads them again, and warns then
    for (const std::string& warning : files->warnings) {
      options->warnings.push_back(absl::StrCat(side.key, ": ", warning));
    }
  }
  return absl::OkStatus();
}

// Reads the files of the shared tier, if there is one. Returns the exit code if
// they are not good, else 0.
int ReadSharedFiles(bool check, settings::EffectiveSettings* effective,
                    SharedTier* tier) {
  settings::ServeOptions* const options = &effective->options;
  if (options->daemon.shared.url.empty()) return 0;
  absl::StatusOr<SharedTier> read = ReadSharedTier(options->daemon.shared);
  if (absl::IsOutOfRange(read.status())) {
    return Fail(SettingError(effective->resolved.top.at("shared.secret_file"),
                             read.status().message()),
                kUsage);
  }
  if (!read.ok()) return Fail(read.status(), kUnavailable);
  if (check) {  // a start reads them again, and warns then
    options->warnings.insert(options->warnings.end(), read->warnings.begin(),
                             read->warnings.end());
  }
  *tier = *std::move(read);
  return 0;
}

// Prints what --check-shared finds. Returns the exit code.
int TryShared(const std::string& prefix, SharedTier tier) {
  const std::unique_ptr<resp::Client> client =
      resp::Client::Create(std::move(tier.client));
  const absl::StatusOr<SharedReport> report =
      CheckShared(prefix, cache::store::Seal(tier.secret, prefix).NameOfBans(),
                  client.get());
  if (!report.ok()) {
    return Fail(Prefixed("shared.url", report.status()), kUnavailable);
  }
  for (const std::string& warning : report->warnings) {
    Log(LogLevel::kWarning, warning);
  }
  return PrintResult("fncache serve", report->text);
}

}  // namespace

int ServeMain(int argc, char** argv, const std::string& commit) {
  const absl::StatusOr<settings::ServeFlags> flags = settings::ParseServeFlags(
      std::vector<std::string>(argv + 1, argv + argc));
  if (!flags.ok()) return Fail(flags.status(), kUsage);
  if (flags->help) return PrintResult("fncache serve", settings::ServeHelp());

  std::map<std::string, std::string> environment = Environment();
  const std::vector<std::string> mistyped =
      settings::MistypedVariables(NamesOf(environment));
  const bool by_flag = !flags->config.empty();
  const std::string file =
      by_flag ? flags->config.front() : environment["FNCACHE_CONFIG"];
  const settings::SettingsSource source(flags->settings, std::move(environment),
                                        file);
  std::string text;
  if (by_flag || !file.empty()) {
    absl::StatusOr<std::string> read = source.ReadFile();
    if (!read.ok()) {
      return Fail(
          Prefixed(by_flag ? "--config" : "FNCACHE_CONFIG", read.status()),
          kUnavailable);
    }
    text = *std::move(read);
  }
  absl::StatusOr<settings::EffectiveSettings> effective = source.Resolve(text);
  if (!effective.ok()) {
    const int code = Fail(effective.status(), kUsage);
    // A mistyped variable may be the cause.
    for (const std::string& line : mistyped) {
      Fail(absl::InvalidArgumentError(line), kUsage);
    }
    return code;
  }
  settings::ServeOptions* const options = &effective->options;
  const bool check = flags->check || flags->check_shared;
  if (flags->check_shared && options->daemon.shared.url.empty()) {
    return Fail(
        absl::InvalidArgumentError("shared.url: is needed with --check-shared"),
        kUsage);
  }
  const absl::Status certificates = CheckCertificates(check, options);
  if (!certificates.ok()) return Fail(certificates, kUnavailable);
  SharedTier shared;
  if (const int code = ReadSharedFiles(check, &*effective, &shared)) {
    return code;
  }

  InitLogging(options->daemon.log_level, options->daemon.log_format);
  if (!check) LogStart(commit);
  for (const std::string& line : mistyped) Log(LogLevel::kWarning, line);
  for (const std::string& warning : options->warnings) {
    Log(LogLevel::kWarning, warning);
  }
  if (check) {
    const int code = PrintResult(
        "fncache serve", absl::StrCat(SettingsAsYaml(settings::ServeSettings(),
                                                     effective->resolved),
                                      settings::ReloadNotes()));
    if (code != 0 || !flags->check_shared) return code;
    return TryShared(options->daemon.shared.prefix, std::move(shared));
  }
  TuneHeap();
  const absl::Status threads = CheckThreads(Threads(options->daemon));
  if (!threads.ok()) return Fail(threads, kUnavailable);
  const absl::Status served =
      Serve(std::move(options->daemon),
            {source, std::move(effective->resolved), std::move(text),
             std::move(options->warnings)});
  return served.ok() ? 0 : Fail(served, kUnavailable);
}

}  // namespace fncache::proxy
