// SPDX-License-Identifier: Apache-2.0
#include "insight/trace/writer.h"

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cache/wire/wire.h"
#include "common/mutex.h"
#include "common/version.h"
#include "insight/request/node_drift.h"
#include "insight/request/nodes.h"
#include "insight/request/redact.h"
#include "insight/trace/block.h"
#include "insight/trace/record.h"
#include "insight/trace/request_log.h"
#include "insight/trace/ring.h"
#include "openssl/rand.h"
#include "proto/function_v1.pb.h"
#include "proto/trace.pb.h"
#include "xxhash.h"

namespace fncache::insight::trace {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
namespace proto = ::fncache::trace;
namespace wire = ::fncache::cache::wire;

constexpr uint64_t kMinFileSize = 64 << 10;
constexpr size_t kBlockSize = 256 << 10;
// The time that a record waits for others of its block, and the interval of
// retries after a directory failed.
constexpr absl::Duration kMostWait = absl::Seconds(1);
// The time that calls are collected before the thread takes them. Waking it for
// each call would cost a hit more than the record does.
constexpr absl::Duration kGather = absl::Milliseconds(50);
// Bytes. Records that their callers have encoded are collected in such pieces.
constexpr size_t kPiece = 64 << 10;
constexpr size_t kKeptRequests = 32 << 20;
// A file with more paths is closed: readers keep all paths of a file.
constexpr size_t kMostPaths = 1 << 20;
// Approximate memory of the queue for each job.
constexpr uint64_t kJobBytes = sizeof(TracedCall) + 256;

proto::FileHeader::Level ProtoLevel(Level level) {
  switch (level) {
    case Level::kKeys:
      return proto::FileHeader::LEVEL_KEYS;
    case Level::kPaths:
      return proto::FileHeader::LEVEL_PATHS;
    case Level::kFull:
      return proto::FileHeader::LEVEL_FULL;
  }
  return proto::FileHeader::LEVEL_UNSPECIFIED;
}

void AppendRecord(const proto::Record& record, std::string* raw) {
  // Length-delimited, as protobuf's own helpers write it.
  wire::AppendVarint(raw, record.ByteSizeLong());
  record.AppendToString(raw);
}

// The same for the bytes of a call's record.
void AppendCallRecord(absl::string_view call, std::string* raw) {
  constexpr size_t kTagSize = 1;
  wire::AppendVarint(raw,
                     kTagSize + wire::VarintSize(call.size()) + call.size());
  wire::AppendBytesField(raw, proto::Record::kCallFieldNumber, call);
}

std::string WhoseOf(const TracedCall& call) {
  std::string whose;
  for (const std::string* part :
       {&call.function, &call.method, &call.composite.kind,
        &call.composite.object_namespace, &call.composite.name,
        &call.composite.uid}) {
    absl::StrAppend(&whose, part->size(), ":", *part);
  }
  return whose;
}

template <typename Message>
std::string Redacted(const std::string& bytes) {
  Message message;
  if (bytes.empty() || !message.ParseFromString(bytes)) return "";
  request::Redact(&message);
  return message.SerializeAsString();
}

}  // namespace

struct TraceWriter::Impl {
  // At level keys a piece of records, ready for a block. Otherwise one call,
  // whose messages the thread still has to read.
  struct Job {
    std::string encoded;
    uint64_t records = 1;
    uint64_t lost_before = 0;
    TracedCall call;
    Messages messages;
    uint64_t bytes = 0;
  };

  explicit Impl(TraceOptions given)
      : options(std::move(given)),
        piece(std::min<uint64_t>(kPiece, options.file_size / 4)),
        block_size(options.level == Level::kKeys ? piece / 2 : kBlockSize),
        budget(options.read_limits),
        nodes(request::FingerprintSecret::Random()),
        log(RandomSeed(), kKeptRequests) {
    run.resize(16);
    RAND_bytes(reinterpret_cast<unsigned char*>(&run[0]), 16);
  }

