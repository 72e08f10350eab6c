// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/settings.h"

#include <functional>
#include <type_traits>
#include <utility>

#include "common/log_level.h"
#include "proxy/settings/address.h"
#include "proxy/settings/forms.h"

namespace fncache::proxy::settings {
namespace {

using Daemon = DaemonOptions;
using Function = FunctionOptions;
using Policy = cache::PolicyOptions;
using AccessLog = telemetry::AccessLogOptions;
using Shared = SharedOptions;

// Returns the struct that has a row's field.
Daemon& In(Daemon* options, Daemon*) { return *options; }
AccessLog& In(Daemon* options, AccessLog*) { return options->access_log; }
Shared& In(Daemon* options, Shared*) { return options->shared; }
Function& In(Function* options, Function*) { return *options; }
Policy& In(Function* options, Policy*) { return options->policy; }

template <typename Owner>
using OptionsOf = std::conditional_t<std::is_same_v<Owner, Daemon> ||
                                         std::is_same_v<Owner, AccessLog> ||
                                         std::is_same_v<Owner, Shared>,
                                     Daemon, Function>;

// Puts accepted texts into an option.
template <typename Options>
using Apply = std::function<absl::Status(const Texts&, Options*)>;

// The default is a text, or a note for people if there is none.
struct Unset {
  const char* note;
};
struct Default {
  Default(const char* text) : value(text) {}  // NOLINT: implicit in the rows
  Default(Unset unset) : note(unset.note) {}  // NOLINT: implicit in the rows

  absl::optional<std::string> value;
  std::string note;
};

// Whether another value takes effect while the daemon runs.
enum class Change { kLive, kRestart };
constexpr Change kLive = Change::kLive;
constexpr Change kRestart = Change::kRestart;

// One setting: key, form, target, default, change, help. The target is a field
// of the options, or a function that gets the value. The options' type is the
// scope: once for the process, or of each function.
class Row {
 public:
  template <typename T, typename Owner, typename Field>
  Row(const char* key, const Form<T>& form, Field Owner::*field, Default value,
      Change change, const char* help)
      : Row(key, form, std::move(value), change, help) {
    Bind<OptionsOf<Owner>>(form, [field](T read, OptionsOf<Owner>* options) {
      In(options, static_cast<Owner*>(nullptr)).*field = std::move(read);
    });
  }
  template <typename T, typename Options>
  Row(const char* key, const Form<T>& form, void (*target)(T, Options*),
      Default value, Change change, const char* help)
      : Row(key, form, std::move(value), change, help) {
    Bind<Options>(form, target);
  }

  // Sets the key in an entry of `functions:`.
  Row EntryKey(const char* key) const { return With(&Setting::entry_key, key); }
  // Sets the variable that replaces the default.
  Row Variable(const char* name) const {
    return With(&Setting::default_variable, name);
  }
  // Makes the setting one of a single function, without a default for all.
  Row OfOneFunction() const {
    return With(&Setting::scope, SettingScope::kFunction);
  }
  Row Grouped(const char* group) const { return With(&Setting::group, group); }

  const Setting& setting() const { return setting_; }
  // Null in rows of the other options.
  const Apply<Daemon>& apply(Daemon*) const { return to_daemon_; }
  const Apply<Function>& apply(Function*) const { return to_function_; }

 private:
  template <typename T>
  Row(const char* key, const Form<T>& form, Default value, Change change,
      const char* help) {
    setting_.key = key;
    setting_.kind = form.kind;
    setting_.metavar = form.metavar;
    setting_.default_value = std::move(value.value);
    setting_.default_note = std::move(value.note);
    setting_.accepted = form.accepted;
    setting_.help = help;
    setting_.reloads = change == kLive;
    setting_.explain = form.explain;
    // The table checks these itself.
    if (form.kind == Setting::Kind::kBool) return;
    setting_.check = [read = form.read](const Texts& texts) {
      T unused = {};
      return read(texts, &unused);
    };
  }

