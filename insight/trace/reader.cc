// SPDX-License-Identifier: Apache-2.0
#include "insight/trace/reader.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/base/internal/endian.h"
#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "google/protobuf/io/coded_stream.h"
#include "insight/trace/block.h"
#include "insight/trace/record.h"
#include "insight/trace/ring.h"
#include "proto/trace.pb.h"
#include "xxhash.h"

namespace fncache::insight::trace {
namespace {

namespace proto = ::fncache::trace;

// Bytes: no file of a ring is larger. Beyond the limit of nodes that are kept
// at once, requests have no nodes.
constexpr size_t kMaxFile = size_t{4} << 30;
constexpr size_t kMaxNodes = 50'000'000;

Level LevelOf(proto::FileHeader::Level level) {
  switch (level) {
    case proto::FileHeader::LEVEL_PATHS:
      return Level::kPaths;
    case proto::FileHeader::LEVEL_FULL:
      return Level::kFull;
    default:
      return Level::kKeys;
  }
}

}  // namespace

uint64_t NodeHash(PathId path, const request::KeptNode& node) {
  char bytes[13];
  absl::little_endian::Store32(bytes, path);
  bytes[4] = static_cast<char>(node.kind);
  absl::little_endian::Store64(bytes + 5, node.value);
  return XXH3_64bits(bytes, sizeof bytes);
}

struct TraceReader::Impl {
  using Writers = std::map<std::string, request::ObjectWriter>;
  struct Known {
    std::shared_ptr<NodeMap> nodes;
    std::shared_ptr<Writers> writers;
    uint64_t check = 0;
    uint64_t damages = 0;  // damaged blocks when it was last read
  };

  absl::Status OpenNext();
  absl::Status Begin(std::string bytes);
  bool NextRecord(proto::Record* record);
  void Take(const proto::Call& record, ReadCall* call);
  void TakeRequest(const proto::Request& record, Known* known, ReadCall* call);

  std::vector<std::string> files;
  size_t next_file = 0;
  std::string file;
  size_t at = 0;
  std::string block;
  size_t in_block = 0;

