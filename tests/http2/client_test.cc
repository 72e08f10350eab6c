// SPDX-License-Identifier: Apache-2.0
// A client and functions that make it wait, on this thread, round robin.
#include "http2/client.h"

#include <fcntl.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http2/target.h"
#include "tests/common/eventually.h"
#include "tests/common/loopback_socket.h"
#include "tests/common/server_peer.h"
#include "tests/http2/connection_test.h"

namespace fncache::http2 {
namespace {

using ::fncache::testing::LoopbackSocket;
using ::fncache::testing::ServerPeer;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kNever = absl::Hours(1);

nghttp2_settings_entry Streams(uint32_t most) {
  return {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, most};
}

// Takes connections and answers in kind.
class Function {
 public:
  const LoopbackSocket& socket() const { return socket_; }
  void Listen() const {
    socket_.Listen(100);
    Unblock(socket_.fd());
  }
  void Turn() {
    for (int fd = 0; listens_ && (fd = socket_.Accept()) >= 0;) {
      Unblock(fd);
      ServerPeer::Options options;
      options.settings = settings;
      options.takes_nothing = takes_nothing;
      peers.push_back(std::make_unique<ServerPeer>(fd, options));
      if (on_peer != nullptr) on_peer(peers.back().get());
    }
    for (const auto& peer : peers) peer->Turn();
  }
  void Stop() {
    peers.clear();
    socket_.Shutdown();
    listens_ = false;
  }

  std::vector<nghttp2_settings_entry> settings;  // that it begins with
  bool takes_nothing = false;                    // the next of them
  std::function<void(ServerPeer*)> on_peer;
  std::deque<std::unique_ptr<ServerPeer>> peers;

 private:
  static void Unblock(int fd) {
    ASSERT_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
  }

  const LoopbackSocket socket_;
  bool listens_ = true;
};

void TellToGo(ServerPeer* peer) {
  nghttp2_submit_goaway(peer->session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR,
                        nullptr, 0);
}

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() {
    options_.connection.server = false;
    options_.changed = [this](bool reachable, const std::string& why) {
      (reachable ? found_ : lost_).push_back(why);
    };
  }
  ~ClientTest() override {
    for (const auto& request : requests_) client_->Forget(request.get());
    client_ = nullptr;
    // The event loop deletes connections at the end of an iteration.
    loop_.RunOnce(0);
  }

  // A client of these addresses.
  void Start(const std::vector<const Function*>& functions) {
    Target target;
    for (const Function* function : functions) {
      auto one = ParseTarget(function->socket().target());
      ASSERT_TRUE(one.ok()) << one.status();
      target.name = one->name;
      target.endpoints.push_back(one->endpoints.at(0));
    }
    client_ = std::make_unique<Client>(&loop_, std::move(target), &options_);
  }
  void Start() {
    function_.Listen();
    Start({&function_});
  }
  void Turn() {
    loop_.RunOnce(0);
    function_.Turn();
  }
  bool Until(const std::function<bool()>& condition) {
    return Eventually([&] {
      Turn();
      return condition();
    });
  }
  Request* Begin() {
    requests_.push_back(std::make_unique<Request>("/echo", "hello"));
    Request* const request = requests_.back().get();
    Connection* const connection = client_->Take();
    if (connection != nullptr) {
      request->OnConnection(*connection);
    } else {
      client_->Wait(request);
    }
    return request;
  }
  size_t Answered() const {
    size_t sum = 0;
    for (const auto& request : requests_) sum += request->answer == "hello";
    return sum;
  }

