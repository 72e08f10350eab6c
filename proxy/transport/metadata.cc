// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/metadata.h"

#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

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

// True for keys that belong to one hop, or are gRPC's own.
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

// Of gRPC's own keys this one crosses: it says how many times the caller has
// tried before, which the function may want to know.
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

}  // namespace fncache::proxy::transport
