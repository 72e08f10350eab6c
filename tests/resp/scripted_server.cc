// SPDX-License-Identifier: Apache-2.0
#include "tests/resp/scripted_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"

namespace fncache::resp::testing {
namespace {

// Takes a whole command from the front of `bytes`.
bool TakeCommand(std::string* bytes, std::vector<std::string>* words) {
  words->clear();
  size_t at = 0;
  const auto number = [&](char mark, int* value) {
    const size_t end = bytes->find("\r\n", at);
    if (end == std::string::npos || (*bytes)[at] != mark) return false;
    const bool good =
        absl::SimpleAtoi(bytes->substr(at + 1, end - at - 1), value);
    at = end + 2;
    return good;
  };
  int count = 0;
  if (!number('*', &count)) return false;
  for (int i = 0; i < count; ++i) {
    int size = 0;
    if (!number('$', &size) || bytes->size() < at + size + 2) return false;
    words->push_back(bytes->substr(at, size));
    at += size + 2;
  }
  bytes->erase(0, at);
  return true;
}

}  // namespace

bool ScriptedServer::Peer::Send(absl::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(sent);
  }
  return true;
}

void ScriptedServer::Peer::Close() const { shutdown(fd_, SHUT_RDWR); }

ScriptedServer::ScriptedServer(Script script, bool tcp)
    : script_(std::move(script)) {
  listener_ = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un path = {};
  path.sun_family = AF_UNIX;
  std::strncpy(path.sun_path, dir_.File("s").c_str(), sizeof path.sun_path - 1);
  sockaddr_in port = {};
  port.sin_family = AF_INET;
  auto* const address = tcp ? reinterpret_cast<sockaddr*>(&port)
                            : reinterpret_cast<sockaddr*>(&path);
  socklen_t size = tcp ? sizeof port : sizeof path;
  if (bind(listener_, address, size) != 0 || listen(listener_, 64) != 0 ||
      getsockname(listener_, address, &size) != 0) {
    std::abort();
  }
  port_ = ntohs(port.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

ScriptedServer::~ScriptedServer() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    for (const int fd : open_) shutdown(fd, SHUT_RDWR);
  }
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    MutexLock lock(&mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  close(listener_);
}

Endpoint ScriptedServer::endpoint() const {
  Endpoint endpoint;
  if (port_ != 0) {
    endpoint.host = "127.0.0.1";
    endpoint.port = port_;
    return endpoint;
  }
  endpoint.unix_path = dir_.File("s");
  return endpoint;
}

int ScriptedServer::connections() const {
  MutexLock lock(&mutex_);
  return came_;
}

void ScriptedServer::Accept() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    MutexLock lock(&mutex_);
    if (stop_ || fd < 0) {
      if (fd >= 0) close(fd);
      return;
    }
    ++came_;
    open_.insert(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void ScriptedServer::Serve(int fd) {
  const Peer peer(fd);
  std::string bytes;
  char buffer[4096];
  Words words;
  for (ssize_t size = 0; (size = read(fd, buffer, sizeof buffer)) > 0;) {
    bytes.append(buffer, size);
    while (TakeCommand(&bytes, &words)) {
      if (script_(words, peer)) continue;
      peer.Send(words[0] == "PING" ? "+PONG\r\n" : "-ERR unknown command\r\n");
    }
  }
  MutexLock lock(&mutex_);
  open_.erase(fd);
  close(fd);
}

}  // namespace fncache::resp::testing
