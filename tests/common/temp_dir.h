// SPDX-License-Identifier: Apache-2.0
// TempDir: a directory of its own below the system's temporary one, removed at
// the end with everything in it. And files in it.
//
// Failures abort: a test without its files has no meaning.
#ifndef FNCACHE_TESTS_COMMON_TEMP_DIR_H_
#define FNCACHE_TESTS_COMMON_TEMP_DIR_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace fncache::testing {

class TempDir {
 public:
  TempDir()
      : path_((std::filesystem::temp_directory_path() / "fncache_test_XXXXXX")
                  .string()) {
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  if (!out.good()) std::abort();
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in.good()) std::abort();
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_TEMP_DIR_H_
