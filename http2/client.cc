// SPDX-License-Identifier: Apache-2.0
// It is one thing: resolving, connecting and choosing a connection change one
// list of peers.
#include "http2/client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace fncache::http2 {
namespace {

// A connection that lived this long (nanoseconds) was good: reconnecting may
// start at once.
constexpr int64_t kGood = 1'000'000'000;
// The shortest pause between two resolutions of a name.
constexpr absl::Duration kBetweenResolutions = absl::Seconds(1);
// A target whose good connection ended counts as unreachable after this long
// without another one. If reconnecting fails sooner, that failure is the
// reported reason.
constexpr absl::Duration kLost = absl::Seconds(1);
// Limit of connections to one address that allow no stream. The address may
// allow some later, and another connection may reach another server behind it.
constexpr size_t kMostUseless = 4;

constexpr char kNoStreams[] = "the function allows no streams";

// Calls may be given to it, now or when it has capacity.
bool IsUsable(const Connection& connection) {
  return connection.ready() && !connection.going_away();
}

// It is there, and its peer does not allow a single stream.
bool IsUseless(const Connection& connection) {
  return IsUsable(connection) && connection.streams() == 0 &&
         connection.peer_max_streams() == 0;
}

}  // namespace

// One address, and the connections to it.
struct Client::Peer {
  // There is one that lasts, or may.
  bool connected() const {
    return std::any_of(
        connections.begin(), connections.end(),
        [](const Connection* one) { return !one->going_away(); });
  }
  size_t CountUseless() const {
    return static_cast<size_t>(
        std::count_if(connections.begin(), connections.end(),
                      [](const Connection* one) { return IsUseless(*one); }));
  }

  Endpoint endpoint;
  std::vector<Connection*> connections;
  size_t connecting = 0;
  size_t next = 0;
  int failures = 0;      // in a row
  int useless = 0;       // connections in a row that allowed no stream
  bool leaving = false;  // no longer among the target's addresses
  std::vector<std::pair<Connection*, int64_t>> since;
  absl::optional<TimerId> again;
};

// A name that is being resolved, shared with the resolving thread.
struct Client::Resolution {
  std::mutex mutex;
  Client* client = nullptr;  // null: it has gone
};

Client::Client(Loop* loop, Target target, const ClientOptions* options)
    : loop_(loop), target_(std::move(target)), options_(*options) {}

Client::~Client() {
  draining_ = true;
  if (resolving_ != nullptr) {
    const std::lock_guard<std::mutex> lock(resolving_->mutex);
    resolving_->client = nullptr;
  }
  Cancel(&timer_);
  Cancel(&lost_);
  Cancel(&proof_);
  for (const auto& peer : peers_) {
    Cancel(&peer->again);
    while (!peer->connections.empty()) {
      peer->connections.back()->Close("the client stops");
    }
  }
}

void Client::Cancel(absl::optional<TimerId>* timer) {
  if (timer->has_value()) loop_->Cancel(**timer);
  timer->reset();
}

void Client::Start() {
  if (started_) return;
  started_ = true;
  if (target_.host.empty()) {
    SetEndpoints(target_.endpoints);
    TrimLater();
  } else {
    StartResolving();
  }
}

void Client::ResolveSoon() {
  if (target_.host.empty() || resolving_ != nullptr || draining_) return;
  Cancel(&timer_);
  const absl::Duration since = absl::Now() - resolved_;
  timer_ = loop_->After(
      std::max(absl::ZeroDuration(), kBetweenResolutions - since), [this] {
        timer_.reset();
        StartResolving();
      });
}

