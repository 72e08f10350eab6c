// SPDX-License-Identifier: Apache-2.0
// RequestLog: turns requests into the records of one file. The first request of
// a composite is written whole, later ones as changes since the previous one.
//
// It remembers the last request of each composite and function in bounded
// memory. After it forgot one, the next is written whole.
//
// Belongs to one thread.
#ifndef FNCACHE_INSIGHT_TRACE_REQUEST_LOG_H_
#define FNCACHE_INSIGHT_TRACE_REQUEST_LOG_H_

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cache/key/key.h"
#include "cache/key/seeded_sha256.h"
#include "insight/request/identity.h"
#include "insight/request/node_drift.h"
#include "insight/request/nodes.h"

namespace fncache::trace {
class Path;
class Request;
}  // namespace fncache::trace

namespace fncache::insight::trace {

class RequestLog {
 public:
  // `secret` is the key of all digests: it must be in no trace.
  RequestLog(const cache::key::Seed& secret, size_t max_bytes)
      : hmac_(secret), max_bytes_(max_bytes) {}

  // Forgets everything, because a new file begins, or records were lost.
  void Clear();

  // `whose` is the composite, function and method. Requests follow one another
  // if their input is the same, too, and the names of required objects. `paths`
  // gets the paths that the record uses first, to be written before it.
  // `drifts`: null if drift was in the key.
  void Encode(const std::string& whose, const request::RequestNodes& read,
              const request::NodeDrifts* drifts,
              fncache::trace::Request* record,
              std::vector<fncache::trace::Path>* paths);

  size_t bytes() const { return bytes_; }
  size_t paths() const { return ids_.size(); }

 private:
  struct Kept {
    uint64_t path;   // its hash
    uint64_t value;  // fingerprint, in this process only
    uint64_t digest;
    uint32_t id;
    uint8_t kind;
    uint8_t drift;
  };
  struct Request {
    uint64_t identity = 0;
    std::vector<Kept> nodes;
    std::vector<request::ObjectWriter> writers;
    uint64_t check = 0;

    size_t Bytes() const;
  };

  uint32_t IdOf(const request::RequestNodes& read, size_t node,
                std::vector<fncache::trace::Path>* paths);
  static uint64_t CheckOf(const Kept& kept);
  uint64_t DigestOf(const std::string& whose, const request::Node& node,
                    uint64_t version);
  // A number that changes only with the secret, and reveals nothing else.
  uint64_t VersionOf(const std::string& whose, const request::Node& secret);
  void Forget(uint64_t identity);
  void Shrink();

  cache::key::SeededSha256 hmac_;
  cache::key::SeededSha256::Scratch scratch_;
  const size_t max_bytes_;
  std::string hashed_;
  absl::flat_hash_map<uint64_t, uint32_t> ids_;
  std::list<Request> requests_;  // the one used last at the front
  absl::flat_hash_map<uint64_t, std::list<Request>::iterator> by_identity_;
  // Numbers of streams; they stay when the file changes.
  absl::flat_hash_map<uint64_t, uint64_t> streams_;
  uint64_t last_stream_ = 0;
  size_t bytes_ = 0;
  // By composite, function and path; they stay when the file changes.
  struct Secret {
    uint64_t value;
    uint64_t version;
  };
  absl::flat_hash_map<uint64_t, Secret> secrets_;
  uint64_t versions_ = 0;
};

}  // namespace fncache::insight::trace

#endif  // FNCACHE_INSIGHT_TRACE_REQUEST_LOG_H_
