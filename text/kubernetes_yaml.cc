// SPDX-License-Identifier: Apache-2.0
#include "text/kubernetes_yaml.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/utf8.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "text/yaml_nodes.h"
#include "text/yaml_scalar.h"

namespace fncache::text {
namespace {

// The most text that aliases may copy, besides the bound on their number.
constexpr size_t kMaxAliasedBytes = 64 << 20;

using Node = YamlNode;

absl::Status Fault(absl::string_view why) {
  return absl::InvalidArgumentError(why);
}

bool IsMergeKey(const Node& node) {
  return node.kind == Node::Kind::kScalar && node.text == "<<" &&
         (node.plain || node.tag == "tag:yaml.org,2002:merge");
}

// Makes values of nodes; aliases are followed as often as they are used.
class Decoder {
 public:
  absl::Status Decode(const Node& node, int depth, Json* out) {
    if (absl::Status bounded = Count(node, depth); !bounded.ok()) {
      return bounded;
    }
    switch (node.kind) {
      case Node::Kind::kAlias:
        return Follow(node, [this, depth, out](const Node& target) {
          return Decode(target, depth, out);
        });
      case Node::Kind::kScalar:
        return DecodeScalar(node, out);
      case Node::Kind::kList:
        *out = Json::array();
        for (const Node* child : node.children) {
          out->push_back(nullptr);
          absl::Status decoded = Decode(*child, depth + 1, &out->back());
          if (!decoded.ok()) return decoded;
        }
        return absl::OkStatus();
      case Node::Kind::kMap:
        *out = Json::object();
        return DecodeFields(node, depth, out);
    }
    return absl::InternalError("unknown kind of node");
  }

 private:
  // The reference's bound on what aliases make of a document: at most 99% of
  // the values decoded in a small one, 10% in one of millions.
  bool TooManyAliased() const {
    constexpr double kSmall = 400000, kLarge = 4000000;
    if (aliased_ <= 100 || decoded_ <= 1000) return false;
    const auto decoded = static_cast<double>(decoded_);
    const double large =
        std::clamp((decoded - kSmall) / (kLarge - kSmall), 0.0, 1.0);
    return static_cast<double>(aliased_) > decoded * (0.99 - 0.89 * large);
  }

  absl::Status Count(const Node& node, int depth) {
    ++decoded_;
    if (!following_.empty()) {
      ++aliased_;
      aliased_bytes_ += node.text.size();
    }
    if (TooManyAliased() || aliased_bytes_ > kMaxAliasedBytes) {
      return Fault("yaml: document contains excessive aliasing");
    }
    if (depth > kMaxJsonDepth) {
      return Fault(
          absl::StrCat("yaml: nested more than ", kMaxJsonDepth, " deep"));
    }
    return absl::OkStatus();
  }

  template <typename Function>
  absl::Status Follow(const Node& alias, Function function) {
    if (std::find(following_.begin(), following_.end(), &alias) !=
        following_.end()) {
      return Fault(absl::StrCat("yaml: anchor '", alias.text,
                                "' value contains itself"));
    }
    following_.push_back(&alias);
    absl::Status status = function(*alias.target);
    following_.pop_back();
    return status;
  }

  absl::StatusOr<YamlScalar> Resolve(const Node& node) const {
    if (!node.tag.empty()) {
      absl::StatusOr<YamlScalar> scalar =
          ResolveTaggedYamlScalar(node.tag, node.text);
      if (!scalar.ok()) {
        return Fault(absl::StrCat("yaml: ", scalar.status().message()));
      }
      return scalar;
    }
    return node.plain ? ResolveYamlScalar(node.text) : YamlScalar();
  }

