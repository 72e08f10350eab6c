// SPDX-License-Identifier: Apache-2.0
// Every code block of README and docs is run, or compared with what it speaks
// of. Its info string says how:
//
//   sh run             run, in order, by one Session for each page
//   sh run-if=PROGRAM  the same, if there is such a program
//   sh commands        commands of this project that are too much for a test:
//                      make's targets and the programs named are there
//   sh cluster         commands of Helm and kubectl: the files named are there;
//                      tests/deploy tries Helm's
//   text output        its lines were said by what the page ran before
//   text like          the same, but for numbers and the order of the lines
//   text held=A.B      TEST(A, B) compares it
//   text figure        a picture or formula: nothing to test
//   yaml same=PATH     is this file; yaml part=PATH: lines of it
//   yaml check         settings that `serve --check` accepts
//   yaml template      an input that `fncache function` renders
//   promql query       is PromQL, of metrics that exist
//   promql crossplane  the same, of Crossplane's own metrics
//   dockerfile image   see image_test.cc
//   cpp step=NAME      is compiled with all others, see cpp_blocks.py; so are
//                      cpp test=NAME and cpp body
//   sh build=NAME      is run, but for CMake's commands: they give the program
//                      build/function-storage, which is the step of this name
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "proxy/telemetry/catalogue.h"
#include "tests/common/eventually.h"
#include "tests/common/temp_dir.h"
#include "tests/docs/markdown.h"
#include "tests/docs/session.h"
#include "tests/integration/process.h"

namespace fncache::docs {
namespace {

namespace fs = std::filesystem;
using testing::Process;
using testing::TempDir;
using testing::WriteFile;

bool Exists(const std::string& path) {
  return fs::exists(fs::path(FNCACHE_SOURCE_DIR) / path);
}

// The program of all C++ blocks; its source is beside it.
std::string Blocks() {
  return (fs::path(FNCACHE_BINARY).parent_path() / "tests/docs/docs_blocks")
      .string();
}

bool IsInstalled(const std::string& program) {
  const char* const path = std::getenv("PATH");
  for (absl::string_view folder :
       absl::StrSplit(path == nullptr ? "" : path, ':')) {
    std::error_code unreadable;  // as good as not there
    if (fs::exists(fs::path(std::string(folder)) / program, unreadable)) {
      return true;
    }
  }
  return false;
}

std::set<std::string> MakeTargets() {
  std::set<std::string> targets;
  const std::string makefile = ReadSource("Makefile");
  for (absl::string_view line : absl::StrSplit(makefile, '\n')) {
    static const std::regex* const kTarget =
        new std::regex("^([a-z][a-z-]*):.*");
    std::cmatch match;
    if (std::regex_match(line.data(), line.data() + line.size(), match,
                         *kTarget)) {
      targets.insert(match[1]);
    }
  }
  return targets;
}

// The page's blocks with these directives, one after the other.
class Page {
 public:
  explicit Page(std::vector<Block> blocks) : blocks_(std::move(blocks)) {}

  void Check() {
    const std::map<std::string, void (Page::*)(const Block&)> kChecks = {
        {"run", &Page::Run},
        {"run-if", &Page::RunIf},
        {"commands", &Page::Commands},
        {"output", &Page::Output},
        {"like", &Page::Like},
        {"held", &Page::Held},
        {"figure", &Page::Figure},
        {"same", &Page::Same},
        {"part", &Page::Part},
        {"check", &Page::Settings},
        {"template", &Page::Template},
        {"query", &Page::Query},
        {"crossplane", &Page::QueryOfCrossplane},
        {"image", &Page::Image},
        {"cluster", &Page::Cluster},
        {"step", &Page::Cpp},
        {"test", &Page::Cpp},
        {"body", &Page::Cpp},
        {"build", &Page::Build},
    };
    for (const Block& block : blocks_) {
      SCOPED_TRACE(block.where());
      const auto check = kChecks.find(block.directive);
      if (check == kChecks.end()) {
        ADD_FAILURE() << "no way of testing is called \"" << block.directive
                      << "\"";
        continue;
      }
      (this->*check->second)(block);
    }
  }

 private:
  Session& session() {
    if (session_ == nullptr) session_ = std::make_unique<Session>();
    return *session_;
  }

  void Run(const Block& block) {
    const absl::Status status = session().Run(block.text);
    EXPECT_TRUE(status.ok()) << status.message();
  }

  void RunIf(const Block& block) {
    if (IsInstalled(block.argument)) return Run(block);
    GTEST_LOG_(INFO) << block.where() << ": no " << block.argument
                     << " here, not run";
  }

