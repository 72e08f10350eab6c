// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/status.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fncache::proxy::telemetry {
namespace {

// A certificate that ends within this time should have been replaced.
constexpr absl::Duration kExpirySoon = absl::Hours(7 * 24);

// "12 times", "once".
std::string Times(uint64_t n) {
  return n == 1 ? "once" : absl::StrCat(n, " times");
}

// The counts that are not 0, with their names: "queue_full 12 times, error
// once". Empty if all are 0.
template <typename What, size_t kCount>
std::string Counted(const uint64_t (&counts)[kCount],
                    const char* (*name)(What what)) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < kCount; ++i) {
    if (counts[i] == 0) continue;
    parts.push_back(
        absl::StrCat(name(static_cast<What>(i)), " ", Times(counts[i])));
  }
  return absl::StrJoin(parts, ", ");
}

class Finder {
 public:
  explicit Finder(const Status& status) : status_(status) {}

  std::vector<Problem> Find() {
    Accepting();
    Functions();
    Tiers();
    Shared();
    Certificates();
    Settings();
    Handshakes();
    Fills();
    AccessLog();
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const Problem& a, const Problem& b) {
                       return a.severity > b.severity;
                     });
    return std::move(problems_);
  }

 private:
  void Add(Problem::Severity severity, absl::string_view kind,
           absl::string_view subject, std::string text) {
    problems_.push_back(
        {severity, std::string(kind), std::string(subject), std::move(text)});
  }
  void Warn(absl::string_view kind, absl::string_view subject,
            std::string text) {
    Add(Problem::Severity::kWarning, kind, subject, std::move(text));
  }
  void Error(absl::string_view kind, absl::string_view subject,
             std::string text) {
    Add(Problem::Severity::kError, kind, subject, std::move(text));
  }

  std::string SinceText(absl::Time since) const {
    return absl::StrCat("since ", TimeText(since), " (for ",
                        SpanText(status_.reading.now - since), ")");
  }

  void Accepting() {
    if (status_.state != "not_accepting") return;
    Error("not_accepting", "",
          "No new connections are accepted: files or memory have run out, as "
          "the log says, or a worker hangs.");
  }

  void Functions() {
    for (size_t id = 0; id < status_.functions.size(); ++id) {
      const Status::Function& function = status_.functions[id];
      const FunctionCounts& recent = status_.reading.recent.functions[id];
      const Reachability& reach = function.reachability;
      if (!reach.reachable) {
        Error("function_unreachable", function.name,
              absl::StrCat(function.name, " cannot be reached at ",
                           function.upstream, " ", SinceText(reach.since), ": ",
                           reach.why));
      } else {  // an unreachable function's calls fail anyway
        UpstreamErrors(function, recent);
      }
      ServedOver(function, recent);
      RefusedWithoutCaller(function, recent);
      Refused(function, recent);
    }
  }

  void ServedOver(const Status::Function& function,
                  const FunctionCounts& recent) {
    if (recent.ServedOver() == 0) return;
    std::vector<std::string> codes;
    for (size_t code = 0; code < kStatusCodes; ++code) {
      if (recent.served_over[code] == 0) continue;
      codes.push_back(absl::StrCat(StatusCodeName(static_cast<int>(code)), " ",
                                   Times(recent.served_over[code])));
    }
    Warn("errors_served_over", function.name,
         absl::StrCat("Callers of ", function.name,
                      " got old answers instead of errors in the last minute ("
                      "stale_if_error): ",
                      absl::StrJoin(codes, ", "), "."));
  }

  void RefusedWithoutCaller(const Status::Function& function,
                            const FunctionCounts& recent) {
    std::vector<std::string> what;
    if (recent.refreshes_refused > 0) {
      what.push_back(absl::StrCat("a refresh was not begun ",
                                  Times(recent.refreshes_refused)));
    }
    if (recent.abandoned_refused > 0) {
      what.push_back(absl::StrCat("an abandoned call was cancelled ",
                                  Times(recent.abandoned_refused)));
    }
    if (what.empty()) return;
    Warn("no_room_without_caller", function.name,
         absl::StrCat("As many calls to ", function.name,
                      " as may run without a caller did in the last minute: ",
                      absl::StrJoin(what, ", "), "."));
  }

  void Refused(const Status::Function& function, const FunctionCounts& recent) {
    // Indexed by transport::Refusal.
    static constexpr const char* kWhy[kRefusals] = {
        "metadata beyond max_metadata_bytes ",
        "larger than max_request_bytes or max_response_bytes ",
        "inflight.bytes used up ",
        "stalled while others waited for inflight.bytes ",
        "a loop, as upstream leads back here "};
    std::vector<std::string> what;
    for (size_t why = 0; why < kRefusals; ++why) {
      if (recent.refused[why] == 0) continue;
      what.push_back(absl::StrCat(kWhy[why], Times(recent.refused[why])));
    }
    if (what.empty()) return;
    Warn("calls_refused", function.name,
         absl::StrCat("Calls of ", function.name,
                      " were refused in the last minute: ",
                      absl::StrJoin(what, ", "), "."));
  }

  void UpstreamErrors(const Status::Function& function,
                      const FunctionCounts& recent) {
    const uint64_t errors = recent.UpstreamErrors();
    if (errors == 0) return;
    std::vector<std::string> codes;
    uint64_t calls = 0;
    for (size_t code = 0; code < kStatusCodes; ++code) {
      const uint64_t count = recent.upstream[code];
      calls += count;
      if (count > 0 && IsUpstreamError(code)) {
        codes.push_back(absl::StrCat(StatusCodeName(static_cast<int>(code)),
                                     " ", Times(count)));
      }
    }
    Warn("upstream_errors", function.name,
         absl::StrCat(errors, " of ", calls, " calls to ", function.name,
                      " ended with an error in the last minute: ",
                      absl::StrJoin(codes, ", "), "."));
  }

  void Tiers() {
    const History::Reading& reading = status_.reading;
    for (size_t i = 0; i < reading.tiers.size(); ++i) {
      const char* const name = TierName(reading.tiers[i].tier);
      if (reading.down_since[i].has_value()) {
        Error("tier_down", name,
              absl::StrCat("The ", name, " tier is down ",
                           SinceText(*reading.down_since[i]),
                           ": look-ups and fills leave it out. The log says "
                           "why."));
      }
    }
    for (size_t t = 0; t < kTiers; ++t) {
      const std::string kinds =
          Counted(reading.recent.tier_errors[t], TierErrorName);
      if (kinds.empty()) continue;
      const char* const name = TierName(static_cast<cache::Tier>(t));
      Warn("tier_errors", name,
           absl::StrCat("The ", name, " tier failed in the last minute: ",
                        kinds, ". No call failed for it."));
    }
  }

  void Shared() {
    if (!status_.shared.has_value()) return;
    const cache::store::SharedFigures& shared = *status_.shared;
    if (!shared.up) {
      Error("tier_down", "shared",
            absl::StrCat("The shared tier is down ", SinceText(shared.since),
                         ": ", shared.why,
                         ". Look-ups there are misses, and fills are dropped "
                         "there."));
      return;
    }
    if (!shared.bans_written) {
      Warn("bans_not_shared", "shared",
           "The record of bans lacks a purge of this daemon, so other replicas "
           "do not know it. That is retried.");
    }
    const resp::Node* first = nullptr;
    size_t count = 0;
    for (const resp::Node& node : shared.server.nodes) {
      if (node.state == resp::Node::State::kUp) continue;
      if (count++ == 0) first = &node;
    }
    if (count == 0) return;
    Warn("nodes_not_up", "shared",
         absl::StrCat(count, " of ", shared.server.nodes.size(),
                      " nodes of the shared tier's server are not up. The "
                      "first is ",
                      first->address, ", ", NodeStateName(first->state),
                      first->why.empty() ? "" : ": ", first->why, "."));
  }

  void Certificates() {
    for (const Instruments::CertificateReading& certificate :
         status_.certificates) {
      const char* const side = TlsSideName(certificate.side);
      const absl::Duration left = certificate.expiry - status_.reading.now;
      if (left <= absl::ZeroDuration()) {
        Error("certificate_expired", side,
              absl::StrCat("The ", side, " certificate ended at ",
                           TimeText(certificate.expiry), ": peers refuse it."));
      } else if (left < kExpirySoon) {
        Warn("certificate_expires_soon", side,
             absl::StrCat("The ", side, " certificate ends in ", SpanText(left),
                          ", at ", TimeText(certificate.expiry), "."));
      }
      if (certificate.last_reload_failed) {
        Warn("certificate_reload_failed", side,
             absl::StrCat("The ", side,
                          " certificate files were replaced by files that "
                          "cannot be used; the older ones stay in use. The log "
                          "says why."));
      }
    }
  }

  void Settings() {
    const ReloadFigures& reload = status_.reload;
    if (!reload.last_successful) {
      Warn("reload_failed", reload.file,
           absl::StrCat("The settings file cannot be put in force ",
                        SinceText(reload.failing_since),
                        ", the settings of before hold: ", reload.error));
    }
    if (!reload.restart.empty()) {
      Warn(
          "restart_needed", reload.file,
          absl::StrCat("The settings file says otherwise than the daemon runs, "
                       "until it is restarted: ",
                       absl::StrJoin(reload.restart, ", "), "."));
    }
  }

  void Handshakes() {
    for (size_t s = 0; s < kTlsSides; ++s) {
      const char* const side = TlsSideName(static_cast<TlsSide>(s));
      const std::string reasons = Counted(
          status_.reading.recent.handshakes_failed[s], HandshakeFaultName);
      if (reasons.empty()) continue;
      Warn("handshakes_failed", side,
           absl::StrCat("TLS handshakes failed in the last minute (", side,
                        "): ", reasons, "."));
    }
  }

  void Fills() {
    const std::string reasons =
        Counted(status_.reading.recent.fills_dropped, DroppedName);
    if (reasons.empty()) return;
    Warn("fills_dropped", "cache",
         absl::StrCat("Responses were not stored in the last minute: ", reasons,
                      "."));
  }

  void AccessLog() {
    const uint64_t dropped = status_.reading.recent.access_log_dropped;
    if (dropped == 0) return;
    Warn("access_log_dropped", "access log",
         absl::StrCat(dropped, dropped == 1 ? " line" : " lines",
                      " of the access log ", dropped == 1 ? "was" : "were",
                      " not written in the last minute: its output takes them "
                      "too slowly, or not at all. The log says more."));
  }

  const Status& status_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> FindProblems(const Status& status) {
  return Finder(status).Find();
}

const char* SeverityName(Problem::Severity severity) {
  return severity == Problem::Severity::kError ? "error" : "warning";
}

std::string SpanText(absl::Duration duration) {
  int64_t seconds = absl::ToInt64Seconds(duration);
  if (seconds < 0) seconds = 0;
  std::string out;
  const auto part = [&](int64_t size, const char* unit) {
    if (seconds >= size || !out.empty()) {
      absl::StrAppend(&out, out.empty() ? "" : " ", seconds / size, unit);
      seconds %= size;
    }
  };
  part(86400, "d");
  part(3600, "h");
  part(60, "m");
  absl::StrAppend(&out, out.empty() ? "" : " ", seconds, "s");
  return out;
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

absl::optional<double> HitRate(const FunctionCounts& counts) {
  const uint64_t lookups = counts.hits + counts.misses;
  if (lookups == 0) return absl::nullopt;
  return static_cast<double>(counts.hits) / static_cast<double>(lookups);
}

}  // namespace fncache::proxy::telemetry
