// SPDX-License-Identifier: Apache-2.0
#include "cache/key/mask.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache/key/plain_wire.h"
#include "cache/wire/schema.h"
#include "common/field_path.h"
#include "common/utf8.h"

namespace fncache::cache::key {
namespace {

// More than any list of masks comes to; a few with many `*` beside many names
// could otherwise multiply without end.
constexpr size_t kMaxNodes = 1 << 16;

// No request is nested deeper than that and has a key. It also bounds how deep
// what follows a path recurses.
constexpr size_t kMaxElements = wire::kMaxDepth;

// An error cites this many characters of a path. The reader recognizes the path
// by its beginning.
constexpr size_t kMostCited = 100;

// `text` between backquotes, as an error shows it: in one line, and at most
// kMostCited characters of it.
std::string Cited(absl::string_view text) {
  size_t bytes = 0;
  for (size_t i = 0; i < kMostCited && bytes < text.size(); ++i) {
    bytes += std::max<size_t>(Utf8CharacterBytes(text.substr(bytes)), 1);
  }
  return absl::StrCat("`", Printable(text.substr(0, bytes)),
                      bytes < text.size() ? "..." : "", "`");
}

absl::Status Wrong(absl::string_view path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(Cited(path), ": ", why));
}

bool IsSetName(absl::string_view text) {
  const std::vector<NamedMaskSet>& sets = NamedMaskSets();
  return std::any_of(sets.begin(), sets.end(),
                     [text](const auto& set) { return set.name == text; });
}

// Spells it as MaskSet::canonical does. A key that is called like a set is
// quoted, since bare it would be refused as that set.
std::string Spell(const MaskElement& element) {
  if (element.any) return "*";
  return IsSetName(element.name) ? QuoteKey(element.name)
                                 : SpellKey(element.name);
}

std::string Spell(const MaskPath& path) {
  return absl::StrJoin(path, ".",
                       [](std::string* out, const MaskElement& element) {
                         out->append(Spell(element));
                       });
}

absl::StatusOr<MaskElement> ReadBare(absl::string_view path, size_t* at) {
  const size_t start = *at;
  while (*at < path.size() && path[*at] != '.') ++*at;
  const absl::string_view text = path.substr(start, *at - start);
  if (text.empty()) {
    return Wrong(path, "an element is empty (an empty key is written \"\")");
  }
  if (text == "*") return MaskElement{true, ""};
  if (IsAllDigits(text) || text.find('[') != text.npos ||
      text.find(']') != text.npos) {
    return Wrong(path, absl::StrCat(Cited(text),
                                    ": indices are not allowed; `*` stands "
                                    "for every list element, and a map key of "
                                    "this name is quoted"));
  }
  if (text.find('*') != text.npos) {
    return Wrong(path, absl::StrCat(Cited(text),
                                    ": `*` stands for a whole key, not for a "
                                    "piece of one; a key with a star in it is "
                                    "quoted"));
  }
  if (std::any_of(text.begin(), text.end(), NeedsQuotes)) {
    return Wrong(path, absl::StrCat(Cited(text), " must be quoted"));
  }
  if (IsSetName(text)) {
    return Wrong(path, absl::StrCat(Cited(text),
                                    " is the name of a set, which stands "
                                    "alone; a map key of this name is quoted"));
  }
  return MaskElement{false, std::string(text)};
}

}  // namespace

absl::StatusOr<MaskPath> ReadMaskPath(absl::string_view path) {
  if (path.empty()) return Wrong(path, "is empty");
  if (!IsUtf8(path)) return Wrong(path, "is not UTF-8");
  MaskPath elements;
  size_t at = 0;
  while (true) {
    if (at < path.size() && path[at] == '"') {
      absl::string_view rest = path.substr(at);
      absl::StatusOr<std::string> key = TakeQuoted(&rest);
      if (!key.ok()) return Wrong(path, key.status().message());
      at = path.size() - rest.size();
      if (at < path.size() && path[at] != '.') {
        return Wrong(path, "only a dot may follow a quoted key");
      }
      elements.push_back({false, *std::move(key)});
    } else {
      absl::StatusOr<MaskElement> element = ReadBare(path, &at);
      if (!element.ok()) return element.status();
      elements.push_back(*std::move(element));
    }
    if (elements.size() > kMaxElements) {
      return Wrong(path, absl::StrCat("has more than ", kMaxElements,
                                      " elements, and no request is nested as "
                                      "deep as that"));
    }
    if (at == path.size()) return elements;
    ++at;  // the dot
  }
}

