// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/check.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/nearest.h"
#include "common/utf8.h"
#include "proxy/settings/address.h"
#include "proxy/settings/settings.h"
#include "proxy/settings/trace_directory.h"

namespace fncache::proxy::settings {
namespace {

bool HasCertificates(const SettingValues& top) {
  return !top.at("tls_dir").text().empty();
}

bool IsInsecure(const SettingValues& top) {
  return top.at("insecure").text() == "true";
}

// Two settings have no default: the target of calls, and TLS or plaintext. If
// both are missing, one error names both.
absl::Status CheckNeeded(const ResolvedSettings& resolved) {
  const bool upstream = resolved.has_entries || resolved.top.at("upstream").set;
  const bool tls = HasCertificates(resolved.top) || IsInsecure(resolved.top);
  if (upstream && tls) return absl::OkStatus();
  const std::string upstream_form = absl::StrCat(
      "--upstream TARGET (", ServeSettings().Find("upstream")->accepted, ")");
  constexpr absl::string_view kTlsForm =
      "--tls-dir DIR (tls.crt, tls.key, ca.crt), or --insecure for listeners "
      "in plaintext";
  if (tls) {
    return absl::InvalidArgumentError(
        absl::StrCat("upstream: is needed: give ", upstream_form));
  }
  if (upstream) {
    return absl::InvalidArgumentError(
        absl::StrCat("tls_dir: is needed: give ", kTlsForm));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("upstream and tls_dir: are needed: give ", upstream_form,
                   ", and ", kTlsForm));
}

// Decides between certificates and plaintext, and writes the decision to `top`.
// At least one of them is set.
absl::Status SettleTls(SettingValues* top) {
  if (!IsInsecure(*top)) return absl::OkStatus();
  const SettingValue& insecure = (*top)["insecure"];
  SettingValue& dir = (*top)["tls_dir"];
  if (HasCertificates(*top) && dir.source != SettingSource::kDefault) {
    return SettingError(insecure,
                        absl::StrCat("contradicts tls_dir (", dir.where,
                                     "); accepted: one of the two"));
  }
  // `insecure` beats $TLS_SERVER_CERTS_DIR.
  dir.set = false;
  dir.values.clear();
  dir.where = "default";
  return absl::OkStatus();
}

absl::Status CheckTraceDirectory(const SettingValues& top) {
  const SettingValue& trace = top.at("trace.dir");
  const SettingValue& cache = top.at("cache.dir");
  if (!trace.set || !cache.set || trace.text().empty() ||
      !IsOfTheCache(trace.text(), cache.text())) {
    return absl::OkStatus();
  }
  return SettingError(trace, OfTheCacheText(trace.text(), cache.text()));
}

// Two functions must differ in the settings that identify them.
absl::Status CheckDistinct(const ResolvedSettings& resolved,
                           const DaemonOptions& options) {
  for (size_t i = 0; i < resolved.entries.size(); ++i) {
    const SettingValues& one = resolved.entries[i];
    for (size_t j = 0; j < i; ++j) {
      const SettingValues& other = resolved.entries[j];
      for (const char* key : {"function", "listen", "upstream"}) {
        const SettingValue& mine = one.at(key);
        const SettingValue& theirs = other.at(key);
        const bool same = std::string(key) == "listen"
                              ? AddressesCollide(mine.text(), theirs.text())
                              : mine.text() == theirs.text();
        if (!same) continue;
        return SettingError(
            mine, absl::StrCat("\"", mine.text(), "\" is already used by ",
                               theirs.key, " (", theirs.where,
                               "); accepted: one that no other entry uses"));
      }
    }
  }
  for (const FunctionOptions& listening : options.functions) {
    for (size_t i = 0; i < options.functions.size(); ++i) {
      const std::string& target = options.functions[i].upstream;
      if (!LeadsTo(target, listening.listen)) continue;
      // Without a list of functions there is one, at the top.
      const SettingValues& values =
          resolved.entries.empty() ? resolved.top : resolved.entries[i];
      return SettingError(
          values.at("upstream"),
          absl::StrCat("\"", target, "\" leads back to listen \"",
                       listening.listen, "\"; accepted: the function's own"));
    }
  }
  const std::string admin_socket = options.admin_socket.value_or("");
  for (const FunctionOptions& function : options.functions) {
    const auto collides = [&](const char* key, const std::string& address) {
      return SettingError(
          resolved.top.at(key),
          absl::StrCat("\"", address, "\" collides with listen \"",
                       function.listen,
                       "\"; accepted: another address, or empty for none"));
    };
    if (!options.admin.empty() &&
        AddressesCollide(options.admin, function.listen)) {
      return collides("admin", options.admin);
    }
    if (!admin_socket.empty() &&
        AddressesCollide(absl::StrCat("unix:", admin_socket),
                         function.listen)) {
      return collides("admin_socket", admin_socket);
    }
  }
  return absl::OkStatus();
}

bool IsGiven(const SettingValue& value) {
  return value.set && !value.text().empty();
}

// Checks the settings of the shared tier against each other and cache.dir.
absl::Status CheckShared(const SettingValues& top) {
  const auto given = [&top](const char* key) { return IsGiven(top.at(key)); };
  const SettingValue& url = top.at("shared.url");
  const auto needs = [&top](const char* key, absl::string_view needed) {
    return SettingError(top.at(key),
                        absl::StrCat("has no effect without ", needed,
                                     "; accepted: both, or none"));
  };
  if (!given("shared.url")) {
    for (const char* const key :
         {"shared.secret_file", "shared.username", "shared.password_file",
          "shared.tls_dir", "shared.server_name"}) {
      if (given(key)) return needs(key, "shared.url");
    }
    return absl::OkStatus();
  }
  if (given("cache.dir")) {
    return SettingError(
        url, absl::StrCat("contradicts cache.dir (", top.at("cache.dir").where,
                          "); accepted: one of the two"));
  }
  if (!given("shared.secret_file")) {
    return SettingError(url,
                        "needs shared.secret_file; accepted: both, or none");
  }
  if (given("shared.username") && !given("shared.password_file")) {
    return needs("shared.username", "shared.password_file");
  }
  for (const char* const key : {"shared.tls_dir", "shared.server_name"}) {
    if (given(key) && !absl::StartsWith(url.text(), "rediss:")) {
      return needs(key, "rediss:// in shared.url");
    }
  }
  return absl::OkStatus();
}

void WarnOfShared(ServeOptions* options) {
  absl::string_view url = options->daemon.shared.url;
  if (url.empty()) return;
  if (absl::ConsumePrefix(&url, "redis://") && !IsLoopback(url)) {
    options->warnings.push_back(
        "shared.url: redis:// to another host sends the password in clear; "
        "better use rediss://");
  }
  for (const FunctionOptions& function : options->daemon.functions) {
    if (function.policy.store_secrets != cache::StoreSecrets::kAll) continue;
    options->warnings.push_back(absl::StrCat(
        "store_secrets: all is memory beside shared.url: responses with "
        "connection details never go to the shared tier, for function \"",
        function.name, "\""));
  }
}

// `outlives`: the setting of the tier that outlives the process; null = none.
absl::StatusOr<FunctionOptions> MakeFunction(const SettingValues& values,
                                             const char* outlives) {
  FunctionOptions options;
  absl::Status status = ApplyToFunction(values, &options);
  if (!status.ok()) return status;
  status = options.policy.Validate();
  if (!status.ok()) return status;
  const cache::PolicyOptions& policy = options.policy;
  if (policy.ttl_min.has_value() && policy.ttl_max > absl::ZeroDuration() &&
      *policy.ttl_min > policy.ttl_max) {
    const SettingValue& most = values.at("ttl.max");
    return SettingError(
        values.at("ttl.min"),
        absl::StrCat(values.at("ttl.min").text(), " is more than ", most.key,
                     " (", most.text(), ", ", most.where,
                     "); accepted: at most that, or ttl.max: 0 for no bound, "
                     "for function \"",
                     options.name, "\""));
  }
  // Settings that need what `key: tag` does not read.
  const struct {
    bool set;
    const char* setting;
    const char* unread;
    const char* hint;
  } contradictions[] = {
      {!options.masks.empty(), "mask", "what masks leave out",
       " (mask: [] for this function takes none)"},
      {options.tune, "tune", "what drifts", ""},
      {options.vary, "vary", "what a response depends on", ""},
  };
  for (const auto& one : contradictions) {
    if (options.key != cache::key::KeySource::kTag || !one.set) continue;
    const SettingValue& key = values.at("key");
    return SettingError(
        values.at(one.setting),
        absl::StrCat("contradicts ", key.key, ": tag (", key.where,
                     "), which does not read ", one.unread,
                     "; accepted: one of the two", one.hint,
                     ", for function \"", options.name, "\""));
  }
  if (outlives != nullptr && options.generation.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "generation: is needed with ", outlives, ", for function \"",
        options.name,
        "\": which build of it answers (--generation TEXT, or $REVISION_NAME); "
        "`none` accepts answers of older builds"));
  }
  return options;
}

