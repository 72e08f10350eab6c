// SPDX-License-Identifier: Apache-2.0
// Node and Document: the trees that are underneath all handles of the SDK.
//
// A document is a Struct of a request or a response, or stands alone. It is
// decoded when it is first accessed; until then it is its bytes. A writable
// document has two layers: the tree of what this call sets, and below it the
// document that earlier steps desire (`base`). A node of the upper layer that
// this call did not set shows what the base has at its path.
//
// A path that is absent has a node, too, so that it can be spelled, written and
// known as read. Nodes live in the arena of their documents and are never
// freed before it. Not thread-safe, but several threads may read one document
// that stands alone: there, such nodes are not below their parents until they
// are written.
#ifndef FNCACHE_SDK_MODEL_NODE_H_
#define FNCACHE_SDK_MODEL_NODE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "common/mutex.h"
#include "fncache/function/value.h"

namespace fncache::sdk {

// Levels of objects and lists in a document; deeper ones are neither read nor
// written.
inline constexpr int kMaxDepth = 330;

class Document;

// Documents that a value came from.
struct Origin {
  Document* document;
  const Origin* next;
};

// Memory of documents, counted: one reference of each handle, and one of each
// owner.
class Arena {
 public:
  static Arena* New() { return new Arena; }
  void Ref() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  Document* NewDocument();
  Node* NewNode(Document* document, Node* parent);
  // A copy of `text` that lives as long as the arena.
  absl::string_view Keep(absl::string_view text);
  // An empty list of sources.
  std::vector<Node*>* NewSources();
  const Origin* NewOrigin(const Origin& origin);
  // The node for an absent child (`index` -1) or element of a document that
  // stands alone; always the same one. Thread-safe.
  Node* Absent(Node* parent, absl::string_view key, int index);
  // Takes that node out, or makes one, to put it below its parent.
  Node* TakeAbsent(Node* parent, absl::string_view key, int index);
  // Keeps `other` in memory as long as this one.
  void Retain(Arena* other);

 private:
  Arena() : memory_(2048) {}
  ~Arena();

  std::atomic<int> references_{1};
  std::pmr::monotonic_buffer_resource memory_;
  std::vector<std::unique_ptr<Document>> documents_;
  std::vector<std::unique_ptr<std::vector<Node*>>> sources_;
  std::vector<Arena*> retained_;
  using Place = std::tuple<const Node*, absl::string_view, int>;
  Mutex mutex_;
  std::map<Place, Node*> absent_ ABSL_GUARDED_BY(mutex_);
};

// The content of a node in its own layer.
enum class Kind : uint8_t {
  kUnset,  // absent, or not set by this call
  kNull,
  kBool,
  kNumber,
  kText,
  kObject,
  kList,
};

struct Node {
  Document* document = nullptr;
  Node* parent = nullptr;
  // In an object: the key. In a list: the index.
  absl::string_view key;
  int index = -1;
  int depth = 0;  // below the root

  Kind kind = Kind::kUnset;
  bool boolean = false;
  // Writable documents. Removed: neither this layer nor the base has a value.
  bool removed = false;
  // The object or list was made for what is below it, or the null for an
  // element that is to be set: not by the function. Without content it is not
  // emitted.
  bool implicit = false;
  // The base does not show through this object, nor instead of this list.
  bool hides_base = false;
  // It is not below its parent, where several threads may read that.
  bool detached = false;
  // An element behind what is awaited of its list: no index reaches it.
  bool appended = false;
  // The node's value, or what the object or list has besides what is set, is
  // awaited from these nodes of observed documents. Null: not awaited.
  std::vector<Node*>* awaited = nullptr;
  // The observed documents that the scalar came from, whatever it was copied
  // through.
  const Origin* origin = nullptr;

  // Everything at and below it counts as read.
  bool looked = false;
  // The length of this list was read.
  bool sized = false;
  bool read_below = false;  // something below it was read

  double number = 0;
  absl::string_view text;
  // In the order of their keys' bytes.
  std::pmr::vector<Node*> children;
  // Elements of a list, then nodes for indices from `size` on.
  std::pmr::vector<Node*> elements;
  size_t size = 0;  // of a list

  explicit Node(std::pmr::memory_resource* memory)
      : children(memory), elements(memory) {}
};

// The section of a request or response that a document belongs to.
enum class Section : uint8_t {
  kAlone,
  kObservedComposite,
  kObservedResource,
  kRequired,
  kInput,
  kContext,
  kSchema,
  kDesiredComposite,
  kDesiredResource,
  kOutput,
};

class Document {
 public:
  Section section = Section::kAlone;
  // The name of the composed resource, requirement, context key or schema. A
  // document that stands alone may have its path here.
  absl::string_view name;
  int index = 0;         // of a required item
  bool extra = false;    // a required item of `extra_resources`
  bool writable = true;  // else a write is FATAL
  bool awaits = false;   // what is absent here may still come
  bool never = false;    // it is awaited, but no runner will bring it
  // The desired state of earlier steps; null where there is none.
  Document* base = nullptr;
  // The documents whose values this one got, each once: the edges of the graph.
  std::vector<Document*> dependencies;
  // Set where the document is no Struct, a YAML text is broken, it is too deep,
  // or a write failed; each access reports it.
  std::string error;

