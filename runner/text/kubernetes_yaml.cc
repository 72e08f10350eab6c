// SPDX-License-Identifier: Apache-2.0
#include "runner/text/kubernetes_yaml.h"

#include <yaml.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
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
#include "runner/text/yaml_scalar.h"

namespace fncache::runner::text {
namespace {

// The most text that aliases may copy, besides the bound on their number.
constexpr size_t kMaxAliasedBytes = 64 << 20;

absl::Status ErrorAt(int line, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", why));
}

// A node of the document as it was written, before its meaning is known.
struct Node {
  enum class Kind { kScalar, kMap, kList, kAlias };
  Kind kind = Kind::kScalar;
  int line = 0;
  bool plain = false;  // a scalar that is neither quoted nor tagged
  std::string tag;
  std::string text;  // of a scalar; of an alias, its anchor's name
  // The elements of a list, or a map's keys and values, alternating.
  std::vector<const Node*> children;
  const Node* target = nullptr;  // of an alias
};

std::string Text(const yaml_char_t* text) {
  return text == nullptr ? std::string() : reinterpret_cast<const char*>(text);
}

// Reads the first document of a text into nodes.
class Reader {
 public:
  // `nodes` owns what is read.
  Reader(absl::string_view text, int first_line, std::deque<Node>* nodes)
      : text_(text), first_line_(first_line), nodes_(nodes) {
    ready_ = yaml_parser_initialize(&parser_) != 0;
    if (!ready_) return;
    // libyaml does not take the null pointer of an empty view.
    const char* const data = text.empty() ? "" : text.data();
    yaml_parser_set_input_string(
        &parser_, reinterpret_cast<const unsigned char*>(data), text.size());
  }
  ~Reader() {
    if (ready_) yaml_parser_delete(&parser_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Returns null where there is no document.
  absl::StatusOr<const Node*> Read() {
    if (!ready_) return absl::ResourceExhaustedError("out of memory");
    const Node* root = nullptr;
    while (true) {
      Event event;
      if (yaml_parser_parse(&parser_, &event.raw) == 0) return Problem();
      switch (event.raw.type) {
        case YAML_DOCUMENT_END_EVENT:
        case YAML_STREAM_END_EVENT:
          return root;
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
          open_.pop_back();
          break;
        case YAML_SCALAR_EVENT:
        case YAML_ALIAS_EVENT:
        case YAML_SEQUENCE_START_EVENT:
        case YAML_MAPPING_START_EVENT: {
          absl::StatusOr<const Node*> node = Add(event.raw);
          if (!node.ok()) return node.status();
          if (root == nullptr) root = *node;
          break;
        }
        case YAML_NO_EVENT:
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_START_EVENT:
          break;
      }
    }
  }

 private:
  struct Event {
    Event() = default;
    ~Event() { yaml_event_delete(&raw); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    yaml_event_t raw = {};
  };

  int LineOf(const yaml_mark_t& mark) const {
    return first_line_ + static_cast<int>(mark.line);
  }

  absl::StatusOr<const Node*> Add(const yaml_event_t& event) {
    nodes_->emplace_back();
    Node* node = &nodes_->back();
    node->line = LineOf(event.start_mark);
    const yaml_char_t* anchor = nullptr;
    switch (event.type) {
      case YAML_ALIAS_EVENT: {
        node->kind = Node::Kind::kAlias;
        node->text = Text(event.data.alias.anchor);
        const auto found = anchors_.find(node->text);
        if (found == anchors_.end()) {
          return ErrorAt(node->line,
                         absl::StrCat("unknown anchor \"", node->text, "\""));
        }
        node->target = found->second;
        break;
      }
      case YAML_SCALAR_EVENT:
        node->text.assign(
            reinterpret_cast<const char*>(event.data.scalar.value),
            event.data.scalar.length);
        node->tag = Text(event.data.scalar.tag);
        node->plain = event.data.scalar.plain_implicit != 0;
        anchor = event.data.scalar.anchor;
        break;
      case YAML_SEQUENCE_START_EVENT:
        node->kind = Node::Kind::kList;
        anchor = event.data.sequence_start.anchor;
        break;
      default:
        node->kind = Node::Kind::kMap;
        anchor = event.data.mapping_start.anchor;
        break;
    }
    if (anchor != nullptr) anchors_[Text(anchor)] = node;
    if (!open_.empty()) open_.back()->children.push_back(node);
    if (node->kind == Node::Kind::kMap || node->kind == Node::Kind::kList) {
      if (open_.size() >= kMaxJsonDepth) {
        return ErrorAt(node->line, absl::StrCat("nested more than ",
                                                kMaxJsonDepth, " deep"));
      }
      open_.push_back(node);
    }
    return node;
  }

  absl::Status Problem() const {
    int line = LineOf(parser_.problem_mark);
    if (parser_.error == YAML_READER_ERROR) {
      // Such an error has an offset only.
      const size_t end = std::min(parser_.problem_offset, text_.size());
      line = first_line_ + static_cast<int>(std::count(
                               text_.begin(), text_.begin() + end, '\n'));
    }
    const char* problem = parser_.problem;
    return ErrorAt(line, problem == nullptr ? "not YAML" : problem);
  }

  const absl::string_view text_;
  const int first_line_;
  std::deque<Node>* const nodes_;
  bool ready_ = false;
  yaml_parser_t parser_ = {};
  std::map<std::string, const Node*> anchors_;
  std::vector<Node*> open_;
};

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
      return ErrorAt(node.line, "aliases make too much of this document");
    }
    if (depth > kMaxJsonDepth) {
      return ErrorAt(node.line,
                     absl::StrCat("nested more than ", kMaxJsonDepth, " deep"));
    }
    return absl::OkStatus();
  }

