// SPDX-License-Identifier: Apache-2.0
// Client: a connection to a daemon's admin socket.
//
// Not thread-safe.
#ifndef FNCACHE_PROXY_ADMIN_CLIENT_H_
#define FNCACHE_PROXY_ADMIN_CLIENT_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "grpcpp/client_context.h"
#include "proto/admin.grpc.pb.h"
#include "proxy/admin/actions.h"
#include "proxy/admin/socket.h"

namespace fncache::proxy::admin {

// The sources of the socket's path.
struct SocketSearch {
  std::string flag;       // --socket; empty: not given
  std::string cache_dir;  // --cache-dir; empty: not given
  Environment environment;
  std::string user_folder = UserFolder();
};

// Returns the first of these paths: the flag's, that in the directory of
// --cache-dir, $FNCACHE_ADMIN_SOCKET, and the first default path where a socket
// exists ($FNCACHE_CACHE_DIR counts). The flags' sockets need not exist: a
// caller that names a daemon means no other one. A socket in an unsafe user
// folder is skipped, because another user may serve it. NotFound lists the
// paths that were tried, and says what to do.
absl::StatusOr<std::string> FindSocket(const SocketSearch& search);

// OK if a daemon serves the socket; else the error of Client::Connect. Starts
// no threads.
absl::Status CheckSocket(const std::string& path);

class Client {
 public:
  // The error names the socket, and says what to do about it.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(
      const std::string& path);

  template <typename Request, typename Response>
  using Method = grpc::Status (v1::Admin::Stub::*)(grpc::ClientContext*,
                                                   const Request&, Response*);
  // Calls the daemon, and waits at most `patience`. Returns the daemon's
  // status, or Unavailable if the daemon has ended. The message names the
  // socket.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(Method<Request, Response> method,
                                const Request& request,
                                absl::Duration patience) {
    grpc::ClientContext context;
    return Call(method, request, patience, &context);
  }
  // The same, but it ends at once when another thread cancels `context`, before
  // the wait or during it. `context` must be new.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(Method<Request, Response> method,
                                const Request& request, absl::Duration patience,
                                grpc::ClientContext* context) {
    Prepare(patience, context);
    Response response;
    const grpc::Status status =
        (stub_.get()->*method)(context, request, &response);
    if (!status.ok()) return Failure(status);
    return response;
  }

  const std::string& path() const { return path_; }

 private:
  Client(std::string path, std::unique_ptr<v1::Admin::Stub> stub)
      : path_(std::move(path)), stub_(std::move(stub)) {}
  static void Prepare(absl::Duration patience, grpc::ClientContext* context);
  absl::Status Failure(const grpc::Status& status) const;

  const std::string path_;
  const std::unique_ptr<v1::Admin::Stub> stub_;
};

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_CLIENT_H_
