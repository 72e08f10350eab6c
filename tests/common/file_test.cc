// SPDX-License-Identifier: Apache-2.0
#include "common/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"

namespace fncache {
namespace {

using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    std::ofstream(dir_ + "/" + name, std::ios::binary) << content;
    return dir_ + "/" + name;
  }

  void ExpectRefused(const std::string& path, absl::StatusCode code,
                     const std::string& why) {
    const auto content = ReadSmallFile(path, 10);
    EXPECT_EQ(content.status().code(), code) << content.status();
    EXPECT_THAT(content.status().message(), HasSubstr(path));
    EXPECT_THAT(content.status().message(), HasSubstr(why));
  }

  const testing::TempDir temp_;
  const std::string dir_ = temp_.path();
};

TEST_F(FileTest, ReadsEveryByte) {
  const std::string content("a\0\n\xff", 4);
  EXPECT_EQ(*ReadSmallFile(Write("f", content), 10), content);
  EXPECT_EQ(*ReadSmallFile(Write("empty", ""), 10), "");
  const std::string large(100'000, 'x');
  EXPECT_EQ(*ReadSmallFile(Write("large", large), 100'000), large);
}

TEST_F(FileTest, BoundIsExact) {
  EXPECT_TRUE(ReadSmallFile(Write("ten", "0123456789"), 10).ok());
  ExpectRefused(Write("eleven", "0123456789a"),
                absl::StatusCode::kFailedPrecondition, "over 10 bytes");
}

TEST_F(FileTest, FollowsLinksAsKubernetesMountsFiles) {
  const std::string target = Write("f", "x");
  std::filesystem::create_symlink(target, dir_ + "/link");
  EXPECT_EQ(*ReadSmallFile(dir_ + "/link", 10), "x");
  std::filesystem::create_symlink(dir_ + "/gone", dir_ + "/dangling");
  ExpectRefused(dir_ + "/dangling", absl::StatusCode::kNotFound, "No such");
}

TEST_F(FileTest, WhatIsMissingIsNotFound) {
  ExpectRefused(dir_ + "/gone", absl::StatusCode::kNotFound, "No such");
  ExpectRefused(Write("f", "x") + "/below", absl::StatusCode::kNotFound,
                "Not a directory");
}

TEST_F(FileTest, WhatIsNoFileNeitherHangsNorReads) {
  ExpectRefused(dir_, absl::StatusCode::kFailedPrecondition, "regular file");
  ASSERT_EQ(mkfifo((dir_ + "/pipe").c_str(), 0600), 0);
  ExpectRefused(dir_ + "/pipe", absl::StatusCode::kFailedPrecondition,
                "regular file");
  ExpectRefused("/dev/zero", absl::StatusCode::kFailedPrecondition,
                "regular file");
}

TEST(WriteAllTest, WritesMoreThanAPipeTakesAtOnce) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::string text(1 << 20, 'x');
  text.back() = 'y';
  std::string read_back;
  std::thread reader([&] {
    char buffer[4096];
    for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
      read_back.append(buffer, static_cast<size_t>(got));
    }
  });
  EXPECT_TRUE(WriteAll(ends[1], text));
  close(ends[1]);
  reader.join();
  close(ends[0]);
  EXPECT_EQ(read_back, text);
  EXPECT_FALSE(WriteAll(ends[1], text));
  EXPECT_EQ(errno, EBADF);
}

TEST_F(FileTest, WhatCannotBeWrittenIsKnownBefore) {
  const std::string path = Write("f", "x");
  const std::string folder = path.substr(0, path.rfind('/'));
  EXPECT_TRUE(CheckWritable(path).ok());
  EXPECT_TRUE(CheckWritable(folder + "/new").ok());
  EXPECT_FALSE(std::filesystem::exists(folder + "/new"));
  EXPECT_TRUE(CheckWritable("/dev/null").ok());
  for (const std::string& wrong :
       {folder, folder + "/none/new", path + "/new"}) {
    const absl::Status status = CheckWritable(wrong);
    EXPECT_THAT(std::string(status.message()),
                ::testing::StartsWith("cannot write " + wrong + ": "))
        << wrong;
  }
}

TEST_F(FileTest, FollowedPathsAreEqualWhereTheFileIsOne) {
  const std::string path = FollowedPath(Write("f", "x"));
  const std::string folder = path.substr(0, path.rfind('/'));
  std::filesystem::create_directory(folder + "/sub");
  std::filesystem::create_symlink("sub", folder + "/link");
  for (const std::string& same :
       {folder + "/./sub/../f", folder + "//f", folder + "/link/../f",
        std::filesystem::relative(path).string()}) {
    EXPECT_EQ(FollowedPath(same), path) << same;
  }
  // A path that does not exist yet is as good.
  EXPECT_EQ(FollowedPath(folder + "/link/new"), folder + "/sub/new");
  EXPECT_EQ(FollowedPath(folder + "/new/"), folder + "/new");
  EXPECT_EQ(FollowedPath("/"), "/");
}

TEST_F(FileTest, WhatMayNotBeReadIsPermissionDenied) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const std::string path = Write("f", "x");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  ExpectRefused(path, absl::StatusCode::kPermissionDenied, "Permission");
}

}  // namespace
}  // namespace fncache
