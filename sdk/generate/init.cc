// SPDX-License-Identifier: Apache-2.0
#include "sdk/generate/init.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/file.h"
#include "nlohmann/json.hpp"
#include "re2/re2.h"
#include "sdk/generate/definitions.h"
#include "sdk/generate/generate.h"
#include "sdk/generate/models.h"
#include "text/yaml_writer.h"

namespace fncache::sdk {
namespace {

namespace fs = std::filesystem;
using text::FindText;
using text::Json;

constexpr absl::string_view kPrefix = "function-";
constexpr char kDefinition[] = "example/definition.yaml";
constexpr char kInput[] = "package/input.yaml";

absl::StatusOr<std::string> NameOf(const InitOptions& options) {
  std::string name = options.name;
  if (name.empty()) {
    name = fs::path(FollowedPath(options.folder)).filename().string();
    if (!absl::StartsWith(name, kPrefix)) name = absl::StrCat(kPrefix, name);
  }
  static const auto* const label =
      new RE2("function-[a-z0-9]([-a-z0-9]{0,52}[a-z0-9])?");
  if (!RE2::FullMatch(name, *label)) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.name.empty() ? absl::StrCat(name, ": give a name with --name")
                             : absl::StrCat("--name: ", name),
        "; accepted: function-NAME, at most 63 of a-z, 0-9 and -"));
  }
  return name;
}

// `storage-bucket` is StorageBucket.
std::string FunctionName(absl::string_view step) {
  std::string name;
  for (const absl::string_view word :
       absl::StrSplit(step, '-', absl::SkipEmpty())) {
    name += absl::ascii_toupper(static_cast<unsigned char>(word[0]));
    absl::StrAppend(&name, word.substr(1));
  }
  // Names that the template's sources have already, and those of no function.
  if (name == "Composite" || name == "Input" || name == "Example" ||
      absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) {
    return absl::StrCat("Function", name);
  }
  return name;
}

// A value that the schema allows, with required fields only.
Json Sample(const Json& schema) {
  for (const char* const key : {"default", "example"}) {
    if (const Json* const value = text::Find(schema, {key})) return *value;
  }
  const Json* const values = text::Find(schema, {"enum"});
  if (values != nullptr && values->is_array() && !values->empty()) {
    return values->front();
  }
  const std::string& type = FindText(schema, {"type"});
  if (type == "string") return "example";
  if (type == "boolean") return true;
  if (type == "array") return Json::array();
  if (type == "integer" || type == "number") {
    const Json* const least = text::Find(schema, {"minimum"});
    return least != nullptr && least->is_number() ? *least : Json(1);
  }
  Json sample = Json::object();
  const Json* const required = text::Find(schema, {"required"});
  if (required == nullptr || !required->is_array()) return sample;
  for (const Json& name : *required) {
    const auto* const text = name.get_ptr<const std::string*>();
    if (text == nullptr) continue;
    const Json* const field = text::Find(schema, {"properties", *text});
    if (field != nullptr) sample[*text] = Sample(*field);
  }
  return sample;
}

// The kind of a definition that the project is for.
absl::StatusOr<Definition> KindOf(const std::string& text,
                                  const std::string& file, bool xrd) {
  absl::StatusOr<std::vector<YamlDocument>> documents =
      ReadDocuments(text, file);
  if (!documents.ok()) return documents.status();
  for (YamlDocument& document : *documents) {
    if (xrd &&
        FindText(*document.json, {"kind"}) != "CompositeResourceDefinition") {
      continue;
    }
    std::vector<Definition> kinds;
    const auto shared =
        std::make_shared<const YamlDocument>(std::move(document));
    absl::Status found = FindDefinitions(shared, &kinds);
    if (!found.ok()) return found;
    const std::string& name =
        FindText(*shared->json, {"spec", "names", "kind"});
    for (const Definition& kind : kinds) {
      if (kind.kind != name) continue;  // the claim's
      if (kind.schema == nullptr) {
        return ErrorAt(*shared, kind.path, "a version without schema");
      }
      return kind;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      file,
      ": has no CompositeResourceDefinition (v1, v2) with a version "
      "that is served"));
}

