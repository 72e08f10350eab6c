// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/purge_metrics.h"

#include "proxy/telemetry/catalogue.h"

namespace fncache::proxy::telemetry {

using cache::store::Bans;

const char* PurgeScopeName(Bans::Kind of) {
  static constexpr const char* kNames[kPurgeScopes] = {"all", "function",
                                                       "generation", "key"};
  return kNames[static_cast<size_t>(of)];
}

PurgeMetrics::PurgeMetrics(metrics::Registry* registry,
                           std::shared_ptr<const Bans> bans) {
  for (size_t i = 0; i < kPurgeScopes; ++i) {
    purges_[i] =
        registry->AddCounter(Metric("fncache_purges_total"),
                             {PurgeScopeName(static_cast<Bans::Kind>(i))});
  }
  const auto watch = [&](Bans::Kind of, size_t Bans::Figures::*count) {
    registry->AddCallback(
        Metric("fncache_bans"), {PurgeScopeName(of)},
        [bans, count] { return static_cast<double>(bans->figures().*count); });
  };
  watch(Bans::Kind::kAll, &Bans::Figures::all);
  watch(Bans::Kind::kFunction, &Bans::Figures::functions);
  watch(Bans::Kind::kGeneration, &Bans::Figures::generations);
  watch(Bans::Kind::kKey, &Bans::Figures::keys);
  registry->AddCallback(Metric("fncache_bans_saved"), {},
                        [bans] { return bans->saved() ? 1.0 : 0.0; });
}

}  // namespace fncache::proxy::telemetry
