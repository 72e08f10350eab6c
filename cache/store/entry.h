// SPDX-License-Identifier: Apache-2.0
// Entry: a stored response and its deadlines, immutable, shared by reference.
//
// An entry is filled once and then read by any number of threads. Stores and
// hits in progress have references to it (the transport sends `body()` without
// copying). The last reference frees it. Header and bytes are one allocation.
//
// The body is the response without any occurrence of `meta`, byte for byte as
// the function sent it; `meta_rest` is the rest of its meta, without tag and
// TTL.
// A hit is one new `meta` (see response.h) followed by the body.
//
// Thread-safe: immutable but for the count of references, some marks, and what
// the memory tier keeps here under its own lock.
#ifndef FNCACHE_CACHE_STORE_ENTRY_H_
#define FNCACHE_CACHE_STORE_ENTRY_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "cache/key/key.h"
#include "cache/observer.h"

namespace fncache::cache::store {

struct EntryInfo {
  FunctionId function = 0;
  // When the filling call started: a fill of an earlier start never replaces
  // one of a later start. Kept to the nanosecond, as `arrived` and `lifetime`
  // are.
  absl::Time started;
  // When its answer arrived: age and lifetime count from here.
  absl::Time arrived;
  // The lifetime L, fixed at fill. Positive, at most about 292 years.
  absl::Duration lifetime;
  // The TTL T that the function gave; absent if none, or none that is valid.
  // Within google.protobuf.Duration's range (10,000 years), not negative.
  absl::optional<absl::Duration> ttl;
  // For how long after its arrival it is kept, since it may be served past its
  // lifetime (stale_while_revalidate, stale_if_error); fixed at fill. Less than
  // the lifetime counts as the lifetime. At most about 292 years.
  absl::Duration retention;
  // How long the filling call took, which is the time that a hit saves. Kept to
  // the microsecond, and to 71 minutes at most.
  absl::Duration cost;
  // The response holds connection details.
  bool secrets = false;
  // Its function promises that the response does not depend on the time.
  bool pure = false;
  // With tuning: the drift digest of the request that it answered.
  absl::optional<key::Key> drift;

