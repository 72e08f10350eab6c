// PlainWalk: a request's canonical form (docs/key-format.md), by one walk over
// its wire bytes.
//
// The walk copies the bytes that it reads, map entries in order, and leaves out
// the tag and what is masked. It takes only the plain form that encoders emit,
// in which nothing is to be merged, dropped or shortened: fields in order, each
// singular one once, map entries as key and value with no key twice, no default
// written out, every varint and length in its shortest form. Whatever it takes,
// protobuf takes too. All else is for the slow path (canonical.h) to make
// plain.
//
// What is inside of a Struct that no mask leads into is StructWalk's.
//
// Never reads or recurses beyond its bounds, whatever the bytes. A PlainWalk
// belongs to one thread and keeps its buffer from one run to the next.
#ifndef FNCACHE_CACHE_KEY_PLAIN_WALK_H_
#define FNCACHE_CACHE_KEY_PLAIN_WALK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "cache/key/mask.h"
#include "cache/key/plain_wire.h"
#include "cache/key/struct_walk.h"
#include "cache/wire/schema.h"

namespace fncache::cache::key {

class PlainWalk {
 public:
  // How far behind the bytes that it writes Run may write besides.
  static constexpr size_t kSlack = 64;

  // Writes the canonical form of the RunFunctionRequest `bytes` without what
  // `masks` (null: nothing) masks to `out`, which has room for bytes.size() +
  // kSlack. Returns its end, or null if the bytes are not plain. `depth` is how
  // many messages may be nested below the request. `tag` becomes meta.tag, a
  // view of `bytes`.
  char* Run(absl::string_view bytes, const MaskNode* masks, int depth,
            char* out, absl::string_view* tag);

  // Frees what an unusually large request needed.
  void Shrink();

 private:
  // Below, `p` to `end` is what a message holds, `depth` how many messages may
  // be nested in it, and `node` what is masked in it, if anything.

  bool Message(const wire::MessageType& type, const char* p, const char* end,
               int depth, const MaskNode* node);
  bool MessageField(const wire::FieldType& field, const char* start,
                    const char* p, const char* end, int depth,
                    const MaskNode* node);
  bool Capabilities(const char* start, const char* p, const char* end,
                    const MaskNode* node);
  // The run of entries of `field` at *p.
  bool Map(const wire::FieldType& field, const char** p, const char* end,
           int depth, const MaskNode* node);
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

  // Pushes the run of map entries with this tag at *p, in order of their keys.
  bool Gather(char tag, const char** p, const char* end);
  void Copy(const char* from, size_t size);

  // A length to be known later, at most `most`: Close gets what Open returned.
  char* Open(size_t most);
  void Close(char* at, size_t most);

  const char* in_end_ = nullptr;
  char* out_ = nullptr;
  absl::string_view tag_;
  std::vector<MapEntry> entries_;  // a stack: each map's above its parent's
  size_t entry_count_ = 0;
  StructWalk structs_;
};

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_PLAIN_WALK_H_
