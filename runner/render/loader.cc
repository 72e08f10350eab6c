// SPDX-License-Identifier: Apache-2.0
#include "runner/render/loader.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "common/status.h"
#include "common/utf8.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "runner/engine/composition.h"
#include "runner/render/input_file.h"
#include "runner/text/kubernetes_yaml.h"
#include "runner/text/object.h"
#include "runner/text/quoted.h"
#include "runner/text/typed_text.h"

namespace fncache::runner::render {

using google::protobuf::Struct;

namespace {

constexpr absl::string_view kRuntime = "render.crossplane.io/runtime";
constexpr absl::string_view kTarget =
    "render.crossplane.io/runtime-development-target";
constexpr absl::string_view kDefaultTarget = "localhost:9443";
// An object is cut to this size in a message, since nobody reads more.
constexpr size_t kMaxShownBytes = 1000;

// YAML in UTF-16 says so in its first bytes; the parser reads it.
bool IsUtf16(absl::string_view text) {
  return absl::StartsWith(text, "\xff\xfe") ||
         absl::StartsWith(text, "\xfe\xff");
}

absl::Status CheckUtf8(absl::string_view text) {
  size_t line = 1;
  while (!text.empty()) {
    const size_t bytes = Utf8CharacterBytes(text);
    if (bytes == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line, ": is not UTF-8"));
    }
    if (text[0] == '\n') ++line;
    text.remove_prefix(bytes);
  }
  return absl::OkStatus();
}

// Whether a line begins with a marker of documents: `---` or `...`, and then
// the line's end or a blank. Nothing else in YAML can look so, not even within
// a block of text.
bool IsMarker(absl::string_view line, absl::string_view marker) {
  return absl::ConsumePrefix(&line, marker) &&
         (line.empty() || line[0] == ' ' || line[0] == '\t' || line[0] == '\r');
}

// The first document of a text that may have several, whatever the others are
// like. Comments and directives before a first `---` are no document.
absl::string_view FirstDocument(absl::string_view text) {
  absl::string_view rest = text;
  absl::ConsumePrefix(&rest, "\xef\xbb\xbf");
  bool begun = false;
  while (!rest.empty()) {
    const absl::string_view line = rest.substr(0, rest.find('\n'));
    const bool starts = IsMarker(line, "---");
    if (begun && (starts || IsMarker(line, "..."))) {
      return text.substr(0, text.size() - rest.size());
    }
    const size_t first = line.find_first_not_of(" \t\r");
    begun = begun || starts ||
            (first != absl::string_view::npos && line[first] != '#' &&
             line[0] != '%' && !IsMarker(line, "..."));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return text;
}

// A document as an object, or null if it has no content.
absl::StatusOr<text::Json> ParseObject(absl::string_view text, int first_line) {
  absl::StatusOr<text::Json> json = text::ParseKubernetesYaml(text, first_line);
  if (!json.ok()) return json.status();
  if (!json->is_object() && !json->is_null()) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", text::TypeName(*json), ", not an object"));
  }
  return json;
}

// Reads a file as one object; errors do not name the path.
absl::StatusOr<text::Json> ReadObject(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadNamedFile(path);
  if (!text.ok()) return text.status();
  if (!IsUtf16(*text)) {
    const absl::Status utf8 = CheckUtf8(*text);
    if (!utf8.ok()) return utf8;
  }
  absl::StatusOr<text::Json> object = ParseObject(
      IsUtf16(*text) ? absl::string_view(*text) : FirstDocument(*text), 1);
  if (object.ok() && object->is_null()) {
    return absl::InvalidArgumentError("its first document is empty");
  }
  return object;
}

LoadedObject Loaded(text::Json object, std::string where) {
  return {std::make_shared<text::Json>(std::move(object)), std::move(where)};
}

// All documents of one file; null where there is no content.
absl::StatusOr<std::vector<LoadedObject>> ObjectsOf(
    const std::string& path, const absl::StatusOr<std::string>& text) {
  if (!text.ok()) return Prefixed(path, text.status());
  const absl::Status utf8 = CheckUtf8(*text);
  if (!utf8.ok()) return Prefixed(path, utf8);
  const absl::StatusOr<std::vector<text::YamlDocument>> documents =
      text::SplitYamlDocuments(*text);
  if (!documents.ok()) return Prefixed(path, documents.status());
  std::vector<LoadedObject> objects;
  for (size_t i = 0; i < documents->size(); ++i) {
    const std::string where =
        documents->size() == 1 ? path
                               : absl::StrCat(path, " (document ", i + 1, ")");
    absl::StatusOr<text::Json> object =
        ParseObject((*documents)[i].text, (*documents)[i].line);
    if (!object.ok()) return Prefixed(where, object.status());
    objects.push_back(Loaded(*std::move(object), where));
  }
  return objects;
}