  template <typename Function>
  absl::Status Follow(const Node& alias, Function function) {
    if (std::find(following_.begin(), following_.end(), &alias) !=
        following_.end()) {
      return ErrorAt(alias.line, absl::StrCat("anchor \"", alias.text,
                                              "\" contains itself"));
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
      if (!scalar.ok()) return ErrorAt(node.line, scalar.status().message());
      return scalar;
    }
    return node.plain ? ResolveYamlScalar(node.text) : YamlScalar();
  }

  absl::Status Fault(const Node& node, absl::string_view why) const {
    return ErrorAt(node.line, absl::StrCat("\"", node.text, "\" ", why));
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
        *out = static_cast<double>(scalar->whole);
        break;
      case YamlScalar::Type::kFloat:
        if (!std::isfinite(scalar->number)) {
          return Fault(node, "cannot be a value in JSON");
        }
        *out = AsUnstructured(scalar->number);
        break;
    }
    return absl::OkStatus();
  }

  // A double whose digits are a whole number of int64 is read back as that.
  static Json AsUnstructured(double number) {
    google::protobuf::Value value;
    value.set_number_value(number);
    Json json = FromValue(value);
    if (json.is_number_unsigned()) return number;  // beyond int64
    return json;
  }

  absl::Status DecodeBinary(const Node& node, std::string* text) const {
    std::string base64 = node.text;
    base64.erase(std::remove_if(base64.begin(), base64.end(),
                                [](char c) { return c == '\r' || c == '\n'; }),
                 base64.end());
    std::string bytes;
    if (base64.size() % 4 != 0 || !absl::Base64Unescape(base64, &bytes) ||
        absl::StrContains(base64, '.') || absl::StrContains(base64, ' ')) {
      return ErrorAt(node.line, "!!binary is not base64");
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
        return ErrorAt(node.line, "a key is a list or a map");
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
        return ErrorAt(node.line, "a key is null");
      case YamlScalar::Type::kUnsigned:
        return Fault(node, "is too large for a key");
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
      return ErrorAt(value.line, "<< needs a map or a list of maps");
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

absl::StatusOr<std::vector<YamlDocument>> SplitYamlDocuments(
    absl::string_view text) {
  std::vector<YamlDocument> documents;
  YamlDocument document;
  int line = 0;
  const auto finish = [&documents, &document, &line] {
    if (!document.text.empty()) documents.push_back(std::move(document));
    document = YamlDocument();
    document.line = line + 1;
  };
  while (!text.empty()) {
    ++line;
    const size_t end = text.find('\n');
    absl::string_view content = text.substr(0, end);
    text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
    if (end != absl::string_view::npos) absl::ConsumeSuffix(&content, "\r");
    absl::string_view rest = content;
    if (!absl::ConsumePrefix(&rest, "---")) {
      absl::StrAppend(&document.text, content, "\n");
      continue;
    }
    rest = absl::StripAsciiWhitespace(rest);
    if (!rest.empty() && rest[0] != '#') {
      return ErrorAt(line, absl::StrCat("\"", rest,
                                        "\" stands in the line of a document "
                                        "separator"));
    }
    finish();
  }
  finish();
  return documents;
}

absl::StatusOr<Json> ParseKubernetesYaml(absl::string_view text,
                                         int first_line) {
  std::deque<Node> nodes;
  const absl::StatusOr<const Node*> root =
      Reader(text, first_line, &nodes).Read();
  if (!root.ok()) return root.status();
  Json json;
  if (*root == nullptr) return json;
  absl::Status decoded = Decoder().Decode(**root, 0, &json);
  if (!decoded.ok()) return decoded;
  return json;
}

}  // namespace fncache::runner::text
