// SPDX-License-Identifier: Apache-2.0
// A client's connection is robust against a server that sends anything. Its own
// output is frames. Bodies stay within their windows and header lists within
// their bound. Every stream gets its end once, and so does the owner.
//
// The first byte of the input: bit 0, see Http2Input; bit 1, without the
// server's SETTINGS; the rest, how large the pieces are that arrive.
#include <cstddef>
#include <cstdint>
#include <string>

#include "http2/connection.h"
#include "http2/loop.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/http2_peer.h"

namespace {

using fncache::fuzz::Check;
using fncache::http2::Connection;
using fncache::http2::ConnectionEnd;
using fncache::http2::ConnectionOptions;
using fncache::http2::ConnectionOwner;
using fncache::http2::Fields;
using fncache::http2::Slice;
using fncache::http2::Stream;
using fncache::http2::StreamEnd;
using fncache::http2::StreamUser;

constexpr uint32_t kWindow = 1000;
constexpr uint32_t kMostFields = 300;
constexpr uint32_t kLargestFrame = 30'000;
// Windows allow one and a half.
constexpr size_t kLargeBody = 40'000;
constexpr int kCalls = 6;

class Call final : public StreamUser {
 public:
  explicit Call(int way) : way_(way) {}
  void Begin(Connection& connection) {
    begun_ = true;
    Fields fields;
    fields.Add(":method", "POST");
    fields.Add(":scheme", "http");
    fields.Add(":path", "/p.S/M");
    fields.Add(":authority", "a");
    Stream* const stream = connection.Open(fields, way_ == 0, this);
    if (way_ == 0) return;
    stream->Send(Slice::Copy(std::string(way_ == 3 ? kLargeBody : 100, 'b')));
    if (way_ != 1) stream->End();
  }
  void OnAnswer(Stream& stream) override {
    Check(live() && !answered_ && !ended_);
    answered_ = true;
    Check(stream.fields().ListSize() <= kMostFields);
    if (way_ == 2) stream.Reset(fncache::http2::kCancel);
  }
  void OnData(Stream& stream, absl::string_view bytes) override {
    held_ += bytes.size();
    Check(live() && answered_ && !ended_ && held_ <= kWindow);
    if (way_ == 3) return;  // never consumes
    stream.Consume(held_);
    held_ = 0;
    // More, while the answer comes already.
    stream.Send(Slice::Copy("more"));
  }
  void OnTrailers(Stream& stream) override {
    Check(live() && answered_ && !ended_);
    Check(stream.trailers().ListSize() <= kMostFields);
  }
  void OnPeerEnd(Stream& /*stream*/) override {
    Check(live() && answered_ && !ended_);
    ended_ = true;
  }
  void OnClosed(Stream& /*stream*/, const StreamEnd& end) override {
    Check(live());
    Check(end.kind != StreamEnd::Kind::kComplete || ended_);
    closed_ = true;
  }
  bool begun() const { return begun_; }
  bool live() const { return begun_ && !closed_; }

 private:
  const int way_;
  bool begun_ = false;
  bool answered_ = false;
  bool ended_ = false;
  bool closed_ = false;
  size_t held_ = 0;
};

class Owner final : public ConnectionOwner {
 public:
  Owner() {
    for (int i = 0; i < kCalls; ++i) calls_[i] = new Call(i % 4);
  }
  ~Owner() {
    for (Call* call : calls_) delete call;
  }
  void OnReady(Connection& connection) override { Begin(connection); }
  void OnCapacity(Connection& connection) override { Begin(connection); }
  void OnClosed(Connection& connection, ConnectionEnd /*end*/,
                const std::string& words) override {
    Check(!over_ && connection.streams() == 0);
    Check(words.size() < 1000);
    for (Call* call : calls_) Check(!call->live());
    over_ = true;
  }
  bool over() const { return over_; }

 private:
  void Begin(Connection& connection) {
    Check(!over_);
    for (Call* call : calls_) {
      if (!call->begun() && connection.CanOpen()) call->Begin(connection);
    }
  }

  Call* calls_[kCalls];
  bool over_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static auto* const loop = new fncache::http2::Loop;
  ConnectionOptions options;
  options.server = false;
  options.max_field_bytes = kMostFields;
  options.stream_window = kWindow;
  options.largest_frame = kLargestFrame;
  options.budget = 30;
  Owner owner;
  fncache::fuzz::Http2Peer peer(loop, kLargestFrame);
  Connection::Create(loop, peer.far_end(), nullptr, &options, &owner);
  peer.Turn();
  std::string input = fncache::fuzz::Http2Input(data, size);
  if ((data[0] & 2) == 0) {
    input.insert(0, std::string("\0\0\0\4\0\0\0\0\0", 9));
  }
  peer.Say(input, size_t{1} << (data[0] >> 4));
  peer.Turn();
  peer.Leave();
  for (int i = 0; i < 4 && !owner.over(); ++i) peer.Turn();
  Check(owner.over());
  return 0;
}
