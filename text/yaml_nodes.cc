// SPDX-License-Identifier: Apache-2.0
#include "text/yaml_nodes.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "text/json.h"

namespace fncache::text {

absl::StatusOr<const YamlNode*> YamlNodes::Parse() {
  const YamlNode* root = nullptr;
  if (ParseDocument(&root)) return root;
  if (!alias_problem_.empty()) {
    return absl::InvalidArgumentError(alias_problem_);
  }
  const auto& fault = fault_.has_value() ? fault_ : scanner_.fault();
  return absl::InvalidArgumentError(fault->Message());
}

int YamlNodes::fault_line() const {
  const auto& fault = fault_.has_value() ? fault_ : scanner_.fault();
  return fault.has_value() ? fault->at.line : alias_line_;
}

bool YamlNodes::Next(Type* type) {
  const YamlToken* const token = scanner_.Peek();
  if (token == nullptr) return false;
  *type = token->type;
  return true;
}

bool YamlNodes::Fail(absl::string_view problem, const YamlMark& at,
                     const YamlMark& context) {
  fault_ = YamlFault{std::string(problem), at, context, /*of_scanner=*/false};
  return false;
}

// Reads the directives before the `---` of a document.
bool YamlNodes::ParseDirectives() {
  bool versioned = false;
  while (const YamlToken* const token = scanner_.Peek()) {
    if (token->type == Type::kVersionDirective) {
      if (versioned) {
        return Fail("found duplicate %YAML directive", token->start);
      }
      if (token->major != 1 || token->minor != 1) {
        return Fail("found incompatible YAML document", token->start);
      }
      versioned = true;
    } else if (token->type == Type::kTagDirective) {
      if (!tag_prefixes_.emplace(token->value, token->suffix).second) {
        return Fail("found duplicate %TAG directive", token->start);
      }
    } else {
      // A document's own ones come before these.
      tag_prefixes_.emplace("!", "!");
      tag_prefixes_.emplace("!!", "tag:yaml.org,2002:");
      return true;
    }
    scanner_.Skip();
  }
  return false;
}

bool YamlNodes::ParseDocument(const YamlNode** root) {
  Type type;
  if (!Next(&type)) return false;
  if (type == Type::kStreamEnd) return true;
  const bool explicit_start = type == Type::kVersionDirective ||
                              type == Type::kTagDirective ||
                              type == Type::kDocumentStart;
  if (!ParseDirectives()) return false;
  if (explicit_start) {
    if (!Next(&type)) return false;
    if (type != Type::kDocumentStart) {
      return Fail("did not find expected <document start>",
                  scanner_.Peek()->start);
    }
    scanner_.Skip();
    if (!Next(&type)) return false;
    if (type == Type::kVersionDirective || type == Type::kTagDirective ||
        type == Type::kDocumentStart || type == Type::kDocumentEnd ||
        type == Type::kStreamEnd) {
      *root = Empty();
      return true;
    }
  }
  // The token behind the document is looked at, whatever it is.
  return ParseNode(/*block=*/true, /*indentless=*/false, root) && Next(&type);
}

const YamlNode* YamlNodes::Empty() {
  nodes_.emplace_back();
  nodes_.back().plain = true;
  return &nodes_.back();
}

bool YamlNodes::ParseChild(bool block, bool indentless, YamlNode* parent) {
  const YamlNode* child = nullptr;
  if (!ParseNode(block, indentless, &child)) return false;
  parent->children.push_back(child);
  return true;
}

// An anchor and a tag, in any order.
bool YamlNodes::ParseProperties(YamlNode* node, YamlMark* start,
                                std::string* anchor, bool* any) {
  bool tagged = false;
  bool anchored = false;
  std::string handle;
  std::string suffix;
  YamlMark tag_start;
  while (const YamlToken* const token = scanner_.Peek()) {
    if (token->type == Type::kAnchor && !anchored) {
      anchored = true;
      *anchor = token->value;
    } else if (token->type == Type::kTag && !tagged) {
      tagged = true;
      handle = token->value;
      suffix = token->suffix;
      tag_start = token->start;
    } else {
      break;
    }
    if (!*any) *start = token->start;
    *any = true;
    scanner_.Skip();
  }
  if (scanner_.Peek() == nullptr) return false;
  if (!tagged) return true;
  if (handle.empty()) {
    node->tag = suffix;
  } else {
    const auto prefix = tag_prefixes_.find(handle);
    if (prefix != tag_prefixes_.end()) {
      node->tag = absl::StrCat(prefix->second, suffix);
    }
    if (node->tag.empty()) {
      return Fail("found undefined tag handle", tag_start, *start);
    }
  }
  return true;
}

bool YamlNodes::ParseNode(bool block, bool indentless,
                          const YamlNode** result) {
  const YamlToken* token = scanner_.Peek();
  if (token == nullptr) return false;
  nodes_.emplace_back();
  YamlNode* const node = &nodes_.back();
  node->line = token->start.line;
  *result = node;
  if (token->type == Type::kAlias) {
    node->kind = YamlNode::Kind::kAlias;
    node->text = token->value;
    const auto anchor = anchors_.find(node->text);
    if (anchor == anchors_.end()) {
      alias_problem_ =
          absl::StrCat("yaml: unknown anchor '", node->text, "' referenced");
      alias_line_ = node->line;
      return false;
    }
    node->target = anchor->second;
    scanner_.Skip();
    return true;
  }
  YamlMark start = token->start;
  std::string anchor;
  bool any = false;
  if (!ParseProperties(node, &start, &anchor, &any)) return false;
  if (!anchor.empty()) anchors_[anchor] = node;
  token = scanner_.Peek();
  const Type type = token->type;

  bool (YamlNodes::*parse)(YamlNode*) = nullptr;
  node->kind = YamlNode::Kind::kList;
  if (indentless && type == Type::kBlockEntry) {
    parse = &YamlNodes::ParseIndentlessList;
  } else if (type == Type::kFlowListStart) {
    parse = &YamlNodes::ParseFlowList;
  } else if (type == Type::kFlowMapStart) {
    node->kind = YamlNode::Kind::kMap;
    parse = &YamlNodes::ParseFlowMap;
  } else if (block && type == Type::kBlockListStart) {
    parse = &YamlNodes::ParseBlockList;
  } else if (block && type == Type::kBlockMapStart) {
    node->kind = YamlNode::Kind::kMap;
    parse = &YamlNodes::ParseBlockMap;
  }
  if (parse != nullptr) {
    if (++depth_ > kMaxJsonDepth) {
      return Fail(absl::StrCat("nested more than ", kMaxJsonDepth, " deep"),
                  token->start);
    }
    const bool parsed = (this->*parse)(node);
    --depth_;
    return parsed;
  }

  node->kind = YamlNode::Kind::kScalar;
  if (type == Type::kScalar) {
    node->text = token->value;
    node->plain = (node->tag.empty() && token->plain) || node->tag == "!";
    scanner_.Skip();
    return true;
  }
  node->plain = node->tag.empty();
  return any || Fail("did not find expected node content", token->start, start);
}

bool YamlNodes::ParseBlockList(YamlNode* list) {
  const YamlMark start = scanner_.Peek()->start;
  scanner_.Skip();
  while (const YamlToken* const token = scanner_.Peek()) {
    if (token->type == Type::kBlockEnd) {
      scanner_.Skip();
      return true;
    }
    if (token->type != Type::kBlockEntry) {
      return Fail("did not find expected '-' indicator", token->start, start);
    }
    scanner_.Skip();
    Type type;
    if (!Next(&type)) return false;
    if (type == Type::kBlockEntry || type == Type::kBlockEnd) {
      list->children.push_back(Empty());
    } else if (!ParseChild(/*block=*/true, /*indentless=*/false, list)) {
      return false;
    }
  }
  return false;
}

bool YamlNodes::ParseIndentlessList(YamlNode* list) {
  while (const YamlToken* const token = scanner_.Peek()) {
    if (token->type != Type::kBlockEntry) return true;
    scanner_.Skip();
    Type type;
    if (!Next(&type)) return false;
    if (type == Type::kBlockEntry || type == Type::kKey ||
        type == Type::kValue || type == Type::kBlockEnd) {
      list->children.push_back(Empty());
    } else if (!ParseChild(/*block=*/true, /*indentless=*/false, list)) {
      return false;
    }
  }
  return false;
}

bool YamlNodes::ParseBlockMap(YamlNode* map) {
  const YamlMark start = scanner_.Peek()->start;
  scanner_.Skip();
  // Parses the node after `?` or `:`, if there is one.
  const auto parse = [this, map] {
    scanner_.Skip();
    Type type;
    if (!Next(&type)) return false;
    if (type == Type::kKey || type == Type::kValue || type == Type::kBlockEnd) {
      map->children.push_back(Empty());
      return true;
    }
    return ParseChild(/*block=*/true, /*indentless=*/true, map);
  };
  while (const YamlToken* const token = scanner_.Peek()) {
    if (token->type == Type::kBlockEnd) {
      scanner_.Skip();
      return true;
    }
    if (token->type != Type::kKey) {
      return Fail("did not find expected key", token->start, start);
    }
    if (!parse()) return false;
    Type type;
    if (!Next(&type)) return false;
    if (type == Type::kValue) {
      if (!parse()) return false;
    } else {
      map->children.push_back(Empty());
    }
  }
  return false;
}

bool YamlNodes::ParseFlowValue(Type end, YamlNode* parent) {
  Type type;
  if (!Next(&type)) return false;
  if (type == Type::kValue) {
    scanner_.Skip();
    if (!Next(&type)) return false;
    if (type != Type::kFlowEntry && type != end) {
      return ParseChild(/*block=*/false, /*indentless=*/false, parent);
    }
  }
  parent->children.push_back(Empty());
  return true;
}

// A map of one field, which an entry of a flow list may be: `[a: b]`.
bool YamlNodes::ParseFlowPair(YamlNode* list) {
  nodes_.emplace_back();
  YamlNode* const map = &nodes_.back();
  map->kind = YamlNode::Kind::kMap;
  list->children.push_back(map);
  scanner_.Skip();
  Type type;
  if (!Next(&type)) return false;
  if (type == Type::kValue || type == Type::kFlowEntry ||
      type == Type::kFlowListEnd) {
    map->children.push_back(Empty());
    // The reference skips the token here, too: `[? ]` is never closed.
    scanner_.Skip();
  } else if (!ParseChild(/*block=*/false, /*indentless=*/false, map)) {
    return false;
  }
  return ParseFlowValue(Type::kFlowListEnd, map);
}

// Skips the comma before an entry that is not the first. The token is the
// entry's first one, or `end`; null: a fault.
const YamlToken* YamlNodes::NextFlowEntry(Type end, absl::string_view problem,
                                          bool first, const YamlMark& start) {
  const YamlToken* const token = scanner_.Peek();
  if (token == nullptr || token->type == end || first) return token;
  if (token->type != Type::kFlowEntry) {
    Fail(problem, token->start, start);
    return nullptr;
  }
  scanner_.Skip();
  return scanner_.Peek();
}

bool YamlNodes::ParseFlowList(YamlNode* list) {
  const YamlMark start = scanner_.Peek()->start;
  scanner_.Skip();
  for (bool first = true;; first = false) {
    const YamlToken* const token = NextFlowEntry(
        Type::kFlowListEnd, "did not find expected ',' or ']'", first, start);
    if (token == nullptr) return false;
    if (token->type == Type::kFlowListEnd) {
      scanner_.Skip();
      return true;
    }
    if (token->type == Type::kKey ? !ParseFlowPair(list)
                                  : !ParseChild(false, false, list)) {
      return false;
    }
  }
}

bool YamlNodes::ParseFlowMap(YamlNode* map) {
  const YamlMark start = scanner_.Peek()->start;
  scanner_.Skip();
  for (bool first = true;; first = false) {
    const YamlToken* const token = NextFlowEntry(
        Type::kFlowMapEnd, "did not find expected ',' or '}'", first, start);
    if (token == nullptr) return false;
    if (token->type == Type::kFlowMapEnd) {
      scanner_.Skip();
      return true;
    }
    if (token->type != Type::kKey) {
      // A key alone.
      if (!ParseChild(/*block=*/false, /*indentless=*/false, map)) return false;
      map->children.push_back(Empty());
      Type type;
      if (!Next(&type)) return false;
      continue;
    }
    scanner_.Skip();
    Type type;
    if (!Next(&type)) return false;
    if (type == Type::kValue || type == Type::kFlowEntry ||
        type == Type::kFlowMapEnd) {
      map->children.push_back(Empty());
    } else if (!ParseChild(/*block=*/false, /*indentless=*/false, map)) {
      return false;
    }
    if (!ParseFlowValue(Type::kFlowMapEnd, map)) return false;
  }
}

}  // namespace fncache::text
