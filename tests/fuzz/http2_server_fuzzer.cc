// SPDX-License-Identifier: Apache-2.0
// A server's connection is robust against a client that sends anything. Its own
// output is frames. Bodies stay within their windows, but for the frame that
// exceeds one, which nghttp2 hands over before it resets the stream. Header
// lists stay within their bound. Every stream gets its end once, and so does
// the owner.
//
// The first byte of the input: bit 0, see Http2Input; bit 1, without the
// client's preface and settings; the rest, how large the pieces are that
// arrive.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

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
// A stream's window until the client has acknowledged the server's settings
// (RFC 9113, 6.9.2).
constexpr uint32_t kFirstWindow = 65535;
constexpr uint32_t kMostFields = 300;

// The size of the largest DATA frame in what a client sends.
size_t LargestData(absl::string_view sent) {
  constexpr size_t kHead = 9;
  size_t largest = 0;
  for (sent.remove_prefix(std::min<size_t>(24, sent.size()));
       sent.size() > kHead;) {
    const auto at = [&](size_t i) { return static_cast<uint8_t>(sent[i]); };
    const size_t length = static_cast<size_t>(at(0)) << 16 | at(1) << 8 | at(2);
    const bool is_data = at(3) == 0;
    sent.remove_prefix(kHead);
    const size_t size = std::min(length, sent.size());
    if (is_data) largest = std::max(largest, size);
    sent.remove_prefix(size);
  }
  return largest;
}

// Serves streams in as many ways as there are.
class Owner final : public ConnectionOwner {
 public:
  // `window`: what the client knows a stream's first window to be. `excess`:
  // how much more may come of the frame that exceeds it.
  Owner(uint32_t window, size_t excess) : window_(window), excess_(excess) {}
  StreamUser* OnRequest(Stream& stream) override {
    Check(!over_);
    Check(stream.fields().ListSize() <= kMostFields);
    const int way = static_cast<int>(stream.id() / 2 % 6);
    if (way == 5) return nullptr;
    return new Call(this, way);
  }
  void OnClosed(Connection& connection, ConnectionEnd /*end*/,
                const std::string& words) override {
    Check(!over_ && live_ == 0 && connection.streams() == 0);
    Check(words.size() < 1000);
    over_ = true;
  }

  bool over() const { return over_; }
  int live() const { return live_; }

 private:
  class Call final : public StreamUser {
   public:
    Call(Owner* owner, int way)
        : owner_(owner), way_(way), window_(owner->window_) {
      ++owner_->live_;
    }
    void OnData(Stream& stream, absl::string_view bytes) override {
      held_ += bytes.size();
      Check(!ended_ && held_ <= window_ + owner_->excess_);
      body_.append(bytes.data(), bytes.size());
      if (way_ == 0) return;  // never consumes
      if (way_ == 1) return stream.Reset(fncache::http2::kCancel);
      if (way_ == 2 && window_ < 2 * kWindow) {
        window_ = 2 * kWindow;
        stream.GrowWindow(2 * kWindow);
      }
      stream.Consume(held_);
      held_ = 0;
    }
    void OnTrailers(Stream& stream) override {
      Check(stream.trailers().ListSize() <= kMostFields);
    }
    void OnPeerEnd(Stream& stream) override {
      Check(!ended_);
      ended_ = true;
      Fields fields;
      fields.Add(":status", "200");
      if (way_ == 4) return stream.Answer(fields, /*end=*/true);
      stream.Answer(fields, /*end=*/false);
      stream.Send(Slice::Copy(body_));
      if (way_ == 3) return stream.End();
      Fields trailers;
      trailers.Add("grpc-status", "0");
      stream.EndWith(std::move(trailers));
    }
    void OnClosed(Stream& /*stream*/, const StreamEnd& end) override {
      Check(!end.unprocessed);
      --owner_->live_;
      delete this;
    }

   private:
    Owner* const owner_;
    const int way_;
    bool ended_ = false;
    size_t window_;
    size_t held_ = 0;
    std::string body_;
  };

  const uint32_t window_;
  const size_t excess_;
  bool over_ = false;
  int live_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static auto* const loop = new fncache::http2::Loop;
  ConnectionOptions options;
  options.max_streams = 5;
  options.max_field_bytes = kMostFields;
  options.stream_window = kWindow;
  options.budget = 30;
  options.http1_answer = "HTTP/1.1 426 Upgrade Required\r\n\r\n";
  std::string input = fncache::fuzz::Http2Input(data, size);
  bool acknowledged = false;
  if ((data[0] & 2) == 0) {
    const std::string ack("\0\0\0\4\1\0\0\0\0", 9);
    // A second acknowledgement ends the connection.
    acknowledged = input.find(ack) == std::string::npos;
    if (acknowledged) input.insert(0, ack);
    input.insert(0, std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                "\0\0\0\4\0\0\0\0\0",
                                33));
  }
  Owner owner(acknowledged ? kWindow : kFirstWindow, LargestData(input));
  fncache::fuzz::Http2Peer peer(loop);
  Connection::Create(loop, peer.far_end(), nullptr, &options, &owner);
  // A server answers HTTP/1 with bytes that are no frame.
  if (input.compare(0, 4, "PRI ") != 0) return peer.Leave(), peer.Turn(), 0;
  peer.Say(input, size_t{1} << (data[0] >> 4));
  peer.Turn();
  peer.Leave();
  // A connection with something to say waits for its peer to have heard it.
  for (int i = 0; i < 4 && !owner.over(); ++i) peer.Turn();
  Check(owner.over() && owner.live() == 0);
  return 0;
}