  template <typename Options, typename T, typename Target>
  void Bind(const Form<T>& form, Target target) {
    Apply<Options> apply = [read = form.read, target](const Texts& texts,
                                                      Options* options) {
      T value = {};
      absl::Status status = read(texts, &value);
      if (status.ok()) target(std::move(value), options);
      return status;
    };
    if constexpr (std::is_same_v<Options, Daemon>) {
      setting_.scope = SettingScope::kDaemon;
      to_daemon_ = std::move(apply);
    } else {
      setting_.scope = SettingScope::kBoth;
      to_function_ = std::move(apply);
    }
  }

  template <typename Field, typename Value>
  Row With(Field Setting::*field, Value value) const {
    Row row = *this;
    row.setting_.*field = value;
    return row;
  }

  Setting setting_;
  Apply<Daemon> to_daemon_;
  Apply<Function> to_function_;
};

// Targets that are no single field. The switch `insecure` has none: check.cc
// decides on it.
void NoField(bool, Daemon*) {}

// The row of log.access_format comes later and wins.
void SetLogFormat(LogFormat format, Daemon* options) {
  options->log_format = options->access_log.format = format;
}

void SetLoggedCalls(CallsToLog read, Daemon* options) {
  options->access_log.calls = read.calls;
  if (read.slow.has_value()) options->access_log.slow = *read.slow;
}

Form<LogFormat> FormatOfLog() {
  return OneOf<LogFormat>(
      "FORMAT", {{"text", LogFormat::kText}, {"json", LogFormat::kJson}});
}

std::vector<Row> FunctionRows() {
  return {
      Row("listen", Address(", unix:PATH or unix-abstract:NAME", &CheckListen),
          &Function::listen, "0.0.0.0:9443", kRestart,
          "Where callers of the function connect. Never shared with another "
          "process. A unix socket's file has the mode that the umask leaves, "
          "replaces a file on which no process listens, and is removed at the "
          "end.")
          .OfOneFunction(),
      Row("upstream", Target(), &Function::upstream,
          Unset{"none, it is needed"}, kRestart,
          "The function that calls go to.")
          .OfOneFunction(),
      Row("function", NotEmptyText("NAME"), &Function::name, "function",
          kRestart,
          "The function's name: the label function_name of its metrics. `name` "
          "in an entry of functions.")
          .EntryKey("name")
          .Variable("FUNCTION_NAME")
          .OfOneFunction(),
      Row("generation", TextOfAtMost(kMaxGenerationBytes),
          &Function::generation, Unset{"unset"}, kLive,
          "Which build of the function answers; another one starts with an "
          "empty cache. Needed with cache.dir and shared.url; `none` accepts "
          "answers of older "
          "builds.")
          .Variable("REVISION_NAME"),
  };
}

std::vector<Row> TlsRows() {
  return {
      Row("tls_dir",
          Directory("a directory with tls.crt and tls.key, and ca.crt if "
                    "callers need a certificate of it"),
          &Daemon::tls_dir, Unset{"none, this or insecure is needed"}, kRestart,
          "The listeners' certificates.")
          .Variable("TLS_SERVER_CERTS_DIR"),
      Row("insecure", Switch(), &NoField, "false", kRestart,
          "Listeners in plaintext. Beats $TLS_SERVER_CERTS_DIR; not beside "
          "tls_dir."),
      Row("upstream_tls_dir",
          Directory("a directory with ca.crt, and tls.crt and tls.key if the "
                    "function wants a certificate"),
          &Daemon::upstream_tls_dir, Unset{"unset (plaintext)"}, kRestart,
          "Certificates for calling the function."),
      Row("upstream_server_name", AnyText("NAME", "a name"),
          &Daemon::upstream_server_name, Unset{"unset (the target's host)"},
          kRestart, "The name that the function's certificate must carry."),
  };
}

std::vector<Row> CacheRows() {
  return {
      Row("cache.dir", Directory("a directory"), &Daemon::cache_dir,
          Unset{"unset (memory only)"}, kRestart,
          "Where entries outlive the process."),
      Row("cache.memory", Size("1KiB", absl::nullopt, "64MB, 256MiB or 256Mi"),
          &Daemon::cache_memory, "256MiB", kLive,
          "Bound of the memory tier, all overheads counted."),
      Row("cache.disk", Size("1MiB", absl::nullopt, "512MiB or 4GiB"),
          &Daemon::cache_disk, "4GiB", kLive, "Bound of the disk tier."),
  };
}

std::vector<Row> SharedRows() {
  const Form<std::string> file = AnyText("FILE", "a file");
  return {
      Row("shared.url", ServerUrl(), &Shared::url,
          Unset{"unset (no shared tier)"}, kRestart,
          "The Redis or Valkey server that gives all replicas one cache, in "
          "place of cache.dir. A Cluster is detected. Needs "
          "shared.secret_file, and a generation of each function."),
      Row("shared.secret_file", file, &Shared::secret_file,
          Unset{"none, it is needed with shared.url"}, kRestart,
          "The secret of the fleet, the same for all replicas: at least 32 "
          "bytes without a final newline. It makes keys, names and the seal of "
          "values. Another secret is another, empty cache."),
      Row("shared.username", AnyText("NAME", "a name"), &Shared::username,
          Unset{"unset (the server's default user)"}, kRestart,
          "The user at the server. Needs shared.password_file."),
      Row("shared.password_file", file, &Shared::password_file,
          Unset{"unset (no login)"}, kRestart,
          "The user's password, without a final newline. Each login reads the "
          "file again."),
      Row("shared.tls_dir",
          AnyText(
              "DIR",
              "a directory with ca.crt, and tls.crt and tls.key if the server "
              "wants a certificate"),
          &Shared::tls_dir, Unset{"unset (the system's authorities)"}, kRestart,
          "Certificates for the server, with a rediss:// URL. Each connection "
          "reads them again."),
      Row("shared.server_name", AnyText("NAME", "a name"), &Shared::server_name,
          Unset{"unset (the name that a node announces, else the URL's host)"},
          kRestart,
          "The name that the server's certificate must carry, with a rediss:// "
          "URL."),
      Row("shared.prefix", NamePrefix(), &Shared::prefix, "fncache", kRestart,
          "The start of every name at the server. Another prefix is another, "
          "empty cache."),
      Row("shared.timeout", DurationBetween("5ms", "1s", "50ms or 200ms"),
          &Shared::timeout, "50ms", kLive,
          "The whole time of a look-up, waiting for a thread included. A "
          "look-up that takes longer is a miss."),
      Row("shared.max_entry_bytes", Size("1KiB", "16MiB", "1MiB"),
          &Shared::max_entry_bytes, "1MiB", kLive,
          "Larger entries stay in memory."),
  };
}

// Limits for peers.
std::vector<Row> LimitRows() {
  return {
      Row("workers", Number(1, 64), &Daemon::workers,
          Unset{"as many as cores may be used, at most 8"}, kRestart,
          "Threads that serve calls, each with connections of its own."),
      Row("inflight.bytes", Size("1MiB", "1TiB", "512MiB"),
          &Daemon::inflight_bytes, "256MiB", kLive,
          "Memory for calls that have not ended, all functions together. "
          "Beyond it requests wait, and relayed calls are refused."),
      Row("max_request_bytes", Size("1KiB", "4095MiB", "64MiB"),
          &Daemon::max_request_bytes, "256MiB", kLive,
          "Larger requests of RunFunction, compressed or not, are refused with "
          "RESOURCE_EXHAUSTED."),
      Row("max_response_bytes", Size("1KiB", "4095MiB", "64MiB"),
          &Daemon::max_response_bytes, "256MiB", kLive,
          "Larger answers of RunFunction, compressed or not, become "
          "RESOURCE_EXHAUSTED."),
      Row("max_metadata_bytes", Size("4KiB", "128KiB", "16KiB"),
          &Daemon::max_metadata_bytes, "64KiB", kLive,
          "Metadata of one call, in either direction: names, values and 32 for "
          "each field. Beyond it the call fails. A single name or value beyond "
          "64 KiB, as it is sent, ends its connection."),
      Row("max_streams", Number(1, 1'000'000), &Daemon::max_streams, "1024",
          kLive,
          "Calls at once on one connection. Callers get this number in the "
          "HTTP/2 settings."),
      Row("max_connections", Number(1, 1'000'000), &Daemon::max_connections,
          "4096", kLive,
          "Connections to one listener; the newest beyond it are closed."),
      Row("idle_timeout", DurationOrNone("10m"), &Daemon::idle_timeout, "1h",
          kLive, "A connection without a call for this time gets a GOAWAY."),
      Row("max_connection_age", DurationOrNone("1h"),
          &Daemon::max_connection_age, "0s", kLive,
          "A connection of this age gets a GOAWAY when its calls have ended, "
          "so that callers spread over replicas."),
  };
}

std::vector<Row> OperationRows() {
  using insight::trace::Level;
  return {
      Row("admin", AddressOrNone(), &Daemon::admin, "127.0.0.1:9901", kRestart,
          "Where /metrics, /healthz, /readyz and /statusz are served; / is an "
          "index of them."),
      Row("admin_socket", SocketPath(), &Daemon::admin_socket,
          Unset{"DIR/admin.sock beside cache.dir, else the first that can be "
                "made of $XDG_RUNTIME_DIR/fncache/admin.sock, "
                "/run/fncache/admin.sock and /tmp/fncache-UID/admin.sock"},
          kRestart,
          "The unix socket of fncache admin, mode 0600: a user who may open it "
          "may purge, reload and read the state."),
      Row("drain", DurationFromZero(), &Daemon::drain, "25s", kRestart,
          "How long SIGTERM lets calls in flight finish."),
      Row("drain_delay", DurationFromZero(), &Daemon::drain_delay, "0s",
          kRestart,
          "How long before that it still accepts calls, but is not ready."),
      Row("trace.dir", AnyText("DIR", "a directory"), &Daemon::trace_dir,
          Unset{"unset (no trace)"}, kLive,
          "Where calls are traced, for fncache explain."),
      Row("trace.level",
          OneOf<Level>("LEVEL", {{"keys", Level::kKeys},
                                 {"paths", Level::kPaths},
                                 {"full", Level::kFull}}),
          &Daemon::trace_level, "paths", kLive,
          "Content of a trace. keys: keys and times. paths: also what changed "
          "in the request, without values. full: also the messages, secrets "
          "redacted."),
      Row("trace.file_size", Size("64KiB", "1GiB", "8MiB or 64MiB"),
          &Daemon::trace_file_size, "64MiB", kLive,
          "Bound of one file of the trace."),
      Row("trace.files", Number(2), &Daemon::trace_files, "8", kLive,
          "Files of the trace that are kept; the oldest go first."),
      Row("trace.sample", Sample(), &Daemon::trace_sample, "1", kLive,
          "The fraction of composites that are traced, each with all its "
          "calls."),
      Row("explain.memory", ZeroOr(Size("1MiB", "64GiB", "64MiB")),
          &Daemon::explain_memory, "16MiB", kRestart,
          "Memory in which requests that missed are remembered, without their "
          "values, to say why the next ones miss; 0 = none, and no reasons."),
      Row("log.level",
          OneOf<LogLevel>("LEVEL",
                          {std::begin(kLogLevels), std::end(kLogLevels)}),
          &Daemon::log_level, "info", kLive,
          "Lines of this level and above go to stderr."),
      Row("log.format", FormatOfLog(), &SetLogFormat, "text", kLive,
          "Lines for people, or a JSON object a line."),
      Row("log.access", LoggedCalls(), &SetLoggedCalls, "off", kLive,
          "Which calls of RunFunction have a line in the access log: none, "
          "those that were not answered from the cache, all, or those that "
          "took at least this time."),
      Row("log.access_format", FormatOfLog(), &AccessLog::format,
          Unset{"that of log.format"}, kLive, "The form of these lines."),
      Row("log.access_sample", Sample(), &AccessLog::sample, "1", kLive,
          "The fraction of these calls that have a line, chosen at random."),
      Row("log.access_file", AnyText("FILE", "a file"), &AccessLog::file,
          Unset{"unset (stderr)"}, kLive,
          "Where the lines go. A file is appended to, and reopened on "
          "SIGUSR1."),
  };
}

std::vector<Row> PolicyRows() {
  using cache::Mode;
  using cache::StoreSecrets;
  using cache::key::KeyHash;
  using cache::key::KeySource;
  const Form<absl::Duration> longer = DurationFromZero("30s, 10m or 1h30m");
  return {
      Row("mode",
          OneOf<Mode>("MODE", {{"on", Mode::kOn},
                               {"off", Mode::kOff},
                               {"shadow", Mode::kShadow}}),
          &Policy::mode, "on", kLive,
          "on: answer from the cache. off: be a pure proxy. shadow: call the "
          "function every time, and compare its answer with the one of the "
          "cache."),
      Row("ttl.max", DurationFromZero(), &Policy::ttl_max, "24h", kLive,
          "No entry lives longer, and ttl.min may not be larger; 0 = no "
          "bound."),
      Row("ttl.override", DurationAboveZero(), &Policy::ttl_override,
          Unset{"unset"}, kLive,
          "Lifetime of each entry, instead of the function's TTL; ttl.min and "
          "ttl.max bound it, too."),
      Row("ttl.default", DurationFromZero(), &Policy::ttl_default,
          Unset{"unset"}, kLive,
          "Lifetime of an entry whose response has no TTL."),
      Row("ttl.min", DurationFromZero(), &Policy::ttl_min, Unset{"unset"},
          kLive, "Least lifetime of each response that is stored."),
      Row("ttl.jitter", Fraction(), &Policy::ttl_jitter, "0", kLive,
          "Largest fraction by which each lifetime is shortened at random."),
      Row("ttl.margin", Fraction(), &Policy::ttl_margin, "0.1", kLive,
          "The last fraction of a lifetime, in which an entry is not served, "
          "so that a requeue does not find the entry that caused it."),
      Row("requeue_ttl", RequeueTtl(), &Policy::requeue_ttl, "remaining", kLive,
          "The TTL that the runner gets, if the function gave one."),
      Row("store_fatal", Switch(), &Policy::store_fatal, "false", kLive,
          "Store responses that contain a FATAL result."),
      Row("store_secrets",
          OneOf<StoreSecrets>("TIERS", {{"memory", StoreSecrets::kMemory},
                                        {"all", StoreSecrets::kAll},
                                        {"none", StoreSecrets::kNone}}),
          &Policy::store_secrets, "memory", kLive,
          "Where responses with connection details are stored. If it was `all` "
          "and is changed, or the function is removed from the settings, the "
          "next start drops the whole disk cache, the entries of all "
          "functions."),
      Row("stale_while_revalidate", longer, &Policy::stale_while_revalidate,
          "0s", kLive,
          "How long after its time a response still answers at once, while a "
          "refresh calls the function. About two reconciles for each run of "
          "the function."),
      Row("stale_if_error", longer, &Policy::stale_if_error, "0s", kLive,
          "How long after its time a response answers if the function was "
          "called and failed, or if nine tenths of the caller's time are "
          "over."),
      Row("finish_abandoned", longer, &Policy::finish_abandoned, "0s", kLive,
          "How much longer than its caller's deadline a call of the function "
          "may take. It continues without callers, so that the cache answers "
          "the next call even if the function is slower than its callers "
          "wait."),
      Row("max_released", Number(1), &Policy::max_released, "16", kLive,
          "Calls of the function that run at once for released callers, whose "
          "flight brought no answer to share."),
      Row("max_entry_bytes", Size("1", "2GiB", "64MB or 16MiB"),
          &Policy::max_entry_bytes, "16MiB", kLive,
          "Larger responses pass through and are not stored."),
      Row("key",
          OneOf<KeySource>("SOURCE", {{"content", KeySource::kContent},
                                      {"tag", KeySource::kTag}}),
          &Function::key, "content", kLive,
          "Source of keys: the whole request, or its meta.tag and the fields "
          "that Crossplane changes after it computed the tag, for trusted "
          "runners. Not beside mask."),
      Row("key_hash",
          OneOf<KeyHash>(
              "HASH", {{"xxh3", KeyHash::kXxh3}, {"sha256", KeyHash::kSha256}}),
          &Function::key_hash, "xxh3", kLive,
          "Hash of keys: XXH3-128 under a secret, or HMAC-SHA-256 if tenants "
          "are hostile."),
      Row("mask", Masks(), &Function::masks, Unset{"none"}, kLive,
          "Paths left out of the key: requests that differ only there share an "
          "answer. Not with key: tag."),
      Row("bypass_metadata", MetadataKeys(), &Function::bypass_metadata,
          Unset{"none"}, kLive,
          "Requests that carry such metadata are neither looked up nor "
          "stored."),
      Row("operations",
          OneOf<bool>("HOW", {{"bypass", false}, {"cache", true}}),
          &Function::cache_operations, "bypass", kLive,
          "Requests without an observed composite, which come from Operations. "
          "bypass: each is forwarded, because it acts. cache: they are treated "
          "like all others."),
      Row("tune", OneOf<bool>("HOW", {{"off", false}, {"on", true}}),
          &Function::tune, "off", kLive,
          "on: an entry also answers requests that differ in drift only "
          "(versions and times of observed objects), once the function has "
          "shown that its answer is the same. The daemon asks it made-up "
          "requests for that. So on is a promise: the function has no effect "
          "outside its answers, and no memory of what it was asked. Not with "
          "key: tag."),
      Row("vary", OneOf<bool>("HOW", {{"off", false}, {"on", true}}),
          &Function::vary, "off", kLive,
          "on: where a response says what it depends on (trailing metadata "
          "fncache-depends, as functions of the SDK send it), it also answers "
          "requests that agree on that, and on all that no mask may hide. The "
          "daemon believes the function. Not with key: tag."),
      Row("tune_share", WholeFraction(), &Function::tune_share, "0.1", kLive,
          "Questions that may be asked of the function for each of its runs; "
          "0 = none, and nothing is proven."),
  };
}

const std::vector<Row>& Rows() {
  static const std::vector<Row>* const rows = [] {
    auto* all = new std::vector<Row>;
    const std::pair<const char*, std::vector<Row>> groups[] = {
        {"Function", FunctionRows()}, {"TLS", TlsRows()},
        {"Cache", CacheRows()},       {"Shared tier", SharedRows()},
        {"Limits", LimitRows()},      {"Operation", OperationRows()},
        {"Policy", PolicyRows()}};
    for (const auto& [group, of_group] : groups) {
      for (const Row& row : of_group) all->push_back(row.Grouped(group));
    }
    return all;
  }();
  return *rows;
}

template <typename Options>
absl::Status ApplyTo(const SettingValues& values, Options* options) {
  for (const Row& row : Rows()) {
    const auto found = values.find(row.setting().key);
    const Apply<Options>& apply = row.apply(options);
    if (apply == nullptr || found == values.end() || !found->second.set) {
      continue;
    }
    const absl::Status status = apply(found->second.values, options);
    if (!status.ok()) return SettingError(found->second, status.message());
  }
  return absl::OkStatus();
}

}  // namespace

const SettingsTable& ServeSettings() {
  static const SettingsTable* const table = [] {
    std::vector<Setting> settings;
    for (const Row& row : Rows()) settings.push_back(row.setting());
    return new SettingsTable(std::move(settings));
  }();
  return *table;
}

absl::Status ApplyToDaemon(const SettingValues& values,
                           DaemonOptions* options) {
  return ApplyTo(values, options);
}

absl::Status ApplyToFunction(const SettingValues& values,
                             FunctionOptions* options) {
  return ApplyTo(values, options);
}

}  // namespace fncache::proxy::settings
