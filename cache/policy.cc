// SPDX-License-Identifier: Apache-2.0
#include "cache/policy.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace fncache::cache {
namespace {

constexpr uint64_t kMaxEntryBytes = 2ull << 30;

absl::Duration LongestLifetime() {
  return absl::Nanoseconds(std::numeric_limits<int64_t>::max());
}

// The shortest TTL that `remaining` tells: the runner spreads requeues by a
// tenth, and a tenth of a few nanoseconds may come out as the zero that means
// "never".
constexpr absl::Duration kLeastTtl = absl::Milliseconds(1);

// The TTL of a stale response is the function's TTL / kStaleTtlDivisor, and at
// least kLeastStaleTtl.
constexpr absl::Duration kLeastStaleTtl = absl::Seconds(10);
constexpr int kStaleTtlDivisor = 10;
constexpr double kStaleTtlJitter = 0.1;

absl::Status OutOfRange(absl::string_view key, absl::string_view range) {
  return absl::InvalidArgumentError(absl::StrCat(key, ": must be ", range));
}

absl::Status CheckDuration(absl::string_view key,
                           const absl::optional<absl::Duration>& value,
                           bool zero_allowed) {
  if (!value.has_value()) return absl::OkStatus();
  const bool low = zero_allowed ? *value < absl::ZeroDuration()
                                : *value < absl::Nanoseconds(1);
  if (!low && *value <= LongestLifetime()) return absl::OkStatus();
  return OutOfRange(key, zero_allowed ? "a duration from 0 to 292 years"
                                      : "a duration from 1ns to 292 years");
}

absl::Status CheckFraction(absl::string_view key, double value) {
  // Written so that NaN fails.
  if (value >= 0 && value < 1) return absl::OkStatus();
  return OutOfRange(key, "a fraction from 0 to below 1");
}

}  // namespace

absl::Status PolicyOptions::Validate() const {
  absl::Status status;
  status.Update(CheckDuration("ttl.max", ttl_max, /*zero_allowed=*/true));
  status.Update(
      CheckDuration("ttl.override", ttl_override, /*zero_allowed=*/false));
  status.Update(
      CheckDuration("ttl.default", ttl_default, /*zero_allowed=*/true));
  status.Update(CheckDuration("ttl.min", ttl_min, /*zero_allowed=*/true));
  status.Update(CheckFraction("ttl.jitter", ttl_jitter));
  status.Update(CheckFraction("ttl.margin", ttl_margin));
  if (requeue_ttl.kind == RequeueTtl::Kind::kFixed &&
      !CheckDuration("", requeue_ttl.fixed, /*zero_allowed=*/false).ok()) {
    status.Update(OutOfRange(
        "requeue_ttl",
        "`remaining`, `original` or a duration from 1ns to 292 years"));
  }
  if (max_entry_bytes < 1 || max_entry_bytes > kMaxEntryBytes) {
    status.Update(OutOfRange("max_entry_bytes", "a size from 1B to 2GiB"));
  }
  status.Update(CheckDuration("stale_while_revalidate", stale_while_revalidate,
                              /*zero_allowed=*/true));
  status.Update(
      CheckDuration("stale_if_error", stale_if_error, /*zero_allowed=*/true));
  status.Update(CheckDuration("finish_abandoned", finish_abandoned,
                              /*zero_allowed=*/true));
  if (max_released < 1) {
    status.Update(OutOfRange("max_released", "a number from 1 up"));
  }
  return status;
}

absl::optional<absl::Duration> Policy::Lifetime(
    const ResponseFacts& response) const {
  const absl::optional<absl::Duration>& said =
      options_.ttl_override.has_value() ? options_.ttl_override
      : response.ttl.has_value()        ? response.ttl
                                        : options_.ttl_default;
  // Zero is "do not cache", and `min` applies to what is stored at all.
  if (!said.has_value() || *said <= absl::ZeroDuration()) return absl::nullopt;
  absl::Duration lifetime = *said;
  // A pure response lives until its request changes. An operator who sets a
  // lifetime has the last word.
  if (response.pure && !options_.ttl_override.has_value()) {
    lifetime = LongestLifetime();
  }
  if (options_.ttl_min.has_value()) {
    lifetime = std::max(lifetime, *options_.ttl_min);
  }
  if (options_.ttl_max > absl::ZeroDuration()) {
    lifetime = std::min(lifetime, options_.ttl_max);
  }
  return std::min(lifetime, LongestLifetime());
}

