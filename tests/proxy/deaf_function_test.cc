// A function that stops reading from its connection: what is sent to it waits
// in the daemon, and gRPC with it, while calls come and go.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/common/http2_server.h"
#include "tests/proxy/scripted.h"

namespace fncache::proxy {
namespace {

using ::fncache::testing::Http2Bytes;
using ::fncache::testing::Http2Frame;
using ::fncache::testing::Http2Header;
using ::fncache::testing::Http2Ok;

constexpr int kBig = 32 << 20;

// Takes one connection, allows its peer to send as much as it likes, and reads
// nothing until Listen.
class DeafFunction {
 public:
  DeafFunction() : listening_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int small = 64 << 10;
    setsockopt(listening_, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listening_, any, size), 0);
    EXPECT_EQ(listen(listening_, 8), 0);
    EXPECT_EQ(getsockname(listening_, any, &size), 0);
    target_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }
  ~DeafFunction() {
    listens_ = true;
    shutdown(listening_, SHUT_RDWR);
    shutdown(connection_, SHUT_RDWR);
    thread_.join();
    close(listening_);
    close(connection_);
  }
  DeafFunction(const DeafFunction&) = delete;
  DeafFunction& operator=(const DeafFunction&) = delete;

  const std::string& target() const { return target_; }

  // So much waits on the connection that no more comes.
  bool Full() {
    int before = 0;
    int same = 0;
    return Eventually([&] {
      int unread = 0;
      if (connection_ < 0 || ioctl(connection_, FIONREAD, &unread) != 0) {
        return false;
      }
      same = unread == before ? same + 1 : 0;
      before = unread;
      return unread > (16 << 10) && same > 100;
    });
  }
  // Ends the connection's call of this number with NOT_FOUND.
  void EndCall(char stream) {
    Send(
        {Http2Frame::kHeaders, Http2Frame::kEndHeaders | Http2Frame::kEndStream,
         absl::StrCat(Http2Ok(),
                      Http2Header("content-type", "application/grpc"),
                      Http2Header("grpc-status", "5"))},
        stream);
  }
  void Listen() { listens_ = true; }
  int64_t read() const { return read_; }

 private:
  void Serve() {
    connection_ = accept(listening_, nullptr, nullptr);
    if (connection_ < 0) return;
    // The largest windows there are.
    Send({Http2Frame::kSettings, 0, std::string("\0\4\x7f\xff\xff\xff", 6)}, 0);
    Send({Http2Frame::kWindowUpdate, 0, std::string("\x7f\xfe\0\0", 4)}, 0);
    if (!Eventually([this] { return listens_.load(); })) return;
    std::string bytes(1 << 20, '\0');
    while (true) {
      const ssize_t n = recv(connection_, bytes.data(), bytes.size(), 0);
      if (n <= 0) return;
      read_ += n;
    }
  }

  void Send(const Http2Frame& frame, char stream) {
    const std::string bytes = Http2Bytes(frame, std::string(3, '\0') + stream);
    (void)!send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  const int listening_;
  std::string target_;
  std::atomic<int> connection_{-1};
  std::atomic<bool> listens_{false};
  std::atomic<int64_t> read_{0};
  std::thread thread_;
};

TEST(DeafFunctionTest, ACallThatEndsBeforeItWasSentEndsOnce) {
  DeafFunction function;
  TestProxy proxy(TestProxy::To(function.target()), /*workers=*/1);
  const auto channel = Connect(proxy.target());
  auto large = std::make_shared<Caller>();
  large->Start(channel, "/t.T/Large", std::string(kBig, 'x'));
  ASSERT_TRUE(function.Full());

  // Nothing of this one reaches the function, whose word comes nevertheless.
  auto small = std::make_shared<Caller>();
  small->Start(channel, "/t.T/Small", "x");
  ASSERT_TRUE(Eventually([&] { return proxy.listener().calls() == 2; }));
  function.EndCall(3);
  EXPECT_EQ(small->Wait().error_code(), grpc::StatusCode::NOT_FOUND);

  function.Listen();
  EXPECT_TRUE(Eventually([&] { return function.read() > kBig; }));
  // Only the large one is left.
  EXPECT_TRUE(Eventually([&] { return proxy.listener().calls() == 1; }));
  large->context.TryCancel();
  EXPECT_EQ(large->Wait().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace fncache::proxy
