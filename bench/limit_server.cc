// SPDX-License-Identifier: Apache-2.0
// limit_server: what gRPC itself costs, and the function that answers at once.
//
// A bare gRPC C++ server on completion queues, with the settings of the
// daemon's listeners: it reads one message of every call, whatever the method,
// and answers with the bytes of a file. It does nothing that a completion-queue
// server can do without: one thread and queue a core, call objects that are
// used again, the answer by reference. So its CPU time per call is the least
// that any server on gRPC C++ spends, and "the limit" that the daemon is
// measured against; behind a proxy it is the instant function.
//
//   limit_server --listen HOST:PORT --response FILE [--workers N] [--hint TEXT]
//
// FILE holds the message, unframed. With TEXT it is a function that says what
// its responses depend on (docs/depends.md). Prints "listening on HOST:PORT" on
// stderr (the real port where 0 was asked) and serves until it is killed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "common/command_line.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace {

// Calls that the server is ready to accept at any time: enough to match a burst
// before the first of them has come through the queue.
constexpr int kAcceptsPerQueue = 128;

struct Argument {
  const char* name;
  int value;
};

// Messages and metadata of any size; and a second server on its port would
// share its traffic.
constexpr Argument kServerArguments[] = {
    {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1},
    {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1},
    {GRPC_ARG_MAX_METADATA_SIZE, 16 << 20},
    {GRPC_ARG_ALLOW_REUSEPORT, 0},
    {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0},
};

class Call;

// A queue and its thread's calls.
struct Worker {
  grpc::AsyncGenericService* service;
  grpc::ServerCompletionQueue* queue;
  const grpc::ByteBuffer* response;
  const std::string* hint;
  std::vector<Call*> idle;
};

// One call at a time: accepted, read, answered, and idle until it is used for
// another. On its worker's thread.
class Call {
 public:
  explicit Call(Worker* worker) : worker_(worker) {}

  // Lends a call to the next caller.
  static void Accept(Worker* worker) {
    Call* call;
    if (worker->idle.empty()) {
      call = new Call(worker);  // for ever
    } else {
      call = worker->idle.back();
      worker->idle.pop_back();
    }
    call->next_ = Step::kRead;
    call->rpc_.emplace();
    worker->service->RequestCall(&call->rpc_->context, &call->rpc_->stream,
                                 worker->queue, worker->queue, call);
  }

  void Proceed(bool ok) {
    switch (next_) {
      case Step::kRead:
        // Always ok: the server never shuts down.
        Accept(worker_);
        next_ = Step::kAnswer;
        rpc_->stream.Read(&request_, this);
        return;
      case Step::kAnswer:
        next_ = Step::kEnd;
        if (!ok) {
          rpc_->stream.Finish(
              grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no message"),
              this);
          return;
        }
        request_.Clear();
        if (!worker_->hint->empty()) {
          rpc_->context.AddTrailingMetadata("fncache-depends", *worker_->hint);
        }
        rpc_->stream.WriteAndFinish(*worker_->response, grpc::WriteOptions(),
                                    grpc::Status::OK, this);
        return;
      case Step::kEnd:
        rpc_.reset();
        worker_->idle.push_back(this);
        return;
    }
  }

 private:
  enum class Step { kRead, kAnswer, kEnd };
  struct Rpc {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream{&context};
  };

  Worker* const worker_;
  Step next_ = Step::kRead;
  grpc::ByteBuffer request_;
  absl::optional<Rpc> rpc_;
};

// Serves for ever.
void Serve(Worker worker) {
  for (int i = 0; i < kAcceptsPerQueue; ++i) {
    Call::Accept(&worker);
  }
  void* tag;
  bool ok;
  while (worker.queue->Next(&tag, &ok)) static_cast<Call*>(tag)->Proceed(ok);
}

}  // namespace

int main(int argc, char** argv) {
  // As the daemon does: Debian's abseil looks for deadlocks at every lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);

  std::string listen = "127.0.0.1:0";
  std::string file;
  std::string hint;
  int workers =
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  fncache::CommandLine line(
      "A bare gRPC server that answers every call with a file");
  line.AddOption("--listen", &listen, "HOST:PORT").ShowDefault();
  line.AddOption("--response", &file, "the message that answers, unframed")
      .Required();
  line.AddOption("--workers", &workers, "threads, each with a completion queue")
      .ShowDefault()
      .Positive();
  line.AddOption("--hint", &hint, "the trailing metadata fncache-depends");
  const absl::optional<int> code = line.ParseForMain(argc, argv);
  if (code.has_value()) return *code;

  std::ifstream in(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)),
                          std::istreambuf_iterator<char>());
  if (!in) {
    std::fprintf(stderr, "limit_server: cannot read %s\n", file.c_str());
    return EXIT_FAILURE;
  }
  // A slice without a reference count: `bytes` live until the process ends.
  const grpc::Slice slice(bytes.data(), bytes.size(),
                          grpc::Slice::STATIC_SLICE);
  const grpc::ByteBuffer response(&slice, 1);

  grpc::AsyncGenericService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterAsyncGenericService(&service);
  for (const Argument& argument : kServerArguments) {
    builder.AddChannelArgument(argument.name, argument.value);
  }
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
  for (int i = 0; i < workers; ++i) {
    queues.push_back(builder.AddCompletionQueue());
  }
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    std::fprintf(stderr, "limit_server: cannot listen on %s\n", listen.c_str());
    return EXIT_FAILURE;
  }
  std::vector<std::thread> threads;
  for (const auto& queue : queues) {
    threads.emplace_back(Serve,
                         Worker{&service, queue.get(), &response, &hint, {}});
  }
  std::fprintf(stderr, "listening on %s:%d\n",
               listen.substr(0, listen.rfind(':')).c_str(), port);
  for (std::thread& thread : threads) thread.join();
  return EXIT_SUCCESS;
}
