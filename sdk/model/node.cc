// SPDX-License-Identifier: Apache-2.0
#include "sdk/model/node.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fncache::sdk {
namespace {

bool Before(const Node* node, absl::string_view key) { return node->key < key; }

// The child of this key; null where there is no such node.
Node* FindChild(const Node* node, absl::string_view key) {
  const auto at = std::lower_bound(node->children.begin(), node->children.end(),
                                   key, Before);
  return at != node->children.end() && (*at)->key == key ? *at : nullptr;
}

// Whether reads of the document's nodes are noted: only what a mask may hide.
bool Tracks(const Document* document) {
  return document->section == Section::kObservedComposite ||
         document->section == Section::kObservedResource ||
         document->section == Section::kRequired;
}

void NoteBelow(Node* node) {
  for (Node* at = node->parent; at != nullptr && !at->read_below;
       at = at->parent) {
    at->read_below = true;
  }
}

// The base's node at the path of `node`; null where the base has none, or does
// not show there.
const Node* BaseOf(const Node* node) {
  Document* const base = node->document->base;
  if (base == nullptr) return nullptr;
  const Node* const parent = node->parent;
  if (parent == nullptr) {
    base->Open();
    return base->root()->kind == Kind::kObject ? base->root() : nullptr;
  }
  if (parent->removed || parent->hides_base || parent->awaited != nullptr) {
    return nullptr;
  }
  if (parent->kind != Kind::kUnset && parent->kind != Kind::kObject) {
    return nullptr;
  }
  const Node* const above = BaseOf(parent);
  if (above == nullptr) return nullptr;
  if (node->index >= 0) {
    if (above->kind != Kind::kList || parent->kind != Kind::kUnset ||
        static_cast<size_t>(node->index) >= above->size) {
      return nullptr;
    }
    return above->elements[node->index];
  }
  if (above->kind != Kind::kObject) return nullptr;
  const Node* const found = FindChild(above, node->key);
  return found == nullptr || found->kind == Kind::kUnset ? nullptr : found;
}

// FATAL if something above the node is there and cannot have it below.
void CheckAbove(const Node* node) {
  const Node* const parent = node->parent;
  if (parent == nullptr) return;
  const Node* const above = Peek(parent);
  if (above == nullptr) return CheckAbove(parent);
  const Kind kind = node->index >= 0 ? Kind::kList : Kind::kObject;
  if (above->kind == kind || above->kind == Kind::kNull) return;
  ReportFatal(absl::StrCat(PathOf(parent), ": must be ",
                           kind == Kind::kList ? "a list" : "an object",
                           ", is ", KindName(above->kind)));
}

// Forgets what this layer has at and below the node. Handles stay valid.
void Reset(Node* node) {
  node->kind = Kind::kUnset;
  node->removed = node->implicit = node->hides_base = false;
  node->awaited = nullptr;
  node->origin = nullptr;
  node->size = 0;
  for (Node* const child : node->children) Reset(child);
  for (Node* const element : node->elements) Reset(element);
}

// FATAL if nothing can be below the node. One that is as deep stands for it.
bool TooDeep(const Node* node) {
  if (node->depth <= kMaxDepth) return false;
  ReportFatal(
      absl::StrCat("a document is nested deeper than ", kMaxDepth, " levels"));
  return true;
}

// Whether `from` is the root, metadata or status of something observed.
bool IsWholesale(const Node* from) {
  if (!Tracks(from->document)) return false;
  if (from->parent == nullptr) return true;
  return from->parent->parent == nullptr &&
         (from->key == "metadata" || from->key == "status");
}

// Documents that the response has.
bool IsDesired(const Document* document) {
  return document->section == Section::kDesiredComposite ||
         document->section == Section::kDesiredResource ||
         document->section == Section::kContext ||
         document->section == Section::kOutput;
}

// The content of `from`, of the layer that shows, as this layer's content at
// `to`, which is reset.
void Fill(Node* to, Node* from);

void FillFromLayer(Node* to, const Node* from) {
  to->kind = from->kind;
  to->implicit = from->implicit;
  if (from->kind != Kind::kObject && from->kind != Kind::kList) {
    NoteOrigin(to, from);
  }
  to->boolean = from->boolean;
  to->number = from->number;
  if (from->kind == Kind::kNumber && !std::isfinite(from->number)) {
    WriteFails(to, "must be a finite number");
  }
  to->text = from->kind == Kind::kText &&
                     from->document->arena() != to->document->arena()
                 ? to->document->arena()->Keep(from->text)
                 : from->text;
}

// Whether several threads may read the document.
bool IsShared(const Document* document) {
  return document->section == Section::kAlone;
}

// A node to put below `parent`.
Node* NewBelow(Node* parent, absl::string_view key, int index) {
  Arena* const arena = parent->document->arena();
  if (IsShared(parent->document)) return arena->TakeAbsent(parent, key, index);
  Node* const node = arena->NewNode(parent->document, parent);
  node->key = arena->Keep(key);
  node->index = index;
  return node;
}

Node* NewElement(Node* list, size_t index) {
  while (list->elements.size() <= index) {
    list->elements.push_back(
        NewBelow(list, "", static_cast<int>(list->elements.size())));
  }
  return list->elements[index];
}

// A node that is to be written comes below its parent.
void Attach(Node* node) {
  if (!node->detached || node->index >= 0) return;
  Node* const parent = node->parent;
  node->document->arena()->TakeAbsent(parent, node->key, -1);
  parent->children.insert(
      std::lower_bound(parent->children.begin(), parent->children.end(),
                       node->key, Before),
      node);
}

void Fill(Node* to, Node* from) {
  const Node* const shown = Peek(from);
  const std::vector<Node*> sources = SourcesOf(from);
  if (!sources.empty()) {
    NoteOrigin(to, from);
    return AwaitNode(to, sources);
  }
  if (shown == nullptr) return;
  FillFromLayer(to, shown);
  if (shown->kind == Kind::kObject) {
    for (const absl::string_view key : Keys(from)) {
      Fill(ChildToSet(to, key), ChildOf(from, key));
    }
  } else if (shown->kind == Kind::kList) {
    to->size = shown->size;
    for (size_t i = 0; i < shown->size; ++i) {
      Node* const element = NewElement(to, i);
      Fill(element, shown->elements[i]);
      element->appended = shown->elements[i]->appended;
    }
  }
  if (from->awaited != nullptr) AwaitNode(to, *from->awaited);
}

// Sources of what is awaited at the node or, if it is not set, above it; null
// for none.
std::vector<Node*>* AwaitedAt(const Node* node) {
  for (const Node* at = node; at != nullptr; at = at->parent) {
    if (at->awaited != nullptr) return at->awaited;
    if (at->removed) break;
    // Below a value of this layer, only what is awaited there is.
    if (at != node && at->kind != Kind::kUnset && at->kind != Kind::kObject) {
      break;
    }
  }
  return nullptr;
}

// The parents of a node that is written become objects and lists. False where
// it cannot be written.
bool MakeParents(Node* node);

void MakeList(Node* list) {
  if (list->kind == Kind::kList) return;
  const bool replaced = list->removed || list->kind != Kind::kUnset;
  std::vector<Node*>* const awaited =
      replaced ? list->awaited : AwaitedAt(list);
  const Node* const base =
      replaced || awaited != nullptr ? nullptr : BaseOf(list);
  // Handles of elements may exist already: fill those.
  if (replaced) Reset(list);
  list->kind = Kind::kList;
  list->awaited = awaited;
  list->hides_base = replaced;
  list->implicit = base == nullptr || base->kind != Kind::kList;
  if (list->implicit) return;
  list->size = base->size;
  for (size_t i = 0; i < base->size; ++i) {
    Fill(NewElement(list, i), base->elements[i]);
  }
}

void MakeObject(Node* object) {
  if (object->kind == Kind::kObject) return;
  std::vector<Node*>* const awaited = object->awaited;
  const bool replaced = object->removed || object->kind != Kind::kUnset;
  if (object->kind != Kind::kUnset) Reset(object);
  object->removed = false;
  object->hides_base = replaced;
  object->kind = Kind::kObject;
  object->implicit = true;
  object->awaited = awaited;
}

// Whether the node is an element of the list, or the next one.
bool IsElement(const Node* list, const Node* node) {
  const auto index = static_cast<size_t>(node->index);
  if (index > list->size) return false;
  return index >= list->elements.size() || list->elements[index] == node;
}

bool MakeParents(Node* node) {
  if (!Writable(node)) return false;
  Node* const parent = node->parent;
  if (parent == nullptr) return true;
  if (!MakeParents(parent)) return false;
  if (node->index < 0) {
    MakeObject(parent);
    Attach(node);
    return true;
  }
  MakeList(parent);
  // Awaited elements come first, so nothing says which one this index means.
  if (parent->awaited != nullptr && !IsElement(parent, node)) {
    for (Node* const element : parent->elements) element->appended = true;
    return false;
  }
  if (static_cast<size_t>(node->index) > parent->size) {
    WriteFails(node, absl::StrCat("the list has ", parent->size, " elements"));
    return false;
  }
  // A handle of an element that was removed appends it again.
  const auto index = static_cast<size_t>(node->index);
  if (node->detached && index >= parent->size) {
    node->document->arena()->TakeAbsent(parent, "", node->index);
  }
  if (index == parent->elements.size()) {
    parent->elements.push_back(node);
  } else if (parent->elements[index] != node) {
    if (index < parent->size) {
      WriteFails(node, "was removed from its list");
      return false;
    }
    parent->elements[index] = node;
  }
  if (index < parent->size) return true;
  node->appended = false;
  parent->size = index + 1;
  return true;
}

}  // namespace

