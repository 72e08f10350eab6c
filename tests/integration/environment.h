// SPDX-License-Identifier: Apache-2.0
// Makes the environment for child processes of tests.
//
// Pure functions of this process's environment; thread-safe while nobody
// changes it.
#ifndef FNCACHE_TESTS_INTEGRATION_ENVIRONMENT_H_
#define FNCACHE_TESTS_INTEGRATION_ENVIRONMENT_H_

#include <string>
#include <vector>

namespace fncache::testing {

// This process's environment, NAME=VALUE each, without what would be a setting:
// FNCACHE_*, FUNCTION_NAME, REVISION_NAME, TLS_SERVER_CERTS_DIR and
// XDG_RUNTIME_DIR.
std::vector<std::string> CleanEnvironment();

// Lets commands that call functions over gRPC's C++ interface do what tsan must
// not report of them (grpc_clients.tsan). The daemon does not, and should get
// none of it. Nothing outside of a tsan build.
void AllowClients(std::vector<std::string>* environment);

// For exec and spawn. Valid as long as the strings are, unchanged.
std::vector<char*> Pointers(std::vector<std::string>& strings);

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_INTEGRATION_ENVIRONMENT_H_
