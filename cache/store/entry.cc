// SPDX-License-Identifier: Apache-2.0
#include "cache/store/entry.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

namespace fncache::cache::store {
namespace {

// The largest value that google.protobuf.Duration holds, in seconds.
constexpr int64_t kMaxTtlSeconds = 315'576'000'000;

// glibc's malloc keeps one word before an ordinary block, and two before one
// that has a mapping of its own. Blocks may have a mapping from this size on.
constexpr size_t kBlockOverhead = sizeof(size_t);
constexpr size_t kMappedFrom = 128 * 1024;

}  // namespace

EntryRef Entry::Create(const EntryInfo& info, absl::string_view meta_rest,
                       absl::Span<const absl::string_view> body) {
  size_t body_size = 0;
  for (absl::string_view part : body) {
    if (part.size() >= kMaxBytes - body_size) return nullptr;
    body_size += part.size();
  }
  bool written;
  return CreateInPlace(
      info, meta_rest, body_size,
      [body](char* to) {
        for (absl::string_view part : body) {
          if (part.empty()) continue;  // memcpy takes no null, ever
          std::memcpy(to, part.data(), part.size());
          to += part.size();
        }
        return true;
      },
      &written);
}

EntryRef Entry::CreateInPlace(const EntryInfo& info,
                              absl::string_view meta_rest, size_t body_size,
                              absl::FunctionRef<bool(char* body)> write,
                              bool* written) {
  *written = false;
  if (body_size >= kMaxBytes || meta_rest.size() >= kMaxBytes - body_size) {
    return nullptr;
  }

  const absl::Duration lifetime =
      absl::Nanoseconds(absl::ToInt64Nanoseconds(info.lifetime));
  const TtlKind ttl_kind = !info.ttl.has_value()   ? kNoTtl
                           : *info.ttl == lifetime ? kTtlIsLifetime
                                                   : kTtlApart;
  const int64_t retention = absl::ToInt64Nanoseconds(info.retention);
  const bool has_retention = retention > absl::ToInt64Nanoseconds(lifetime);
  size_t size = sizeof(Entry) + body_size;
  if (ttl_kind == kTtlApart) size += kApartTtlBytes;
  if (has_retention) size += sizeof(retention);
  if (info.drift.has_value()) size += sizeof(key::Key);
  if (!meta_rest.empty()) size += sizeof(uint32_t) + meta_rest.size();
  void* memory = std::malloc(size);
  if (memory == nullptr) return nullptr;

  static_assert(sizeof(Entry) == 72);
  Entry* entry = new (memory) Entry;
  entry->function_ = info.function & 0xFFFFFF;
  entry->started_ = absl::ToUnixNanos(info.started);
  entry->arrived_ = absl::ToUnixNanos(info.arrived);
  entry->lifetime_ = absl::ToInt64Nanoseconds(lifetime);
  entry->secrets_ = info.secrets;
  entry->pure_ = info.pure;
  entry->cost_ = static_cast<uint32_t>(
      std::clamp<int64_t>(absl::ToInt64Microseconds(info.cost), 0,
                          std::numeric_limits<uint32_t>::max()));
  entry->ttl_kind_ = ttl_kind;
  entry->body_size_ = static_cast<uint32_t>(body_size);
  char* to = entry->bytes();
  *written = write(to);
  to += body_size;
  if (ttl_kind == kTtlApart) {
    absl::Duration rest = std::clamp(
        *info.ttl, absl::ZeroDuration(),
        absl::Seconds(kMaxTtlSeconds) + absl::Nanoseconds(999999999));
    const int64_t seconds = absl::IDivDuration(rest, absl::Seconds(1), &rest);
    const uint32_t nanos =
        static_cast<uint32_t>(absl::ToInt64Nanoseconds(rest));
    std::memcpy(to, &seconds, sizeof(seconds));
    std::memcpy(to + sizeof(seconds), &nanos, sizeof(nanos));
    to += kApartTtlBytes;
  }
  entry->has_retention_ = has_retention;
  if (has_retention) {
    std::memcpy(to, &retention, sizeof(retention));
    to += sizeof(retention);
  }
  entry->has_drift_ = info.drift.has_value();
  if (info.drift.has_value()) {
    std::memcpy(to, &*info.drift, sizeof(key::Key));
    to += sizeof(key::Key);
  }
  entry->has_meta_rest_ = !meta_rest.empty();
  if (!meta_rest.empty()) {
    const uint32_t rest_size = static_cast<uint32_t>(meta_rest.size());
    std::memcpy(to, &rest_size, sizeof(rest_size));
    std::memcpy(to + sizeof(rest_size), meta_rest.data(), meta_rest.size());
  }
  EntryRef made(entry);
  return *written ? made : nullptr;
}

EntryInfo Entry::info() const {
  EntryInfo info;
  info.function = function_;
  info.started = started();
  info.arrived = arrived();
  info.lifetime = absl::Nanoseconds(lifetime_);
  info.retention =
      has_retention_ ? absl::Nanoseconds(retention()) : info.lifetime;
  if (ttl_kind_ == kTtlIsLifetime) {
    info.ttl = info.lifetime;
  } else if (ttl_kind_ == kTtlApart) {
    const ApartTtl ttl = apart_ttl();
    info.ttl = absl::Seconds(ttl.seconds) +
               absl::Nanoseconds(static_cast<int64_t>(ttl.nanos));
  }
  info.cost = absl::Microseconds(static_cast<int64_t>(cost_));
  info.secrets = secrets_;
  info.pure = pure_;
  info.drift = drift();
  return info;
}

Entry::ApartTtl Entry::apart_ttl() const {
  ApartTtl ttl;
  const char* from = bytes() + body_size_;
  std::memcpy(&ttl.seconds, from, sizeof(ttl.seconds));
  std::memcpy(&ttl.nanos, from + sizeof(ttl.seconds), sizeof(ttl.nanos));
  return ttl;
}

int64_t Entry::retention() const {
  int64_t retention;
  const size_t before = times_bytes() - sizeof(retention);
  std::memcpy(&retention, bytes() + body_size_ + before, sizeof(retention));
  return retention;
}

absl::optional<key::Key> Entry::drift() const {
  if (!has_drift_) return absl::nullopt;
  key::Key drift;
  std::memcpy(&drift, bytes() + body_size_ + times_bytes(), sizeof(drift));
  return drift;
}

absl::string_view Entry::meta_rest() const {
  if (!has_meta_rest_) return {};
  const char* from = bytes() + body_size_ + apart_bytes();
  uint32_t size;
  std::memcpy(&size, from, sizeof(size));
  return {from + sizeof(size), size};
}

size_t Entry::charge() const {
  const size_t usable = malloc_usable_size(const_cast<Entry*>(this));
  return usable + (usable < kMappedFrom ? 1 : 2) * kBlockOverhead;
}

void Entry::Free(const Entry* entry) {
  entry->~Entry();
  std::free(const_cast<Entry*>(entry));
}

}  // namespace fncache::cache::store