  absl::Status DecodeScalar(const Node& node, Json* out) const {
    if (node.tag == "tag:yaml.org,2002:binary") {
      std::string bytes;
      absl::Status decoded = DecodeBinary(node, &bytes);
      *out = std::move(bytes);
      return decoded;
    }
    const absl::StatusOr<YamlScalar> scalar = Resolve(node);
    if (!scalar.ok()) return scalar.status();
    switch (scalar->type) {
      case YamlScalar::Type::kText:
      case YamlScalar::Type::kTimestamp:
        *out = node.text;
        break;
      case YamlScalar::Type::kNull:
        *out = nullptr;
        break;
      case YamlScalar::Type::kBool:
        *out = scalar->truth;
        break;
      case YamlScalar::Type::kInteger:
        *out = scalar->integer;
        break;
      case YamlScalar::Type::kUnsigned:
        *out = scalar->whole;
        break;
      case YamlScalar::Type::kFloat:
        *out = scalar->number;
        break;
    }
    return absl::OkStatus();
  }

  absl::Status DecodeBinary(const Node& node, std::string* text) const {
    std::string base64 = node.text;
    base64.erase(std::remove_if(base64.begin(), base64.end(),
                                [](char c) { return c == '\r' || c == '\n'; }),
                 base64.end());
    std::string bytes;
    if (base64.size() % 4 != 0 || !absl::Base64Unescape(base64, &bytes) ||
        absl::StrContains(base64, '.') || absl::StrContains(base64, ' ')) {
      return Fault("yaml: !!binary value contains invalid base64 data");
    }
    *text = WellFormedUtf8(bytes);
    return absl::OkStatus();
  }

  // A key as JSON has it.
  absl::StatusOr<std::string> KeyName(const Node& node, int depth) {
    if (absl::Status bounded = Count(node, depth); !bounded.ok()) {
      return bounded;
    }
    switch (node.kind) {
      case Node::Kind::kAlias: {
        std::string name;
        absl::Status followed =
            Follow(node, [this, depth, &name](const Node& target) {
              absl::StatusOr<std::string> key = KeyName(target, depth);
              if (!key.ok()) return key.status();
              name = *std::move(key);
              return absl::OkStatus();
            });
        if (!followed.ok()) return followed;
        return name;
      }
      case Node::Kind::kScalar:
        break;
      case Node::Kind::kList:
      case Node::Kind::kMap:
        return Fault("yaml: invalid map key: a list or a map");
    }
    if (node.tag == "tag:yaml.org,2002:binary") {
      std::string bytes;
      absl::Status decoded = DecodeBinary(node, &bytes);
      if (!decoded.ok()) return decoded;
      return bytes;
    }
    const absl::StatusOr<YamlScalar> scalar = Resolve(node);
    if (!scalar.ok()) return scalar.status();
    switch (scalar->type) {
      case YamlScalar::Type::kText:
      case YamlScalar::Type::kTimestamp:
        return node.text;
      case YamlScalar::Type::kBool:
        return std::string(scalar->truth ? "true" : "false");
      case YamlScalar::Type::kInteger:
        return absl::StrCat(scalar->integer);
      case YamlScalar::Type::kFloat:
        // The reference prints it as a 32-bit number.
        return YamlNumber(static_cast<float>(scalar->number));
      case YamlScalar::Type::kNull:
        return Fault("unsupported map key: null");
      case YamlScalar::Type::kUnsigned:
        return Fault(absl::StrCat("unsupported map key of type: uint64, key: ",
                                  node.text));
    }
    return absl::InternalError("unknown type of scalar");
  }

  // Adds the fields of a map to `out`, an object, in the order they are
  // written, so that later ones win; a merge counts where it stands.
  absl::Status DecodeFields(const Node& node, int depth, Json* out) {
    for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
      const Node& key = *node.children[i];
      const Node& value = *node.children[i + 1];
      if (IsMergeKey(key)) {
        absl::Status merged = Merge(value, depth, out);
        if (!merged.ok()) return merged;
        continue;
      }
      absl::StatusOr<std::string> name = KeyName(key, depth + 1);
      if (!name.ok()) return name.status();
      Json decoded;
      absl::Status status = Decode(value, depth + 1, &decoded);
      if (!status.ok()) return status;
      (*out)[*std::move(name)] = std::move(decoded);
    }
    return absl::OkStatus();
  }