void Client::StartResolving() {
  if (resolving_ != nullptr || draining_) return;
  resolving_ = std::make_shared<Resolution>();
  resolving_->client = this;
  // The system's resolver may block for half a minute and cannot be cancelled.
  std::thread([resolution = resolving_, loop = loop_, host = target_.host,
               port = target_.port] {
    auto found = Resolve(host, port);
    const std::lock_guard<std::mutex> lock(resolution->mutex);
    if (resolution->client == nullptr) return;
    loop->Post([resolution, found = std::move(found)]() mutable {
      Client* client = nullptr;
      {
        const std::lock_guard<std::mutex> lock(resolution->mutex);
        client = resolution->client;
      }
      if (client != nullptr) client->OnResolved(std::move(found));
    });
  }).detach();
}

void Client::OnResolved(absl::StatusOr<std::vector<Endpoint>> found) {
  resolving_ = nullptr;
  resolved_ = absl::Now();
  absl::Duration next = options_.resolve_every;
  if (found.ok()) {
    failed_resolutions_ = 0;
    SetEndpoints(*std::move(found));
  } else {
    // The addresses that were there before may still be good.
    ++failed_resolutions_;
    next = std::min(options_.longest_pause,
                    options_.first_pause *
                        std::pow(1.6, std::min(failed_resolutions_, 10)));
    if (ready() == 0) Failed(std::string(found.status().message()));
  }
  if (draining_) return;
  // A failure may have set it.
  Cancel(&timer_);
  timer_ = loop_->After(next, [this] {
    timer_.reset();
    Trim();
    StartResolving();
  });
}

void Client::SetEndpoints(std::vector<Endpoint> endpoints) {
  for (const auto& peer : peers_) {
    const bool stays = std::find(endpoints.begin(), endpoints.end(),
                                 peer->endpoint) != endpoints.end();
    if (peer->leaving == !stays) continue;
    peer->leaving = !stays;
    if (stays) continue;
    Cancel(&peer->again);
    const std::vector<Connection*> connections = peer->connections;
    for (Connection* connection : connections) connection->GoAway();
  }
  for (Endpoint& endpoint : endpoints) {
    const bool known = std::any_of(peers_.begin(), peers_.end(),
                                   [&](const std::unique_ptr<Peer>& peer) {
                                     return peer->endpoint == endpoint;
                                   });
    if (known) continue;
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->endpoint = std::move(endpoint);
  }
  // All peers are in the list by now, so one that fails at once is not the only
  // one.
  for (const auto& peer : peers_) {
    if (peer->connections.empty() && !peer->again.has_value()) {
      Connect(peer.get());
    }
  }
  peers_.erase(std::remove_if(peers_.begin(), peers_.end(),
                              [](const std::unique_ptr<Peer>& peer) {
                                return peer->leaving &&
                                       peer->connections.empty();
                              }),
               peers_.end());
}

void Client::Connect(Peer* peer) {
  if (draining_ || peer->leaving) return;
  const int family = peer->endpoint.address.ss_family;
  const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  SSL* ssl = nullptr;
  std::string why;
  if (fd >= 0) {
    if (family != AF_UNIX) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      KeepAlive(fd);
    }
    const int result =
        connect(fd, reinterpret_cast<const sockaddr*>(&peer->endpoint.address),
                peer->endpoint.size);
    if (result == 0 || errno == EINPROGRESS) {
      if (options_.new_ssl != nullptr) ssl = options_.new_ssl();
      if (options_.new_ssl != nullptr && ssl == nullptr) why = "no TLS";
    } else {
      why = std::strerror(errno);
    }
  } else {
    why = std::strerror(errno);
  }
  if (!why.empty()) {
    if (fd >= 0) close(fd);
    ++peer->failures;
    ConnectLater(peer);
    return Failed(absl::StrCat(peer->endpoint.text, ": ", why));
  }
  if (ssl != nullptr) SSL_set_connect_state(ssl);
  ++peer->connecting;
  Connection* const connection =
      Connection::Create(loop_, fd, ssl, &options_.connection, this);
  peer->connections.push_back(connection);
  peer->since.emplace_back(connection, 0);
}

