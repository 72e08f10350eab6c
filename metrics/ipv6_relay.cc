// SPDX-License-Identifier: Apache-2.0
#include "metrics/ipv6_relay.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <list>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace fncache::metrics {
namespace {

constexpr size_t kConnections = 128;
constexpr size_t kBuffer = 64 << 10;
// A connection whose request and answer are not through in this time is closed.
constexpr absl::Duration kLongest = absl::Seconds(10);

// One direction: bytes read from one socket and not yet written to the other.
struct Pipe {
  std::string bytes;
  bool ended = false;   // nothing more comes
  bool passed = false;  // the other side was told so

  bool wants_input() const { return !ended && bytes.size() < kBuffer; }

  // False if the connection is broken.
  bool Read(int fd) {
    char buffer[16 << 10];
    const ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) ended = true;
    bytes.append(buffer, n);
    return true;
  }
  bool Write(int fd) {
    if (!bytes.empty()) {
      const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      bytes.erase(0, n);
    }
    if (ended && bytes.empty() && !passed) {
      passed = true;
      shutdown(fd, SHUT_WR);
    }
    return true;
  }
};

// A client and the connection to the server made for it.
class Connection {
 public:
  Connection(int client, int server, absl::Time until)
      : client_(client), server_(server), until_(until) {}
  ~Connection() {
    close(client_);
    close(server_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void AddTo(std::vector<pollfd>* polled) const {
    const auto events = [](const Pipe& in, const Pipe& out) {
      return static_cast<short>((in.wants_input() ? POLLIN : 0) |
                                (out.bytes.empty() ? 0 : POLLOUT));
    };
    polled->push_back({client_, events(request_, answer_), 0});
    polled->push_back({server_, events(answer_, request_), 0});
  }

  // Moves what can be moved; false once the connection is done or broken.
  bool Move(const pollfd& client, const pollfd& server, absl::Time now) {
    constexpr short kReadable = POLLIN | POLLHUP | POLLERR;
    if ((client.revents & kReadable) && request_.wants_input() &&
        !request_.Read(client_)) {
      return false;
    }
    if ((server.revents & kReadable) && answer_.wants_input() &&
        !answer_.Read(server_)) {
      return false;
    }
    if (!request_.Write(server_) || !answer_.Write(client_)) return false;
    return !answer_.passed && now < until_;
  }

 private:
  const int client_;
  const int server_;
  const absl::Time until_;
  Pipe request_;
  Pipe answer_;
};

// A connection to 127.0.0.1:`port`, or -1.
int ConnectTo(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0 &&
      errno != EINPROGRESS) {
    close(fd);
    return -1;
  }
  return fd;
}

void Relay(int listener, int stop, int to_port) {
  std::list<Connection> connections;
  std::vector<pollfd> polled;
  for (;;) {
    const bool room = connections.size() < kConnections;
    polled.assign({{stop, POLLIN, 0},
                   {listener, static_cast<short>(room ? POLLIN : 0), 0}});
    for (const Connection& connection : connections) {
      connection.AddTo(&polled);
    }
    // It wakes up now and then to close those whose time is up.
    poll(polled.data(), polled.size(), connections.empty() ? -1 : 1000);
    if (polled[0].revents != 0) return;
    const absl::Time now = absl::Now();
    size_t i = 2;
    for (auto it = connections.begin(); it != connections.end(); i += 2) {
      it = it->Move(polled[i], polled[i + 1], now) ? std::next(it)
                                                   : connections.erase(it);
    }
    if (!room || polled[1].revents == 0) continue;
    const int client =
        accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) {
      // The process may be out of descriptors: accept would fail again at once.
      absl::SleepFor(absl::Milliseconds(10));
      continue;
    }
    const int server = ConnectTo(to_port);
    if (server < 0) {
      close(client);
      continue;
    }
    connections.emplace_back(client, server, now + kLongest);
  }
}

absl::Status Failure(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Ipv6Relay>> Ipv6Relay::Start(
    const std::string& host, const std::string& port, int to_port) {
  addrinfo hints = {};
  hints.ai_family = AF_INET6;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("not an IPv6 address: '", host, "'"));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found,
                                                             freeaddrinfo);
  const int fd =
      socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failure("socket");
  const int on = 1;
  const int off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  sockaddr_in6 bound = {};
  socklen_t size = sizeof(bound);
  if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
      listen(fd, SOMAXCONN) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    const absl::Status failure = Failure("bind");
    close(fd);
    return failure;
  }
  const int stop = eventfd(0, EFD_CLOEXEC);
  if (stop < 0) {
    const absl::Status failure = Failure("eventfd");
    close(fd);
    return failure;
  }
  return std::unique_ptr<Ipv6Relay>(
      new Ipv6Relay(fd, stop, ntohs(bound.sin6_port), to_port));
}

Ipv6Relay::Ipv6Relay(int listener, int stop, int port, int to_port)
    : listener_(listener),
      stop_(stop),
      port_(port),
      thread_([listener, stop, to_port] { Relay(listener, stop, to_port); }) {}

Ipv6Relay::~Ipv6Relay() {
  const uint64_t one = 1;
  (void)!write(stop_, &one, sizeof(one));
  thread_.join();
  close(stop_);
  close(listener_);
}

}  // namespace fncache::metrics
