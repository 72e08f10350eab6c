// SPDX-License-Identifier: Apache-2.0
// Arenas, documents, and where their errors go.
#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sdk/model/node.h"

namespace fncache::sdk {
namespace {

thread_local Reporter* reporter = nullptr;

}  // namespace

Arena::~Arena() {
  for (Arena* const other : retained_) other->Unref();
}

Document* Arena::NewDocument() {
  documents_.emplace_back(new Document(this));
  Document* const document = documents_.back().get();
  document->root_ = NewNode(document, nullptr);
  return document;
}

Node* Arena::NewNode(Document* document, Node* parent) {
  Node* const node =
      new (memory_.allocate(sizeof(Node), alignof(Node))) Node(&memory_);
  node->document = document;
  node->parent = parent;
  node->depth = parent == nullptr ? 0 : parent->depth + 1;
  return node;
}

absl::string_view Arena::Keep(absl::string_view text) {
  if (text.empty()) return {};
  char* const kept = static_cast<char*>(memory_.allocate(text.size(), 1));
  std::memcpy(kept, text.data(), text.size());
  return {kept, text.size()};
}

std::vector<Node*>* Arena::NewSources() {
  sources_.push_back(std::make_unique<std::vector<Node*>>());
  return sources_.back().get();
}

const Origin* Arena::NewOrigin(const Origin& origin) {
  return new (memory_.allocate(sizeof(Origin), alignof(Origin))) Origin(origin);
}

Node* Arena::Absent(Node* parent, absl::string_view key, int index) {
  MutexLock lock(&mutex_);
  const auto found = absent_.find({parent, key, index});
  if (found != absent_.end()) return found->second;
  Node* const node = NewNode(parent->document, parent);
  node->key = Keep(key);
  node->index = index;
  node->detached = true;
  absent_.emplace(Place(parent, node->key, index), node);
  return node;
}

Node* Arena::TakeAbsent(Node* parent, absl::string_view key, int index) {
  MutexLock lock(&mutex_);
  const auto found = absent_.find({parent, key, index});
  if (found == absent_.end()) {
    Node* const node = NewNode(parent->document, parent);
    node->key = Keep(key);
    node->index = index;
    return node;
  }
  Node* const node = found->second;
  absent_.erase(found);
  node->detached = false;
  return node;
}

void Arena::Retain(Arena* other) {
  if (other == this ||
      std::find(retained_.begin(), retained_.end(), other) != retained_.end()) {
    return;
  }
  other->Ref();
  retained_.push_back(other);
}

void Document::SetBytes(absl::string_view bytes) {
  bytes_ = bytes;
  present_ = true;
  decoded_ = false;
}

void Document::DoOpen() {
  if (!decoded_) {
    decoded_ = true;
    if (!DecodeStruct(bytes_, root_, &error)) {
      root_->kind = Kind::kUnset;
      root_->children.clear();
    }
  }
  if (error.empty()) return;
  const std::string path = PathOf(root_);
  ReportFatal(path.empty() ? error : absl::StrCat(path, ": ", error));
}

WithReporter::WithReporter(Reporter* current) : before_(reporter) {
  reporter = current;
}

WithReporter::~WithReporter() { reporter = before_; }

void ReportFatal(std::string text) {
  if (reporter != nullptr) reporter->Fatal(std::move(text));
}

void WriteFails(const Node* node, absl::string_view text) {
  const std::string path = PathOf(node);
  std::string error = absl::StrCat(path, path.empty() ? "" : ": ", text);
  Document* const document = node->document;
  if (reporter == nullptr && document->section == Section::kAlone &&
      document->error.empty()) {
    document->error = std::move(error);
  } else {
    ReportFatal(std::move(error));
  }
}

absl::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kUnset:
      return "absent";
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "a boolean";
    case Kind::kNumber:
      return "a number";
    case Kind::kText:
      return "text";
    case Kind::kObject:
      return "an object";
    case Kind::kList:
      return "a list";
  }
  return "";
}

}  // namespace fncache::sdk
