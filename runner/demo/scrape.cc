#include "runner/demo/scrape.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace fncache::runner::demo {
namespace {

absl::Status Failed(const std::string& address, absl::string_view what) {
  return absl::UnavailableError(
      absl::StrCat(address, ": ", what, ": ", strerror(errno)));
}

absl::StatusOr<std::string> Talk(int fd, const std::string& address,
                                 const std::string& path,
                                 absl::Duration patience) {
  const size_t colon = address.rfind(':');
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  uint32_t port = 0;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(address, ": is not an address"));
  }
  to.sin_port = htons(static_cast<uint16_t>(port));
  const timeval limit = absl::ToTimeval(patience);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    return Failed(address, "connect");
  }
  // HTTP/1.0: the answer ends with the connection.
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.0\r\nHost: ", address, "\r\n\r\n");
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return Failed(address, "send");
  }
  std::string answer;
  char buffer[16384];
  ssize_t got;
  while ((got = recv(fd, buffer, sizeof buffer, 0)) > 0) {
    answer.append(buffer, static_cast<size_t>(got));
  }
  if (got < 0) return Failed(address, "receive");
  const size_t body = answer.find("\r\n\r\n");
  const absl::string_view first =
      absl::string_view(answer).substr(0, answer.find("\r\n"));
  const std::pair<absl::string_view, absl::string_view> status =
      absl::StrSplit(first, absl::MaxSplits(' ', 1));
  if (body == std::string::npos || !absl::StartsWith(status.second, "200")) {
    return absl::UnavailableError(
        absl::StrCat(address, path, ": answered ", status.second));
  }
  return answer.substr(body + 4);
}

}  // namespace

absl::StatusOr<std::string> Get(const std::string& address,
                                const std::string& path,
                                absl::Duration patience) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed(address, "socket");
  auto body = Talk(fd, address, path, patience);
  close(fd);
  return body;
}

double Sum(absl::string_view exposition, absl::string_view name,
           absl::string_view label) {
  double sum = 0;
  for (const absl::string_view line : absl::StrSplit(exposition, '\n')) {
    if (!absl::StartsWith(line, name)) continue;
    absl::string_view rest = line.substr(name.size());
    if (rest.empty() || (rest[0] != '{' && rest[0] != ' ')) continue;
    const size_t space = rest.rfind(' ');
    double value = 0;
    if (absl::StrContains(rest.substr(0, space), label) &&
        absl::SimpleAtod(rest.substr(space + 1), &value)) {
      sum += value;
    }
  }
  return sum;
}

}  // namespace fncache::runner::demo
