// SPDX-License-Identifier: Apache-2.0
#include "bench/stamp.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "bench/request_encoding.h"
#include "bench/request_generator.h"

namespace fncache::bench {
namespace {

constexpr absl::string_view kKey = "stamp-key=";
constexpr absl::string_view kMade = " stamp-made=";
constexpr size_t kMadeDigits = 20;

}  // namespace

std::string Stamp(absl::string_view digits, absl::Time made) {
  return absl::StrCat(kKey, digits, kMade,
                      absl::StrFormat("%020d", absl::ToUnixNanos(made)));
}

absl::Status CheckStamp(absl::string_view answer, uint64_t key,
                        absl::Time least) {
  const size_t at = answer.find(kKey);
  if (at == absl::string_view::npos) {
    return absl::DataLossError("an answer without a stamp");
  }
  answer.remove_prefix(at + kKey.size());
  char digits[kSlotDigits];
  WriteSlot(key, digits);
  if (answer.substr(0, kSlotDigits) != absl::string_view(digits, kSlotDigits)) {
    return absl::DataLossError("an answer to another request");
  }
  answer = absl::ClippedSubstr(answer, kSlotDigits + kMade.size(), kMadeDigits);
  int64_t nanos = 0;
  if (!absl::SimpleAtoi(answer, &nanos)) {
    return absl::DataLossError("an answer with a damaged stamp");
  }
  // Without the amount, so that equal errors are one line.
  if (absl::FromUnixNanos(nanos) < least) {
    return absl::DataLossError("an answer that is too old");
  }
  return absl::OkStatus();
}

}  // namespace fncache::bench
