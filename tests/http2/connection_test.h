// SPDX-License-Identifier: Apache-2.0
// ConnectionTest: a server that answers with what it was sent, and a client of
// it, each on a loop and thread of its own.
#ifndef FNCACHE_TESTS_HTTP2_CONNECTION_TEST_H_
#define FNCACHE_TESTS_HTTP2_CONNECTION_TEST_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "http2/client.h"
#include "http2/connection.h"
#include "http2/server.h"
#include "http2/target.h"
#include "tests/common/eventually.h"

namespace fncache::http2 {

// A loop on a thread of its own.
class RunningLoop {
 public:
  RunningLoop() : thread_([this] { loop_.Run(); }) {}
  ~RunningLoop() { Stop(); }
  Loop* loop() { return &loop_; }
  // Runs `task` there, and waits for it.
  void Do(const std::function<void()>& task) {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    loop_.Post([&] {
      task();
      const std::lock_guard<std::mutex> lock(mutex);
      done = true;
      changed.notify_one();
    });
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return done; });
  }
  void Stop() {
    if (!thread_.joinable()) return;
    loop_.Post([this] { loop_.Quit(); });
    thread_.join();
  }

 private:
  Loop loop_;
  std::thread thread_;
};

// Answers with what it was sent, and trailers; /hang never answers, /refuse
// refuses the first time.
class EchoHandler final : public Server::Handler {
 public:
  StreamUser* OnRequest(Stream& stream) override {
    ++requests;
    last = &stream.connection();
    if (stream.oversized()) {
      Fields fields;
      fields.Add(":status", "431");
      if (!why.empty()) fields.Add("x-why", why);
      stream.Answer(fields, /*end=*/true);
      return nullptr;
    }
    if (stream.fields().Find(":path") == "/refuse" && refusals-- > 0) {
      return nullptr;
    }
    return new Call(this, stream.fields().Find(":path") == "/hang");
  }
  int busy() const override { return running.load(); }

  std::atomic<int> requests{0};
  std::atomic<Connection*> last{nullptr};
  std::atomic<int> refusals{0};
  std::atomic<int> running{0};
  std::atomic<int> resets{0};
  std::string why;  // The answer to an oversized request.

 private:
  class Call final : public StreamUser {
   public:
    Call(EchoHandler* owner, bool hangs) : owner_(owner), hangs_(hangs) {
      ++owner_->running;
    }
    void OnData(Stream& stream, absl::string_view bytes) override {
      if (hangs_) return;
      stream.Consume(bytes.size());
      body_.append(bytes.data(), bytes.size());
    }
    void OnPeerEnd(Stream& stream) override {
      if (hangs_) return;
      Fields fields;
      fields.Add(":status", "200");
      fields.Add("x-size", absl::StrCat(body_.size()));
      stream.Answer(fields, /*end=*/false);
      stream.Send(Slice::Copy(body_));
      Fields trailers;
      trailers.Add("x-end", "good ");
      stream.EndWith(std::move(trailers));
    }
    void OnClosed(Stream& /*stream*/, const StreamEnd& end) override {
      if (end.kind != StreamEnd::Kind::kComplete) ++owner_->resets;
      --owner_->running;
      delete this;
    }

   private:
    EchoHandler* const owner_;
    const bool hangs_;
    std::string body_;
  };
};

// A request, and what came of it.
class Request final : public StreamUser, public Client::Waiter {
 public:
  Request(std::string path, std::string body)
      : path_(std::move(path)), body_(std::move(body)) {}

  void OnConnection(Connection& connection) override {
    Fields fields;
    fields.Add(":method", "POST");
    fields.Add(":scheme", "http");
    fields.Add(":path", path_);
    fields.Add(":authority", "test");
    for (const auto& [name, value] : more) fields.Add(name, value);
    stream = connection.Open(fields, /*end=*/false, this);
    stream->Send(Slice::Copy(body_));
    if (!stays_open) stream->End();
  }
  void OnAnswer(Stream& stream) override {
    status = std::string(stream.fields().Find(":status"));
  }
  void OnData(Stream& stream, absl::string_view bytes) override {
    stream.Consume(bytes.size());
    answer.append(bytes.data(), bytes.size());
  }
  void OnTrailers(Stream& stream) override {
    trailer = std::string(stream.trailers().Find("x-end"));
  }
  void OnPeerEnd(Stream& /*stream*/) override {}
  void OnClosed(Stream& /*stream*/, const StreamEnd& how) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    end = how;
    over_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return over_; });
  }

  std::vector<std::pair<std::string, std::string>> more;
  bool stays_open = false;
  Stream* stream = nullptr;
  std::string status;
  std::string answer;
  std::string trailer;
  StreamEnd end;

 private:
  const std::string path_;
  const std::string body_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
};

class ConnectionTest : public ::testing::Test {
 protected:
  ConnectionTest() {
    client_options_.connection.server = false;
    client_options_.changed = [this](bool reachable, const std::string& why) {
      const std::lock_guard<std::mutex> lock(mutex_);
      reachable_ = reachable;
      why_ = why;
    };
  }
  ~ConnectionTest() override {
    loop_.Do([this] { client_ = nullptr; });
    if (server_ != nullptr) {
      server_->Stop();
      server_->Join();
      EXPECT_EQ(server_->connections(), 0);
    }
    loop_.Stop();
    server_loop_.Stop();
  }

  void Start(const std::string& address = "127.0.0.1:0") {
    auto server = Server::Listen(address, server_options_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    server_->Start({{server_loop_.loop(), &handler_}});
    Connect(server_->address());
  }
  void Connect(const std::string& target) {
    auto parsed = ParseTarget(target);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    loop_.Do([&] {
      client_ = std::make_unique<Client>(loop_.loop(), *std::move(parsed),
                                         &client_options_);
    });
  }
  void Begin(Request* request) {
    loop_.Do([&] {
      Connection* const connection = client_->Take();
      if (connection != nullptr) return request->OnConnection(*connection);
      client_->Wait(request);
    });
  }
  std::string why() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return why_;
  }

  ServerOptions server_options_;
  ClientOptions client_options_;
  EchoHandler handler_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
  std::mutex mutex_;
  bool reachable_ = true;
  std::string why_;
  RunningLoop server_loop_;
  RunningLoop loop_;
};

}  // namespace fncache::http2

#endif  // FNCACHE_TESTS_HTTP2_CONNECTION_TEST_H_
