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
#include "common/mutex.h"
#include "common/version.h"
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

constexpr uint64_t kMinFileSize = 64 << 10;
constexpr size_t kBlockSize = 256 << 10;
// How long a record waits for others of its block, and how often a directory
// that failed is tried again.
constexpr absl::Duration kMostWait = absl::Seconds(1);
constexpr size_t kKeptRequests = 32 << 20;
// A file that has so many paths is over: readers keep them all.
constexpr size_t kMostPaths = 1 << 20;
// The queue's own memory for each call, about.
constexpr uint64_t kCallBytes = sizeof(TracedCall) + 256;

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
  const size_t size = record.ByteSizeLong();
  // Length-delimited, as protobuf's own helpers write it.
  size_t left = size;
  do {
    raw->push_back(static_cast<char>((left & 0x7f) | (left > 0x7f ? 0x80 : 0)));
    left >>= 7;
  } while (left > 0);
  record.AppendToString(raw);
}

std::string WhoseOf(const TracedCall& call) {
  std::string whose;
  for (const std::string* part :
       {&call.function, &call.composite.kind, &call.composite.object_namespace,
        &call.composite.name, &call.composite.uid}) {
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
  struct Job {
    TracedCall call;
    Messages messages;
    uint64_t bytes = 0;
    bool flush = false;  // a request to write what is there, no call
  };

  explicit Impl(TraceOptions given)
      : options(std::move(given)),
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
  void Handle(Job* job);
  // The call with what was read of its messages, behind the paths that it needs
  // first. With `fresh` nothing of the file is known to it yet.
  std::string Encode(const Job& job, const std::string& request,
                     const std::string& response, bool readable);
  bool StartFile();
  void WriteBlock();
  void Lose(uint64_t records, absl::string_view why);

  const TraceOptions options;
  std::string run;
  std::unique_ptr<TraceRing> ring;

  // Of the writer's thread.
  request::RequestNodes nodes;
  RequestLog log;
  std::string raw;  // of the block that is being filled
  uint64_t raw_records = 0;
  absl::Time raw_since = absl::InfiniteFuture();
  absl::Time tried = absl::InfinitePast();
  uint64_t unsaid = 0;  // dropped records that the trace does not tell of yet

  mutable Mutex mutex;
  CondVar changed;
  std::deque<Job> jobs ABSL_GUARDED_BY(mutex);
  uint64_t queued ABSL_GUARDED_BY(mutex) = 0;
  uint64_t lost_in_queue ABSL_GUARDED_BY(mutex) =
      0;  // since told to the thread
  uint64_t flushes_asked ABSL_GUARDED_BY(mutex) = 0;
  uint64_t flushes_done ABSL_GUARDED_BY(mutex) = 0;
  bool stop ABSL_GUARDED_BY(mutex) = false;
  TraceStats stats ABSL_GUARDED_BY(mutex);
  std::thread thread;
};

void TraceWriter::Impl::Loop() {
  for (;;) {
    Job job;
    bool have = false, stopping = false;
    {
      MutexLock lock(&mutex);
      while (jobs.empty() && !stop) {
        const absl::Duration wait = raw_since + kMostWait - absl::Now();
        if (raw.empty()) {
          changed.Wait(&mutex);
        } else if (wait <= absl::ZeroDuration() ||
                   changed.WaitWithTimeout(&mutex, wait)) {
          break;
        }
      }
      unsaid += std::exchange(lost_in_queue, 0);
      if (!jobs.empty()) {
        job = std::move(jobs.front());
        jobs.pop_front();
        queued -= job.bytes;
        have = true;
      }
      stopping = stop && !have;
    }
    if (have && !job.flush) Handle(&job);
    if (stopping || (have && job.flush) || raw.size() >= kBlockSize ||
        raw_since + kMostWait <= absl::Now()) {
      WriteBlock();
    }
    if (have && job.flush) {
      MutexLock lock(&mutex);
      ++flushes_done;
      changed.SignalAll();
    }
    if (stopping) return;
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
  std::string bytes;
  proto::Record record;
  proto::Call* const call = record.mutable_call();
  ToRecord(job.call, call);
  if (readable) {
    std::vector<proto::Path> paths;
    log.Encode(WhoseOf(job.call), nodes, call->mutable_request(), &paths);
    for (proto::Path& path : paths) {
      proto::Record definition;
      *definition.mutable_path() = std::move(path);
      AppendRecord(definition, &bytes);
    }
  }
  if (options.level == Level::kFull) {
    call->set_request_message(Redacted<fn::RunFunctionRequest>(request));
    call->set_response_message(Redacted<fn::RunFunctionResponse>(response));
  }
  AppendRecord(record, &bytes);
  return bytes;
}

void TraceWriter::Impl::Handle(Job* job) {
  std::string request, response;
  bool readable = false;
  if (options.level != Level::kKeys && job->messages.request != nullptr) {
    request = job->messages.request();
    readable = !request.empty() && nodes.Read({request});
    if (readable && !job->call.composite.known()) {
      job->call.composite = request::CompositeOf(nodes.nodes());
    }
  }
  if (options.level == Level::kFull && job->messages.response != nullptr) {
    response = job->messages.response();
  }
  if (!ring->has_file() && !StartFile()) return Lose(1, "");
  if (unsaid > 0) {
    if (raw.empty()) raw_since = absl::Now();
    proto::Record dropped;
    dropped.mutable_dropped()->set_records(std::exchange(unsaid, 0));
    AppendRecord(dropped, &raw);
    log.Clear();
  }
  std::string bytes = Encode(*job, request, response, readable);
  if (kFileMagic.size() + MostBlockSize(bytes.size()) > options.file_size) {
    // Larger than a file: nothing is wrong with the disk, and a new file would
    // only push another one out.
    return Lose(1, "");
  }
  const auto fits = [&] {
    return raw.size() + bytes.size() <= kMaxBlock &&
           ring->size() + MostBlockSize(raw.size() + bytes.size()) <=
               options.file_size;
  };
  if (!fits() || log.paths() > kMostPaths) {
    // What the record says against the file before is of no use in the next.
    WriteBlock();
    if (!StartFile()) return Lose(1, "");
    bytes = Encode(*job, request, response, readable);
    // With a header it may be larger than a file.
    if (!fits()) return Lose(1, "");
  }
  if (raw.empty()) raw_since = absl::Now();
  raw += bytes;
  ++raw_records;
}

void TraceWriter::Impl::WriteBlock() {
  if (raw.empty()) return;
  const std::string block = MakeBlock(raw);
  const uint64_t records = raw_records;
  raw.clear();
  raw_records = 0;
  raw_since = absl::InfiniteFuture();
  if (!ring->has_file()) return Lose(records, "");
  const absl::Status status = ring->Append(block);
  if (!status.ok()) return Lose(records, status.message());
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

TraceWriter::~TraceWriter() {
  {
    MutexLock lock(&impl_->mutex);
    impl_->stop = true;
    impl_->changed.SignalAll();
  }
  impl_->thread.join();
}

bool TraceWriter::Samples(const request::CompositeName& composite) const {
  if (impl_->options.sample >= 1 || !composite.known()) return true;
  uint64_t hash = 0;
  for (const std::string* part :
       {&std::as_const(impl_->run), &composite.kind,
        &composite.object_namespace, &composite.name, &composite.uid}) {
    hash = XXH3_64bits_withSeed(part->data(), part->size(), hash);
  }
  return static_cast<double>(hash >> 11) <
         impl_->options.sample * static_cast<double>(uint64_t{1} << 53);
}

void TraceWriter::Write(TracedCall call, Messages messages) {
  if (!Samples(call.composite)) {
    MutexLock lock(&impl_->mutex);
    ++impl_->stats.sampled_out;
    return;
  }
  Impl::Job job;
  job.bytes = kCallBytes + messages.held + call.detail.size();
  job.call = std::move(call);
  job.messages = std::move(messages);
  MutexLock lock(&impl_->mutex);
  if (impl_->queued + job.bytes > impl_->options.queue_bytes) {
    ++impl_->stats.dropped_queue;
    ++impl_->lost_in_queue;
    return;
  }
  impl_->queued += job.bytes;
  const bool wake = impl_->jobs.empty();
  impl_->jobs.push_back(std::move(job));
  if (wake) impl_->changed.SignalAll();
}

Level TraceWriter::level() const { return impl_->options.level; }

TraceStats TraceWriter::Stats() const {
  MutexLock lock(&impl_->mutex);
  return impl_->stats;
}

absl::Status TraceWriter::Flush() {
  MutexLock lock(&impl_->mutex);
  const uint64_t mine = ++impl_->flushes_asked;
  Impl::Job job;
  job.flush = true;
  impl_->jobs.push_back(std::move(job));
  impl_->changed.SignalAll();
  while (impl_->flushes_done < mine) impl_->changed.Wait(&impl_->mutex);
  if (impl_->stats.up) return absl::OkStatus();
  return absl::UnavailableError(impl_->stats.error);
}

}  // namespace fncache::insight::trace
