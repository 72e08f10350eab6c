// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/page_words.h"

#include "absl/strings/str_cat.h"
#include "proxy/telemetry/page_text.h"

namespace fncache::proxy::telemetry {

void Words(std::string* out) {
  absl::StrAppend(out,
                  "<details><summary>What the words mean</summary>\n<dl>\n");
  for (const Word& word :
       {kHit,       kStaleHit,   kMiss,    kStale,     kCollapsed,
        kBypass,    kRequest,    kHitRate, kErrors,    kFills,
        kDropped,   kFailures,   kSaved,   kInFlight,  kFlight,
        kRefresh,   kServedOver, kGivenUp, kAbandoned, kRefusedWithoutCaller,
        kRehearsed, kTier}) {
    absl::StrAppend(out, "<dt>", word.word, "<dd>", Shown(word.meaning), "\n");
  }
  absl::StrAppend(
      out, "</dl>\n<p>p50 and p99: half of the calls, and 99 of 100, took no ",
      "longer. They are estimated from histograms, and never outside of what "
      "was seen.</p></details>\n");
}

}  // namespace fncache::proxy::telemetry