absl::StatusOr<Place> PlaceOf(const Definition& kind) {
  absl::StatusOr<std::vector<Header>> headers = MakeHeaders({kind});
  if (!headers.ok()) return headers.status();
  return headers->front().place;
}

std::string ApiVersion(const Definition& kind) {
  return absl::StrCat(kind.group, "/", kind.version);
}

std::string ExampleOf(const Definition& kind) {
  Json composite = Sample(*kind.schema);
  composite["apiVersion"] = ApiVersion(kind);
  composite["kind"] = kind.kind;
  composite["metadata"] = {{"name", "example"}};
  const Json* const spec = text::Find(*kind.schema, {"properties", "spec"});
  if (spec != nullptr) composite["spec"] = Sample(*spec);
  composite.erase("status");
  const Json* const scope = text::Find(*kind.document->json, {"spec", "scope"});
  const bool namespaced =
      absl::EndsWith(FindText(*kind.document->json, {"apiVersion"}), "/v2") &&
      (scope == nullptr || *scope == Json("Namespaced"));
  if (namespaced) composite["metadata"]["namespace"] = "default";
  return text::ToYaml(composite);
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> MakeProject(
    const InitOptions& options) {
  const absl::StatusOr<std::string> name = NameOf(options);
  if (!name.ok()) return name.status();
  const std::string step(absl::StripPrefix(*name, kPrefix));
  std::vector<std::pair<std::string, std::string>> words = {
      {"@NAME@", *name},
      {"@STEP@", step},
      {"@FUNCTION@", FunctionName(step)},
      {"@INPUT_GROUP@", absl::StrCat(step, ".fn.example.org")},
      {"@INPUT_API_VERSION@", absl::StrCat(step, ".fn.example.org/v1beta1")}};
  std::map<std::string, std::string> files;
  for (size_t i = 0; i < kTemplateSize; ++i) {
    files[std::string(kTemplate[i].path)] = std::string(kTemplate[i].text);
  }
  if (!options.xrd.empty()) {
    absl::StatusOr<std::string> xrd = ReadSmallFile(options.xrd, 1 << 20);
    if (!xrd.ok()) return xrd.status();
    files[kDefinition] = *std::move(xrd);
  }
  const std::string& file = options.xrd.empty() ? kDefinition : options.xrd;
  const auto xr = KindOf(files[kDefinition], file, /*xrd=*/true);
  if (!xr.ok()) return xr.status();
  const auto input = KindOf(absl::StrReplaceAll(files[kInput], words), kInput,
                            /*xrd=*/false);
  if (!input.ok()) return input.status();
  for (const auto& [word, kind] :
       {std::make_pair("XR", &*xr), std::make_pair("INPUT", &*input)}) {
    const absl::StatusOr<Place> place = PlaceOf(*kind);
    if (!place.ok()) return place.status();
    words.emplace_back(absl::StrCat("@", word, "_HEADER@"), place->file);
    words.emplace_back(absl::StrCat("@", word, "_CLASS@"),
                       FullName(*place).substr(2));
  }
  words.emplace_back("@XR_API_VERSION@", ApiVersion(*xr));
  words.emplace_back("@XR_KIND@", xr->kind);
  for (auto& [path, text] : files) {
    if (path != kDefinition) text = absl::StrReplaceAll(text, words);
  }
  files["example/xr.yaml"] = ExampleOf(*xr);
  return files;
}

absl::Status Init(const InitOptions& options) {
  const auto files = MakeProject(options);
  if (!files.ok()) return files.status();
  std::error_code error;
  const bool there = fs::exists(options.folder, error);
  if (there && !fs::is_empty(options.folder, error) && !error) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.folder, ": is not empty: nothing is written"));
  }
  for (const auto& [path, text] : *files) {
    const fs::path file = fs::path(options.folder) / path;
    fs::create_directories(file.parent_path(), error);
    if (error) {
      return absl::UnknownError(
          absl::StrCat("cannot write ", file.string(), ": ", error.message()));
    }
    absl::Status written = WriteTextFile(file.string(), text);
    if (!written.ok()) return written;
  }
  return absl::OkStatus();
}

}  // namespace fncache::sdk
