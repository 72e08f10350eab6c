// SPDX-License-Identifier: Apache-2.0
// The generator over any bytes: they are no YAML, define nothing, are wrong, or
// give headers. An error has a file and a line, or says that nothing is
// defined. A header has balanced braces outside of its comments and literals,
// no line of it continues in the next, and the same bytes give the same
// headers.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "re2/re2.h"
#include "sdk/generate/generate.h"

namespace {

using fncache::sdk::YamlDocument;
using Documents = std::vector<std::shared_ptr<const YamlDocument>>;

void Check(bool holds) {
  if (!holds) std::abort();
}

// Follows the text as a compiler does.
void CheckHeader(absl::string_view text) {
  int depth = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    Check(!absl::EndsWith(line, "\\") && !absl::EndsWith(line, "?\?/"));
    bool literal = false;
    for (size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      Check(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
      if (literal) {
        if (c == '\\') ++i;
        if (c == '"') literal = false;
        continue;
      }
      if (c == '/' && line.substr(i, 2) == "//") break;
      if (c == '"') literal = true;
      if (c == '{') ++depth;
      if (c == '}') Check(--depth >= 0);
    }
    Check(!literal);
  }
  Check(depth == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 8192) return 0;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  static const auto* const at = new RE2("(?s)f:[1-9][0-9]*: .+");
  auto read = fncache::sdk::ReadDocuments(text, "f");
  if (!read.ok()) {
    Check(RE2::FullMatch(std::string(read.status().message()), *at));
    return 0;
  }
  Documents documents;
  for (YamlDocument& document : *read) {
    documents.push_back(
        std::make_shared<const YamlDocument>(std::move(document)));
  }
  fncache::sdk::GenerateOptions options;
  auto headers = fncache::sdk::Generate(documents, options);
  // Every kind as an input, too.
  if (headers.ok()) {
    options.inputs = {"Input"};
    auto inputs = fncache::sdk::Generate(documents, options);
    if (inputs.ok()) {
      for (const auto& [file, header] : *inputs) CheckHeader(header);
    }
    options.inputs = {};
    auto twice = fncache::sdk::Generate(documents, options);
    Check(twice.ok() && *twice == *headers && !headers->empty());
    for (const auto& [file, header] : *headers) {
      Check(absl::StartsWith(file, "model/") && absl::EndsWith(file, ".h") &&
            !absl::StrContains(file, ".."));
      CheckHeader(header);
    }
    return 0;
  }
  const std::string message(headers.status().message());
  Check(RE2::FullMatch(message, *at) ||
        (absl::IsNotFound(headers.status()) && !message.empty()));
  return 0;
}
