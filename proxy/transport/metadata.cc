// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/metadata.h"

#include <string>

#include "absl/random/random.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace fncache::proxy::transport {
namespace {

constexpr absl::string_view kLoop = "cdn-loop";
constexpr absl::string_view kTimeout = "grpc-timeout";

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
    // The value is a list. Parameters follow a semicolon (RFC 8586, 2).
    for (const absl::string_view info : absl::StrSplit(field.value, ',')) {
      if (absl::StripAsciiWhitespace(info.substr(0, info.find(';'))) ==
          Token()) {
        return true;
      }
    }
  }
  return false;
}

http2::Fields RequestFields(const http2::Fields& fields,
                            absl::string_view timeout, bool tls) {
  http2::Fields out;
  for (const http2::Field field : fields) {
    if (field.name == ":scheme") {
      out.Add(field.name, tls ? "https" : "http");
    } else if (field.name == kTimeout && !timeout.empty()) {
      out.Add(field.name, timeout);
    } else {
      out.Add(field);
    }
  }
  if (!timeout.empty() && !fields.Has(kTimeout)) {
    out.Add(kTimeout, timeout);
  }
  out.Add(kLoop, Token());
  return out;
}

}  // namespace fncache::proxy::transport
