// SPDX-License-Identifier: Apache-2.0
// Fields: the names and values of a header block (or of trailers), in order, in
// one piece of memory.
//
// Names are as on the wire: lower case, pseudo-headers with their colon.
// Not thread-safe.
#ifndef FNCACHE_HTTP2_FIELDS_H_
#define FNCACHE_HTTP2_FIELDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "http2/slice.h"

namespace fncache::http2 {

struct Field {
  absl::string_view name;
  absl::string_view value;
  // A secret that no header table may store (RFC 7541, 6.2.3). A sender that
  // forwards it must mark it so, too.
  bool never_indexed = false;
};

class Fields {
 public:
  Fields() = default;
  Fields(Fields&&) = default;
  Fields& operator=(Fields&&) = default;
  Fields(const Fields& other) { *this = other; }
  Fields& operator=(const Fields& other) {
    if (this == &other) return *this;
    bytes_.Clear();
    if (!other.extents_.empty()) {
      bytes_.Reserve(other.bytes_.size() < kUsual ? kUsual
                                                  : other.bytes_.size());
      bytes_.Append(other.bytes_.bytes());
    }
    extents_ = other.extents_;
    return *this;
  }

  class Iterator {
   public:
    Iterator(const Fields* fields, size_t index)
        : fields_(fields), index_(index) {}
    Field operator*() const { return (*fields_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator!=(const Iterator& other) const {
      return index_ != other.index_;
    }

   private:
    const Fields* fields_;
    size_t index_;
  };

  void Add(absl::string_view name, absl::string_view value,
           bool never_indexed = false) {
    if (bytes_.capacity() == 0) bytes_.Reserve(kUsual);
    extents_.push_back({static_cast<uint32_t>(bytes_.size()),
                        static_cast<uint32_t>(name.size()),
                        static_cast<uint32_t>(value.size()), never_indexed});
    bytes_.Append(name);
    bytes_.Append(value);
  }
  // As it is, to be sent on.
  void Add(const Field& field) {
    Add(field.name, field.value, field.never_indexed);
  }
  size_t size() const { return extents_.size(); }
  bool empty() const { return extents_.empty(); }
  // Views are valid until the next change.
  Field operator[](size_t i) const {
    const Extent& extent = extents_[i];
    const absl::string_view all = bytes_.bytes();
    return {all.substr(extent.begin, extent.name),
            all.substr(extent.begin + extent.name, extent.value),
            extent.never_indexed};
  }
  // The first value of that name; empty if there is none.
  absl::string_view Find(absl::string_view name) const {
    for (const Field field : *this) {
      if (field.name == name) return field.value;
    }
    return {};
  }
  bool Has(absl::string_view name) const {
    for (const Field field : *this) {
      if (field.name == name) return true;
    }
    return false;
  }
  Iterator begin() const { return Iterator(this, 0); }
  Iterator end() const { return Iterator(this, extents_.size()); }
  // As SETTINGS_MAX_HEADER_LIST_SIZE counts (RFC 9113, 6.5.2).
  size_t ListSize() const { return bytes_.size() + 32 * extents_.size(); }
  void Clear() {
    bytes_.Clear();
    extents_.clear();
  }

 private:
  struct Extent {
    uint32_t begin;
    uint32_t name;
    uint32_t value : 31;
    bool never_indexed : 1;
  };
  static_assert(sizeof(Extent) == 12, "a call has dozens of them");
  // The usual number of bytes of a call's fields.
  static constexpr size_t kUsual = 480;

  Buffer bytes_;
  absl::InlinedVector<Extent, 12> extents_;
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_FIELDS_H_
