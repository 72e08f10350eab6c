// SPDX-License-Identifier: Apache-2.0
#include "text/differences.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"

namespace fncache::text {
namespace {

void VisitValues(const std::string& path, const Value* a, const Value* b,
                 const DifferenceVisitor& visitor) {
  if (a != nullptr && b != nullptr) {
    if (Equal(*a, *b)) return;
    if (a->has_struct_value() && b->has_struct_value()) {
      return VisitDifferences(path, a->struct_value(), b->struct_value(),
                              visitor);
    }
    const auto& in_a = a->list_value().values();
    const auto& in_b = b->list_value().values();
    if (a->has_list_value() && b->has_list_value() &&
        (visitor.into_uneven_lists || in_a.size() == in_b.size())) {
      for (int i = 0; i < std::max(in_a.size(), in_b.size()); ++i) {
        VisitValues(absl::StrCat(path, "[", i, "]"),
                    i < in_a.size() ? &in_a[i] : nullptr,
                    i < in_b.size() ? &in_b[i] : nullptr, visitor);
      }
      return;
    }
  }
  visitor.differs(path, a, b);
}

}  // namespace

void VisitDifferences(const std::string& path, const Struct& a, const Struct& b,
                      const DifferenceVisitor& visitor) {
  ForEachKey(a.fields(), b.fields(),
             [&](const std::string& key, const Value* in_a, const Value* in_b) {
               VisitValues(visitor.below(path, key), in_a, in_b, visitor);
             });
}

}  // namespace fncache::text
