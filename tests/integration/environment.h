// SPDX-License-Identifier: Apache-2.0
// Makes the environment for child processes of tests.
//
// Functions of this process's environment; thread-safe while nothing changes
// it.
#ifndef FNCACHE_TESTS_INTEGRATION_ENVIRONMENT_H_
#define FNCACHE_TESTS_INTEGRATION_ENVIRONMENT_H_

#include <string>
#include <vector>

namespace fncache::testing {

// This process's environment, NAME=VALUE each, without what would be a setting:
// FNCACHE_*, FUNCTION_NAME, REVISION_NAME, TLS_SERVER_CERTS_DIR.
// XDG_RUNTIME_DIR is a folder that belongs to this process and is removed with
// it: an admin socket without a name is made there, and not in /run/fncache,
// which belongs to a daemon of the machine.
std::vector<std::string> CleanEnvironment();

// Sets a variable; `environment` has the form that CleanEnvironment returns.
void SetVariable(const std::string& name, const std::string& value,
                 std::vector<std::string>* environment);

// Lets commands that call functions over gRPC's C++ interface do what tsan must
// not report of them (grpc_clients.tsan). The daemon does not, and should get
// none of it. Nothing outside of a tsan build.
void AllowClients(std::vector<std::string>* environment);

// For exec and spawn. Valid as long as the strings are, unchanged.
std::vector<char*> Pointers(std::vector<std::string>& strings);

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_INTEGRATION_ENVIRONMENT_H_
