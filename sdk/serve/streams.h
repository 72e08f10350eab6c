// SPDX-License-Identifier: Apache-2.0
// The calls of a server, from gRPC's completion queues to their reactors.
//
// This is gRPC's callback API in small, over its asynchronous one. With 16
// small calls at once, the library's own takes twice the CPU time: it gives
// each end of a call to a thread of its own, and wakes two others for each
// event. It also reads a request of a registered method before the server knows
// of the call, so that a caller could have any number without one.
//
// One thread reads a queue. gRPC keeps it with a connection whose peer sends
// faster than it reads. So a second thread looks ten times a second whether it
// goes on, and reads too while it does not. Two such connections keep both.
#ifndef FNCACHE_SDK_SERVE_STREAMS_H_
#define FNCACHE_SDK_SERVE_STREAMS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/byte_buffer.h"

namespace fncache::sdk::serve {

class Stream;

// The reactions to what happens in a call. They come one after another, and
// must not block. The Start functions and Finish may be called on any thread:
// one read and one write at a time, and one end (Finish or
// StartWriteAndFinish), with no write under way unless the call is cancelled.
//
// A reactor owns itself. OnDone is its last reaction, once the call has ended,
// and deletes it.
class Reactor {
 public:
  virtual void OnReadDone(bool ok) = 0;
  virtual void OnWriteDone(bool) {}
  // The caller cancelled, its deadline passed, or the connection is lost. The
  // call still needs an end.
  virtual void OnCancel() {}
  virtual void OnDone() = 0;

 protected:
  explicit Reactor(Stream* stream) : stream_(stream) {}
  virtual ~Reactor() = default;

  // Valid until OnDone returns. Its IsCancelled is thread-safe, and true from
  // OnCancel on.
  grpc::GenericServerContext* context() const;
  // After a read without success: there will be no message because the call is
  // cancelled, and not because its caller has sent all.
  bool LostBeforeMessage() const;

  void StartRead(grpc::ByteBuffer* bytes);
  void StartWrite(const grpc::ByteBuffer& bytes);
  void StartWriteAndFinish(const grpc::ByteBuffer& bytes,
                           const grpc::Status& status);
  void Finish(const grpc::Status& status);

 private:
  Stream* const stream_;
};

class Streams {
 public:
  // Makes the reactor of a call.
  using Accept = std::function<Reactor*(Stream*)>;

  explicit Streams(Accept accept);
  // Precondition: Start was not called, or Stop was.
  ~Streams();

  // Adds itself to a server that is being built.
  void AddTo(grpc::ServerBuilder* builder);
  // Once the server has started.
  void Start();
  // Once the server is shut down. Returns when all reactors are gone: a server
  // does not wait for calls whose connections are gone.
  void Stop();

 private:
  friend class Stream;
  struct Queue {
    std::unique_ptr<grpc::ServerCompletionQueue> queue;
    std::atomic<uint64_t> read{0};  // events, by its thread
    std::thread thread;
    std::thread second;
  };
  void Wait(grpc::ServerCompletionQueue* queue);
  void Gone();
  void Read(Queue* queue);
  void ReadToo(Queue* queue);
  // Waits for this long; false if the threads end.
  bool Sleep(absl::Duration duration);

  const Accept accept_;
  grpc::AsyncGenericService service_;
  std::vector<std::unique_ptr<Queue>> queues_;
  Mutex mutex_;
  CondVar changed_;
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;
  // No more calls are waited for.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
};

// The method of the call that an Accept gets, such as "/package.Service/Name".
const std::string& MethodOf(const Stream& stream);

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_STREAMS_H_