  static cache::key::Seed RandomSeed() {
    cache::key::Seed seed;
    RAND_bytes(seed.data(), seed.size());
    return seed;
  }

  void Loop();
  // Waits for jobs, a flush, the end, or the time limit of the block.
  void WaitForJobs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // False: the queue has no capacity for it, and it counts as lost.
  bool TakeBytes(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void WriteEncoded(const TracedCall& call);
  uint64_t HashOf(const request::CompositeName& composite) const;
  void Handle(Job* job);
  void SayDropped();
  // The call with the contents of its messages, after the paths that it needs
  // first. With `fresh` it knows nothing of the file yet.
  std::string Encode(const Job& job, const std::string& request,
                     const std::string& response, bool readable);
  bool StartFile();
  void WriteBlock();
  void Lose(uint64_t records, absl::string_view why);

  const TraceOptions options;
  const size_t piece;
  const size_t block_size;
  std::string run;
  std::unique_ptr<TraceRing> ring;

  ReadBudget budget;  // adjusted by the writer's thread

  // Only the writer's thread uses these.
  bool unread_said = false;
  request::RequestNodes nodes;
  request::NodeDrifts drifts;  // of `nodes`, with `tune: on`
  RequestLog log;
  std::string raw;  // of the block that is being filled
  uint64_t raw_records = 0;
  absl::Time raw_since = absl::InfiniteFuture();
  absl::Time tried = absl::InfinitePast();
  uint64_t unsaid = 0;  // dropped records that the trace has not reported
  uint64_t said = 0;    // those that the block reports

  mutable Mutex mutex;
  CondVar changed;
  std::deque<Job> jobs ABSL_GUARDED_BY(mutex);
  uint64_t queued ABSL_GUARDED_BY(mutex) = 0;  // bytes
  uint64_t lost_in_queue ABSL_GUARDED_BY(mutex) =
      0;                                     // since told to the thread
  bool idle ABSL_GUARDED_BY(mutex) = false;  // the thread waits for a first job
  uint64_t flushes_asked ABSL_GUARDED_BY(mutex) = 0;
  uint64_t flushes_done ABSL_GUARDED_BY(mutex) = 0;
  bool stop ABSL_GUARDED_BY(mutex) = false;
  TraceStats stats ABSL_GUARDED_BY(mutex);
  std::thread thread;
};

void TraceWriter::Impl::WaitForJobs() {
  const auto pressing = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return stop || flushes_asked > flushes_done ||
           queued > options.queue_bytes / 4;
  };
  while (jobs.empty() && !pressing()) {
    if (raw.empty()) {
      idle = true;
      changed.Wait(&mutex);
      idle = false;
      continue;
    }
    const absl::Duration wait = raw_since + kMostWait - absl::Now();
    if (wait <= absl::ZeroDuration() || changed.WaitWithTimeout(&mutex, wait)) {
      return;
    }
  }
  const absl::Time until = absl::Now() + kGather;
  while (!pressing()) {
    const absl::Duration wait = until - absl::Now();
    if (wait <= absl::ZeroDuration() || changed.WaitWithTimeout(&mutex, wait)) {
      return;
    }
  }
}

void TraceWriter::Impl::Loop() {
  for (;;) {
    std::deque<Job> taken;
    bool stopping = false;
    uint64_t flushes = 0;
    {
      MutexLock lock(&mutex);
      WaitForJobs();
      taken.swap(jobs);
      stopping = stop;
      flushes = flushes_asked;
    }
    for (Job& job : taken) {
      unsaid += job.lost_before;
      Handle(&job);
      const uint64_t bytes = job.bytes;
      job = Job();
      if (raw.size() >= block_size || raw_since + kMostWait <= absl::Now()) {
        WriteBlock();
      }
      MutexLock lock(&mutex);
      queued -= bytes;
    }
    budget.Adjust(ReadBudget::Now());
    if (!unread_said && budget.fraction() < 1) {
      unread_said = true;
      if (options.on_unread != nullptr) options.on_unread();
    }
    bool flush = stopping || raw_since + kMostWait <= absl::Now();
    {
      MutexLock lock(&mutex);
      flush = flush || flushes > flushes_done;
      if (flush && jobs.empty()) unsaid += std::exchange(lost_in_queue, 0);
    }
    if (flush) {
      SayDropped();
      WriteBlock();
    }
    {
      MutexLock lock(&mutex);
      if (flushes > flushes_done) {
        flushes_done = flushes;
        changed.SignalAll();
      }
      if (stopping && jobs.empty()) return;
    }
  }
}

