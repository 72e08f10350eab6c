// SPDX-License-Identifier: Apache-2.0
// StructWalk: the canonical form (docs/key-format.md) of a google.protobuf
// Struct or ListValue with all that it holds, from its wire bytes. This is
// where nearly all bytes of a request are.
//
// It goes through the bytes level by level, one Struct or list after the other:
// the entries of a Struct are gathered, put in order and copied at once; what
// they hold joins the queue of those that are to come. Little depends on a
// branch that could be guessed wrong: entries in the form that encoders emit
// are read, ordered, checked and copied by the same instructions whatever they
// hold; and what is next is known long before.
//
// It takes the plain form only (plain_wire.h), never reads outside of the
// request, and needs no stack, however deep messages are nested. A StructWalk
// belongs to one thread and keeps its buffers from one use to the next.
#ifndef FNCACHE_CACHE_KEY_STRUCT_WALK_H_
#define FNCACHE_CACHE_KEY_STRUCT_WALK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/strings/string_view.h"
#include "cache/key/mask.h"
#include "cache/key/plain_wire.h"
#include "cache/key/walk_machine.h"
#include "cache/wire/schema.h"

namespace fncache::cache::key {

class StructWalk {
 public:
  enum class Kind { kStruct, kList };

  // Walks with the instructions of `machine`, as far as this one has them.
  explicit StructWalk(Machine machine = ThisMachine());

  // Writes the canonical form of the message `bytes` to `out`, which is *growth
  // + 64 bytes longer than `bytes`. The form may be at most *growth bytes
  // longer than `bytes`; the bytes that it uses are subtracted from *growth.
  // Returns the form's end, or null if it is not plain or does not fit. `depth`
  // is how many messages may be nested below it. Bytes up to `readable_end` may
  // be read.
  //
  // With `node` it leaves out what is masked, and writes the Structs and lists
  // that a mask leads into one after the other, as docs/key-format.md says.
  // Then it returns null for more messages: those that are not of the usual
  // form, or would grow. The caller writes them field by field.
  //
  // With `node` and drifts it writes all levels, with marks for drift and for
  // Structs and lists that a path leads into. It needs *growth for one mark.
  // Then it returns null for messages that are not plain or would grow.
  char* Run(Kind kind, absl::string_view bytes, int depth,
            const char* readable_end, size_t* growth, char* out,
            const MaskNode* node = nullptr);

  // From now on drift is replaced by marks, where a node says that it may be,
  // and appended to `drifts`. Null: it stays.
  void SetDrifts(std::string* drifts) { drifts_ = drifts; }

  // Frees what an unusually large one needed.
  void Shrink();

 private:
  // An entry of a Struct, or a Struct or list that is to come. `what` holds,
  // from the lowest bits on, how many messages may be nested in what it is or
  // holds, how many of its first bytes have to be ASCII, how many bytes are
  // copied, whether it is or holds a list, and the size of what it is or holds.
  struct Item {
    const char* start;
    uint64_t what;
  };

  // In an Item's `what`.
  static constexpr int kMostDepth = 0xfff;
  // A path leads into it; see led_.
  static constexpr uint64_t kIsLed = 1 << 12;
  static constexpr int kTextAt = 16;
  static constexpr int kCopiedAt = 24;
  static constexpr uint64_t kIsList = uint64_t{1} << 32;
  static constexpr int kContentsAt = 33;

  static uint64_t Depth(int depth) { return static_cast<uint64_t>(depth); }

  // Once a Struct or list was written, the lower half of its `what` is how many
  // had been met before: the number of the first one in it.
  static size_t FirstInner(uint64_t what) {
    return static_cast<uint32_t>(what);
  }

  struct Tables;
  static const Tables kTables;

  enum class Mode {
    kWhole,
    // It writes the first holder only, whole and without what `node` masks.
    // Walks of their own write the holders in it.
    kMasked,
    // The same of a holder with kIsLed, but what it holds joins the queue.
    kLed,
  };
  // The walk from the holder number `begin` on, compiled for each class of
  // walk_machine.h.
  template <typename Instructions, Mode kMode>
  char* Walk(size_t begin, const MaskNode* node);
  char* WalkOnThisMachine(size_t begin, const MaskNode* node);
  char* WalkPlainly(size_t begin);
  char* WalkWithAvx2(size_t begin);
  char* WalkMaskedPlainly(size_t begin, const MaskNode* node);
  char* WalkMaskedWithAvx2(size_t begin, const MaskNode* node);
  char* WalkLedPlainly(size_t at);
  char* WalkLedWithAvx2(size_t at);
  // Adds this holder, which has kIsLed.
  ABSL_ATTRIBUTE_NOINLINE bool AddLed(size_t holder);

