// SPDX-License-Identifier: Apache-2.0
#include "runner/render/expect.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "common/status.h"
#include "common/utf8.h"
#include "nlohmann/json.hpp"
#include "runner/render/input_file.h"
#include "runner/render/output.h"
#include "runner/render/text_diff.h"
#include "text/kubernetes_yaml.h"

namespace fncache::runner::render {
namespace {

std::string NameOf(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

bool IsYaml(absl::string_view name) {
  return absl::EndsWith(name, ".yaml") || absl::EndsWith(name, ".yml");
}

// The documents of a file as PrintDocuments prints them.
absl::StatusOr<std::string> Normalized(absl::string_view text) {
  const auto parts = text::SplitYamlDocuments(text);
  if (!parts.ok()) return parts.status();
  std::vector<text::Json> documents;
  for (const std::string& part : *parts) {
    auto document = text::ParseKubernetesYaml(part);
    if (!document.ok()) return document.status();
    if (document->is_null()) continue;  // only comments
    documents.push_back(*std::move(document));
  }
  return PrintDocuments(documents);
}

}  // namespace

Expectations::Expectations(std::string folder, bool update)
    : folder_(std::move(folder)), update_(update) {}

absl::StatusOr<Expectations::Rendered*> Expectations::Of(
    const std::string& file) {
  Rendered& rendered = by_name_[NameOf(file)];
  if (rendered.file.empty()) rendered.file = file;
  if (rendered.file == file) return &rendered;
  return absl::InvalidArgumentError(absl::StrCat(
      "--expect: ", Printable(rendered.file), " and ", Printable(file),
      " have one name; accepted: files of --all with different names"));
}

absl::Status Expectations::Add(const std::string& file,
                               absl::string_view documents) {
  const auto rendered = Of(file);
  if (!rendered.ok()) return rendered.status();
  absl::StrAppend(&(*rendered)->documents, documents);
  return absl::OkStatus();
}

absl::Status Expectations::Skip(const std::string& file) {
  const auto rendered = Of(file);
  if (!rendered.ok()) return rendered.status();
  (*rendered)->skipped = true;
  return absl::OkStatus();
}

absl::StatusOr<Expectations::Comparison> Expectations::Compare() const {
  if (update_) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) {
      return absl::UnknownError(absl::StrCat(
          "--expect: cannot make ", Printable(folder_), ": ", error.message()));
    }
  }
  const auto entries = ListFolder(folder_);
  if (!entries.ok()) {
    return Prefixed(absl::StrCat("--expect: ", Printable(folder_)),
                    entries.status());
  }
  Comparison comparison;
  size_t met = 0;
  bool unknown = false;
  for (const FolderEntry& entry : *entries) {
    const std::string name = NameOf(entry.path);
    if (entry.is_folder || !IsYaml(name) || by_name_.count(name) > 0) continue;
    unknown = true;
    absl::StrAppend(&comparison.report,
                    "fncache render: ", Printable(entry.path),
                    ": no file of --all has this name\n");
  }
  for (const auto& [name, rendered] : by_name_) {
    if (rendered.skipped) continue;
    const std::string path = absl::StrCat(folder_, "/", name);
    std::string expected;
    auto text = ReadSmallFile(path, kMaxLoadedBytes);
    if (text.ok()) {
      auto normalized = Normalized(*text);
      if (normalized.ok()) {
        expected = *std::move(normalized);
      } else if (!update_) {
        return Prefixed(absl::StrCat("--expect: ", Printable(path)),
                        normalized.status());
      }
    } else if (!absl::IsNotFound(text.status())) {
      return Prefixed("--expect", text.status());
    }
    if (text.ok() && expected == rendered.documents) {
      ++met;
      continue;
    }
    if (!update_) {
      absl::StrAppend(&comparison.differences,
                      TextDiff(expected, rendered.documents, Printable(path),
                               Printable(rendered.file)));
      continue;
    }
    const absl::Status written = WriteTextFile(path, rendered.documents);
    if (!written.ok()) return written;
    ++met;
    absl::StrAppend(&comparison.report, "fncache render: wrote ",
                    Printable(path), "\n");
  }
  absl::StrAppend(&comparison.report, "fncache render: ", met, " of ",
                  by_name_.size(), " files as expected\n");
  comparison.as_expected = met == by_name_.size() && !unknown;
  return comparison;
}

}  // namespace fncache::runner::render
