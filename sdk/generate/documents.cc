// SPDX-License-Identifier: Apache-2.0
#include "sdk/generate/documents.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/utf8.h"
#include "nlohmann/json.hpp"
#include "text/kubernetes_yaml.h"
#include "text/yaml_nodes.h"

namespace fncache::sdk {
namespace {

using text::YamlNode;

absl::Status At(absl::string_view file, int line, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(file, ":", line, ": ", Printable(why)));
}

// The message of text's YAML reader without its own line.
absl::string_view WithoutLine(absl::string_view message) {
  absl::ConsumePrefix(&message, "yaml: ");
  absl::string_view rest = message;
  if (absl::ConsumePrefix(&rest, "line ")) {
    const size_t end = rest.find(": ");
    if (end != absl::string_view::npos) message = rest.substr(end + 2);
  }
  return message;
}

int Lines(absl::string_view text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

// The line of the separator that SplitYamlDocuments refuses.
int SeparatorLine(absl::string_view text) {
  int line = 1;
  for (absl::string_view rest : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&rest, "---")) {
      rest = absl::StripAsciiWhitespace(rest);
      if (!rest.empty() && rest[0] != '#') return line;
    }
    ++line;
  }
  return 1;
}

// The child of `node` named `step`, and where it begins; null without one.
const YamlNode* Child(const YamlNode& node, const std::string& step,
                      int* line) {
  if (node.kind == YamlNode::Kind::kList) {
    size_t index = 0;
    if (!absl::SimpleAtoi(step, &index) || index >= node.children.size()) {
      return nullptr;
    }
    *line = node.children[index]->line;
    return node.children[index];
  }
  if (node.kind != YamlNode::Kind::kMap) return nullptr;
  for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
    if (node.children[i]->text != step) continue;
    *line = node.children[i]->line;
    return node.children[i + 1];
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::vector<YamlDocument>> ReadDocuments(
    absl::string_view text, absl::string_view file) {
  absl::StatusOr<std::vector<std::string>> parts =
      text::SplitYamlDocuments(text);
  if (!parts.ok()) {
    return At(file, SeparatorLine(text), parts.status().message());
  }
  std::vector<YamlDocument> documents;
  int line = 1;
  for (std::string& part : *parts) {
    const int first_line = line;
    line += Lines(part) + 1;  // the separator's line is in neither
    absl::StatusOr<text::Json> json = text::ParseKubernetesYaml(part);
    // JSON writes characters as pairs of escapes that YAML does not have.
    if (!json.ok() &&
        absl::StartsWith(absl::StripLeadingAsciiWhitespace(part), "{")) {
      absl::StatusOr<text::Json> plain = text::ParseJson(part);
      if (plain.ok()) json = std::move(plain);
    }
    if (!json.ok()) {
      text::YamlNodes nodes(part);
      // A fault at the end is in the last line, not behind it.
      const int at = nodes.Parse().ok()
                         ? 0
                         : std::min(nodes.fault_line(), Lines(part) - 1);
      return At(file, first_line + at, WithoutLine(json.status().message()));
    }
    documents.push_back({std::string(file), first_line, std::move(part),
                         std::make_shared<const text::Json>(*std::move(json))});
  }
  return documents;
}

absl::Status ErrorAt(const YamlDocument& document, const DocumentPath& path,
                     absl::string_view why) {
  text::YamlNodes nodes(document.text);
  const absl::StatusOr<const YamlNode*> root = nodes.Parse();
  int line = 0;
  const YamlNode* node = root.ok() ? *root : nullptr;
  if (node != nullptr) line = node->line;
  for (const std::string& step : path) {
    if (node != nullptr && node->kind == YamlNode::Kind::kAlias) {
      node = node->target;
    }
    if (node != nullptr) node = Child(*node, step, &line);
  }
  return At(document.file, document.first_line + line, why);
}

absl::StatusOr<std::vector<std::string>> FilesAt(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  fs::recursive_directory_iterator entry(path, error);
  for (; !error && entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (absl::StartsWith(name, ".")) {
      entry.disable_recursion_pending();
      continue;
    }
    const bool wanted = absl::EndsWith(name, ".yaml") ||
                        absl::EndsWith(name, ".yml") ||
                        absl::EndsWith(name, ".json");
    std::error_code ignored;
    if (wanted && !entry->is_directory(ignored)) {
      files.push_back(entry->path().string());
    }
  }
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, ": ", error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace fncache::sdk