  // The following are called for what is rare. `depth` is how many messages may
  // be nested in the Struct, list or Value, and `node` what a path leads to in
  // the Struct, `element` in each element of the list (null: nothing).
  ABSL_ATTRIBUTE_NOINLINE bool AddStruct(size_t holder, const char* p,
                                         const char* end, int depth,
                                         const MaskNode* node);
  ABSL_ATTRIBUTE_NOINLINE bool AddRestOfList(const char* p, const char* end,
                                             int depth, const MaskNode* element,
                                             absl::string_view key);
  ABSL_ATTRIBUTE_NOINLINE bool AddOdd(const Item& item, int depth);
  // The same if it is 64 to 127 bytes of ASCII. Else false, and nothing added.
  ABSL_ATTRIBUTE_NOINLINE bool AddTwoBlocks(const Item& item);
  bool AddValue(const char* start, const char* p, const char* end, int depth);
  ABSL_ATTRIBUTE_NOINLINE bool AddUnknown(const wire::MessageType& type,
                                          const char* p, const char* end,
                                          int depth);
  void Copy(const char* start, const char* end);

  // For tuned walks. An entry or element with this Value was written at `head`.
  // The Struct or list in it is holder number `inner`, unless that is empty.
  // Lead leaves it out, marks it or lets `node` lead into it, as `node` says.
  // `key` is the map key, or with `in_list` the one above the list.
  ABSL_ATTRIBUTE_NOINLINE bool Lead(const MaskNode& node, absl::string_view key,
                                    bool in_list, const char* value,
                                    const char* value_end, char* head,
                                    size_t inner);
  // The same of the entry at `entry`.
  ABSL_ATTRIBUTE_NOINLINE bool LeadEntry(const MaskNode& node,
                                         const char* entry, char* head,
                                         size_t inner);

  // For masked walks, and for what a tuned one writes apart. AddInner writes
  // the Struct or list with the contents at `p`, whose `what` this is, without
  // what `node` (null: nothing) masks.
  ABSL_ATTRIBUTE_NOINLINE bool AddInner(const char* p, uint64_t what,
                                        const MaskNode* node);
  ABSL_ATTRIBUTE_NOINLINE bool AddMaskedElements(const char* p, const char* end,
                                                 int depth,
                                                 const MaskNode& element);
  // Writes an element's head anew at `head`, which was longer: its contents,
  // from `contents` on, became shorter. The same for an entry with this key.
  void ShortenElement(char* head, bool is_list, const char* contents);
  ABSL_ATTRIBUTE_NOINLINE void ShortenEntry(char* head, absl::string_view key,
                                            bool is_list, const char* contents);
  void FinishHead(char* head, bool is_list, const char* contents);
  ABSL_ATTRIBUTE_NOINLINE char* CorrectLengths(char* begin);
  ABSL_ATTRIBUTE_NOINLINE void ReserveHolders(size_t holders);

  Machine machine_;
  std::string* drifts_ = nullptr;
  // A pointer, because compilers that see the tables as constants give each of
  // them a register.
  const Tables* tables_ = &kTables;
  const char* readable_end_ = nullptr;
  // An entry that begins before it can be read without looking where it ends.
  const char* safe_end_ = nullptr;
  char* out_ = nullptr;
  std::vector<MapEntry> items_;  // of a Struct that is not of the usual form
  // The Structs and lists, in order of being met: where they lie in the
  // request, and the `what` of each.
  std::vector<const char*> holder_starts_;
  std::vector<uint64_t> holders_;
  size_t holder_count_ = 0;
  // For each holder with kIsLed: the node that leads into it, and for a list
  // the map key above it, or above the outermost list.
  struct Led {
    const MaskNode* node;
    absl::string_view key;
  };
  std::vector<Led> led_;
  // Structs that take more bytes than in the request, in their order: their
  // numbers, and how many bytes more.
  struct Grown {
    size_t holder;
    uint64_t by;
  };
  std::vector<Grown> grown_;
  size_t growth_ = 0;  // how many bytes more there may still be
};

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_STRUCT_WALK_H_
