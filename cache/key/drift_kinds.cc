// SPDX-License-Identifier: Apache-2.0
#include "cache/key/drift_kinds.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/key/plain_wire.h"
#include "xxhash.h"

namespace fncache::cache::key {
namespace {

uint64_t Seed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  return seed;
}

uint64_t Hash(absl::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

// The times in managedFields, and the rest without the order of the entries.
// The API server sorts entries by time, so their order moves with the times.
// Where nothing but the order differs, no kind does.
struct Managed {
  uint64_t times = 0;
  uint64_t rest = 0;
};

// Reads the canonical form of a list. In that form the entries of a Struct or
// list precede those of the inner ones, level by level (docs/key-format.md).
// False where the form is another one, as it is with a mask that leads into the
// list.
bool ReadManaged(absl::string_view form, Managed* managed) {
  struct Holder {
    size_t size;
    bool is_list;
    size_t element;  // of the outer list, that it is in
  };
  constexpr size_t kOuter = std::numeric_limits<size_t>::max();
  std::deque<Holder> holders = {{form.size(), true, kOuter}};
  std::vector<uint64_t> elements;
  const char* p = form.data();
  const char* const end = p + form.size();
  for (; !holders.empty(); holders.pop_front()) {
    const Holder holder = holders.front();
    size_t left = holder.size;
    // An element of a list is a Value, and an entry of a Struct has a key and a
    // Value. Unknown fields may follow.
    while (left > 0 && p != end && *p == kStructFields) {
      const char* const start = p++;
      const size_t element =
          holder.element == kOuter ? elements.size() : holder.element;
      if (holder.element == kOuter) elements.push_back(0);
      absl::string_view time;
      uint32_t size;
      size_t inner = 0;
      // The lengths count what follows later, too, so they may exceed `end`.
      const auto read_length = [&] {
        uint64_t value;
        if (!ReadPlainVarint(&p, end, 5, &value)) return false;
        size = static_cast<uint32_t>(value);
        return true;
      };
      if (!read_length()) return false;
      if (!holder.is_list) {
        if (p == end || *p++ != kMapKey || !read_length() ||
            size > static_cast<size_t>(end - p)) {
          return false;
        }
        p += size;
        if (p == end || *p++ != kMapValue || !read_length()) return false;
      }
      const size_t value_size = size;
      const char* const value = p;
      if (value_size > 0) {
        if (p == end) return false;
        const char tag = *p++;
        if (tag == kStructValue || tag == kListValue) {
          if (!read_length()) return false;
          inner = size;
          if (inner > 0) holders.push_back({inner, tag == kListValue, element});
        } else if (tag == kStringValue) {
          if (!read_length() || size > static_cast<size_t>(end - p)) {
            return false;
          }
          const absl::string_view text(p, size);
          if (IsTime(text)) time = text;
        }
        // With what follows in the Value, the inner one aside.
        if (value_size < inner ||
            value_size - inner > static_cast<size_t>(end - value)) {
          return false;
        }
        p = value + (value_size - inner);
      }
      const size_t taken = (p - start) + inner;
      if (taken > left) return false;
      left -= taken;
      const char* from = start;
      if (!time.empty()) {
        managed->times = Hash(time, managed->times + 1);
        elements[element] =
            Hash({start, static_cast<size_t>(time.data() - start)},
                 elements[element]);
        from = time.data() + time.size();
      }
      elements[element] =
          Hash({from, static_cast<size_t>(p - from)}, elements[element]);
    }
    if (left > static_cast<size_t>(end - p)) return false;
    managed->rest = Hash({p, left}, managed->rest);  // unknown fields
    p += left;
  }
  for (const uint64_t element : elements) managed->rest += element;
  return p == end;
}

// Adds a value to its kind. `name` is of the kind, `index` gets where it is.
void Add(uint64_t name, uint64_t value, bool is_time, uint64_t form,
         DriftKinds* kinds, size_t* index) {
  for (size_t i = 0; i < kinds->size(); ++i) {
    DriftKind& known = (*kinds)[i];
    if (known.kind != name || known.is_time != is_time) continue;
    const uint64_t both[] = {known.value, value};
    known.value = XXH3_64bits(both, sizeof both);
    const uint64_t forms[] = {known.form, form};
    known.form = XXH3_64bits(forms, sizeof forms);
    *index = i;
    return;
  }
  *index = kinds->size();
  if (kinds->size() <= kMostKinds)
    kinds->push_back({name, value, is_time, form});
}

uint64_t NameOf(const Drift& drift) {
  return Hash(drift.key, Seed() + (static_cast<uint64_t>(drift.section) << 8 |
                                   static_cast<uint64_t>(drift.type)));
}

uint64_t FormOf(const Drift& drift) {
  constexpr size_t kToSeconds = sizeof "2026-11-22T09:42:57" - 1;
  if (drift.type != DriftType::kTime) return drift.value.size();
  // Some libraries leave out zeros at the end, so decimals are not counted.
  const size_t zone = drift.value.find_first_not_of(".0123456789", kToSeconds);
  return Hash(drift.value.substr(zone), zone > kToSeconds ? 1 : 0);
}

// Adds the kinds of one drift. managedFields have two: the times, and the rest.
// *first and *second get where they are.
void AddDrift(const Drift& drift, DriftKinds* kinds, size_t* first,
              size_t* second) {
  const uint64_t name = NameOf(drift);
  if (drift.type != DriftType::kManagedFields) {
    Add(name, Hash(drift.value, Seed()), drift.type == DriftType::kTime,
        FormOf(drift), kinds, first);
    *second = *first;
    return;
  }
  Managed managed;
  if (!ReadManaged(drift.value, &managed)) {
    managed = {0, Hash(drift.value, Seed())};
  }
  Add(name, managed.rest, /*is_time=*/false, /*form=*/0, kinds, first);
  // Also without times: requests of equal key have the same kinds.
  Add(name, managed.times, /*is_time=*/true, /*form=*/0, kinds, second);
}

}  // namespace

DriftKinds KindsOf(absl::string_view drifts) {
  DriftKinds kinds;
  Drift drift;
  size_t first;
  size_t second;
  while (kinds.size() <= kMostKinds && TakeDrift(&drifts, &drift)) {
    AddDrift(drift, &kinds, &first, &second);
  }
  return kinds;
}

std::string KindName(absl::string_view drifts, size_t index) {
  DriftKinds kinds;
  Drift drift;
  size_t first;
  size_t second;
  while (TakeDrift(&drifts, &drift)) {
    AddDrift(drift, &kinds, &first, &second);
    if (first != index && second != index) continue;
    const char* const object =
        drift.section == DriftSection::kComposite  ? "composite "
        : drift.section == DriftSection::kRequired ? "required "
                                                   : "";
    const bool in_metadata = drift.section == DriftSection::kComposite ||
                             drift.type != DriftType::kTime;
    const bool times_of_managed =
        drift.type == DriftType::kManagedFields && index == second;
    return absl::StrCat(object, in_metadata ? "metadata " : "status ",
                        drift.key, times_of_managed ? " times" : "");
  }
  return "";
}

}  // namespace fncache::cache::key
