// SPDX-License-Identifier: Apache-2.0
// gRPC's framing, however it is cut into pieces, is what it is in one piece;
// time-outs and status texts come back as they were; what is unpacked stays
// within its limit.
//
// The input: a byte for the limit, one for the size of pieces, the bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "proxy/transport/codec.h"
#include "proxy/transport/deadline.h"
#include "proxy/transport/message.h"
#include "tests/fuzz/check.h"

namespace {

using fncache::fuzz::Check;
using fncache::proxy::transport::MessageCollector;
using fncache::proxy::transport::MessageCounter;
using State = MessageCollector::State;

uint64_t LengthAt(absl::string_view bytes) {
  uint64_t length = 0;
  for (size_t i = 1; i < 5; ++i) {
    length = length << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return length;
}

// The state that a collector must reach, computed from the whole input.
State Expected(absl::string_view bytes, size_t limit) {
  if (bytes.size() < 5) return State::kNone;
  if (static_cast<uint8_t>(bytes[0]) > 1) return State::kBroken;
  const uint64_t length = LengthAt(bytes);
  if (length > limit) return State::kTooLarge;
  if (bytes.size() < 5 + length) return State::kNone;
  return bytes.size() == 5 + length ? State::kWhole : State::kSecond;
}

uint64_t Begun(absl::string_view bytes) {
  uint64_t begun = 0;
  while (!bytes.empty()) {
    ++begun;
    if (bytes.size() < 5) break;
    const uint64_t length = LengthAt(bytes);
    bytes.remove_prefix(
        static_cast<size_t>(std::min<uint64_t>(bytes.size(), 5 + length)));
  }
  return begun;
}

void TryFraming(absl::string_view bytes, size_t limit, size_t piece) {
  MessageCollector collector(limit);
  MessageCounter counter;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    const absl::string_view now = bytes.substr(at, piece);
    collector.Take(now);
    counter.Take(now);
    Check(collector.held() <= limit);
  }
  Check(counter.begun() == Begun(bytes));
  const State expected = Expected(bytes, limit);
  Check(collector.state() == expected);
  if (expected != State::kWhole && expected != State::kSecond) return;
  const auto message = collector.Release();
  Check(message.valid() && message.compressed() == (bytes[0] == 1));
  Check(message.bytes() ==
        bytes.substr(5, static_cast<size_t>(LengthAt(bytes))));
}

void TryUnpacking(absl::string_view bytes, size_t limit) {
  for (const char* encoding : {"gzip", "deflate"}) {
    const auto unpacked =
        fncache::proxy::transport::Unpack(encoding, bytes, limit);
    if (unpacked.ok()) Check(unpacked->size() <= limit);
  }
}

void TryCodec(absl::string_view bytes) {
  namespace transport = fncache::proxy::transport;
  Check(transport::DecodeStatusText(transport::EncodeStatusText(bytes)) ==
        bytes);
  Check(transport::DecodeStatusText(bytes).size() <= bytes.size());
  if (const auto timeout = transport::ParseTimeout(bytes)) {
    const auto again =
        transport::ParseTimeout(transport::FormatTimeout(*timeout));
    Check(again.has_value());
    // Zero is sent as the least there is.
    if (*timeout > absl::ZeroDuration()) {
      Check(*again >= *timeout && *again <= *timeout * 1.001);
    }
  }
  fncache::http2::Fields fields;
  const size_t half = bytes.size() / 2;
  fields.Add("grpc-status", bytes.substr(0, std::min<size_t>(half, 3)));
  fields.Add("grpc-message", bytes.substr(0, half));
  fields.Add("grpc-status-details-bin", bytes.substr(half));
  const grpc::Status status = transport::ReadStatus(fields, "200");
  Check(status.error_code() >= 0 && status.error_code() <= 16);
  // A status that is sent on is equal when it is read again.
  fncache::http2::Fields sent;
  transport::AddStatus(status, &sent);
  const grpc::Status again = transport::ReadStatus(sent, "200");
  Check(again.error_code() == status.error_code());
  Check(again.error_message() == status.error_message());
  Check(again.error_details() == status.error_details());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 2,
                                size - 2);
  TryFraming(bytes, data[0] * 16U, data[1] + 1U);
  TryUnpacking(bytes, data[0] * 1024U);
  TryCodec(bytes);
  return 0;
}
