// What no row of the table can see alone: see MakeServeOptions in settings.h.
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proxy/settings/address.h"
#include "proxy/settings/rows.h"
#include "proxy/settings/settings.h"

namespace fncache::proxy::settings {
namespace {

// Decides between certificates and plaintext, and settles it in `top`.
absl::Status SettleTls(SettingValues* top) {
  SettingValue& insecure = (*top)["insecure"];
  SettingValue& dir = (*top)["tls_dir"];
  const bool has_dir = dir.set && !dir.text().empty();
  if (insecure.text() != "true") {
    if (has_dir) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "tls_dir: is needed: give --tls-dir DIR (tls.crt, tls.key, ca.crt), or "
        "--insecure for listeners in plaintext");
  }
  if (has_dir && dir.source != SettingSource::kDefault) {
    return SettingError(insecure,
                        absl::StrCat("contradicts tls_dir (", dir.where,
                                     "); accepted: one of the two"));
  }
  // $TLS_SERVER_CERTS_DIR, where it is set, is beaten.
  dir.set = false;
  dir.values.clear();
  dir.where = "default";
  return absl::OkStatus();
}

// No two functions may share what tells them apart.
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
  if (options.admin.empty()) return absl::OkStatus();
  for (const FunctionOptions& function : options.functions) {
    if (!AddressesCollide(options.admin, function.listen)) continue;
    return SettingError(
        resolved.top.at("admin"),
        absl::StrCat("\"", options.admin, "\" collides with listen \"",
                     function.listen,
                     "\"; accepted: another address, or empty for none"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FunctionOptions> MakeFunction(const SettingValues& values,
                                             bool outlives) {
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
  if (options.key == cache::key::KeySource::kTag && !options.masks.empty()) {
    const SettingValue& key = values.at("key");
    return SettingError(
        values.at("mask"),
        absl::StrCat("contradicts ", key.key, ": tag (", key.where,
                     "), which does not read what masks leave out; accepted: "
                     "one of the two (mask: [] for this function takes none), "
                     "for function \"",
                     options.name, "\""));
  }
  if (outlives && options.generation.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "generation: is needed with cache.dir, for function \"", options.name,
        "\": which build of it answers (--generation TEXT, or $REVISION_NAME); "
        "`none` accepts answers of older builds"));
  }
  return options;
}

}  // namespace

// Who is not known should not be trusted with the tag.
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
  absl::Status status = SettleTls(&resolved->top);
  if (!status.ok()) return status;
  ServeOptions options;
  status = ApplyToDaemon(resolved->top, &options.daemon);
  if (!status.ok()) return status;
  std::vector<SettingValues> functions = resolved->entries;
  if (!resolved->has_entries) {
    if (!resolved->top.at("upstream").set) {
      return absl::InvalidArgumentError(
          absl::StrCat("upstream: is needed: --upstream TARGET; accepted: ",
                       ServeSettings().Find("upstream")->accepted));
    }
    functions.push_back(resolved->top);
  }
  std::set<std::string> warned;
  for (const SettingValues& values : functions) {
    absl::StatusOr<FunctionOptions> function =
        MakeFunction(values, options.daemon.cache_dir.has_value());
    if (!function.ok()) return function.status();
    for (const std::string& warning : function->masks.warnings()) {
      std::string line = absl::StrCat("mask: ", warning);
      if (warned.insert(line).second) options.warnings.push_back(line);
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
  status = CheckDistinct(*resolved, options.daemon);
  if (!status.ok()) return status;
  return options;
}

}  // namespace fncache::proxy::settings
