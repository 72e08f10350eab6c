// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/held_sends.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace fncache::proxy::transport {
namespace {

// Sends on more connections than this in one turn of work are not held.
constexpr size_t kMostConnections = 64;

struct Held {
  // True if what is sent to `fd` may be held: SendHeld will let it go.
  bool Note(int fd) {
    for (size_t i = 0; i < count; ++i) {
      if (fds[i] == fd) return true;
    }
    if (count == kMostConnections) return false;
    fds[count++] = fd;
    return true;
  }

  bool holding = false;
  size_t count = 0;
  int fds[kMostConnections];
};

thread_local Held held;

}  // namespace

void HoldSends(bool hold) { held.holding = hold; }

bool HasHeldSends() { return held.count > 0; }

void SendHeld() {
  if (held.count == 0) return;
  const int error = errno;
  // Setting it, though gRPC has set it long ago, sends what waits. A connection
  // that was closed meanwhile sent it then; should its number be another one's
  // by now, that one is set to what it was before, or refuses.
  const int on = 1;
  for (size_t i = 0; i < held.count; ++i) {
    setsockopt(held.fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  held.count = 0;
  errno = error;
}

}  // namespace fncache::proxy::transport

// gRPC's connections send with this, under exactly this flag. Whoever else
// sends in the process passes.
extern "C" ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  using fncache::proxy::transport::held;
  if (held.holding && flags == MSG_NOSIGNAL && held.Note(fd)) {
    flags |= MSG_MORE;
  }
  return syscall(SYS_sendmsg, fd, message, flags);
}
