// SPDX-License-Identifier: Apache-2.0
#include "http2/server.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "http2/target.h"

namespace fncache::http2 {
namespace {

constexpr int kBacklog = 1024;
// Connections accepted at a time, so that others are served between them.
constexpr int kAcceptsPerIteration = 64;
constexpr absl::Duration kAcceptAgain = absl::Milliseconds(100);
// The file descriptors that are reserved for others than callers: a sixteenth
// of the process's limit, within these bounds.
constexpr rlim_t kFewestReserved = 4;
constexpr rlim_t kMostReserved = 32;

absl::Status Errno(absl::string_view what) {
  return absl::ErrnoToStatus(errno, what);
}

// A bound socket, or -1 with errno. `mode` is that of a unix socket's file,
// which gets it from the socket as it is made (unix_bind in Linux).
int Bind(const sockaddr* address, socklen_t size, bool both_families,
         absl::optional<mode_t> mode = absl::nullopt) {
  const int fd =
      socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  const int off = 0;
  if (address->sa_family != AF_UNIX) {
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  if (address->sa_family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, both_families ? &off : &on,
               sizeof on);
  }
  if ((!mode.has_value() || fchmod(fd, *mode) == 0) &&
      bind(fd, address, size) == 0 && listen(fd, kBacklog) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// The lock of a folder. Without it, one of two processes that bind a socket
// there could take the other's, which does not listen yet, for a dead one. The
// lock is advisory, and the wait for it ends after a second, because any
// process may lock the folder.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : fd_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    for (int tries = 0; fd_ >= 0 && tries < 100; ++tries) {
      if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
      absl::SleepFor(absl::Milliseconds(10));
    }
  }
  ~FolderLock() {
    if (fd_ >= 0) close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  const int fd_;
};

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, std::max<size_t>(slash, 1));
}

absl::Status InUse(absl::string_view text) {
  return absl::UnavailableError(absl::StrCat(
      text, ": the address is in use: another process listens there"));
}

// Removes the socket file of a process that has ended. Returns what has the
// path if it is not free then.
absl::Status FreePath(absl::string_view text, const sockaddr_un& address,
                      socklen_t size) {
  struct stat file = {};
  if (lstat(address.sun_path, &file) != 0) {
    // The file was removed meanwhile.
    return errno == ENOENT ? absl::OkStatus() : Errno(text);
  }
  // Only a socket: connecting to another file is refused, too.
  if (!S_ISSOCK(file.st_mode)) {
    return absl::UnavailableError(
        absl::StrCat(text, ": a file is there that is no socket"));
  }
  // Does not wait for a process that is alive and accepts slowly.
  const int probe =
      socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (probe < 0) return Errno(text);
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  const int error = connect(probe, generic, size) == 0 ? 0 : errno;
  close(probe);
  if (error == 0 || error == EAGAIN) return InUse(text);
  if (error == ENOENT) return absl::OkStatus();
  if (error != ECONNREFUSED) {
    return absl::ErrnoToStatus(
        error,
        absl::StrCat(text, ": a socket is there that cannot be connected to"));
  }
  if (unlink(address.sun_path) == 0 || errno == ENOENT) return absl::OkStatus();
  return Errno(
      absl::StrCat(text, ": the socket that a process left cannot be removed"));
}

// Returns a bound socket. It replaces the socket file of a process that has
// ended. Errors begin with `text`.
absl::StatusOr<int> BindUnix(absl::string_view text, const sockaddr_un& address,
                             socklen_t size, absl::optional<mode_t> mode) {
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  if (address.sun_path[0] == '\0') {
    const int fd = Bind(generic, size, false);
    if (fd >= 0) return fd;
    return errno == EADDRINUSE ? InUse(text) : Errno(text);
  }
  const FolderLock lock(FolderOf(address.sun_path));
  int fd = Bind(generic, size, false, mode);
  if (fd < 0 && errno == EADDRINUSE) {
    const absl::Status free = FreePath(text, address, size);
    if (!free.ok()) return free;
    fd = Bind(generic, size, false, mode);
  }
  if (fd < 0) return Errno(text);
  return fd;
}

int PortOf(int fd) {
  sockaddr_storage bound = {};
  socklen_t size = sizeof bound;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  if (bound.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  }
  return ntohs(reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port);
}

// The next file descriptor would be a reserved one. If another error prevents
// it, accepting will meet that error, too.
bool OnlyReserveIsLeft(int any_fd) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  const rlim_t reserve =
      std::min(std::clamp(limit.rlim_cur / 16, kFewestReserved, kMostReserved),
               limit.rlim_cur);
  const int next = fcntl(any_fd, F_DUPFD_CLOEXEC, 0);
  if (next < 0) return errno == EMFILE;
  close(next);
  return static_cast<rlim_t>(next) >= limit.rlim_cur - reserve;
}

}  // namespace

// The server's state on one loop: the owner of its connections.
class Server::LoopServer final : public ConnectionOwner {
 public:
  LoopServer(Server* server, LoopHandler loop)
      : server_(server), loop_handler_(loop) {}