namespace {

// Below a message of `type`: element `at` names a field, and so on.
absl::Status CheckShape(absl::string_view text, const MaskPath& path, size_t at,
                        const wire::MessageType& type) {
  // Struct and Value: any keys, as deep as one likes.
  if (&type == &wire::kStructType) return absl::OkStatus();
  if (at == path.size()) return absl::OkStatus();
  const MaskElement& element = path[at];
  if (element.any) {
    return Wrong(text, absl::StrCat("`*` stands for a map key or for list "
                                    "elements, not for a field of ",
                                    type.name));
  }
  const wire::FieldType* field = type.Find(element.name);
  if (field == nullptr) {
    return Wrong(
        text, absl::StrCat(type.name, " has no field ", Cited(element.name)));
  }
  if (++at == path.size()) return absl::OkStatus();
  if (field->label == wire::FieldLabel::kMap ||
      field->label == wire::FieldLabel::kRepeated) {
    if (field->label == wire::FieldLabel::kRepeated && !path[at].any) {
      return Wrong(text, absl::StrCat("`", field->name,
                                      "` is a list: only `*` may follow"));
    }
    if (++at == path.size()) return absl::OkStatus();
  }
  if (field->kind != wire::FieldKind::kMessage) {
    return Wrong(text, absl::StrCat("there is nothing below ",
                                    Cited(Spell(path[at - 1]))));
  }
  return CheckShape(text, path, at, *field->message);
}

// Whether the path starts with these: names, `*` for itself only and "K" for
// anything.
bool StartsWith(const MaskPath& path,
                std::initializer_list<absl::string_view> prefix) {
  if (path.size() < prefix.size()) return false;
  size_t i = 0;
  for (const absl::string_view name : prefix) {
    const MaskElement& element = path[i++];
    if (name == "K") continue;
    if (name == "*" ? !element.any : element.any || element.name != name) {
      return false;
    }
  }
  return true;
}

}  // namespace

size_t HideableObject(const MaskPath& path) {
  const auto object = [&path](std::initializer_list<absl::string_view> prefix) {
    return StartsWith(path, prefix) && path.size() > prefix.size()
               ? prefix.size()
               : 0;
  };
  return std::max(
      {object({"observed", "composite", "resource"}),
       object({"observed", "resources", "K", "resource"}),
       object({"required_resources", "K", "items", "*", "resource"}),
       object({"extra_resources", "K", "items", "*", "resource"})});
}

