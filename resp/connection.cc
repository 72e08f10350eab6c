// SPDX-License-Identifier: Apache-2.0
#include "resp/connection.h"

#include <curl/curl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/curl.h"

namespace fncache::resp {
namespace {

// Limit of a node's words in a reason.
constexpr size_t kMostWords = 320;
// Time between two looks at the stop flag, in milliseconds.
constexpr int64_t kSlice = 50;

// CURLOPT_ERRORBUFFER has the first failure only, which may be one that did not
// matter.
int KeepText(CURL* /*easy*/, curl_infotype type, char* text, size_t size,
             void* to) {
  if (type == CURLINFO_TEXT) static_cast<std::string*>(to)->assign(text, size);
  return 0;
}

int StopNow(void* stop, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return *static_cast<const std::atomic<bool>*>(stop) ? 1 : 0;
}

void SetTls(CURL* easy, const std::string& dir) {
  curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, LeaveTlsToCurl);
  curl_easy_setopt(easy, CURLOPT_SSL_ENABLE_ALPN, 0L);
  curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  if (dir.empty()) return;
  curl_easy_setopt(easy, CURLOPT_CAINFO, (dir + "/ca.crt").c_str());
  curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);  // it alone is trusted
  const std::string certificate = dir + "/tls.crt";
  if (access(certificate.c_str(), F_OK) != 0) return;
  curl_easy_setopt(easy, CURLOPT_SSLCERT, certificate.c_str());
  curl_easy_setopt(easy, CURLOPT_SSLKEY, (dir + "/tls.key").c_str());
}

}  // namespace

std::string AddressOf(const Endpoint& endpoint) {
  if (!endpoint.unix_path.empty()) return endpoint.unix_path;
  const bool six = absl::StrContains(endpoint.host, ':');
  return absl::StrCat(six ? "[" : "", endpoint.host, six ? "]:" : ":",
                      endpoint.port);
}

std::string Words(absl::string_view text, absl::string_view secret) {
  std::string words;
  while (!text.empty() && words.size() < kMostWords) {
    if (!secret.empty() && absl::ConsumePrefix(&text, secret)) {
      words += "***";
      continue;
    }
    words += absl::ascii_isprint(text[0]) ? text[0] : '?';
    text.remove_prefix(1);
  }
  return words;
}

Connection::Connection(std::string secret, const std::atomic<bool>* stop)
    : secret_(std::move(secret)),
      stop_(stop),
      easy_(MakeCurl(), &curl_easy_cleanup) {}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(
    const Peer& peer, const std::string& tls_dir, std::string secret,
    const std::atomic<bool>* stop) {
  std::unique_ptr<Connection> connection(
      new Connection(std::move(secret), stop));
  CURL* const easy = connection->easy_.get();
  if (easy == nullptr) return absl::UnavailableError("libcurl cannot be used");
  Endpoint named = peer.endpoint;
  if (named.tls) named.host = peer.name;
  // From any host and port to this one.
  const std::unique_ptr<curl_slist, CurlListDeleter> to(curl_slist_append(
      nullptr, absl::StrCat("::", AddressOf(peer.endpoint)).c_str()));
  if (!named.unix_path.empty()) {
    curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, named.unix_path.c_str());
    curl_easy_setopt(easy, CURLOPT_URL, "http://localhost/");
  } else {
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, to.get());
    curl_easy_setopt(
        easy, CURLOPT_URL,
        absl::StrCat(named.tls ? "https://" : "http://", AddressOf(named), "/")
            .c_str());
  }
  std::array<char, CURL_ERROR_SIZE> error = {};
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error.data());
  curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, KeepText);
  curl_easy_setopt(easy, CURLOPT_DEBUGDATA, &connection->text_);
  curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
  // A resolver that hangs ends in a thread of its own.
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, StopNow);
  curl_easy_setopt(easy, CURLOPT_XFERINFODATA, stop);
  curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(  // NOLINT(google-runtime-int): curl's
                       absl::ToInt64Milliseconds(kBackgroundLimit)));
  if (named.tls) SetTls(easy, tls_dir);
  const CURLcode code = curl_easy_perform(easy);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, nullptr);
  connection->text_ = error.data();
  if (code != CURLE_OK) {
    curl_off_t resolved = 0;  // it took as long, in microseconds
    curl_easy_getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &resolved);
    const bool late = code == CURLE_OPERATION_TIMEDOUT && resolved == 0;
    return absl::Status(late ? absl::StatusCode::kDeadlineExceeded
                             : absl::StatusCode::kUnavailable,
                        connection->Why(code));
  }
  connection->text_.clear();
  curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &connection->socket_);
  return connection;
}