bool HasExtension(absl::string_view path, absl::string_view extension) {
  return absl::EndsWith(path, extension);
}

// The file, or each YAML file of the folder, read by itself; null where there
// is no content. The first that is wrong ends it if `all_or_nothing`, since no
// other one is needed then.
absl::StatusOr<std::vector<LoadedFile>> ReadFiles(const std::string& path,
                                                  bool all_or_nothing) {
  const absl::StatusOr<bool> is_folder = IsFolder(path);
  if (!is_folder.ok()) return Prefixed(path, is_folder.status());
  std::vector<LoadedFile> files;
  if (!*is_folder) {
    files.push_back({path, ObjectsOf(path, ReadNamedFile(path))});
    return files;
  }
  const absl::StatusOr<std::vector<FolderEntry>> entries = ListFolder(path);
  if (!entries.ok()) return Prefixed(path, entries.status());
  for (const FolderEntry& entry : *entries) {
    if (entry.is_folder || (!HasExtension(entry.path, ".yaml") &&
                            !HasExtension(entry.path, ".yml"))) {
      continue;
    }
    files.push_back(
        {entry.path, ObjectsOf(entry.path, ReadFoundFile(entry.path))});
    if (all_or_nothing && !files.back().objects.ok()) break;
  }
  if (files.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no YAML files found in ", text::Quoted(path), " (.yaml or .yml)"));
  }
  return files;
}

// Loads as LoadObjects does, but gives null where there is no content.
absl::StatusOr<std::vector<LoadedObject>> ReadObjects(const std::string& path) {
  absl::StatusOr<std::vector<LoadedFile>> files =
      ReadFiles(path, /*all_or_nothing=*/true);
  if (!files.ok()) return files.status();
  std::vector<LoadedObject> objects;
  for (LoadedFile& file : *files) {
    if (!file.objects.ok()) return file.objects.status();
    std::move(file.objects->begin(), file.objects->end(),
              std::back_inserter(objects));
  }
  return objects;
}

// Comments alone stand for an empty object.
void FillEmpty(std::vector<LoadedObject>* objects) {
  for (LoadedObject& object : *objects) {
    if (object.object->is_null()) *object.object = text::Json::object();
  }
}

// The kind of an object that may have any form; "" if it has none that counts,
// which an apiVersion that is none sees to as well.
std::string KindOf(const text::Json& object) {
  const std::string api_version = text::FindText(object, {"apiVersion"});
  return std::count(api_version.begin(), api_version.end(), '/') > 1
             ? ""
             : text::FindText(object, {"kind"});
}

absl::Status CheckKind(const text::Json& object) {
  if (!KindOf(object).empty()) return absl::OkStatus();
  std::string shown =
      object.dump(-1, ' ', false, text::Json::error_handler_t::replace);
  if (shown.size() > kMaxShownBytes) {
    size_t end = kMaxShownBytes;
    // The cut must not be within a character.
    while (end > 0 && (shown[end] & 0xc0) == 0x80) --end;
    shown = absl::StrCat(shown.substr(0, end), "...");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("Object 'Kind' is missing in '", Printable(shown), "'"));
}

// Whether everything has a kind, or is empty.
absl::Status CheckKinds(const std::vector<LoadedObject>& objects) {
  for (const LoadedObject& object : objects) {
    if (object.object->is_null()) continue;
    const absl::Status kind = CheckKind(*object.object);
    if (!kind.ok()) return Prefixed(object.where, kind);
  }
  return absl::OkStatus();
}

// Returns `KIND/NAME` of a Composition or a Function.
std::string KindAndName(const text::Json& object) {
  return absl::StrCat(text::FindTypedText(object, {"kind"}), "/",
                      text::FindTypedText(object, {"metadata", "name"}));
}

absl::Status CheckSelector(const text::Json& composition,
                           const text::Json& composite) {
  const text::Json* const wanted = text::Find(
      composite, {"spec", "crossplane", "compositionSelector", "matchLabels"});
  if (wanted == nullptr || !wanted->is_object()) return absl::OkStatus();
  // A selector that is not one selects nothing.
  for (const auto& label : wanted->items()) {
    if (!label.value().is_string() && !label.value().is_null()) {
      return absl::OkStatus();
    }
  }
  const std::string name =
      text::Quoted(text::FindTypedText(composition, {"metadata", "name"}));
  for (const auto& label : wanted->items()) {
    const std::string value = text::TypedText(label.value()).value_or("");
    const text::Json* const has =
        text::Find(composition, {"metadata", "labels", label.key()});
    if (has == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("composition ", name, " is missing required label ",
                       text::Quoted(label.key())));
    }
    const std::string got = text::TypedText(*has).value_or("");
    if (got != value) {
      return absl::InvalidArgumentError(
          absl::StrCat("composition ", name, " has incorrect value for label ",
                       text::Quoted(label.key()), ": want ",
                       text::Quoted(value), ", got ", text::Quoted(got)));
    }
  }
  return absl::OkStatus();
}

