// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proxy/admin/client.h"
#include "tests/common/temp_dir.h"
#include "tests/proxy/admin/fake_actions.h"
#include "tests/proxy/loopback.h"

namespace fncache::proxy::admin {
namespace {

using ::fncache::testing::TempDir;
using ::fncache::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(30);

// A socket that listens there, or is bound and was closed again.
int ListenAt(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(fd, 8), 0);
  return fd;
}

// The mode and kind of a file; 0 where there is none.
mode_t ModeOf(const std::string& path) {
  struct stat file = {};
  return lstat(path.c_str(), &file) == 0 ? file.st_mode : 0;
}

class ServerTest : public ::testing::Test {
 protected:
  absl::Status Start() {
    options_.path = path_;
    auto server = Server::Start(options_, &actions_);
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    return absl::OkStatus();
  }
  std::unique_ptr<Client> Connect() {
    auto client = Client::Connect(path_);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  absl::StatusOr<v1::StatsResponse> Stats(Client* client) {
    return client->Call(&v1::Admin::Stub::Stats, v1::StatsRequest(), kPatience);
  }
  std::shared_ptr<grpc::Channel> Channel() {
    return proxy::Connect(absl::StrCat("unix:", path_));
  }
  // The status of a call of any method with any bytes.
  grpc::Status Raw(const std::string& method, const std::string& request,
                   bool compressed = false) {
    TestCall call(Channel(), "/fncache.admin.v1.Admin/" + method);
    if (compressed) {
      call.context().set_compression_algorithm(GRPC_COMPRESS_GZIP);
    }
    std::string response;
    return call.Unary(request, &response);
  }

  TempDir dir_;
  std::string path_ = dir_.File("admin.sock");
  ServerOptions options_;
  FakeActions actions_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, EveryMethodReachesItsAction) {
  actions_.stats.set_version("1.2.3");
  actions_.purge.set_removed(7);
  actions_.look_up.set_key("key");
  actions_.explain.set_explained(true);
  actions_.config.set_yaml("a: b\n");
  actions_.reload.add_changed()->set_key("ttl.max");
  actions_.start_trace.set_dir("/trace");
  actions_.stop_trace.set_records(9);
  actions_.log_level.set_old_level("info");
  actions_.shadow.set_text("a: wrong\n");
  actions_.tune.add_functions();
  ASSERT_TRUE(Start().ok());
  const auto client = Connect();
  const auto call = [&client](auto method, auto request, auto* response) {
    auto answer = client->Call(method, request, kPatience);
    ASSERT_TRUE(answer.ok()) << answer.status();
    *response = *std::move(answer);
  };
  v1::StatsResponse stats;
  call(&v1::Admin::Stub::Stats, v1::StatsRequest(), &stats);
  EXPECT_EQ(stats.version(), "1.2.3");
  v1::PurgeRequest purge_request;
  purge_request.mutable_all();
  v1::PurgeResponse purge;
  call(&v1::Admin::Stub::Purge, purge_request, &purge);
  EXPECT_EQ(purge.removed(), 7u);
  v1::LookUpResponse look_up;
  call(&v1::Admin::Stub::LookUp, v1::LookUpRequest(), &look_up);
  EXPECT_EQ(look_up.key(), "key");
  v1::ExplainResponse explain;
  call(&v1::Admin::Stub::Explain, v1::ExplainRequest(), &explain);
  EXPECT_TRUE(explain.explained());
  v1::ConfigResponse config;
  call(&v1::Admin::Stub::Config, v1::ConfigRequest(), &config);
  EXPECT_EQ(config.yaml(), "a: b\n");
  v1::ReloadResponse reload;
  call(&v1::Admin::Stub::Reload, v1::ReloadRequest(), &reload);
  EXPECT_EQ(reload.changed_size(), 1);
  v1::StartTraceResponse start_trace;
  call(&v1::Admin::Stub::StartTrace, v1::StartTraceRequest(), &start_trace);
  EXPECT_EQ(start_trace.dir(), "/trace");
  v1::StopTraceResponse stop_trace;
  call(&v1::Admin::Stub::StopTrace, v1::StopTraceRequest(), &stop_trace);
  EXPECT_EQ(stop_trace.records(), 9u);
  v1::SetLogLevelResponse log_level;
  call(&v1::Admin::Stub::SetLogLevel, v1::SetLogLevelRequest(), &log_level);
  EXPECT_EQ(log_level.old_level(), "info");
  v1::ShadowResponse shadow;
  call(&v1::Admin::Stub::Shadow, v1::ShadowRequest(), &shadow);
  EXPECT_EQ(shadow.text(), "a: wrong\n");
  v1::TuneResponse tune;
  call(&v1::Admin::Stub::Tune, v1::TuneRequest(), &tune);
  EXPECT_EQ(tune.functions_size(), 1);
  EXPECT_THAT(actions_.asked(),
              ElementsAre("Stats", "Purge: all { }", "LookUp", "Explain",
                          "Config", "Reload", "StartTrace", "StopTrace",
                          "SetLogLevel", "Shadow", "Tune"));
}

TEST_F(ServerTest, AnActionsErrorIsTheCalls) {
  ASSERT_TRUE(Start().ok());
  actions_.SetStatus(absl::FailedPreconditionError("stale serving is off"));
  EXPECT_EQ(Stats(Connect().get()).status(),
            absl::FailedPreconditionError(path_ + ": stale serving is off"));
  // A caller would take it for one that does not answer.
  actions_.SetStatus(absl::UnavailableError("purged, but not written down"));
  EXPECT_EQ(
      Stats(Connect().get()).status(),
      absl::FailedPreconditionError(path_ + ": purged, but not written down"));
}

TEST_F(ServerTest, UnknownMethodsAndBadMessagesAreRefused) {
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(Raw("Destroy", "").error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(TestCall(Channel(), "/other.Service/Stats")
                .Unary("", std::make_unique<std::string>().get())
                .error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  const grpc::Status lengthy = Raw(std::string(20'000, 'M'), "");
  EXPECT_EQ(lengthy.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_LT(lengthy.error_message().size(), 200u);
  const grpc::Status bad = Raw("Purge", "\xff\xff\xff");
  EXPECT_EQ(bad.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(bad.error_message(),
            "the message is no fncache.admin.v1.PurgeRequest");
  EXPECT_TRUE(actions_.asked().empty());
}

TEST_F(ServerTest, ACallWithoutOrWithTwoMessagesIsRefused) {
  ASSERT_TRUE(Start().ok());
  TestCall none(Channel(), "/fncache.admin.v1.Admin/Stats");
  ASSERT_TRUE(none.Start());
  none.HalfClose();
  EXPECT_EQ(none.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  TestCall two(Channel(), "/fncache.admin.v1.Admin/Stats");
  ASSERT_TRUE(two.Start());
  two.Write("");
  two.Write("");
  two.HalfClose();
  EXPECT_EQ(two.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(actions_.asked().empty());
}

TEST_F(ServerTest, CompressedRequestsAreRead) {
  ASSERT_TRUE(Start().ok());
  v1::PurgeRequest request;
  request.mutable_of_function()->set_function(std::string(500, 'f'));
  EXPECT_TRUE(
      Raw("Purge", request.SerializeAsString(), /*compressed=*/true).ok());
  ASSERT_EQ(actions_.asked().size(), 1u);
  EXPECT_THAT(actions_.asked()[0], HasSubstr(std::string(500, 'f')));
}

TEST_F(ServerTest, RequestsAreBoundedAndLookUpsMayBeLarge) {
  options_.max_lookup_bytes = 8 << 20;
  ASSERT_TRUE(Start().ok());
  v1::LookUpRequest look_up;
  look_up.set_request(std::string(8 << 20, 'r'));
  EXPECT_TRUE(Raw("LookUp", look_up.SerializeAsString()).ok());
  look_up.set_request(std::string(9 << 20, 'r'));
  EXPECT_EQ(Raw("LookUp", look_up.SerializeAsString()).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  v1::PurgeRequest purge;
  purge.mutable_of_function()->set_function(std::string(1 << 20, 'f'));
  EXPECT_EQ(Raw("Purge", purge.SerializeAsString()).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(actions_.asked(), ElementsAre("LookUp: large"));
}

TEST_F(ServerTest, SlowActionsDoNotHoldUpOthers) {
  absl::Notification go;
  actions_.before = [&go](const std::string& method) {
    if (method == "Purge") go.WaitForNotification();
  };
  ASSERT_TRUE(Start().ok());
  std::thread purger([this] {
    EXPECT_TRUE(
        Connect()
            ->Call(&v1::Admin::Stub::Purge, v1::PurgeRequest(), kPatience)
            .ok());
  });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Stats(Connect().get()).ok());
  go.Notify();
  purger.join();
}

TEST_F(ServerTest, ACallerMayLeaveDuringAnAction) {
  absl::Notification started;
  absl::Notification go;
  actions_.before = [&](const std::string& method) {
    if (method != "Purge") return;
    started.Notify();
    go.WaitForNotification();
  };
  ASSERT_TRUE(Start().ok());
  {
    TestCall call(Channel(), "/fncache.admin.v1.Admin/Purge");
    ASSERT_TRUE(call.Start());
    call.Write("");
    call.HalfClose();
    started.WaitForNotification();
    call.context().TryCancel();
    EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(Stats(Connect().get()).ok());
  go.Notify();
  EXPECT_TRUE(Stats(Connect().get()).ok());
  server_ = nullptr;  // it waits for the action, which needs `go`
}

TEST_F(ServerTest, StopsWhileAnActionRuns) {
  absl::Notification started;
  absl::Notification go;
  std::atomic<bool> over{false};
  actions_.before = [&](const std::string&) {
    started.Notify();
    go.WaitForNotification();
    absl::SleepFor(absl::Milliseconds(100));
    over = true;
  };
  ASSERT_TRUE(Start().ok());
  // The stop gives up the call, and then waits for the action.
  std::thread caller([this, &go] {
    const auto answer = Stats(Connect().get());
    EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
    go.Notify();
  });
  started.WaitForNotification();
  server_ = nullptr;
  EXPECT_TRUE(over) << "the action was not waited for";
  caller.join();
  EXPECT_EQ(ModeOf(path_), 0u);
}

TEST_F(ServerTest, RequestsThatDoNotComeAreBoundedAndGivenUp) {
  options_.patience = absl::Seconds(2);
  ASSERT_TRUE(Start().ok());
  const auto channel = Channel();
  std::vector<std::unique_ptr<TestCall>> hanging;
  for (size_t i = 0; i < Server::kMaxCalls; ++i) {
    hanging.push_back(
        std::make_unique<TestCall>(channel, "/fncache.admin.v1.Admin/Stats"));
    ASSERT_TRUE(hanging.back()->Start());
  }
  // One more is refused, at once, as soon as all of them have come.
  const auto client = Connect();
  EXPECT_TRUE(Eventually(
      [&] { return absl::IsResourceExhausted(Stats(client.get()).status()); }));
  for (const auto& call : hanging) {
    EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_TRUE(Stats(client.get()).ok());
}

TEST_F(ServerTest, AFloodOfConnectionsIsBoundedAndLoggedOnce) {
  std::atomic<size_t> refused{0};
  options_.connection_refused = [&] { ++refused; };
  ASSERT_TRUE(Start().ok());
  ::testing::internal::CaptureStderr();
  std::vector<int> idle;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
  for (size_t i = 0; i < 2 * Server::kMaxConnections; ++i) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(
        connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    idle.push_back(fd);
  }
  // Those beyond the bound are closed.
  EXPECT_TRUE(Eventually([&] {
    for (int& fd : idle) {
      char bytes[256];
      if (fd < 0) continue;
      if (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) == 0) {
        close(fd);
        fd = -1;
      }
    }
    size_t open = 0;
    for (const int fd : idle) open += fd >= 0 ? 1 : 0;
    return open <= Server::kMaxConnections;
  }));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr(absl::StrCat(
                       " warning closed a new connection to fncache admin: 64 "
                       "are open socket=",
                       path_, "\n")));
  EXPECT_EQ(log.find("closed a new"), log.rfind("closed a new"));
  EXPECT_TRUE(Eventually([&] { return refused == Server::kMaxConnections; }))
      << "each is counted: " << refused;
  for (const int fd : idle) {
    if (fd >= 0) close(fd);
  }
  EXPECT_TRUE(Eventually([&] { return Stats(Connect().get()).ok(); }));
}

TEST_F(ServerTest, WhatIsNoGrpcIsToldSo) {
  ASSERT_TRUE(Start().ok());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address),
            0);
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  ASSERT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char bytes[512];
  for (ssize_t n = 0; (n = recv(fd, bytes, sizeof bytes, 0)) > 0;) {
    answer.append(bytes, n);
  }
  close(fd);
  EXPECT_THAT(answer, HasSubstr("426 Upgrade Required"));
}

TEST_F(ServerTest, NobodyElseMayConnectFromTheFirstMoment) {
  const mode_t before = umask(0);
  std::atomic<bool> over{false};
  std::atomic<int> seen{0};
  std::thread watcher([&] {
    while (!over) {
      const mode_t mode = ModeOf(path_);
      if (mode == 0) continue;
      ++seen;
      EXPECT_EQ(mode, static_cast<mode_t>(S_IFSOCK | 0600));
    }
  });
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(Start().ok());
    server_ = nullptr;
  }
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(Eventually([&] { return seen > 0; }));
  over = true;
  watcher.join();
  umask(before);
  EXPECT_EQ(ModeOf(path_), static_cast<mode_t>(S_IFSOCK | 0600));
}

TEST_F(ServerTest, IsRemovedAtTheEnd) {
  ASSERT_TRUE(Start().ok());
  server_ = nullptr;
  EXPECT_EQ(ModeOf(path_), 0u);
}

TEST_F(ServerTest, ASocketOfADeadProcessIsTakenOver) {
  close(ListenAt(path_));
  ASSERT_NE(ModeOf(path_), 0u);
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(ModeOf(path_), static_cast<mode_t>(S_IFSOCK | 0600));
  EXPECT_TRUE(Stats(Connect().get()).ok());
}

TEST_F(ServerTest, ALiveOnesIsNot) {
  const int fd = ListenAt(path_);
  const absl::Status status = Start();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_EQ(status.message(), path_ + ": another process serves it");
  EXPECT_NE(ModeOf(path_), 0u);
  close(fd);
}

TEST_F(ServerTest, OtherFilesAreLeftAlone) {
  WriteFile(path_, "precious");
  const absl::Status status = Start();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
  EXPECT_EQ(testing::ReadFile(path_), "precious");
}

TEST_F(ServerTest, AnothersSocketInItsPlaceIsLeftAlone) {
  ASSERT_TRUE(Start().ok());
  ASSERT_EQ(unlink(path_.c_str()), 0);
  const int fd = ListenAt(path_);
  server_ = nullptr;
  EXPECT_NE(ModeOf(path_), 0u);
  close(fd);
}

TEST_F(ServerTest, OfSeveralThatFindADeadSocketOrNoneOneListens) {
  for (int round = 0; round < 20; ++round) {
    if (round % 2 == 0) close(ListenAt(path_));
    options_.path = path_;
    std::vector<absl::StatusOr<std::unique_ptr<Server>>> started(4);
    std::vector<std::thread> threads;
    threads.reserve(started.size());
    for (auto& one : started) {
      threads.emplace_back(
          [this, &one] { one = Server::Start(options_, &actions_); });
    }
    for (std::thread& thread : threads) thread.join();
    int running = 0;
    for (const auto& one : started) {
      running += one.ok() ? 1 : 0;
      if (!one.ok()) {
        EXPECT_TRUE(absl::IsAlreadyExists(one.status())) << one.status();
      }
    }
    EXPECT_EQ(running, 1);
    // And it is the one that can be reached.
    EXPECT_TRUE(Stats(Connect().get()).ok());
  }
}

TEST_F(ServerTest, PathsThatAreTooLongNameTheLimit) {
  path_ = dir_.File(std::string(108 - dir_.path().size() - 1, 's'));
  const absl::Status status = Start();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            absl::StrCat(path_,
                         " has 108 bytes; the path of a unix socket has "
                         "at most 107"));
  path_.pop_back();
  EXPECT_TRUE(Start().ok());
}

TEST_F(ServerTest, AFolderThatIsNotThereIsNamed) {
  path_ = dir_.File("none/admin.sock");
  const absl::Status status = Start();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat(path_, ": No such file or directory")));
}

}  // namespace
}  // namespace fncache::proxy::admin
