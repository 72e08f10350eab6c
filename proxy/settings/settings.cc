// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/settings.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/duration.h"
#include "common/listen_address.h"
#include "common/log_level.h"
#include "common/size.h"
#include "proxy/settings/address.h"

namespace fncache::proxy::settings {
namespace {

using Values = std::vector<std::string>;

absl::Status NotAccepted() { return absl::InvalidArgumentError(""); }

// A row puts accepted texts into an option.
using ToDaemon = std::function<absl::Status(const Values&, DaemonOptions*)>;
using ToFunction = std::function<absl::Status(const Values&, FunctionOptions*)>;

// Parsers: text to value, in the range that the row names.
absl::Status IntoDuration(const std::string& text, absl::Duration least,
                          absl::Duration* out) {
  const absl::StatusOr<absl::Duration> parsed = ParseGoDuration(text);
  if (!parsed.ok() || *parsed < least) return NotAccepted();
  *out = *parsed;
  return absl::OkStatus();
}

// Zero stands for none.
absl::Status IntoDurationOrZero(const std::string& text, absl::Duration* out) {
  absl::Duration parsed;
  const absl::Status status = IntoDuration(text, absl::ZeroDuration(), &parsed);
  if (!status.ok()) return status;
  if (parsed != absl::ZeroDuration() && parsed < absl::Seconds(1)) {
    return NotAccepted();
  }
  *out = parsed;
  return absl::OkStatus();
}

absl::Status IntoSize(const std::string& text, uint64_t least, uint64_t most,
                      uint64_t* out) {
  const absl::StatusOr<uint64_t> parsed = ParseSize(text);
  if (!parsed.ok() || *parsed < least || *parsed > most) return NotAccepted();
  *out = *parsed;
  return absl::OkStatus();
}

absl::Status IntoFraction(const std::string& text, double* out) {
  // Digits and a point: neither nan, nor hexadecimal, nor exponents.
  for (const char c : text) {
    if (c != '.' && !absl::ascii_isdigit(c)) return NotAccepted();
  }
  double parsed = 0;
  if (!absl::SimpleAtod(text, &parsed) || !(parsed >= 0 && parsed < 1)) {
    return NotAccepted();
  }
  *out = parsed;
  return absl::OkStatus();
}

// Over 0, to 1.
absl::Status IntoShare(const std::string& text, double* out) {
  double parsed = 0;
  if (!absl::SimpleAtod(text, &parsed) || !(parsed > 0 && parsed <= 1)) {
    return NotAccepted();
  }
  *out = parsed;
  return absl::OkStatus();
}

template <typename T, typename All>
absl::Status IntoOneOf(const std::string& text, const All& all, T* out) {
  for (const auto& [name, value] : all) {
    if (text != name) continue;
    *out = value;
    return absl::OkStatus();
  }
  return NotAccepted();
}

template <typename T>
absl::Status IntoChoice(const std::string& text,
                        std::initializer_list<std::pair<const char*, T>> all,
                        T* out) {
  return IntoOneOf(text, all, out);
}

absl::Status IntoRequeueTtl(const std::string& text, cache::RequeueTtl* out) {
  using Kind = cache::RequeueTtl::Kind;
  if (IntoChoice<Kind>(
          text,
          {{"remaining", Kind::kRemaining}, {"original", Kind::kOriginal}},
          &out->kind)
          .ok()) {
    return absl::OkStatus();
  }
  out->kind = Kind::kFixed;
  return IntoDuration(text, absl::Nanoseconds(1), &out->fixed);
}

absl::Status IntoCount(const std::string& text, int* out) {
  for (const char c : text) {
    if (!absl::ascii_isdigit(c)) return NotAccepted();
  }
  int parsed = 0;
  if (!absl::SimpleAtoi(text, &parsed) || parsed < 1) return NotAccepted();
  *out = parsed;
  return absl::OkStatus();
}

absl::Status IntoMetadataKeys(const Values& values, Values* out) {
  out->clear();
  for (const std::string& value : values) {
    // gRPC's grammar of a metadata key; keys arrive in lower case.
    const std::string key = absl::AsciiStrToLower(value);
    bool good = !key.empty();
    for (const char c : key) {
      good =
          good && (absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.');
    }
    if (!good) return NotAccepted();
    out->push_back(key);
  }
  return absl::OkStatus();
}

absl::Status IntoAddress(const std::string& text, std::string* out,
                         absl::Status (*check)(absl::string_view)) {
  absl::Status status = check(text);
  if (status.ok()) *out = WithHost(text);
  return status;
}

absl::Status IntoText(const std::string& text, bool empty_allowed,
                      std::string* out) {
  if (text.empty() && !empty_allowed) {
    return absl::InvalidArgumentError("must not be empty");
  }
  *out = text;
  return absl::OkStatus();
}

absl::Status IntoMasks(const Values& values, cache::key::MaskSet* out) {
  absl::StatusOr<cache::key::MaskSet> masks =
      cache::key::MaskSet::Parse(values);
  if (!masks.ok()) return masks.status();
  *out = *std::move(masks);
  return absl::OkStatus();
}

// Lists the sets' names as YAML and the environment take them.
std::string SetNames() {
  return absl::StrJoin(
      cache::key::NamedMaskSets(), ", ",
      [](std::string* out, const cache::key::NamedMaskSet& set) {
        absl::StrAppend(out, "\"", set.name, "\"");
      });
}

// Where names of sets are among the masks: all paths that come of it.
std::vector<std::string> ExplainMasks(const Values& values) {
  const bool named =
      std::any_of(values.begin(), values.end(), [](const std::string& value) {
        return !value.empty() && value[0] == '@';
      });
  if (!named) return Values();
  const auto masks = cache::key::MaskSet::Parse(values);
  return masks.ok() ? masks->canonical() : Values();
}

struct Row {
  Setting setting;
  ToDaemon to_daemon;      // scope kDaemon
  ToFunction to_function;  // scope kBoth and kFunction
};

// The row's check applies the values to options that nobody uses.
Row OfDaemon(Setting setting, ToDaemon apply) {
  setting.scope = SettingScope::kDaemon;
  if (setting.kind != Setting::Kind::kBool) {
    setting.check = [apply](const Values& values) {
      DaemonOptions trial;
      return apply(values, &trial);
    };
  }
  return {std::move(setting), std::move(apply), nullptr};
}

Row OfFunction(Setting setting, SettingScope scope, ToFunction apply) {
  setting.scope = scope;
  if (setting.kind != Setting::Kind::kBool) {
    setting.check = [apply](const Values& values) {
      FunctionOptions trial;
      return apply(values, &trial);
    };
  }
  return {std::move(setting), nullptr, std::move(apply)};
}

Row Policy(Setting setting, ToFunction apply) {
  setting.group = "Policy";
  setting.reloads = true;
  return OfFunction(std::move(setting), SettingScope::kBoth, std::move(apply));
}

Setting Text(std::string key, std::string metavar,
             absl::optional<std::string> default_value, std::string accepted,
             std::string help) {
  Setting setting;
  setting.key = std::move(key);
  setting.metavar = std::move(metavar);
  setting.default_value = std::move(default_value);
  setting.accepted = std::move(accepted);
  setting.help = std::move(help);
  return setting;
}

Setting Bool(std::string key, std::string help) {
  Setting setting =
      Text(std::move(key), "", "false", "true or false", std::move(help));
  setting.kind = Setting::Kind::kBool;
  return setting;
}

// A setting that may change while the daemon runs.
Setting Reloads(Setting setting) {
  setting.reloads = true;
  return setting;
}

Setting List(std::string key, std::string metavar, std::string accepted,
             std::string help) {
  Setting setting = Text(std::move(key), std::move(metavar), absl::nullopt,
                         std::move(accepted), std::move(help));
  setting.kind = Setting::Kind::kList;
  setting.default_note = "none";
  return setting;
}

constexpr char kDurationFromZero[] =
    "a duration from 0 up, such as 90s, 1h30m or 100ms";
constexpr char kAddressForm[] =
    "HOST:PORT, [IPV6]:PORT or :PORT (every address of IPv4) with a port from "
    "0 "
    "to 65535 (0 takes a free one)";

std::vector<Row> FunctionRows() {
  std::vector<Row> rows;
  const auto add = [&rows](Setting setting, SettingScope scope,
                           ToFunction apply) {
    setting.group = "Function";
    rows.push_back(OfFunction(std::move(setting), scope, std::move(apply)));
  };
  add(Text("listen", "ADDR", "0.0.0.0:9443",
           absl::StrCat(kAddressForm, ", unix:PATH or unix-abstract:NAME"),
           "Where callers of the function connect. Never shared with another "
           "process. A unix socket's file has the mode that the umask leaves, "
           "takes the place of one that nobody listens on, and is removed at "
           "the end."),
      SettingScope::kFunction, [](const Values& v, FunctionOptions* o) {
        return IntoAddress(v[0], &o->listen, &CheckListen);
      });
  Setting upstream = Text("upstream", "TARGET", absl::nullopt, kTargetForms,
                          "The function that calls go to.");
  upstream.default_note = "none, it is needed";
  add(std::move(upstream), SettingScope::kFunction,
      [](const Values& v, FunctionOptions* o) {
        absl::Status status = CheckTarget(v[0]);
        if (status.ok()) o->upstream = v[0];
        return status;
      });
  Setting name = Text("function", "NAME", "function", "a text, not empty",
                      "The function's name: the label function_name of its "
                      "metrics. `name` in an entry of functions.");
  name.entry_key = "name";
  name.default_variable = "FUNCTION_NAME";
  add(std::move(name), SettingScope::kFunction,
      [](const Values& v, FunctionOptions* o) {
        return IntoText(v[0], /*empty_allowed=*/false, &o->name);
      });
  Setting generation = Text(
      "generation", "TEXT", absl::nullopt, "a text of at most 1024 bytes",
      "Which build of the function answers; another one starts with an empty "
      "cache. Needed with cache.dir; `none` accepts answers of older builds.");
  generation.default_variable = "REVISION_NAME";
  generation.default_note = "unset";
  add(Reloads(std::move(generation)), SettingScope::kBoth,
      [](const Values& v, FunctionOptions* o) {
        if (v[0].size() > kMaxGenerationBytes) {
          return NotAccepted();
        }
        return IntoText(v[0], /*empty_allowed=*/true, &o->generation);
      });
  return rows;
}

std::vector<Row> TlsRows() {
  std::vector<Row> rows;
  const auto add = [&rows](Setting setting, ToDaemon apply) {
    setting.group = "TLS";
    rows.push_back(OfDaemon(std::move(setting), std::move(apply)));
  };
  Setting dir = Text("tls_dir", "DIR", absl::nullopt,
                     "a directory with tls.crt and tls.key, and ca.crt if "
                     "callers need a certificate of it",
                     "The listeners' certificates.");
  dir.default_variable = "TLS_SERVER_CERTS_DIR";
  dir.default_note = "none, this or insecure is needed";
  add(std::move(dir), [](const Values& v, DaemonOptions* o) {
    if (!v[0].empty()) o->tls_dir = v[0];
    return absl::OkStatus();
  });
  add(Bool("insecure",
           "Listeners in plaintext. Beats $TLS_SERVER_CERTS_DIR; not beside "
           "tls_dir."),
      [](const Values&, DaemonOptions*) { return absl::OkStatus(); });
  Setting upstream = Text("upstream_tls_dir", "DIR", absl::nullopt,
                          "a directory with ca.crt, and tls.crt and tls.key if "
                          "the function wants a certificate",
                          "Certificates for calling the function.");
  upstream.default_note = "unset (plaintext)";
  add(std::move(upstream), [](const Values& v, DaemonOptions* o) {
    if (!v[0].empty()) o->upstream_tls_dir = v[0];
    return absl::OkStatus();
  });
  Setting name = Text("upstream_server_name", "NAME", absl::nullopt, "a name",
                      "The name that the function's certificate must carry.");
  name.default_note = "unset (the target's host)";
  add(std::move(name), [](const Values& v, DaemonOptions* o) {
    return IntoText(v[0], /*empty_allowed=*/true, &o->upstream_server_name);
  });
  return rows;
}

std::vector<Row> CacheRows() {
  std::vector<Row> rows;
  const auto add = [&rows](Setting setting, ToDaemon apply) {
    setting.group = "Cache";
    rows.push_back(OfDaemon(std::move(setting), std::move(apply)));
  };
  Setting dir = Text("cache.dir", "DIR", absl::nullopt, "a directory",
                     "Where entries outlive the process.");
  dir.default_note = "unset (memory only)";
  add(std::move(dir), [](const Values& v, DaemonOptions* o) {
    if (!v[0].empty()) o->cache_dir = v[0];
    return absl::OkStatus();
  });
  add(Reloads(Text("cache.memory", "SIZE", "256MiB",
                   "a size from 1KiB up, such as 64MB, 256MiB or 256Mi",
                   "Bound of the memory tier, all overheads counted.")),
      [](const Values& v, DaemonOptions* o) {
        return IntoSize(v[0], 1 << 10, ~uint64_t{0}, &o->cache_memory);
      });
  add(Reloads(Text("cache.disk", "SIZE", "4GiB",
                   "a size from 1MiB up, such as 512MiB or 4GiB",
                   "Bound of the disk tier.")),
      [](const Values& v, DaemonOptions* o) {
        return IntoSize(v[0], 1 << 20, ~uint64_t{0}, &o->cache_disk);
      });
  return rows;
}

absl::Status IntoLogFormat(const std::string& text, LogFormat* out) {
  return IntoChoice<LogFormat>(
      text, {{"text", LogFormat::kText}, {"json", LogFormat::kJson}}, out);
}

absl::Status IntoLoggedCalls(const std::string& text,
                             telemetry::AccessLogOptions* out) {
  using telemetry::LoggedCalls;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "slow=")) {
    out->calls = LoggedCalls::kSlow;
    return IntoDuration(std::string(rest), absl::Nanoseconds(1), &out->slow);
  }
  return IntoChoice<LoggedCalls>(text,
                                 {{"off", LoggedCalls::kNone},
                                  {"misses", LoggedCalls::kMisses},
                                  {"all", LoggedCalls::kAll}},
                                 &out->calls);
}

std::vector<Row> AccessLogRows() {
  std::vector<Row> rows;
  const auto add = [&rows](Setting setting, ToDaemon apply) {
    setting.group = "Operation";
    setting.reloads = true;
    rows.push_back(OfDaemon(std::move(setting), std::move(apply)));
  };
  add(Text("log.access", "CALLS", "off",
           "off, misses, all, or slow=DURATION, such as slow=1s",
           "Which calls of RunFunction have a line in the access log: none, "
           "those that were not answered from the cache, all, or those that "
           "took at least so long."),
      [](const Values& v, DaemonOptions* o) {
        return IntoLoggedCalls(v[0], &o->access_log);
      });
  Setting format = Text("log.access_format", "FORMAT", absl::nullopt,
                        "text or json", "The form of these lines.");
  format.default_note = "that of log.format";
  add(std::move(format), [](const Values& v, DaemonOptions* o) {
    return IntoLogFormat(v[0], &o->access_log.format);
  });
  add(Text("log.access_sample", "FRACTION", "1", "a fraction over 0, to 1",
           "The share of these calls that have a line, chosen at random."),
      [](const Values& v, DaemonOptions* o) {
        return IntoShare(v[0], &o->access_log.sample);
      });
  Setting file =
      Text("log.access_file", "FILE", absl::nullopt, "a file",
           "Where the lines go, behind what is there; opened anew on SIGUSR1.");
  file.default_note = "unset (stderr)";
  add(std::move(file), [](const Values& v, DaemonOptions* o) {
    o->access_log.file = v[0];
    return absl::OkStatus();
  });
  return rows;
}

std::vector<Row> OperationRows() {
  std::vector<Row> rows;
  const auto add = [&rows](Setting setting, ToDaemon apply) {
    setting.group = "Operation";
    rows.push_back(OfDaemon(std::move(setting), std::move(apply)));
  };
  add(Text("admin", "ADDR", "127.0.0.1:9901",
           absl::StrCat(kAddressForm, "; empty = none"),
           "Where /metrics, /healthz, /readyz and /statusz are served; / is "
           "an index of them."),
      [](const Values& v, DaemonOptions* o) {
        if (!v[0].empty()) return IntoAddress(v[0], &o->admin, &CheckAddress);
        o->admin.clear();
        return absl::OkStatus();
      });
  Setting admin_socket =
      Text("admin_socket", "PATH", absl::nullopt,
           absl::StrCat("a path of at most ", kMaxSocketPath,
                        " bytes; empty = none"),
           "The unix socket of fncache admin, mode 0600: who may open it may "
           "purge, reload and look inside.");
  admin_socket.default_note =
      "DIR/admin.sock beside cache.dir, else the first that can be made of "
      "$XDG_RUNTIME_DIR/fncache/admin.sock, /run/fncache/admin.sock and "
      "/tmp/fncache-UID/admin.sock";
  add(std::move(admin_socket), [](const Values& v, DaemonOptions* o) {
    if (v[0].size() > kMaxSocketPath) {
      return absl::InvalidArgumentError(
          absl::StrCat("the path has ", v[0].size(), " bytes"));
    }
    o->admin_socket = v[0];
    return absl::OkStatus();
  });
  add(Text("drain", "DURATION", "25s", kDurationFromZero,
           "How long SIGTERM lets calls in flight finish."),
      [](const Values& v, DaemonOptions* o) {
        return IntoDuration(v[0], absl::ZeroDuration(), &o->drain);
      });
  add(Text("drain_delay", "DURATION", "0s", kDurationFromZero,
           "How long before that it still accepts calls, no longer ready."),
      [](const Values& v, DaemonOptions* o) {
        return IntoDuration(v[0], absl::ZeroDuration(), &o->drain_delay);
      });
  Setting trace_dir = Text("trace.dir", "DIR", absl::nullopt, "a directory",
                           "Where calls are traced, for fncache explain.");
  trace_dir.default_note = "unset (no trace)";
  add(Reloads(std::move(trace_dir)), [](const Values& v, DaemonOptions* o) {
    o->trace_dir = v[0];
    return absl::OkStatus();
  });
  add(Reloads(Text(
          "trace.level", "LEVEL", "paths", "keys, paths or full",
          "What a trace tells of a call: keys and times; paths, what changed "
          "in the request, without values; full, the messages, secrets "
          "redacted.")),
      [](const Values& v, DaemonOptions* o) {
        using insight::trace::Level;
        return IntoChoice<Level>(v[0],
                                 {{"keys", Level::kKeys},
                                  {"paths", Level::kPaths},
                                  {"full", Level::kFull}},
                                 &o->trace_level);
      });
  add(Reloads(Text("trace.file_size", "SIZE", "64MiB",
                   "a size from 64KiB to 1GiB, such as 8MiB or 64MiB",
                   "Bound of one file of the trace.")),
      [](const Values& v, DaemonOptions* o) {
        return IntoSize(v[0], 64 << 10, 1 << 30, &o->trace_file_size);
      });
  add(Reloads(Text("trace.files", "NUMBER", "8", "a whole number from 2 up",
                   "Files of the trace that are kept; the oldest go first.")),
      [](const Values& v, DaemonOptions* o) {
        const absl::Status status = IntoCount(v[0], &o->trace_files);
        return status.ok() && o->trace_files < 2 ? NotAccepted() : status;
      });
  add(Reloads(Text(
          "trace.sample", "FRACTION", "1", "a fraction over 0, to 1",
          "The share of composites that are traced, each with all calls.")),
      [](const Values& v, DaemonOptions* o) {
        return IntoShare(v[0], &o->trace_sample);
      });
  add(Text("explain.memory", "SIZE", "16MiB",
           "0, or a size from 1MiB to 64GiB, such as 64MiB",
           "Memory in which requests that missed are remembered, without their "
           "values, to say why the next ones miss; 0 = none, and no reasons."),
      [](const Values& v, DaemonOptions* o) {
        if (v[0] == "0") {
          o->explain_memory = 0;
          return absl::OkStatus();
        }
        return IntoSize(v[0], 1 << 20, 64ull << 30, &o->explain_memory);
      });
  add(Reloads(Text("log.level", "LEVEL", "info", "debug, info, warn or error",
                   "What is logged to stderr, from this level up.")),
      [](const Values& v, DaemonOptions* o) {
        return IntoOneOf(v[0], kLogLevels, &o->log_level);
      });
  add(Reloads(Text("log.format", "FORMAT", "text", "text or json",
                   "Lines for people, or a JSON object a line.")),
      [](const Values& v, DaemonOptions* o) {
        const absl::Status status = IntoLogFormat(v[0], &o->log_format);
        // Unless it has a setting of its own, which comes behind this one.
        o->access_log.format = o->log_format;
        return status;
      });
  for (Row& row : AccessLogRows()) rows.push_back(std::move(row));
  return rows;
}

// A whole number, within a range.
absl::Status IntoNumber(const std::string& text, int least, int most,
                        int* out) {
  int parsed = 0;
  const absl::Status status = IntoCount(text, &parsed);
  if (!status.ok() || parsed < least || parsed > most) return NotAccepted();
  *out = parsed;
  return absl::OkStatus();
}

// Bounds of what peers can take.
std::vector<Row> LimitRows() {
  std::vector<Row> rows;
  const auto add = [&rows](Setting setting, ToDaemon apply) {
    setting.group = "Limits";
    // The threads are made at the start.
    setting.reloads = setting.key != "workers";
    rows.push_back(OfDaemon(std::move(setting), std::move(apply)));
  };
  Setting workers =
      Text("workers", "NUMBER", absl::nullopt, "a whole number from 1 to 64",
           "Threads that serve calls, each with connections of "
           "its own.");
  workers.default_note = "as many as cores may be used, at most 8";
  add(std::move(workers), [](const Values& v, DaemonOptions* o) {
    return IntoNumber(v[0], 1, 64, &o->workers);
  });
  add(Text("inflight.bytes", "SIZE", "256MiB",
           "a size from 1MiB to 1TiB, such as 512MiB",
           "What calls that have not ended may hold, all functions together; "
           "beyond it requests wait, and relayed calls are refused."),
      [](const Values& v, DaemonOptions* o) {
        return IntoSize(v[0], 1 << 20, 1ull << 40, &o->inflight_bytes);
      });
  add(Text("max_request_bytes", "SIZE", "256MiB",
           "a size from 1KiB to 4095MiB, such as 64MiB",
           "Larger requests of RunFunction, compressed or not, are refused "
           "with RESOURCE_EXHAUSTED."),
      [](const Values& v, DaemonOptions* o) {
        return IntoSize(v[0], 1 << 10, 4095ull << 20, &o->max_request_bytes);
      });
  add(Text("max_response_bytes", "SIZE", "256MiB",
           "a size from 1KiB to 4095MiB, such as 64MiB",
           "Larger answers of RunFunction, compressed or not, become "
           "RESOURCE_EXHAUSTED."),
      [](const Values& v, DaemonOptions* o) {
        return IntoSize(v[0], 1 << 10, 4095ull << 20, &o->max_response_bytes);
      });
  add(Text("max_metadata_bytes", "SIZE", "64KiB",
           "a size from 4KiB to 128KiB, such as 16KiB",
           "Metadata of one call, in either direction, names, values and 32 "
           "for each counted; beyond it the call fails. A single name or value "
           "beyond 64 KiB, as it is sent, ends its connection."),
      [](const Values& v, DaemonOptions* o) {
        return IntoSize(v[0], 4 << 10, 128 << 10, &o->max_metadata_bytes);
      });
  add(Text("max_streams", "NUMBER", "1024", "a whole number from 1 to 1000000",
           "Calls at once on one connection; callers are told."),
      [](const Values& v, DaemonOptions* o) {
        return IntoNumber(v[0], 1, 1'000'000, &o->max_streams);
      });
  add(Text("max_connections", "NUMBER", "4096",
           "a whole number from 1 to 1000000",
           "Connections to one listener; the newest beyond it are closed."),
      [](const Values& v, DaemonOptions* o) {
        return IntoNumber(v[0], 1, 1'000'000, &o->max_connections);
      });
  add(Text("idle_timeout", "DURATION", "1h",
           "a duration from 1s up, or 0 for none, such as 10m",
           "A connection without a call for so long is told to go."),
      [](const Values& v, DaemonOptions* o) {
        return IntoDurationOrZero(v[0], &o->idle_timeout);
      });
  add(Text("max_connection_age", "DURATION", "0s",
           "a duration from 1s up, or 0 for none, such as 1h",
           "A connection of this age is told to go when its calls have ended, "
           "so that callers spread over replicas."),
      [](const Values& v, DaemonOptions* o) {
        return IntoDurationOrZero(v[0], &o->max_connection_age);
      });
  return rows;
}

// An unset duration of the policy.
Row OptionalTtl(std::string key, std::string accepted, absl::Duration least,
                std::string help,
                absl::optional<absl::Duration> cache::PolicyOptions::*field) {
  Setting setting = Text(std::move(key), "DURATION", absl::nullopt,
                         std::move(accepted), std::move(help));
  setting.default_note = "unset";
  return Policy(std::move(setting),
                [least, field](const Values& v, FunctionOptions* o) {
                  absl::Duration duration;
                  absl::Status status = IntoDuration(v[0], least, &duration);
                  if (status.ok()) o->policy.*field = duration;
                  return status;
                });
}

// A duration by which the policy goes on beyond an end; 0 = it does not.
Row LongerDuration(std::string key, std::string help,
                   absl::Duration cache::PolicyOptions::*field) {
  return Policy(
      Text(std::move(key), "DURATION", "0s",
           "a duration from 0 up, such as 30s, 10m or 1h30m", std::move(help)),
      [field](const Values& v, FunctionOptions* o) {
        return IntoDuration(v[0], absl::ZeroDuration(), &(o->policy.*field));
      });
}

std::vector<Row> PolicyRows() {
  std::vector<Row> rows;
  rows.push_back(Policy(
      Text("mode", "MODE", "on", "on, off or shadow",
           "Answer from the cache, or be a pure proxy; shadow: ask the "
           "function every time, and compare with what the cache would "
           "have said."),
      [](const Values& v, FunctionOptions* o) {
        return IntoChoice<cache::Mode>(v[0],
                                       {{"on", cache::Mode::kOn},
                                        {"off", cache::Mode::kOff},
                                        {"shadow", cache::Mode::kShadow}},
                                       &o->policy.mode);
      }));
  rows.push_back(Policy(
      Text("ttl.max", "DURATION", "24h", kDurationFromZero,
           "No entry lives longer, and ttl.min may not ask for more; "
           "0 = no bound."),
      [](const Values& v, FunctionOptions* o) {
        return IntoDuration(v[0], absl::ZeroDuration(), &o->policy.ttl_max);
      }));
  rows.push_back(
      OptionalTtl("ttl.override", "a duration above 0, such as 90s or 1h30m",
                  absl::Nanoseconds(1),
                  "Lifetime whatever the function said; ttl.min and ttl.max "
                  "bound it, too.",
                  &cache::PolicyOptions::ttl_override));
  rows.push_back(OptionalTtl("ttl.default", kDurationFromZero,
                             absl::ZeroDuration(),
                             "Lifetime where the function said nothing.",
                             &cache::PolicyOptions::ttl_default));
  rows.push_back(OptionalTtl("ttl.min", kDurationFromZero, absl::ZeroDuration(),
                             "Least lifetime of what is stored at all.",
                             &cache::PolicyOptions::ttl_min));
  rows.push_back(Policy(
      Text("ttl.jitter", "FRACTION", "0", "a fraction from 0 to below 1",
           "Part of its lifetime by which an entry's is shortened at random."),
      [](const Values& v, FunctionOptions* o) {
        return IntoFraction(v[0], &o->policy.ttl_jitter);
      }));
  rows.push_back(Policy(
      Text("ttl.margin", "FRACTION", "0.1", "a fraction from 0 to below 1",
           "The last part of a lifetime, in which an entry is no longer "
           "served, so that a requeue does not meet the entry that caused it."),
      [](const Values& v, FunctionOptions* o) {
        return IntoFraction(v[0], &o->policy.ttl_margin);
      }));
  rows.push_back(Policy(
      Text("requeue_ttl", "TTL", "remaining",
           "remaining, original, or a duration above 0 such as 90s or 1h30m",
           "The TTL that the runner sees, wherever the function gave one."),
      [](const Values& v, FunctionOptions* o) {
        return IntoRequeueTtl(v[0], &o->policy.requeue_ttl);
      }));
  rows.push_back(
      Policy(Bool("store_fatal", "Store responses that hold a FATAL result."),
             [](const Values& v, FunctionOptions* o) {
               o->policy.store_fatal = v[0] == "true";
               return absl::OkStatus();
             }));
  rows.push_back(
      Policy(Text("store_secrets", "TIERS", "memory", "memory, all or none",
                  "Where responses with connection details are stored. Where "
                  "it was `all` and is not any more, or the function is gone "
                  "from the settings, the next start drops the whole disk "
                  "cache, whatever function an entry is of."),
             [](const Values& v, FunctionOptions* o) {
               return IntoChoice<cache::StoreSecrets>(
                   v[0],
                   {{"memory", cache::StoreSecrets::kMemory},
                    {"all", cache::StoreSecrets::kAll},
                    {"none", cache::StoreSecrets::kNone}},
                   &o->policy.store_secrets);
             }));
  rows.push_back(LongerDuration(
      "stale_while_revalidate",
      "For how long past its time a response still answers at once, while the "
      "function is asked behind. About two reconciles for each run of the "
      "function.",
      &cache::PolicyOptions::stale_while_revalidate));
  rows.push_back(LongerDuration(
      "stale_if_error",
      "For how long past its time a response answers where the function was "
      "asked and failed, or nine tenths of the caller's time are over.",
      &cache::PolicyOptions::stale_if_error));
  rows.push_back(LongerDuration(
      "finish_abandoned",
      "How much longer than its caller's deadline a call of the function may "
      "take, which then goes on without callers, so that a function slower "
      "than they wait is answered from the cache the next time.",
      &cache::PolicyOptions::finish_abandoned));
  rows.push_back(Policy(
      Text("max_released", "NUMBER", "16", "a whole number from 1 up",
           "Calls that run at once for callers whose shared call brought no "
           "answer to share."),
      [](const Values& v, FunctionOptions* o) {
        return IntoCount(v[0], &o->policy.max_released);
      }));
  rows.push_back(
      Policy(Text("max_entry_bytes", "SIZE", "16MiB",
                  "a size from 1 to 2GiB, such as 64MB or 16MiB",
                  "Larger responses pass through and are not stored."),
             [](const Values& v, FunctionOptions* o) {
               return IntoSize(v[0], 1, 2ull << 30, &o->policy.max_entry_bytes);
             }));
  rows.push_back(Policy(
      Text("key", "SOURCE", "content", "content or tag",
           "What keys are made of: the whole request, or its meta.tag and what "
           "Crossplane changes after computing that, for trusted runners. Not "
           "beside mask."),
      [](const Values& v, FunctionOptions* o) {
        return IntoChoice<cache::key::KeySource>(
            v[0],
            {{"content", cache::key::KeySource::kContent},
             {"tag", cache::key::KeySource::kTag}},
            &o->key);
      }));
  rows.push_back(Policy(
      Text(
          "key_hash", "HASH", "xxh3", "xxh3 or sha256",
          "What keys are hashed with: XXH3-128 under a secret, or HMAC-SHA-256 "
          "where tenants are hostile."),
      [](const Values& v, FunctionOptions* o) {
        return IntoChoice<cache::key::KeyHash>(
            v[0],
            {{"xxh3", cache::key::KeyHash::kXxh3},
             {"sha256", cache::key::KeyHash::kSha256}},
            &o->key_hash);
      }));
  Setting mask =
      List("mask", "FIELD",
           absl::StrCat("paths below observed.composite.resource, "
                        "observed.resources.K.resource, "
                        "required_resources.K.items.*.resource or "
                        "extra_resources.K.items.*.resource, but no whole "
                        "spec or metadata, or of a context key; or named "
                        "sets: ",
                        SetNames()),
           "Paths left out of the key: requests that differ only there share "
           "an answer. Not with key: tag.");
  mask.explain = &ExplainMasks;
  rows.push_back(
      Policy(std::move(mask), [](const Values& v, FunctionOptions* o) {
        return IntoMasks(v, &o->masks);
      }));
  rows.push_back(
      Policy(List("bypass_metadata", "KEY",
                  "metadata keys of letters, digits, `-`, `_` and `.`",
                  "Requests that carry such metadata are neither looked up nor "
                  "stored."),
             [](const Values& v, FunctionOptions* o) {
               return IntoMetadataKeys(v, &o->bypass_metadata);
             }));
  rows.push_back(Policy(
      Text(
          "operations", "HOW", "bypass", "bypass or cache",
          "Requests without an observed composite, which come from Operations: "
          "each is forwarded, as it is to act; or treated like all others."),
      [](const Values& v, FunctionOptions* o) {
        return IntoChoice<bool>(v[0], {{"bypass", false}, {"cache", true}},
                                &o->cache_operations);
      }));
  return rows;
}

const std::vector<Row>& Rows() {
  static const std::vector<Row>* const rows = [] {
    auto* all = new std::vector<Row>;
    for (auto part : {FunctionRows(), TlsRows(), CacheRows(), LimitRows(),
                      OperationRows(), PolicyRows()}) {
      for (Row& row : part) all->push_back(std::move(row));
    }
    return all;
  }();
  return *rows;
}

}  // namespace

const SettingsTable& ServeSettings() {
  static const SettingsTable* const table = [] {
    std::vector<Setting> settings;
    for (const Row& row : Rows()) settings.push_back(row.setting);
    return new SettingsTable(std::move(settings));
  }();
  return *table;
}

absl::Status ApplyToDaemon(const SettingValues& values,
                           DaemonOptions* options) {
  for (const Row& row : Rows()) {
    const auto found = values.find(row.setting.key);
    if (row.to_daemon == nullptr || found == values.end()) continue;
    if (!found->second.set) continue;
    absl::Status status = row.to_daemon(found->second.values, options);
    if (!status.ok()) return SettingError(found->second, status.message());
  }
  return absl::OkStatus();
}

absl::Status ApplyToFunction(const SettingValues& values,
                             FunctionOptions* options) {
  for (const Row& row : Rows()) {
    const auto found = values.find(row.setting.key);
    if (row.to_function == nullptr || found == values.end()) continue;
    if (!found->second.set) continue;
    absl::Status status = row.to_function(found->second.values, options);
    if (!status.ok()) return SettingError(found->second, status.message());
  }
  return absl::OkStatus();
}

}  // namespace fncache::proxy::settings
