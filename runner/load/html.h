// SPDX-License-Identifier: Apache-2.0
// Pieces of the pages of reports. These need no network and no scripts, are
// light or dark as the browser is, and suit phones and desktops.
//
// Texts are escaped here; the results are markup. Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_HTML_H_
#define FNCACHE_RUNNER_LOAD_HTML_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fncache::runner::load {

std::string Escape(absl::string_view text);

// All before <body>.
std::string PageHead(absl::string_view title);

// A name with a value. `tone`: good, bad, or neither.
std::string Card(absl::string_view name, absl::string_view value,
                 absl::string_view tone = "");

// A row of a table, of cells of `tag` (th, td). The first `texts` of them are
// texts, the others numbers.
std::string Row(const std::vector<std::string>& cells, const char* tag,
                size_t texts = 1);
std::string Table(absl::string_view head, absl::string_view rows);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_HTML_H_