void Client::ConnectLater(Peer* peer) {
  if (draining_ || peer->leaving || peer->again.has_value()) return;
  absl::Duration pause = absl::ZeroDuration();
  const int failures = std::max(peer->failures, peer->useless);
  if (failures > 0) {
    pause = std::min(
        options_.longest_pause,
        options_.first_pause * std::pow(1.6, std::min(failures - 1, 20)));
  }
  peer->again = loop_->After(pause, [this, peer] {
    peer->again.reset();
    // The additional connection was for the waiters.
    if (waiting_.empty() && peer->connected()) return;
    Connect(peer);
  });
}

// An address was not tried yet, or was good when it was used last, and nothing
// is known of what connecting to it will meet.
bool Client::HasChance() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const std::unique_ptr<Peer>& peer) {
                       return !peer->leaving && peer->failures == 0;
                     });
}

void Client::Failed(const std::string& why) {
  why_ = why;
  ResolveSoon();
  if (ready() > 0) return;
  // It is not known yet whether the target can be reached. The result of the
  // connection in progress will show it.
  if (reachable_ && HasChance()) return;
  TellFailed(why);
}

void Client::TellFailed(const std::string& why) {
  Found();
  reachable_ = false;
  if (options_.changed != nullptr) options_.changed(false, why);
}

// Ends the wait that Lost began.
void Client::Found() { Cancel(&lost_); }

void Client::Lost(const std::string& why) {
  ResolveSoon();
  if (ready() > 0) return;
  if (doubted_ || lost_.has_value()) why_ = why;
  if (lost_.has_value()) return;
  // It is known, unless it takes connections and ends them: then this is why.
  if (!reachable_ && !doubted_) return;
  lost_ = loop_->After(kLost, [this, why] {
    lost_.reset();
    why_ = why;
    ResolveSoon();
    TellFailed(why);
  });
}

void Client::TellReachable() {
  if (reachable_ || !AllowsStreams()) return;
  reachable_ = true;
  if (options_.changed != nullptr) options_.changed(true, "");
}

bool Client::AllowsStreams() const {
  for (const auto& peer : peers_) {
    for (const Connection* connection : peer->connections) {
      if (IsUsable(*connection) && connection->peer_max_streams() > 0) {
        return true;
      }
    }
  }
  return false;
}

// A function that allows no streams on any connection can be reached no more
// than one that has none; it may allow some in a moment.
void Client::TellAllowed() {
  if (AllowsStreams()) {
    if (std::exchange(barred_, false)) {
      Found();
      if (!doubted_) TellReachable();
    }
    return;
  }
  const bool known = std::exchange(barred_, true) && !reachable_;
  if (known || lost_.has_value()) return;
  lost_ = loop_->After(kLost, [this] {
    lost_.reset();
    if (ready() > 0 || why_.empty()) why_ = kNoStreams;
    TellFailed(why_);
  });
}

// There is a connection to give, and there was none.
void Client::Up() {
  taken_ = false;
  proven_ = false;
  Cancel(&proof_);
  proof_ = loop_->After(options_.proof, [this] {
    proof_.reset();
    Prove();
  });
  // Otherwise a peer that sends a GOAWAY on every connection would be reported
  // as reachable again and again.
  if (!doubted_) TellReachable();
}

void Client::Prove() {
  proven_ = true;
  doubted_ = false;
  Cancel(&proof_);
  TellReachable();
}

// A connection that was given is not any more.
void Client::Down() {
  if (ready() > 0) return;
  if (!proven_) doubted_ = true;
  Cancel(&proof_);
}

size_t Client::connections() const {
  size_t sum = 0;
  for (const auto& peer : peers_) sum += peer->connections.size();
  return sum;
}

size_t Client::ready() const {
  size_t sum = 0;
  for (const auto& peer : peers_) {
    for (const Connection* connection : peer->connections) {
      if (IsUsable(*connection)) ++sum;
    }
  }
  return sum;
}

