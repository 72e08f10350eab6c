// SPDX-License-Identifier: Apache-2.0
#include "sdk/generate/generate.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "common/nearest.h"
#include "sdk/generate/definitions.h"
#include "sdk/generate/models.h"
#include "sdk/generate/writer.h"

namespace fncache::sdk {
namespace {

namespace fs = std::filesystem;

// OpenAPI documents of API servers have 2 MB.
constexpr size_t kMaxFileBytes = 64 << 20;

// The error that none of the kinds has a wanted name.
absl::Status NoSuch(absl::string_view what, const std::string& wanted,
                    const std::set<std::string>& there) {
  return absl::NotFoundError(
      absl::StrCat("no ", what, " \"", wanted, "\" is defined",
                   DidYouMean(wanted, {there.begin(), there.end()})));
}

// Marks the definitions that the options ask for.
absl::Status Choose(const GenerateOptions& options,
                    std::vector<Definition>* definitions) {
  std::set<std::string> kinds, qualified, versions;
  bool any = false;
  for (Definition& definition : *definitions) {
    kinds.insert(definition.kind);
    versions.insert(definition.version);
    const std::string name = QualifiedName(definition);
    qualified.insert(name);
    definition.input = options.inputs.count(definition.kind) != 0 ||
                       options.inputs.count(name) != 0;
    definition.wanted = (options.kinds.empty() || definition.input ||
                         options.kinds.count(definition.kind) != 0) &&
                        (options.versions.empty() ||
                         options.versions.count(definition.version) != 0);
    any = any || definition.wanted;
    if (definition.input && !definition.component.empty()) {
      return ErrorAt(*definition.document, definition.path,
                     absl::StrCat("the input ", definition.kind,
                                  " needs a CRD; this is an OpenAPI document"));
    }
  }
  for (const auto* const names : {&options.kinds, &options.inputs}) {
    for (const std::string& kind : *names) {
      if (kinds.count(kind) == 0 &&
          (names != &options.inputs || qualified.count(kind) == 0)) {
        return NoSuch("kind", kind, kinds);
      }
    }
  }
  for (const std::string& version : options.versions) {
    if (versions.count(version) == 0) {
      return NoSuch("version", version, versions);
    }
  }
  if (!any) {
    return absl::NotFoundError("no kind is served in the wanted version");
  }
  return absl::OkStatus();
}

absl::Status CannotWrite(const std::string& path, absl::string_view why) {
  return absl::UnknownError(absl::StrCat("cannot write ", path, ": ", why));
}

// Whether the file is to be written; an error if it must stay.
absl::StatusOr<bool> IsToBeWritten(const std::string& path,
                                   const std::string& text) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(path, ignored))) return true;
  const absl::StatusOr<std::string> old = ReadSmallFile(path, kMaxFileBytes);
  if (!old.ok()) return CannotWrite(path, old.status().message());
  if (!absl::StrContains(absl::string_view(*old).substr(0, old->find('\n')),
                         kGenerated)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": is there, and was not ", kGenerated, ": nothing is written"));
  }
  return *old != text;
}

// Writes beside the file, and renames.
absl::Status WriteWhole(const std::string& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return CannotWrite(path, error.message());
  std::string temporary = path + ".XXXXXX";
  const int file = mkstemp(temporary.data());
  if (file < 0) return CannotWrite(path, std::strerror(errno));
  const mode_t mask = umask(0);
  umask(mask);
  bool written = fchmod(file, 0666 & ~mask) == 0 && WriteAll(file, text);
  int why = errno;
  if (close(file) != 0 && written) {
    written = false;
    why = errno;
  }
  if (written && std::rename(temporary.c_str(), path.c_str()) != 0) {
    written = false;
    why = errno;
  }
  if (written) return absl::OkStatus();
  unlink(temporary.c_str());
  return CannotWrite(path, std::strerror(why));
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> Generate(
    const std::vector<std::shared_ptr<const YamlDocument>>& documents,
    const GenerateOptions& options) {
  std::vector<Definition> definitions;
  for (const auto& document : documents) {
    absl::Status found = FindDefinitions(document, &definitions);
    if (!found.ok()) return found;
  }
  if (definitions.empty()) {
    return absl::NotFoundError(
        "no kind is defined: neither by a CRD (v1) nor by an XRD (v1, v2) nor "
        "by an OpenAPI v3 document");
  }
  if (absl::Status chosen = Choose(options, &definitions); !chosen.ok()) {
    return chosen;
  }
  absl::StatusOr<std::vector<Header>> headers =
      MakeHeaders(std::move(definitions));
  if (!headers.ok()) return headers.status();
  std::map<std::string, std::string> texts;
  std::map<std::string, const Header*> first;
  for (const Header& header : *headers) {
    std::string text = WriteHeader(header);
    const auto [known, added] = first.emplace(header.place.file, &header);
    if (!added && texts[header.place.file] != text) {
      return ErrorAt(
          *header.document, header.path,
          absl::StrCat(header.kind.empty() ? header.component : header.kind,
                       " is defined otherwise in ",
                       known->second->document->file));
    }
    texts[header.place.file] = std::move(text);
  }
  return texts;
}

absl::StatusOr<std::vector<std::shared_ptr<const YamlDocument>>> ReadAll(
    const std::vector<std::string>& paths) {
  std::vector<std::shared_ptr<const YamlDocument>> all;
  for (const std::string& path : paths) {
    const absl::StatusOr<std::vector<std::string>> files = FilesAt(path);
    if (!files.ok()) return files.status();
    for (const std::string& file : *files) {
      const absl::StatusOr<std::string> text =
          ReadSmallFile(file, kMaxFileBytes);
      if (!text.ok()) return text.status();
      absl::StatusOr<std::vector<YamlDocument>> documents =
          ReadDocuments(*text, file);
      if (!documents.ok()) return documents.status();
      for (YamlDocument& document : *documents) {
        // The others' texts are not kept.
        if (!DefinesKinds(document)) continue;
        all.push_back(
            std::make_shared<const YamlDocument>(std::move(document)));
      }
    }
  }
  return all;
}

absl::Status WriteHeaders(const std::map<std::string, std::string>& headers,
                          const std::string& folder) {
  std::vector<std::pair<std::string, const std::string*>> files;
  for (const auto& [name, text] : headers) {
    const std::string path = absl::StrCat(folder, "/", name);
    absl::StatusOr<bool> write = IsToBeWritten(path, text);
    if (!write.ok()) return write.status();
    if (*write) files.emplace_back(path, &text);
  }
  for (const auto& [path, text] : files) {
    absl::Status written = WriteWhole(path, *text);
    if (!written.ok()) return written;
  }
  return absl::OkStatus();
}

}  // namespace fncache::sdk
