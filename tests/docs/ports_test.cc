// SPDX-License-Identifier: Apache-2.0
// No test takes an address that a default names (admin 127.0.0.1:9901, listen
// 0.0.0.0:9443, /run/fncache/admin.sock): another daemon of the machine may
// have it. Helpers see to that; these tests find code that starts a daemon
// without them.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"

namespace fncache::docs {
namespace {

namespace fs = std::filesystem;
using testing::ReadFile;

struct Source {
  std::string path;  // below the source folder
  std::string text;
};

// Sources of tests and benchmarks that people write: no recordings, no corpora.
std::vector<Source> Sources() {
  std::vector<Source> sources;
  const fs::path root(FNCACHE_SOURCE_DIR);
  for (const char* folder : {"tests", "bench"}) {
    for (auto file = fs::recursive_directory_iterator(root / folder);
         file != fs::recursive_directory_iterator(); ++file) {
      const std::string name = file->path().filename();
      if (name == "data" || name == "corpus" || name == "golden" ||
          name == "__pycache__") {
        file.disable_recursion_pending();
      } else if (file->is_regular_file()) {
        sources.push_back({fs::relative(file->path(), root).string(),
                           ReadFile(file->path().string())});
      }
    }
  }
  return sources;
}

bool IsCpp(const std::string& path) {
  return absl::EndsWith(path, ".cc") || absl::EndsWith(path, ".h");
}

TEST(PortsTest, DaemonsInATestsOwnProcessStartWithoutDefaultAddresses) {
  const std::string start = std::string("Daemon::") + "Start(";
  std::vector<std::string> starts;
  for (const Source& source : Sources()) {
    if (IsCpp(source.path) && absl::StrContains(source.text, start)) {
      starts.push_back(source.path);
    }
  }
  // The helper itself is found, so this test reads what it should.
  EXPECT_THAT(starts, ::testing::ElementsAre("tests/proxy/start_daemon.h"))
      << "call StartDaemon of tests/proxy/start_daemon.h instead";
}

bool HasAnyOf(absl::string_view text,
              const std::vector<absl::string_view>& parts) {
  return std::any_of(parts.begin(), parts.end(), [&](absl::string_view part) {
    return absl::StrContains(text, part);
  });
}

// Processes of C++ tests are started by Process (process_test.cc) and Session,
// which see to it themselves.
TEST(PortsTest, ProcessesOfCppTestsAreStartedByItsHelpers) {
  const std::string binary = std::string("FNCACHE_") + "BINARY";
  std::vector<std::string> spawning;
  for (const Source& source : Sources()) {
    if (IsCpp(source.path) && absl::StrContains(source.text, binary) &&
        HasAnyOf(source.text, {"posix_spawn(", "posix_spawnp(", " execl(",
                               " execv(", " execvp(", " execve("}) &&
        source.path != "tests/docs/ports_test.cc") {
      spawning.push_back(source.path);
    }
  }
  EXPECT_THAT(spawning, ::testing::ElementsAre("tests/docs/session.cc"));
}

// Scripts have no helper of their own: each start of a daemon names its admin
// address within a screen of the word.
TEST(PortsTest, ScriptsThatStartADaemonNameItsAdminAddress) {
  constexpr size_t kScreen = 1500;  // bytes on both sides
  int starts = 0;
  for (const Source& source : Sources()) {
    if (IsCpp(source.path) || absl::EndsWith(source.path, ".txt")) continue;
    const absl::string_view text = source.text;
    for (const absl::string_view serve :
         {"\"serve\"", "fncache serve --insecure"}) {
      for (size_t at = text.find(serve); at != text.npos;
           at = text.find(serve, at + serve.size())) {
        ++starts;
        const size_t from = at < kScreen ? 0 : at - kScreen;
        EXPECT_TRUE(HasAnyOf(text.substr(from, 2 * kScreen),
                             {"\"admin\"", "--admin", "admin:"}))
            << source.path << " starts a daemon and names no admin address";
      }
    }
  }
  EXPECT_GE(starts, 7) << "scripts start daemons in another form: change this";
}

}  // namespace
}  // namespace fncache::docs