std::string Client::WhyWaiting() const {
  size_t ready = 0;
  bool takes = false;
  for (const auto& peer : peers_) {
    for (const Connection* connection : peer->connections) {
      if (!IsUsable(*connection)) continue;
      ++ready;
      takes = takes || !connection->full();
    }
  }
  if (ready > 0 && !AllowsStreams()) return kNoStreams;
  if (ready > 0) {
    return absl::StrCat(takes ? "the function allows no more streams"
                              : "the function does not read what it is sent",
                        ", connections: ", ready);
  }
  if (!why_.empty()) return why_;
  return peers_.empty() ? absl::StrCat("no addresses of ", target_.host, " yet")
                        : "connecting takes long";
}

Connection* Client::Take() {
  Start();
  for (size_t i = 0; i < peers_.size(); ++i) {
    next_ = next_ + 1 < peers_.size() ? next_ + 1 : 0;
    Peer* const peer = peers_[next_].get();
    if (peer->leaving) continue;
    for (size_t j = 0; j < peer->connections.size(); ++j) {
      // The first connection with capacity is used, so that the others can
      // become idle and close.
      Connection* const connection = peer->connections[j];
      if (!connection->CanOpen()) continue;
      taken_ = true;
      return connection;
    }
  }
  return nullptr;
}

void Client::Wait(Waiter* waiter) {
  Start();
  waiter->waiting_ = true;
  waiter->position_ = waiting_.insert(waiting_.end(), waiter);
  WantMore();
}

void Client::Forget(Waiter* waiter) {
  if (!waiter->waiting_) return;
  waiter->waiting_ = false;
  waiting_.erase(waiter->position_);
}

// Where callers wait though there are connections, these are full.
void Client::WantMore() {
  if (waiting_.empty()) return;
  Peer* least = nullptr;
  for (const auto& peer : peers_) {
    if (peer->leaving || peer->connecting > 0 || peer->again.has_value() ||
        peer->connections.size() >= options_.most_connections) {
      continue;
    }
    if (peer->useless > 0 && peer->CountUseless() > 0) {
      ConnectLater(peer.get());
      continue;
    }
    if (least == nullptr ||
        peer->connections.size() < least->connections.size()) {
      least = peer.get();
    }
  }
  if (least != nullptr) Connect(least);
}

void Client::ServeWaiting() {
  if (serving_) return;
  serving_ = true;
  while (!waiting_.empty()) {
    Connection* const connection = Take();
    if (connection == nullptr) break;
    Waiter* const waiter = waiting_.front();
    waiting_.pop_front();
    waiter->waiting_ = false;
    waiter->OnConnection(*connection);
  }
  serving_ = false;
}

// Where there is a name, its resolutions see to that.
void Client::TrimLater() {
  timer_ = loop_->After(options_.resolve_every, [this] {
    timer_.reset();
    if (draining_) return;
    Trim();
    TrimLater();
  });
}

// Connections that were made for a burst close when it is over.
void Client::Trim() {
  for (const auto& peer : peers_) {
    std::vector<Connection*> connections;
    for (Connection* connection : peer->connections) {
      if (IsUsable(*connection) && !connection->full()) {
        connections.push_back(connection);
      }
    }
    size_t left = connections.size();
    for (Connection* connection : connections) {
      if (left < 2) break;
      if (connection->streams() > 0) continue;
      --left;
      connection->GoAway();
    }
  }
}

Client::Peer* Client::PeerOf(const Connection& connection) {
  for (const auto& peer : peers_) {
    for (const Connection* one : peer->connections) {
      if (one == &connection) return peer.get();
    }
  }
  return nullptr;
}