namespace {

// Whether the element is `name`, or stands for it among others.
bool MayBe(const MaskElement& element, absl::string_view name) {
  return element.any || element.name == name;
}

// Whether the mask hides the object's whole spec or metadata. Such masks are
// `spec`, `spec.*`, and the same with `*` as the section (`*`, `*.*`).
bool HidesWholeSpecOrMetadata(const MaskPath& path, size_t object) {
  const MaskElement& section = path[object];
  return (MayBe(section, "spec") || MayBe(section, "metadata")) &&
         (path.size() == object + 1 ||
          (path.size() == object + 2 && path[object + 1].any));
}

absl::Status CheckCacheRules(absl::string_view text, const MaskPath& path,
                             std::vector<std::string>* warnings) {
  if (const size_t object = HideableObject(path); object > 0) {
    if (HidesWholeSpecOrMetadata(path, object)) {
      return Wrong(text,
                   "may not be masked: it hides a whole spec or metadata, "
                   "where functions read names, labels and what users ask "
                   "for; a mask names single fields of these");
    }
    const bool of_the_composite = path[1].name == "composite" && !path[1].any;
    const bool the_runners_own =
        !path[object].any && path.size() > object + 1 &&
        !path[object + 1].any && path[object + 1].name == "crossplane";
    if (of_the_composite && MayBe(path[object], "spec") && !the_runners_own) {
      warnings->push_back(absl::StrCat(
          Cited(Spell(path)),
          ": hides some of what users ask for in the composite's spec: a "
          "change of it there has no effect while an old answer is served"));
    }
    return absl::OkStatus();
  }
  if (StartsWith(path, {"context", "K"}) && !path[1].any) {
    warnings->push_back(absl::StrCat(
        Cited(Spell(path)),
        ": requests that differ only in this context get the same answer, "
        "whatever the function or a later step reads there"));
    return absl::OkStatus();
  }
  return Wrong(text,
               "may not be masked: a mask goes at least one element below "
               "observed.composite.resource, observed.resources.K.resource, "
               "required_resources.K.items.*.resource or "
               "extra_resources.K.items.*.resource (K a key or *), or at or "
               "below one named key of context");
}

// Every object that a request can hold, as far as masks may go into it.
constexpr const char* kObjects[] = {"observed.composite.resource",
                                    "observed.resources.*.resource",
                                    "required_resources.*.items.*.resource",
                                    "extra_resources.*.items.*.resource"};

// The same fields of all of them.
std::vector<std::string> OfAllObjects(
    std::initializer_list<absl::string_view> fields) {
  std::vector<std::string> paths;
  for (const char* object : kObjects) {
    for (const absl::string_view field : fields) {
      paths.push_back(absl::StrCat(object, ".", field));
    }
  }
  return paths;
}

// The paths that `text` stands for.
absl::StatusOr<std::vector<std::string>> Expand(const std::string& text) {
  if (text.size() > 2 && text[0] == '"' && text.back() == '"' &&
      IsSetName(absl::string_view(text).substr(1, text.size() - 2))) {
    return Wrong(text,
                 "the quotes are part of it here; without them it names a "
                 "set");
  }
  if (text.empty() || text[0] != '@') return std::vector<std::string>{text};
  std::vector<absl::string_view> names;
  for (const NamedMaskSet& set : NamedMaskSets()) {
    if (set.name == text) return set.paths;
    names.push_back(set.name);
  }
  return Wrong(text, absl::StrCat("no set has this name; there are ",
                                  absl::StrJoin(names, ", ")));
}

// Paths of which none covers another, to find out whether one of them covers a
// further one: whether it is not longer than that, and each of its elements is
// `*` or the same.
class CoveringPaths {
 public:
  // The path has to outlive this.
  void Add(const MaskPath& path) {
    Node* node = &root_;
    for (const MaskElement& element : path) {
      if (!element.any) {
        node = &node->named[element.name];
        continue;
      }
      if (node->any == nullptr) node->any = std::make_unique<Node>();
      node = node->any.get();
    }
    node->is_end = true;
  }

  bool Cover(const MaskPath& path) const { return Cover(root_, path, 0); }

 private:
  struct Node {
    bool is_end = false;
    std::map<absl::string_view, Node> named;
    std::unique_ptr<Node> any;
  };

  // Whether an end below `node` covers the path, whose elements before `at` are
  // covered.
  static bool Cover(const Node& node, const MaskPath& path, size_t at) {
    if (node.is_end) return true;
    if (at == path.size()) return false;
    if (node.any != nullptr && Cover(*node.any, path, at + 1)) return true;
    if (path[at].any) return false;
    const auto found = node.named.find(path[at].name);
    return found != node.named.end() && Cover(found->second, path, at + 1);
  }

