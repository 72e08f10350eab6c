// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of settings: never a crash, one line of reason for what
// is refused, and what is accepted prints (as --check prints it) in a form that
// is accepted again, as the same settings and options, and prints the same.
//
// Where a line `%%` stands, the lines before it are flags, and those of them
// that start with FNCACHE_ the environment.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/utf8.h"
#include "common/yaml.h"
#include "proxy/settings/check.h"
#include "proxy/settings/flags.h"
#include "proxy/settings/settings.h"

namespace fncache::proxy {
namespace {

void Require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

void RequireOneLine(const absl::Status& status) {
  Require(absl::IsInvalidArgument(status), status.ToString());
  Require(!status.message().empty() && status.message().size() < 4000,
          absl::StrCat("a reason of ", status.message().size(), " bytes"));
  Require(!absl::StrContains(status.message(), '\n'),
          absl::StrCat("more than a line: ", status.message()));
}

void RequireSame(const SettingValues& a, const SettingValues& b) {
  Require(a.size() == b.size(), "other settings");
  for (const auto& [key, value] : a) {
    const SettingValue& other = b.at(key);
    // An empty list is printed, so it is set when it comes back.
    Require(value.values == other.values, "another value of " + key);
  }
}

void RequireSame(const settings::FunctionOptions& a,
                 const settings::FunctionOptions& b) {
  Require(a.name == b.name && a.listen == b.listen &&
              a.upstream == b.upstream && a.generation == b.generation &&
              a.bypass_metadata == b.bypass_metadata &&
              a.cache_operations == b.cache_operations &&
              a.masks.paths() == b.masks.paths() &&
              a.masks.canonical() == b.masks.canonical(),
          "other options of a function");
  const cache::PolicyOptions& p = a.policy;
  const cache::PolicyOptions& q = b.policy;
  Require(p.mode == q.mode && p.ttl_max == q.ttl_max &&
              p.ttl_override == q.ttl_override &&
              p.ttl_default == q.ttl_default && p.ttl_min == q.ttl_min &&
              p.ttl_jitter == q.ttl_jitter && p.ttl_margin == q.ttl_margin &&
              p.requeue_ttl.kind == q.requeue_ttl.kind &&
              p.store_fatal == q.store_fatal &&
              p.store_secrets == q.store_secrets &&
              p.max_entry_bytes == q.max_entry_bytes &&
              p.max_released == q.max_released,
          "another policy");
  if (p.requeue_ttl.kind == cache::RequeueTtl::Kind::kFixed) {
    Require(p.requeue_ttl.fixed == q.requeue_ttl.fixed, "another requeue_ttl");
  }
}

void RequireSame(const settings::DaemonOptions& a,
                 const settings::DaemonOptions& b) {
  Require(a.tls_dir == b.tls_dir && a.upstream_tls_dir == b.upstream_tls_dir &&
              a.upstream_server_name == b.upstream_server_name &&
              a.admin == b.admin && a.cache_dir == b.cache_dir &&
              a.cache_memory == b.cache_memory &&
              a.cache_disk == b.cache_disk && a.drain == b.drain &&
              a.drain_delay == b.drain_delay && a.log_level == b.log_level &&
              a.log_format == b.log_format &&
              a.functions.size() == b.functions.size(),
          "other options of the daemon");
  for (size_t i = 0; i < a.functions.size(); ++i) {
    RequireSame(a.functions[i], b.functions[i]);
  }
}

// Everything that the parser claims of a tree.
void CheckTree(const YamlNode& node, int depth) {
  Require(depth <= kMaxYamlDepth, "deeper than kMaxYamlDepth");
  Require(node.line >= 1 && node.column >= 1, "no place");
  Require(IsUtf8(node.scalar), "a scalar that is not UTF-8");
  const bool list = node.kind == YamlNode::Kind::kList;
  const bool map = node.kind == YamlNode::Kind::kMap;
  Require(node.items.empty() || list, "items without a list");
  Require(node.entries.empty() || map, "entries without a map");
  for (const YamlNode& item : node.items) CheckTree(item, depth + 1);
  for (const YamlEntry& entry : node.entries) {
    Require(entry.line >= 1 && entry.column >= 1, "no place of a key");
    CheckTree(entry.value, depth + 1);
  }
  if (node.kind != YamlNode::Kind::kScalar) return;
  // YamlScalar's promise, for every text that a file can hold.
  const auto back =
      ParseYaml(absl::StrCat("k: ", YamlScalar(node.scalar), "  # c\n"), "s");
  Require(back.ok(), "a scalar that does not read back");
  const YamlNode* const value = back->Find("k");
  Require(value != nullptr && value->kind == YamlNode::Kind::kScalar &&
              value->scalar == node.scalar,
          "a scalar that reads back as another");
}

struct Given {
  std::vector<std::string> flags;
  std::map<std::string, std::string> environment;
  absl::string_view file;
};

Given Split(absl::string_view input) {
  Given given;
  given.file = input;
  const size_t mark = input.find("%%\n");
  if (mark == absl::string_view::npos ||
      (mark > 0 && input[mark - 1] != '\n')) {
    return given;
  }
  given.file = input.substr(mark + 3);
  if (mark == 0) return given;
  for (const absl::string_view line :
       absl::StrSplit(input.substr(0, mark - 1), '\n')) {
    // Arguments and variables end at a NUL.
    const std::string text(line.substr(0, line.find('\0')));
    if (!absl::StartsWith(text, "FNCACHE_")) {
      given.flags.push_back(text);
      continue;
    }
    const size_t equals = text.find('=');
    if (equals == std::string::npos) continue;
    given.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return given;
}

absl::StatusOr<ResolvedSettings> Resolve(const Given& given) {
  absl::StatusOr<settings::ServeFlags> flags =
      settings::ParseServeFlags(given.flags);
  if (!flags.ok()) return flags.status();
  SettingsInput input;
  input.flags = std::move(flags->settings);
  input.environment =
      [&given](const std::string& name) -> absl::optional<std::string> {
    const auto found = given.environment.find(name);
    if (found == given.environment.end()) return absl::nullopt;
    return found->second;
  };
  input.file_name = "f.yaml";
  absl::StatusOr<YamlNode> file = ParseYaml(given.file, input.file_name);
  if (!file.ok()) return file.status();
  CheckTree(*file, 0);
  input.file = *std::move(file);
  return settings::ServeSettings().Resolve(input);
}

void Fuzz(absl::string_view input) {
  if (input.size() > 64 * 1024) return;
  absl::StatusOr<ResolvedSettings> resolved = Resolve(Split(input));
  if (!resolved.ok()) return RequireOneLine(resolved.status());
  const absl::StatusOr<settings::ServeOptions> options =
      settings::MakeServeOptions(&*resolved);

  const std::string printed =
      SettingsAsYaml(settings::ServeSettings(), *resolved);
  Given alone;
  alone.file = printed;
  absl::StatusOr<ResolvedSettings> again = Resolve(alone);
  Require(again.ok(), absl::StrCat(again.status().ToString(), "\n", printed));
  const absl::StatusOr<settings::ServeOptions> options_again =
      settings::MakeServeOptions(&*again);
  Require(resolved->entries.size() == again->entries.size(), "other entries");
  RequireSame(resolved->top, again->top);
  for (size_t i = 0; i < resolved->entries.size(); ++i) {
    RequireSame(resolved->entries[i], again->entries[i]);
  }
  Require(options.ok() == options_again.ok(), "fits only once");
  if (!options.ok()) return RequireOneLine(options.status());
  RequireSame(options->daemon, options_again->daemon);
  Require(options->warnings == options_again->warnings, "other warnings");
}

}  // namespace
}  // namespace fncache::proxy

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fncache::proxy::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
