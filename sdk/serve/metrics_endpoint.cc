// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/metrics_endpoint.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <list>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/listen_address.h"
#include "common/listen_failure.h"

namespace fncache::sdk::serve {
namespace {

// Limit of a request's head, in bytes. Beyond it the connection is closed.
constexpr size_t kMostHead = 8 << 10;

// A socket that listens at the first of these addresses that can be bound.
int ListenAtOneOf(const addrinfo* all) {
  for (const addrinfo* one = all; one != nullptr; one = one->ai_next) {
    const int fd =
        socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    const int on = 1;
    const int off = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (one->ai_family == AF_INET6) {
      setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (bind(fd, one->ai_addr, one->ai_addrlen) == 0 &&
        listen(fd, SOMAXCONN) == 0) {
      return fd;
    }
    close(fd);
  }
  return -1;
}

int ListenOn(absl::string_view host, absl::string_view port) {
  if (host.empty()) {
    // It takes IPv4, too, where there is IPv6.
    const int fd = ListenOn("::", port);
    return fd >= 0 ? fd : ListenOn("0.0.0.0", port);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(std::string(host).c_str(), std::string(port).c_str(), &hints,
                  &found) != 0) {
    return -1;
  }
  const int fd = ListenAtOneOf(found);
  freeaddrinfo(found);
  return fd;
}

struct Connection {
  explicit Connection(int its_fd) : fd(its_fd) {}
  ~Connection() { close(fd); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const int fd;
  const absl::Time ends = absl::Now() + MetricsEndpoint::kPatience;
  std::string in;
  std::string out;  // once the request is there
};

std::string Response(absl::string_view head,
                     const std::function<std::string()>& page) {
  absl::string_view status = "200 OK";
  std::string body;
  const bool headers_only = absl::StartsWith(head, "HEAD ");
  if (!headers_only && !absl::StartsWith(head, "GET ")) {
    status = "405 Method Not Allowed\r\nAllow: GET, HEAD";
  } else {
    absl::string_view path = head.substr(head.find(' ') + 1);
    path = path.substr(0, path.find_first_of(" ?\r"));
    if (path == "/metrics") {
      body = page();
    } else {
      status = "404 Not Found";
    }
  }
  return absl::StrCat("HTTP/1.1 ", status,
                      "\r\nContent-Type: text/plain; version=0.0.4; "
                      "charset=utf-8\r\nContent-Length: ",
                      body.size(), "\r\nConnection: close\r\n\r\n",
                      headers_only ? "" : body);
}

// False once the connection is to be closed.
bool Move(Connection* connection, const std::function<std::string()>& page) {
  if (connection->out.empty()) {
    char buffer[4096];
    const ssize_t read = recv(connection->fd, buffer, sizeof buffer, 0);
    if (read <= 0) return read < 0 && (errno == EAGAIN || errno == EINTR);
    connection->in.append(buffer, static_cast<size_t>(read));
    if (!absl::StrContains(connection->in, "\r\n\r\n")) {
      return connection->in.size() <= kMostHead;
    }
    connection->out = Response(connection->in, page);
  }
  const ssize_t sent = send(connection->fd, connection->out.data(),
                            connection->out.size(), MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  connection->out.erase(0, static_cast<size_t>(sent));
  if (!connection->out.empty()) return true;
  shutdown(connection->fd, SHUT_WR);
  return false;
}

}  // namespace

MetricsEndpoint::MetricsEndpoint(int listening, int wakes, std::string address,
                                 std::function<std::string()> page)
    : listening_(listening),
      wakes_(wakes),
      address_(std::move(address)),
      page_(std::move(page)),
      thread_([this] { Run(); }) {}

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    const std::string& address, std::function<std::string()> page) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return ListenFailure(address);
  absl::string_view host = absl::string_view(address).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  const int listening =
      ListenOn(host, absl::string_view(address).substr(colon + 1));
  if (listening < 0) return ListenFailure(address);
  const int wakes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wakes < 0) {
    close(listening);
    return absl::ResourceExhaustedError("no descriptor is free");
  }
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(
      listening, wakes,
      absl::StrCat(address.substr(0, colon), ":", PortOf(listening)),
      std::move(page)));
}

MetricsEndpoint::~MetricsEndpoint() {
  const uint64_t one = 1;
  (void)!write(wakes_, &one, sizeof one);
  thread_.join();
  close(listening_);
  close(wakes_);
}

void MetricsEndpoint::Run() {
  // The oldest one first.
  std::list<Connection> open;
  while (true) {
    std::vector<pollfd> polled = {{wakes_, POLLIN, 0}, {listening_, POLLIN, 0}};
    for (const Connection& one : open) {
      const short events = one.out.empty() ? POLLIN : POLLOUT;
      polled.push_back({one.fd, events, 0});
    }
    const absl::Duration left = open.empty() ? absl::InfiniteDuration()
                                             : open.front().ends - absl::Now();
    const int timeout = open.empty()
                            ? -1
                            : static_cast<int>(absl::ToInt64Milliseconds(
                                  std::max(left, absl::ZeroDuration()))) +
                                  1;
    poll(polled.data(), polled.size(), timeout);
    if (polled[0].revents != 0) return;
    size_t i = 2;
    const absl::Time now = absl::Now();
    for (auto one = open.begin(); one != open.end(); ++i) {
      const bool stays =
          now < one->ends && (polled[i].revents == 0 || Move(&*one, page_));
      one = stays ? std::next(one) : open.erase(one);
    }
    if (polled[1].revents == 0) continue;
    const int fd =
        accept4(listening_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      if (open.size() >= kMostConnections) open.pop_front();
      open.emplace_back(fd);
    } else if (errno == EMFILE || errno == ENFILE) {
      absl::SleepFor(absl::Milliseconds(100));
    }
  }
}

}  // namespace fncache::sdk::serve
