// SPDX-License-Identifier: Apache-2.0
// One message as several encoders write it is one request: the same nodes, the
// same outline.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "insight/request/nodes.h"
#include "insight/request/outline.h"
#include "tests/common/temp_dir.h"
#include "tests/common/test_data.h"

namespace fncache::insight::request {
namespace {

namespace fs = std::filesystem;
using ::fncache::testing::DataFolder;
using ::fncache::testing::ReadFile;
using ::testing::ElementsAreArray;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Looks = std::vector<std::tuple<std::string, uint64_t, int, uint64_t>>;

class Encodings : public ::testing::TestWithParam<const char*> {
 protected:
  // The project's own, and those of the larger folder where it is.
  static std::vector<fs::path> Messages() {
    const fs::path own = fs::path(FNCACHE_SOURCE_DIR) / "tests/data";
    std::vector<fs::path> messages;
    for (const fs::path& root : {own, DataFolder()}) {
      const fs::path folder = root / GetParam();
      if (!fs::is_directory(folder)) {
        GTEST_LOG_(INFO) << "no " << folder << ": left out";
        continue;
      }
      for (const auto& message : fs::directory_iterator(folder)) {
        messages.push_back(message.path());
      }
    }
    return messages;
  }

  // By the encoder's name, which is the file's.
  static std::map<std::string, std::string> FormsOf(const fs::path& message) {
    std::map<std::string, std::string> forms;
    for (const auto& file : fs::directory_iterator(message)) {
      forms[file.path().filename().string()] = ReadFile(file.path().string());
    }
    return forms;
  }

  Looks LooksOf(const std::string& bytes) {
    EXPECT_TRUE(nodes_.Read({bytes}));
    Looks looks;
    for (size_t i = 0; i < nodes_.nodes().size(); ++i) {
      const Node& node = nodes_.nodes()[i];
      looks.emplace_back(nodes_.Spell(i), node.path,
                         static_cast<int>(node.kind), node.value);
    }
    std::sort(looks.begin(), looks.end());
    return looks;
  }

 private:
  RequestNodes nodes_{FingerprintSecret::Random()};
};

TEST_P(Encodings, OfOneMessageHaveTheSameNodesAndOfTwoNever) {
  std::map<Looks, std::string> seen;
  for (const fs::path& message : Messages()) {
    const auto forms = FormsOf(message);
    ASSERT_THAT(forms, SizeIs(Gt(1u))) << message;
    const Looks first = LooksOf(forms.begin()->second);
    ASSERT_THAT(first, Not(IsEmpty())) << message;
    for (const auto& [encoder, bytes] : forms) {
      EXPECT_THAT(LooksOf(bytes), ElementsAreArray(first))
          << message << ": " << encoder;
    }
    // The two folders may hold the same message.
    const std::string name = message.filename().string();
    EXPECT_EQ(seen.try_emplace(first, name).first->second, name);
  }
  EXPECT_THAT(seen, Not(IsEmpty()));
}

// Sums are of the bytes, so only encoders that leave the same things out agree
// on them; whose message it is, all do.
TEST_P(Encodings, OfOneMessageHaveTheSameOutline) {
  const bool same_bytes = std::string(GetParam()) == "encodings";
  for (const fs::path& message : Messages()) {
    const auto forms = FormsOf(message);
    Outline first;
    ASSERT_TRUE(ReadOutline({forms.begin()->second}, &first)) << message;
    for (const auto& [encoder, bytes] : forms) {
      SCOPED_TRACE(message.string() + ": " + encoder);
      Outline outline;
      ASSERT_TRUE(ReadOutline({bytes}, &outline));
      EXPECT_EQ(outline.composite.kind, first.composite.kind);
      EXPECT_EQ(outline.composite.name, first.composite.name);
      EXPECT_EQ(outline.composite.uid, first.composite.uid);
      EXPECT_EQ(outline.identity, first.identity);
      if (!same_bytes) continue;
      EXPECT_THAT(outline.sums, ElementsAreArray(first.sums));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Request, Encodings,
                         ::testing::Values("encodings", "encoders"),
                         [](const auto& folder) {
                           return std::string(folder.param);
                         });

}  // namespace
}  // namespace fncache::insight::request