constexpr absl::string_view kVariablePrefix = "FNCACHE_";

// Whether the text starts with a port's number and an underscore.
bool StartsWithPort(absl::string_view text) {
  const size_t digits =
      std::min(text.find_first_not_of("0123456789"), text.size());
  return digits > 0 && absl::StartsWith(text.substr(digits), "_");
}

// Whether Kubernetes sets a variable with such an end for a Service, after the
// Service's name: SERVICE_HOST, SERVICE_PORT, SERVICE_PORT_GRPC, PORT,
// PORT_9443_TCP, PORT_9443_TCP_ADDR and so on.
bool IsOfAService(absl::string_view name) {
  if (absl::EndsWith(name, "_SERVICE_HOST") || absl::EndsWith(name, "_PORT") ||
      absl::StrContains(name, "_SERVICE_PORT_")) {
    return true;
  }
  constexpr absl::string_view kPort = "_PORT_";
  for (size_t at = name.find(kPort); at != absl::string_view::npos;
       at = name.find(kPort, at + 1)) {
    if (StartsWithPort(name.substr(at + kPort.size()))) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> MistypedVariables(
    const std::vector<std::string>& names) {
  // Names are compared without the prefix: with it, short names look alike.
  std::vector<std::string> known = {"CONFIG"};
  for (const Setting& setting : ServeSettings().settings()) {
    known.push_back(
        EnvironmentName(setting.key).substr(kVariablePrefix.size()));
  }
  std::vector<std::string> lines;
  for (const std::string& name : names) {
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, kVariablePrefix) || IsOfAService(name) ||
        std::find(known.begin(), known.end(), rest) != known.end()) {
      continue;
    }
    const std::string nearest = Nearest(rest, known);
    if (nearest.empty()) continue;
    lines.push_back(absl::StrCat(Printable(name),
                                 " is no setting and has no effect; did you "
                                 "mean ",
                                 kVariablePrefix, nearest, "?"));
  }
  return lines;
}