  void Build(const Block& block) {
    session().AddProgram("build/function-storage",
                         absl::StrCat("exec '", fs::absolute(Blocks()).string(),
                                      "' --step ", block.argument, " \"$@\""));
    std::string others;
    for (absl::string_view line : absl::StrSplit(block.text, '\n')) {
      if (!absl::StartsWith(line, "cmake ")) {
        absl::StrAppend(&others, line, "\n");
      }
    }
    const absl::Status status = session().Run(others);
    EXPECT_TRUE(status.ok()) << status.message();
  }

  void Cpp(const Block& block) {
    EXPECT_EQ(block.language, "cpp");
    EXPECT_TRUE(absl::StrContains(
        testing::ReadFile(Blocks() + ".cc"),
        absl::StrCat("#line ", block.line + 1, " \"", block.page, "\"")))
        << "is not compiled: add the page to CMakeLists.txt";
  }

  void Commands(const Block& block) {
    static const auto* const kTargets =
        new std::set<std::string>(MakeTargets());
    for (absl::string_view line : absl::StrSplit(block.text, '\n')) {
      line = line.substr(0, line.find('#'));
      const std::vector<std::string> words =
          absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (words.empty()) continue;
      if (words[0] != "make") {
        EXPECT_TRUE(Exists(words[0]) || IsInstalled(words[0])) << words[0];
        continue;
      }
      for (size_t i = 1; i < words.size(); ++i) {
        if (absl::StrContains(words[i], "=")) continue;
        EXPECT_EQ(kTargets->count(words[i]), 1u) << "make " << words[i];
      }
    }
  }

  // See also tests/deploy/test_docs.py.
  void Cluster(const Block& block) {
    static const auto* const kPrograms =
        new std::set<std::string>{"helm", "kubectl"};
    for (absl::string_view line : absl::StrSplit(block.text, '\n')) {
      const std::vector<std::string> words =
          absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (words.empty()) continue;
      EXPECT_EQ(kPrograms->count(words[0]), 1u) << words[0];
      for (const std::string& word : words) {
        if (!absl::StartsWith(word, "deploy/")) continue;
        EXPECT_TRUE(Exists(word)) << word;
      }
    }
  }

  void Output(const Block& block) {
    std::string missing;
    // The background may say it later.
    const std::string expected = session().WithPorts(block.text);
    EXPECT_TRUE(Eventually([&] {
      return HasLines(session().Output(), expected, &missing);
    })) << "nothing said\n  "
        << missing << "\namong\n"
        << Normalized(session().Output());
  }

  void Like(const Block& block) {
    std::string missing;
    EXPECT_TRUE(Eventually([&] {
      return HasLinesLike(session().Output(), block.text, &missing);
    })) << "nothing said like\n  "
        << missing << "\namong\n"
        << WithoutNumbers(session().Output());
  }

  void Held(const Block& block) {
    const std::pair<std::string, std::string> name =
        absl::StrSplit(block.argument, '.');
    const std::string start =
        absl::StrCat("(", name.first, ", ", name.second, ")");
    const std::string page = fs::path(block.page).filename().string();
    for (const auto& file : fs::recursive_directory_iterator(
             fs::path(FNCACHE_SOURCE_DIR) / "tests")) {
      if (file.path().extension() != ".cc") continue;
      const std::string source = testing::ReadFile(file.path().string());
      if (absl::StrContains(source, start) && absl::StrContains(source, page)) {
        return;
      }
    }
    ADD_FAILURE() << "no test " << block.argument << " that reads " << page;
  }

  // A figure is no text to type: such text is tested in another way.
  void Figure(const Block& block) { EXPECT_EQ(block.language, "text"); }

  // See image_test.cc.
  void Image(const Block& block) { EXPECT_EQ(block.language, "dockerfile"); }

  void Same(const Block& block) {
    ASSERT_TRUE(Exists(block.argument)) << block.argument;
    EXPECT_EQ(block.text, ReadSource(block.argument));
  }

  void Part(const Block& block) {
    ASSERT_TRUE(Exists(block.argument)) << block.argument;
    EXPECT_TRUE(absl::StrContains(ReadSource(block.argument), block.text))
        << "not lines of " << block.argument;
  }

  void Settings(const Block& block) {
    const TempDir dir;
    WriteFile(dir.File("fncache.yaml"), block.text);
    Process serve({"serve", "--check", "--insecure", "--upstream",
                   "127.0.0.1:9444", "--config", dir.File("fncache.yaml")});
    EXPECT_EQ(serve.Wait(), 0) << serve.Stderr();
  }

