// SPDX-License-Identifier: Apache-2.0
#include "metrics/admin_server.h"

#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/listen_address.h"
#include "common/mutex.h"

namespace fncache::metrics {
namespace {

// A connection on which nothing moves for this time is closed.
constexpr unsigned kIdleSeconds = 2;
// One that moves is closed at this age, once another one comes.
constexpr absl::Duration kMostAge = absl::Seconds(30);
// If more connections are open, the oldest one is closed. So a client that
// holds connections without asking loses them, not a new client.
constexpr size_t kMostConnections = 512;
// Limit, in bytes, of answers that were not sent yet. Beyond it the oldest one
// is not sent.
constexpr size_t kMostMemory = 16 << 20;
// The limit of libmicrohttpd. It is never reached, because the oldest
// connections are closed before.
constexpr unsigned kConnectionLimit = 4 * kMostConnections;
// Several threads, so that a slow page does not delay the others.
constexpr unsigned kThreads = 4;
// Memory of each connection, in bytes: for the request's head and the answer's.
constexpr size_t kConnectionMemory = 20 << 10;

struct Address {
  std::string host;  // without brackets
  bool ipv6 = false;
  std::string port;
};

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("not an address of the form HOST:PORT: '", text, "'"));
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return bad;
  Address address;
  absl::string_view host = text.substr(0, colon);
  const absl::string_view port = text.substr(colon + 1);
  uint32_t number;
  if (port.empty() || !isdigit(static_cast<unsigned char>(port[0])) ||
      !absl::SimpleAtoi(port, &number) || number > 65535) {
    return bad;
  }
  address.port = absl::StrCat(number);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    address.ipv6 = true;
    host = host.substr(1, host.size() - 2);
    if (host.empty()) return bad;
  }
  // No list, no space: no resolver may interpret them.
  for (const char c : host) {
    const bool plain = isalnum(static_cast<unsigned char>(c)) || c == '.' ||
                       c == '-' || c == '_';
    if (!plain && !(address.ipv6 && (c == ':' || c == '%'))) return bad;
  }
  address.host = std::string(host);
  return address;
}

absl::Status ErrnoStatus(int error) {
  return absl::UnavailableError(std::strerror(error));
}

// A socket that listens there.
absl::StatusOr<int> ListenOn(const Address& address) {
  addrinfo hints = {};
  hints.ai_family = address.ipv6 ? AF_INET6 : AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | (address.ipv6 ? AI_NUMERICHOST : 0);
  addrinfo* found = nullptr;
  const int failed =
      getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(),
                  address.port.c_str(), &hints, &found);
  if (failed != 0) {
    return absl::Status(address.ipv6 ? absl::StatusCode::kInvalidArgument
                                     : absl::StatusCode::kUnavailable,
                        gai_strerror(failed));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found,
                                                             &freeaddrinfo);
  const int fd =
      socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno);
  const int on = 1;
  const int off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // [::] is every address, of IPv4 too, whatever the system's default is.
  if (address.ipv6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
      listen(fd, SOMAXCONN) != 0) {
    const int error = errno;
    close(fd);
    return ErrnoStatus(error);
  }
  return fd;
}

// The connections that are open, the oldest first.
class OpenConnections {
 public:
  struct One {
    int fd;
    absl::Time since;
    size_t held = 0;  // bytes of its answer
    bool told_to_go = false;
  };
  using Position = std::list<One>::iterator;

  // Ends those that are too many, or too old, so that the new one is served.
  Position Add(int fd) {
    const absl::Time now = absl::Now();
    MutexLock lock(&mutex_);
    const Position added = all_.insert(all_.end(), One{fd, now});
    ++staying_;
    for (One& one : all_) {
      if (one.told_to_go) continue;
      if (staying_ <= kMostConnections && now - one.since < kMostAge) break;
      End(&one);
    }
    return added;
  }
  // Counts its answer of `bytes`. Older connections whose answers wait for
  // their readers may be closed for it.
  void Hold(Position position, size_t bytes) {
    MutexLock lock(&mutex_);
    if (position->told_to_go) return;
    position->held += bytes;
    held_ += bytes;
    for (auto one = all_.begin(); held_ > kMostMemory && one != position;
         ++one) {
      if (!one->told_to_go && one->held > 0) End(&*one);
    }
  }
  void Remove(Position position) {
    MutexLock lock(&mutex_);
    if (!position->told_to_go) Forget(*position);
    all_.erase(position);
  }

 private:
  // Its thread finds it at its end. Closed it is only after Remove.
  void End(One* one) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    shutdown(one->fd, SHUT_RDWR);
    one->told_to_go = true;
    Forget(*one);
  }
  void Forget(const One& one) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    --staying_;
    held_ -= one.held;
  }

  Mutex mutex_;
  std::list<One> all_ ABSL_GUARDED_BY(mutex_);
  // The number of connections without told_to_go.
  size_t staying_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t held_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

class AdminServer::Impl {
 public:
  explicit Impl(Pages pages) : pages_(std::move(pages)) {}

  ~Impl() {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }

