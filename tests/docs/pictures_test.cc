// SPDX-License-Identifier: Apache-2.0
// The pictures of the pages exist, are small enough to be loaded with a page,
// and have a text for readers that do not see them.
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/docs/markdown.h"

namespace fncache::docs {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = 200'000;
constexpr char kPngStart[] = "\x89PNG\r\n\x1a\n";

// The files of the source folder that a page shows.
std::set<std::string> PicturesOf(const std::string& page) {
  const std::string content = ReadSource(page);
  const std::regex shown(
      "!\\[([^\\]]*)\\]\\(([^)]+)\\)|<(img|source)\\b([^>]*)>");
  const std::regex source("(?:src|srcset)=\"([^\"]*)\"");
  std::set<std::string> pictures;
  for (std::sregex_iterator it(content.begin(), content.end(), shown), end;
       it != end; ++it) {
    std::string path = (*it)[2];
    std::string words = (*it)[1];
    if (path.empty()) {
      const std::string attributes = (*it)[4];
      std::smatch found;
      EXPECT_TRUE(std::regex_search(attributes, found, source)) << it->str();
      if (!found.empty()) path = found[1];
      words = absl::StrContains(attributes, "alt=\"") ? "some" : "";
      if ((*it)[3] == "source") words = "those of its img";
    }
    EXPECT_NE(words, "") << page << " shows " << path << " without words";
    if (absl::StartsWith(path, "https://")) continue;
    pictures.insert(
        (fs::path(page).parent_path() / path).lexically_normal().string());
  }
  return pictures;
}

TEST(PicturesTest, AreThereSmallAndTold) {
  std::set<std::string> shown;
  for (const std::string& page : Pages()) {
    for (const std::string& picture : PicturesOf(page)) {
      SCOPED_TRACE(absl::StrCat(page, " shows ", picture));
      shown.insert(picture);
      ASSERT_TRUE(fs::exists(fs::path(FNCACHE_SOURCE_DIR) / picture));
      const std::string bytes = ReadSource(picture);
      EXPECT_LE(bytes.size(), kMaxBytes);
      EXPECT_EQ(absl::EndsWith(picture, ".png"),
                absl::StartsWith(bytes, kPngStart));
    }
  }
  std::set<std::string> there;
  for (const auto& file :
       fs::directory_iterator(fs::path(FNCACHE_SOURCE_DIR) / "docs")) {
    if (file.path().extension() == ".png") {
      there.insert("docs/" + file.path().filename().string());
    }
  }
  EXPECT_THAT(there, testing::IsSubsetOf(shown)) << "nobody sees these";
  EXPECT_FALSE(shown.empty());
}

}  // namespace
}  // namespace fncache::docs
