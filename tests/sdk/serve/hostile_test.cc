// SPDX-License-Identifier: Apache-2.0
// Callers that mean no good, beside one that behaves. tests/flood/function has
// more of them, for longer.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sdk/serve/connections.h"
#include "sdk/serve/live_calls.h"
#include "sdk/serve/wire.h"
#include "tests/common/eventually.h"
#include "tests/common/http2_server.h"
#include "tests/sdk/serve/process.h"
#include "tests/sdk/serve/serving.h"

namespace fncache::sdk::serve {
namespace {

using testing::Http2Bytes;
using testing::Http2Frame;
using testing::Http2Header;

std::string Big(uint32_t number) {
  const uint32_t big = htonl(number);
  return std::string(reinterpret_cast<const char*>(&big), sizeof big);
}

// 0, or -1.
int ConnectTo(int fd, const std::string& address) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(port));
  return connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to);
}

// A connection that sends frames by hand. It reads nothing unless asked to.
class RawCaller {
 public:
  explicit RawCaller(const std::string& address)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(ConnectTo(fd_, address), 0);
    Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    Send(Http2Bytes({kSettings, 0, ""}, Big(0)));
  }
  ~RawCaller() { close(fd_); }
  RawCaller(const RawCaller&) = delete;
  RawCaller& operator=(const RawCaller&) = delete;

  static constexpr unsigned char kSettings = Http2Frame::kSettings;

  static std::string Headers(uint32_t stream,
                             const std::string& path = kRunFunctionV1,
                             const std::string& timeout = "") {
    std::string block = "\x83\x86";  // POST, http
    block += Http2Header(":path", path);
    block += Http2Header(":authority", "x");
    block += Http2Header("content-type", "application/grpc");
    block += Http2Header("te", "trailers");
    if (!timeout.empty()) block += Http2Header("grpc-timeout", timeout);
    return Http2Bytes({Http2Frame::kHeaders, Http2Frame::kEndHeaders, block},
                      Big(stream));
  }
  // `announced` bytes of a message, of which `body` comes.
  static std::string Data(uint32_t stream, uint32_t announced,
                          const std::string& body, bool end) {
    return Http2Bytes(
        {Http2Frame::kData,
         static_cast<unsigned char>(end ? Http2Frame::kEndStream : 0),
         std::string(1, '\0') + Big(announced) + body},
        Big(stream));
  }
  static std::string Reset(uint32_t stream) {
    return Http2Bytes({Http2Frame::kReset, 0, Big(8)}, Big(stream));
  }

  // False once the connection takes no more.
  bool Send(const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t n =
          send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<size_t>(n);
    }
    return true;
  }
  // Whether the server has ended the connection; drops what comes.
  bool Ended() {
    char buffer[4096];
    const ssize_t n = recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  }
  int fd() const { return fd_; }

 private:
  const int fd_;
};

class HostileTest : public ::testing::Test, public Serving {};

TEST_F(HostileTest, TruncatedRequestsEndTheirCallOnly) {
  Start();
  v1::RunFunctionRequest request = Tagged("tag");
  auto* const resource =
      request.mutable_observed()->mutable_composite()->mutable_resource();
  (*resource->mutable_fields())["kind"].set_string_value("X");
  (*resource->mutable_fields())["n"]
      .mutable_list_value()
      ->add_values()
      ->set_number_value(1);
  const std::string whole = request.SerializeAsString();
  for (size_t size = 0; size <= whole.size(); ++size) {
    std::string bytes = whole.substr(0, size);
    const auto code = CallBytes(kRunFunctionV1, &bytes).error_code();
    EXPECT_TRUE(code == grpc::StatusCode::OK ||
                code == grpc::StatusCode::INTERNAL)
        << size << " " << code;
  }
  EXPECT_TRUE(Call().ok());
}

TEST_F(HostileTest, NestedRequestsEndTheirCallOnly) {
  Start();
  // context {fields {value {struct_value {fields {value ...}}}}}.
  std::string message;
  for (int i = 0; i < 5000; ++i) {
    std::string value, entry, fields;
    AppendText(5, message, &value);
    AppendText(1, "k", &entry);
    AppendText(2, value, &entry);
    AppendText(1, entry, &fields);
    message = fields;
  }
  std::string bytes;
  AppendText(5, message, &bytes);
  CallBytes(kRunFunctionV1, &bytes);
  EXPECT_TRUE(Call().ok());
}

