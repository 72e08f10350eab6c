// SPDX-License-Identifier: Apache-2.0
#include "cache/store/disk_tally.h"

#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table_properties.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "cache/store/stored_entry.h"

namespace fncache::cache::store {
namespace {

constexpr absl::string_view kStateMagic = "fncst\1";
constexpr absl::string_view kPropertyPrefix = "fncache.";
// Entries' keys have this size; the state's has another.
constexpr size_t kKeySize = 16;

void PutFixed(uint64_t value, std::string* to) {
  for (int i = 0; i < 8; ++i) to->push_back(static_cast<char>(value >> 8 * i));
}

bool TakeFixed(absl::string_view* from, uint64_t* value) {
  if (from->size() < 8) return false;
  *value = 0;
  for (int i = 0; i < 8; ++i) {
    *value |= static_cast<uint64_t>(static_cast<uint8_t>((*from)[i])) << 8 * i;
  }
  from->remove_prefix(8);
  return true;
}

std::string BaseName(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

// Counts the entries that go into one file.
class Collector : public rocksdb::TablePropertiesCollector {
 public:
  rocksdb::Status AddUserKey(const rocksdb::Slice& key,
                             const rocksdb::Slice& value,
                             rocksdb::EntryType type, rocksdb::SequenceNumber,
                             uint64_t) override {
    if (type != rocksdb::kEntryPut || key.size() != kKeySize) {
      return rocksdb::Status::OK();
    }
    const auto peek = PeekStored({value.data(), value.size()});
    if (!peek.has_value()) return rocksdb::Status::OK();
    Counted& counted = functions_[peek->function];
    ++counted.entries;
    counted.bytes += key.size() + value.size();
    counted.kept_until =
        std::max(counted.kept_until, absl::ToUnixNanos(peek->kept_until));
    return rocksdb::Status::OK();
  }

  rocksdb::Status Finish(
      rocksdb::UserCollectedProperties* properties) override {
    *properties = GetReadableProperties();
    return rocksdb::Status::OK();
  }

  rocksdb::UserCollectedProperties GetReadableProperties() const override {
    rocksdb::UserCollectedProperties properties;
    for (const auto& [function, counted] : functions_) {
      std::string value;
      PutFixed(counted.entries, &value);
      PutFixed(counted.bytes, &value);
      PutFixed(static_cast<uint64_t>(counted.kept_until), &value);
      properties[absl::StrCat(kPropertyPrefix, function)] = value;
    }
    return properties;
  }

  const char* Name() const override { return "fncache.DiskTally"; }

 private:
  struct Counted {
    uint64_t entries = 0;
    uint64_t bytes = 0;
    int64_t kept_until = 0;
  };
  std::map<std::string, Counted> functions_;
};

class CollectorFactory : public rocksdb::TablePropertiesCollectorFactory {
 public:
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(
      rocksdb::TablePropertiesCollectorFactory::Context) override {
    return new Collector;
  }
  const char* Name() const override { return "fncache.DiskTally"; }
};

class FileListener : public rocksdb::EventListener {
 public:
  explicit FileListener(std::shared_ptr<DiskTally> tally)
      : tally_(std::move(tally)) {}

  void OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) override {
    if (!info.status.ok()) return;
    tally_->FileCreated(info.file_path, info.file_size,
                        info.table_properties.user_collected_properties);
  }
  void OnTableFileDeleted(const rocksdb::TableFileDeletionInfo& info) override {
    tally_->FileDeleted(info.file_path);
  }

 private:
  const std::shared_ptr<DiskTally> tally_;
};

std::map<std::string, FunctionId> IdsOf(
    const std::vector<StoredFunction>& functions) {
  std::map<std::string, FunctionId> ids;
  for (size_t i = 0; i < functions.size(); ++i) {
    ids.emplace(functions[i].name, static_cast<FunctionId>(i));
  }
  return ids;
}

}  // namespace

std::string DiskState::Encode() const {
  std::string bytes(kStateMagic);
  PutFixed(static_cast<uint64_t>(absl::ToUnixNanos(time)), &bytes);
  PutFixed(seed_fingerprint, &bytes);
  for (const auto& [name, counts] : functions) {
    PutFixed(name.size(), &bytes);
    bytes += name;
    PutFixed(counts.live, &bytes);
    PutFixed(counts.dead, &bytes);
  }
  PutFixed(XXH3_64bits(bytes.data(), bytes.size()), &bytes);
  return bytes;
}

absl::optional<DiskState> DiskState::Decode(absl::string_view bytes) {
  if (bytes.size() < kStateMagic.size() + 24) return absl::nullopt;
  absl::string_view end = bytes.substr(bytes.size() - 8);
  bytes.remove_suffix(8);
  uint64_t checksum;
  TakeFixed(&end, &checksum);
  if (checksum != XXH3_64bits(bytes.data(), bytes.size()) ||
      !absl::ConsumePrefix(&bytes, kStateMagic)) {
    return absl::nullopt;
  }
  DiskState state;
  uint64_t nanos;
  if (!TakeFixed(&bytes, &nanos) ||
      !TakeFixed(&bytes, &state.seed_fingerprint)) {
    return absl::nullopt;
  }
  state.time = absl::FromUnixNanos(static_cast<int64_t>(nanos));
  while (!bytes.empty()) {
    uint64_t size;
    if (!TakeFixed(&bytes, &size) || size > bytes.size()) return absl::nullopt;
    const std::string name(bytes.substr(0, size));
    bytes.remove_prefix(size);
    Counts& counts = state.functions[name];
    if (!TakeFixed(&bytes, &counts.live) || !TakeFixed(&bytes, &counts.dead)) {
      return absl::nullopt;
    }
  }
  return state;
}

DiskTally::DiskTally(const std::vector<StoredFunction>& functions, Clock* clock,
                     Observer* observer)
    : ids_(IdsOf(functions)), clock_(clock), observer_(observer) {}

void DiskTally::Listen(rocksdb::Options* options) {
  options->table_properties_collector_factories.push_back(
      std::make_shared<CollectorFactory>());
  options->listeners.push_back(
      std::make_shared<FileListener>(shared_from_this()));
}

std::map<std::string, DiskTally::InFile> DiskTally::Parse(
    const std::map<std::string, std::string>& properties) {
  std::map<std::string, InFile> file;
  for (const auto& [name, value] : properties) {
    absl::string_view function = name;
    absl::string_view bytes = value;
    InFile in_file;
    uint64_t kept_until;
    if (absl::ConsumePrefix(&function, kPropertyPrefix) &&
        TakeFixed(&bytes, &in_file.entries) &&
        TakeFixed(&bytes, &in_file.bytes) && TakeFixed(&bytes, &kept_until)) {
      in_file.kept_until =
          absl::FromUnixNanos(static_cast<int64_t>(kept_until));
      file[std::string(function)] = in_file;
    }
  }
  return file;
}

void DiskTally::Load(rocksdb::DB* db, const Counts& counts) {
  rocksdb::TablePropertiesCollection all;
  // Files whose properties cannot be read are missing here, so their entries
  // are not counted out when they go.
  db->GetPropertiesOfAllTables(&all).PermitUncheckedError();
  std::vector<rocksdb::LiveFileMetaData> live;
  db->GetLiveFilesMetaData(&live);
  MutexLock lock(&mutex_);
  counts_ = counts;
  files_.clear();
  file_bytes_ = 0;
  for (const auto& [path, properties] : all) {
    files_[BaseName(path)].functions =
        Parse(properties->user_collected_properties);
  }
  for (const rocksdb::LiveFileMetaData& file : live) {
    files_[BaseName(file.name)].size = file.size;
    file_bytes_ += file.size;
  }
}

void DiskTally::DropAll(const Counts& counts) {
  {
    MutexLock lock(&mutex_);
    counts_.clear();
    files_.clear();
    file_bytes_ = 0;
  }
  for (const auto& [function, count] : counts) {
    const auto id = ids_.find(function);
    if (id == ids_.end() || count.live == 0) continue;
    observer_->OnRemoved(Tier::kDisk, Removal::kDropped, id->second,
                         /*last=*/true, count.live, 0);
  }
}

void DiskTally::Added(absl::string_view function) {
  MutexLock lock(&mutex_);
  ++counts_[std::string(function)].live;
}

void DiskTally::Died(absl::string_view function) {
  MutexLock lock(&mutex_);
  DiskState::Counts& counts = counts_[std::string(function)];
  if (counts.live > 0) --counts.live;
  ++counts.dead;
}

void DiskTally::NotAdded(absl::string_view function) {
  MutexLock lock(&mutex_);
  DiskState::Counts& counts = counts_[std::string(function)];
  if (counts.live > 0) --counts.live;
}

void DiskTally::NotDied(absl::string_view function) {
  MutexLock lock(&mutex_);
  DiskState::Counts& counts = counts_[std::string(function)];
  ++counts.live;
  if (counts.dead > 0) --counts.dead;
}

DiskTally::Counts DiskTally::counts() const {
  MutexLock lock(&mutex_);
  return counts_;
}

uint64_t DiskTally::entries() const {
  MutexLock lock(&mutex_);
  uint64_t sum = 0;
  for (const auto& [name, counts] : counts_) sum += counts.live;
  return sum;
}

uint64_t DiskTally::AwaitFileBytes(uint64_t bytes, absl::Duration patience) {
  const absl::Time until = absl::Now() + patience;
  MutexLock lock(&mutex_);
  while (file_bytes_ > bytes && absl::Now() < until) {
    fewer_files_.WaitWithTimeout(&mutex_, until - absl::Now());
  }
  return file_bytes_;
}

void DiskTally::FileCreated(
    const std::string& path, uint64_t size,
    const std::map<std::string, std::string>& properties) {
  MutexLock lock(&mutex_);
  File& file = files_[BaseName(path)];
  file_bytes_ += size - file.size;
  file.size = size;
  file.functions = Parse(properties);
}

void DiskTally::FileDeleted(const std::string& path) {
  struct Gone {
    FunctionId id;
    uint64_t entries;
    uint64_t bytes;
    bool expired;
  };
  std::vector<Gone> gone;
  const absl::Time now = clock_->Now();
  {
    MutexLock lock(&mutex_);
    const auto it = files_.find(BaseName(path));
    if (it == files_.end()) return;
    for (const auto& [function, in_file] : it->second.functions) {
      DiskState::Counts& counts = counts_[function];
      const uint64_t dead = std::min(counts.dead, in_file.entries);
      const uint64_t live = std::min(counts.live, in_file.entries - dead);
      counts.dead -= dead;
      counts.live -= live;
      const auto id = ids_.find(function);
      if (live == 0 || id == ids_.end()) continue;
      gone.push_back({id->second, live, in_file.bytes / in_file.entries * live,
                      in_file.kept_until <= now});
    }
    file_bytes_ -= it->second.size;
    files_.erase(it);
    fewer_files_.SignalAll();
  }
  for (const Gone& one : gone) {
    observer_->OnRemoved(Tier::kDisk,
                         one.expired ? Removal::kExpired : Removal::kEvicted,
                         one.id, /*last=*/true, one.entries, one.bytes);
  }
}

}  // namespace fncache::cache::store