// Warns if unknown callers are trusted with the tag.
void WarnOfTags(absl::string_view why, ServeOptions* options) {
  for (const FunctionOptions& function : options->daemon.functions) {
    if (function.key != cache::key::KeySource::kTag) continue;
    options->warnings.push_back(absl::StrCat(
        "key: tag trusts callers with what they are answered, and ", why,
        " anyone may be one; better use tls_dir with ca.crt"));
    return;
  }
}

absl::StatusOr<ServeOptions> MakeServeOptions(ResolvedSettings* resolved) {
  absl::Status status = CheckNeeded(*resolved);
  if (status.ok()) status = SettleTls(&resolved->top);
  if (status.ok()) status = CheckTraceDirectory(resolved->top);
  if (status.ok()) status = CheckShared(resolved->top);
  if (!status.ok()) return status;
  ServeOptions options;
  status = ApplyToDaemon(resolved->top, &options.daemon);
  if (!status.ok()) return status;
  std::vector<SettingValues> functions = resolved->entries;
  if (!resolved->has_entries) functions.push_back(resolved->top);
  std::set<std::string> warned;
  const char* const outlives =
      options.daemon.cache_dir.has_value() ? "cache.dir"
      : options.daemon.shared.url.empty()  ? nullptr
                                           : "shared.url";
  for (const SettingValues& values : functions) {
    absl::StatusOr<FunctionOptions> function = MakeFunction(values, outlives);
    if (!function.ok()) return function.status();
    for (const std::string& warning : function->masks.warnings()) {
      std::string line = absl::StrCat("mask: ", warning);
      if (warned.insert(line).second) options.warnings.push_back(line);
    }
    if (function->tune && !function->tunes()) {
      options.warnings.push_back(absl::StrCat(
          "tune: on has no effect with mode: ",
          function->policy.mode == cache::Mode::kOff ? "off" : "shadow",
          ", for function \"", function->name, "\""));
    }
    options.daemon.functions.push_back(*std::move(function));
  }
  if (!options.daemon.upstream_server_name.empty() &&
      !options.daemon.upstream_tls_dir.has_value()) {
    options.warnings.push_back(
        "upstream_server_name has no effect without upstream_tls_dir: the "
        "function is called in plaintext");
  }
  if (!options.daemon.tls_dir.has_value()) {
    WarnOfTags("with insecure", &options);
  }
  WarnOfShared(&options);
  status = CheckDistinct(*resolved, options.daemon);
  if (!status.ok()) return status;
  return options;
}

}  // namespace fncache::proxy::settings
