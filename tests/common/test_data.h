// SPDX-License-Identifier: Apache-2.0
// Paths of recorded requests, pipelines and documents: the project's own few,
// and the larger folder that only some machines have. A missing folder is
// reported and skipped.
#ifndef FNCACHE_TESTS_COMMON_TEST_DATA_H_
#define FNCACHE_TESTS_COMMON_TEST_DATA_H_

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <vector>

#include "gtest/gtest.h"

namespace fncache::testing {

// The larger folder, which need not be there.
inline std::filesystem::path DataFolder() {
  const char* const named = std::getenv("FNCACHE_TEST_DATA");
  if (named != nullptr) return named;
  return std::filesystem::path(FNCACHE_SOURCE_DIR) / "../shared/data";
}

inline std::filesystem::path OwnRecordings() {
  return std::filesystem::path(FNCACHE_SOURCE_DIR) / "tests/data/recorded";
}

// The folders of these names in the larger folder, without those that are not
// there.
inline std::vector<std::filesystem::path> DataFolders(
    std::initializer_list<const char*> names) {
  std::vector<std::filesystem::path> folders;
  for (const char* const name : names) {
    const std::filesystem::path folder = DataFolder() / name;
    if (std::filesystem::is_directory(folder)) {
      folders.push_back(folder);
    } else {
      GTEST_LOG_(INFO) << "no " << folder << ": left out";
    }
  }
  return folders;
}

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_TEST_DATA_H_
