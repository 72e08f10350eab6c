// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/relay.h"

#include <fcntl.h>
#include <poll.h>

#include "absl/strings/str_cat.h"

namespace fncache::testing {
namespace {

int ConnectTo(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

}  // namespace

Relay::Relay(int to) : to_(to) {
  socket_.Listen(64);
  EXPECT_EQ(pipe2(wake_, O_CLOEXEC | O_NONBLOCK), 0);
  thread_ = std::thread([this] { Run(); });
}

Relay::~Relay() {
  {
    MutexLock lock(&mutex_);
    ended_ = true;
  }
  Wake();
  thread_.join();
  close(wake_[0]);
  close(wake_[1]);
}

std::string Relay::url() const {
  return absl::StrCat("redis://127.0.0.1:", port());
}

void Relay::Become(Mode mode) {
  {
    MutexLock lock(&mutex_);
    mode_ = mode;
    if (mode == kCut) CloseAll();
  }
  Wake();
}

void Relay::LeadTo(int port) {
  {
    MutexLock lock(&mutex_);
    to_ = port;
    CloseAll();
  }
  Wake();
}

void Relay::Wake() { EXPECT_EQ(write(wake_[1], "x", 1), 1); }

void Relay::CloseAll() {
  for (const Pair& pair : pairs_) {
    close(pair.ends[0]);
    close(pair.ends[1]);
  }
  pairs_.clear();
}

bool Relay::Move(int from, int to) {
  static thread_local char bytes[1 << 16];
  const ssize_t size = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  // Both ends read at once, so that this does not block for long.
  for (ssize_t sent = 0; sent < size;) {
    const ssize_t more = send(to, bytes + sent, size - sent, MSG_NOSIGNAL);
    if (more <= 0) return false;
    sent += more;
  }
  return size > 0;
}

void Relay::Run() {
  while (true) {
    std::vector<pollfd> watched = {{wake_[0], POLLIN, 0},
                                   {socket_.fd(), POLLIN, 0}};
    {
      MutexLock lock(&mutex_);
      if (ended_) return CloseAll();
      for (const Pair& pair : pairs_) {
        for (const int end : pair.ends) {
          // One below 0 is not watched, not even for its end.
          watched.push_back({mode_ == kHang ? -1 : end, POLLIN, 0});
        }
      }
    }
    poll(watched.data(), watched.size(), -1);
    char drained[64];
    while (read(wake_[0], drained, sizeof drained) > 0) {
    }
    MutexLock lock(&mutex_);
    if ((watched[1].revents & POLLIN) != 0) {
      const int caller = socket_.Accept();
      const int server = mode_ == kCut ? -1 : ConnectTo(to_);
      if (server < 0) {
        close(caller);
      } else {
        pairs_.push_back({{caller, server}});
      }
    }
    if (mode_ == kHang) continue;
    for (size_t i = pairs_.size(); i-- > 0;) {
      const Pair pair = pairs_[i];
      if (Move(pair.ends[0], pair.ends[1]) &&
          Move(pair.ends[1], pair.ends[0])) {
        continue;
      }
      close(pair.ends[0]);
      close(pair.ends[1]);
      pairs_.erase(pairs_.begin() + i);
    }
  }
}

}  // namespace fncache::testing
