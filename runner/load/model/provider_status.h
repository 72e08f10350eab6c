// SPDX-License-Identifier: Apache-2.0
// The fields that simulated providers write to a composed resource's status
// besides its conditions: fields that exist from the first write, counters,
// identifiers that appear once the resource is ready, and fields that a
// heartbeat changes.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_PROVIDER_STATUS_H_
#define FNCACHE_RUNNER_LOAD_MODEL_PROVIDER_STATUS_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/struct_fwd.h"

namespace fncache::runner::load::model {

struct StatusField {
  // The write of a provider that sets the field.
  enum class When {
    kFirst,
    kEvery,
    kReady,      // the one that makes the resource ready
    kHeartbeat,  // of --churn composed, after that
  };
  enum class Content {
    kText,
    kId,       // follows from the resource's uid and the field's path
    kCounter,  // one more than before, from 1
    kTime,     // of the write, RFC 3339 with nanoseconds
  };

  std::vector<std::string> path;  // below status
  When when = When::kEvery;
  Content content = Content::kText;
  std::string text;  // of kText
  std::string kind;  // of the resources that have it; "" = of all
};

// Below status.atProvider: state, endpoint.zone, endpoint.address, writes, id,
// arn, lastChecked. The last is what a heartbeat changes.
std::vector<StatusField> DefaultStatus();

// The default fields and `named`. A named field replaces the default one of the
// same path and write; a named heartbeat replaces the default heartbeat.
std::vector<StatusField> StatusWith(std::vector<StatusField> named);

// Sets the fields of such a write in the resource's status.
void WriteStatus(const std::vector<StatusField>& fields, StatusField::When when,
                 absl::Time now, google::protobuf::Struct* resource);

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_PROVIDER_STATUS_H_