// Go writes its longest time-out, of 292 years, as 2562047H.
TEST_F(HostileTest, DeadlinesBeyondTheYear2262AreKept) {
  std::atomic<bool> far{false};
  Start([&](function::Context& ctx) {
    far = ctx.deadline() > absl::Now() + 24 * 365 * 291 * absl::Hours(1);
  });
  RawCaller caller(server->address());
  EXPECT_TRUE(
      caller.Send(RawCaller::Headers(1, kRunFunctionV1, "2562047H") +
                  RawCaller::Data(1, /*announced=*/0, "", /*end=*/true)));
  EXPECT_TRUE(Eventually([&] { return far.load(); }));
}

TEST_F(HostileTest, MessageThatEndsEarlyEndsItsCallOnly) {
  Start();
  RawCaller caller(server->address());
  for (uint32_t stream = 1; stream < 200; stream += 2) {
    EXPECT_TRUE(caller.Send(RawCaller::Headers(stream) +
                            RawCaller::Data(stream, 100, "half", true)));
  }
  EXPECT_TRUE(Call().ok());
}

TEST_F(HostileTest, StreamsThatAreResetEndTheirConnection) {
  Start();
  RawCaller caller(server->address());
  uint32_t stream = 1;
  std::string batch;
  bool open = true;
  for (int i = 0; i < 20 && open; ++i) {
    batch.clear();
    for (int j = 0; j < 1000; ++j, stream += 2) {
      batch += RawCaller::Headers(stream) + RawCaller::Reset(stream);
    }
    open = caller.Send(batch) && !caller.Ended();
    EXPECT_TRUE(Call().ok());
  }
  EXPECT_TRUE(Call().ok());
  server->Stop(absl::Minutes(1));
}

TEST_F(HostileTest, TenThousandStreamsDoNotDelayOthers) {
  std::atomic<int> runs{0};
  Start([&](function::Context&) { ++runs; });
  RawCaller caller(server->address());
  std::string all;
  for (uint32_t i = 0; i < 10000; ++i) all += RawCaller::Headers(2 * i + 1);
  // It never acknowledges the limit of streams.
  caller.Send(all);
  EXPECT_TRUE(Call().ok());
  EXPECT_TRUE(Eventually([&] { return caller.Ended(); }));
  EXPECT_TRUE(Call().ok());
  EXPECT_EQ(runs, 2);
}

TEST_F(HostileTest, StreamsOfUnknownMethodsDoNotDelayOthers) {
  Start();
  RawCaller caller(server->address());
  std::string all;
  for (uint32_t i = 0; i < 20000; ++i) {
    all += RawCaller::Headers(2 * i + 1, "/a.B/C");
  }
  caller.Send(all);
  EXPECT_TRUE(Call().ok());
}

TEST_F(HostileTest, CallerThatReadsNothingDelaysNoOther) {
  Start();
  RawCaller caller(server->address());
  const std::string request = Large(60000).SerializeAsString();
  uint32_t stream = 1;
  // The windows at the start are all that the server gets of its own accord.
  for (; stream < 40; stream += 2) {
    std::string bytes = RawCaller::Headers(stream);
    const std::string first = request.substr(0, 16000);
    bytes += RawCaller::Data(stream, request.size(), first, false);
    if (!caller.Send(bytes)) break;
  }
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Call(Large(10000)).ok());
}

