// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/outcome_hour.h"

namespace fncache::proxy::telemetry {
namespace {

constexpr int64_t kMinuteSeconds = 60;

int64_t MinuteOf(absl::Time time) {
  return absl::ToUnixSeconds(time) / kMinuteSeconds;
}

std::array<uint64_t, kOutcomes> CallsOf(const FunctionCounts& counts) {
  std::array<uint64_t, kOutcomes> calls{};
  for (size_t o = 0; o < kOutcomes; ++o) {
    calls[o] = counts.Calls(static_cast<Outcome>(o));
  }
  return calls;
}

}  // namespace

OutcomeHour::OutcomeHour(absl::Time now, const DaemonCounts& counts)
    : last_(now) {
  for (const FunctionCounts& function : counts.functions) {
    counted_.push_back(CallsOf(function));
  }
}

OutcomeHour::Minute& OutcomeHour::At(int64_t number) {
  Minute& minute = ring_[static_cast<size_t>(number) % kMinutes];
  if (minute.number != number) {
    minute.number = number;
    minute.calls.assign(counted_.size(), {});
  }
  return minute;
}

int64_t OutcomeHour::MiddleSince(absl::Time now) const {
  return MinuteOf(last_ + (now - last_) / 2);
}

void OutcomeHour::AddTo(Minute* minute, const DaemonCounts& counts) const {
  for (size_t id = 0; id < counted_.size(); ++id) {
    const auto calls = CallsOf(counts.functions[id]);
    for (size_t o = 0; o < kOutcomes; ++o) {
      // A reading that ends after a later one has smaller counts.
      if (calls[o] > counted_[id][o]) {
        minute->calls[id][o] += calls[o] - counted_[id][o];
      }
    }
  }
}

void OutcomeHour::Add(absl::Time now, const DaemonCounts& counts) {
  AddTo(&At(MiddleSince(now)), counts);
  for (size_t id = 0; id < counted_.size(); ++id) {
    counted_[id] = CallsOf(counts.functions[id]);
  }
  last_ = now;
}

OutcomeHour::Hour OutcomeHour::Read(absl::Time now,
                                    const DaemonCounts& counts) const {
  const int64_t last = MinuteOf(now);
  const int64_t first = last - static_cast<int64_t>(kMinutes) + 1;
  Hour hour;
  hour.last_minute = absl::FromUnixSeconds(last * kMinuteSeconds);
  hour.functions.resize(counted_.size());
  const auto add = [&](const Minute& minute) {
    if (minute.number < first || minute.number > last) return;
    for (size_t id = 0; id < counted_.size(); ++id) {
      auto& into =
          hour.functions[id][static_cast<size_t>(minute.number - first)];
      for (size_t o = 0; o < kOutcomes; ++o) into[o] += minute.calls[id][o];
    }
  };
  for (const Minute& minute : ring_) {
    if (minute.number >= 0) add(minute);
  }
  Minute since;
  since.number = MiddleSince(now);
  since.calls.assign(counted_.size(), {});
  AddTo(&since, counts);
  add(since);
  return hour;
}

}  // namespace fncache::proxy::telemetry
