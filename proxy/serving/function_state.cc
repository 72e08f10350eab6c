// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/function_state.h"

#include <utility>

#include "common/log.h"
#include "proxy/serving/mask_use.h"

namespace fncache::proxy::serving {
namespace {

cache::key::KeyScope Scope(const settings::FunctionOptions& options,
                           const char* path) {
  return {options.name,     path,           options.generation, options.key,
          options.key_hash, options.tunes()};
}

}  // namespace

FunctionState::Digesters::Digesters(const settings::FunctionOptions& options,
                                    const cache::key::Seed& seed)
    : seed(seed),
      v1(seed, Scope(options, kRunFunctionV1), options.masks),
      v1beta1(seed, Scope(options, kRunFunctionV1beta1), options.masks) {}

const cache::key::Digester& FunctionState::digester(Method method) {
  const Digesters* now = &digesters_;
  const cache::key::Seed& seed = store.seed();
  if (&seed != &now->seed) {
    std::call_once(late_, [&] { late_digesters_.emplace(options, seed); });
    now = &*late_digesters_;
  }
  return method == Method::kV1 ? now->v1 : now->v1beta1;
}

void FunctionState::TryMasks() {
  constexpr int kTrial = 1000;
  if (tried_masks_.load(std::memory_order_relaxed) >= kTrial) return;
  if (tried_masks_.fetch_add(1, std::memory_order_relaxed) + 1 != kTrial) {
    return;
  }
  for (const telemetry::MaskUse& use : UseOfMasks(options.masks)) {
    if (use.matched > 0) continue;
    Log(LogLevel::kWarning,
        "a mask matched nothing in the function's first 1,000 requests",
        {{"function", options.name}, {"mask", use.mask}});
  }
}

Judgement FunctionState::JudgeDrift(const RequestKey& request,
                                    const cache::store::Entry& entry,
                                    absl::Time now) const {
  const absl::optional<cache::key::Key> drift = entry.drift();
  if (request.kinds == nullptr || !drift.has_value()) return {};
  return evidence->Judge(request.key, entry.started(), *drift, *request.kinds,
                         now);
}

FunctionStates::FunctionStates(const settings::FunctionOptions& options,
                               cache::store::TieredStore* store,
                               Evidence* evidence)
    : store_(store),
      evidence_(evidence),
      states_(std::make_shared<FunctionState>(options, store, evidence)) {}

void FunctionStates::Replace(const settings::FunctionOptions& options) {
  states_.Replace(std::make_shared<FunctionState>(options, store_, evidence_,
                                                  Newest()->shadow));
}

}  // namespace fncache::proxy::serving