void TraceWriter::Impl::Lose(uint64_t records, absl::string_view why) {
  unsaid += records;
  log.Clear();
  bool begins = false;
  {
    MutexLock lock(&mutex);
    stats.dropped_disk += records;
    if (!why.empty()) {
      begins = stats.up;
      stats.up = false;
      stats.error = std::string(why);
    }
  }
  if (begins && options.on_failure != nullptr) options.on_failure(why);
}

bool TraceWriter::Impl::StartFile() {
  const absl::Time now = absl::Now();
  if (now < tried + kMostWait && !ring->has_file() &&
      tried != absl::InfinitePast()) {
    MutexLock lock(&mutex);
    if (!stats.up) return false;
  }
  tried = now;
  const absl::Status status = ring->Next();
  if (!status.ok()) {
    Lose(0, status.message());
    return false;
  }
  log.Clear();
  proto::Record record;
  proto::FileHeader* const header = record.mutable_header();
  header->set_version(1);
  header->set_level(ProtoLevel(options.level));
  header->set_writer(options.writer);
  header->set_writer_version(std::string(Version()));
  header->set_created(absl::ToUnixNanos(now));
  header->set_sample(options.sample);
  header->set_run(run);
  header->mutable_settings()->insert(options.settings.begin(),
                                     options.settings.end());
  raw.clear();
  raw_records = 0;
  AppendRecord(record, &raw);
  raw_since = now;
  return true;
}

std::string TraceWriter::Impl::Encode(const Job& job,
                                      const std::string& request,
                                      const std::string& response,
                                      bool readable) {
  std::string bytes, call;
  AppendCall(job.call, &call);
  if (readable) {
    proto::Request record;
    std::vector<proto::Path> paths;
    log.Encode(WhoseOf(job.call), nodes, job.messages.tuned ? &drifts : nullptr,
               &record, &paths);
    wire::AppendBytesField(&call, proto::Call::kRequestFieldNumber,
                           record.SerializeAsString());
    for (proto::Path& path : paths) {
      proto::Record definition;
      *definition.mutable_path() = std::move(path);
      AppendRecord(definition, &bytes);
    }
  }
  if (options.level == Level::kFull) {
    wire::AppendBytesField(&call, proto::Call::kRequestMessageFieldNumber,
                           Redacted<fn::RunFunctionRequest>(request));
    wire::AppendBytesField(&call, proto::Call::kResponseMessageFieldNumber,
                           Redacted<fn::RunFunctionResponse>(response));
  }
  AppendCallRecord(call, &bytes);
  return bytes;
}

void TraceWriter::Impl::SayDropped() {
  if (unsaid == 0 || !ring->has_file()) return;
  if (raw.empty()) raw_since = absl::Now();
  proto::Record dropped;
  dropped.mutable_dropped()->set_records(unsaid);
  said += std::exchange(unsaid, 0);
  AppendRecord(dropped, &raw);
  log.Clear();
}

