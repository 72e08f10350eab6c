// SPDX-License-Identifier: Apache-2.0
#include "resp/node_client.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "resp/cluster.h"

namespace fncache::resp {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A node that is down is retried after kSoon, then every kRetry.
constexpr milliseconds kSoon(100);
constexpr seconds kRetry(1);
// Where the name did not resolve in time, the delay is kNameRetry at first and
// then twice the one before, at most kLongestResolver: by then the system's
// resolver, a thread that libcurl leaves behind, has ended.
constexpr seconds kNameRetry(2);
constexpr seconds kLongestResolver(60);
// Time between two connections that are opened to a node that is up.
constexpr milliseconds kPace(10);
// A connection that has been idle for this long gets a PING.
constexpr seconds kIdle(1);
// The node is down after as many lookups in a row without a reply, and after
// one other command that had this time.
constexpr int kMostUnanswered = 3;
constexpr milliseconds kWholeTime(900);
// Bound of replies in the background.
constexpr size_t kSmallReply = 64 << 10;

// Whether an error says that the node is down. READONLY ends with new
// connections, too.
bool SaysDown(absl::string_view words) {
  for (const char* const code : {"LOADING", "MASTERDOWN", "CLUSTERDOWN",
                                 "NOAUTH", "WRONGPASS", "NOPERM", "READONLY"}) {
    if (absl::StartsWith(words, code)) return true;
  }
  return false;
}

Answer Stopped() { return {Outcome::kDown, {}, "the client stops"}; }

}  // namespace

NodeClient::NodeClient(Owner* owner, Peer peer, const std::string& secret)
    : owner_(owner), peer_(std::move(peer)) {
  ++owner_->fresh;
  node_.address = Words(AddressOf(peer_.endpoint), secret);
  node_.since = absl::Now();
  thread_ = std::thread([this] { Work(); });
}

NodeClient::~NodeClient() {
  Stop();
  thread_.join();
  MutexLock lock(&mutex_);
  if (up_since_ == Clock::time_point()) --owner_->fresh;
}

void NodeClient::Stop() {
  MutexLock lock(&mutex_);
  stop_ = true;
  work_changed_.Signal();
  idle_changed_.SignalAll();
}

bool NodeClient::ended() const {
  MutexLock lock(&mutex_);
  return ended_ && Clock::now() >= resolvers_end_;
}

std::string NodeClient::secret() const {
  MutexLock lock(&mutex_);
  return secret_;
}

Node NodeClient::figures() const {
  MutexLock lock(&mutex_);
  return node_;
}

Answer NodeClient::Run(const Command& command, bool asking) {
  std::unique_ptr<Connection> connection;
  uint64_t generation = 0;
  Clock::duration left;
  {
    MutexLock lock(&mutex_);
    while (true) {
      if (owner_->stop) return Stopped();
      if (node_.state == Node::State::kConnecting) {
        return {Outcome::kDown, {}, "not connected yet"};
      }
      if (node_.state == Node::State::kDown) {
        return {Outcome::kDown, {}, node_.why};
      }
      left = command.deadline - Clock::now();
      if (left <= Clock::duration::zero()) {
        return {Outcome::kTimeout, {}, "no idle connection in time"};
      }
      if (!idle_.empty()) break;
      idle_changed_.WaitWithTimeout(&mutex_, absl::FromChrono(left));
    }
    connection = std::move(idle_.back().connection);
    idle_.pop_back();
    generation = generation_;
  }
  Answer answer;
  if (asking) {
    answer = connection->Call({"ASKING"}, command.deadline, kSmallReply);
  }
  if (!asking || answer.outcome == Outcome::kReply) {
    answer = connection->Call(command.words, command.deadline,
                              command.max_reply_bytes);
  }
  if (owner_->stop && answer.outcome != Outcome::kReply) return Stopped();
  absl::optional<Clock::duration> limit;
  if (!command.is_lookup) limit = left;
  Settle(std::move(connection), generation, limit, &answer);
  return answer;
}

void NodeClient::Settle(std::unique_ptr<Connection> connection,
                        uint64_t generation,
                        absl::optional<Clock::duration> limit, Answer* answer) {
  const Connection::State state = connection->state();
  if (state == Connection::State::kBroken) ++owner_->broken;
  const bool says_down =
      answer->outcome == Outcome::kError && SaysDown(answer->why);
  if (says_down) answer->outcome = Outcome::kDown;
  MutexLock lock(&mutex_);
  if (generation != generation_) return;
  const bool late = state == Connection::State::kLate;
  if (state == Connection::State::kReady) unanswered_ = 0;
  if (late && !limit) ++unanswered_;
  if (says_down || state == Connection::State::kClosed) {
    Down(answer->why);
  } else if (unanswered_ >= kMostUnanswered) {
    Down(absl::StrCat(kMostUnanswered, " lookups got no reply"));
  } else if (late && limit >= kWholeTime) {
    Down("a command got no reply");
  } else if (state == Connection::State::kReady) {
    idle_.push_back({std::move(connection), Clock::now()});
    idle_changed_.Signal();
  } else {
    --open_;
    work_changed_.Signal();
  }
}

