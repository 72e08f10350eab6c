// SPDX-License-Identifier: Apache-2.0
// How nodes are named: in messages, in waits and in the hint.
#include <string>

#include "absl/strings/str_cat.h"
#include "common/field_path.h"
#include "sdk/model/node.h"

namespace fncache::sdk {
namespace {

// The document's name in messages.
std::string DocumentPath(const Document* document) {
  const std::string name = SpellKey(document->name);
  switch (document->section) {
    case Section::kAlone:
      return std::string(document->name);
    case Section::kObservedComposite:
      return "observed.composite";
    case Section::kObservedResource:
      return absl::StrCat("observed.resources.", name);
    case Section::kRequired:
      return absl::StrCat("required.", name, "[", document->index, "]");
    case Section::kInput:
      return "input";
    case Section::kContext:
      return "context";  // whose fields are the keys
    case Section::kSchema:
      return absl::StrCat("schema.", name);
    case Section::kDesiredComposite:
      return "desired.composite";
    case Section::kDesiredResource:
      return absl::StrCat("desired.resources.", name);
    case Section::kOutput:
      return "output";
  }
  return "";
}

std::string Below(std::string document, const Node* node) {
  const std::string path = PathInDocument(node);
  if (path.empty()) return document;
  if (document.empty() || path[0] == '[') return absl::StrCat(document, path);
  return absl::StrCat(document, ".", path);
}

// A name in paths of the hint. They are masks, where a bare `@versions` is a
// set.
std::string SpellRead(absl::string_view key) {
  return key.substr(0, 1) == "@" ? QuoteKey(key) : SpellKey(key);
}

// Adds what was read at and below the node; false where nothing was.
bool AppendReads(const Node* node, const std::string& path,
                 std::set<std::string>* paths) {
  if (!node->looked && !node->sized && !node->read_below) return false;
  bool any = false;
  if (!node->looked && node->read_below) {
    for (const Node* const child : node->children) {
      if (!child->looked && !child->sized && !child->read_below) continue;
      any |= AppendReads(child, absl::StrCat(path, ".", SpellRead(child->key)),
                         paths);
    }
    for (const Node* const element : node->elements) {
      any |= AppendReads(element, absl::StrCat(path, ".*"), paths);
    }
  }
  // The length of a list counts where a path goes into the list.
  if (!any) paths->insert(path);
  return true;
}

}  // namespace

std::string PathInDocument(const Node* node) {
  if (node->parent == nullptr) return "";
  const std::string above = PathInDocument(node->parent);
  return node->index >= 0 ? PathOfElement(above, node->index)
                          : PathBelow(above, node->key);
}

std::string PathOf(const Node* node) {
  return Below(DocumentPath(node->document), node);
}

std::string SourceName(const Node* node) {
  const Document* const document = node->document;
  return Below(document->section == Section::kObservedResource
                   ? SpellKey(document->name)
                   : DocumentPath(document),
               node);
}

void AddReads(Document* document, std::set<std::string>* paths) {
  std::string path;
  switch (document->section) {
    case Section::kObservedComposite:
      path = "observed.composite.resource";
      break;
    case Section::kObservedResource:
      path = absl::StrCat("observed.resources.", SpellRead(document->name),
                          ".resource");
      break;
    case Section::kRequired:
      path = absl::StrCat(
          document->extra ? "extra_resources." : "required_resources.",
          SpellRead(document->name), ".items.*.resource");
      break;
    default:
      return;
  }
  AppendReads(document->root(), path, paths);
}

}  // namespace fncache::sdk
