// SPDX-License-Identifier: Apache-2.0
#include "metrics/admin_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "civetweb.h"
#include "common/log.h"
#include "common/mutex.h"
#include "metrics/ipv6_relay.h"

namespace fncache::metrics {
namespace {

// A request must have arrived within this time, and writing an answer may stall
// for as long. With this many threads, 40 connections that hang leave enough to
// scrape with; civetweb's own defaults, 50 threads and 30 s, do not.
constexpr char kTimeoutMilliseconds[] = "2000";
constexpr char kThreads[] = "64";

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
  // civetweb would read other characters as more than a host, such as a list.
  for (const char c : host) {
    const bool plain = isalnum(static_cast<unsigned char>(c)) || c == '.' ||
                       c == '-' || c == '_';
    if (!plain && !(address.ipv6 && (c == ':' || c == '%'))) return bad;
  }
  address.host = std::string(host);
  return address;
}

// As civetweb's `listening_ports` wants it. An IPv6 address gets a relay to a
// port of ours (see ipv6_relay.h).
std::string ListeningPort(const Address& address) {
  if (address.ipv6) return "127.0.0.1:0";
  if (address.host.empty()) return address.port;
  return absl::StrCat(address.host, ":", address.port);
}

absl::string_view Reason(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

}  // namespace

class AdminServer::Impl {
 public:
  explicit Impl(Pages pages) : pages_(std::move(pages)) {}

  ~Impl() {
    relay_.reset();
    if (context_ == nullptr) return;
    // civetweb's accepting thread looks for the end every two seconds, and
    // whenever someone connects.
    std::atomic<bool> stopped{false};
    std::thread waker([&] {
      while (!stopped) {
        Knock();
        absl::SleepFor(absl::Milliseconds(5));
      }
    });
    mg_stop(context_);
    stopped = true;
    waker.join();
  }

  // Starts to serve, and returns the port.
  absl::StatusOr<int> Listen(const Address& address) {
    const std::string listening_port = ListeningPort(address);
    const std::vector<const char*> options = {"listening_ports",
                                              listening_port.c_str(),  //
                                              "num_threads",
                                              kThreads,  //
                                              "request_timeout_ms",
                                              kTimeoutMilliseconds,  //
                                              "linger_timeout_ms",
                                              "500",  //
                                              "enable_keep_alive",
                                              "no",  //
                                              "enable_directory_listing",
                                              "no",  //
                                              "max_request_size",
                                              "16384",  //
                                              nullptr};
    mg_callbacks callbacks = {};
    callbacks.begin_request = &BeginRequest;
    callbacks.log_message = &LogMessage;
    callbacks.log_access = &LogAccess;
    mg_init_data init = {&callbacks, this,
                         const_cast<const char**>(options.data())};
    char text[256] = "";
    mg_error_data error = {};
    error.text = text;
    error.text_buffer_size = sizeof(text);
    context_ = mg_start2(&init, &error);
    if (context_ == nullptr) {
      MutexLock lock(&mutex_);
      return absl::UnavailableError(messages_.empty()
                                        ? std::string(text)
                                        : absl::StrJoin(messages_, "; "));
    }
    mg_server_port ports[4] = {};
    if (mg_get_server_ports(context_, 4, ports) < 1) {
      return absl::UnavailableError("no port was bound");
    }
    self_.sin_family = AF_INET;
    self_.sin_port = htons(ports[0].port);
    if (inet_pton(AF_INET, address.host.c_str(), &self_.sin_addr) != 1 ||
        self_.sin_addr.s_addr == htonl(INADDR_ANY)) {
      self_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    {
      MutexLock lock(&mutex_);
      started_ = true;
    }
    if (!address.ipv6) return ports[0].port;
    absl::StatusOr<std::unique_ptr<Ipv6Relay>> relay =
        Ipv6Relay::Start(address.host, address.port, ports[0].port);
    if (!relay.ok()) return relay.status();
    relay_ = *std::move(relay);
    return relay_->port();
  }

 private:
  // Every request comes here, and none goes on to civetweb's own handling (of
  // files, say): the result is never 0.
  static int BeginRequest(mg_connection* connection) {
    const mg_request_info* const request = mg_get_request_info(connection);
    const auto* const self = static_cast<const Impl*>(request->user_data);
    const absl::string_view method = request->request_method;
    Response response;
    const auto page = self->pages_.find(
        request->local_uri_raw == nullptr ? "" : request->local_uri_raw);
    if (page == self->pages_.end()) {
      response.code = 404;
      response.body = "not found\n";
    } else if (method != "GET" && method != "HEAD") {
      response.code = 405;
      response.body = "only GET and HEAD\n";
      response.more_headers = "Allow: GET, HEAD\r\n";
    } else {
      response = page->second(
          request->query_string == nullptr ? "" : request->query_string);
    }
    const std::string head = absl::StrCat(
        "HTTP/1.1 ", response.code, " ", Reason(response.code),
        "\r\nContent-Type: ", response.content_type,
        "\r\nContent-Length: ", response.body.size(), "\r\n",
        response.more_headers,
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n\r\n");
    mg_write(connection, head.data(), head.size());
    if (method != "HEAD") {
      mg_write(connection, response.body.data(), response.body.size());
    }
    return response.code;
  }

  // Connects to ourselves and hangs up.
  void Knock() const {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    (void)connect(fd, reinterpret_cast<const sockaddr*>(&self_), sizeof(self_));
    close(fd);
  }

  // The result is not 0, so civetweb prints nothing itself.
  static int LogMessage(const mg_connection* connection, const char* message) {
    auto* const self =
        static_cast<Impl*>(mg_get_user_data(mg_get_context(connection)));
    if (self == nullptr) return 1;
    MutexLock lock(&self->mutex_);
    // Messages before the start say why it fails. Later ones are about what
    // clients do, and at a higher level clients could fill the log.
    if (!self->started_) {
      self->messages_.push_back(message);
    } else {
      Log(LogLevel::kDebug, "admin endpoint", {{"message", message}});
    }
    return 1;
  }
  static int LogAccess(const mg_connection*, const char*) { return 1; }

  const Pages pages_;
  Mutex mutex_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> messages_ ABSL_GUARDED_BY(mutex_);
  mg_context* context_ = nullptr;
  sockaddr_in self_ = {};  // where Knock finds us
  std::unique_ptr<Ipv6Relay> relay_;
};

AdminServer::AdminServer(std::unique_ptr<Impl> impl, std::string address,
                         int port)
    : impl_(std::move(impl)), address_(std::move(address)), port_(port) {}

AdminServer::~AdminServer() = default;

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(
    absl::string_view address, Pages pages) {
  static const unsigned features = mg_init_library(MG_FEATURES_DEFAULT);
  (void)features;
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
