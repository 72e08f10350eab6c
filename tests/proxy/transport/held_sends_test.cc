// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/held_sends.h"

#include <arpa/inet.h>
#include <linux/tcp.h>  // its tcp_info is the longer one
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace fncache::proxy::transport {
namespace {

// Two ends of a TCP connection on the loopback device, where what is sent has
// arrived when sending returns.
class HeldSendsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(listen(listener, 1), 0);
    ASSERT_EQ(
        getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    from_ = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(connect(from_, reinterpret_cast<sockaddr*>(&address), size), 0);
    to_ = accept(listener, nullptr, nullptr);
    ASSERT_GE(to_, 0);
    const int on = 1;
    setsockopt(from_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    close(listener);
  }
  void TearDown() override {
    HoldSends(false);
    SendHeld();
    close(from_);
    close(to_);
  }

  static void Send(int fd, const std::string& text, int flags = MSG_NOSIGNAL) {
    iovec part{const_cast<char*>(text.data()), text.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    ASSERT_EQ(sendmsg(fd, &message, flags), static_cast<ssize_t>(text.size()));
  }
  // How many bytes have arrived.
  int Arrived() const {
    int bytes = -1;
    ioctl(to_, FIONREAD, &bytes);
    return bytes;
  }
  // How many segments with data have.
  unsigned Segments() const {
    tcp_info info{};
    socklen_t size = sizeof(info);
    getsockopt(to_, IPPROTO_TCP, TCP_INFO, &info, &size);
    return info.tcpi_data_segs_in;
  }

  int from_ = -1;
  int to_ = -1;
};

TEST_F(HeldSendsTest, WhatIsSentWithoutHoldingArrivesAtOnce) {
  Send(from_, "one");
  EXPECT_EQ(Arrived(), 3);
  EXPECT_FALSE(HasHeldSends());
}

TEST_F(HeldSendsTest, WhatIsHeldArrivesTogetherWhenSent) {
  // The kernel itself lets go after 200 ms: a test that was interrupted for
  // as long says nothing.
  for (int attempt = 0;; ++attempt) {
    ASSERT_LT(attempt, 100);
    const auto begin = std::chrono::steady_clock::now();
    const int before = Arrived();
    const unsigned segments = Segments();
    HoldSends(true);
    Send(from_, "one");
    Send(from_, "two");
    Send(from_, "three");
    EXPECT_TRUE(HasHeldSends());
    const int held = Arrived();
    HoldSends(false);
    SendHeld();
    EXPECT_FALSE(HasHeldSends());
    EXPECT_EQ(Arrived(), before + 11);
    if (std::chrono::steady_clock::now() - begin >
        std::chrono::milliseconds(100)) {
      continue;
    }
    EXPECT_EQ(held, before);
    EXPECT_EQ(Segments(), segments + 1);
    return;
  }
}

TEST_F(HeldSendsTest, WhatIsLargeDoesNotWait) {
  HoldSends(true);
  Send(from_, std::string(100 << 10, 'x'));
  EXPECT_GE(Arrived(), 32 << 10);
  SendHeld();
  EXPECT_EQ(Arrived(), 100 << 10);
}

TEST_F(HeldSendsTest, OtherThreadsAndOtherSendersAreNotHeld) {
  HoldSends(true);
  std::thread([&] { Send(from_, "one"); }).join();
  EXPECT_EQ(Arrived(), 3);
  Send(from_, "two", MSG_NOSIGNAL | MSG_DONTWAIT);
  EXPECT_EQ(Arrived(), 6);
  EXPECT_FALSE(HasHeldSends());
}

TEST_F(HeldSendsTest, AConnectionThatWasClosedMeanwhileHasSentAll) {
  HoldSends(true);
  Send(from_, "one");
  close(from_);
  EXPECT_EQ(Arrived(), 3);
  // Its number may be another file's by now.
  from_ = dup(STDERR_FILENO);
  HoldSends(false);
  SendHeld();
  EXPECT_FALSE(HasHeldSends());
}

TEST_F(HeldSendsTest, MoreConnectionsThanAreNotedAreSentAtOnce) {
  HoldSends(true);
  int copies[65];
  for (int& copy : copies) {
    copy = dup(from_);
    Send(copy, "x");
  }
  // The last one was not held, and took the others along.
  EXPECT_EQ(Arrived(), 65);
  for (const int copy : copies) close(copy);
}

}  // namespace
}  // namespace fncache::proxy::transport
