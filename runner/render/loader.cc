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
#include "runner/render/operations.h"
#include "text/kubernetes_yaml.h"
#include "text/object.h"
#include "text/quoted.h"
#include "text/type_name.h"
#include "text/typed_object.h"

namespace fncache::runner::render {

namespace {

constexpr absl::string_view kRuntime = "render.crossplane.io/runtime";
constexpr absl::string_view kTarget =
    "render.crossplane.io/runtime-development-target";
constexpr absl::string_view kDefaultTarget = "localhost:9443";
// Bytes. A longer object is cut in a message.
constexpr size_t kMaxShownBytes = 1000;

// The prefixes of the reference's command line for errors in a file of each
// kind.
constexpr absl::string_view kCannotReadComposite =
    "cannot unmarshal composite resource YAML";
constexpr absl::string_view kCannotReadComposition =
    "cannot unmarshal composition resource YAML";
constexpr absl::string_view kCannotReadDefinition = "cannot unmarshal XRD YAML";
constexpr absl::string_view kCannotReadFunction =
    "cannot parse YAML Function manifest";
constexpr absl::string_view kCannotReadSecret =
    "cannot parse YAML secret manifest";

// The first document of a text as it is written.
absl::StatusOr<text::Json> ParseValues(absl::string_view text) {
  absl::StatusOr<text::Json> values = text::ParseYamlValues(text);
  if (values.ok()) return values;
  return Prefixed("error converting YAML to JSON", values.status());
}

// The same as an object without a fixed form; null if it has no content.
absl::StatusOr<text::Json> ParseObject(absl::string_view text) {
  absl::StatusOr<text::Json> json = ParseValues(text);
  if (!json.ok()) return json;
  const absl::Status made = text::MakeUnstructured(&*json);
  if (!made.ok()) return Prefixed("error converting YAML to JSON", made);
  if (json->is_object() || json->is_null()) return json;
  const absl::string_view word = json->is_array()     ? "array"
                                 : json->is_string()  ? "string"
                                 : json->is_boolean() ? "bool"
                                                      : "number";
  return absl::InvalidArgumentError(absl::StrCat(
      "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ",
      word, " into Go value of type map[string]interface {}"));
}

absl::Status CheckContent(const absl::StatusOr<text::Json>& object) {
  if (!object.ok()) return object.status();
  return object->is_null()
             ? absl::InvalidArgumentError("its first document is empty")
             : absl::OkStatus();
}

// The first document of a file, null if it has no content. Errors do not name
// the path.
absl::StatusOr<text::Json> ReadObject(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadNamedFile(path);
  if (!text.ok()) return text.status();
  return ParseObject(*text);
}

// Reads the first document of a file as an object of a fixed form. Errors do
// not name the path. `values` is the object as it was written.
absl::StatusOr<text::Json> ReadTyped(const std::string& path,
                                     text::ObjectType type,
                                     absl::string_view cannot_read,
                                     text::Json* values) {
  const absl::StatusOr<std::string> text = ReadNamedFile(path);
  if (!text.ok()) return text.status();
  absl::StatusOr<text::Json> written = ParseValues(*text);
  if (!written.ok()) return Prefixed(cannot_read, written.status());
  const absl::Status content = CheckContent(written);
  if (!content.ok()) return content;
  *values = *written;
  absl::StatusOr<text::Json> object =
      text::ReadTypedYaml(type, *std::move(written));
  if (!object.ok()) return Prefixed(cannot_read, object.status());
  return object;
}

LoadedObject Loaded(text::Json object, std::string where) {
  return {std::make_shared<text::Json>(std::move(object)), std::move(where)};
}

// Makes an object of a document.
using Read = absl::StatusOr<text::Json> (*)(absl::string_view text);

absl::StatusOr<text::Json> ReadSecret(absl::string_view text) {
  absl::StatusOr<text::Json> values = ParseValues(text);
  if (values.ok()) {
    values = text::ReadTypedYaml(text::ObjectType::kSecret, *std::move(values));
  }
  if (values.ok()) return values;
  return Prefixed(kCannotReadSecret, values.status());
}

absl::StatusOr<text::Json> ReadFunction(absl::string_view text) {
  absl::StatusOr<text::Json> values = ParseValues(text);
  if (values.ok()) {
    values =
        text::ReadTypedYaml(text::ObjectType::kFunction, *std::move(values));
  }
  if (values.ok()) return values;
  return Prefixed(kCannotReadFunction, values.status());
}

// All documents of one file; null where there is no content.
absl::StatusOr<std::vector<LoadedObject>> ObjectsOf(
    const std::string& path, const absl::StatusOr<std::string>& text,
    Read read) {
  if (!text.ok()) return Prefixed(path, text.status());
  const absl::StatusOr<std::vector<std::string>> documents =
      text::SplitYamlDocuments(*text);
  if (!documents.ok()) return Prefixed(path, documents.status());
  std::vector<LoadedObject> objects;
  for (size_t i = 0; i < documents->size(); ++i) {
    const std::string where =
        documents->size() == 1 ? path
                               : absl::StrCat(path, " (document ", i + 1, ")");
    absl::StatusOr<text::Json> object = read((*documents)[i]);
    if (!object.ok()) return Prefixed(where, object.status());
    objects.push_back(Loaded(*std::move(object), where));
  }
  return objects;
}

bool HasExtension(absl::string_view path, absl::string_view extension) {
  return absl::EndsWith(path, extension);
}

// The file, or each YAML file of the folder, read separately; null where there
// is no content. If `all_or_nothing`, the first error ends it, since no other
// file is needed then.
absl::StatusOr<std::vector<LoadedFile>> ReadFiles(const std::string& path,
                                                  bool all_or_nothing,
                                                  Read read = ParseObject) {
  const absl::StatusOr<bool> is_folder = IsFolder(path);
  if (!is_folder.ok()) return Prefixed(path, is_folder.status());
  std::vector<LoadedFile> files;
  if (!*is_folder) {
    files.push_back({path, ObjectsOf(path, ReadNamedFile(path), read)});
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
        {entry.path, ObjectsOf(entry.path, ReadFoundFile(entry.path), read)});
    if (all_or_nothing && !files.back().objects.ok()) break;
  }
  if (files.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no YAML files found in ", text::Quoted(path), " (.yaml or .yml)"));
  }
  return files;
}

// The objects of all files; null where there is no content.
absl::StatusOr<std::vector<LoadedObject>> ReadObjects(const std::string& path,
                                                      Read read = ParseObject) {
  absl::StatusOr<std::vector<LoadedFile>> files =
      ReadFiles(path, /*all_or_nothing=*/true, read);
  if (!files.ok()) return files.status();
  std::vector<LoadedObject> objects;
  for (LoadedFile& file : *files) {
    if (!file.objects.ok()) return file.objects.status();
    std::move(file.objects->begin(), file.objects->end(),
              std::back_inserter(objects));
  }
  return objects;
}

// Comments alone count as an empty object.
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
      absl::StrCat("error unmarshaling JSON: while decoding JSON: Object "
                   "'Kind' is missing in '",
                   Printable(shown), "'"));
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
  return absl::StrCat(text::FindText(object, {"kind"}), "/",
                      text::FindText(object, {"metadata", "name"}));
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
      text::Quoted(text::FindText(composition, {"metadata", "name"}));
  for (const auto& label : wanted->items()) {
    // A null is "", as it is in any map of text.
    const auto* const text = label.value().get_ptr<const std::string*>();
    const std::string value = text == nullptr ? "" : *text;
    const text::Json* const has =
        text::Find(composition, {"metadata", "labels", label.key()});
    if (has == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("composition ", name, " is missing required label ",
                       text::Quoted(label.key())));
    }
    const std::string got =
        has->is_string() ? *has->get_ptr<const std::string*>() : "";
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
      text::FindText(function, {"metadata", "annotations", name});
  for (const auto& annotation : replaced) {
    if (annotation.first == name) value = annotation.second;
  }
  return value;
}

