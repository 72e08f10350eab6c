// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/streams.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/time/clock.h"
#include "common/threads.h"
#include "grpcpp/impl/codegen/core_codegen_interface.h"

namespace fncache::sdk::serve {
namespace {

// Calls that gRPC can hand over without waiting for a thread of ours.
constexpr int kExpected = 32;
// One thread reads 40,000 calls a second. Functions need the cores.
constexpr int kCoresPerQueue = 4;
constexpr int kMostQueues = 4;
constexpr absl::Duration kPatience = absl::Milliseconds(100);

}  // namespace

class Stream {
 public:
  enum Event { kArrived, kRead, kWritten, kFinished, kDone };

  // Waits for a call.
  Stream(Streams* streams, grpc::ServerCompletionQueue* queue)
      : streams_(streams), queue_(queue) {
    for (int i = 0; i <= kDone; ++i) tags_[i] = {this, static_cast<Event>(i)};
    context_.AsyncNotifyWhenDone(HandOver(kDone));
    streams_->service_.RequestCall(&context_, &stream_, queue_, queue_,
                                   HandOver(kArrived));
  }

  ~Stream() { streams_->Gone(); }

  static void React(void* tag, bool ok) {
    AcquireFrom(tag);
    const Tag& known = *static_cast<Tag*>(tag);
    known.stream->On(known.event, ok);
  }

  grpc::GenericServerContext& context() { return context_; }
  const grpc::GenericServerContext& context() const { return context_; }

  void Read(grpc::ByteBuffer* bytes) {
    ++outstanding_;
    stream_.Read(bytes, HandOver(kRead));
  }
  void Write(const grpc::ByteBuffer& bytes) {
    ++outstanding_;
    stream_.Write(bytes, HandOver(kWritten));
  }
  void WriteAndFinish(const grpc::ByteBuffer& bytes,
                      const grpc::Status& status) {
    stream_.WriteAndFinish(bytes, grpc::WriteOptions(), status,
                           HandOver(kFinished));
  }
  void Finish(const grpc::Status& status) {
    stream_.Finish(status, HandOver(kFinished));
  }

 private:
  struct Tag {
    Stream* stream;
    Event event;
  };

  // The tag of an operation that starts now. Its event comes after all that
  // this thread did so far.
  Tag* HandOver(Event event) {
    ReleaseTo(&tags_[event]);
    return &tags_[event];
  }

  void On(Event event, bool ok) {
    if (event == kArrived && !ok) {  // the server stops
      delete this;
      return;
    }
    {
      MutexLock lock(&mutex_);
      Tell(event, ok);
    }
    if (--outstanding_ > 0) return;
    reactor_->OnDone();
    delete this;
  }

  void Tell(Event event, bool ok) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    switch (event) {
      case kArrived:
        streams_->Wait(queue_);
        reactor_ = streams_->accept_(this);
        // The other thread may have read kDone first.
        if (done_) TellCancel();
        break;
      case kRead:
        reactor_->OnReadDone(ok);
        break;
      case kWritten:
        reactor_->OnWriteDone(ok);
        break;
      case kDone:
        done_ = true;
        TellCancel();
        break;
      case kFinished:
        break;
    }
  }

  void TellCancel() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reactor_ != nullptr && context_.IsCancelled()) reactor_->OnCancel();
  }

  Streams* const streams_;
  grpc::ServerCompletionQueue* const queue_;
  Tag tags_[kDone + 1];
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  // Held by a reaction: two threads may read the queue.
  Mutex mutex_;
  Reactor* reactor_ = nullptr;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  // Events to come: kArrived, kFinished and kDone, and those of reads and
  // writes.
  std::atomic<int> outstanding_{3};
};

const std::string& MethodOf(const Stream& stream) {
  return stream.context().method();
}

grpc::GenericServerContext* Reactor::context() const {
  return &stream_->context();
}

bool Reactor::LostBeforeMessage() const {
  return grpc::g_core_codegen_interface->grpc_call_failed_before_recv_message(
             context()->c_call()) != 0;
}

void Reactor::StartRead(grpc::ByteBuffer* bytes) { stream_->Read(bytes); }

void Reactor::StartWrite(const grpc::ByteBuffer& bytes) {
  stream_->Write(bytes);
}

void Reactor::StartWriteAndFinish(const grpc::ByteBuffer& bytes,
                                  const grpc::Status& status) {
  stream_->WriteAndFinish(bytes, status);
}

void Reactor::Finish(const grpc::Status& status) { stream_->Finish(status); }

Streams::Streams(Accept accept) : accept_(std::move(accept)) {}

Streams::~Streams() = default;

void Streams::AddTo(grpc::ServerBuilder* builder) {
  builder->RegisterAsyncGenericService(&service_);
  const int queues = std::clamp(UsableCores() / kCoresPerQueue, 1, kMostQueues);
  for (int i = 0; i < queues; ++i) {
    queues_.push_back(std::make_unique<Queue>());
    queues_.back()->queue = builder->AddCompletionQueue();
  }
}

void Streams::Start() {
  for (const auto& queue : queues_) {
    for (int i = 0; i < kExpected; ++i) Wait(queue->queue.get());
    queue->thread = std::thread([this, queue = queue.get()] { Read(queue); });
    queue->second =
        std::thread([this, queue = queue.get()] { ReadToo(queue); });
  }
}

void Streams::Read(Queue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->queue->Next(&tag, &ok)) {
    queue->read.fetch_add(1, std::memory_order_relaxed);
    Stream::React(tag, ok);
  }
}

void Streams::ReadToo(Queue* queue) {
  uint64_t before = 0;
  while (Sleep(kPatience)) {
    const uint64_t read = queue->read.load(std::memory_order_relaxed);
    if (std::exchange(before, read) != read) continue;
    // It has nothing to read, or is kept.
    void* tag = nullptr;
    bool ok = false;
    while (queue->read.load(std::memory_order_relaxed) == read &&
           queue->queue->AsyncNext(
               &tag, &ok, absl::ToChronoTime(absl::Now() + kPatience)) ==
               grpc::CompletionQueue::GOT_EVENT) {
      Stream::React(tag, ok);
    }
  }
}

bool Streams::Sleep(absl::Duration duration) {
  MutexLock lock(&mutex_);
  if (!ends_) changed_.WaitWithTimeout(&mutex_, duration);
  return !ends_;
}

void Streams::Wait(grpc::ServerCompletionQueue* queue) {
  MutexLock lock(&mutex_);
  if (stopped_) return;
  ++streams_;
  new Stream(this, queue);
}

void Streams::Gone() {
  MutexLock lock(&mutex_);
  if (--streams_ == 0) changed_.SignalAll();
}

void Streams::Stop() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    while (streams_ > 0) changed_.Wait(&mutex_);
    ends_ = true;
    changed_.SignalAll();
  }
  for (const auto& queue : queues_) queue->queue->Shutdown();
  for (const auto& queue : queues_) {
    queue->thread.join();
    queue->second.join();
  }
}

}  // namespace fncache::sdk::serve
