// Entry: a stored response and its deadlines, immutable, shared by reference.
//
// An entry is filled once, then read by any number of threads: stores hold it,
// hits in flight hold it (the transport sends `body()` without copying), and the
// last holder frees it. Header and bytes are one allocation.
//
// The body is the response without any occurrence of `meta`, byte for byte as
// the function sent it; `meta_rest` are the unknown fields of its merged meta. A
// hit is one new `meta` (see response.h) followed by the body.
//
// Thread-safe: immutable but for the count of references.
#ifndef FNCACHE_CACHE_ENTRY_H_
#define FNCACHE_CACHE_ENTRY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace fncache::cache {

// Index of a function in the daemon's configuration: what metrics are kept by.
using FunctionId = uint32_t;

struct EntryInfo {
  FunctionId function = 0;
  // When the filling call started: a fill of an earlier start never replaces one
  // of a later start.
  absl::Time started;
  // When its answer arrived: age and lifetime count from here.
  absl::Time arrived;
  // The lifetime L, fixed at fill. Positive, at most about 292 years.
  absl::Duration lifetime;
  // The TTL T that the function gave; absent if none, or none that is valid.
  absl::optional<absl::Duration> ttl;
  // How long the filling call took: what a hit saves.
  absl::Duration cost;
  // The response holds connection details.
  bool secrets = false;

  absl::Time deadline() const { return arrived + lifetime; }
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
  // Copies what it is given. `body` is joined from its parts in order.
  static EntryRef Create(const EntryInfo& info, absl::string_view meta_rest,
                         absl::Span<const absl::string_view> body);

  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  EntryInfo info() const;
  absl::Time deadline() const { return info().deadline(); }
  absl::string_view meta_rest() const;
  absl::string_view body() const;
  // Bytes that this entry occupies in memory, its own overhead included.
  size_t charge() const;

 private:
  friend class EntryRef;
  Entry() = default;
  ~Entry() = default;
  void Ref() const;
  void Unref() const;

  mutable std::atomic<uint32_t> refs_{1};
  FunctionId function_ = 0;
  int64_t started_ = 0;
  int64_t arrived_ = 0;
  int64_t lifetime_ = 0;
  int64_t ttl_ = 0;  // kNoTtl if absent
  int64_t cost_ = 0;
  uint32_t meta_rest_size_ = 0;
  bool secrets_ = false;
  size_t body_size_ = 0;
  // meta_rest, then body, follow.
};

inline EntryRef::EntryRef(const EntryRef& other) : entry_(other.entry_) {
  if (entry_ != nullptr) entry_->Ref();
}
inline EntryRef::~EntryRef() {
  if (entry_ != nullptr) entry_->Unref();
}

}  // namespace fncache::cache

#endif  // FNCACHE_CACHE_ENTRY_H_