absl::StatusOr<std::string> TargetOf(const text::Json& function,
                                     const Annotations& replaced) {
  const std::string name = text::FindText(function, {"metadata", "name"});
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
  const absl::Status status = CheckContent(object);
  if (!status.ok()) return Prefixed(path, status);
  return Loaded(*std::move(object), path);
}

absl::StatusOr<std::vector<LoadedObject>> LoadObjects(const std::string& path) {
  absl::StatusOr<std::vector<LoadedObject>> objects = ReadObjects(path);
  if (objects.ok()) FillEmpty(&*objects);
  return objects;
}

absl::StatusOr<text::Json> LoadDefinition(const std::string& path) {
  text::Json values;
  absl::StatusOr<text::Json> object = ReadTyped(
      path, text::ObjectType::kDefinition, kCannotReadDefinition, &values);
  if (!object.ok()) return Prefixed(path, object.status());
  return object;
}

absl::StatusOr<std::vector<LoadedObject>> LoadSecrets(const std::string& path) {
  return ReadObjects(path, ReadSecret);
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
  absl::Status status = object.status();
  if (status.ok() && !object->is_null()) status = CheckKind(*object);
  if (absl::IsInvalidArgument(status)) {
    return Prefixed(path, Prefixed(kCannotReadComposite, status));
  }
  if (status.ok()) status = CheckContent(object);
  if (status.ok()) status = CheckNoOperation(*object);
  if (!status.ok()) return Prefixed(path, status);
  return Loaded(*std::move(object), path);
}