  absl::Time deadline() const { return arrived + lifetime; }
  absl::Time kept_until() const {
    return arrived + std::max(lifetime, retention);
  }
};

class Entry;

// Shared ownership of an Entry, or null.
class EntryRef {
 public:
  EntryRef() = default;
  EntryRef(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
  // Adopts one reference.
  explicit EntryRef(const Entry* entry) : entry_(entry) {}
  EntryRef(const EntryRef& other);
  EntryRef(EntryRef&& other) noexcept
      : entry_(std::exchange(other.entry_, nullptr)) {}
  EntryRef& operator=(EntryRef other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~EntryRef();

  const Entry* get() const { return entry_; }
  const Entry& operator*() const { return *entry_; }
  const Entry* operator->() const { return entry_; }
  explicit operator bool() const { return entry_ != nullptr; }

  // Gives up ownership without dropping the reference; undone by
  // EntryRef(pointer). For the transport's buffers.
  const Entry* Release() { return std::exchange(entry_, nullptr); }

 private:
  const Entry* entry_ = nullptr;
};

class Entry {
 public:
  // Copies its arguments. The pieces of `body` are joined in order. Returns
  // null, an entry that cannot be kept, if `meta_rest` and `body` are kMaxBytes
  // or more together or there is no memory for them.
  static EntryRef Create(const EntryInfo& info, absl::string_view meta_rest,
                         absl::Span<const absl::string_view> body);

  // The same for a body that `write` makes in the entry's memory: it is called
  // once with a buffer of `body_size` bytes, unless the entry is null for the
  // reasons above. `*written` says whether it succeeded; if not, the entry is
  // null.
  static EntryRef CreateInPlace(const EntryInfo& info,
                                absl::string_view meta_rest, size_t body_size,
                                absl::FunctionRef<bool(char* body)> write,
                                bool* written);

  // Larger than any message of gRPC or protobuf.
  static constexpr size_t kMaxBytes = size_t{1} << 31;

  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  EntryInfo info() const;
  FunctionId function() const { return function_; }
  bool secrets() const { return secrets_ != 0; }
  absl::Time started() const { return absl::FromUnixNanos(started_); }
  absl::Time arrived() const { return absl::FromUnixNanos(arrived_); }
  absl::Time deadline() const {
    return arrived() + absl::Nanoseconds(lifetime_);
  }
  // Until when stores keep it: its deadline, or later where it has a retention.
  absl::Time kept_until() const {
    return has_retention_ ? arrived() + absl::Nanoseconds(retention())
                          : deadline();
  }

  // Marks that the function has answered the request again with a response that
  // is not stored (a FATAL result, no TTL). Past its time this entry is not
  // served. The mark belongs to this object and is not stored;
  // TieredStore::Supersede does the rest.
  void Supersede() const { Mark(kSuperseded, true); }
  bool superseded() const { return Has(kSuperseded); }

  // True while a memory store has it. Otherwise only its other references keep
  // its memory. One store has it at a time, under one key.
  bool in_memory() const { return Has(kInMemory); }
  // How often it was read lately, as the memory tier counts; see
  // memory_store.h.
  static constexpr uint32_t kMostReads = 3;
  uint32_t reads() const {
    return (refs_.load(std::memory_order_relaxed) & kReads) / kOneRead;
  }

  // The drift digest of the request that it answered; absent without tuning.
  absl::optional<key::Key> drift() const;
  absl::string_view meta_rest() const;
  absl::string_view body() const { return {bytes(), body_size_}; }
  // How many bytes of memory this entry occupies: header, bytes, and the
  // allocator's own. The number is the same for as long as the entry lives.
  size_t charge() const;

 private:
  friend class EntryRef;
  friend class MemoryShard;
  Entry() = default;
  ~Entry() = default;
  void Ref() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() const {
    // Release orders this holder's reads before the memory is freed; acquire
    // orders the freeing after every other holder's reads.
    const uint32_t was = refs_.fetch_sub(1, std::memory_order_acq_rel);
    if ((was & ~kMarks) == 1) Free(this);
  }
  static void Free(const Entry* entry);

  bool Has(uint32_t mark) const {
    return (refs_.load(std::memory_order_relaxed) & mark) != 0;
  }
  void Mark(uint32_t mark, bool on) const {
    if (on) {
      refs_.fetch_or(mark, std::memory_order_relaxed);
    } else {
      refs_.fetch_and(~mark, std::memory_order_relaxed);
    }
  }
  // Counts a read, at most up to kMostReads. A read that comes at the same time
  // may be lost, which does no harm.
  void CountRead() const {
    uint32_t was = refs_.load(std::memory_order_relaxed);
    if ((was & kReads) == kReads) return;
    refs_.compare_exchange_weak(was, was + kOneRead, std::memory_order_relaxed);
  }
  // Precondition: CountRead is not called meanwhile.
  void SetReads(uint32_t reads) const {
    Mark(kReads, false);
    Mark(reads * kOneRead, true);
  }

  const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }
  char* bytes() { return reinterpret_cast<char*>(this + 1); }

  // Where the function's TTL is kept.
  enum TtlKind : uint32_t {
    kNoTtl,          // nowhere: it gave none
    kTtlIsLifetime,  // in `lifetime_`, as with most functions
    kTtlApart,       // behind the body
  };
  // The TTL as it follows the body where it is kept apart, which is rare.
  struct ApartTtl {
    int64_t seconds;
    uint32_t nanos;
  };
  static constexpr size_t kApartTtlBytes = sizeof(int64_t) + sizeof(uint32_t);

  ApartTtl apart_ttl() const;
  // Nanoseconds. Precondition: has_retention_.
  int64_t retention() const;
  // How many bytes lie between the body and a drift digest.
  size_t times_bytes() const {
    return (ttl_kind_ == kTtlApart ? kApartTtlBytes : 0) +
           (has_retention_ ? sizeof(int64_t) : 0);
  }
  // How many bytes lie between the body and the meta rest.
  size_t apart_bytes() const {
    return times_bytes() + (has_drift_ ? sizeof(key::Key) : 0);
  }

  // The highest bits of `refs_`.
  static constexpr uint32_t kSuperseded = uint32_t{1} << 31;
  static constexpr uint32_t kInMemory = uint32_t{1} << 30;
  static constexpr uint32_t kInMainQueue = uint32_t{1} << 29;
  static constexpr uint32_t kKeptBelow = uint32_t{1} << 28;
  static constexpr uint32_t kOneRead = uint32_t{1} << 26;
  static constexpr uint32_t kReads = kMostReads * kOneRead;
  static constexpr uint32_t kMarks =
      kSuperseded | kInMemory | kInMainQueue | kKeptBelow | kReads;

  // The header has 72 bytes, since every entry of a cache pays for each of
  // them.
  mutable std::atomic<uint32_t> refs_{1};
  uint32_t function_ : 24;
  uint32_t ttl_kind_ : 2;
  uint32_t secrets_ : 1;
  // If there is a meta rest, which is rare, its size (4 bytes) and the rest
  // itself come last.
  uint32_t has_meta_rest_ : 1;
  // If it is kept beyond its lifetime, for how long follows the body and a TTL
  // that is kept apart.
  uint32_t has_retention_ : 1;
  // With tuning, a drift digest follows that.
  uint32_t has_drift_ : 1;
  uint32_t pure_ : 1;
  int64_t started_;   // Unix nanoseconds
  int64_t arrived_;   // Unix nanoseconds
  int64_t lifetime_;  // nanoseconds
  uint32_t cost_;     // microseconds
  uint32_t body_size_;
  // The key and the queue neighbours. They belong to the memory shard that has
  // the entry, and its lock guards them.
  mutable key::Key key_;
  mutable const Entry* next_ = nullptr;  // towards the tail
  mutable const Entry* prev_ = nullptr;  // towards the head
  // The body follows.
};

inline EntryRef::EntryRef(const EntryRef& other) : entry_(other.entry_) {
  if (entry_ != nullptr) entry_->Ref();
}
inline EntryRef::~EntryRef() {
  if (entry_ != nullptr) entry_->Unref();
}

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_ENTRY_H_