  TraceHeader header;
  std::string run;  // of the file that is read
  // From the path numbers of the file that is read to those of the reading.
  absl::flat_hash_map<uint32_t, PathId> ids;
  absl::flat_hash_map<std::string, PathId> known_paths;
  std::deque<std::string> names;
  absl::flat_hash_map<uint64_t, Known> streams;
  size_t nodes_kept = 0;
  uint64_t dropped_before = 0;
  uint64_t dropped = 0;
  uint64_t damaged = 0;
};

absl::Status TraceReader::Impl::Begin(std::string bytes) {
  file = std::move(bytes);
  at = kFileMagic.size();
  block.clear();
  in_block = 0;
  ids.clear();
  const absl::string_view text(file);
  if (text.substr(0, kVersionAt) != kFileMagic.substr(0, kVersionAt) ||
      text.size() < kFileMagic.size()) {
    return absl::InvalidArgumentError("is no trace of fncache");
  }
  if (text[kVersionAt] > kFileMagic[kVersionAt]) {
    return absl::InvalidArgumentError(absl::StrCat(
        "is of version ", static_cast<int>(text[kVersionAt]),
        " of the format, which a later fncache writes; this one reads up to ",
        static_cast<int>(kFileMagic[kVersionAt])));
  }
  return absl::OkStatus();
}

absl::Status TraceReader::Impl::OpenNext() {
  const std::string& path = files[next_file++];
  auto bytes = ReadSmallFile(path, kMaxFile);
  if (!bytes.ok()) return bytes.status();
  const absl::Status status = Begin(*std::move(bytes));
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", status.message()));
}

bool TraceReader::Impl::NextRecord(proto::Record* record) {
  for (;;) {
    if (in_block < block.size()) {
      google::protobuf::io::CodedInputStream in(
          reinterpret_cast<const uint8_t*>(block.data()) + in_block,
          static_cast<int>(block.size() - in_block));
      uint32_t size = 0;
      const bool whole = in.ReadVarint32(&size) &&
                         size <= block.size() - in_block - in.CurrentPosition();
      if (whole) {
        const size_t from = in_block + in.CurrentPosition();
        in_block = from + size;
        if (record->ParseFromArray(block.data() + from,
                                   static_cast<int>(size))) {
          return true;
        }
      } else {
        in_block = block.size();
      }
      ++damaged;
      continue;
    }
    in_block = 0;
    block.clear();
    switch (ReadBlock(file, &at, &block)) {
      case BlockRead::kRead:
        continue;
      case BlockRead::kDamaged:
        ++damaged;
        // Deltas may depend on lost records; their checks show it.
        continue;
      case BlockRead::kEnd:
        break;
    }
    for (;;) {
      if (next_file >= files.size()) return false;
      if (OpenNext().ok()) break;
      // The ring removed it meanwhile, or it is no trace.
      ++damaged;
    }
  }
}

void TraceReader::Impl::TakeRequest(const proto::Request& record, Known* known,
                                    ReadCall* call) {
  const auto lose = [&] {
    if (known->nodes != nullptr) nodes_kept -= known->nodes->size();
    known->nodes = nullptr;
    known->writers = nullptr;
    known->check = 0;
  };
  const auto id_of = [&](uint32_t id, PathId* path) {
    const auto found = ids.find(id);
    if (found == ids.end()) return false;
    *path = found->second;
    return true;
  };
  const std::shared_ptr<NodeMap> before = known->nodes;
  if (record.delta() && before == nullptr) return lose();
  // A map that another call still uses is copied before it is changed.
  std::shared_ptr<NodeMap> now;
  if (!record.delta()) {
    now = std::make_shared<NodeMap>();
    now->reserve(record.nodes_size());
    known->writers = nullptr;
    known->check = 0;
  } else if (record.nodes_size() == 0 && record.removed_size() == 0) {
    now = before;
  } else {
    now = std::make_shared<NodeMap>(*before);
  }
  uint64_t check = known->check;
  for (const proto::Node& node : record.nodes()) {
    PathId path;
    if (!id_of(node.path(), &path)) return lose();
    request::KeptNode kept;
    kept.kind = static_cast<uint8_t>(node.kind());
    kept.value = node.digest();
    kept.drift = static_cast<uint8_t>(node.drift());
    const auto [at, added] = now->try_emplace(path, kept);
    if (!added) {
      proto::Node old;
      old.set_path(node.path());
      old.set_kind(at->second.kind);
      old.set_digest(at->second.value);
      check -= CheckOf(old);
      at->second = kept;
    }
    check += CheckOf(node);
    if (record.delta()) call->changed.push_back(path);
  }
  for (const uint32_t id : record.removed()) {
    PathId path;
    if (!id_of(id, &path)) return lose();
    const auto found = now->find(path);
    if (found == now->end()) return lose();
    proto::Node old;
    old.set_path(id);
    old.set_kind(found->second.kind);
    old.set_digest(found->second.value);
    check -= CheckOf(old);
    now->erase(found);
    call->changed.push_back(path);
  }
  if (check != record.check()) return lose();
  known->check = check;
  const bool lost = known->damages != damaged;
  known->damages = damaged;
  if (before != nullptr && (!record.delta() || lost)) {
    // A whole record, though the one before is known: a new file, of one run.
    // Or the record's delta refers to one that was lost.
    call->has_previous = true;
    call->changed.clear();
    for (const auto& [path, node] : *now) {
      const auto found = before->find(path);
      if (found == before->end() || found->second != node) {
        call->changed.push_back(path);
      }
    }
    for (const auto& one : *before) {
      if (!now->contains(one.first)) call->changed.push_back(one.first);
    }
    std::sort(call->changed.begin(), call->changed.end());
  } else {
    call->has_previous = record.delta();
  }
  if (before != nullptr) nodes_kept -= before->size();
  nodes_kept += now->size();
  known->nodes = now;
  if (record.writers_size() > 0 || known->writers == nullptr) {
    auto writers = known->writers == nullptr
                       ? std::make_shared<Writers>()
                       : std::make_shared<Writers>(*known->writers);
    for (const proto::Writer& one : record.writers()) {
      request::ObjectWriter writer;
      writer.object = one.object();
      writer.manager = one.manager();
      writer.operation = one.operation();
      writer.subresource = one.subresource();
      if (one.time() != 0) writer.time = absl::FromUnixNanos(one.time());
      (*writers)[one.object()] = std::move(writer);
    }
    known->writers = std::move(writers);
  }
  call->nodes = known->nodes;
  call->writers = known->writers;
  if (nodes_kept > kMaxNodes) lose();
}

void TraceReader::Impl::Take(const proto::Call& record, ReadCall* call) {
  call->call = FromRecord(record);
  call->request_message = record.request_message();
  call->response_message = record.response_message();
  if (!record.has_request()) return;
  call->stream = record.request().stream();
  TakeRequest(record.request(), &streams[record.request().stream()], call);
}

absl::StatusOr<std::unique_ptr<TraceReader>> TraceReader::Open(
    const std::string& path) {
  auto files = TraceFiles(path);
  if (!files.ok()) return files.status();
  auto impl = std::make_unique<Impl>();
  impl->files = *std::move(files);
  // A crash may leave a file without a beginning, and the ring may remove one
  // meanwhile. The files behind it are read all the same.
  absl::Status first;
  for (;;) {
    const absl::Status status = impl->OpenNext();
    if (status.ok()) break;
    first.Update(status);
    if (impl->next_file >= impl->files.size()) return first;
    ++impl->damaged;
  }
  auto reader = std::unique_ptr<TraceReader>(new TraceReader(std::move(impl)));
  return reader;
}

absl::StatusOr<std::unique_ptr<TraceReader>> TraceReader::OfBytes(
    std::string bytes) {
  auto impl = std::make_unique<Impl>();
  const absl::Status status = impl->Begin(std::move(bytes));
  if (!status.ok()) return status;
  return std::unique_ptr<TraceReader>(new TraceReader(std::move(impl)));
}

TraceReader::TraceReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  // The header is the first record of the first block.
  const size_t at = impl_->at;
  proto::Record record;
  std::string block;
  size_t ahead = at;
  if (ReadBlock(impl_->file, &ahead, &block) != BlockRead::kRead) return;
  std::swap(impl_->block, block);
  impl_->at = ahead;
  if (!impl_->NextRecord(&record) || !record.has_header()) {
    impl_->in_block = 0;
    return;
  }
  const proto::FileHeader& header = record.header();
  impl_->header.level = LevelOf(header.level());
  impl_->header.writer = header.writer();
  impl_->header.writer_version = header.writer_version();
  impl_->header.created = absl::FromUnixNanos(header.created());
  impl_->header.sample = header.sample();
  impl_->header.run = impl_->run = header.run();
  impl_->header.settings.insert(header.settings().begin(),
                                header.settings().end());
}

