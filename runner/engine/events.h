// SPDX-License-Identifier: Apache-2.0
// Events of a render, as the engine's output carries them.
#ifndef FNCACHE_RUNNER_ENGINE_EVENTS_H_
#define FNCACHE_RUNNER_ENGINE_EVENTS_H_

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "proto/render.pb.h"

namespace fncache::runner::engine {

using Event = crossplane::render::v1alpha1::Event;

// The reason of all events about composed resources.
inline constexpr absl::string_view kComposeReason = "ComposeResources";

inline Event MakeEvent(absl::string_view type, absl::string_view reason,
                       std::string message) {
  Event event;
  event.set_type(std::string(type));
  event.set_reason(std::string(reason));
  event.set_message(std::move(message));
  return event;
}

inline Event NormalEvent(absl::string_view reason, std::string message) {
  return MakeEvent("Normal", reason, std::move(message));
}

inline Event WarningEvent(absl::string_view reason, std::string message) {
  return MakeEvent("Warning", reason, std::move(message));
}

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_EVENTS_H_
