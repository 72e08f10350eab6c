// SPDX-License-Identifier: Apache-2.0
// Callers whose requests gRPC's own client would not send.
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/http2_server.h"
#include "tests/common/loopback_socket.h"
#include "tests/proxy/serving/scripted.h"
#include "tests/proxy/transport/raw_call.h"

namespace fncache::proxy::transport {
namespace {

using ::fncache::testing::Http2Frame;
using ::fncache::testing::Http2Header;
using ::testing::HasSubstr;

// One RunFunction call on a connection of its own, with this grpc-timeout.
class ForeignCaller {
 public:
  ForeignCaller(const std::string& target, const std::string& timeout,
                const std::string& request)
      : connection_(ConnectTo(target.substr(target.rfind(':') + 1))) {
    EXPECT_TRUE(SendAll(
        connection_,
        absl::StrCat(
            Greeting(),
            CallHead(1, kRunFunctionV1,
                     absl::StrCat(Http2Header("te", "trailers"),
                                  Http2Header("grpc-timeout", timeout))),
            CallData(1, MessageHead(request.size()) + request, true))));
  }
  ~ForeignCaller() { close(connection_); }
  ForeignCaller(const ForeignCaller&) = delete;
  ForeignCaller& operator=(const ForeignCaller&) = delete;

  // Reads until a header block has come that says a status; returns it as
  // lines.
  std::string ReadStatus() {
    nghttp2_hd_inflater* inflater = nullptr;
    EXPECT_EQ(nghttp2_hd_inflate_new(&inflater), 0);
    std::string lines;
    while (lines.find("grpc-status: ") == std::string::npos) {
      const std::string head = ReadExactly(9);
      if (head.empty()) break;
      const std::string payload =
          ReadExactly(static_cast<unsigned char>(head[1]) << 8 |
                      static_cast<unsigned char>(head[2]));
      if (head[3] == Http2Frame::kHeaders) lines = Inflate(inflater, payload);
    }
    nghttp2_hd_inflate_del(inflater);
    return lines;
  }
  // Reads until `text` has come, or the connection ends; returns all of it.
  std::string ReadUntil(const std::string& text) {
    std::string bytes;
    char piece[4096];
    while (bytes.find(text) == std::string::npos) {
      const ssize_t n = recv(connection_, piece, sizeof piece, 0);
      if (n <= 0) break;
      bytes.append(piece, n);
    }
    return bytes;
  }

 private:
  std::string ReadExactly(size_t size) const {
    std::string bytes(size, '\0');
    const ssize_t n = recv(connection_, bytes.data(), size, MSG_WAITALL);
    return n == static_cast<ssize_t>(size) ? bytes : "";
  }
  static std::string Inflate(nghttp2_hd_inflater* inflater, std::string block) {
    std::string lines;
    auto* bytes = reinterpret_cast<uint8_t*>(block.data());
    size_t left = block.size();
    for (int flags = 0; (flags & NGHTTP2_HD_INFLATE_FINAL) == 0;) {
      nghttp2_nv field;
      const ssize_t n = nghttp2_hd_inflate_hd2(inflater, &field, &flags, bytes,
                                               left, /*in_final=*/1);
      if (n < 0) break;
      bytes += n;
      left -= static_cast<size_t>(n);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0) continue;
      absl::StrAppend(
          &lines,
          absl::string_view(reinterpret_cast<char*>(field.name), field.namelen),
          ": ",
          absl::string_view(reinterpret_cast<char*>(field.value),
                            field.valuelen),
          "\n");
    }
    nghttp2_hd_inflate_end_headers(inflater);
    return lines;
  }

  const int connection_;
};

TEST(ForeignCallerTest, ADeadlineThatNoClockWillSeeIsWaitedFor) {
  for (const char* const timeout : {"2562047H", "99999999H"}) {
    serving::ScriptedFunction function;
    serving::ScriptedStore store;
    serving::CachingProxy proxy(function.target(), {}, &store);
    ForeignCaller first(proxy.target(), timeout, serving::Request("a", "t"));
    const serving::FunctionCallPtr call = function.Next();
    ForeignCaller joined(proxy.target(), timeout, serving::Request("a", "t"));
    EXPECT_TRUE(Eventually([&] { return proxy.flights().callers == 2; }));
    call->Answer(serving::Response("t", "hello", 60).SerializeAsString());
    EXPECT_THAT(first.ReadUntil("hello"), HasSubstr("hello"));
    EXPECT_THAT(joined.ReadUntil("hello"), HasSubstr("hello"));
    EXPECT_EQ(function.calls(), 1);
    proxy.Stop();
  }
}

// Whoever waits for a connection, his own call's or that of another caller, is
// told what there was to wait for.
TEST(ForeignCallerTest, ACallThatWaitedInVainIsToldForWhat) {
  const ::fncache::testing::LoopbackSocket dead;
  serving::ScriptedStore store;
  serving::CachingProxy proxy(dead.target(), {}, &store);
  ForeignCaller first(proxy.target(), "700m", serving::Request("a", "t"));
  ASSERT_TRUE(Eventually([&] { return proxy.flights().callers == 1; }));
  ForeignCaller joined(proxy.target(), "600m", serving::Request("a", "t"));
  for (ForeignCaller* const caller : {&joined, &first}) {
    const std::string answer = caller->ReadStatus();
    EXPECT_THAT(answer, HasSubstr("grpc-status: 4\n"));
    EXPECT_THAT(answer,
                HasSubstr(absl::StrCat(
                    "grpc-message: Deadline Exceeded while waiting for a "
                    "connection to the function at ",
                    dead.target(), ": ", dead.target(), ": cannot connect: ")));
  }
  proxy.Stop();
}

}  // namespace
}  // namespace fncache::proxy::transport