Answer Connection::Call(const std::vector<absl::string_view>& words,
                        Clock::time_point deadline, size_t max_reply_bytes) {
  if (Over(deadline)) return Late();
  parser_.Begin(max_reply_bytes);
  // A reply that is there already is not this command's.
  const Step early = Read();
  if (early == Step::kReply && parser_.reply().kind == Reply::Kind::kError) {
    return Fail(State::kClosed, Words(parser_.reply().text, secret_));
  }
  if (early == Step::kFailed) return Fail(state_, why_);
  if (early != Step::kNothing) {
    return Fail(State::kBroken, "bytes came without a command");
  }

  std::vector<const char*> texts;
  std::vector<size_t> sizes;
  for (const absl::string_view word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* formatted = nullptr;
  const int size = redisFormatCommandArgv(
      &formatted, static_cast<int>(words.size()), texts.data(), sizes.data());
  if (size < 0) return Fail(State::kBroken, "out of memory");
  const std::unique_ptr<char, void (*)(void*)> owned(formatted, &std::free);
  absl::string_view unsent(formatted, size);
  while (!unsent.empty()) {
    size_t sent = 0;
    const CURLcode code =
        curl_easy_send(easy_.get(), unsent.data(), unsent.size(), &sent);
    unsent.remove_prefix(sent);
    if (code == CURLE_AGAIN) {
      if (!Wait(POLLOUT, deadline)) return Late();
    } else if (code != CURLE_OK) {
      return Fail(State::kClosed, Why(code));
    }
    // A node that takes byte after byte must not prolong this.
    if (!unsent.empty() && Over(deadline)) return Late();
  }

  Step step = Step::kNothing;
  while (step != Step::kReply) {
    const bool over = Over(deadline);
    if (step == Step::kNothing && !Wait(POLLIN, deadline)) return Late();
    step = Read();
    if (step == Step::kFailed) return Fail(state_, why_);
    if (over && step != Step::kReply) return Late();
  }
  Reply& reply = parser_.reply();
  if (reply.kind == Reply::Kind::kError) {
    std::string why = Words(reply.text, secret_);
    return {Outcome::kError, std::move(reply), std::move(why)};
  }
  return {Outcome::kReply, std::move(reply), ""};
}

Connection::Step Connection::Read() {
  std::array<char, 32 << 10> bytes;
  size_t size = 0;
  const CURLcode code =
      curl_easy_recv(easy_.get(), bytes.data(), bytes.size(), &size);
  if (code == CURLE_AGAIN) return Step::kNothing;
  if (code != CURLE_OK || size == 0) {
    state_ = State::kClosed;
    why_ = code == CURLE_OK ? "the server closed the connection" : Why(code);
    return Step::kFailed;
  }
  switch (parser_.Feed({bytes.data(), size})) {
    case Parser::Result::kMore:
      return Step::kMore;
    case Parser::Result::kReply:
      return Step::kReply;
    case Parser::Result::kBroken:
      break;
  }
  state_ = State::kBroken;
  why_ = std::string(parser_.why());
  return Step::kFailed;
}

bool Connection::Over(Clock::time_point deadline) const {
  return *stop_ || Clock::now() >= deadline;
}

// False when it is over. Also true after a failure, which the next call shows.
bool Connection::Wait(short events, Clock::time_point deadline) const {
  pollfd waiting = {socket_, events, 0};
  while (true) {
    const bool over = Over(deadline);
    const int64_t left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now())
            .count();
    const int ready =
        poll(&waiting, 1,
             over ? 0 : static_cast<int>(std::clamp<int64_t>(left, 0, kSlice)));
    if (ready > 0) return true;
    if (over || (ready < 0 && errno != EINTR)) return false;
  }
}

Answer Connection::Late() {
  state_ = State::kLate;
  return {Outcome::kTimeout, {}, "no reply in time"};
}

Answer Connection::Fail(State state, std::string why) {
  state_ = state;
  return {Outcome::kBroken, {}, std::move(why)};
}

std::string Connection::Why(int code) const {
  if (!text_.empty()) {
    return Words(absl::StripTrailingAsciiWhitespace(text_), secret_);
  }
  return curl_easy_strerror(static_cast<CURLcode>(code));
}

}  // namespace fncache::resp