absl::StatusOr<LoadedObject> LoadComposition(const std::string& path) {
  text::Json values;
  absl::StatusOr<text::Json> object = ReadTyped(
      path, text::ObjectType::kComposition, kCannotReadComposition, &values);
  absl::Status status = CheckNoOperation(values);
  if (status.ok()) status = object.status();
  if (!status.ok()) return Prefixed(path, status);
  if (text::FindText(*object, {"apiVersion"}) !=
          "apiextensions.crossplane.io/v1" ||
      text::FindText(*object, {"kind"}) != "Composition") {
    return Prefixed(path, absl::InvalidArgumentError(absl::StrCat(
                              "not a composition: ", KindAndName(*object))));
  }
  status = engine::CheckFieldsOfSpec(text::ToStruct(values));
  if (!status.ok()) return Prefixed(path, status);
  return Loaded(*std::move(object), path);
}

absl::Status CheckComposition(const text::Json& composition,
                              const text::Json& composite) {
  absl::Status status = engine::CheckCompositeType(
      "kind", text::FindText(composition, {"spec", "compositeTypeRef", "kind"}),
      KindOf(composite));
  if (!status.ok()) return status;
  status = engine::CheckCompositeType(
      "apiVersion",
      text::FindText(composition, {"spec", "compositeTypeRef", "apiVersion"}),
      text::FindText(composite, {"apiVersion"}));
  if (!status.ok()) return status;
  status = CheckSelector(composition, composite);
  if (!status.ok()) return status;
  if (text::FindText(composition, {"spec", "mode"}) != "Pipeline") {
    return absl::InvalidArgumentError(absl::StrCat(
        "render only supports Composition Function pipelines: Composition ",
        text::Quoted(text::FindText(composition, {"metadata", "name"})),
        " must use spec.mode: Pipeline"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<client::FunctionTarget>> LoadFunctions(
    const std::string& path,
    const std::vector<std::pair<std::string, std::string>>& annotations,
    const std::vector<client::FunctionTarget>& given) {
  absl::StatusOr<std::vector<LoadedObject>> objects =
      ReadObjects(path, ReadFunction);
  if (!objects.ok()) return objects.status();
  // The last of two with one name counts.
  std::map<std::string, std::string> targets;
  std::map<std::string, std::string> known;
  for (const client::FunctionTarget& function : given) {
    known[function.name] = function.target;
  }
  for (const LoadedObject& object : *objects) {
    const std::string api_version =
        text::FindText(*object.object, {"apiVersion"});
    if ((api_version != "pkg.crossplane.io/v1" &&
         api_version != "pkg.crossplane.io/v1beta1") ||
        text::FindText(*object.object, {"kind"}) != "Function") {
      return Prefixed(object.where,
                      absl::InvalidArgumentError(absl::StrCat(
                          "not a function: ", KindAndName(*object.object))));
    }
    const std::string name =
        text::FindText(*object.object, {"metadata", "name"});
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
