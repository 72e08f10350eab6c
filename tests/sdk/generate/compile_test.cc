// SPDX-License-Identifier: Apache-2.0
// Generated headers in the hands of compilers: the definitions of
// tests/data/crds, one trap each, and the real ones of the larger data folder
// (the rest of those in the long form).
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "sdk/generate/generate.h"
#include "sdk/generate/models.h"
#include "sdk/generate/writer.h"
#include "tests/common/long_form.h"
#include "tests/common/temp_dir.h"
#include "tests/common/test_data.h"
#include "tests/sdk/generate/compiler.h"
#include "tests/sdk/generate/program.h"
#include "text/json.h"

namespace fncache::sdk {
namespace {

using testing::Compiler;
using testing::Said;
using testing::TempDir;
using text::Json;

const std::string& Traps() {
  static const auto* const path =
      new std::string(FNCACHE_SOURCE_DIR "/tests/data/crds");
  return *path;
}

// The headers of documents, in a folder.
class Generated {
 public:
  explicit Generated(const std::vector<std::string>& paths) {
    auto documents = ReadAll(paths);
    EXPECT_TRUE(documents.ok()) << documents.status();
    if (!documents.ok()) return;
    for (const auto& document : *documents) {
      EXPECT_TRUE(FindDefinitions(document, &kinds_).ok());
    }
    GenerateOptions options;
    if (paths.front() == Traps()) options.inputs = {"Input"};
    inputs_ = options.inputs;
    auto headers = Generate(*documents, options);
    EXPECT_TRUE(headers.ok()) << headers.status();
    if (!headers.ok()) return;
    texts_ = *std::move(headers);
    EXPECT_TRUE(WriteHeaders(texts_, dir_.path()).ok());
  }

  const std::string& folder() const { return dir_.path(); }
  const std::map<std::string, std::string>& texts() const { return texts_; }
  const std::vector<Definition>& kinds() const { return kinds_; }
  const std::set<std::string>& inputs() const { return inputs_; }

  // The largest first.
  std::vector<std::string> BySize() const {
    std::vector<std::string> files;
    for (const auto& [file, text] : texts_) files.push_back(file);
    std::stable_sort(files.begin(), files.end(),
                     [this](const std::string& a, const std::string& b) {
                       return texts_.at(a).size() > texts_.at(b).size();
                     });
    return files;
  }

 private:
  TempDir dir_;
  std::vector<Definition> kinds_;
  std::set<std::string> inputs_;
  std::map<std::string, std::string> texts_;
};

void ExpectToCompileAlone(const Generated& generated,
                          const std::vector<std::string>& files) {
  const std::vector<std::string> compilers = Compiler::There();
  if (compilers.empty()) GTEST_SKIP() << "neither g++ nor clang++ is there";
  for (const std::string& name : compilers) {
    EXPECT_EQ(Compiler(name).Check(files, generated.folder()), "") << name;
  }
}

// Compiles the program that sets every field of every `step`th kind, and
// compares.
void ExpectToSetEveryField(const Generated& generated, size_t step,
                           size_t compilers) {
  if (Compiler::There().empty()) {
    GTEST_SKIP() << "neither g++ nor clang++ is there";
  }
  std::vector<Definition> kinds = generated.kinds();
  std::set<std::string> components;
  for (size_t i = 0; i < kinds.size(); ++i) {
    kinds[i].wanted = i % step == 0;
    kinds[i].input = generated.inputs().count(kinds[i].kind) != 0;
    components.insert(kinds[i].component);
  }
  components.erase("");
  const auto headers = MakeHeaders(kinds);
  ASSERT_TRUE(headers.ok()) << headers.status();
  const std::string source = generated.folder() + "/program.cc";
  testing::WriteFile(source, testing::ProgramOf(*headers));
  const std::string library = generated.folder() + "/program.so";
  std::vector<std::string> names = Compiler::There();
  names.resize(std::min(names.size(), compilers));
  for (const std::string& name : names) {
    // A loaded library finds the SDK in this program.
    const Said said = Compiler(name).Compile(
        source, generated.folder(),
        absl::StrCat("-fPIC -shared -o ", library, name));
    ASSERT_TRUE(said.ok) << name << ": " << said.text.substr(0, 4000);
    void* const loaded = dlopen((library + name).c_str(), RTLD_NOW);
    ASSERT_NE(loaded, nullptr) << dlerror();
    static std::map<std::string, std::pair<Json, Json>>* set;
    std::map<std::string, std::pair<Json, Json>> documents;
    set = &documents;
    const auto run = reinterpret_cast<void (*)(testing::Take)>(
        dlsym(loaded, "SetEverything"));
    ASSERT_NE(run, nullptr) << dlerror();
    run([](const char* file, const char* made, const char* copied) {
      (*set)[file] = {*text::ParseJson(made), *text::ParseJson(copied)};
    });
    std::map<std::string, const Header*> by_kind;
    for (const Header& header : *headers) {
      if (header.kind.empty()) continue;
      by_kind[absl::StrCat(header.api_version, " ", header.kind)] = &header;
    }
    for (const Definition& kind : kinds) {
      if (!kind.wanted) continue;
      const Header& header =
          *by_kind.at(absl::StrCat(kind.group, kind.group.empty() ? "" : "/",
                                   kind.version, " ", kind.kind));
      const Json expected = testing::ExpectedOf(kind, header.input, components);
      const auto& [made, copied] = documents.at(header.place.file);
      // A kind without fields was never made an object.
      if (expected.empty() && made.is_null()) continue;
      EXPECT_EQ(Json::diff(expected, made), Json::array())
          << name << " " << header.place.file;
      EXPECT_EQ(Json::diff(made, copied), Json::array())
          << name << " " << header.place.file;
    }
    // Its code may be referred to until the end: it stays loaded.
  }
}

TEST(HeavyModelsTest, EachHeaderOfTheTrapsCompilesAlone) {
  const Generated generated({Traps()});
  ExpectToCompileAlone(generated, generated.BySize());
}

TEST(HeavyModelsTest, AProgramSetsEveryFieldOfTheTraps) {
  const Generated generated({Traps()});
  ExpectToSetEveryField(generated, 1, 2);
}

class HeavyRealDefinitions : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    path_ = (testing::DataFolder() / GetParam()).string();
    if (!std::filesystem::is_directory(path_)) {
      GTEST_SKIP() << "no " << path_;
    }
  }