  const LoopHandler& loop_handler() const { return loop_handler_; }
  // Its calls and new connections, to find the least busy loop. From any
  // thread.
  int load() const {
    return loop_handler_.handler->busy() +
           count_.load(std::memory_order_relaxed);
  }
  void CountOne() { count_.fetch_add(1, std::memory_order_relaxed); }

  void Take(int fd) {
    SSL* ssl = nullptr;
    if (server_->options_.new_ssl != nullptr) {
      ssl = server_->options_.new_ssl();
      if (ssl == nullptr) {
        close(fd);
        return Gone();
      }
      SSL_set_accept_state(ssl);
    }
    Connection* const connection = Connection::Create(
        loop_handler_.loop, fd, ssl, &server_->options_.connection, this);
    all_.insert(connection);
    if (stopping_) connection->GoAway();
  }
  void GoAway() {
    stopping_ = true;
    for (Connection* connection : all_) connection->GoAway();
  }
  void LookAtTimes() {
    for (Connection* connection : all_) connection->LookAtTimes();
  }
  void CloseAll() {
    stopping_ = true;
    while (!all_.empty()) (*all_.begin())->Close("the server stops");
  }

  StreamUser* OnRequest(Stream& stream) override {
    return loop_handler_.handler->OnRequest(stream);
  }
  void OnAbandoned(Connection&) override {
    if (server_->options_.events.abandoned) {
      server_->options_.events.abandoned();
    }
  }
  void OnRefused(Connection&) override {
    if (server_->options_.events.stream_refused) {
      server_->options_.events.stream_refused();
    }
  }
  void OnClosed(Connection& connection, ConnectionEnd end,
                const std::string& words) override {
    all_.erase(&connection);
    if (server_->options_.events.ended) {
      server_->options_.events.ended(connection, end, words);
    }
    Gone();
  }

 private:
  void Gone() {
    count_.fetch_sub(1, std::memory_order_relaxed);
    server_->connections_.fetch_sub(1, std::memory_order_release);
  }

  Server* const server_;
  const LoopHandler loop_handler_;
  std::atomic<int> count_{0};
  std::unordered_set<Connection*> all_;
  bool stopping_ = false;
};

class Server::Acceptor final : public Loop::Watcher {
 public:
  Acceptor(Server* server, Loop* loop) : server_(server), loop_(loop) {}

  void Start() {
    watching_ = loop_->Watch(server_->fd_, EPOLLIN, this);
    if (!watching_) Later();
  }
  void Stop() {
    if (watching_) loop_->Unwatch(server_->fd_, this);
    watching_ = false;
    if (again_.has_value()) loop_->Cancel(*again_);
    again_.reset();
  }
  void OnReady(uint32_t /*events*/) override {
    for (int i = 0; i < kAcceptsPerIteration; ++i) {
      if (!server_->options_.uses_reserve && OnlyReserveIsLeft(server_->fd_)) {
        // Only the first is known to be there; what waits calls again.
        return i == 0 ? Delay(EMFILE) : void();
      }
      const int fd =
          accept4(server_->fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        Accepts();
        server_->HandOver(fd);
        continue;
      }
      if (errno == EAGAIN) {
        Accepts();
        return;
      }
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
          errno == ENOMEM) {
        return Delay(errno);
      }
      // The error concerns one connection that is gone already (accept(2)).
    }
  }

 private:
  void Accepts() {
    if (server_->accepting_.exchange(true, std::memory_order_relaxed)) return;
    if (server_->options_.events.accepts_again) {
      server_->options_.events.accepts_again();
    }
  }
  void Delay(int error) {
    server_->accepting_.store(false, std::memory_order_relaxed);
    if (server_->options_.events.accept_failed) {
      server_->options_.events.accept_failed(std::strerror(error));
    }
    loop_->Unwatch(server_->fd_, this);
    watching_ = false;
    Later();
  }
  void Later() {
    again_ = loop_->After(kAcceptAgain, [this] {
      again_.reset();
      Start();
    });
  }

  Server* const server_;
  Loop* const loop_;
  bool watching_ = false;
  absl::optional<TimerId> again_;
};

