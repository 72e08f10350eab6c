// SPDX-License-Identifier: Apache-2.0
// TraceReader: the calls of a trace, in the order in which they were written,
// each with the nodes of its request where the trace has them.
//
// A trace is a directory of a writer's ring, or one file of it. Damaged bytes
// are skipped up to the next whole block, and counted in damaged(). Bytes are
// not trusted: sizes are bounded before memory is allocated.
//
// Belongs to one thread.
#ifndef FNCACHE_INSIGHT_TRACE_READER_H_
#define FNCACHE_INSIGHT_TRACE_READER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "insight/request/compare.h"
#include "insight/trace/traced_call.h"

namespace fncache::insight::trace {

// Paths get numbers for the whole reading, whichever file they come from.
using PathId = uint32_t;
using NodeMap = absl::flat_hash_map<PathId, request::KeptNode>;

// One node of a request as a number, valid for one reading. Requests are
// compared by the sums of their nodes' numbers, so a change subtracts and adds.
uint64_t NodeHash(PathId path, const request::KeptNode& node);

struct ReadCall {
  TracedCall call;
  // The request's nodes; null at level keys, or if records before it are lost.
  // Calls may share them: a request's successor has the same map if nothing
  // changed.
  std::shared_ptr<const NodeMap> nodes;
  // Requests of one stream follow one another. They have the same composite,
  // function, method, input, and names of required objects. 0 without a
  // request.
  uint64_t stream = 0;
  // The changes since the previous request of this stream in the trace
  // (`has_previous`): paths with another value or kind, new ones, removed ones.
  bool has_previous = false;
  std::vector<PathId> changed;  // all three kinds, in the order of the record
  // The writer of every object of the request, by the object's path.
  std::shared_ptr<const std::map<std::string, request::ObjectWriter>> writers;
  std::string request_message;   // level full
  std::string response_message;  // level full
  // Records were dropped between this one and the one before it.
  uint64_t dropped_before = 0;
};

struct TraceHeader {
  Level level = Level::kKeys;
  std::string writer;
  std::string writer_version;
  absl::Time created;
  double sample = 1;
  std::string run;
  std::map<std::string, std::string> settings;
};

class TraceReader {
 public:
  // NotFound, or InvalidArgument where there is no trace.
  static absl::StatusOr<std::unique_ptr<TraceReader>> Open(
      const std::string& path);
  // One file's bytes: for tests and the fuzzer.
  static absl::StatusOr<std::unique_ptr<TraceReader>> OfBytes(
      std::string bytes);
  ~TraceReader();

  // The header of the first file.
  const TraceHeader& header() const;
  // False at the end.
  bool Next(ReadCall* call);

  absl::string_view PathOf(PathId id) const;
  size_t paths() const;      // ids are 0 to paths() - 1
  uint64_t dropped() const;  // records that the writer dropped, as far as read
  uint64_t damaged() const;  // blocks that could not be read

 private:
  struct Impl;
  explicit TraceReader(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::insight::trace

#endif  // FNCACHE_INSIGHT_TRACE_READER_H_