  // With a request that has all that the page's own example asks for.
  void Template(const Block& block) {
    const TempDir dir;
    WriteFile(dir.File("xr.yaml"),
              "apiVersion: example.org/v1\nkind: X\nmetadata: {name: x}\n"
              "spec: {region: eu, size: 3}\n");
    std::string input;
    for (absl::string_view line : absl::StrSplit(block.text, '\n')) {
      if (!line.empty()) absl::StrAppend(&input, "      ", line, "\n");
    }
    WriteFile(dir.File("composition.yaml"),
              absl::StrCat("apiVersion: apiextensions.crossplane.io/v1\n"
                           "kind: Composition\nmetadata: {name: c}\nspec:\n"
                           "  compositeTypeRef: {apiVersion: example.org/v1, "
                           "kind: X}\n  mode: Pipeline\n  pipeline:\n"
                           "  - step: s\n    functionRef: {name: f}\n"
                           "    input:\n",
                           input));
    WriteFile(dir.File("required.yaml"),
              "apiVersion: example.org/v1\nkind: Zone\n"
              "metadata: {name: a, labels: {region: eu}}\n---\n"
              "apiVersion: example.org/v1\nkind: Zone\n"
              "metadata: {name: b, labels: {region: eu}}\n");
    Process function({"function", "--insecure", "--listen", "127.0.0.1:0"});
    ASSERT_TRUE(function.WaitForStderr("listening on "));
    Process render({"render", dir.File("xr.yaml"), dir.File("composition.yaml"),
                    "--required-resources", dir.File("required.yaml"),
                    "--function", "f=" + function.Listening().at(0)});
    EXPECT_EQ(render.Wait(), 0) << render.Stderr();
    EXPECT_TRUE(absl::StrContains(render.Stdout(), "bucket-1"))
        << render.Stdout();
  }

  void Query(const Block& block) {
    static const std::regex* const kMetric = new std::regex(
        "\\b(fncache_[a-z_]+|function_run_function_[a-z_]+|process_[a-z_]+)");
    for (auto at = std::sregex_iterator(block.text.begin(), block.text.end(),
                                        *kMetric);
         at != std::sregex_iterator(); ++at) {
      const std::string name = (*at)[1];
      const auto& all = proxy::telemetry::Catalogue();
      EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const auto& family) {
        return family.name == name || name == family.name + "_bucket" ||
               name == family.name + "_sum" || name == family.name + "_count";
      })) << name;
    }
    ExpectLabels(block.text);
    ExpectPromql(block);
  }

  // The names were read off Crossplane 2.4 and controller-runtime. Some of
  // fncache's own begin alike, and do not exist before it is installed.
  void QueryOfCrossplane(const Block& block) {
    static const std::regex* const kMetric = new std::regex(
        "\\b(?:fncache|function_run|controller_runtime)_[a-z_]+");
    static const auto* const known = new std::set<std::string>{
        "function_run_function_seconds_sum",
        "controller_runtime_reconcile_time_seconds_sum"};
    size_t metrics = 0;
    for (auto at = std::sregex_iterator(block.text.begin(), block.text.end(),
                                        *kMetric);
         at != std::sregex_iterator(); ++at) {
      EXPECT_EQ(known->count((*at)[0]), 1u) << (*at)[0];
      ++metrics;
    }
    EXPECT_GT(metrics, 0u);
    ExpectPromql(block);
  }

  void ExpectPromql(const Block& block) {
    if (!IsInstalled("promtool")) {
      GTEST_LOG_(INFO) << block.where() << ": no promtool here, not parsed";
      return;
    }
    const TempDir dir;
    std::string rule =
        "groups:\n- name: g\n  rules:\n  - record: r\n    expr: |\n";
    for (absl::string_view line : absl::StrSplit(block.text, '\n')) {
      absl::StrAppend(&rule, "      ", line, "\n");
    }
    WriteFile(dir.File("rules.yaml"), rule);
    Process promtool({"check", "rules", dir.File("rules.yaml")}, {},
                     "promtool");
    EXPECT_EQ(promtool.Wait(), 0) << promtool.Stdout() << promtool.Stderr();
  }

  // A query may group and select by labels of the metrics that it names only.
  void ExpectLabels(const std::string& query) {
    static const std::regex* const kUse =
        new std::regex("by \\(([a-z_, ]+)\\)|([a-z_]+)\\{([a-z_]+)[!=~]+\"");
    std::set<std::string> labels;
    for (const metrics::Family& family : proxy::telemetry::Catalogue()) {
      if (!absl::StrContains(query, family.name)) continue;
      labels.insert(family.labels.begin(), family.labels.end());
      if (family.type == metrics::Type::kHistogram) labels.insert("le");
    }
    for (auto at = std::sregex_iterator(query.begin(), query.end(), *kUse);
         at != std::sregex_iterator(); ++at) {
      const std::string names = (*at)[1].matched ? (*at)[1] : (*at)[3];
      for (absl::string_view name : absl::StrSplit(names, ',')) {
        name = absl::StripAsciiWhitespace(name);
        EXPECT_EQ(labels.count(std::string(name)), 1u) << name;
      }
    }
  }

  const std::vector<Block> blocks_;
  std::unique_ptr<Session> session_;
};

