// SPDX-License-Identifier: Apache-2.0
// TraceWriter: writes calls to a ring of files, after the response.
//
// Write queues a call and returns. A thread of the writer makes nodes, digests
// and blocks. Calls that do not fit the queue (bounded in bytes), or that a
// full or broken disk does not accept, are dropped, counted, and reported in
// the trace. The directory never has more than `files` files of `file_size`
// bytes.
//
// Format: docs/trace-format.md. Files are readable after a crash up to the last
// whole block; a block is written at least once a second while there are calls.
//
// Thread-safe. The destructor writes what waits.
#ifndef FNCACHE_INSIGHT_TRACE_WRITER_H_
#define FNCACHE_INSIGHT_TRACE_WRITER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "insight/trace/read_budget.h"
#include "insight/trace/traced_call.h"

namespace fncache::insight::trace {

struct TraceOptions {
  std::string dir;  // made 0700 if absent; files 0600
  Level level = Level::kPaths;
  uint64_t file_size = 64ull << 20;  // at least 64 KiB
  int files = 8;                     // at least 2
  double sample = 1.0;               // (0, 1], by composite
  uint64_t queue_bytes = 16ull << 20;
  // Above level keys: the CPU time for reading requests. Beyond it, calls of
  // some composites are written as at level keys (insight/trace/read_budget.h).
  ReadLimits read_limits;
  std::string writer;  // "serve" or "load"
  std::map<std::string, std::string> settings;
  // Called on the writer's thread when writing begins to fail, with the reason,
  // and with "" when writing succeeds again. May be null.
  std::function<void(absl::string_view why)> on_failure;
  // Called on the writer's thread when the first composites are left out
  // because of read_limits; once. May be null.
  std::function<void()> on_unread;
};

struct TraceStats {
  uint64_t written = 0;  // records
  uint64_t dropped_queue = 0;
  uint64_t dropped_disk = 0;
  uint64_t sampled_out = 0;
  uint64_t bytes = 0;     // written to files, of this process
  double read_share = 1;  // of composites, as read_limits allow
  bool up = true;         // the last write succeeded
  std::string error;      // why not
};

class TraceWriter {
 public:
  // InvalidArgument names the setting (`trace.file_size`...) and the accepted
  // range. Any other error says why the directory cannot be used. It is locked
  // against other writers.
  static absl::StatusOr<std::unique_ptr<TraceWriter>> Create(
      TraceOptions options);
  ~TraceWriter();

  // Whether calls of this composite are in the sample. Ask before copying
  // anything for Write.
  bool Samples(const request::CompositeName& composite) const;

  // Whether Write will read the messages of this composite's calls. If not, the
  // caller need not keep them.
  bool Reads(const request::CompositeName& composite) const;

  // The messages, for fields beyond those of `call`. The writer's thread calls
  // these, and only if the level needs them (kPaths: request; kFull: both).
  // They return an empty text if they cannot read a message. Their memory
  // counts as `held` bytes of the queue.
  struct Messages {
    uint64_t held = 0;
    // The call's key is without drift (`tune: on`): the record says which
    // values are drift.
    bool tuned = false;
    absl::AnyInvocable<std::string()> request;  // uncompressed bytes
    absl::AnyInvocable<std::string()> response;
  };
  // If call.composite is not known, the writer finds it in the request. A call
  // whose messages are not read is not moved from, so that it can be used for
  // the next one.
  void Write(TracedCall&& call, Messages messages);

  // Writes the queued calls and unlocks the directory. Later calls are dropped,
  // and counted. Call it once, from one thread.
  void Close();

  Level level() const;
  TraceStats Stats() const;
  // Waits until all calls that were queued before are in files. For tests and
  // for the end of a load.
  absl::Status Flush();

 private:
  struct Impl;
  explicit TraceWriter(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::insight::trace

#endif  // FNCACHE_INSIGHT_TRACE_WRITER_H_
