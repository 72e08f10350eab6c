// SPDX-License-Identifier: Apache-2.0
#include "runner/render/file_watch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"

namespace fncache::runner::render {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kQuiet = absl::Milliseconds(5);

class FileWatchTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const {
    return dir_.path() + "/" + name;
  }
  void Write(const std::string& name, const std::string& text = "text") {
    std::ofstream(Path(name)) << text;
  }
  std::unique_ptr<FileWatch> Watch(const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(Path(name));
    auto watch = FileWatch::Create(paths);
    EXPECT_TRUE(watch.ok()) << watch.status();
    return watch.ok() ? *std::move(watch) : nullptr;
  }
  // Returns the changes that a watch of `names` reports after `change`. Changes
  // are queued, so it also reports those before its wait.
  std::string Changed(const std::vector<std::string>& names,
                      const std::function<void()>& change) {
    const auto watch = Watch(names);
    change();
    return watch->WaitForChange(kQuiet);
  }

  testing::TempDir dir_;
};

TEST_F(FileWatchTest, AFileThatIsWrittenToHasChanged) {
  Write("a.yaml");
  EXPECT_EQ(Changed({"a.yaml"}, [this] { Write("a.yaml", "other"); }),
            Path("a.yaml"));
}

TEST_F(FileWatchTest, AFileThatIsReplacedHasChangedAgainAndAgain) {
  Write("a.yaml");
  const auto watch = Watch({"a.yaml"});
  for (int i = 0; i < 3; ++i) {
    Write("a.yaml.swap");
    fs::rename(Path("a.yaml.swap"), Path("a.yaml"));
    EXPECT_EQ(watch->WaitForChange(kQuiet), Path("a.yaml"));
  }
}

TEST_F(FileWatchTest, AFileMayGoAndComeBack) {
  Write("a.yaml");
  const auto watch = Watch({"a.yaml"});
  fs::remove(Path("a.yaml"));
  EXPECT_EQ(watch->WaitForChange(kQuiet), Path("a.yaml"));
  Write("a.yaml");
  EXPECT_EQ(watch->WaitForChange(kQuiet), Path("a.yaml"));
}

TEST_F(FileWatchTest, OtherFilesOfTheFolderDoNotCount) {
  Write("a.yaml");
  const auto watch = Watch({"a.yaml"});
  Write("b.yaml");
  Write("a.yaml.swap");
  fs::remove(Path("b.yaml"));
  Write("a.yaml");
  // Had the others counted, they would be named.
  EXPECT_EQ(watch->WaitForChange(kQuiet), Path("a.yaml"));
}

TEST_F(FileWatchTest, AFileMayNotBeThereYetNorItsFolder) {
  EXPECT_EQ(Changed({"a.yaml"}, [this] { Write("a.yaml"); }), Path("a.yaml"));
  EXPECT_EQ(
      Changed({"x/y/a.yaml"}, [this] { fs::create_directory(Path("x")); }),
      Path("x"));
}

TEST_F(FileWatchTest, InAFolderEverythingCountsAtAnyDepth) {
  fs::create_directories(Path("d/e/f"));
  Write("d/e/f/a.json");
  EXPECT_EQ(Changed({"d"}, [this] { Write("d/e/f/a.json"); }),
            Path("d/e/f/a.json"));
  EXPECT_EQ(Changed({"d/"}, [this] { Write("d/new.yaml"); }),
            Path("d/new.yaml"));
  EXPECT_EQ(Changed({"d"}, [this] { fs::remove_all(Path("d/e")); })
                .substr(0, Path("d").size()),
            Path("d"));
}

TEST_F(FileWatchTest, LinksAreFollowedToWhatTheyNameAndMayChange) {
  fs::create_directory(Path("v1"));
  fs::create_directory(Path("v2"));
  Write("v1/a.yaml");
  Write("v2/a.yaml");
  fs::create_symlink("v1/a.yaml", Path("a.yaml"));
  EXPECT_EQ(Changed({"a.yaml"}, [this] { Write("v1/a.yaml", "other"); }),
            Path("v1/a.yaml"));
  EXPECT_EQ(Changed({"a.yaml"},
                    [this] {
                      fs::create_symlink("v2/a.yaml", Path("next"));
                      fs::rename(Path("next"), Path("a.yaml"));
                    }),
            Path("a.yaml"));
}

TEST_F(FileWatchTest, LinksInCirclesEnd) {
  fs::create_directory(Path("d"));
  fs::create_directory_symlink("../d", Path("d/again"));
  fs::create_symlink("b", Path("a"));
  fs::create_symlink("a", Path("b"));
  EXPECT_EQ(Changed({"d", "a"}, [this] { Write("d/x"); }), Path("d/x"));
}

TEST_F(FileWatchTest, ManyWritesInOneGoAreOneChange) {
  Write("a.yaml");
  Write("b.yaml");
  const auto watch = Watch({"a.yaml", "b.yaml"});
  for (int i = 0; i < 100; ++i) {
    Write("a.yaml", std::to_string(i));
    Write("b.yaml", std::to_string(i));
  }
  EXPECT_EQ(watch->WaitForChange(kQuiet), Path("a.yaml"));
  // Nothing is left of them: what comes next is named.
  auto next = std::async(std::launch::async,
                         [&] { return watch->WaitForChange(kQuiet); });
  fs::remove(Path("b.yaml"));
  EXPECT_EQ(next.get(), Path("b.yaml"));
}

TEST_F(FileWatchTest, AProgramThatNeverStopsWritingIsNotWaitedForForEver) {
  Write("a.yaml");
  const auto watch = Watch({"a.yaml"});
  std::promise<void> enough;
  auto writer = std::async(
      std::launch::async, [this, stop = enough.get_future()]() mutable {
        while (stop.wait_for(std::chrono::milliseconds(1)) !=
               std::future_status::ready) {
          Write("a.yaml");
        }
      });
  EXPECT_EQ(watch->WaitForChange(absl::Milliseconds(20)), Path("a.yaml"));
  enough.set_value();
  writer.get();
}

}  // namespace
}  // namespace fncache::runner::render
