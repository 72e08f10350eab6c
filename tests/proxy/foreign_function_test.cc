// What takes the function's place without speaking gRPC to the end: another web
// server, something in between that gives up.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/common/http2_server.h"
#include "tests/proxy/scripted.h"

namespace fncache::proxy {
namespace {

using ::fncache::testing::Http2Frame;
using ::fncache::testing::Http2Header;
using ::fncache::testing::Http2Ok;
using ::fncache::testing::Http2Server;

std::string Message(const std::string& bytes) {
  return std::string(4, '\0') + static_cast<char>(bytes.size()) + bytes;
}

// A response that would be stored, or less, and then an end that says no
// status.
std::vector<std::vector<Http2Frame>> EndsWithoutStatus() {
  const std::string grpc =
      Http2Ok() + Http2Header("content-type", "application/grpc");
  const std::string html = Http2Ok() + Http2Header("content-type", "text/html");
  const std::string message =
      Message(Response("t", "hello", 60).SerializeAsString());
  constexpr unsigned char end = Http2Frame::kEndStream;
  constexpr unsigned char headers = Http2Frame::kEndHeaders;
  return {
      {{Http2Frame::kHeaders, headers, grpc},
       {Http2Frame::kData, 0, message},
       {Http2Frame::kHeaders, headers | end, Http2Header("x-trail", "t")}},
      {{Http2Frame::kHeaders, headers, grpc},
       {Http2Frame::kData, end, message}},
      {{Http2Frame::kHeaders, headers | end, grpc}},
      {{Http2Frame::kHeaders, headers, html},
       {Http2Frame::kData, end, "<html></html>"}},
  };
}

TEST(ForeignFunctionTest, AnEndWithoutAStatusIsAnErrorAndIsNotStored) {
  for (const auto& answer : EndsWithoutStatus()) {
    Http2Server function(answer);
    ScriptedStore store;
    CachingProxy proxy(function.target(), {}, &store);
    const auto channel = Connect(proxy.target());
    for (const char* path : {kV1Path, kV1Path, "/t.T/Other"}) {
      auto caller = std::make_shared<Caller>();
      caller->Start(channel, path, Request("a", "t"));
      EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::UNKNOWN);
    }
    EXPECT_EQ(store.fills, 0);
    proxy.Stop();
  }
}

}  // namespace
}  // namespace fncache::proxy
