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

// Where to look for the socket.
struct SocketSearch {
  std::string flag;       // --socket; empty: not given
  std::string cache_dir;  // --cache-dir, as that
  Environment environment;
  std::string user_folder = UserFolder();
};

// The flag's, else that in the directory of --cache-dir, whether or not they
// are there: who names a daemon means no other one. Else
// $FNCACHE_ADMIN_SOCKET, else the first of the default places, with
// $FNCACHE_CACHE_DIR, where there is one. A socket in a user folder that is not
// safe is passed by, because another user may serve it. NotFound says where it
// was looked for and what to do.
absl::StatusOr<std::string> FindSocket(const SocketSearch& search);

// Ok if a daemon serves the socket; else as Client::Connect. Starts no threads.
absl::Status CheckSocket(const std::string& path);

class Client {
 public:
  // The error names the socket, and says what to do about it.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(
      const std::string& path);

  template <typename Request, typename Response>
  using Method = grpc::Status (v1::Admin::Stub::*)(grpc::ClientContext*,
                                                   const Request&, Response*);
  // Calls, and waits for so long. What the daemon says is the status, and so is
  // Unavailable that it has gone; the message names the socket.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(Method<Request, Response> method,
                                const Request& request,
                                absl::Duration patience) {
    grpc::ClientContext context;
    return Call(method, request, patience, &context);
  }
  // The same, which ends at once when another thread cancels `context`, a new
  // one, before or while it waits.
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
