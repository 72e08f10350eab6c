// SPDX-License-Identifier: Apache-2.0
// Finding the daemon's socket, from both sides, and what is said where that
// fails.
#include "proxy/admin/client.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proxy/admin/start.h"
#include "tests/common/temp_dir.h"
#include "tests/proxy/admin/fake_actions.h"

namespace fncache::proxy::admin {
namespace {

using ::fncache::testing::TempDir;
using ::fncache::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClientTest : public ::testing::Test {
 protected:
  Environment Variables() {
    return [this](const std::string& name) -> absl::optional<std::string> {
      const auto found = variables_.find(name);
      if (found == variables_.end()) return absl::nullopt;
      return found->second;
    };
  }
  SocketSearch Search(const std::string& flag = "") {
    SocketSearch search;
    search.flag = flag;
    search.environment = Variables();
    search.user_folder = user_folder_;
    return search;
  }
  // The daemon's side: the path that it serves, "" if none.
  std::string Started(absl::optional<std::string> path = absl::nullopt,
                      absl::optional<std::string> cache_dir = absl::nullopt) {
    StartOptions options;
    options.path = std::move(path);
    options.cache_dir = std::move(cache_dir);
    options.environment = Variables();
    options.user_folder = user_folder_;
    auto server = StartService(options, &actions_);
    status_ = server.status();
    if (!server.ok() || *server == nullptr) return "";
    servers_.push_back(*std::move(server));
    return servers_.back()->path();
  }

  TempDir dir_;
  std::string user_folder_ = dir_.File("of-user");
  std::map<std::string, std::string> variables_;
  FakeActions actions_;
  std::vector<std::unique_ptr<Server>> servers_;
  absl::Status status_;
};

TEST_F(ClientTest, DefaultPlacesHaveAnOrder) {
  const std::string of_user = "/tmp/fncache-7";
  EXPECT_THAT(
      DefaultSockets(absl::nullopt, Variables(), of_user),
      ElementsAre("/run/fncache/admin.sock", "/tmp/fncache-7/admin.sock"));
  variables_["XDG_RUNTIME_DIR"] = "/run/user/7";
  EXPECT_THAT(
      DefaultSockets(std::string("/cache"), Variables(), of_user),
      ElementsAre("/cache/admin.sock", "/run/user/7/fncache/admin.sock",
                  "/run/fncache/admin.sock", "/tmp/fncache-7/admin.sock"));
  variables_["XDG_RUNTIME_DIR"] = "relative";
  EXPECT_THAT(
      DefaultSockets(std::string(), Variables(), of_user),
      ElementsAre("/run/fncache/admin.sock", "/tmp/fncache-7/admin.sock"));
  EXPECT_EQ(UserFolder(), absl::StrCat("/tmp/fncache-", geteuid()));
  EXPECT_EQ(SocketSearch().user_folder, UserFolder());
  EXPECT_EQ(StartOptions().user_folder, UserFolder());
}

// The last of the default places. Not where this machine's own daemon may have
// /run/fncache/admin.sock, or a test that is root could make it.
class UserFolderTest : public ClientTest {
 protected:
  void SetUp() override {
    if (std::filesystem::exists("/run/fncache")) {
      GTEST_SKIP() << "/run/fncache is there, and goes before the user's";
    }
  }
  // Why neither side uses the folder. The daemon goes without a socket, and
  // changes nothing; the client does not connect.
  std::string WhyNot() {
    EXPECT_EQ(Started(), "");
    EXPECT_TRUE(status_.ok()) << status_;
    const auto found = FindSocket(Search());
    EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
    return std::string(CheckUserFolder(user_folder_).message());
  }
};

TEST_F(UserFolderTest, BothSidesUseItWhereThereIsNothingBetter) {
  const std::string socket = user_folder_ + "/admin.sock";
  EXPECT_EQ(FindSocket(Search()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Started(), socket);
  EXPECT_EQ(*FindSocket(Search()), socket);
  EXPECT_TRUE(CheckSocket(socket).ok());
  struct stat folder = {};
  ASSERT_EQ(stat(user_folder_.c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777, 0700u);
  EXPECT_EQ(folder.st_uid, geteuid());
  // A second daemon does not take it away, and the next one finds the folder.
  EXPECT_EQ(Started(), "");
  servers_.clear();
  EXPECT_EQ(Started(), socket);
}

TEST_F(UserFolderTest, ALinkIsNotFollowed) {
  const std::string target = dir_.File("target");
  ASSERT_EQ(symlink(target.c_str(), user_folder_.c_str()), 0);
  EXPECT_EQ(WhyNot(),
            absl::StrCat(user_folder_, " is a link; accepted: a ",
                         "folder of user ", geteuid(), " with mode 0700"));
  EXPECT_FALSE(std::filesystem::exists(target)) << "mkdir made it";
  // Nor is one to a folder that would do, with a socket in it that answers.
  ASSERT_EQ(mkdir(target.c_str(), 0700), 0);
  ASSERT_NE(Started(target + "/admin.sock"), "");
  EXPECT_THAT(WhyNot(), HasSubstr(" is a link; "));
  EXPECT_THAT(std::string(FindSocket(Search()).status().message()),
              HasSubstr("; not used: " + user_folder_ + " is a link; "));
}

TEST_F(UserFolderTest, OneThatOthersMayUseIsNotUsed) {
  ASSERT_EQ(mkdir(user_folder_.c_str(), 0700), 0);
  for (const mode_t mode : {0755, 0770, 0777, 0701, 01777}) {
    ASSERT_EQ(chmod(user_folder_.c_str(), mode), 0);
    EXPECT_THAT(WhyNot(), HasSubstr(" has mode 0")) << mode;
    struct stat folder = {};
    ASSERT_EQ(stat(user_folder_.c_str(), &folder), 0);
    EXPECT_EQ(folder.st_mode & 07777, mode) << "it was changed";
  }
  ASSERT_EQ(chmod(user_folder_.c_str(), 0700), 0);
  EXPECT_NE(Started(), "");
}

TEST_F(UserFolderTest, AFileInItsPlaceIsNotUsed) {
  WriteFile(user_folder_, "");
  EXPECT_THAT(WhyNot(), HasSubstr(" is no folder; "));
}

TEST_F(UserFolderTest, OneOfAnotherUserIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs to be two users";
  const std::string socket = user_folder_ + "/admin.sock";
  EXPECT_EQ(Started(), socket);
  ASSERT_EQ(chown(user_folder_.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(CheckSocket(socket).ok()) << "it would answer";
  EXPECT_EQ(WhyNot(),
            absl::StrCat(user_folder_, " belongs to user 65534; accepted: a ",
                         "folder of user 0 with mode 0700"));
}

TEST_F(UserFolderTest, OneThatOthersCanReplaceIsNotUsed) {
  const std::string above = dir_.File("above");
  ASSERT_EQ(mkdir(above.c_str(), 0700), 0);
  ASSERT_EQ(chmod(above.c_str(), 0777), 0);
  user_folder_ = above + "/of-user";
  EXPECT_THAT(WhyNot(), HasSubstr(" can be replaced by other users; "));
  // As /tmp is.
  ASSERT_EQ(chmod(above.c_str(), 01777), 0);
  EXPECT_EQ(Started(), user_folder_ + "/admin.sock");
}

TEST_F(ClientTest, BothSidesLookInTheSamePlaces) {
  variables_["XDG_RUNTIME_DIR"] = dir_.path();
  const std::string runtime = Started();
  EXPECT_EQ(runtime, dir_.File("fncache/admin.sock"));
  EXPECT_EQ(*FindSocket(Search()), runtime);
  struct stat folder = {};
  ASSERT_EQ(stat(dir_.File("fncache").c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777, 0700u);
  // A disk tier's directory goes first.
  const std::string cache = dir_.File("cache");
  ASSERT_EQ(mkdir(cache.c_str(), 0700), 0);
  EXPECT_EQ(Started(absl::nullopt, cache), cache + "/admin.sock");
  variables_["FNCACHE_CACHE_DIR"] = cache;
  EXPECT_EQ(*FindSocket(Search()), cache + "/admin.sock");
  // A given path takes precedence over all that.
  variables_["FNCACHE_ADMIN_SOCKET"] = "/from/the/variable";
  EXPECT_EQ(*FindSocket(Search()), "/from/the/variable");
  EXPECT_EQ(*FindSocket(Search("/from/the/flag")), "/from/the/flag");
}

TEST_F(ClientTest, ACacheDirectoryThatIsNamedMeansNoOtherDaemon) {
  variables_["XDG_RUNTIME_DIR"] = dir_.path();
  ASSERT_NE(Started(), "");
  variables_["FNCACHE_ADMIN_SOCKET"] = dir_.File("fncache/admin.sock");
  variables_["FNCACHE_CACHE_DIR"] = dir_.File("another");
  SocketSearch search = Search();
  search.cache_dir = dir_.File("none");
  EXPECT_EQ(*FindSocket(search), dir_.File("none/admin.sock"));
  EXPECT_THAT(std::string(CheckSocket(*FindSocket(search)).message()),
              HasSubstr("is the daemon running?"));
  search.flag = "/from/the/flag";
  EXPECT_EQ(*FindSocket(search), "/from/the/flag");
}

TEST_F(ClientTest, ACacheDirectoryThatCannotHaveASocketIsPassedBy) {
  variables_["XDG_RUNTIME_DIR"] = dir_.path();
  EXPECT_EQ(Started(absl::nullopt, dir_.File("none")),
            dir_.File("fncache/admin.sock"));
  EXPECT_EQ(Started(absl::nullopt, "/" + std::string(200, 'd')), "")
      << "and the next place is taken by now";
}

TEST_F(ClientTest, ASecondDaemonHasNoDefaultSocket) {
  variables_["XDG_RUNTIME_DIR"] = dir_.path();
  EXPECT_NE(Started(), "");
  EXPECT_EQ(Started(), "");
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(ClientTest, AGivenPathThatCannotBeServedEndsTheStart) {
  const std::string path = dir_.File("a.sock");
  EXPECT_EQ(Started(path), path);
  EXPECT_EQ(Started(path), "");
  EXPECT_EQ(status_.message(), absl::StrCat("admin_socket: ", path,
                                            ": another process serves it"));
  EXPECT_EQ(Started(dir_.File("none/a.sock")), "");
  EXPECT_THAT(std::string(status_.message()),
              HasSubstr("No such file or directory"));
  EXPECT_EQ(Started(std::string()), "");
  EXPECT_TRUE(status_.ok()) << "empty is none";
}

TEST_F(ClientTest, SaysWhereItLookedForASocket) {
  if (std::filesystem::exists("/run/fncache/admin.sock")) {
    GTEST_SKIP() << "/run/fncache/admin.sock is that of this machine's daemon";
  }
  variables_["XDG_RUNTIME_DIR"] = dir_.path();
  const absl::Status status = FindSocket(Search()).status();
  EXPECT_EQ(status.message(),
            absl::StrCat("no admin socket at ", dir_.path(),
                         "/fncache/admin.sock or /run/fncache/admin.sock or ",
                         user_folder_,
                         "/admin.sock; is "
                         "the daemon running? If it is, the daemon's log says "
                         "where its socket is; --socket PATH names it, and "
                         "--cache-dir DIR where the daemon has one"));
}

TEST_F(ClientTest, SaysWhyASocketCannotBeConnectedTo) {
  const std::string path = dir_.File("a.sock");
  EXPECT_THAT(std::string(CheckSocket(path).message()),
              HasSubstr(path + ": No such file or directory; is the daemon "
                               "running?"));
  const std::string served = Started(path);
  EXPECT_TRUE(CheckSocket(path).ok());
  // The file of one that has gone, and a file that is no socket.
  const std::string dead = dir_.File("dead.sock");
  ASSERT_EQ(rename(path.c_str(), dead.c_str()), 0);
  servers_.clear();
  EXPECT_THAT(std::string(CheckSocket(dead).message()),
              HasSubstr(dead + ": Connection refused; the daemon that made it "
                               "has gone"));
  EXPECT_EQ(CheckSocket(std::string(108, 's')).message(),
            absl::StrCat(std::string(108, 's'),
                         " has 108 bytes; the path of a unix socket has at "
                         "most 107"));
}

TEST_F(ClientTest, SaysWhoseASocketIsThatMayNotBeOpened) {
  if (geteuid() != 0) GTEST_SKIP() << "needs to be two users";
  const std::string path = Started(dir_.File("a.sock"));
  ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
  ASSERT_EQ(seteuid(65534), 0);
  const absl::Status closed = CheckSocket(path);
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(closed.message(),
            absl::StrCat(path,
                         ": Permission denied; only the daemon's user "
                         "and root may; ",
                         path, " belongs to root"));
  ASSERT_EQ(chmod(dir_.path().c_str(), 0700), 0);
  ASSERT_EQ(seteuid(65534), 0);
  const absl::Status hidden = CheckSocket(path);
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(hidden.message(),
            absl::StrCat(path,
                         ": Permission denied; only the daemon's user "
                         "and root may; ",
                         dir_.path(), " belongs to root"));
}

TEST_F(ClientTest, ADaemonThatGoesIsSaidToHaveGone) {
  const std::string path = Started(dir_.File("a.sock"));
  auto client = Client::Connect(path);
  ASSERT_TRUE(client.ok()) << client.status();
  servers_.clear();
  const auto answer = (*client)->Call(&v1::Admin::Stub::Stats,
                                      v1::StatsRequest(), absl::Seconds(30));
  EXPECT_EQ(answer.status().message(),
            path + ": the daemon has gone, or takes no more connections");
}

TEST_F(ClientTest, ADaemonThatHangsIsNotWaitedForForEver) {
  // Shared, as the call may come to the daemon when the caller has left.
  const auto over = std::make_shared<absl::Notification>();
  actions_.before = [over](const std::string&) { over->WaitForNotification(); };
  const std::string path = Started(dir_.File("a.sock"));
  auto client = Client::Connect(path);
  ASSERT_TRUE(client.ok()) << client.status();
  const auto answer = (*client)->Call(
      &v1::Admin::Stub::Stats, v1::StatsRequest(), absl::Milliseconds(50));
  over->Notify();
  EXPECT_EQ(answer.status().message(), path + ": the daemon does not answer");
}

TEST_F(ClientTest, ACallThatIsCancelledEndsAtOnce) {
  // Shared, as the call may come to the daemon when the caller has left.
  const auto asked = std::make_shared<absl::Notification>();
  const auto end = std::make_shared<absl::Notification>();
  actions_.before = [asked, end](const std::string&) {
    if (!asked->HasBeenNotified()) asked->Notify();
    end->WaitForNotification();
  };
  auto client = Client::Connect(Started(dir_.File("a.sock")));
  ASSERT_TRUE(client.ok()) << client.status();
  const auto ends = [&](grpc::ClientContext* context) {
    return (*client)
        ->Call(&v1::Admin::Stub::Stats, v1::StatsRequest(), absl::Hours(1),
               context)
        .status();
  };
  grpc::ClientContext early;
  early.TryCancel();
  EXPECT_TRUE(absl::IsCancelled(ends(&early)));
  grpc::ClientContext late;
  std::thread canceller([&] {
    asked->WaitForNotification();
    late.TryCancel();
  });
  EXPECT_TRUE(absl::IsCancelled(ends(&late)));
  canceller.join();
  end->Notify();
}

TEST_F(ClientTest, WhatTheDaemonSaysIsSaidWithItsSocket) {
  actions_.SetStatus(absl::NotFoundError("there is no function f here"));
  const std::string path = Started(dir_.File("a.sock"));
  auto client = Client::Connect(path);
  ASSERT_TRUE(client.ok()) << client.status();
  const auto answer = (*client)->Call(&v1::Admin::Stub::Stats,
                                      v1::StatsRequest(), absl::Seconds(30));
  EXPECT_EQ(answer.status(),
            absl::NotFoundError(path + ": there is no function f here"));
}

}  // namespace
}  // namespace fncache::proxy::admin
