// A fresh directory, removed with everything in it.
#ifndef FNCACHE_TESTS_RUNNER_TEMP_DIR_H_
#define FNCACHE_TESTS_RUNNER_TEMP_DIR_H_

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace fncache::runner {

class TempDir {
 public:
  TempDir() : path_(::testing::TempDir() + "fncache-runner-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace fncache::runner

#endif  // FNCACHE_TESTS_RUNNER_TEMP_DIR_H_
