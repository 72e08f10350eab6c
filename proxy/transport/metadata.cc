#include "proxy/transport/metadata.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace fncache::proxy::transport {
namespace {

// gRPC aborts the process when it is asked to send metadata that it thinks
// illegal, but hands out some of it when received.
bool CanBeSent(absl::string_view key, absl::string_view value) {
  if (key.empty() || key[0] == ':') return false;
  for (const char c : key) {
    if (!absl::ascii_islower(c) && !absl::ascii_isdigit(c) && c != '-' &&
        c != '_' && c != '.') {
      return false;
    }
  }
  if (absl::EndsWith(key, "-bin")) return true;
  return absl::c_all_of(value, [](char c) { return c >= 0x20 && c <= 0x7e; });
}

// What belongs to one hop, or is gRPC's own.
bool StaysHere(absl::string_view key) {
  switch (key.size()) {
    case 2:
      if (key == "te") return true;
      break;
    case 4:
      if (key == "host") return true;
      break;
    case 10:
      if (key == "user-agent") return true;
      break;
    case 12:
      if (key == "content-type") return true;
      break;
    case 14:
      if (key == "content-length") return true;
      break;
    default:
      break;
  }
  return absl::StartsWith(key, "grpc-");
}

// How many times the caller has tried before: the function may look at it.
constexpr absl::string_view kAttempts = "grpc-previous-rpc-attempts";

bool Crosses(absl::string_view key, absl::string_view value) {
  return !StaysHere(key) && CanBeSent(key, value);
}

}  // namespace

void CopyRequest(const IncomingCall& from, grpc::ClientContext* to) {
  for (const grpc_metadata& item : from.metadata()) {
    const absl::string_view key = View(item.key);
    const absl::string_view value = View(item.value);
    if (Crosses(key, value) || key == kAttempts) {
      to->AddMetadata(std::string(key), std::string(value));
    } else if (key == "user-agent" &&
               CanBeSent("x-forwarded-user-agent", value)) {
      to->AddMetadata("x-forwarded-user-agent", std::string(value));
    }
  }
  const std::string host = from.host();
  if (!host.empty()) to->set_authority(host);
}

void CopyHeaders(const Metadata& from, IncomingCall* to) {
  for (const auto& [key, value] : from) {
    if (Crosses(View(key), View(value))) to->AddHeader(View(key), View(value));
  }
}

void CopyTrailers(const Metadata& from, IncomingCall* to) {
  for (const auto& [key, value] : from) {
    if (Crosses(View(key), View(value))) to->AddTrailer(View(key), View(value));
  }
}

Directives ReadDirectives(absl::Span<const grpc_metadata> metadata,
                          const std::vector<std::string>& bypass_metadata) {
  Directives out;
  for (const grpc_metadata& item : metadata) {
    const absl::string_view key = View(item.key);
    if (key == "authorization" || absl::c_linear_search(bypass_metadata, key)) {
      out.bypass = true;
    }
    if (key != "cache-control") continue;
    for (absl::string_view directive : absl::StrSplit(View(item.value), ',')) {
      // An argument (no-cache="field") does not make it weaker here.
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
  const auto seconds = static_cast<uint64_t>(
      std::max<int64_t>(absl::ToInt64Seconds(served_for), 0));
  std::memcpy(text_, kHit.data(), kHit.size());
  const auto written =
      std::to_chars(text_ + kHit.size(), text_ + sizeof(text_), seconds);
  size_ = static_cast<size_t>(written.ptr - text_);
}

absl::string_view ForwardStatus(Forward why, bool collapsed, bool stored) {
  static constexpr absl::string_view kTexts[4][2][2] = {
      {{"fncache; fwd=miss", "fncache; fwd=miss; stored"},
       {"fncache; fwd=miss; collapsed",
        "fncache; fwd=miss; collapsed; stored"}},
      {{"fncache; fwd=stale", "fncache; fwd=stale; stored"},
       {"fncache; fwd=stale; collapsed",
        "fncache; fwd=stale; collapsed; stored"}},
      {{"fncache; fwd=request", "fncache; fwd=request; stored"},
       {"fncache; fwd=request; collapsed",
        "fncache; fwd=request; collapsed; stored"}},
      {{"fncache; fwd=bypass", "fncache; fwd=bypass; stored"},
       {"fncache; fwd=bypass; collapsed",
        "fncache; fwd=bypass; collapsed; stored"}},
  };
  return kTexts[static_cast<int>(why)][collapsed][stored];
}

}  // namespace fncache::proxy::transport
