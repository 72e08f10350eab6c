// SPDX-License-Identifier: Apache-2.0
#include "proxy/service_notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace fncache::proxy {

bool NotifyService(absl::string_view state) {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  if (name == nullptr || name[0] == '\0') return false;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t size = std::strlen(name);
  // The address is a path, or with '@' a name in the abstract namespace
  // (unix(7)).
  if ((name[0] != '/' && name[0] != '@') || size >= sizeof address.sun_path) {
    return false;
  }
  std::memcpy(address.sun_path, name, size);
  if (name[0] == '@') address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size);
  const ssize_t sent =
      sendto(fd, state.data(), state.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&address), length);
  close(fd);
  return sent == static_cast<ssize_t>(state.size());
}

}  // namespace fncache::proxy
