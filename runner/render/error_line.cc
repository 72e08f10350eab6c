// SPDX-License-Identifier: Apache-2.0
#include "runner/render/error_line.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/utf8.h"

namespace fncache::runner::render {
namespace {

constexpr char kLeader[] = "crossplane: error: ";

}  // namespace

std::string ErrorLine(absl::string_view message) {
  while (absl::EndsWith(message, "\n")) message.remove_suffix(1);
  std::string lines = kLeader;
  bool first = true;
  for (const absl::string_view line : absl::StrSplit(message, '\n')) {
    if (!first) lines.append(sizeof kLeader - 1, ' ');
    absl::StrAppend(&lines, Printable(line), "\n");
    first = false;
  }
  return lines;
}

}  // namespace fncache::runner::render