  Node root_;
};

// The paths, in the order of their spellings, that no other one covers.
using SpelledPath = std::pair<const std::string, MaskPath>;
std::vector<const SpelledPath*> Uncovered(
    const std::map<std::string, MaskPath>& paths) {
  std::vector<const SpelledPath*> order;
  for (const SpelledPath& path : paths) order.push_back(&path);
  // This order puts a path behind every path that covers it: the covering path
  // is shorter, or has more stars.
  const auto stars = [](const MaskPath& path) {
    return std::count_if(
        path.begin(), path.end(),
        [](const MaskElement& element) { return element.any; });
  };
  std::sort(order.begin(), order.end(),
            [&stars](const SpelledPath* a, const SpelledPath* b) {
              if (a->second.size() != b->second.size()) {
                return a->second.size() < b->second.size();
              }
              return stars(a->second) > stars(b->second);
            });
  CoveringPaths covering;
  std::vector<const SpelledPath*> uncovered;
  for (const SpelledPath* path : order) {
    if (covering.Cover(path->second)) continue;
    covering.Add(path->second);
    uncovered.push_back(path);
  }
  std::sort(uncovered.begin(), uncovered.end(),
            [](const SpelledPath* a, const SpelledPath* b) {
              return a->first < b->first;
            });
  return uncovered;
}

// A path of the trie: a mask, or a path to drift.
struct Leaf {
  MaskPath path;
  MaskNode::Drifts drifts = MaskNode::Drifts::kNone;
  DriftSection section = DriftSection::kNone;
};

// The node for all in a status that no path goes to.
const MaskNode* StatusNode(DriftSection section) {
  const auto make = [](DriftSection of) {
    auto* const node = new MaskNode;
    node->drifts = MaskNode::Drifts::kStatus;
    node->section = of;
    node->orders = ~uint64_t{0};
    node->rest = node;
    return node;
  };
  static const MaskNode* const composed = make(DriftSection::kComposed);
  static const MaskNode* const required = make(DriftSection::kRequired);
  return section == DriftSection::kComposed ? composed : required;
}

// The trie below the paths' element `at`; null once there are too many nodes.
// `status`: it is in a status of this section.
std::unique_ptr<MaskNode> BuildNode(const std::vector<const Leaf*>& paths,
                                    size_t at, DriftSection status,
                                    size_t* nodes) {
  if (++*nodes > kMaxNodes) return nullptr;
  auto node = std::make_unique<MaskNode>();
  std::map<absl::string_view, std::vector<const Leaf*>> named;
  std::vector<const Leaf*> any;
  for (const Leaf* leaf : paths) {
    const MaskPath& path = leaf->path;
    if (path.size() == at) {
      if (leaf->drifts != MaskNode::Drifts::kNone) {
        node->drifts = leaf->drifts;
        node->section = leaf->section;
        continue;
      }
      // The path ends here, so that other paths have nothing to say below.
      node->masked = true;
      node->drifts = MaskNode::Drifts::kNone;
      return node;
    }
    if (path[at].any) {
      any.push_back(leaf);
    } else {
      named[path[at].name].push_back(leaf);
    }
  }
  if (node->drifts == MaskNode::Drifts::kStatus) status = node->section;
  if (status != DriftSection::kNone) {
    node->drifts = MaskNode::Drifts::kStatus;
    node->section = status;
    node->rest = StatusNode(status);
    node->orders = ~uint64_t{0};
    // For its node of a list.
    if (!any.empty()) named[kManagedFieldsKey];
  }
  for (auto& [name, below] : named) {
    below.insert(below.end(), any.begin(), any.end());
    std::unique_ptr<MaskNode> child = BuildNode(below, at + 1, status, nodes);
    if (child == nullptr) return nullptr;
    if (status != DriftSection::kNone && name == kManagedFieldsKey) {
      child->managed = BuildNode(below, at + 1, DriftSection::kNone, nodes);
      if (child->managed == nullptr) return nullptr;
    }
    node->named.push_back({std::string(name), std::move(child)});
    node->orders |= uint64_t{1} << (static_cast<uint32_t>(OrderOf(name)) >> 26);
  }
  if (!any.empty()) {
    node->orders = ~uint64_t{0};
    node->any = BuildNode(any, at + 1, status, nodes);
    if (node->any == nullptr) return nullptr;
  }
  return node;
}

// The paths to drift (drift.h).
std::vector<Leaf> DriftLeaves() {
  using Drifts = MaskNode::Drifts;
  std::vector<Leaf> leaves;
  const auto add = [&](absl::string_view object, DriftSection section,
                       absl::string_view below, Drifts drifts) {
    leaves.push_back({*ReadMaskPath(absl::StrCat(object, ".resource.", below)),
                      drifts, section});
  };
  const std::pair<const char*, DriftSection> kObjects[] = {
      {"observed.composite", DriftSection::kComposite},
      {"observed.resources.*", DriftSection::kComposed},
      {"required_resources.*.items.*", DriftSection::kRequired},
      {"extra_resources.*.items.*", DriftSection::kRequired}};
  for (const auto& [object, section] : kObjects) {
    add(object, section, "metadata.resourceVersion", Drifts::kVersion);
    add(object, section, "metadata.managedFields", Drifts::kManagedFields);
    if (section == DriftSection::kComposite) continue;
    add(object, section, "status", Drifts::kStatus);
  }
  return leaves;
}

// Null once there are too many nodes.
std::shared_ptr<const MaskNode> BuildRoot(const std::vector<MaskPath>& masks,
                                          bool with_drift) {
  std::vector<Leaf> leaves;
  if (with_drift) leaves = DriftLeaves();
  for (const MaskPath& path : masks) leaves.push_back({path});
  std::vector<const Leaf*> below;
  for (const Leaf& leaf : leaves) below.push_back(&leaf);
  size_t nodes = 0;
  return BuildNode(below, 0, DriftSection::kNone, &nodes);
}

// Whether anything was left out where the path's elements from `at` on lead to.
bool Matched(const MaskNode& node, const MaskPath& path, size_t at) {
  if (at == path.size()) {
    return node.matched.load(std::memory_order_relaxed);
  }
  if (path[at].any) {
    for (const MaskNode::Child& child : node.named) {
      if (Matched(*child.node, path, at + 1)) return true;
    }
    return node.any != nullptr && Matched(*node.any, path, at + 1);
  }
  const MaskNode* const below = node.Find(path[at].name);
  return below != nullptr && Matched(*below, path, at + 1);
}

}  // namespace