void Client::OnReady(Connection& connection) {
  Peer* const peer = PeerOf(connection);
  if (peer == nullptr) return;
  --peer->connecting;
  if (options_.connected != nullptr) options_.connected(1);
  for (auto& [one, since] : peer->since) {
    if (one == &connection) since = loop_->now();
  }
  why_.clear();
  Found();
  if (ready() == 1) Up();
  if (connection.peer_max_streams() > 0) {
    peer->useless = 0;
  } else {
    ++peer->useless;
    // Those that are there longer may be allowed some sooner.
    if (peer->CountUseless() > kMostUseless) connection.GoAway();
  }
  TellAllowed();
  ServeWaiting();
  WantMore();
}

// A stream has ended, or the peer's settings have changed.
void Client::OnCapacity(Connection& connection) {
  if (taken_ && !proven_ &&
      (connection.served() ||
       (!connection.going_away() && connection.streams() == 0))) {
    Prove();  // a call has been answered, or has ended and the connection lasts
  }
  if (barred_ || connection.peer_max_streams() == 0) TellAllowed();
  if (!waiting_.empty()) ServeWaiting();
}

// It has answered calls, or lasted: that it is over is no failure.
bool Client::IsGood(const Connection& connection, int64_t since) const {
  return connection.served() || (since > 0 && loop_->now() - since > kGood);
}

void Client::OnGoingAway(Connection& connection) {
  Peer* const peer = PeerOf(connection);
  if (peer == nullptr || draining_) return;
  if (connection.ready()) Down();
  if (ready() > 0) TellAllowed();
  // Its streams may last; calls that come now need another one.
  if (peer->connected()) return;
  for (auto& [one, since] : peer->since) {
    if (one != &connection) continue;
    peer->failures = IsGood(connection, since) ? 0 : peer->failures + 1;
    since = 1;  // judged
  }
  ConnectLater(peer);
  ResolveSoon();
}

void Client::OnClosed(Connection& connection, ConnectionEnd /*end*/,
                      const std::string& words) {
  Peer* const peer = PeerOf(connection);
  if (peer == nullptr) return;
  int64_t since = 0;
  for (size_t i = 0; i < peer->since.size(); ++i) {
    if (peer->since[i].first != &connection) continue;
    since = peer->since[i].second;
    peer->since.erase(peer->since.begin() + static_cast<ptrdiff_t>(i));
    break;
  }
  peer->connections.erase(std::find(peer->connections.begin(),
                                    peer->connections.end(), &connection));
  if (connection.ready() && options_.connected != nullptr) {
    options_.connected(-1);
  }
  if (draining_) return;
  const std::string why = absl::StrCat(peer->endpoint.text, ": ", words);
  if (connection.ready()) {
    Down();
    if (ready() > 0) TellAllowed();
  } else {
    --peer->connecting;
  }
  if (connection.lost_streams() && options_.lost != nullptr) {
    options_.lost(why);
  }
  if (since != 1) {
    peer->failures = IsGood(connection, since) ? 0 : peer->failures + 1;
  }
  // Others may be there only until their streams have ended.
  if (peer->connected()) return;
  // A connection that is no longer wanted says nothing about the target.
  if (peer->leaving && !connection.ready()) return;
  ConnectLater(peer);
  // That a good one ended says less than what connecting again will meet, and
  // the first attempt, made at once, may meet what is about to go itself.
  if (connection.ready() || (lost_.has_value() && peer->failures == 1)) {
    Lost(why);
  } else {
    Failed(why);
  }
}

void Client::Renew() {
  for (const auto& peer : peers_) {
    const std::vector<Connection*> connections = peer->connections;
    for (Connection* connection : connections) connection->GoAway();
    if (peer->leaving) continue;
    Cancel(&peer->again);
    Connect(peer.get());
  }
}

void Client::Drain() {
  draining_ = true;
  Found();
  Cancel(&proof_);
  for (const auto& peer : peers_) {
    Cancel(&peer->again);
    const std::vector<Connection*> connections = peer->connections;
    for (Connection* connection : connections) connection->GoAway();
  }
}

}  // namespace fncache::http2
