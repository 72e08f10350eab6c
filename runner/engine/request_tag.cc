// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/request_tag.h"

#include "common/sha256.h"
#include "proto/function_v1.pb.h"
#include "text/deterministic_bytes.h"

namespace fncache::runner::engine {

namespace fn = apiextensions::fn::proto::v1;

// `observed` is the first field of a request without `meta`, and fields are
// encoded in the order of their numbers: its bytes begin what is hashed.
RequestTagger::RequestTagger(const fn::RunFunctionRequest& observed)
    : observed_(std::make_unique<Sha256>()) {
  observed_->Add(text::DeterministicBytes(observed));
}

RequestTagger::~RequestTagger() = default;

std::string RequestTagger::Tag(fn::RunFunctionRequest* request) const {
  Sha256 hash = *observed_;
  std::unique_ptr<fn::State> observed(request->release_observed());
  hash.Add(text::DeterministicBytes(*request));
  request->set_allocated_observed(observed.release());
  return hash.Hex();
}

}  // namespace fncache::runner::engine