using Annotations = std::vector<std::pair<std::string, std::string>>;

// A Function's annotation, "" without it.
std::string AnnotationOf(const text::Json& function,
                         const Annotations& replaced, absl::string_view name) {
  std::string value =
      text::FindTypedText(function, {"metadata", "annotations", name});
  for (const auto& annotation : replaced) {
    if (annotation.first == name) value = annotation.second;
  }
  return value;
}

absl::StatusOr<std::string> TargetOf(const text::Json& function,
                                     const Annotations& replaced) {
  const std::string name = text::FindTypedText(function, {"metadata", "name"});
  const std::string runtime = AnnotationOf(function, replaced, kRuntime);
  if (runtime.empty() || runtime == "Docker") {
    return absl::InvalidArgumentError(absl::StrCat(
        "Function ", text::Quoted(name),
        " is for the Docker runtime, which fncache does not have: run the "
        "function, and give its target by the annotations ",
        kRuntime, ": Development and ", kTarget,
        ": HOST:PORT, or by --function ", name, "=HOST:PORT"));
  }
  if (runtime != "Development") {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot get runtime for Function ", text::Quoted(name),
        ": unsupported ", text::Quoted(kRuntime), " annotation value ",
        text::Quoted(runtime), " (unknown runtime)"));
  }
  std::string target = AnnotationOf(function, replaced, kTarget);
  return target.empty() ? std::string(kDefaultTarget) : target;
}

