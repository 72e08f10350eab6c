// SPDX-License-Identifier: Apache-2.0
#include "runner/render/failure.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/utf8.h"
#include "runner/client/rpc_error.h"
#include "runner/render/error_line.h"

namespace fncache::runner::render {
namespace {

// Bytes. The line in plain words is cut to this; the whole message is above it.
constexpr size_t kMaxPlainBytes = 400;

// The engine is a program of its own in the reference, whose last lines its
// command line repeats, with how it ended.
std::string ReferenceMessage(const Rendered& rendered) {
  const std::string said = ErrorLine(rendered.outcome.status.message());
  constexpr absl::string_view kEngine =
      "cannot render composite resource: crossplane internal render";
  if (rendered.outcome.fatal) {
    return absl::StrCat(kEngine, ": pipeline returned fatal: ", said);
  }
  return absl::StrCat(
      kEngine, " returned error with output: ", said,
      rendered.timed_out ? ": signal: killed" : ": exit status 1");
}

// Cuts `text` to kMaxPlainBytes, between two characters.
std::string Shortened(std::string text) {
  if (text.size() <= kMaxPlainBytes) return text;
  size_t end = kMaxPlainBytes;
  while (end > 0 && (text[end] & 0xc0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

std::string InQuotes(absl::string_view text) {
  return absl::StrCat("\"", Printable(text), "\"");
}

std::string CallInPlainWords(
    const FailedCall& call,
    const std::vector<client::FunctionTarget>& functions) {
  const std::string begin =
      absl::StrCat("step ", InQuotes(call.step), " failed: function ",
                   InQuotes(call.function));
  const auto known = std::find_if(functions.begin(), functions.end(),
                                  [&](const client::FunctionTarget& one) {
                                    return one.name == call.function;
                                  });
  if (known != functions.end()) {
    return absl::StrCat(
        begin, " at ", Printable(known->target), ": ",
        Shortened(Printable(client::PlainRpcError(call.status))));
  }
  std::vector<std::string> names;
  names.reserve(functions.size());
  for (const client::FunctionTarget& one : functions) {
    names.push_back(Printable(one.name));
  }
  return absl::StrCat(
      begin, " is not listed; listed are: ", absl::StrJoin(names, ", "),
      "; add it to FUNCTIONS, or give --function ", Printable(call.function),
      "=HOST:PORT");
}

}  // namespace

std::string FailureLines(const Rendered& rendered, absl::string_view title,
                         const std::vector<client::FunctionTarget>& functions) {
  const std::string prefix = title.empty() ? "" : absl::StrCat(title, ": ");
  std::string lines =
      ErrorLine(absl::StrCat(prefix, ReferenceMessage(rendered)));
  // A message about anything else than a call says all there is.
  if (rendered.outcome.fatal || !rendered.failed_call.has_value()) return lines;
  absl::StrAppend(&lines, "fncache render: ", Printable(prefix),
                  CallInPlainWords(*rendered.failed_call, functions),
                  rendered.timed_out ? " (--timeout is over)\n" : "\n");
  return lines;
}

}  // namespace fncache::runner::render