// Flags of fncache's commands, and those that its scripts read.
const std::string& KnownFlags() {
  static const std::string* const flags = [] {
    auto* text = new std::string;
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"serve"},
          {"render"},
          {"function"},
          {"demo"},
          {"load"},
          {"explain"},
          {"probe"},
          {"advise"},
          {"replay"},
          {"internal", "render"},
          {"health"},
          {"admin"},
          {"admin", "stats"},
          {"admin", "lookup"},
          {"admin", "purge"},
          {"admin", "explain"},
          {"admin", "trace", "start"},
          {"admin", "log"},
          {"admin", "shadow"},
          {"admin", "tune"},
          {"sdk", "init"},
          {"sdk", "generate"}}) {
      std::vector<std::string> words = command;
      words.push_back("--help");
      Process help(words);
      EXPECT_EQ(help.Wait(), 0);
      *text += help.Stdout();
    }
    Process help({"--step", "hello", "--help"}, {}, Blocks());
    EXPECT_EQ(help.Wait(), 0);
    *text += help.Stdout();
    for (const char* folder : {"bench", "scripts"}) {
      for (const auto& file : fs::recursive_directory_iterator(
               fs::path(FNCACHE_SOURCE_DIR) / folder)) {
        if (!file.is_regular_file()) continue;
        *text += testing::ReadFile(file.path().string());
      }
    }
    return text;
  }();
  return *flags;
}

std::string TestName(const std::string& page) {
  std::string name;
  for (const char c : page) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
  }
  return name;
}

class DocsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DocsTest, EveryBlockHolds) {
  std::vector<std::string> wrong;
  Page page(BlocksOf(GetParam(), &wrong));
  EXPECT_TRUE(wrong.empty()) << absl::StrJoin(wrong, "\n");
  page.Check();
}

// Links to files and headings of this project go somewhere.
TEST_P(DocsTest, LinksGoSomewhere) {
  const std::string page = GetParam();
  const std::string text = ReadSource(page);
  static const std::regex* const kLink = new std::regex("\\]\\(([^)\\s]+)\\)");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), *kLink);
       at != std::sregex_iterator(); ++at) {
    const std::string link = (*at)[1];
    if (absl::StrContains(link, "://")) continue;
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(link, absl::MaxSplits('#', 1));
    const fs::path folder = fs::path(page).parent_path();
    const std::string file =
        parts.first.empty()
            ? page
            : (folder / parts.first).lexically_normal().string();
    ASSERT_TRUE(Exists(file)) << page << ": " << link;
    if (parts.second.empty()) continue;
    // As GitHub makes anchors of headings.
    std::set<std::string> anchors;
    const std::string target = ReadSource(file);
    for (absl::string_view line : absl::StrSplit(target, '\n')) {
      if (!absl::StartsWith(line, "#")) continue;
      line.remove_prefix(line.find_first_not_of("# "));
      std::string anchor;
      for (const char c : line) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == ' ') anchor += '-';
        if (std::isalnum(byte) != 0 || c == '-' || c == '_') {
          anchor += static_cast<char>(std::tolower(byte));
        }
      }
      anchors.insert(anchor);
    }
    EXPECT_EQ(anchors.count(parts.second), 1u) << page << ": " << link;
  }
}

