// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/environment.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/mutex.h"  // FNCACHE_TSAN
#include "tests/common/temp_dir.h"

namespace fncache::testing {
namespace {

bool IsOurs(absl::string_view variable) {
  return absl::StartsWith(variable, "FNCACHE_") ||
         absl::StartsWith(variable, "FUNCTION_NAME=") ||
         absl::StartsWith(variable, "REVISION_NAME=") ||
         absl::StartsWith(variable, "TLS_SERVER_CERTS_DIR=") ||
         absl::StartsWith(variable, "XDG_RUNTIME_DIR=");
}

}  // namespace

std::vector<std::string> CleanEnvironment() {
  std::vector<std::string> clean;
  for (char** each = environ; *each != nullptr; ++each) {
    if (!IsOurs(*each)) clean.emplace_back(*each);
  }
  static const TempDir runtime;
  clean.push_back("XDG_RUNTIME_DIR=" + runtime.path());
  return clean;
}

void SetVariable(const std::string& name, const std::string& value,
                 std::vector<std::string>* environment) {
  const std::string start = name + "=";
  environment->erase(std::remove_if(environment->begin(), environment->end(),
                                    [&](const std::string& variable) {
                                      return absl::StartsWith(variable, start);
                                    }),
                     environment->end());
  environment->push_back(start + value);
}

void AllowClients(std::vector<std::string>* environment) {
#ifdef FNCACHE_TSAN
  for (std::string& variable : *environment) {
    if (absl::StartsWith(variable, "TSAN_OPTIONS=")) {
      absl::StrAppend(
          &variable, " suppressions=",
          std::filesystem::absolute("tests/integration/grpc_clients.tsan")
              .string());
    }
  }
#else
  static_cast<void>(environment);
#endif
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace fncache::testing
