// SPDX-License-Identifier: Apache-2.0
// Where a server listens, and what it finds there: unix sockets.
#include "http2/server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"
#include "tests/http2/connection_test.h"

namespace fncache::http2 {
namespace {

using ::fncache::testing::ReadFile;
using ::fncache::testing::TempDir;
using ::fncache::testing::WriteFile;
using ::testing::HasSubstr;

// Another process's socket that listens there; closed, its file stays.
class Other {
 public:
  Other(const std::string& path, int backlog) : fd_(NewSocket()) {
    Endpoint at;
    EXPECT_TRUE(UnixEndpoint(path, &at));
    EXPECT_EQ(
        bind(fd_, reinterpret_cast<const sockaddr*>(&at.address), at.size), 0);
    EXPECT_EQ(listen(fd_, backlog), 0);
  }
  ~Other() { close(fd_); }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;

  static int NewSocket() {
    return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  }

 private:
  const int fd_;
};

// The mode and kind of a file; 0 where there is none.
mode_t ModeOf(const std::string& path) {
  struct stat file = {};
  return lstat(path.c_str(), &file) == 0 ? file.st_mode : 0;
}

class ServerTest : public ConnectionTest {
 protected:
  static absl::Status Listen(const std::string& address) {
    return Server::Listen(address, ServerOptions()).status();
  }
  absl::Status Listen() { return Listen(address_); }
  std::string Echoed() {
    Request request("/echo", "hello");
    Begin(&request);
    request.Wait();
    return request.answer;
  }

  const TempDir dir_;
  const std::string path_ = dir_.File("h2.sock");
  const std::string address_ = absl::StrCat("unix:", path_);
};

TEST_F(ServerTest, APathWithThreeSlashesIsAbsolute) {
  Start(absl::StrCat("unix://", path_));
  EXPECT_EQ(server_->address(), absl::StrCat("unix://", path_));
  EXPECT_EQ(ModeOf(path_) & S_IFMT, static_cast<mode_t>(S_IFSOCK));
  EXPECT_EQ(Echoed(), "hello");
}

TEST_F(ServerTest, ARelativePathIsOfTheWorkingDirectory) {
  Start(absl::StrCat("unix:", std::filesystem::relative(path_).string()));
  EXPECT_EQ(ModeOf(path_) & S_IFMT, static_cast<mode_t>(S_IFSOCK));
  EXPECT_EQ(Echoed(), "hello");
}

TEST_F(ServerTest, AbstractNamesServeOnceAndLeaveNoFile) {
  const std::string name = absl::StrCat("unix-abstract:fncache", path_);
  Start(name);
  EXPECT_EQ(Echoed(), "hello");
  const absl::Status again = Listen(name);
  EXPECT_TRUE(absl::IsUnavailable(again)) << again;
  EXPECT_EQ(
      again.message(),
      absl::StrCat(name,
                   ": the address is in use: another process listens there"));
  EXPECT_EQ(ModeOf(path_), 0u);
}

TEST_F(ServerTest, ASocketsFileGoesWithTheServer) {
  EXPECT_TRUE(Listen().ok());
  EXPECT_EQ(ModeOf(path_), 0u) << "it never started";
  Start(address_);
  EXPECT_NE(ModeOf(path_), 0u);
  server_->Stop();
  EXPECT_EQ(ModeOf(path_), 0u);
}

TEST_F(ServerTest, ASocketsFileHasTheModeThatTheUmaskLeaves) {
  const mode_t before = umask(027);
  Start(address_);
  umask(before);
  EXPECT_EQ(ModeOf(path_), static_cast<mode_t>(S_IFSOCK | 0750));
}

TEST_F(ServerTest, ASocketThatNobodyListensOnIsReplaced) {
  { const Other gone(path_, 1); }
  ASSERT_NE(ModeOf(path_), 0u);
  Start(address_);
  EXPECT_EQ(Echoed(), "hello");
}

TEST_F(ServerTest, ASocketThatSomebodyListensOnIsLeftAlone) {
  const Other other(path_, 0);
  // Nor does it wait for a listener that does not accept.
  Endpoint at;
  ASSERT_TRUE(UnixEndpoint(path_, &at));
  std::vector<int> callers;
  do {
    ASSERT_LT(callers.size(), 100u);
    callers.push_back(Other::NewSocket());
  } while (connect(callers.back(),
                   reinterpret_cast<const sockaddr*>(&at.address),
                   at.size) == 0);
  for (const bool full : {true, false}) {
    const absl::Status status = Listen();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status << full;
    EXPECT_EQ(
        status.message(),
        absl::StrCat(address_,
                     ": the address is in use: another process listens there"));
    EXPECT_NE(ModeOf(path_), 0u);
    for (const int caller : callers) close(caller);
    callers.clear();
  }
}

TEST_F(ServerTest, WhatIsNoSocketIsLeftAlone) {
  WriteFile(path_, "precious");
  std::filesystem::create_directory(dir_.File("folder"));
  // A link is not followed to the socket that would be removed.
  { const Other gone(dir_.File("gone.sock"), 1); }
  std::filesystem::create_symlink("gone.sock", dir_.File("link"));
  for (const char* name : {"h2.sock", "folder", "link"}) {
    const std::string address = absl::StrCat("unix:", dir_.File(name));
    const absl::Status status = Listen(address);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(status.message(),
              absl::StrCat(address, ": a file is there that is no socket"));
  }
  EXPECT_EQ(ReadFile(path_), "precious");
  EXPECT_NE(ModeOf(dir_.File("gone.sock")), 0u);
  EXPECT_NE(ModeOf(dir_.File("link")), 0u);
}

TEST_F(ServerTest, PathsThatCannotBeAreNamed) {
  const absl::Status none =
      Listen(absl::StrCat("unix:", dir_.File("none/h2.sock")));
  EXPECT_THAT(none.message(), HasSubstr("none/h2.sock: No such file"));
  for (const std::string& path :
       {std::string(), "/" + std::string(107, 'a'), std::string("a\0b", 3)}) {
    const absl::Status status = Listen(absl::StrCat("unix:", path));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
  EXPECT_THAT(Listen("unix:/" + std::string(107, 'a')).message(),
              HasSubstr("too long"));
}

}  // namespace
}  // namespace fncache::http2