  std::string path_;
};

// The short form compiles the largest, which have the most classes and names,
// and some of the others.
TEST_P(HeavyRealDefinitions, EachHeaderCompilesAlone) {
  const Generated generated({path_});
  std::vector<std::string> files = generated.BySize();
  ASSERT_GT(files.size(), 200u);
  const size_t step = testing::ShortOrLong(25, 1);
  std::vector<std::string> chosen;
  for (size_t i = 0; i < files.size(); ++i) {
    if (i < 5 || i % step == 0) chosen.push_back(files[i]);
  }
  ExpectToCompileAlone(generated, chosen);
}

TEST_P(HeavyRealDefinitions, AProgramSetsEveryField) {
  const Generated generated({path_});
  ExpectToSetEveryField(generated, testing::ShortOrLong(12, 1),
                        testing::ShortOrLong(1, 2));
}

INSTANTIATE_TEST_SUITE_P(Data, HeavyRealDefinitions,
                         ::testing::Values("crds", "openapi"));

// CPU seconds and KB at the peak that a compiler takes for a source.
struct Cost {
  double seconds = 0;
  int64_t kilobytes = 0;
};

Cost CostOf(const std::string& command) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  rusage usage = {};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_EQ(status, 0) << command;
  return {static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
              1e-6 * static_cast<double>(usage.ru_utime.tv_usec +
                                         usage.ru_stime.tv_usec),
          usage.ru_maxrss};
}

TEST(HeavyModelsTest, TheLargestDefinitionCostsLessThanTheHeadersOfGrpc) {
  const std::filesystem::path crd =
      testing::DataFolder() /
      "crds/kopium_argoproj.io_clusterworkflowtemplates.yaml";
  if (!std::filesystem::exists(crd)) GTEST_SKIP() << "no " << crd;
  if (!testing::Shell("command -v g++").ok) GTEST_SKIP() << "no g++";
  const Generated generated({crd.string()});
  ASSERT_EQ(generated.texts().size(), 1u);
  const std::string folder = generated.folder();
  testing::WriteFile(
      folder + "/large.cc",
      absl::StrCat("#include \"", generated.texts().begin()->first, "\"\n"));
  testing::WriteFile(folder + "/grpc.cc", "#include <grpcpp/grpcpp.h>\n");
  const std::string compile =
      absl::StrCat("g++ -std=c++17 -O0 -I", FNCACHE_SOURCE_DIR,
                   "/sdk/include -I", folder, " -o /dev/null -c ", folder);
  Cost large{1e9, 0};
  Cost grpc{1e9, 0};
  // Other processes make single runs slower, never faster.
  for (int round = 0;
       round < 3 || (round < 10 && large.seconds >= grpc.seconds); ++round) {
    const Cost one = CostOf(compile + "/large.cc");
    large = {std::min(large.seconds, one.seconds),
             std::max(large.kilobytes, one.kilobytes)};
    grpc.seconds = std::min(grpc.seconds, CostOf(compile + "/grpc.cc").seconds);
  }
  RecordProperty("large_seconds", absl::StrCat(large.seconds));
  RecordProperty("grpc_seconds", absl::StrCat(grpc.seconds));
  EXPECT_LT(large.seconds, grpc.seconds);
  EXPECT_LT(large.kilobytes, 500 << 10);
}

}  // namespace
}  // namespace fncache::sdk
