// SPDX-License-Identifier: Apache-2.0
// CanonicalWalk: a request's canonical form (docs/key-format.md), by one walk
// over its wire bytes; and a response's, by the same rules.
//
// The walk copies the bytes that it reads, sorts map entries, and leaves out
// the tag and the masked paths. It accepts the encodings that real encoders
// write. Encoders may leave out empty keys and values of map entries, write
// defaults, and write fields in another order than that of their numbers.
//
// The walk refuses encodings that no encoder writes:
// - a singular field or a map key that occurs twice,
// - a varint or length that is longer than necessary,
// - a map entry with any other field in it,
// - unknown fields of a Struct before its known ones.
//
// The slow path (reencode.h) encodes such a message anew. Protobuf accepts
// every message that the walk accepts.
//
// The walk reads the messages around Structs, and Structs that a mask leads
// into, field by field. StructWalk reads all other Structs, which are most of
// the bytes.
//
// The walk never reads or recurses beyond its bounds, whatever the bytes are. A
// CanonicalWalk belongs to one thread and keeps its buffers from one run to the
// next.
#ifndef FNCACHE_CACHE_KEY_CANONICAL_WALK_H_
#define FNCACHE_CACHE_KEY_CANONICAL_WALK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/strings/string_view.h"
#include "cache/key/mask.h"
#include "cache/key/plain_wire.h"
#include "cache/key/struct_walk.h"
#include "cache/key/walk_machine.h"
#include "cache/wire/schema.h"

namespace fncache::cache::key {

class CanonicalWalk {
 public:
  // Reads Structs with the instructions of `machine`, as far as this one has
  // them.
  explicit CanonicalWalk(Machine machine = ThisMachine()) : structs_(machine) {}

  // How many bytes Run needs for what it writes of a request of this size. The
  // canonical form may be longer than the request, since nothing is left out of
  // it for being empty; but not without end.
  static constexpr size_t Capacity(size_t size) {
    return size + MostGrowth(size) + kSlack;
  }

  // Writes the canonical form of the RunFunctionRequest `bytes` without what
  // `masks` (null: nothing) masks to `out`, which has Capacity(bytes.size()).
  // Returns its end, or null if the bytes are not of a form that it takes.
  // `depth` is how many messages may be nested below the request. `tag` becomes
  // meta.tag, a view of `bytes`. `drifts`, if not null: drift is replaced by
  // marks and appended to it (AppendDrift), where `masks` say that it may be.
  char* Run(absl::string_view bytes, const MaskNode* masks, int depth,
            std::string* drifts, char* out, absl::string_view* tag);

  // The same of a RunFunctionResponse, which is to have no meta: with the TTL
  // of one it is refused.
  char* RunResponse(absl::string_view bytes, int depth, char* out);

  // Frees what an unusually large request needed.
  void Shrink();

 private:
  // How far behind the bytes that it writes Run may write besides.
  static constexpr size_t kSlack = 64;
  static constexpr size_t MostGrowth(size_t size) { return size / 4 + 4096; }

  char* Walk(const wire::MessageType& type, absl::string_view bytes,
             const MaskNode* masks, int depth, std::string* drifts, char* out,
             absl::string_view* tag);

  // Below, `p` to `end` is what a message holds, `depth` how many messages may
  // be nested in it, and `node` what is masked in it, if anything.

  bool Message(const wire::MessageType& type, const char* p, const char* end,
               int depth, const MaskNode* node);
  enum class Step {
    kRefused,
    kDone,
    // Nothing was done yet: the field behind this one belongs before it.
    kOutOfOrder,
  };
  // The field at *from, or all entries of a map that follow one another there;
  // `met` has a bit for the number of each singular field that was there.
  // `in_order`: it stops if a field out of order follows.
  Step KnownField(const wire::MessageType& type, const wire::FieldType& field,
                  const char** from, const char* end, int depth,
                  const MaskNode* node, bool in_order, uint32_t* met);
  // The fields from `p` on, which are not in order. Those before them, of which
  // the last has the rank `last`, or which were not in order either, were
  // written from `begin` on.
  ABSL_ATTRIBUTE_NOINLINE bool FieldsInAnyOrder(const wire::MessageType& type,
                                                const char* p, const char* end,
                                                int depth, const MaskNode* node,
                                                char* begin, size_t drifts,
                                                uint32_t last, uint32_t met);
  bool MessageField(const wire::FieldType& field, const char* start,
                    const char* p, const char* end, int depth,
                    const MaskNode* node);
  bool Capabilities(const char* start, const char* p, const char* end,
                    const MaskNode* node);
  // The run of entries of `field` at *p.
  Step Map(const wire::FieldType& field, const char** p, const char* end,
           int depth, const MaskNode* node, bool in_order);
  // One entry of `field`, whose value `node` leads into, if anything.
  bool MapValue(const wire::FieldType& field, const MapEntry& entry, int depth,
                const MaskNode* node);
  // The same for an entry of a Resource as most are: its object, and perhaps
  // that it is ready. `node` is what is masked in the Resource, if anything.
  // False, and nothing written: MapValue is for this entry.
  bool UsualResource(const MapEntry& entry, int depth, const MaskNode* node);
  // A Struct or ListValue that nothing is masked in.
  bool Whole(StructWalk::Kind kind, const char* p, const char* end, int depth);
  // A Value that nothing is masked in, and before it what introduces it, from
  // `start` on.
  bool Value(const char* start, const char* p, const char* end, int depth);
  bool MaskedStruct(const char* p, const char* end, int depth,
                    const MaskNode& node);
  bool MaskedValue(const char* p, const char* end, int depth,
                   const MaskNode& node);
  bool MaskedList(const char* p, const char* end, int depth,
                  const MaskNode& node);
  bool UnknownFields(const wire::MessageType& type, const char* p,
                     const char* end, int depth);

  size_t DriftBytes() const { return drifts_ == nullptr ? 0 : drifts_->size(); }
  // Puts the fields of a message of `type`, which were written from `begin` on,
  // in order, and the entries of maps that were not written in one run. False:
  // a map key comes twice, or there is drift in the message. There was none in
  // it while there were `drifts` bytes of drift.
  ABSL_ATTRIBUTE_NOINLINE bool Arrange(const wire::MessageType& type,
                                       char* begin, size_t drifts);

  // Pushes the run of map entries with this tag at *p, in order of their keys.
  bool Gather(char tag, const char** p, const char* end);
  void Copy(const char* from, size_t size);

  // Takes `bytes` from what the canonical form may be longer than the request.
  bool Grow(size_t bytes);
  // Writes a length that will be known later: `expected`, unless what is
  // written behind it takes more or fewer bytes than the request had for it.
  // Close gets what Open returned.
  char* Open(size_t expected);
  bool Close(char* at, size_t expected);
  // The same of an entry's two lengths, around its value.
  struct EntryLengths {
    char* contents;
    char* value;
  };
  bool OpenEntry(const MapEntry& entry, EntryLengths* lengths);
  bool CloseEntry(const MapEntry& entry, const EntryLengths& lengths);

  const char* in_end_ = nullptr;
  char* out_ = nullptr;
  absl::string_view tag_;
  std::string* drifts_ = nullptr;  // null: drift stays
  std::vector<MapEntry> entries_;  // a stack: each map's above its parent's
  size_t entry_count_ = 0;
  size_t growth_ = 0;  // how many bytes more there may still be
  std::string arranged_;
  StructWalk structs_;
};

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_CANONICAL_WALK_H_