void TraceWriter::Impl::Handle(Job* job) {
  std::string request, response;
  bool readable = false;
  if (options.level != Level::kKeys && job->messages.request != nullptr) {
    request = job->messages.request();
    readable = !request.empty() && nodes.Read({request});
    if (readable && job->messages.tuned) drifts.Read(nodes.nodes());
    if (readable && !job->call.composite.known()) {
      job->call.composite = request::CompositeOf(nodes.nodes());
    }
  }
  if (options.level == Level::kFull && job->messages.response != nullptr) {
    response = job->messages.response();
  }
  if (!ring->has_file() && !StartFile()) return Lose(job->records, "");
  SayDropped();
  const bool encoded = !job->encoded.empty();
  std::string bytes = encoded ? std::move(job->encoded)
                              : Encode(*job, request, response, readable);
  if (kFileMagic.size() + MostBlockSize(bytes.size()) > options.file_size) {
    // Larger than a file: the disk is not at fault, and a new file would only
    // remove an old one.
    return Lose(job->records, "");
  }
  const auto fits = [&] {
    return raw.size() + bytes.size() <= kMaxBlock &&
           ring->size() + MostBlockSize(raw.size() + bytes.size()) <=
               options.file_size;
  };
  if (!fits() || log.paths() > kMostPaths) {
    WriteBlock();
    if (!StartFile()) return Lose(job->records, "");
    // A record that refers to the file before is of no use in the next.
    if (!encoded) bytes = Encode(*job, request, response, readable);
    // With a header it may be larger than a file.
    if (!fits()) return Lose(job->records, "");
  }
  if (raw.empty()) {
    raw_since = absl::Now();
    raw.swap(bytes);
  } else {
    raw += bytes;
  }
  raw_records += job->records;
}

void TraceWriter::Impl::WriteBlock() {
  if (raw.empty()) return;
  const std::string block = MakeBlock(raw);
  const uint64_t records = raw_records;
  raw.clear();
  raw_records = 0;
  raw_since = absl::InfiniteFuture();
  const uint64_t said_here = std::exchange(said, 0);
  const absl::Status status =
      ring->has_file() ? ring->Append(block) : absl::CancelledError("");
  if (!status.ok()) {
    unsaid += said_here;
    return Lose(records, status.message());
  }
  bool over = false;
  {
    MutexLock lock(&mutex);
    stats.written += records;
    stats.bytes += block.size();
    over = !stats.up;
    stats.up = true;
    stats.error.clear();
  }
  if (over && options.on_failure != nullptr) options.on_failure("");
}

absl::StatusOr<std::unique_ptr<TraceWriter>> TraceWriter::Create(
    TraceOptions options) {
  if (options.dir.empty()) {
    return absl::InvalidArgumentError(
        "trace.dir: is empty; accepted: a folder for the trace's files");
  }
  if (options.file_size < kMinFileSize) {
    return absl::InvalidArgumentError(
        "trace.file_size: is too small; accepted: at least 64KiB");
  }
  if (options.files < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "trace.files: ", options.files, " is too few; accepted: at least 2"));
  }
  if (!(options.sample > 0 && options.sample <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "trace.sample: ", options.sample, "; accepted: over 0 and at most 1"));
  }
  auto ring = TraceRing::Open(options.dir, options.files);
  if (!ring.ok()) return ring.status();
  auto impl = std::make_unique<Impl>(std::move(options));
  impl->ring = *std::move(ring);
  // The first file is there at once, so that a directory that cannot be
  // written is known at the start.
  if (!impl->StartFile()) {
    MutexLock lock(&impl->mutex);
    return absl::UnavailableError(impl->stats.error);
  }
  impl->WriteBlock();
  {
    MutexLock lock(&impl->mutex);
    if (!impl->stats.up) return absl::UnavailableError(impl->stats.error);
  }
  Impl* const raw = impl.get();
  impl->thread = std::thread([raw] { raw->Loop(); });
  return std::unique_ptr<TraceWriter>(new TraceWriter(std::move(impl)));
}

TraceWriter::TraceWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

TraceWriter::~TraceWriter() { Close(); }

void TraceWriter::Close() {
  if (!impl_->thread.joinable()) return;
  {
    MutexLock lock(&impl_->mutex);
    impl_->stop = true;
    impl_->changed.SignalAll();
  }
  impl_->thread.join();
  impl_->ring = nullptr;
}