absl::StatusOr<std::unique_ptr<Server>> Server::Listen(
    const std::string& address, ServerOptions options) {
  if (IsUnix(address)) {
    const absl::StatusOr<Target> target = ParseTarget(address);
    if (!target.ok()) return target.status();
    const Endpoint& endpoint = target->endpoints.front();
    const auto& at = *reinterpret_cast<const sockaddr_un*>(&endpoint.address);
    const absl::StatusOr<int> fd =
        BindUnix(address, at, endpoint.size, options.socket_mode);
    if (!fd.ok()) return fd.status();
    // Empty where the name is abstract: there is no file.
    return std::unique_ptr<Server>(
        new Server(*fd, address, at.sun_path, std::move(options)));
  }
  std::string host;
  std::string port;
  if (!SplitHostPort(address, &host, &port)) {
    return absl::InvalidArgumentError(absl::StrCat(address, " has no port"));
  }
  int fd = -1;
  const bool every = host == "0.0.0.0";
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  for (const char* name : {every ? "::" : host.c_str(), host.c_str()}) {
    const int error = getaddrinfo(name, port.c_str(), &hints, &found);
    if (error != 0) {
      if (every && fd < 0 && name != host.c_str()) continue;
      return absl::UnavailableError(
          absl::StrCat(address, ": ", gai_strerror(error)));
    }
    for (const addrinfo* one = found; one != nullptr && fd < 0;
         one = one->ai_next) {
      fd = Bind(one->ai_addr, one->ai_addrlen, /*both_families=*/true);
    }
    const int failed = errno;
    freeaddrinfo(found);
    errno = failed;
    // Without IPv6 the other family is tried. A port in use is final.
    if (fd >= 0 || !every || errno == EADDRINUSE || errno == EACCES) break;
  }
  if (fd < 0) return Errno(address);
  const size_t colon = address.rfind(':');
  return std::unique_ptr<Server>(
      new Server(fd, absl::StrCat(address.substr(0, colon + 1), PortOf(fd)), "",
                 std::move(options)));
}

Server::Server(int fd, std::string address, std::string path,
               ServerOptions options)
    : fd_(fd),
      address_(std::move(address)),
      path_(std::move(path)),
      options_(std::move(options)) {
  struct stat file = {};
  if (!path_.empty() && stat(path_.c_str(), &file) == 0) {
    device_ = file.st_dev;
    inode_ = file.st_ino;
  }
}

Server::~Server() {
  if (!stopped_) CloseSocket();
}

void Server::CloseSocket() {
  // The file is removed before the socket is closed: a process that finds a
  // dead socket may replace it.
  struct stat file = {};
  if (!path_.empty() && stat(path_.c_str(), &file) == 0 &&
      file.st_dev == device_ && file.st_ino == inode_) {
    unlink(path_.c_str());
  }
  close(fd_);
}

void Server::Start(std::vector<LoopHandler> loops) {
  for (const LoopHandler& loop : loops) {
    loop_servers_.push_back(std::make_unique<LoopServer>(this, loop));
  }
  Loop* const first = loops.front().loop;
  acceptor_ = std::make_unique<Acceptor>(this, first);
  first->Post([this] { acceptor_->Start(); });
}

void Server::SetLimits(const ServerLimits& limits) {
  options_.max_connections = limits.max_connections;
  ConnectionOptions& connection = options_.connection;
  connection.max_streams = limits.max_streams;
  connection.max_field_bytes = limits.max_field_bytes;
  connection.idle_timeout = limits.idle_timeout;
  connection.max_age = limits.max_age;
  for (const auto& loop_server : loop_servers_) {
    loop_server->loop_handler().loop->Post(
        [loop_server = loop_server.get()] { loop_server->LookAtTimes(); });
  }
}

void Server::HandOver(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  KeepAlive(fd);
  if (connections_.load(std::memory_order_relaxed) >=
      options_.max_connections) {
    if (options_.events.connection_refused) {
      options_.events.connection_refused();
    }
    close(fd);
    return;
  }
  connections_.fetch_add(1, std::memory_order_relaxed);
  LoopServer* least = loop_servers_.front().get();
  for (const auto& loop_server : loop_servers_) {
    if (loop_server->load() < least->load()) least = loop_server.get();
  }
  least->CountOne();
  if (least == loop_servers_.front().get()) return least->Take(fd);
  least->loop_handler().loop->Post([least, fd] { least->Take(fd); });
}

namespace {

// Runs `task` on the loop, and waits for it.
void RunOn(Loop* loop, absl::AnyInvocable<void()> task) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  loop->Post([&] {
    task();
    const std::lock_guard<std::mutex> lock(mutex);
    done = true;
    changed.notify_one();
  });
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return done; });
}

}  // namespace

void Server::Stop() {
  if (stopped_ || acceptor_ == nullptr) return;
  stopped_ = true;
  RunOn(loop_servers_.front()->loop_handler().loop, [this] {
    acceptor_->Stop();
    CloseSocket();
  });
  for (const auto& loop_server : loop_servers_) {
    loop_server->loop_handler().loop->Post(
        [loop_server = loop_server.get()] { loop_server->GoAway(); });
  }
}

void Server::Join() {
  if (acceptor_ == nullptr) return;
  Stop();
  for (const auto& loop_server : loop_servers_) {
    RunOn(loop_server->loop_handler().loop,
          [loop_server = loop_server.get()] { loop_server->CloseAll(); });
  }
  // Connections that were handed over meanwhile are closed as they come. Ended
  // ones are deleted as their loops' iterations end.
  for (const auto& loop_server : loop_servers_) {
    RunOn(loop_server->loop_handler().loop,
          [loop_server = loop_server.get()] { loop_server->CloseAll(); });
  }
}

}  // namespace fncache::http2