Policy::Storing Policy::Decide(const ResponseFacts& response, size_t bytes,
                               double random) const {
  Storing storing;
  const auto refuse = [&storing](Refusal why) {
    storing.refusal = why;
    return storing;
  };
  if (options_.mode == Mode::kOff) return refuse(Refusal::kOff);
  if (bytes > options_.max_entry_bytes) return refuse(Refusal::kTooLarge);
  if (response.fatal && !options_.store_fatal) return refuse(Refusal::kFatal);
  if (response.secrets && options_.store_secrets == StoreSecrets::kNone) {
    return refuse(Refusal::kSecrets);
  }
  const absl::optional<absl::Duration> lifetime = Lifetime(response);
  if (!lifetime.has_value()) return refuse(Refusal::kNoTtl);

  storing.store = true;
  storing.lower_tiers =
      !response.secrets || options_.store_secrets == StoreSecrets::kAll;
  storing.lifetime = *lifetime;
  if (options_.ttl_jitter > 0) {
    storing.lifetime -= *lifetime * (options_.ttl_jitter * random);
  }
  storing.lifetime =
      std::max(absl::Floor(storing.lifetime, absl::Nanoseconds(1)),
               absl::Nanoseconds(1));
  storing.retention = storing.lifetime;
  if (serves_stale()) {
    const absl::Duration kept =
        FreshFor(storing.lifetime) +
        std::max(options_.stale_while_revalidate, options_.stale_if_error);
    storing.retention = std::max(
        storing.lifetime,
        std::min(absl::Ceil(kept, absl::Nanoseconds(1)), LongestLifetime()));
  }
  return storing;
}

absl::Duration Policy::FreshFor(absl::Duration lifetime) const {
  if (options_.ttl_margin <= 0) return lifetime;
  return lifetime - lifetime * options_.ttl_margin;
}

absl::Duration Policy::ServedFor(const store::EntryInfo& entry,
                                 absl::Time now) const {
  const absl::Duration age =
      std::max(now - entry.arrived, absl::ZeroDuration());
  return FreshFor(entry.lifetime) - age;
}

Freshness Policy::FreshnessAfter(absl::Duration served) const {
  if (served > absl::ZeroDuration()) return Freshness::kFresh;
  if (-served < options_.stale_while_revalidate) {
    return Freshness::kWhileRevalidate;
  }
  if (-served < options_.stale_if_error) return Freshness::kIfError;
  return Freshness::kSpent;
}

absl::optional<absl::Duration> Policy::StaleTtl(const store::EntryInfo& entry,
                                                double random) const {
  if (!entry.ttl.has_value() || *entry.ttl == absl::ZeroDuration()) {
    return entry.ttl;
  }
  const absl::Duration least =
      std::max(kLeastStaleTtl, *entry.ttl / kStaleTtlDivisor);
  return least + least * (kStaleTtlJitter * random);
}

absl::optional<absl::Duration> Policy::HitTtl(const store::EntryInfo& entry,
                                              absl::Time now) const {
  if (!entry.ttl.has_value()) return absl::nullopt;
  const absl::Duration ttl = *entry.ttl;
  if (ttl == absl::ZeroDuration()) return ttl;
  switch (options_.requeue_ttl.kind) {
    case RequeueTtl::Kind::kOriginal:
      return ttl;
    case RequeueTtl::Kind::kFixed:
      return options_.requeue_ttl.fixed;
    case RequeueTtl::Kind::kRemaining:
      if (entry.pure) return ttl;
      break;
  }
  const absl::Duration age =
      std::max(now - entry.arrived, absl::ZeroDuration());
  const absl::Duration whole = std::max(entry.lifetime, ttl);
  return std::max(whole - age, std::min(whole, kLeastTtl));
}

absl::optional<absl::Duration> Policy::MissTtl(const ResponseFacts& response,
                                               const Storing& storing) const {
  if (options_.mode != Mode::kOn) return absl::nullopt;
  if (!response.ttl.has_value() || *response.ttl == absl::ZeroDuration()) {
    return absl::nullopt;
  }
  switch (options_.requeue_ttl.kind) {
    case RequeueTtl::Kind::kOriginal:
      return absl::nullopt;
    case RequeueTtl::Kind::kFixed:
      if (options_.requeue_ttl.fixed == *response.ttl) return absl::nullopt;
      return options_.requeue_ttl.fixed;
    case RequeueTtl::Kind::kRemaining:
      break;
  }
  if (!storing.store || response.pure || storing.lifetime <= *response.ttl) {
    return absl::nullopt;
  }
  return storing.lifetime;
}

}  // namespace fncache::cache
