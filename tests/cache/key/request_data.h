// SPDX-License-Identifier: Apache-2.0
// The real requests that tests of the key use, and where they lie.
#ifndef FNCACHE_TESTS_CACHE_KEY_REQUEST_DATA_H_
#define FNCACHE_TESTS_CACHE_KEY_REQUEST_DATA_H_

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cache/key/digest.h"
#include "tests/common/test_data.h"

namespace fncache::cache::key {

using ::fncache::testing::DataFolder;

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Every *.req.bin below `folder`, in order of their paths.
inline std::vector<std::string> RequestsBelow(
    const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::exists(folder)) {
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(folder)) {
      const std::string name = file.path().filename();
      if (name.size() > 8 && name.substr(name.size() - 8) == ".req.bin") {
        paths.push_back(file.path());
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> requests;
  for (const auto& path : paths) requests.push_back(ReadFile(path));
  return requests;
}

inline std::vector<std::string> RecordedRequests() {
  std::vector<std::string> requests = RequestsBelow(DataFolder() / "recorded");
  for (std::string& bytes : RequestsBelow(DataFolder() / "examples")) {
    requests.push_back(std::move(bytes));
  }
  return requests;
}

inline Seed TestSeed() {
  Seed seed;
  for (size_t i = 0; i < seed.size(); ++i) seed[i] = static_cast<uint8_t>(i);
  return seed;
}

}  // namespace fncache::cache::key

#endif  // FNCACHE_TESTS_CACHE_KEY_REQUEST_DATA_H_
