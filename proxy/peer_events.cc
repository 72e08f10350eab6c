// SPDX-License-Identifier: Apache-2.0
#include "proxy/peer_events.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/log_limiter.h"

namespace fncache::proxy {
namespace {

// Logs one line a minute for each kind of event of a function or its callers.
class PeerLog {
 public:
  explicit PeerLog(const telemetry::FunctionInstruments* function)
      : function_(function) {}
  void Tell(LogLimiter* lines, absl::string_view what, absl::string_view why,
            std::string peer = "") {
    uint64_t unlogged = 0;
    if (!lines->Allows(absl::Now(), &unlogged)) return;
    std::vector<LogField> fields = {{"function", function_->name()}};
    if (!peer.empty()) fields.emplace_back("peer", std::move(peer));
    if (!why.empty()) fields.emplace_back("why", std::string(why));
    if (unlogged > 0) fields.emplace_back("unlogged", absl::StrCat(unlogged));
    Log(LogLevel::kWarning, what, fields);
  }

  LogLimiter connections{absl::Minutes(1)};
  LogLimiter streams{absl::Minutes(1)};
  LogLimiter accepting{absl::Minutes(1)};
  LogLimiter accepts_again{absl::Minutes(1)};
  // One limiter for each cause of a connection's end, so that a frequent
  // harmless one does not hide an attack.
  LogLimiter foreign{absl::Minutes(1)};
  LogLimiter slow{absl::Minutes(1)};
  LogLimiter broken{absl::Minutes(1)};
  LogLimiter flooding{absl::Minutes(1)};

 private:
  const telemetry::FunctionInstruments* const function_;
};

}  // namespace

http2::ServerEvents ListenerEvents(
    const telemetry::FunctionInstruments* function) {
  auto log = std::make_shared<PeerLog>(function);
  http2::ServerEvents events;
  events.ended = [function, log](const http2::Connection& connection,
                                 http2::ConnectionEnd end,
                                 const std::string& words) {
    function->ConnectionEnded(static_cast<size_t>(end));
    const auto tell = [&](LogLimiter* lines) {
      log->Tell(lines, "ended a caller's connection", words, connection.peer());
    };
    switch (end) {
      case http2::ConnectionEnd::kNotHttp2:
        return tell(&log->foreign);
      case http2::ConnectionEnd::kTimeout:
        return tell(&log->slow);
      case http2::ConnectionEnd::kProtocol:
        return tell(&log->broken);
      case http2::ConnectionEnd::kTooMuch:
        return tell(&log->flooding);
      default:
        return;
    }
  };
  events.connection_refused = [function, log] {
    function->ConnectionRefused();
    log->Tell(&log->connections, "closed a new connection: max_connections",
              "");
  };
  events.stream_refused = [function, log] {
    function->StreamRefused();
    log->Tell(&log->streams, "refused a call: max_streams", "");
  };
  events.abandoned = [function] { function->RequestAbandoned(); };
  events.accept_failed = [function, log](const std::string& why) {
    function->AcceptFailed();
    log->Tell(&log->accepting, "cannot accept connections, retrying", why);
  };
  events.accepts_again = [log] {
    log->Tell(&log->accepts_again, "accepting connections", "");
  };
  return events;
}

void SetUpstreamEvents(const telemetry::FunctionInstruments* function,
                       Clock* clock, transport::UpstreamOptions* options) {
  options->unreachable = [function, clock, target = options->target](
                             absl::string_view why, bool news) {
    function->Unreachable(clock->Now(), why);
    if (!news) return;
    Log(LogLevel::kWarning, "cannot reach the function",
        {{"function", function->name()}, {"upstream", target}, {"why", why}});
  };
  options->reachable = [function, target = options->target] {
    function->Reachable();
    Log(LogLevel::kInfo, "the function is reachable",
        {{"function", function->name()}, {"upstream", target}});
  };
  options->lost =
      [log = std::make_shared<PeerLog>(function)](absl::string_view why) {
        log->Tell(&log->broken, "lost a connection to the function with calls",
                  why);
      };
}

}  // namespace fncache::proxy
