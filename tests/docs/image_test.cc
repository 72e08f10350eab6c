// SPDX-License-Identifier: Apache-2.0
// The image (deploy/image/Dockerfile) installs the libraries that the binary
// needs, all of them and no others.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::docs {
namespace {

namespace fs = std::filesystem;
using testing::Process;

std::string OutputOf(const std::string& program,
                     const std::vector<std::string>& arguments) {
  Process process(arguments, {}, program);
  EXPECT_EQ(process.Wait(), 0) << program << process.Stderr();
  return process.Stdout();
}

// The libraries that the binary names, not those that these name themselves.
std::set<std::string> NeededLibraries() {
  std::set<std::string> needed;
  const std::string out = OutputOf("readelf", {"-d", "-W", FNCACHE_BINARY});
  for (absl::string_view line : absl::StrSplit(out, '\n')) {
    const size_t start = line.find("Shared library: [");
    if (start == absl::string_view::npos) continue;
    line.remove_prefix(line.find('[', start) + 1);
    needed.emplace(line.substr(0, line.find(']')));
  }
  return needed;
}

// The Debian package of a library; empty if it is of none.
std::string PackageOf(const std::string& library) {
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu/", "/lib/x86_64-linux-gnu/",
        "/usr/lib/aarch64-linux-gnu/", "/lib/aarch64-linux-gnu/"}) {
    const fs::path path = fs::path(folder) / library;
    if (!fs::exists(path)) continue;
    for (const std::string& name :
         {fs::canonical(path).string(), folder + library}) {
      Process dpkg({"-S", name}, {}, "dpkg-query");
      if (dpkg.Wait() != 0) continue;
      const std::string said = dpkg.Stdout();
      return said.substr(0, said.find(':'));
    }
  }
  return "";
}

// The packages that the image's last stage installs.
std::set<std::string> Installed() {
  const std::string file =
      testing::ReadFile(FNCACHE_SOURCE_DIR "/deploy/image/Dockerfile");
  const size_t stage = file.rfind("apt-get install");
  const size_t end = file.find("&&", stage);
  std::set<std::string> packages;
  for (absl::string_view word :
       absl::StrSplit(absl::string_view(file).substr(stage, end - stage),
                      absl::ByAnyChar(" \n\\"), absl::SkipEmpty())) {
    if (!absl::StartsWith(word, "-") && word != "apt-get" &&
        word != "install") {
      packages.emplace(word);
    }
  }
  return packages;
}

TEST(ImageTest, InstallsTheLibrariesThatTheBinaryNeeds) {
  std::set<std::string> needed = {"ca-certificates"};
  for (const std::string& library : NeededLibraries()) {
    if (absl::StartsWith(library, "lib") &&
        (absl::StrContains(library, "asan") ||
         absl::StrContains(library, "ubsan") ||
         absl::StrContains(library, "tsan"))) {
      GTEST_SKIP() << "this is a sanitizer's build, which nobody installs";
    }
    const std::string package = PackageOf(library);
    EXPECT_FALSE(package.empty()) << library << " is of no package";
    // In every Debian: apt needs them.
    if (package != "libc6" && package != "libgcc-s1" &&
        package != "libstdc++6") {
      needed.insert(package);
    }
  }
  EXPECT_GT(needed.size(), 10u);
  EXPECT_EQ(Installed(), needed);
}

}  // namespace
}  // namespace fncache::docs
