// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/metadata.h"

#include <string>

#include "absl/random/random.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "proxy/transport/codec.h"

namespace fncache::proxy::transport {
namespace {

constexpr absl::string_view kLoop = "cdn-loop";
constexpr absl::string_view kTimeout = "grpc-timeout";

// A time-out that was given so recently passes as it came.
constexpr absl::Duration kRecent = absl::Milliseconds(10);

const std::string& Token() {
  static const std::string* const token = [] {
    absl::BitGen random;
    return new std::string(absl::StrCat(
        "fncache-",
        absl::Hex(absl::Uniform<uint64_t>(random), absl::kZeroPad16)));
  }();
  return *token;
}

}  // namespace

bool HasLoop(const http2::Fields& fields) {
  for (const http2::Field field : fields) {
    if (field.name != kLoop) continue;
    // A list; what follows a semicolon are parameters (RFC 8586, 2).
    for (const absl::string_view info : absl::StrSplit(field.value, ',')) {
      if (absl::StripAsciiWhitespace(info.substr(0, info.find(';'))) ==
          Token()) {
        return true;
      }
    }
  }
  return false;
}

http2::Fields RequestFields(const http2::Fields& fields, absl::Time arrived,
                            absl::Time deadline, bool tls, bool own_deadline) {
  http2::Fields out;
  const absl::Time now = absl::Now();
  const bool timed = deadline != absl::InfiniteFuture();
  for (const http2::Field field : fields) {
    if (field.name == ":scheme") {
      out.Add(field.name, tls ? "https" : "http");
    } else if (field.name == kTimeout && timed &&
               (own_deadline || now - arrived > kRecent)) {
      out.Add(field.name, FormatTimeout(deadline - now));
    } else {
      out.Add(field);
    }
  }
  if (own_deadline && timed && !fields.Has(kTimeout)) {
    out.Add(kTimeout, FormatTimeout(deadline - now));
  }
  out.Add(kLoop, Token());
  return out;
}

}  // namespace fncache::proxy::transport
