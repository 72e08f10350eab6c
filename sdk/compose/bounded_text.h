// SPDX-License-Identifier: Apache-2.0
// Texts of results and conditions, which have at most 1,024 bytes: Kubernetes
// refuses events with longer ones.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_SDK_COMPOSE_BOUNDED_TEXT_H_
#define FNCACHE_SDK_COMPOSE_BOUNDED_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fncache::sdk {

inline constexpr size_t kMaxTextBytes = 1024;

// `text`, cut after a whole character to `limit` bytes; "..." is then its end.
std::string Clip(std::string text, size_t limit = kMaxTextBytes);

// `before` and the items with `separator` between. A longer text is cut after a
// whole item and ends in `; and N more`.
std::string Bounded(absl::string_view before,
                    const std::vector<std::string>& items,
                    absl::string_view separator, size_t limit = kMaxTextBytes);

// The items, then `graph: ` and the edges, as SDK.md shows them; cut likewise.
// Without edges there is no graph.
std::string BoundedWaits(const std::vector<std::string>& items,
                         const std::vector<std::string>& edges);

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_COMPOSE_BOUNDED_TEXT_H_