const std::vector<NamedMaskSet>& NamedMaskSets() {
  static const auto* const sets = new std::vector<NamedMaskSet>{
      {"@versions", "what the API server counts up at every write",
       OfAllObjects({"metadata.resourceVersion", "metadata.managedFields",
                     "metadata.generation",
                     "status.conditions.*.observedGeneration"})},
      {"@times", "when conditions last changed",
       OfAllObjects({"status.conditions.*.lastTransitionTime"})},
      {"@composite-conditions",
       "the composite's own conditions, which Crossplane writes",
       {"observed.composite.resource.status.conditions"}},
  };
  return *sets;
}

std::vector<std::string> SplitMasks(absl::string_view text) {
  std::vector<std::string> masks;
  std::string mask;
  bool quoted = false;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && !quoted)) {
      const absl::string_view trimmed = absl::StripAsciiWhitespace(mask);
      if (!trimmed.empty()) masks.emplace_back(trimmed);
      mask.clear();
      continue;
    }
    if (text[i] == '"') quoted = !quoted;
    mask += text[i];
    if (quoted && text[i] == '\\' && i + 1 < text.size()) mask += text[++i];
  }
  return masks;
}

MaskSet::MaskSet() {
  static const auto* const drift_root =
      new std::shared_ptr<const MaskNode>(BuildRoot({}, /*with_drift=*/true));
  drift_root_ = *drift_root;
}

std::vector<std::string> MaskSet::Unmatched() const {
  std::vector<std::string> unmatched;
  for (size_t i = 0; i < paths_.size(); ++i) {
    if (!Matched(*root_, paths_[i], 0) &&
        !Matched(*drift_root_, paths_[i], 0)) {
      unmatched.push_back(canonical_[i]);
    }
  }
  return unmatched;
}

absl::StatusOr<MaskSet> MaskSet::Parse(const std::vector<std::string>& paths,
                                       MaskRules rules) {
  MaskSet set;
  // By spelling: sorted and without repetition.
  std::map<std::string, MaskPath> all;
  std::set<std::string> warnings;
  std::vector<std::string> texts;
  for (const std::string& text : paths) {
    const absl::StatusOr<std::vector<std::string>> expanded = Expand(text);
    if (!expanded.ok()) return expanded.status();
    texts.insert(texts.end(), expanded->begin(), expanded->end());
  }
  for (const std::string& text : texts) {
    absl::StatusOr<MaskPath> path = ReadMaskPath(text);
    if (!path.ok()) return path.status();
    absl::Status status =
        CheckShape(text, *path, 0, wire::kRunFunctionRequestType);
    if (!status.ok()) return status;
    if (rules == MaskRules::kCache) {
      std::vector<std::string> found;
      status = CheckCacheRules(text, *path, &found);
      if (!status.ok()) return status;
      warnings.insert(found.begin(), found.end());
    }
    std::string spelling = Spell(*path);
    all.emplace(std::move(spelling), *std::move(path));
  }
  set.warnings_.assign(warnings.begin(), warnings.end());
  for (const SpelledPath* path : Uncovered(all)) {
    set.canonical_.push_back(path->first);
    set.paths_.push_back(path->second);
  }
  if (set.paths_.empty()) return set;
  set.root_ = BuildRoot(set.paths_, /*with_drift=*/false);
  set.drift_root_ = BuildRoot(set.paths_, /*with_drift=*/true);
  if (set.root_ == nullptr || set.drift_root_ == nullptr) {
    return absl::InvalidArgumentError(kTooManyMasks);
  }
  return set;
}

}  // namespace fncache::cache::key
