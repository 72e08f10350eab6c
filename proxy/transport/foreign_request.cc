// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/foreign_request.h"

#include "absl/strings/string_view.h"
#include "http2/fields.h"
#include "http2/slice.h"

namespace fncache::proxy::transport {
namespace {

// Response body for a peer that speaks another protocol.
constexpr absl::string_view kNoGrpc =
    "This is fncache, a proxy for composition functions: it serves gRPC over "
    "HTTP/2 only.\n";

// Answers requests that are not gRPC calls, with this status. It waits until a
// request is complete, so that an HTTP/2 error in it is found first. It has no
// state of a request, so one object serves all.
class ForeignRequests final : public http2::StreamUser {
 public:
  explicit ForeignRequests(absl::string_view code) : code_(code) {}
  void OnData(http2::Stream& stream, absl::string_view bytes) override {
    stream.Consume(bytes.size());
  }
  void OnPeerEnd(http2::Stream& stream) override {
    http2::Fields fields;
    fields.Add(":status", code_);
    fields.Add("content-type", "text/plain; charset=utf-8");
    stream.Answer(fields, /*end=*/false);
    stream.Send(http2::Slice::Static(kNoGrpc));
    stream.End();
  }
  void OnClosed(http2::Stream& /*stream*/,
                const http2::StreamEnd& /*end*/) override {}

 private:
  const absl::string_view code_;
};

}  // namespace

http2::StreamUser* AnswererOfForeign(bool is_post) {
  static ForeignRequests other_content("415");
  static ForeignRequests other_method("405");
  return is_post ? &other_content : &other_method;
}

}  // namespace fncache::proxy::transport
