// SPDX-License-Identifier: Apache-2.0
// `fncache serve`: from argv to a running daemon, and its exit code.
#ifndef FNCACHE_PROXY_SERVE_COMMAND_H_
#define FNCACHE_PROXY_SERVE_COMMAND_H_

#include <string>

namespace fncache::proxy {

// Runs the daemon until SIGTERM or SIGINT, or with --check only checks. argv[0]
// is the command's name; the flags follow. Returns the process's exit code: 0
// for success, 1 if a resource is not available (a port, a directory, a file),
// 2 for settings that are not valid. The first line of a daemon's log names the
// version and `commit`, unless that is empty. Call it from main, before other
// threads exist.
int ServeMain(int argc, char** argv, const std::string& commit);

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_SERVE_COMMAND_H_
