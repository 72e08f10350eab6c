// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/model_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace fncache::runner::load::model {

absl::Status Validate(const ModelOptions& options) {
  const auto invalid = [](absl::string_view flag, absl::string_view range) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, " must be ", range));
  };
  if (options.composites < 1 || options.composites > 1000000) {
    return invalid("composites", "from 1 to 1000000");
  }
  if (options.workers < 1 || options.workers > 100000) {
    return invalid("workers", "from 1 to 100000");
  }
  if (options.reconcile_timeout < absl::Milliseconds(1)) {
    return invalid("reconcile-timeout", "at least 1ms");
  }
  if (options.poll_interval < absl::Seconds(1)) {
    return invalid("poll-interval", "at least 1s");
  }
  if (options.resync < absl::Seconds(1)) {
    return invalid("resync", "at least 1s");
  }
  if (options.ready_after < absl::ZeroDuration() ||
      options.ready_after > absl::Hours(24)) {
    return invalid("ready-after", "from 0s to 24h");
  }
  if (options.ready_writes < 0 || options.ready_writes > 1000) {
    return invalid("ready-writes", "from 0 to 1000");
  }
  for (const double rate : {options.churn.spec, options.churn.composed,
                            options.churn.status, options.churn.noop}) {
    if (!(rate >= 0 && rate <= 3.6e6)) {
      return invalid("churn", "KIND=N with N from 0 to 3600000");
    }
  }
  for (const ScenarioEvent& event : options.events) {
    if (event.at < absl::ZeroDuration()) {
      return absl::InvalidArgumentError(
          "--scenario: an event's time must be at least 0s");
    }
    if (event.kind == ScenarioEvent::Kind::kFlapping &&
        !(event.rate > 0 && event.rate <= 1000 && event.share >= 0 &&
          event.share <= 1)) {
      return absl::InvalidArgumentError(
          "--scenario: flapping must have a rate over 0, up to 1000 a second, "
          "and a fraction from 0 to 1");
    }
    if (event.kind == ScenarioEvent::Kind::kBurst &&
        (event.composites < 1 || event.composites > 1000000)) {
      return absl::InvalidArgumentError(
          "--scenario: a burst must have from 1 to 1000000 composites");
    }
  }
  return absl::OkStatus();
}

}  // namespace fncache::runner::load::model