void NodeClient::Down(const std::string& why) {
  const Clock::time_point now = Clock::now();
  const bool soon =
      node_.state == Node::State::kConnecting ||
      (node_.state == Node::State::kUp && now - up_since_ >= kRetry);
  next_attempt_ = now + kSoon;
  if (!soon) next_attempt_ = std::max(next_attempt_, attempt_ + kRetry);
  if (node_.state != Node::State::kDown) node_.since = absl::Now();
  node_.state = Node::State::kDown;
  node_.why = why;
  ++generation_;
  open_ = 0;
  unanswered_ = 0;
  idle_.clear();
  idle_changed_.SignalAll();
  work_changed_.Signal();
}

void NodeClient::Work() {
  MutexLock lock(&mutex_);
  while (!stop_) {
    const Clock::time_point now = Clock::now();
    const bool up = node_.state == Node::State::kUp;
    const bool missing = !up || open_ < owner_->options.connections;
    Clock::time_point due = missing ? next_attempt_ : now + kIdle;
    if (!idle_.empty()) due = std::min(due, idle_.front().since + kIdle);
    if (now < due) {
      work_changed_.WaitWithTimeout(&mutex_, absl::FromChrono(due - now));
      continue;
    }
    const uint64_t generation = generation_;
    if (missing && now >= next_attempt_) {
      attempt_ = now;
      next_attempt_ = now + kPace;
      mutex_.Unlock();
      Add(generation);
    } else {
      std::unique_ptr<Connection> idle = std::move(idle_.front().connection);
      idle_.pop_front();
      mutex_.Unlock();
      Ping(std::move(idle), generation);
    }
    mutex_.Lock();
  }
  ended_ = true;
}

void NodeClient::Ping(std::unique_ptr<Connection> connection,
                      uint64_t generation) {
  const Clock::duration limit = absl::ToChronoNanoseconds(kBackgroundLimit);
  Answer answer = connection->Call({"PING"}, Clock::now() + limit, kSmallReply);
  Settle(std::move(connection), generation, limit, &answer);
}

void NodeClient::Add(uint64_t generation) {
  Node said;
  auto opened = Open(&said);
  MutexLock lock(&mutex_);
  const Clock::time_point now = Clock::now();
  const bool unresolved = absl::IsDeadlineExceeded(opened.status());
  name_delay_ = !unresolved
                    ? Clock::duration::zero()
                    : std::clamp<Clock::duration>(2 * name_delay_, kNameRetry,
                                                  kLongestResolver);
  if (unresolved) resolvers_end_ = now + kLongestResolver;
  if (generation != generation_) return;
  if (!opened.ok()) {
    Down(std::string(opened.status().message()));
    next_attempt_ = std::max(next_attempt_, now + name_delay_);
    return;
  }
  if (node_.state != Node::State::kUp) {
    node_.state = Node::State::kUp;
    node_.since = absl::Now();
    node_.why.clear();
    if (up_since_ == Clock::time_point()) --owner_->fresh;
    up_since_ = now;
  }
  node_.version = said.version;
  node_.role = said.role;
  ++open_;
  idle_.push_back({*std::move(opened), now});
  idle_changed_.Signal();
}

absl::StatusOr<std::unique_ptr<Connection>> NodeClient::Open(Node* said) {
  const ClientOptions& options = owner_->options;
  const Clock::time_point deadline =
      Clock::now() + absl::ToChronoNanoseconds(kBackgroundLimit);
  absl::optional<Login> login;
  if (options.login) {
    auto read = options.login();
    if (!read.ok()) return read.status();
    login = *std::move(read);
  }
  const std::string secret = login ? login->password : "";
  {
    MutexLock lock(&mutex_);
    secret_ = secret;
  }
  auto connection =
      Connection::Open(peer_, options.tls_dir, secret, &owner_->stop);
  if (!connection.ok()) return connection;
  const auto ask = [&](const std::vector<absl::string_view>& words) {
    Answer answer = (*connection)->Call(words, deadline, kSmallReply);
    if ((*connection)->state() == Connection::State::kBroken) ++owner_->broken;
    return answer;
  };
  if (login) {
    std::vector<absl::string_view> words = {"AUTH", login->password};
    if (!login->username.empty())
      words.insert(words.begin() + 1, login->username);
    const Answer answer = ask(words);
    if (answer.outcome != Outcome::kReply) {
      // A server without AUTH repeats its arguments, and may cut them.
      return absl::UnavailableError(
          answer.why.substr(0, answer.why.find(", with args")));
    }
  }
  const Answer pong = ask({"PING"});
  if (pong.outcome != Outcome::kReply) return absl::UnavailableError(pong.why);
  // Without arguments it changes nothing. Not every user may call it.
  const Answer hello = ask({"HELLO"});
  const std::vector<Reply>& facts = hello.reply.elements;
  for (size_t i = 0; i + 1 < facts.size(); i += 2) {
    const std::string fact = Words(facts[i + 1].text, secret);
    if (facts[i].text == "version") said->version = fact;
    if (facts[i].text == "role") said->role = fact;
  }
  if ((*connection)->state() != Connection::State::kReady) {
    return absl::UnavailableError(hello.why);
  }
  if (options.probe.empty()) return connection;
  const Answer probe = ask({options.probe.begin(), options.probe.end()});
  if (probe.outcome == Outcome::kReply) return connection;
  if (probe.outcome != Outcome::kError || !ParseRedirection(probe.reply.text)) {
    return absl::UnavailableError(probe.why);
  }
  owner_->moved(*this, probe.reply.text);
  return connection;
}

}  // namespace fncache::resp
