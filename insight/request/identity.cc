// SPDX-License-Identifier: Apache-2.0
#include "insight/request/identity.h"

#include <algorithm>
#include <utility>

#include "absl/base/internal/endian.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache/key/mask.h"
#include "common/field_path.h"
#include "insight/request/compare.h"
#include "xxhash.h"

namespace fncache::insight::request {
namespace {

// The child of `parent` with this name, among the nodes behind it.
const Node* Child(absl::Span<const Node> nodes, uint32_t parent,
                  absl::string_view name) {
  // A Struct's children are contiguous, and come before their own children.
  const bool together =
      parent != kNoParent && nodes[parent].kind == NodeKind::kStruct;
  for (size_t i = parent == kNoParent ? 0 : parent + 1; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (node.parent == parent) {
      if (node.index < 0 && node.name == name) return &node;
    } else if (together && node.parent != kNoParent && node.parent > parent) {
      break;
    }
  }
  return nullptr;
}

uint32_t IndexOf(absl::Span<const Node> nodes, const Node* node) {
  return static_cast<uint32_t>(node - nodes.data());
}

std::string TextOf(absl::Span<const Node> nodes, uint32_t parent,
                   absl::string_view name) {
  const Node* const node = Child(nodes, parent, name);
  if (node == nullptr || node->kind != NodeKind::kString) return "";
  return std::string(node->bytes);
}

const Node* Descend(absl::Span<const Node> nodes,
                    std::initializer_list<absl::string_view> names) {
  const Node* node = nullptr;
  for (const absl::string_view name : names) {
    node =
        Child(nodes, node == nullptr ? kNoParent : IndexOf(nodes, node), name);
    if (node == nullptr) return nullptr;
  }
  return node;
}

void Mix(uint64_t* hash, absl::string_view text) {
  char size[8];
  absl::little_endian::Store64(size, text.size());
  *hash = XXH3_64bits_withSeed(size, sizeof size, *hash);
  *hash = XXH3_64bits_withSeed(text.data(), text.size(), *hash);
}

std::string JoinPath(const std::vector<PathSegment>& segments, size_t count) {
  std::string path;
  for (size_t i = 0; i < count; ++i) {
    if (segments[i].index) {
      path += segments[i].name;
    } else {
      path = PathBelow(path, segments[i].name);
    }
  }
  return path;
}

bool IsElement(const PathSegment& segment) {
  return segment.index || (segment.name == "*" && !segment.quoted);
}

}  // namespace

CompositeName CompositeOf(absl::Span<const Node> nodes) {
  CompositeName name;
  const Node* const object =
      Descend(nodes, {"observed", "composite", "resource"});
  if (object == nullptr) return name;
  const uint32_t at = IndexOf(nodes, object);
  name.api_version = TextOf(nodes, at, "apiVersion");
  name.kind = TextOf(nodes, at, "kind");
  const Node* const metadata = Child(nodes, at, "metadata");
  if (metadata == nullptr) return name;
  const uint32_t below = IndexOf(nodes, metadata);
  name.name = TextOf(nodes, below, "name");
  name.object_namespace = TextOf(nodes, below, "namespace");
  name.uid = TextOf(nodes, below, "uid");
  return name;
}

uint64_t IdentityOf(absl::string_view function, absl::Span<const Node> nodes) {
  uint64_t hash = 0;
  Mix(&hash, function);
  const CompositeName name = CompositeOf(nodes);
  for (const std::string* part :
       {&name.kind, &name.object_namespace, &name.name, &name.uid}) {
    Mix(&hash, *part);
  }
  // Depth below `input`, or below the entries of the maps of required objects.
  // The nodes below one are contiguous.
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& top = nodes[i];
    if (top.parent != kNoParent) continue;
    const bool input = top.name == "input";
    const bool required = top.name == "required_resources" ||
                          top.name == "extra_resources" ||
                          top.name == "required_schemas";
    if (!input && !required) continue;
    Mix(&hash, top.name);
    for (size_t below = i + 1;
         below < nodes.size() && nodes[below].parent != kNoParent; ++below) {
      if (input) {
        char value[17];
        absl::little_endian::Store64(value, nodes[below].path);
        absl::little_endian::Store64(value + 8, nodes[below].value);
        value[16] = static_cast<char>(nodes[below].kind);
        Mix(&hash, absl::string_view(value, sizeof value));
      } else if (nodes[below].parent == i) {
        Mix(&hash, nodes[below].name);
      }
    }
  }
  return hash;
}

