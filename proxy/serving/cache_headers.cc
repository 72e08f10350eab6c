// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/cache_headers.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace fncache::proxy::serving {

Directives ReadDirectives(const http2::Fields& fields,
                          const std::vector<std::string>& bypass_metadata) {
  Directives out;
  for (const http2::Field field : fields) {
    const absl::string_view key = field.name;
    if (key == "authorization") out.authorization = true;
    if (absl::c_linear_search(bypass_metadata, key)) out.bypass = true;
    if (key != "cache-control") continue;
    for (absl::string_view directive : absl::StrSplit(field.value, ',')) {
      // An argument (no-cache="field") does not weaken the directive here.
      directive =
          absl::StripAsciiWhitespace(directive.substr(0, directive.find('=')));
      if (absl::EqualsIgnoreCase(directive, "no-cache")) out.no_cache = true;
      if (absl::EqualsIgnoreCase(directive, "no-store")) out.no_store = true;
    }
  }
  return out;
}

HitStatus::HitStatus(absl::Duration served_for) {
  constexpr absl::string_view kHit = "fncache; hit; ttl=";
  // An entry whose time ends just now is stale: its ttl is negative.
  const int64_t seconds =
      served_for > absl::ZeroDuration()
          ? absl::ToInt64Seconds(served_for)
          : std::min<int64_t>(
                absl::ToInt64Seconds(absl::Floor(served_for, absl::Seconds(1))),
                -1);
  std::memcpy(text_, kHit.data(), kHit.size());
  const auto written =
      std::to_chars(text_ + kHit.size(), text_ + sizeof(text_), seconds);
  size_ = static_cast<size_t>(written.ptr - text_);
}

std::string MissDetail(const insight::explain::Explanation& why) {
  constexpr size_t kMostDetail = 256;
  if (why.reason == cache::Reason::kNone) return "";
  const char* const name = insight::trace::ReasonName(why.reason);
  const bool section = why.detail.empty() && !why.section.empty();
  if (why.detail.empty() && !section) return absl::StrCat("; detail=", name);
  // RFC 8941, 3.3.3: a string has printable ASCII characters only.
  std::string text = absl::StrCat("; detail=\"", name, ": ");
  if (section) absl::StrAppend(&text, "in ", why.section);
  const bool cut = why.detail.size() > kMostDetail;
  for (const char c : absl::string_view(why.detail).substr(0, kMostDetail)) {
    if (c == '"' || c == '\\') text += '\\';
    text += absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?';
  }
  absl::StrAppend(&text, cut ? "..." : "", "\"");
  return text;
}

absl::string_view ForwardStatus(cache::Reason reason, bool collapsed,
                                bool stored) {
  struct Texts {
    // The first index says whether the answer is collapsed, the second whether
    // it is stored.
    absl::string_view of[2][2];
  };
  static constexpr Texts kMiss = {
      {{"fncache; fwd=miss", "fncache; fwd=miss; stored"},
       {"fncache; fwd=miss; collapsed",
        "fncache; fwd=miss; collapsed; stored"}}};
  static constexpr Texts kStale = {
      {{"fncache; fwd=stale", "fncache; fwd=stale; stored"},
       {"fncache; fwd=stale; collapsed",
        "fncache; fwd=stale; collapsed; stored"}}};
  // Only calls that another call's answer may serve join a flight, so the
  // others are never collapsed. A bypass stores nothing.
  switch (reason) {
    case cache::Reason::kExpired:
      return kStale.of[collapsed][stored];
    case cache::Reason::kNoCache:
    case cache::Reason::kNoStore:
      return stored ? "fncache; fwd=request; stored" : "fncache; fwd=request";
    case cache::Reason::kShadow:
      // RFC 9211, 2.2: the cache was configured to not handle the request. It
      // stores the answer for the comparison, and for later.
      return stored ? "fncache; fwd=bypass; stored; detail=shadow"
                    : "fncache; fwd=bypass; detail=shadow";
    case cache::Reason::kOperation:
      return "fncache; fwd=bypass; detail=operation";
    case cache::Reason::kAuthorization:
    case cache::Reason::kMetadata:
    case cache::Reason::kModeOff:
    case cache::Reason::kUnreadable:
    case cache::Reason::kMethod:
      return "fncache; fwd=bypass";
    default:
      return kMiss.of[collapsed][stored];
  }
}

}  // namespace fncache::proxy::serving