Node* ChildOf(Node* node, absl::string_view key) {
  if (!IsShared(node->document)) return ChildToSet(node, key);
  node->document->Open();
  if (Node* const child = FindChild(node, key)) return child;
  if (TooDeep(node)) return node;
  return node->document->arena()->Absent(node, key, -1);
}

Node* ChildToSet(Node* node, absl::string_view key) {
  node->document->Open();
  const auto at = std::lower_bound(node->children.begin(), node->children.end(),
                                   key, Before);
  if (at != node->children.end() && (*at)->key == key) return *at;
  if (TooDeep(node)) return node;
  Node* const child = NewBelow(node, key, -1);
  node->children.insert(at, child);
  return child;
}

Node* ElementOf(Node* node, size_t index) {
  // An index that no list has; the node can be read, as absent, and not
  // written.
  constexpr size_t kMaxIndex = 1 << 24;
  node->document->Open();
  const bool is_there = index < node->elements.size();
  // One that was appended is behind what is awaited, wherever it is now.
  const bool is_other = is_there && index < node->size &&
                        node->awaited != nullptr &&
                        node->elements[index]->appended;
  if (is_there && !is_other) return node->elements[index];
  if (TooDeep(node)) return node;
  if (!is_there && IsShared(node->document)) {
    return node->document->arena()->Absent(
        node, "", static_cast<int>(std::min(index, kMaxIndex)));
  }
  if (!is_other && index < node->elements.size() + 64)
    return NewElement(node, index);
  const Node* const shown = Peek(node);
  if (!is_other && shown != nullptr && shown->kind == Kind::kList &&
      index < shown->size) {
    return NewElement(node, index);
  }
  Node* const child = node->document->arena()->NewNode(node->document, node);
  child->index = static_cast<int>(std::min(index, kMaxIndex));
  return child;
}