  ClientOptions options_;
  std::vector<std::string> lost_;   // reported reasons
  std::vector<std::string> found_;  // each time that it was reachable again
  std::vector<std::unique_ptr<Request>> requests_;
  Loop loop_;
  Function function_;
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, StreamsThatAreAllowedLaterAreForThoseWhoWait) {
  // The one connection has to do.
  options_.first_pause = options_.longest_pause = kNever;
  function_.settings = {Streams(0)};
  Start();
  for (int i = 0; i < 20; ++i) Begin();
  ASSERT_TRUE(Until([&] { return client_->ready() == 1; }));
  EXPECT_EQ(client_->Take(), nullptr);
  const nghttp2_settings_entry more = Streams(10);
  nghttp2_submit_settings(function_.peers[0]->session, NGHTTP2_FLAG_NONE, &more,
                          1);
  EXPECT_TRUE(Until([&] { return Answered() == 20; }));
  EXPECT_THAT(function_.peers, SizeIs(1));
}

TEST_F(ClientTest, ConnectionsWithoutStreamsAreNoReasonForMoreAtOnce) {
  options_.first_pause = options_.longest_pause = kNever;
  function_.settings = {Streams(0)};
  Start();
  Begin();
  ASSERT_TRUE(Until([&] { return client_->ready() == 1; }));
  for (int i = 0; i < 20; ++i) Begin();
  for (int i = 0; i < 100; ++i) Turn();
  EXPECT_THAT(function_.peers, SizeIs(1));
}

// Another server may be behind that address.
TEST_F(ClientTest, ConnectionsWithoutStreamsAreTriedAgainAndNotCollected) {
  options_.first_pause = options_.longest_pause = absl::Milliseconds(1);
  function_.settings = {Streams(0)};
  Start();
  Begin();
  size_t most = 0;
  ASSERT_TRUE(Until([&] {
    most = std::max(most, client_->connections());
    return function_.peers.size() == 20;
  }));
  EXPECT_LE(most, 5U);
  EXPECT_GE(most, 4U);
  function_.settings = {};
  EXPECT_TRUE(Until([&] { return Answered() == 1; }));
}

TEST_F(ClientTest, AFunctionThatAllowsNoStreamsIsToldAsOneThatIsNotThere) {
  options_.first_pause = options_.longest_pause = kNever;
  function_.settings = {Streams(0)};
  Start();
  Begin();
  ASSERT_TRUE(Until([&] { return !lost_.empty(); }));
  EXPECT_THAT(lost_, ElementsAre("the function allows no streams"));
  EXPECT_THAT(found_, IsEmpty());
  EXPECT_EQ(client_->ready(), 1u);
  const nghttp2_settings_entry more = Streams(10);
  nghttp2_submit_settings(function_.peers[0]->session, NGHTTP2_FLAG_NONE, &more,
                          1);
  EXPECT_TRUE(Until([&] { return Answered() == 1; }));
  EXPECT_THAT(lost_, SizeIs(1));
  EXPECT_THAT(found_, SizeIs(1));
}

// nginx tells each connection to go after some calls.
TEST_F(ClientTest, ConnectionsThatWereOfUseAreMadeAnewAtOnce) {
  options_.first_pause = options_.longest_pause = kNever;
  Start();
  for (size_t i = 1; i <= 10; ++i) {
    Begin();
    ASSERT_TRUE(Until([&] { return Answered() == i; }));
    TellToGo(function_.peers.back().get());
    ASSERT_TRUE(Until([&] {
      return client_->ready() == 1 && function_.peers.size() == i + 1;
    }));
  }
  EXPECT_THAT(lost_, IsEmpty());
}

// As a process ends, its listener may still accept a connection that is never
// served.
TEST_F(ClientTest, OneThatIsTakenByAFunctionThatGoesIsNotWhy) {
  Start();
  Begin();
  ASSERT_TRUE(Until([&] { return Answered() == 1; }));
  function_.on_peer = [this](ServerPeer*) { function_.Stop(); };
  function_.peers.clear();
  ASSERT_TRUE(Until([&] { return !lost_.empty(); }));
  EXPECT_THAT(lost_, ElementsAre(HasSubstr("Connection refused")));
}

// A call whose body is not taken has used up the connection's window.
TEST_F(ClientTest, OthersDoNotWaitForABodyThatIsNotTaken) {
  function_.takes_nothing = true;
  Start();
  requests_.push_back(
      std::make_unique<Request>("/hang", std::string(1 << 20, 'x')));
  client_->Wait(requests_.back().get());
  ASSERT_TRUE(Until([&] { return client_->ready() == 1; }));
  function_.takes_nothing = false;
  // That window has been used up for a while.
  ASSERT_TRUE(Until([&] { return client_->Take() == nullptr; }));
  Begin();
  EXPECT_TRUE(Until([&] { return Answered() == 1; }));
  EXPECT_THAT(function_.peers, SizeIs(2));
}

// There is no name to be resolved, after which they would go otherwise.
TEST_F(ClientTest, ConnectionsOfABurstGo) {
  options_.resolve_every = absl::Milliseconds(50);
  function_.settings = {Streams(1)};
  Start();
  for (int i = 0; i < 5; ++i) Begin();
  ASSERT_TRUE(Until([&] { return Answered() == 5; }));
  EXPECT_THAT(function_.peers.size(), Gt(1u));
  EXPECT_TRUE(Until([&] { return client_->connections() == 1; }));
}

TEST_F(ClientTest, CallsThatWaitForStreamsSayWhatTheyWaitFor) {
  options_.first_pause = options_.longest_pause = kNever;
  options_.most_connections = 1;
  function_.settings = {Streams(0)};
  Start();
  Begin();
  EXPECT_EQ(client_->WhyWaiting(), "connecting takes long");
  ASSERT_TRUE(Until([&] { return client_->ready() == 1; }));
  EXPECT_EQ(client_->WhyWaiting(), "the function allows no streams");
  const nghttp2_settings_entry one = Streams(1);
  ServerPeer* const peer = function_.peers[0].get();
  peer->on_request = [](int32_t) {};
  nghttp2_submit_settings(peer->session, NGHTTP2_FLAG_NONE, &one, 1);
  ASSERT_TRUE(Until([&] { return peer->complete.size() == 1; }));
  Begin();
  EXPECT_EQ(client_->WhyWaiting(),
            "the function allows no more streams, connections: 1");
  EXPECT_EQ(client_->why(), "");
}

// It is not reachable in between, and no news.
TEST_F(ClientTest, AFunctionThatTellsEveryConnectionToGoStaysUnreachable) {
  options_.first_pause = options_.longest_pause = kNever;
  function_.on_peer = &TellToGo;
  Start();
  EXPECT_EQ(client_->Take(), nullptr);
  ASSERT_TRUE(Until([&] { return !lost_.empty(); }));
  EXPECT_THAT(lost_, SizeIs(1));
  options_.first_pause = options_.longest_pause = absl::Milliseconds(1);
  client_->Renew();
  ASSERT_TRUE(Until([&] { return function_.peers.size() == 20; }));
  EXPECT_THAT(found_, IsEmpty());
  EXPECT_THAT(lost_, Each(lost_[0]));
  // Until a call is answered.
  function_.on_peer = nullptr;
  ASSERT_TRUE(Until([&] { return client_->ready() == 1; }));
  for (int i = 0; i < 10; ++i) Turn();
  EXPECT_THAT(found_, IsEmpty());
  Begin();
  ASSERT_TRUE(Until([&] { return Answered() == 1; }));
  EXPECT_TRUE(Until([&] { return !found_.empty(); }));
  EXPECT_THAT(found_, SizeIs(1));
}

TEST_F(ClientTest, AConnectionThatLastsIsReachable) {
  options_.proof = absl::Milliseconds(100);
  options_.first_pause = options_.longest_pause = kNever;
  function_.on_peer = &TellToGo;
  Start();
  EXPECT_EQ(client_->Take(), nullptr);
  ASSERT_TRUE(Until([&] { return !lost_.empty(); }));
  function_.on_peer = nullptr;
  client_->Renew();
  ASSERT_TRUE(Until([&] { return client_->ready() == 1; }));
  EXPECT_TRUE(Until([&] { return !found_.empty(); }));
  EXPECT_EQ(client_->ready(), 1U);
  EXPECT_THAT(found_, SizeIs(1));
}

// One that was of use before it ended need not prove it again.
TEST_F(ClientTest, AFunctionThatComesBackIsReachableAtOnce) {
  options_.proof = kNever;
  Start();
  Begin();
  ASSERT_TRUE(Until([&] { return Answered() == 1; }));
  options_.first_pause = options_.longest_pause = kNever;
  // It ends, and for a while no server answers.
  function_.peers.clear();
  ASSERT_TRUE(Eventually([&] {
    loop_.RunOnce(0);
    return !lost_.empty();
  }));
  EXPECT_THAT(lost_, SizeIs(1));
  client_->Renew();
  EXPECT_TRUE(Until([&] { return !found_.empty(); }));
  EXPECT_THAT(found_, SizeIs(1));
}

TEST_F(ClientTest, ARefusedAddressIsNoNewsWhileAnotherIsTried) {
  const Function refusing;
  function_.Listen();
  for (const bool first : {true, false}) {
    SCOPED_TRACE(first);
    client_ = nullptr;
    if (first) {
      Start({&refusing, &function_});
    } else {
      Start({&function_, &refusing});
    }
    EXPECT_EQ(client_->Take(), nullptr);
    // The kernel has accepted the other connection, and no server speaks on it.
    ASSERT_TRUE(Eventually([&] {
      loop_.RunOnce(0);
      return !client_->why().empty();
    }));
    EXPECT_THAT(client_->why(), HasSubstr("Connection refused"));
    EXPECT_THAT(lost_, IsEmpty());
    ASSERT_TRUE(Until([&] { return client_->ready() == 1; }));
    EXPECT_THAT(lost_, IsEmpty());
    EXPECT_THAT(found_, IsEmpty());
  }
}

TEST_F(ClientTest, AddressesThatAllRefuseAreNews) {
  const Function one, other;
  Start({&one, &other});
  EXPECT_EQ(client_->Take(), nullptr);
  ASSERT_TRUE(Until([&] { return !lost_.empty(); }));
  EXPECT_THAT(lost_, Each(HasSubstr("Connection refused")));
  EXPECT_THAT(found_, IsEmpty());
}

// Its last calls do not prevent the report and the retry.
TEST_F(ClientTest, AFunctionThatOnlyFinishesItsCallsIsNotReachable) {
  options_.first_pause = options_.longest_pause = absl::Milliseconds(1);
  Start();
  function_.on_peer = [](ServerPeer* peer) {
    peer->on_request = [](int32_t) {};
  };
  Begin();
  ASSERT_TRUE(Until([&] {
    return !function_.peers.empty() && function_.peers[0]->complete.size() == 1;
  }));
  // New connections are refused from now on.
  const std::unique_ptr<ServerPeer> last = std::move(function_.peers[0]);
  function_.Stop();
  nghttp2_submit_goaway(last->session, NGHTTP2_FLAG_NONE, 1, NGHTTP2_NO_ERROR,
                        nullptr, 0);
  last->Turn();
  EXPECT_TRUE(Until([&] { return lost_.size() >= 3; }));
  EXPECT_EQ(client_->connections(), 1U);
  last->Answer(1, "hello");
  EXPECT_TRUE(Until([&] {
    last->Turn();
    return Answered() == 1;
  }));
}

}  // namespace
}  // namespace fncache::http2
