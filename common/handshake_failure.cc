// SPDX-License-Identifier: Apache-2.0
#include "common/handshake_failure.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/log.h"
#include "common/log_limiter.h"
#include "common/mutex.h"
#include "common/utf8.h"

namespace fncache {
namespace {

// A connection to a function that fails is retried every two seconds, and fails
// with the same cause. The same cause is logged again after this time.
constexpr absl::Duration kOldNews = absl::Hours(1);
// Limit of different failures that are remembered. Beyond it, all are
// forgotten.
constexpr size_t kMostLogged = 100;

struct State {
  LogLimiter server_lines{absl::Seconds(1)};
  LogLimiter client_lines{absl::Seconds(1)};
  Mutex logged_mutex;
  // When each failure of a function was last logged.
  std::map<std::string, absl::Time> logged ABSL_GUARDED_BY(logged_mutex);
  // Held while observers run, so that they can go.
  Mutex observers_mutex;
  std::vector<const HandshakeObserver*> observers
      ABSL_GUARDED_BY(observers_mutex);
};

// Never destroyed: gRPC's threads may outlive main.
State& TheState() {
  static auto* const state = new State;
  return *state;
}

// Cuts a peer's own text to keep log lines short.
std::string Shortened(const std::string& text) {
  constexpr size_t kMost = 200;
  if (text.size() <= kMost) return text;
  return absl::StrCat(WellFormedUtf8(text.substr(0, kMost)), "...");
}

// Whether to log the failure now. If so, it counts as logged.
bool MayTell(const HandshakeFailure& failure, uint64_t* unlogged) {
  State& state = TheState();
  const absl::Time now = absl::Now();
  if (failure.side == TlsSide::kServer) {
    return state.server_lines.Allows(now, unlogged);
  }
  std::string what = absl::StrCat(failure.words, failure.certificate);
  MutexLock lock(&state.logged_mutex);
  const auto logged = state.logged.find(what);
  // A clock that was set back must not silence the log.
  if (logged != state.logged.end() && now >= logged->second &&
      now - logged->second < kOldNews) {
    return false;
  }
  if (!state.client_lines.Allows(now, unlogged)) return false;
  if (state.logged.size() >= kMostLogged) state.logged.clear();
  state.logged[std::move(what)] = now;
  return true;
}

void LogFailure(const HandshakeFailure& failure) {
  const bool server = failure.side == TlsSide::kServer;
  uint64_t unlogged = 0;
  if (!MayTell(failure, &unlogged)) return;
  std::vector<LogField> fields = {
      {"reason", HandshakeFaultName(failure.fault)}};
  if (!failure.certificate.empty()) {
    fields.emplace_back("certificate", Shortened(failure.certificate));
  }
  // Failures of this side since its last line that have none of their own.
  if (unlogged > 0) fields.emplace_back("unlogged", unlogged);
  Log(LogLevel::kWarning,
      absl::StrCat("TLS handshake with a ", server ? "caller" : "function",
                   " failed: ", failure.words),
      fields);
}

}  // namespace

const char* HandshakeFaultName(HandshakeFault fault) {
  static constexpr const char* kNames[kHandshakeFaults] = {
      "unknown_authority", "expired",         "not_yet_valid",
      "wrong_usage",       "wrong_name",      "bad_certificate",
      "no_certificate",    "refused_by_peer", "plaintext",
      "protocol"};
  return kNames[static_cast<size_t>(fault)];
}

std::string CertificateText(absl::string_view common_name,
                            const std::vector<std::string>& names) {
  return absl::StrCat("CN=", common_name, " for ",
                      names.empty() ? "no name" : absl::StrJoin(names, ", "));
}

std::string ReportWrongName(absl::string_view called, absl::string_view setting,
                            std::string certificate) {
  const std::string said =
      absl::StrCat("the function's certificate is not for ", called);
  HandshakeFailure failure;
  failure.side = TlsSide::kClient;
  failure.fault = HandshakeFault::kWrongName;
  failure.words =
      setting.empty() ? said : absl::StrCat(said, " (", setting, ")");
  failure.certificate = std::move(certificate);
  ReportHandshakeFailure(failure);
  return said;
}

void ReportHandshakeFailure(const HandshakeFailure& failure) {
  {
    State& state = TheState();
    MutexLock lock(&state.observers_mutex);
    for (const HandshakeObserver* observer : state.observers) {
      observer->callback_(failure);
    }
  }
  LogFailure(failure);
}

HandshakeObserver::HandshakeObserver(Callback callback)
    : callback_(std::move(callback)) {
  State& state = TheState();
  MutexLock lock(&state.observers_mutex);
  state.observers.push_back(this);
}

HandshakeObserver::~HandshakeObserver() {
  State& state = TheState();
  MutexLock lock(&state.observers_mutex);
  auto& all = state.observers;
  all.erase(std::remove(all.begin(), all.end(), this), all.end());
}

}  // namespace fncache