const Node* Peek(const Node* node) {
  node->document->Open();
  if (node->removed) return nullptr;
  if (node->kind != Kind::kUnset) return node;
  if (node->awaited != nullptr) return nullptr;
  return BaseOf(node);
}

const Node* Look(Node* node) {
  ReadWhole(node);
  const Node* const shown = Peek(node);
  if (shown == nullptr) CheckAbove(node);
  return shown;
}

void ReadWhole(Node* node) {
  if (node->looked || !Tracks(node->document)) return;
  node->looked = true;
  NoteBelow(node);
}

std::vector<Node*> SourcesOf(Node* node) {
  if (const Node* const shown = Peek(node)) {
    // Where a value may still come, a null is none yet.
    if (shown->kind == Kind::kNull && node->document->awaits) return {node};
    return {};
  }
  if (node->removed) return {};
  if (const std::vector<Node*>* const awaited = AwaitedAt(node)) {
    return *awaited;
  }
  if (node->document->awaits) return {node};
  return {};
}

// Whether the node has a value of this layer, which may be awaited.
static bool IsSet(const Node* node) {
  return node->kind != Kind::kUnset ||
         (node->awaited != nullptr && !node->removed);
}

std::vector<absl::string_view> Keys(Node* node) {
  std::vector<absl::string_view> keys;
  const Node* const shown = Look(node);
  if (shown == nullptr || shown->kind == Kind::kNull) return keys;
  if (shown->kind != Kind::kObject) {
    ReportFatal(absl::StrCat(PathOf(node), ": must be an object, is ",
                             KindName(shown->kind)));
    return keys;
  }
  const Node* const base =
      shown == node && node->awaited == nullptr ? BaseOf(node) : nullptr;
  const bool merged =
      base != nullptr && base->kind == Kind::kObject && !node->hides_base;
  if (!merged) {
    for (const Node* const child : shown->children) {
      if (IsSet(child)) keys.push_back(child->key);
    }
    return keys;
  }
  for (const Node* const child : node->children) {
    if (IsSet(child)) keys.push_back(child->key);
  }
  for (const Node* const child : base->children) {
    if (child->kind == Kind::kUnset) continue;
    const Node* const own = FindChild(node, child->key);
    if (own == nullptr || (!IsSet(own) && !own->removed)) {
      keys.push_back(child->key);
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

size_t Size(Node* node) {
  const Node* const shown = Peek(node);
  if (shown != nullptr && shown->kind == Kind::kObject) {
    return Keys(node).size();
  }
  if (shown != nullptr && shown->kind == Kind::kList) {
    if (Tracks(node->document)) {
      node->sized = true;
      NoteBelow(node);
    }
    return shown->size;
  }
  Look(node);
  if (shown == nullptr || shown->kind == Kind::kNull) return 0;
  ReportFatal(absl::StrCat(PathOf(node), ": must be a list, is ",
                           KindName(shown->kind)));
  return 0;
}

bool Writable(Node* node) {
  node->document->Open();
  if (node->document->writable) return true;
  WriteFails(node, "is read-only");
  return false;
}

bool StartNode(Node* node, Kind kind) {
  if (!MakeParents(node)) return false;
  Reset(node);
  node->kind = kind;
  return true;
}

void AwaitNode(Node* node, const std::vector<Node*>& sources) {
  if (!MakeParents(node)) return;
  if (node->awaited == nullptr && node->kind == Kind::kUnset) {
    const Origin* const origin = node->origin;
    Reset(node);
    node->origin = origin;
  }
  std::vector<Node*>* const all = node->document->arena()->NewSources();
  if (node->awaited != nullptr) *all = *node->awaited;
  for (Node* const source : sources) {
    if (std::find(all->begin(), all->end(), source) != all->end()) continue;
    all->push_back(source);
    node->document->arena()->Retain(source->document->arena());
    AddDependency(node->document, source);
  }
  node->awaited = all;
}

// The value of `to` came from this document.
static void AddOrigin(Node* to, Document* document) {
  for (const Origin* at = to->origin; at != nullptr; at = at->next) {
    if (at->document == document) return;
  }
  AddDependency(to->document, document->root());
  to->origin = to->origin == nullptr
                   ? document->origin()
                   : to->document->arena()->NewOrigin({document, to->origin});
}

void NoteOrigin(Node* to, const Node* from) {
  if (from->document->awaits) return AddOrigin(to, from->document);
  for (const Origin* at = from->origin; at != nullptr; at = at->next) {
    AddOrigin(to, at->document);
  }
}

void AddDependency(Document* to, const Node* from) {
  if (!from->document->awaits || to == from->document) return;
  if (std::find(to->dependencies.begin(), to->dependencies.end(),
                from->document) == to->dependencies.end()) {
    to->dependencies.push_back(from->document);
    to->arena()->Retain(from->document->arena());
  }
}

Node* Apart(const Node* to, Node* from) {
  if (from->document != to->document) return from;
  Document* const copy = to->document->arena()->NewDocument();
  Fill(copy->root(), from);
  return copy->root();
}

void CopyNode(Node* to, Node* from) {
  if (!Writable(to) || to == from) return;
  const Node* const shown = Look(from);
  if (IsDesired(to->document) && IsWholesale(from)) {
    ReportFatal(absl::StrCat(PathOf(to), ": ", PathOf(from),
                             " cannot be copied as a whole"));
    return;
  }
  if (shown == nullptr && SourcesOf(from).empty()) return;
  from = Apart(to, from);
  AddDependency(to->document, from);
  if (StartNode(to, Kind::kUnset)) Fill(to, from);
}

// A field that was removed may be among those that are awaited now.
static void AwaitRemoved(Node* object, const std::vector<Node*>& sources) {
  for (Node* const child : object->children) {
    if (child->removed) AwaitNode(child, sources);
    if (child->kind == Kind::kObject) AwaitRemoved(child, sources);
  }
}

void MergeNode(Node* to, Node* from) {
  if (!Writable(to) || to == from) return;
  const Node* const shown = Look(from);
  const std::vector<Node*> sources = SourcesOf(from);
  const Node* const target = Peek(to);
  // Either may be awaited, and an object then.
  const bool merges = (target == nullptr ? to->awaited != nullptr
                                         : target->kind == Kind::kObject) &&
                      (!sources.empty() ||
                       (shown != nullptr && shown->kind == Kind::kObject)) &&
                      !(IsDesired(to->document) && IsWholesale(from));
  if (!merges) return CopyNode(to, from);
  if (!MakeParents(to)) return;
  MakeObject(to);
  if (!sources.empty()) {
    AwaitRemoved(to, sources);
    return AwaitNode(to, sources);
  }
  to->implicit = false;
  from = Apart(to, from);
  for (const absl::string_view key : Keys(from)) {
    MergeNode(ChildOf(to, key), ChildOf(from, key));
  }
  if (from->awaited != nullptr) AwaitNode(to, *from->awaited);
}

void RemoveNode(Node* node) {
  node->document->Open();
  if (node->document->writable && !Touched(node) && Peek(node) == nullptr) {
    // Also what an awaited parent may still bring.
    const bool awaited = !SourcesOf(node).empty();
    if (!awaited) return;
  }
  if (!MakeParents(node)) return;
  Reset(node);
  if (node->index < 0 || node->parent == nullptr) {
    node->removed = true;
    return;
  }
  Node* const list = node->parent;
  list->elements.erase(list->elements.begin() + node->index);
  --list->size;
  for (size_t i = node->index; i < list->elements.size(); ++i) {
    list->elements[i]->index = static_cast<int>(i);
  }
  node->index = static_cast<int>(list->size);
}

Node* AppendNode(Node* list) {
  const Node* const shown = Peek(list);
  if (shown != nullptr && shown->kind != Kind::kList &&
      shown->kind != Kind::kNull) {
    WriteFails(list,
               absl::StrCat("must be a list, is ", KindName(shown->kind)));
  }
  if (!MakeParents(list)) return ElementOf(list, 0);
  MakeList(list);
  Node* const element = NewElement(list, list->size);
  Reset(element);
  // A null until it is set.
  element->kind = Kind::kNull;
  element->implicit = true;
  element->appended = list->awaited != nullptr;
  ++list->size;
  return element;
}

bool Touched(const Node* node) {
  if (node->kind != Kind::kUnset || node->removed || node->awaited != nullptr) {
    return true;
  }
  return std::any_of(node->children.begin(), node->children.end(), Touched) ||
         std::any_of(node->elements.begin(), node->elements.end(), Touched);
}

}  // namespace fncache::sdk
