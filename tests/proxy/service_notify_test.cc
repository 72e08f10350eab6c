// SPDX-License-Identifier: Apache-2.0
#include "proxy/service_notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"

namespace fncache::proxy {
namespace {

// The manager's end.
class Manager {
 public:
  // `name` as in $NOTIFY_SOCKET.
  explicit Manager(const std::string& name)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                          name.size())),
              0);
    setenv("NOTIFY_SOCKET", name.c_str(), /*overwrite=*/1);
  }
  ~Manager() {
    unsetenv("NOTIFY_SOCKET");
    close(fd_);
  }
  std::string Receive() const {
    char text[256];
    const ssize_t size = recv(fd_, text, sizeof text, MSG_DONTWAIT);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }

 private:
  const int fd_;
};

TEST(ServiceNotify, NobodyIsToldWhereNobodyAsks) {
  unsetenv("NOTIFY_SOCKET");
  EXPECT_FALSE(NotifyService("READY=1"));
}

TEST(ServiceNotify, APathIsTold) {
  const testing::TempDir dir;
  const Manager manager(dir.path() + "/notify");
  EXPECT_TRUE(NotifyService("READY=1"));
  EXPECT_EQ(manager.Receive(), "READY=1");
}

TEST(ServiceNotify, SoIsAnAbstractName) {
  const Manager manager("@fncache-notify-" + std::to_string(getpid()));
  EXPECT_TRUE(NotifyService("STOPPING=1"));
  EXPECT_EQ(manager.Receive(), "STOPPING=1");
}

TEST(ServiceNotify, AManagerThatIsGoneIsNoMatter) {
  const testing::TempDir dir;
  setenv("NOTIFY_SOCKET", (dir.path() + "/nobody").c_str(), /*overwrite=*/1);
  EXPECT_FALSE(NotifyService("READY=1"));
  // Neither is a name that no socket can have.
  setenv("NOTIFY_SOCKET", ("/" + std::string(200, 'x')).c_str(), 1);
  EXPECT_FALSE(NotifyService("READY=1"));
  setenv("NOTIFY_SOCKET", "relative", 1);
  EXPECT_FALSE(NotifyService("READY=1"));
  unsetenv("NOTIFY_SOCKET");
}

}  // namespace
}  // namespace fncache::proxy