std::vector<ObjectWriter> WritersOf(absl::Span<const Node> nodes) {
  std::vector<ObjectWriter> writers;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& list = nodes[i];
    if (list.kind != NodeKind::kList || list.name != "managedFields" ||
        list.parent == kNoParent || nodes[list.parent].name != "metadata") {
      continue;
    }
    const uint32_t object = nodes[list.parent].parent;
    if (object == kNoParent || nodes[object].kind != NodeKind::kStruct ||
        nodes[object].name != "resource") {
      continue;
    }
    // Only for objects of the protocol, not for others with such names.
    std::string path;
    std::vector<uint32_t> chain;
    for (uint32_t at = object; at != kNoParent; at = nodes[at].parent) {
      chain.push_back(at);
    }
    for (size_t at = chain.size(); at-- > 0;) {
      const Node& part = nodes[chain[at]];
      path = part.index >= 0 ? PathOfElement(path, part.index)
                             : PathBelow(path, part.name);
    }
    if (ObjectOf(path) != path) continue;
    ObjectWriter newest;
    bool any = false;
    for (size_t at = i + 1; at < nodes.size(); ++at) {
      if (nodes[at].parent == kNoParent || nodes[at].parent > i) break;
      if (nodes[at].parent != i) continue;
      const auto entry = static_cast<uint32_t>(at);
      ObjectWriter one;
      const std::string time = TextOf(nodes, entry, "time");
      std::string error;
      // An API server sets no time if an apply changes nothing.
      if (!absl::ParseTime(absl::RFC3339_full, time, &one.time, &error)) {
        one.time = absl::InfiniteFuture();
      }
      if (any && one.time < newest.time) continue;
      one.manager = TextOf(nodes, entry, "manager");
      one.operation = TextOf(nodes, entry, "operation");
      one.subresource = TextOf(nodes, entry, "subresource");
      newest = std::move(one);
      any = true;
    }
    if (!any) continue;
    newest.object = std::move(path);
    writers.push_back(std::move(newest));
  }
  return writers;
}

size_t ObjectSegments(const std::vector<PathSegment>& segments) {
  const auto is = [&segments](size_t at, absl::string_view name) {
    return at < segments.size() && !segments[at].index &&
           segments[at].name == name;
  };
  if (is(0, "observed") || is(0, "desired")) {
    if (is(1, "composite") && is(2, "resource")) return 3;
    if (is(1, "resources") && is(3, "resource")) return 4;
  }
  if ((is(0, "required_resources") || is(0, "extra_resources")) &&
      is(2, "items") && segments.size() > 3 && IsElement(segments[3]) &&
      is(4, "resource")) {
    return 5;
  }
  return 0;
}

std::string ObjectOf(absl::string_view path) {
  const std::vector<PathSegment> segments = SplitPath(path);
  return JoinPath(segments, ObjectSegments(segments));
}

std::string SectionOf(absl::string_view path) {
  const std::vector<PathSegment> segments = SplitPath(path);
  if (segments.empty()) return "other";
  const std::string& top = segments[0].name;
  const absl::string_view second =
      segments.size() > 1 ? absl::string_view(segments[1].name) : "";
  if (top == "observed" || top == "desired") {
    const size_t at = second == "resources" ? 3 : 2;
    if (at < segments.size() && segments[at].name == "connection_details") {
      return "credentials";
    }
  }
  if (top == "observed") {
    return second == "resources" ? "observed resource" : "composite";
  }
  if (top == "desired") return "desired";
  if (top == "input") return "input";
  if (top == "context") return "context";
  if (top == "credentials") return "credentials";
  if (top == "required_resources" || top == "extra_resources") {
    return "required resource";
  }
  if (top == "required_schemas") return "schema";
  if (top == "meta") return "meta";
  return "other";
}

std::string MaskFor(absl::string_view path) {
  const std::vector<PathSegment> segments = SplitPath(path);
  const size_t object = ObjectSegments(segments);
  // Unknown fields, which no mask names.
  if (absl::EndsWith(path, "[?]")) return "";
  if (!segments.empty() && segments[0].name == "context" &&
      segments.size() > 1) {
    // A context key as a whole: its contents are the function's own.
    return absl::StrCat("context.", SpellKey(segments[1].name));
  }
  if (object == 0 || segments.size() <= object ||
      segments[0].name == "desired") {
    return "";
  }
  std::vector<std::string> spelled;
  for (size_t i = 0; i < segments.size(); ++i) {
    // Names of resources, and list elements.
    const bool name = (object == 4 && i == 2) || (object == 5 && i == 1);
    spelled.push_back(
        name || IsElement(segments[i]) ? "*" : SpellKey(segments[i].name));
    // The entries of managedFields are not masked one by one: a mask ends here.
    if (i == object + 1 && segments[object].name == "metadata" &&
        segments[i].name == "managedFields") {
      break;
    }
  }
  const std::string mask = absl::StrJoin(spelled, ".");
  return cache::key::MaskSet::Parse({mask}).ok() ? mask : "";
}

}  // namespace fncache::insight::request
