// SPDX-License-Identifier: Apache-2.0
// Tags of requests: the runner marks the calls of a step with one. Requests of
// one build of the runner are equal if their tags are equal.
//
// A tag is lower-case hex SHA-256 of the deterministic encoding of a step's
// first request before `meta` is set.
#ifndef FNCACHE_RUNNER_ENGINE_REQUEST_TAG_H_
#define FNCACHE_RUNNER_ENGINE_REQUEST_TAG_H_

#include <memory>
#include <string>

#include "proto/function_v1_fwd.h"

namespace fncache {
class Sha256;
}  // namespace fncache

namespace fncache::runner::engine {

// Makes the tags of many requests that have one `observed`, which is encoded
// and hashed only once; it is most of a request's bytes. Thread-safe.
class RequestTagger {
 public:
  // `observed` has no other field than that.
  explicit RequestTagger(
      const apiextensions::fn::proto::v1::RunFunctionRequest& observed);
  ~RequestTagger();

  // The tag of `request`, whose `observed` is the constructor's and which has
  // no `meta`. Leaves the request as it was.
  std::string Tag(
      apiextensions::fn::proto::v1::RunFunctionRequest* request) const;

 private:
  const std::unique_ptr<Sha256> observed_;
};

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_REQUEST_TAG_H_