TraceReader::~TraceReader() = default;

const TraceHeader& TraceReader::header() const { return impl_->header; }

bool TraceReader::Next(ReadCall* call) {
  *call = ReadCall();
  proto::Record record;
  while (impl_->NextRecord(&record)) {
    switch (record.what_case()) {
      case proto::Record::kHeader:
        // Digests of another run have another key.
        if (record.header().run() != impl_->run) {
          impl_->streams.clear();
          impl_->nodes_kept = 0;
          impl_->run = record.header().run();
        }
        break;
      case proto::Record::kPath: {
        const std::string& path = record.path().path();
        const auto [at, added] = impl_->known_paths.try_emplace(
            path, static_cast<PathId>(impl_->names.size()));
        if (added) impl_->names.push_back(path);
        impl_->ids[record.path().id()] = at->second;
        break;
      }
      case proto::Record::kCall:
        impl_->Take(record.call(), call);
        call->dropped_before = std::exchange(impl_->dropped_before, 0);
        return true;
      case proto::Record::kDropped:
        impl_->dropped += record.dropped().records();
        impl_->dropped_before += record.dropped().records();
        break;
      default:
        // A record of a later version.
        break;
    }
  }
  return false;
}

absl::string_view TraceReader::PathOf(PathId id) const {
  return id < impl_->names.size() ? absl::string_view(impl_->names[id])
                                  : absl::string_view();
}

size_t TraceReader::paths() const { return impl_->names.size(); }
uint64_t TraceReader::dropped() const { return impl_->dropped; }
uint64_t TraceReader::damaged() const { return impl_->damaged; }

}  // namespace fncache::insight::trace
