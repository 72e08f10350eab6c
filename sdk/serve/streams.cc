// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/streams.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/threads.h"
#include "grpcpp/impl/codegen/core_codegen_interface.h"

namespace fncache::sdk::serve {
namespace {

// Calls that gRPC can hand over without waiting for a thread of ours.
constexpr int kExpected = 32;
// One thread reads 40,000 calls a second. Functions need the cores.
constexpr int kCoresPerQueue = 4;
constexpr int kMostQueues = 4;

}  // namespace

class Stream {
 public:
  enum Event { kArrived, kRead, kWritten, kFinished, kDone };

  // Waits for a call.
  Stream(Streams* streams, grpc::ServerCompletionQueue* queue)
      : streams_(streams), queue_(queue) {
    for (int i = 0; i <= kDone; ++i) tags_[i] = {this, static_cast<Event>(i)};
    context_.AsyncNotifyWhenDone(&tags_[kDone]);
    streams_->service_.RequestCall(&context_, &stream_, queue_, queue_,
                                   &tags_[kArrived]);
  }

  ~Stream() { streams_->Gone(); }

  static void React(void* tag, bool ok) {
    const Tag& known = *static_cast<Tag*>(tag);
    known.stream->On(known.event, ok);
  }

  grpc::GenericServerContext& context() { return context_; }
  const grpc::GenericServerContext& context() const { return context_; }

  void Read(grpc::ByteBuffer* bytes) {
    ++outstanding_;
    stream_.Read(bytes, &tags_[kRead]);
  }
  void Write(const grpc::ByteBuffer& bytes) {
    ++outstanding_;
    stream_.Write(bytes, &tags_[kWritten]);
  }
  void WriteAndFinish(const grpc::ByteBuffer& bytes,
                      const grpc::Status& status) {
    stream_.WriteAndFinish(bytes, grpc::WriteOptions(), status,
                           &tags_[kFinished]);
  }
  void Finish(const grpc::Status& status) {
    stream_.Finish(status, &tags_[kFinished]);
  }

 private:
  struct Tag {
    Stream* stream;
    Event event;
  };

  void On(Event event, bool ok) {
    switch (event) {
      case kArrived:
        if (!ok) {  // the server stops
          delete this;
          return;
        }
        streams_->Wait(queue_);
        reactor_ = streams_->accept_(this);
        if (reactor_ == nullptr) {
          Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, ""));
        }
        return;
      case kRead:
        reactor_->OnReadDone(ok);
        break;
      case kWritten:
        reactor_->OnWriteDone(ok);
        break;
      case kDone:
        if (reactor_ != nullptr && context_.IsCancelled()) {
          reactor_->OnCancel();
        }
        break;
      case kFinished:
        break;
    }
    if (--outstanding_ > 0) return;
    if (reactor_ != nullptr) reactor_->OnDone();
    delete this;
  }

  Streams* const streams_;
  grpc::ServerCompletionQueue* const queue_;
  Tag tags_[kDone + 1];
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  Reactor* reactor_ = nullptr;
  // Events to come: kFinished and kDone, and those of reads and writes.
  std::atomic<int> outstanding_{2};
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
    queues_.push_back(builder->AddCompletionQueue());
  }
}

void Streams::Start() {
  for (const auto& queue : queues_) {
    for (int i = 0; i < kExpected; ++i) Wait(queue.get());
    threads_.emplace_back([queue = queue.get()] {
      void* tag = nullptr;
      bool ok = false;
      while (queue->Next(&tag, &ok)) Stream::React(tag, ok);
    });
  }
}

void Streams::Wait(grpc::ServerCompletionQueue* queue) {
  MutexLock lock(&mutex_);
  if (stopped_) return;
  ++streams_;
  new Stream(this, queue);
}

void Streams::Gone() {
  MutexLock lock(&mutex_);
  if (--streams_ == 0) changed_.Signal();
}

void Streams::Stop() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    while (streams_ > 0) changed_.Wait(&mutex_);
  }
  for (const auto& queue : queues_) queue->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace fncache::sdk::serve
