// SPDX-License-Identifier: Apache-2.0
// Recordings: answers from recorded calls instead of running anything.
//
// A recording is a pair of files, NAME.req.bin and NAME.rsp.bin, each one
// message. A request gets the response of the recording whose request equals it
// as a message, without `meta.tag` and masked fields: maps unordered, doubles
// by their bits, unknown fields counted.
//
// Immutable after Load; thread-safe.
#ifndef FNCACHE_RUNNER_FUNCTION_RECORDINGS_H_
#define FNCACHE_RUNNER_FUNCTION_RECORDINGS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/mask.h"
#include "fncache/function/context.h"
#include "proto/function_v1.pb.h"
#include "runner/function/flat_message.h"

namespace fncache::runner::function {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;

class Recordings {
 public:
  // Reads all pairs below `folders`. Errors name the file: a folder without
  // recordings, a request without its response, bytes that are no such message,
  // and two recordings with equal requests of which the responses, tags apart,
  // differ.
  static absl::StatusOr<std::unique_ptr<Recordings>> Load(
      const std::vector<std::string>& folders, const cache::key::MaskSet& masks,
      absl::optional<absl::Duration> ttl);

  // The function, which must not outlive this. With `ttl` given to Load, that
  // is the response's TTL, else it is the recorded one. The call ends with
  // FAILED_PRECONDITION where no recording equals the request; how the nearest
  // differs is then printed on stderr.
  ::fncache::function::Function Function() const;

  size_t size() const { return recordings_.size(); }

 private:
  struct Recording {
    std::string file;
    RunFunctionResponse response;
    std::string comparable_response;
    FlatMessage request;
  };

  Recordings(cache::key::MaskSet masks, absl::optional<absl::Duration> ttl);
  absl::Status Add(const std::string& request_file);
  // The recorded response.
  absl::StatusOr<const RunFunctionResponse*> Find(
      absl::string_view request) const;
  absl::Status NoneEquals(const RunFunctionRequest& comparable) const;

  const cache::key::MaskSet masks_;
  const absl::optional<absl::Duration> ttl_;
  std::vector<Recording> recordings_;
  // Index into recordings_ by the comparable form of the request.
  absl::flat_hash_map<std::string, size_t> by_request_;
};

}  // namespace fncache::runner::function

#endif  // FNCACHE_RUNNER_FUNCTION_RECORDINGS_H_