  // Starts to serve, and returns the port.
  absl::StatusOr<int> Listen(const Address& address) {
    absl::StatusOr<int> fd = ListenOn(address);
    if (!fd.ok()) return fd;
    const int port = PortOf(*fd);
    // Without MHD_USE_ERROR_LOG it prints nothing: its messages are about
    // clients, which could fill the log.
    daemon_ = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, /*port=*/0,
        /*apc=*/nullptr, nullptr, &OnRequest, this,  //
        MHD_OPTION_LISTEN_SOCKET, *fd,               //
        MHD_OPTION_THREAD_POOL_SIZE, kThreads,       //
        MHD_OPTION_CONNECTION_LIMIT, kConnectionLimit,
        MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionMemory,
        MHD_OPTION_URI_LOG_CALLBACK, &OnUri, this,        //
        MHD_OPTION_NOTIFY_COMPLETED, &OnCompleted, this,  //
        MHD_OPTION_NOTIFY_CONNECTION, &OnConnection, this, MHD_OPTION_END);
    if (daemon_ == nullptr) {
      close(*fd);
      return absl::UnavailableError("the HTTP server cannot start");
    }
    return port;
  }

 private:
  // As the client wrote it, before anything is unescaped: what OnRequest gets
  // as its request.
  static void* OnUri(void* /*self*/, const char* uri, MHD_Connection*) {
    return new std::string(uri);
  }
  static void OnCompleted(void* /*self*/, MHD_Connection*, void** request,
                          MHD_RequestTerminationCode) {
    delete static_cast<std::string*>(std::exchange(*request, nullptr));
  }

  static void OnConnection(void* self, MHD_Connection* connection,
                           void** context,
                           MHD_ConnectionNotificationCode what) {
    OpenConnections& open = static_cast<Impl*>(self)->open_;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
      const MHD_ConnectionInfo* const info = MHD_get_connection_info(
          connection, MHD_CONNECTION_INFO_CONNECTION_FD);
      *context = new OpenConnections::Position(open.Add(info->connect_fd));
    } else {
      auto* const position = static_cast<OpenConnections::Position*>(*context);
      open.Remove(*position);
      delete position;
    }
  }

  static MHD_Result OnRequest(void* self, MHD_Connection* connection,
                              const char* /*url*/, const char* method,
                              const char* /*version*/, const char* /*upload*/,
                              size_t* /*upload_size*/, void** request) {
    auto* const impl = static_cast<Impl*>(self);
    const auto* const uri = static_cast<const std::string*>(*request);
    Response response = impl->Answer(method, *uri);
    const MHD_ConnectionInfo* const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    impl->open_.Hold(
        *static_cast<OpenConnections::Position*>(info->socket_context),
        response.body.size());
    return Send(connection, std::move(response));
  }

  Response Answer(absl::string_view method, absl::string_view uri) const {
    Response response;
    const size_t mark = uri.find('?');
    const auto page = pages_.find(std::string(uri.substr(0, mark)));
    if (page == pages_.end()) {
      response.code = 404;
      response.body = "not found\n";
    } else if (method != "GET" && method != "HEAD") {
      response.code = 405;
      response.body = "only GET and HEAD\n";
      response.more_headers = {{"Allow", "GET, HEAD"}};
    } else {
      response = page->second(
          mark == absl::string_view::npos ? "" : uri.substr(mark + 1));
    }
    return response;
  }

  // To HEAD libmicrohttpd leaves the body out.
  static MHD_Result Send(MHD_Connection* connection, Response response) {
    auto body = std::make_unique<std::string>(std::move(response.body));
    const std::unique_ptr<MHD_Response, void (*)(MHD_Response*)> answer(
        MHD_create_response_from_buffer_with_free_callback_cls(
            body->size(), body->data(),
            [](void* whole) { delete static_cast<std::string*>(whole); },
            body.get()),
        &MHD_destroy_response);
    if (answer == nullptr) return MHD_NO;
    (void)body.release();  // the answer's, now
    const auto add = [&answer](const std::string& name,
                               const std::string& value) {
      MHD_add_response_header(answer.get(), name.c_str(), value.c_str());
    };
    for (const auto& [name, value] : response.more_headers) add(name, value);
    add("Cache-Control", "no-store");
    add("X-Content-Type-Options", "nosniff");
    add("Connection", "close");
    add("Content-Type", response.content_type);
    return MHD_queue_response(connection, static_cast<unsigned>(response.code),
                              answer.get());
  }

  const Pages pages_;
  OpenConnections open_;
  MHD_Daemon* daemon_ = nullptr;
};

AdminServer::AdminServer(std::unique_ptr<Impl> impl, std::string address,
                         int port)
    : impl_(std::move(impl)), address_(std::move(address)), port_(port) {}

AdminServer::~AdminServer() = default;

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(
    absl::string_view address, Pages pages) {
  absl::StatusOr<Address> parsed = ParseAddress(address);
  if (!parsed.ok()) return parsed.status();
  auto impl = std::make_unique<Impl>(std::move(pages));
  absl::StatusOr<int> port = impl->Listen(*parsed);
  if (!port.ok()) {
    return absl::Status(port.status().code(),
                        absl::StrCat("cannot listen on ", address, ": ",
                                     port.status().message()));
  }
  const std::string host =
      parsed->ipv6 ? absl::StrCat("[", parsed->host, "]") : parsed->host;
  return std::unique_ptr<AdminServer>(
      new AdminServer(std::move(impl), absl::StrCat(host, ":", *port), *port));
}

}  // namespace fncache::metrics