uint64_t TraceWriter::Impl::HashOf(
    const request::CompositeName& composite) const {
  uint64_t hash = 0;
  for (const std::string* part :
       {&std::as_const(run), &composite.kind, &composite.object_namespace,
        &composite.name, &composite.uid}) {
    hash = XXH3_64bits_withSeed(part->data(), part->size(), hash);
  }
  return hash;
}

bool TraceWriter::Samples(const request::CompositeName& composite) const {
  if (impl_->options.sample >= 1 || !composite.known()) return true;
  return static_cast<double>(impl_->HashOf(composite) >> 11) <
         impl_->options.sample * static_cast<double>(uint64_t{1} << 53);
}

bool TraceWriter::Reads(const request::CompositeName& composite) const {
  if (impl_->options.level == Level::kKeys) return false;
  // Other bits than the sample's, since all hashes in a sample are small.
  return impl_->budget.Reads(impl_->HashOf(composite) *
                             uint64_t{0x9e3779b97f4a7c15});
}

void TraceWriter::Write(TracedCall&& call, Messages messages) {
  if (!Samples(call.composite)) {
    MutexLock lock(&impl_->mutex);
    ++impl_->stats.sampled_out;
    return;
  }
  if (!Reads(call.composite)) {
    impl_->WriteEncoded(call);
    return;
  }
  Impl::Job job;
  job.bytes = kJobBytes + messages.held + call.detail.size();
  job.call = std::move(call);
  job.messages = std::move(messages);
  MutexLock lock(&impl_->mutex);
  if (!impl_->TakeBytes(job.bytes)) return;
  job.lost_before = std::exchange(impl_->lost_in_queue, 0);
  impl_->jobs.push_back(std::move(job));
}

bool TraceWriter::Impl::TakeBytes(uint64_t bytes) {
  if (stop || queued + bytes > options.queue_bytes) {
    ++stats.dropped_queue;
    ++lost_in_queue;
    return false;
  }
  queued += bytes;
  if (idle || queued > options.queue_bytes / 4) changed.SignalAll();
  return true;
}

// There is nothing to read, so queueing the call would cost more than encoding
// it here.
void TraceWriter::Impl::WriteEncoded(const TracedCall& call) {
  // It keeps its memory from one call to the next.
  thread_local std::string record;
  record.clear();
  AppendCall(call, &record);
  MutexLock lock(&mutex);
  const bool joins = !jobs.empty() && !jobs.back().encoded.empty() &&
                     lost_in_queue == 0 &&
                     jobs.back().encoded.size() + record.size() <= piece;
  const uint64_t taken = record.size() + (joins ? 0 : kJobBytes);
  if (!TakeBytes(taken)) return;
  if (joins) {
    ++jobs.back().records;
  } else {
    jobs.emplace_back();
    jobs.back().lost_before = std::exchange(lost_in_queue, 0);
    if (options.level == Level::kKeys) jobs.back().encoded.reserve(piece + 16);
  }
  AppendCallRecord(record, &jobs.back().encoded);
  jobs.back().bytes += taken;
}

Level TraceWriter::level() const { return impl_->options.level; }

TraceStats TraceWriter::Stats() const {
  MutexLock lock(&impl_->mutex);
  TraceStats stats = impl_->stats;
  stats.read_share = impl_->budget.fraction();
  return stats;
}

absl::Status TraceWriter::Flush() {
  MutexLock lock(&impl_->mutex);
  if (impl_->stop) return absl::UnavailableError("the trace is closed");
  const uint64_t mine = ++impl_->flushes_asked;
  impl_->changed.SignalAll();
  while (impl_->flushes_done < mine) impl_->changed.Wait(&impl_->mutex);
  if (impl_->stats.up) return absl::OkStatus();
  return absl::UnavailableError(impl_->stats.error);
}

}  // namespace fncache::insight::trace
