// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/client.h"

#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/grpc_status.h"
#include "common/threads.h"
#include "grpcpp/create_channel_posix.h"

namespace fncache::proxy::admin {
namespace {

constexpr char kWhere[] =
    "the daemon's log says where its socket is; --socket PATH names it";

// The owner of the file, or of its folder if the file cannot be seen.
std::string OwnerOf(const std::string& path) {
  struct stat file = {};
  std::string what = path;
  if (stat(path.c_str(), &file) != 0) {
    const size_t slash = path.rfind('/');
    what = slash == std::string::npos ? "." : path.substr(0, slash);
    if (what.empty() || stat(what.c_str(), &file) != 0) return "";
  }
  const passwd* const owner = getpwuid(file.st_uid);
  return absl::StrCat(
      what, " belongs to ",
      owner == nullptr ? absl::StrCat("user ", file.st_uid) : owner->pw_name);
}

absl::Status CannotConnect(const std::string& path, int error) {
  const std::string reason = std::strerror(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(absl::StrCat(path, ": ", reason,
                                              "; is the daemon running? ",
                                              "If it is, ", kWhere));
    case EACCES:
    case EPERM: {
      const std::string owner = OwnerOf(path);
      return absl::PermissionDeniedError(absl::StrCat(
          path, ": ", reason, "; only the daemon's user and root may; ",
          owner.empty() ? "its folder is not ours to look into" : owner));
    }
    case ECONNREFUSED:
      return absl::UnavailableError(absl::StrCat(
          path, ": ", reason,
          "; the daemon that made it has gone. If another one runs, ", kWhere));
    default:
      return absl::UnavailableError(absl::StrCat(path, ": ", reason));
  }
}

// A connected socket.
absl::StatusOr<int> OpenSocket(const std::string& path) {
  const absl::Status fits = CheckSocketPath(path);
  if (!fits.ok()) return fits;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return CannotConnect(path, errno);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address),
              sizeof address) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  return CannotConnect(path, error);
}

bool Exists(const std::string& path) {
  struct stat file = {};
  // A file that this user may not see counts as existing.
  return stat(path.c_str(), &file) == 0 || errno == EACCES;
}

}  // namespace

absl::StatusOr<std::string> FindSocket(const SocketSearch& search) {
  if (!search.flag.empty()) return search.flag;
  if (!search.cache_dir.empty()) return SocketBeside(search.cache_dir);
  const auto given = search.environment("FNCACHE_ADMIN_SOCKET");
  if (given.has_value() && !given->empty()) return *given;
  const auto cache_dir = search.environment("FNCACHE_CACHE_DIR");
  const std::vector<std::string> places =
      DefaultSockets(cache_dir, search.environment, search.user_folder);
  std::string unsafe;
  for (const std::string& place : places) {
    if (!Exists(place)) continue;
    if (FolderOf(place) != search.user_folder) return place;
    const absl::Status status = CheckUserFolder(search.user_folder);
    if (status.ok()) return place;
    unsafe = absl::StrCat("; not used: ", status.message());
  }
  return absl::NotFoundError(
      absl::StrCat("no admin socket at ", absl::StrJoin(places, " or "), unsafe,
                   "; is the daemon running? If it is, ", kWhere,
                   cache_dir.value_or("").empty()
                       ? ", and --cache-dir DIR where the daemon has one"
                       : ""));
}

absl::Status CheckSocket(const std::string& path) {
  const absl::StatusOr<int> fd = OpenSocket(path);
  if (fd.ok()) close(*fd);
  return fd.status();
}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(
    const std::string& path) {
  const absl::Status threads = CheckThreads(GrpcThreads());
  if (!threads.ok()) return threads;
  const absl::StatusOr<int> fd = OpenSocket(path);
  if (!fd.ok()) return fd.status();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  // The socket is connected here, because its error says more than that of a
  // channel that connects itself.
  return std::unique_ptr<Client>(new Client(
      path, v1::Admin::NewStub(grpc::CreateCustomInsecureChannelFromFd(
                "fncache-admin", *fd, arguments))));
}

void Client::Prepare(absl::Duration patience, grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + patience));
}

absl::Status Client::Failure(const grpc::Status& status) const {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return absl::UnavailableError(absl::StrCat(
          path_, ": the daemon has gone, or takes no more connections"));
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::DeadlineExceededError(
          absl::StrCat(path_, ": the daemon does not answer"));
    default:
      return FromGrpcCode(status.error_code(),
                          absl::StrCat(path_, ": ", status.error_message()));
  }
}

}  // namespace fncache::proxy::admin