// gRPC's listener accepts nothing from then on.
TEST(HostileProcessTest, EndsWithCodeOneOnceNoConnectionCanBeAccepted) {
  std::vector<std::string> flags = kPlain;
  flags.insert(flags.end(), {"--drain", "100ms"});
  Process process(flags);
  const std::string address = process.address();
  const rlimit few = {64, 64};
  ASSERT_EQ(prlimit(process.pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  std::vector<int> idle;
  for (int i = 0; i < 80; ++i) {
    idle.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ConnectTo(idle.back(), address);  // it may have ended
  }
  EXPECT_EQ(process.Wait(), 1);
  EXPECT_EQ(process.Field("no more connections are accepted", "error"),
            "Failed accept4: Too many open files");
  for (const int fd : idle) close(fd);
}

// Otherwise gRPC would keep 4 GiB before it compares the size with the limit.
TEST(HostileProcessTest, AnnouncedSizesAreNoPromiseOfMemory) {
  std::vector<std::string> flags = kPlain;
  flags.insert(flags.end(), {"--max-recv-message-size", "1"});
  Process process(flags);
  const std::string address = process.address();
  EXPECT_TRUE(Call(address).ok());
  [[maybe_unused]] const int before = process.Status("VmRSS");
  grpc::ClientContext context;
  v1::RunFunctionResponse response;
  const auto stub = v1::FunctionRunnerService::NewStub(Connect(address));
  EXPECT_EQ(
      stub->RunFunction(&context, Large(300 << 20), &response).error_code(),
      grpc::StatusCode::RESOURCE_EXHAUSTED);
#if !defined(FNCACHE_ASAN) && !defined(FNCACHE_TSAN)
  EXPECT_LT(process.Status("VmHWM") - before, 200 << 10);
#endif
  EXPECT_TRUE(Call(address).ok());
}

TEST(HostileProcessTest, MemoryOfLargeCallsIsGivenBack) {
  Process process(kPlain);
  const std::string address = process.address();
  EXPECT_TRUE(Call(address).ok());
  [[maybe_unused]] const int before = process.Status("VmRSS");
  std::vector<std::thread> callers;
  for (int i = 0; i < 16; ++i) {
    callers.emplace_back([&] {
      const auto stub = v1::FunctionRunnerService::NewStub(Connect(address));
      for (int call = 0; call < 5; ++call) {
        grpc::ClientContext context;
        v1::RunFunctionResponse response;
        EXPECT_TRUE(
            stub->RunFunction(&context, Large(1 << 20), &response).ok());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
#if !defined(FNCACHE_ASAN) && !defined(FNCACHE_TSAN)
  EXPECT_TRUE(Eventually([&] {
    return process.Status("VmRSS") - before < (8 << 10);
  })) << process.Status("VmRSS") - before;
#endif
}

// A call that records what is done to it.
class FakeCall : public LiveCall {
 public:
  void Cancel() override { cancelled = true; }
  void OnStop() override { stopped = true; }
  std::atomic<bool> cancelled{false}, stopped{false};
};

TEST(LiveCallsTest, CallThatWaitsForItsPeerTooLongIsCancelled) {
  LiveCalls live({absl::Milliseconds(10), absl::Milliseconds(1), 100});
  FakeCall waits, works;
  live.Add(&waits, "unix:");
  live.Add(&works, "unix:");
  waits.WaitsForPeer();
  EXPECT_TRUE(Eventually([&] { return waits.cancelled.load(); }));
  EXPECT_FALSE(works.cancelled);
  live.Remove(&waits);
  live.Remove(&works);
}

TEST(LiveCallsTest, StopReachesEveryCallAlsoLaterOnes) {
  LiveCalls live({absl::Hours(1), absl::Hours(1), 100});
  FakeCall first, second;
  live.Add(&first, "unix:");
  live.Stop();
  live.Add(&second, "unix:");
  EXPECT_TRUE(first.stopped);
  EXPECT_TRUE(second.stopped);
  live.Remove(&first);
  live.Remove(&second);
}

TEST_F(HostileTest, ConnectionsAreFoundByTheirPeer) {
  Start();
  RawCaller caller(server->address());
  sockaddr_in own = {};
  socklen_t size = sizeof own;
  ASSERT_EQ(getsockname(caller.fd(), reinterpret_cast<sockaddr*>(&own), &size),
            0);
  const std::string peer = absl::StrCat("ipv4:127.0.0.1:", ntohs(own.sin_port));
  EXPECT_TRUE(Eventually([&] { return CloseConnection(peer); }));
  EXPECT_TRUE(Eventually([&] { return caller.Ended(); }));
  EXPECT_FALSE(CloseConnection("unix:"));
  EXPECT_FALSE(CloseConnection("ipv4:192.0.2.1:1"));
  EXPECT_TRUE(Call().ok());
}

}  // namespace
}  // namespace fncache::sdk::serve
