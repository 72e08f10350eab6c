// SPDX-License-Identifier: Apache-2.0
// The functions of values that read or write text: JSON, YAML, base64, names.
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/field_path.h"
#include "common/sha256.h"
#include "common/utf8.h"
#include "fncache/function/value.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "sdk/model/node.h"
#include "text/json.h"
#include "text/kubernetes_yaml.h"

namespace fncache::function {
namespace {

using internal::Origin;
using internal::Presence;
using sdk::Kind;
using sdk::Node;
using Tree = text::Json;

Tree NumberOf(double number, Origin* origin) {
  if (!std::isfinite(number)) origin->error = "must be a finite number";
  google::protobuf::Value value;
  value.set_number_value(number);
  return fncache::text::FromValue(value);
}

// The view of `node` as Json. Sources of awaited values go to `origin`.
Tree ToJson(Node* node, Origin* origin) {
  const Node* const shown = sdk::Peek(node);
  if (node->awaited != nullptr) {
    origin->presence = Presence::kAwaited;
    for (Node* const source : *node->awaited) {
      origin->sources.emplace_back(source);
    }
  }
  if (shown == nullptr) return nullptr;
  switch (shown->kind) {
    case Kind::kUnset:
    case Kind::kNull:
      return nullptr;
    case Kind::kBool:
      return shown->boolean;
    case Kind::kNumber:
      return NumberOf(shown->number, origin);
    case Kind::kText:
      return std::string(shown->text);
    case Kind::kObject: {
      Tree object = Tree::object();
      for (const absl::string_view key : sdk::Keys(node)) {
        object[std::string(key)] = ToJson(sdk::ChildOf(node, key), origin);
      }
      return object;
    }
    case Kind::kList: {
      Tree list = Tree::array();
      for (size_t i = 0; i < shown->size; ++i) {
        list.push_back(ToJson(shown->elements[i], origin));
      }
      return list;
    }
  }
  return nullptr;
}

// The content of a YAML document. False, with the error, where a value is none
// that a document can hold.
bool FromJson(const Tree& json, const std::string& path, int depth, Node* node,
              std::string* error) {
  sdk::Arena* const arena = node->document->arena();
  if (depth > sdk::kMaxDepth) {
    *error =
        absl::StrCat("Yaml: is nested deeper than ", sdk::kMaxDepth, " levels");
    return false;
  }
  switch (json.type()) {
    case Tree::value_t::boolean:
      node->kind = Kind::kBool;
      node->boolean = json.get<bool>();
      return true;
    case Tree::value_t::number_integer:
    case Tree::value_t::number_unsigned:
    case Tree::value_t::number_float: {
      Origin origin;
      node->kind = Kind::kNumber;
      node->number = json.get<double>();
      if (!std::isfinite(node->number)) {
        origin.error = "must be a finite number";
      } else if (!json.is_number_float()) {
        internal::CheckInteger(!json.is_number_unsigned(), json.get<uint64_t>(),
                               &origin);
      }
      if (!origin.error.empty()) {
        *error = absl::StrCat("Yaml: ", path, ": ", origin.error);
      }
      return error->empty();
    }
    case Tree::value_t::string:
      node->kind = Kind::kText;
      node->text = arena->Keep(json.get_ref<const std::string&>());
      if (!IsUtf8(node->text)) {
        *error = absl::StrCat("Yaml: ", path, ": must be UTF-8");
      }
      return error->empty();
    case Tree::value_t::object:
      node->kind = Kind::kObject;
      // nlohmann's objects are in the order of their keys' bytes.
      for (const auto& [key, value] : json.items()) {
        Node* const child = arena->NewNode(node->document, node);
        child->key = arena->Keep(key);
        node->children.push_back(child);
        if (!FromJson(value, PathBelow(path, key), depth + 1, child, error)) {
          return false;
        }
      }
      return true;
    case Tree::value_t::array:
      node->kind = Kind::kList;
      for (const Tree& value : json) {
        Node* const child = arena->NewNode(node->document, node);
        child->index = static_cast<int>(node->elements.size());
        node->elements.push_back(child);
        if (!FromJson(value, PathOfElement(path, child->index), depth + 1,
                      child, error)) {
          return false;
        }
      }
      node->size = node->elements.size();
      return true;
    default:
      node->kind = Kind::kNull;
      return true;
  }
}

}  // namespace

namespace internal {

std::string Piece::Spell(double value, Origin* origin) {
  return NumberOf(value, origin).dump();
}

std::string JsonOf(const Ref& node) {
  return function::Json(Value(node)).raw();
}

}  // namespace internal

Observable<std::string> Json(const Value& value) {
  Node* const node = value.ref().get();
  Origin origin;
  const Node* const shown = sdk::Look(node);
  for (Node* const source : sdk::SourcesOf(node)) {
    origin.presence = Presence::kAwaited;
    origin.sources.emplace_back(source);
  }
  if (shown == nullptr || !origin.sources.empty()) {
    return {std::move(origin), {}};
  }
  origin.presence = Presence::kValue;
  if (node->document->section != sdk::Section::kAlone) {
    origin.sources.push_back(value.ref());
  }
  const Tree json = ToJson(node, &origin);
  if (origin.presence != Presence::kValue) return {std::move(origin), {}};
  return {std::move(origin),
          json.dump(-1, ' ', false, Tree::error_handler_t::replace)};
}

Observable<std::string> Base64(const Observable<std::string>& text) {
  return {text.origin(),
          text.has_value() ? absl::Base64Escape(text.raw()) : std::string()};
}

Value Yaml(std::string_view text) {
  Value value;
  Node* const root = value.ref().get();
  std::string& error = root->document->error;
  const auto json = fncache::text::ParseYamlValues({text.data(), text.size()});
  if (!json.ok()) {
    // Why it is none has pieces of the text, which may be secret.
    absl::string_view why = json.status().message();
    error = "Yaml: the text is no YAML";
    if (absl::ConsumePrefix(&why, "yaml: line ")) {
      absl::StrAppend(&error, ", line ", why.substr(0, why.find(':')));
    }
  } else {
    FromJson(*json, "", 1, root, &error);
  }
  if (!error.empty()) root->document->Open();
  return value;
}

Observable<std::string> ChildName(
    std::initializer_list<Observable<std::string>> parts) {
  constexpr size_t kMaxLabel = 63;
  constexpr size_t kHash = 5;
  Origin origin;
  origin.presence = Presence::kValue;
  std::string plain, all;
  for (const Observable<std::string>& part : parts) {
    internal::Combine(part.origin(), &origin);
    absl::StrAppend(&plain, plain.empty() ? "" : "-", part.raw());
    absl::StrAppend(&all, part.raw(), absl::string_view("\0", 1));
  }
  if (origin.presence != Presence::kValue) return {std::move(origin), {}};
  std::string label;
  for (const char c : plain) {
    label += absl::ascii_isalnum(c) ? absl::ascii_tolower(c) : '-';
  }
  const size_t start = label.find_first_not_of('-');
  label.erase(0, start == std::string::npos ? label.size() : start);
  const auto trim = [&label] {
    while (!label.empty() && label.back() == '-') label.pop_back();
  };
  trim();
  if (label != plain || label.size() > kMaxLabel || label.empty()) {
    label.resize(std::min(label.size(), kMaxLabel - kHash - 1));
    trim();
    absl::StrAppend(&label, label.empty() ? "" : "-",
                    Sha256Hex(all).substr(0, kHash));
  }
  return {std::move(origin), std::move(label)};
}

}  // namespace fncache::function
