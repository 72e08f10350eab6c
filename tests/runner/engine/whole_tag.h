// SPDX-License-Identifier: Apache-2.0
// The tag of a request, hashed in one piece. Tests compare it with the tag of
// RequestTagger, which hashes `observed` once for all steps.
#ifndef FNCACHE_TESTS_RUNNER_ENGINE_WHOLE_TAG_H_
#define FNCACHE_TESTS_RUNNER_ENGINE_WHOLE_TAG_H_

#include <string>

#include "common/sha256.h"
#include "proto/function_v1.pb.h"
#include "text/deterministic_bytes.h"

namespace fncache::runner::engine {

inline std::string RequestTag(
    apiextensions::fn::proto::v1::RunFunctionRequest request) {
  request.clear_meta();
  return Sha256Hex(text::DeterministicBytes(request));
}

}  // namespace fncache::runner::engine

#endif  // FNCACHE_TESTS_RUNNER_ENGINE_WHOLE_TAG_H_