  Arena* arena() const { return arena_; }
  // Not decoded yet: the functions below do that. A broken document's is
  // absent.
  Node* root() const { return root_; }
  // This document as the only one that a value came from.
  const Origin* origin() const { return &origin_; }
  // Decodes what was not, and reports what is broken.
  void Open() {
    if (!decoded_ || !error.empty()) DoOpen();
  }
  // The document is this Struct (bytes, not copied: they must outlive the
  // arena). Absent without it.
  void SetBytes(absl::string_view bytes);
  bool present() const { return present_; }
  absl::string_view bytes() const { return bytes_; }

 private:
  friend class Arena;
  explicit Document(Arena* arena) : origin_{this, nullptr}, arena_(arena) {}
  void DoOpen();

  const Origin origin_;
  Arena* arena_;
  Node* root_ = nullptr;
  bool decoded_ = true;
  bool present_ = false;
  absl::string_view bytes_;
};

// Receives the errors of the values of a call. One for each thread at a time.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void Fatal(std::string text) = 0;
};
// Makes `reporter` current for the lifetime of this object.
class WithReporter {
 public:
  explicit WithReporter(Reporter* reporter);
  ~WithReporter();

 private:
  Reporter* const before_;
};
void ReportFatal(std::string text);
// FATAL for a write: `PATH: text`. Where no call is here to get it, a document
// that stands alone keeps the first, and each use of it reports it.
void WriteFails(const Node* node, absl::string_view text);

// `text`, `a number`, `an object`: for messages.
absl::string_view KindName(Kind kind);

// --- Reading. Each of these notes what was read.

// The node at `key` or `index` below; a new one where there is none.
Node* ChildOf(Node* node, absl::string_view key);
// The same, to be written at once.
Node* ChildToSet(Node* node, absl::string_view key);
Node* ElementOf(Node* node, size_t index);
// The layer that has the node's value: the node itself, or the base's node, or
// null where it is absent or awaited.
const Node* Look(Node* node);
// The same without noting a read.
const Node* Peek(const Node* node);
// Keys of the object with those of the base, sorted: reads it whole. A key of
// this call whose value is awaited is one. FATAL for another kind.
std::vector<absl::string_view> Keys(Node* node);
// Elements of the list, fields of the object; 0 where it is absent.
size_t Size(Node* node);
// The sources if the node is absent and awaited, else none. Where a value may
// still come, so is a null.
std::vector<Node*> SourcesOf(Node* node);
// Notes that everything at and below the node was read.
void ReadWhole(Node* node);

// --- Writing. FATAL on documents that are read-only.

// False, and FATAL, where the document is read-only.
bool Writable(Node* node);

// `from`; a copy of it if it is in the document of `to`, where one may be above
// the other.
Node* Apart(const Node* to, Node* from);
// A deep copy of `from`, with what is awaited in it, replaces what this call
// set at `to`. An absent and final `from` changes nothing. FATAL: the root,
// metadata or status of an observed object into a desired one.
void CopyNode(Node* to, Node* from);
void MergeNode(Node* to, Node* from);
void RemoveNode(Node* node);
// Removes what this call set at the node and makes it `kind`, with no content
// yet. False where the document is read-only.
bool StartNode(Node* node, Kind kind);
void AwaitNode(Node* node, const std::vector<Node*>& sources);
Node* AppendNode(Node* list);
// Notes that `to` depends on `from`, for the graph.
void AddDependency(Document* to, const Node* from);
// The same for a scalar that `to` got from `from`, and for its copies.
void NoteOrigin(Node* to, const Node* from);
// Whether anything at or below the node was set, removed or awaited.
bool Touched(const Node* node);

// --- Emission.

// A wait: the node of a desired document, and what it waits for.
struct Wait {
  const Node* target;
  std::vector<Node*> sources;
};
// Every awaited value at and below the node, in the order of paths.
std::vector<Wait> WaitsOf(const Node* node);
// The desired Struct: the base with what this call set. An awaited value
// becomes what `observed` (a root; may be null) has at its path, else it is
// left out; `kept` gets the awaited nodes (of lists: the outermost one) that
// got a value or were left out. Keys are sorted. `filter`, where given, says
// which fields of the root are emitted.
std::string Emit(Document* document, Node* observed,
                 std::vector<const Node*>* kept,
                 const std::function<bool(absl::string_view)>& filter = {});
// A Struct's bytes of one node (an object), read whole.
std::string EncodeStruct(Node* node);

// --- Paths.

// Below the document, spelled as in masks: `spec.zones[0]`; "" for the root.
std::string PathInDocument(const Node* node);
// For messages: `observed.composite.spec.size`, `input.spec.size`,
// `observed.resources.vpc.status.id`, `required.vpcs[0].spec`.
std::string PathOf(const Node* node);
// For waits: `vpc.status.atProvider.vpcId`, `required.vpcs[0].spec.x`.
std::string SourceName(const Node* node);
// Adds the paths of everything that was read of the document, as the hint
// spells them: `observed.composite.resource.spec.*.x`. Elements of lists are
// `*`. Nothing for a document whose content no mask may hide.
void AddReads(Document* document, std::set<std::string>* paths);

// Decodes a Struct into `root`; false if it is none or is too deep (`error`).
bool DecodeStruct(absl::string_view bytes, Node* root, std::string* error);

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_MODEL_NODE_H_
