// SPDX-License-Identifier: Apache-2.0
// TextTable: rows of texts as columns, for people to read.
//
// Pure function, thread-safe.
#ifndef FNCACHE_COMMON_TEXT_TABLE_H_
#define FNCACHE_COMMON_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace fncache {

// Columns two blanks apart and indented by as many, to the right where `right`
// says so. No row has more cells than `right`. A cell's width is its bytes.
std::string TextTable(const std::vector<std::vector<std::string>>& rows,
                      const std::vector<bool>& right);

}  // namespace fncache

#endif  // FNCACHE_COMMON_TEXT_TABLE_H_