  absl::Status Merge(const Node& value, int depth, Json* out) {
    if (value.kind != Node::Kind::kList) return MergeMap(value, depth, out);
    // The first map of a list wins, so it is merged last.
    for (size_t i = value.children.size(); i > 0; --i) {
      absl::Status merged = MergeMap(*value.children[i - 1], depth, out);
      if (!merged.ok()) return merged;
    }
    return absl::OkStatus();
  }

  absl::Status MergeMap(const Node& value, int depth, Json* out) {
    const Node* map = value.kind == Node::Kind::kAlias ? value.target : &value;
    if (map->kind != Node::Kind::kMap) {
      return Fault(
          "yaml: map merge requires map or sequence of maps as the value");
    }
    if (absl::Status bounded = Count(value, depth); !bounded.ok()) {
      return bounded;
    }
    if (value.kind == Node::Kind::kMap) {
      return DecodeFields(value, depth + 1, out);
    }
    return Follow(value, [this, depth, out](const Node& target) {
      if (absl::Status bounded = Count(target, depth); !bounded.ok()) {
        return bounded;
      }
      return DecodeFields(target, depth + 1, out);
    });
  }

  size_t decoded_ = 0;
  size_t aliased_ = 0;
  size_t aliased_bytes_ = 0;
  std::vector<const Node*> following_;  // aliases, the outermost first
};

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitYamlDocuments(
    absl::string_view text) {
  constexpr absl::string_view kSeparator = "---";
  std::vector<std::string> documents;
  std::string document;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    absl::string_view line = text.substr(0, end);
    text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
    if (end != absl::string_view::npos) absl::ConsumeSuffix(&line, "\r");
    absl::string_view rest = line;
    if (absl::ConsumePrefix(&rest, kSeparator)) {
      rest = absl::StripAsciiWhitespace(rest);
      if (!rest.empty() && rest[0] != '#') {
        return absl::InvalidArgumentError(
            absl::StrCat("invalid Yaml document separator: ", rest));
      }
      if (!document.empty()) {
        documents.push_back(std::move(document));
        document.clear();
        continue;
      }
    }
    absl::StrAppend(&document, line, "\n");
  }
  if (!document.empty()) documents.push_back(std::move(document));
  return documents;
}

absl::StatusOr<Json> ParseYamlValues(absl::string_view text) {
  YamlNodes nodes(text);
  const absl::StatusOr<const YamlNode*> root = nodes.Parse();
  if (!root.ok()) return root.status();
  Json json;
  if (*root == nullptr) return json;
  absl::Status decoded = Decoder().Decode(**root, 0, &json);
  if (!decoded.ok()) return decoded;
  return json;
}

absl::Status MakeUnstructured(Json* json) {
  if (json->is_structured()) {
    for (Json& element : *json) {
      absl::Status made = MakeUnstructured(&element);
      if (!made.ok()) return made;
    }
    return absl::OkStatus();
  }
  if (const auto* whole = json->get_ptr<const uint64_t*>()) {
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    if (*whole <= kMost) {
      *json = static_cast<int64_t>(*whole);
    } else {
      *json = static_cast<double>(*whole);
    }
  } else if (const auto* number = json->get_ptr<const double*>()) {
    if (!std::isfinite(*number)) {
      const absl::string_view name = std::isnan(*number) ? "NaN"
                                     : *number > 0       ? "+Inf"
                                                         : "-Inf";
      return absl::InvalidArgumentError(
          absl::StrCat("json: unsupported value: ", name));
    }
    google::protobuf::Value value;
    value.set_number_value(*number);
    Json read = FromValue(value);
    if (!read.is_number_unsigned()) *json = std::move(read);
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> ParseKubernetesYaml(absl::string_view text) {
  absl::StatusOr<Json> json = ParseYamlValues(text);
  if (!json.ok()) return json;
  absl::Status made = MakeUnstructured(&*json);
  if (!made.ok()) return made;
  return json;
}

}  // namespace fncache::text
