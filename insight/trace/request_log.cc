// SPDX-License-Identifier: Apache-2.0
#include "insight/trace/request_log.h"

#include <algorithm>
#include <utility>

#include "absl/base/internal/endian.h"
#include "absl/strings/string_view.h"
#include "insight/trace/record.h"
#include "proto/trace.pb.h"
#include "xxhash.h"

namespace fncache::insight::trace {
namespace {

namespace proto = ::fncache::trace;
using request::Node;
using request::NodeKind;
using request::ObjectWriter;

// Bytes. A longer path is cut: a trace does not store values that are hidden in
// keys.
constexpr size_t kMaxPath = 4096;
// Approximate memory of the hash map and the list for each request.
constexpr size_t kOverhead = 256;
constexpr size_t kMostSecrets = 1 << 16;
constexpr size_t kMostStreams = 1 << 20;

bool SameWriter(const ObjectWriter& a, const ObjectWriter& b) {
  return a.object == b.object && a.manager == b.manager &&
         a.operation == b.operation && a.subresource == b.subresource &&
         a.time == b.time;
}

void AddWriter(const ObjectWriter& writer, proto::Request* record) {
  proto::Writer* const added = record->add_writers();
  added->set_object(writer.object);
  added->set_manager(writer.manager);
  added->set_operation(writer.operation);
  added->set_subresource(writer.subresource);
  if (writer.time != absl::InfiniteFuture()) {
    added->set_time(absl::ToUnixNanos(writer.time));
  }
}

bool HasValue(NodeKind kind) {
  return kind != NodeKind::kMessage && kind != NodeKind::kStruct &&
         kind != NodeKind::kNull && kind != NodeKind::kNoKind;
}

}  // namespace

size_t RequestLog::Request::Bytes() const {
  size_t bytes = kOverhead + nodes.capacity() * sizeof(Kept);
  for (const ObjectWriter& writer : writers) {
    bytes += sizeof writer + writer.object.size() + writer.manager.size();
  }
  return bytes;
}

void RequestLog::Clear() {
  ids_.clear();
  by_identity_.clear();
  requests_.clear();
  bytes_ = 0;
}

void RequestLog::Forget(uint64_t identity) {
  const auto found = by_identity_.find(identity);
  if (found == by_identity_.end()) return;
  bytes_ -= found->second->Bytes();
  requests_.erase(found->second);
  by_identity_.erase(found);
}

uint32_t RequestLog::IdOf(const request::RequestNodes& read, size_t node,
                          std::vector<proto::Path>* paths) {
  const auto [at, added] = ids_.try_emplace(
      read.nodes()[node].path, static_cast<uint32_t>(ids_.size() + 1));
  if (added) {
    proto::Path path;
    path.set_id(at->second);
    path.set_path(read.Spell(node).substr(0, kMaxPath));
    paths->push_back(std::move(path));
  }
  return at->second;
}

uint64_t RequestLog::DigestOf(const std::string& whose, const Node& node,
                              uint64_t version) {
  if (!HasValue(node.kind)) return 0;
  // Each field's length is fixed or written, so different nodes give different
  // bytes.
  char head[8 + 1 + 8 + 8];
  absl::little_endian::Store64(head, node.path);
  head[8] = static_cast<char>(node.kind);
  absl::little_endian::Store64(head + 9, version);
  absl::little_endian::Store64(head + 17, whose.size());
  hashed_.assign(head, sizeof head);
  hashed_.append(whose);
  if (node.kind == NodeKind::kList) {
    char value[8];
    absl::little_endian::Store64(value, node.value);
    hashed_.append(value, sizeof value);
  } else if (node.kind != NodeKind::kSecret) {
    hashed_.append(node.bytes.data(), node.bytes.size());
  }
  cache::key::Key key;
  if (!hmac_.Hash(hashed_, &scratch_, &key)) return 0;
  return key.high;
}

uint64_t RequestLog::VersionOf(const std::string& whose, const Node& secret) {
  if (secrets_.size() >= kMostSecrets) secrets_.clear();
  const uint64_t key =
      XXH3_64bits_withSeed(whose.data(), whose.size(), secret.path);
  const auto [at, added] = secrets_.try_emplace(key, Secret{secret.value, 0});
  if (added || at->second.value != secret.value) {
    at->second = {secret.value, ++versions_};
  }
  return at->second.version;
}

uint64_t RequestLog::CheckOf(const Kept& kept) {
  return trace::CheckOf(kept.id, kept.kind, kept.digest);
}

void RequestLog::Encode(const std::string& whose,
                        const request::RequestNodes& read,
                        const request::NodeDrifts* drifts,
                        proto::Request* record,
                        std::vector<proto::Path>* paths) {
  // `whose` may know the composite if the request does not name it.
  const uint64_t identity = request::IdentityOf(whose, read.nodes());
  if (streams_.size() >= kMostStreams) streams_.clear();
  const auto [stream, first] = streams_.try_emplace(identity, 0);
  if (first) stream->second = ++last_stream_;
  record->set_stream(stream->second);
  const auto found = by_identity_.find(identity);
  const bool known = found != by_identity_.end();
  const Request empty;
  const Request& before = known ? *found->second : empty;
  // The earlier index of each node. Mostly the nodes have the same order, and
  // then nothing is looked up.
  absl::flat_hash_map<uint64_t, size_t> where;
  const auto index_before = [&](size_t hint, uint64_t path) {
    if (hint < before.nodes.size() && before.nodes[hint].path == path) {
      return hint;
    }
    if (where.empty()) {
      for (size_t i = 0; i < before.nodes.size(); ++i) {
        where.emplace(before.nodes[i].path, i);
      }
    }
    const auto at = where.find(path);
    return at == where.end() ? before.nodes.size() : at->second;
  };

  Request now;
  now.identity = identity;
  now.check = before.check;
  now.nodes.reserve(read.nodes().size());
  record->set_delta(known);
  std::vector<bool> stays(before.nodes.size());
  size_t hint = 0;
  const absl::Span<const Node> nodes = read.nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (node.kind == NodeKind::kMap) continue;
    const size_t old = index_before(hint, node.path);
    const bool there = old < before.nodes.size();
    if (there) {
      stays[old] = true;
      hint = old + 1;
    }
    const auto kind = static_cast<uint8_t>(node.kind);
    const auto drift =
        drifts == nullptr ? uint8_t{0} : static_cast<uint8_t>((*drifts)[i]);
    if (there && before.nodes[old].kind == kind &&
        before.nodes[old].drift == drift &&
        before.nodes[old].value == node.value) {
      now.nodes.push_back(before.nodes[old]);
      continue;
    }
    Kept kept = {};
    kept.path = node.path;
    kept.value = node.value;
    kept.kind = kind;
    kept.drift = drift;
    kept.id = IdOf(read, i, paths);
    kept.digest =
        DigestOf(whose, node,
                 node.kind == NodeKind::kSecret ? VersionOf(whose, node) : 0);
    now.nodes.push_back(kept);
    now.check += CheckOf(kept);
    if (there) now.check -= CheckOf(before.nodes[old]);
    proto::Node* const added = record->add_nodes();
    added->set_path(kept.id);
    added->set_kind(kind);
    added->set_digest(kept.digest);
    if (drift != 0) added->set_drift(drift);
  }
  for (size_t i = 0; i < before.nodes.size(); ++i) {
    if (stays[i]) continue;
    record->add_removed(before.nodes[i].id);
    now.check -= CheckOf(before.nodes[i]);
  }
  record->set_check(now.check);
  now.writers = request::WritersOf(read.nodes());
  for (const ObjectWriter& writer : now.writers) {
    const bool same = std::any_of(
        before.writers.begin(), before.writers.end(),
        [&](const ObjectWriter& one) { return SameWriter(one, writer); });
    if (!same) AddWriter(writer, record);
  }

  Forget(identity);
  bytes_ += now.Bytes();
  requests_.push_front(std::move(now));
  by_identity_.emplace(identity, requests_.begin());
  Shrink();
}

void RequestLog::Shrink() {
  while (bytes_ > max_bytes_ && requests_.size() > 1) {
    bytes_ -= requests_.back().Bytes();
    by_identity_.erase(requests_.back().identity);
    requests_.pop_back();
  }
}

}  // namespace fncache::insight::trace