// fncache listens on 9443 and 9445, functions on 9444 and 9446, and the admin
// endpoint is 9901. So commands that are copied from two pages fit together.
void ExpectCommonPorts(const std::string& text) {
  static const std::regex* const kPort =
      new std::regex("(127\\.0\\.0\\.1|0\\.0\\.0\\.0|localhost):([0-9]+)");
  // 8001 is kubectl proxy's.
  static const std::set<std::string>* const kPorts =
      new std::set<std::string>{"9443", "9444", "9445", "9446", "9901", "8001"};
  for (auto at = std::sregex_iterator(text.begin(), text.end(), *kPort);
       at != std::sregex_iterator(); ++at) {
    EXPECT_EQ(kPorts->count((*at)[2]), 1u) << (*at)[0];
  }
  static const std::regex* const kListener =
      new std::regex("fncache (serve|function) [^\\n]*--listen \\S*:([0-9]+)");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), *kListener);
       at != std::sregex_iterator(); ++at) {
    const bool daemon = (*at)[1] == "serve";
    EXPECT_TRUE(daemon ? (*at)[2] == "9443" || (*at)[2] == "9445"
                       : (*at)[2] == "9444" || (*at)[2] == "9446")
        << (*at)[0];
  }
}

// `--flag` in a sentence is a flag of something, and not misspelt.
TEST_P(DocsTest, FlagsInSentencesExist) {
  // Crossplane's, among them those that `render` takes and its help leaves out,
  // and those of functions made from its templates.
  static const std::set<std::string>* const kForeign =
      new std::set<std::string>{"--enable-function-response-cache", "--address",
                                "--tls-certs-dir", "--project-file",
                                "--crossplane-docker-network"};
  static const std::regex* const kCode = new std::regex("`[^`\n]*`");
  static const std::regex* const kFlag = new std::regex("--[a-z][a-z-]+");
  const std::string text = ReadSource(GetParam());
  for (auto code = std::sregex_iterator(text.begin(), text.end(), *kCode);
       code != std::sregex_iterator(); ++code) {
    const std::string words = (*code)[0];
    for (auto at = std::sregex_iterator(words.begin(), words.end(), *kFlag);
         at != std::sregex_iterator(); ++at) {
      const std::string flag = (*at)[0];
      if (kForeign->count(flag) != 0) continue;
      EXPECT_TRUE(std::regex_search(
          KnownFlags(), std::regex(absl::StrCat(flag, "(?![a-z-])"))))
          << flag;
    }
  }
}

TEST_P(DocsTest, PortsAreThoseOfAllPages) {
  ExpectCommonPorts(ReadSource(GetParam()));
}

TEST(HelpTest, PortsAreThoseOfAllPages) {
  for (const char* command :
       {"serve", "render", "function", "demo", "load", "explain", "probe",
        "advise", "replay", "sdk", "admin", "health"}) {
    SCOPED_TRACE(command);
    Process help({command, "--help"});
    EXPECT_EQ(help.Wait(), 0);
    EXPECT_FALSE(help.Stdout().empty());
    ExpectCommonPorts(help.Stdout());
  }
}

// The page of a command has all of its options, except those that the page
// about rendering has for all commands.
TEST(HelpTest, EveryOptionIsOnItsPage) {
  const std::string inputs = ReadSource("docs/rendering.md");
  const std::map<std::string, std::string> pages = {
      {"load", "docs/load-testing.md"},
      {"explain", "docs/explaining-misses.md"},
      {"probe", "docs/probing.md"},
      {"advise", "docs/probing.md"},
      {"replay", "docs/what-if.md"}};
  for (const auto& [command, path] : pages) {
    const std::string page = ReadSource(path);
    const bool renders = absl::StrContains(page, "(rendering.md)");
    Process help({command, "--help"});
    EXPECT_EQ(help.Wait(), 0);
    const std::string text = help.Stdout();
    const std::regex flags("--[a-z][a-z-]+");
    // Flags of other commands, from the notes below the options.
    const std::set<std::string> others = {"--help", "--trace", "--trace-dir"};
    size_t seen = 0;
    for (std::sregex_iterator it(text.begin(), text.end(), flags), end;
         it != end; ++it) {
      const std::string flag = it->str();
      if (command != "load" && others.count(flag) > 0) continue;
      if (flag == "--help") continue;
      ++seen;
      const std::regex whole(absl::StrCat(flag, "(?![a-z-])"));
      EXPECT_TRUE(std::regex_search(page, whole) ||
                  (renders && std::regex_search(inputs, whole)))
          << path << " does not tell " << flag;
    }
    EXPECT_GT(seen, 3u) << command;
  }
}

INSTANTIATE_TEST_SUITE_P(Pages, DocsTest, ::testing::ValuesIn(Pages()),
                         [](const auto& info) { return TestName(info.param); });

}  // namespace
}  // namespace fncache::docs
