// SPDX-License-Identifier: Apache-2.0
#include "proxy/daemon_facts.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/utf8.h"
#include "proxy/telemetry/shadow_report.h"
#include "proxy/telemetry/shadow_text.h"
#include "proxy/telemetry/shadow_verdict.h"

namespace fncache::proxy {
namespace {

// The most bans on a page. More of them do not help a reader.
constexpr size_t kMostBansShown = 10;

void AddBans(const cache::store::Bans& bans, const std::string& function,
             telemetry::FunctionFacts* facts) {
  using Kind = cache::store::Bans::Kind;
  for (const auto& ban : bans.List(function, kMostBansShown)) {
    facts->bans.push_back({ban.kind == Kind::kAll ? "everything"
                           : ban.kind == Kind::kFunction
                               ? "the function"
                               : absl::StrCat("generation ", ban.generation),
                           ban.before, ban.soft});
  }
}

// The verdict's first line, without the function's name.
void AddShadow(const absl::optional<telemetry::ShadowReport>& report,
               telemetry::FunctionFacts* facts) {
  if (!report.has_value()) return;
  const std::string text = telemetry::ShadowText({&*report, 1});
  const size_t name = Printable(report->function).size() + 2;  // NAME: VERDICT
  facts->more.push_back({"shadow", text.substr(name, text.find('\n') - name),
                         telemetry::Judge(*report).bad()});
}

}  // namespace

void WatchFunction(cache::FunctionId id, const transport::Listener& listener,
                   const transport::Upstream& upstream,
                   serving::FunctionHandler* handler,
                   telemetry::Instruments* instruments) {
  instruments->WatchConnections(
      id, [&listener] { return listener.connections(); },
      [&upstream] { return static_cast<size_t>(upstream.connected()); });
  instruments->WatchBackingOff(id, [handler] { return handler->BackingOff(); });
  instruments->WatchTune(id, [handler] { return handler->TuneFigures(); });
  instruments->WatchVary(id, [handler] { return handler->VaryFigures(); });
}

telemetry::FunctionFacts FactsOf(const transport::Listener& listener,
                                 const transport::Upstream& upstream,
                                 serving::FunctionHandler& handler,
                                 const cache::store::Bans& bans) {
  telemetry::FunctionFacts facts;
  facts.callers_connections = listener.connections();
  facts.upstream_connections = static_cast<size_t>(upstream.connected());
  facts.masks = handler.Masks();
  AddBans(bans, handler.name(), &facts);
  const auto state = handler.State();
  facts.serves_stale = state->policy.serves_stale();
  facts.refreshes_behind =
      state->options.policy.stale_while_revalidate > absl::ZeroDuration();
  facts.finishes_abandoned =
      state->options.policy.finish_abandoned > absl::ZeroDuration();
  facts.backing_off = handler.BackingOff();
  AddShadow(handler.Shadow(), &facts);
  if (state->tunes()) facts.tune = handler.Tune();
  if (state->options.varies()) facts.vary = handler.VaryFigures();
  return facts;
}

}  // namespace fncache::proxy
