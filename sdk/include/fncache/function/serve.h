// SPDX-License-Identifier: Apache-2.0
// The process of a function: a gRPC server with Crossplane's function protocol,
// and the main function with the flags that every function has.
//
//   int main(int argc, char** argv) {
//     return fncache::function::Main(argc, argv, "function-storage", Storage);
//   }
//
// The server has RunFunction of v1 and v1beta1, grpc.health.v1 and reflection.
// Functions run on threads of the server's own, so they may block.
//
// Thread-safe.
#ifndef FNCACHE_FUNCTION_SERVE_H_
#define FNCACHE_FUNCTION_SERVE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fncache/function/context.h"

namespace fncache::function {

// How a call ended.
struct CallEnd {
  absl::StatusCode code{};  // OK
  // From the arrival of the call's headers to its end.
  absl::Duration duration;
  // The tag of the request; empty if the call ended before its function ran.
  std::string tag;
};

// Decides about an intercepted call. Copies stand for the same call.
// Thread-safe; may be used after the call has ended.
class Continuation {
 public:
  class Call;
  explicit Continuation(std::shared_ptr<Call> call);

  // Lets the call go on, to its request and its function. The first Continue or
  // Finish counts. A call that loses its last Continuation before ends with
  // INTERNAL.
  void Continue() const;
  // Ends the call with this status, which is not OK.
  void Finish(absl::Status status) const;
  // Calls `on_end` once, before the caller gets the end of the call: also where
  // the caller cancels it or its deadline passes. At once if it has ended. It
  // runs on a thread of the server and must not block.
  void OnEnd(std::function<void(const CallEnd&)> on_end) const;

 private:
  std::shared_ptr<Call> call_;
};

// The metadata of a request: names in lower case, values as they came.
using Metadata = std::multimap<std::string_view, std::string_view>;

// Decides about each RunFunction before its request is read. It gets the path
// ("/package.Service/Method") and the metadata, both valid until it returns. It
// runs on the threads that read calls, for several at once, and must not block:
// to wait, it keeps `next`.
using Interceptor = std::function<void(
    std::string_view method, const Metadata& metadata, Continuation next)>;

// Which callers get the hint of what a response depends on.
enum class Depends {
  kAuto,  // those behind a daemon of fncache, by their `cdn-loop`
  kAlways,
  kNever,
};

struct ServerOptions {
  // HOST:PORT, or :PORT for every address, or unix:PATH. Port 0 takes a free
  // one. An address is never shared with another process.
  std::string address = ":9443";
  // Plaintext. It wins over certificates.
  bool insecure = false;
  // Folder of tls.crt, tls.key and ca.crt (if present, callers need a
  // certificate of it). Replaced files apply to new connections within 10 s.
  std::string tls_certs_dir;
  // The largest request, in MB, also after decompression: 1 to 2047. A larger
  // one ends with RESOURCE_EXHAUSTED.
  int max_recv_message_mb = 256;
  // Threads that functions run on, at most 1000; 0 = 4 a core, at least 8.
  int threads = 0;
  // HOST:PORT of /metrics over HTTP; empty = none. If it is taken, the server
  // logs a warning and continues without.
  std::string metrics_address;
  Depends depends = Depends::kAuto;
  Options function_options;
  Interceptor interceptor;
};

class Server {
 public:
  // Listens and serves. Errors name the option, the address or the file.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options,
                                                       Function function);
  // Stops at once.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // As asked for, with the real port.
  const std::string& address() const;
  // The same of /metrics; empty if there is none.
  const std::string& metrics_address() const;

  // Health becomes NOT_SERVING, and callers are asked to go (GOAWAY). Calls in
  // flight have `grace` to finish; then they are cancelled. Returns once all
  // functions have returned.
  void Stop(absl::Duration grace);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

// Serves until SIGTERM or SIGINT, with the flags of every function; `--help`
// prints them. `name` is the function's, such as "function-storage". Returns
// the exit code: 0, 1 if the server cannot start, 2 for wrong flags. For main:
// it blocks the two signals in the calling thread, and sets the process's log.
int Main(int argc, char** argv, std::string_view name, Function function,
         Options options = {});

}  // namespace fncache::function

#endif  // FNCACHE_FUNCTION_SERVE_H_
