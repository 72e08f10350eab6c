// SPDX-License-Identifier: Apache-2.0
// Where a server is, and how Client (client.h) uses it.
#ifndef FNCACHE_RESP_CLIENT_OPTIONS_H_
#define FNCACHE_RESP_CLIENT_OPTIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace fncache::resp {

// See Client.
inline constexpr absl::Duration kBackgroundLimit = absl::Seconds(2);

// Where a server is. ParseUrl (url.h) makes it.
struct Endpoint {
  std::string host;  // without the brackets of IPv6
  int port = 0;
  std::string unix_path;  // instead of the two
  bool tls = false;
};

struct Login {
  std::string username;  // empty: the default user
  std::string password;
};

struct ClientOptions {
  Endpoint endpoint;
  // Called before each login, on any thread. Absent: no login. An error: the
  // node stays down, for this reason.
  std::function<absl::StatusOr<absl::optional<Login>>()> login;
  // TLS: a directory with ca.crt, and tls.crt and tls.key if the server wants
  // them. The files are read at each connection. Empty: the system's
  // authorities.
  std::string tls_dir;
  // TLS: the name that each node's certificate must have. Empty: the name that
  // the node announces, else the endpoint's host.
  std::string server_name;
  // Connections to each node. The largest number of commands at a time.
  int connections = 6;
  // A command whose reply must not be an error (but MOVED or ASK) before a node
  // is up, such as {"EVAL", "return 1", "1", "a"}. May be empty.
  std::vector<std::string> probe;
};

}  // namespace fncache::resp

#endif  // FNCACHE_RESP_CLIENT_OPTIONS_H_