// Appends the *.json below a folder.
absl::Status FindSchemas(const std::string& dir,
                         std::vector<std::string>* files) {
  const absl::StatusOr<std::vector<FolderEntry>> entries = ListFolder(dir);
  if (!entries.ok()) return Prefixed(dir, entries.status());
  for (const FolderEntry& entry : *entries) {
    if (entry.is_folder) {
      const absl::Status found = FindSchemas(entry.path, files);
      if (!found.ok()) return found;
    } else if (HasExtension(entry.path, ".json")) {
      files->push_back(entry.path);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<text::Json> ReadSchema(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFoundFile(path);
  if (!text.ok()) return text.status();
  absl::StatusOr<text::Json> document = text::ParseJson(*text);
  if (document.ok() && !document->is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", text::TypeName(*document), ", not an object"));
  }
  return document;
}

}  // namespace

absl::StatusOr<LoadedObject> LoadObject(const std::string& path) {
  absl::StatusOr<text::Json> object = ReadObject(path);
  if (!object.ok()) return Prefixed(path, object.status());
  return Loaded(*std::move(object), path);
}

absl::StatusOr<std::vector<LoadedObject>> LoadObjects(const std::string& path) {
  absl::StatusOr<std::vector<LoadedObject>> objects = ReadObjects(path);
  if (objects.ok()) FillEmpty(&*objects);
  return objects;
}

absl::StatusOr<std::vector<LoadedObject>> LoadResources(
    const std::vector<std::string>& paths) {
  std::vector<LoadedObject> resources;
  for (const std::string& path : paths) {
    absl::StatusOr<std::vector<LoadedObject>> objects = ReadObjects(path);
    if (!objects.ok()) return objects.status();
    const absl::Status kinds = CheckKinds(*objects);
    if (!kinds.ok()) return kinds;
    FillEmpty(&*objects);
    std::move(objects->begin(), objects->end(), std::back_inserter(resources));
  }
  return resources;
}

absl::StatusOr<std::vector<LoadedFile>> LoadResourceFiles(
    const std::string& path) {
  absl::StatusOr<std::vector<LoadedFile>> files =
      ReadFiles(path, /*all_or_nothing=*/false);
  if (!files.ok()) return files;
  for (LoadedFile& file : *files) {
    if (!file.objects.ok()) continue;
    const absl::Status kinds = CheckKinds(*file.objects);
    if (kinds.ok()) {
      FillEmpty(&*file.objects);
    } else {
      file.objects = kinds;
    }
  }
  return files;
}

absl::StatusOr<LoadedObject> LoadComposite(const std::string& path) {
  absl::StatusOr<text::Json> object = ReadObject(path);
  const absl::Status status =
      object.ok() ? CheckKind(*object) : object.status();
  if (!status.ok()) return Prefixed(path, status);
  return Loaded(*std::move(object), path);
}

absl::StatusOr<LoadedObject> LoadComposition(const std::string& path) {
  absl::StatusOr<text::Json> object = ReadObject(path);
  if (!object.ok()) return Prefixed(path, object.status());
  if (text::FindTypedText(*object, {"apiVersion"}) !=
          "apiextensions.crossplane.io/v1" ||
      text::FindTypedText(*object, {"kind"}) != "Composition") {
    return Prefixed(path, absl::InvalidArgumentError(absl::StrCat(
                              "not a composition: ", KindAndName(*object))));
  }
  const Struct composition = text::ToStruct(*object);
  absl::Status status = engine::ParseComposition(composition).status();
  if (status.ok()) status = engine::CheckFieldsOfSpec(composition);
  if (!status.ok()) return Prefixed(path, status);
  return Loaded(*std::move(object), path);
}

absl::Status CheckComposition(const text::Json& composition,
                              const text::Json& composite) {
  absl::Status status = engine::CheckCompositeType(
      "kind",
      text::FindTypedText(composition, {"spec", "compositeTypeRef", "kind"}),
      KindOf(composite));
  if (!status.ok()) return status;
  status = engine::CheckCompositeType(
      "apiVersion",
      text::FindTypedText(composition,
                          {"spec", "compositeTypeRef", "apiVersion"}),
      text::FindText(composite, {"apiVersion"}));
  if (!status.ok()) return status;
  status = CheckSelector(composition, composite);
  if (!status.ok()) return status;
  if (text::FindTypedText(composition, {"spec", "mode"}) != "Pipeline") {
    return absl::InvalidArgumentError(absl::StrCat(
        "render only supports Composition Function pipelines: Composition ",
        text::Quoted(text::FindTypedText(composition, {"metadata", "name"})),
        " must use spec.mode: Pipeline"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<client::FunctionTarget>> LoadFunctions(
    const std::string& path,
    const std::vector<std::pair<std::string, std::string>>& annotations,
    const std::vector<client::FunctionTarget>& given) {
  absl::StatusOr<std::vector<LoadedObject>> objects = LoadObjects(path);
  if (!objects.ok()) return objects.status();
  // Of two with one name the last counts.
  std::map<std::string, std::string> targets;
  std::map<std::string, std::string> known;
  for (const client::FunctionTarget& function : given) {
    known[function.name] = function.target;
  }
  for (const LoadedObject& object : *objects) {
    const std::string api_version =
        text::FindTypedText(*object.object, {"apiVersion"});
    if ((api_version != "pkg.crossplane.io/v1" &&
         api_version != "pkg.crossplane.io/v1beta1") ||
        text::FindTypedText(*object.object, {"kind"}) != "Function") {
      return Prefixed(object.where,
                      absl::InvalidArgumentError(absl::StrCat(
                          "not a function: ", KindAndName(*object.object))));
    }
    const std::string name =
        text::FindTypedText(*object.object, {"metadata", "name"});
    if (known.count(name) > 0) continue;
    absl::StatusOr<std::string> target = TargetOf(*object.object, annotations);
    if (!target.ok()) return Prefixed(object.where, target.status());
    targets[name] = *std::move(target);
  }
  targets.insert(known.begin(), known.end());
  std::vector<client::FunctionTarget> functions;
  functions.reserve(targets.size());
  for (const auto& target : targets) {
    functions.push_back({target.first, target.second});
  }
  return functions;
}

absl::StatusOr<std::vector<text::Json>> LoadSchemas(const std::string& dir) {
  const absl::StatusOr<bool> is_folder = IsFolder(dir);
  if (!is_folder.ok()) return Prefixed(dir, is_folder.status());
  std::vector<std::string> files;
  if (*is_folder) {
    const absl::Status found = FindSchemas(dir, &files);
    if (!found.ok()) return found;
  } else if (HasExtension(dir, ".json")) {
    files.push_back(dir);
  }
  if (files.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no JSON files found in ", text::Quoted(dir)));
  }
  std::vector<text::Json> documents;
  for (const std::string& file : files) {
    absl::StatusOr<text::Json> document = ReadSchema(file);
    if (!document.ok()) {
      return Prefixed(
          absl::StrCat("cannot parse OpenAPI JSON from ", text::Quoted(file)),
          document.status());
    }
    documents.push_back(*std::move(document));
  }
  return documents;
}

}  // namespace fncache::runner::render
