// SPDX-License-Identifier: Apache-2.0
#include "runner/load/callers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runner/load/measure.h"
#include "runner/load/verdict.h"

namespace fncache::runner::load {
namespace {

constexpr int64_t kLookEvery = 1'000'000'000;  // nanoseconds

}  // namespace

void Callers::Add(std::unique_ptr<client::FunctionClient> client) {
  clients_.push_back(std::move(client));
}

void Callers::Call(
    const std::string& function,
    const apiextensions::fn::proto::v1::RunFunctionRequest& request,
    absl::Time deadline, Done done) {
  const std::string* name = &function;
  std::string upgraded;
  if (has_upgrades_) {
    MutexLock lock(&mutex_);
    const auto found = upgraded_.find(function);
    if (found != upgraded_.end()) {
      upgraded = found->second;
      name = &upgraded;
    }
  }
  clients_[next_++ % clients_.size()]->Call(*name, request, deadline,
                                            std::move(done));
}

void Callers::Cancel() {
  for (const auto& one : clients_) one->Cancel();
}

std::vector<UnreachedResults> Callers::FindUnreached() {
  std::vector<UnreachedResults> all;
  for (const auto& client : clients_) {
    for (client::NotConnected& one : client->FindNotConnected(kUnreached)) {
      const bool known = std::any_of(
          all.begin(), all.end(),
          [&](const auto& other) { return other.target == one.target; });
      if (known) continue;
      all.push_back(
          {std::move(one.function), std::move(one.target), std::move(one.why)});
    }
  }
  return all;
}

void Callers::Upgrade(const std::string& function, const std::string& name) {
  MutexLock lock(&mutex_);
  upgraded_[function] = name;
  has_upgrades_ = true;
}

Reach::Reach(Callers* callers, std::function<void(const std::string&)> warn)
    : callers_(callers), warn_(std::move(warn)) {}

const std::vector<UnreachedResults>& Reach::Look() {
  const int64_t now = MonotonicNanos();
  if (now - looked_ < kLookEvery) return unreached_;
  looked_ = now;
  unreached_ = callers_->FindUnreached();
  for (const UnreachedResults& one : unreached_) {
    if (!warned_.insert(one.target).second || warn_ == nullptr) continue;
    warn_(absl::StrCat(UnreachedSentence(one), "; its calls wait"));
  }
  return unreached_;
}

}  // namespace fncache::runner::load
