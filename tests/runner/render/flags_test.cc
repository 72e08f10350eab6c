// SPDX-License-Identifier: Apache-2.0
#include "runner/render/flags.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runner/render/input_file.h"
#include "tests/common/temp_dir.h"

namespace fncache::runner::render {
namespace {

using apiextensions::fn::proto::v1::CAPABILITY_CAPABILITIES;
using apiextensions::fn::proto::v1::CAPABILITY_CONDITIONS;
using apiextensions::fn::proto::v1::CAPABILITY_CREDENTIALS;
using apiextensions::fn::proto::v1::CAPABILITY_REQUIRED_RESOURCES;
using apiextensions::fn::proto::v1::CAPABILITY_REQUIRED_SCHEMAS;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class RenderFlagsTest : public ::testing::Test {
 protected:
  RenderFlagsTest() : xr_(File("xr.yaml")), composition_(File("c.yaml")) {}

  std::string File(const std::string& name) {
    const std::string path = dir_.path() + "/" + name;
    std::ofstream(path) << "a: b\n";
    return path;
  }

  static absl::StatusOr<RenderFlags> Parse(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "render");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    return ParseRenderFlags(static_cast<int>(argv.size()), argv.data());
  }

  // With an XR and a Composition before.
  RenderFlags Parsed(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {xr_, composition_});
    const auto flags = Parse(arguments);
    EXPECT_TRUE(flags.ok()) << flags.status();
    return flags.ok() ? *flags : RenderFlags();
  }

  std::string Refused(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {xr_, composition_});
    const auto flags = Parse(arguments);
    EXPECT_TRUE(absl::IsInvalidArgument(flags.status())) << flags.status();
    return std::string(flags.status().message());
  }

  testing::TempDir dir_;
  const std::string xr_;
  const std::string composition_;
};

TEST_F(RenderFlagsTest, DefaultsAreTheReferenceCommands) {
  const RenderFlags flags = Parsed({});
  EXPECT_EQ(flags.composite, xr_);
  EXPECT_EQ(flags.composition, composition_);
  EXPECT_EQ(flags.functions, "");
  EXPECT_EQ(flags.timeout, absl::Minutes(1));
  EXPECT_EQ(flags.capabilities, engine::AllCapabilities());
  EXPECT_FALSE(flags.include_results || flags.include_full_composite ||
               flags.include_context || flags.trace || flags.watch);
}

TEST_F(RenderFlagsTest, FlagsAndFilesStandInAnyOrder) {
  const auto flags =
      Parse({"-r", "-x", "-c", xr_, "-o", "o.yaml", composition_, "f.yaml",
             "--function-credentials", "s.yaml", "-s", "schemas"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->composition, composition_);
  EXPECT_EQ(flags->functions, "f.yaml");
  EXPECT_EQ(flags->observed, "o.yaml");
  EXPECT_EQ(flags->credentials, "s.yaml");
  EXPECT_EQ(flags->schemas, "schemas");
  EXPECT_TRUE(flags->include_results);
  EXPECT_TRUE(flags->include_full_composite);
  EXPECT_TRUE(flags->include_context);
}

TEST_F(RenderFlagsTest, ShortFlagsMayBeJoined) {
  const RenderFlags flags = Parsed({"-rxco", "o.yaml"});
  EXPECT_TRUE(flags.include_results && flags.include_full_composite &&
              flags.include_context);
  EXPECT_EQ(flags.observed, "o.yaml");
}

TEST_F(RenderFlagsTest, BooleansTakeAValue) {
  EXPECT_FALSE(Parsed({"--include-full-xr=false"}).include_full_composite);
  EXPECT_TRUE(Parsed({"--include-full-xr=true"}).include_full_composite);
}

TEST_F(RenderFlagsTest, ListsRepeatAndTakeCommas) {
  const RenderFlags flags =
      Parsed({"-e", "a,b", "--required-resources=c", "-e", "d\\,e",
              "--extra-resources", "x", "-a", "k=v,l=w=x"});
  EXPECT_THAT(flags.required, ElementsAre("a", "b", "c", "d,e"));
  EXPECT_THAT(flags.extra, ElementsAre("x"));
  EXPECT_THAT(flags.annotations, ElementsAre(Pair("k", "v"), Pair("l", "w=x")));
}

TEST_F(RenderFlagsTest, OfARepeatedFlagTheLastCounts) {
  EXPECT_EQ(Parsed({"-o", "a", "-o", "b"}).observed, "b");
  EXPECT_EQ(Parsed({"--timeout", "1s", "--timeout=2m"}).timeout,
            absl::Minutes(2));
}

TEST_F(RenderFlagsTest, ContextRepeatsAndTakesSemicolons) {
  const RenderFlags flags =
      Parsed({"--context-values", "a={x: [1, 2]};b=", "--context-values=c=d=e",
              "--context-files", "f=file.yaml"});
  EXPECT_THAT(
      flags.context_values,
      ElementsAre(Pair("a", "{x: [1, 2]}"), Pair("b", ""), Pair("c", "d=e")));
  EXPECT_THAT(flags.context_files, ElementsAre(Pair("f", "file.yaml")));
  EXPECT_THAT(Refused({"--context-values", "a"}),
              HasSubstr("expected \"<key>=<value>\" but got \"a\""));
}

TEST_F(RenderFlagsTest, TargetsKeepWhatStandsBehindTheFirstEqualsSign) {
  const RenderFlags flags =
      Parsed({"--function", "a=dns:///h:1", "--function=b=unix:/x=y,z"});
  ASSERT_EQ(flags.targets.size(), 2u);
  EXPECT_EQ(flags.targets[0].name, "a");
  EXPECT_EQ(flags.targets[0].target, "dns:///h:1");
  EXPECT_EQ(flags.targets[1].target, "unix:/x=y,z");
  EXPECT_THAT(Refused({"--function", "a="}), HasSubstr("NAME=TARGET"));
  EXPECT_THAT(Refused({"--function", "=h:1"}), HasSubstr("NAME=TARGET"));
  EXPECT_THAT(Refused({"--function", "a"}), HasSubstr("--function"));
}

TEST_F(RenderFlagsTest, CapabilitiesAreDroppedByName) {
  EXPECT_THAT(Parsed({"--without-capability", "required-resources",
                      "--without-capability=CAPABILITY_CONDITIONS"})
                  .capabilities,
              ElementsAre(CAPABILITY_CAPABILITIES, CAPABILITY_CREDENTIALS,
                          CAPABILITY_REQUIRED_SCHEMAS));
  EXPECT_THAT(Parsed({"--without-capability", "CAPABILITIES"}).capabilities,
              ElementsAre(CAPABILITY_REQUIRED_RESOURCES, CAPABILITY_CREDENTIALS,
                          CAPABILITY_CONDITIONS, CAPABILITY_REQUIRED_SCHEMAS));
  EXPECT_THAT(Refused({"--without-capability", "flying"}),
              HasSubstr("accepted: CAPABILITIES, REQUIRED_RESOURCES"));
}

TEST_F(RenderFlagsTest, WhatIsMissingIsNamed) {
  using absl::StatusCode;
  const std::string gone = dir_.path() + "/gone.yaml";
  const struct {
    std::vector<std::string> arguments;
    StatusCode code;
    std::string says;
  } kCases[] = {
      {{}, StatusCode::kInvalidArgument, "<composite-resource> <composition>"},
      {{xr_}, StatusCode::kInvalidArgument, "<composition>"},
      {{dir_.path(), composition_},
       StatusCode::kInvalidArgument,
       "exists but is a directory"},
      {{gone}, StatusCode::kNotFound, "gone.yaml: no such file or directory"},
      {{gone, composition_},
       StatusCode::kNotFound,
       "gone.yaml: no such file or directory"},
      {{xr_, gone}, StatusCode::kNotFound, "<composition>: stat "},
      {{xr_, composition_, "--xrd", gone},
       StatusCode::kNotFound,
       "--xrd: stat "},
      {{"--all", gone, composition_}, StatusCode::kNotFound, "--all: stat "},
  };
  for (const auto& one : kCases) {
    const auto flags = Parse(one.arguments);
    EXPECT_EQ(flags.status().code(), one.code) << flags.status();
    EXPECT_THAT(std::string(flags.status().message()), HasSubstr(one.says));
  }
}

TEST_F(RenderFlagsTest, ExpectIsForSeveralXrs) {
  const auto flags =
      Parse({"--all", dir_.path(), composition_, "--expect", "e", "--update"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->expect, "e");
  EXPECT_TRUE(flags->update);
  EXPECT_THAT(Refused({"--expect", "e"}), HasSubstr("needs --all PATH"));
  EXPECT_THAT(Refused({"--update"}), HasSubstr("needs --expect DIR"));
  EXPECT_THAT(std::string(Parse({"--all", dir_.path(), composition_,
                                 "--expect=e", "--watch"})
                              .status()
                              .message()),
              HasSubstr("not together with --watch"));
}

TEST_F(RenderFlagsTest, AMissingFunctionsOrObservedFileIsNotBadUsage) {
  EXPECT_EQ(Parsed({"gone.yaml", "-o", "gone"}).functions, "gone.yaml");
}

TEST_F(RenderFlagsTest, WhatDoesNotFitIsRefused) {
  EXPECT_THAT(Refused({"f.yaml", "more.yaml"}),
              HasSubstr("unexpected argument more.yaml"));
  EXPECT_THAT(Refused({"--flying"}), HasSubstr("unknown flag --flying"));
  EXPECT_THAT(Refused({"-z"}), HasSubstr("unknown flag -z"));
  EXPECT_THAT(Refused({"--timeout", "soon"}), HasSubstr("--timeout"));
  EXPECT_THAT(Refused({"--timeout", "0s"}), HasSubstr("above 0"));
  EXPECT_THAT(Refused({"--step-timeout", "-1s"}), HasSubstr("--step-timeout"));
  EXPECT_THAT(Refused({"--jobs", "0"}), HasSubstr("from 1 on"));
  EXPECT_THAT(Refused({"-o"}), HasSubstr("--observed-resources"));
  EXPECT_THAT(Refused({"-f", "p.yaml"}), HasSubstr("projects"));
  EXPECT_THAT(Refused({"--openapi-url", "http://h", "-s", "d"}),
              HasSubstr("--required-schemas"));
  EXPECT_THAT(Refused({"--openapi-ca", "f"}), HasSubstr("--openapi-url"));
}

TEST_F(RenderFlagsTest, AnAnnotationWithoutValueIsNotBadUsage) {
  const auto flags = Parse({xr_, composition_, "-a", "k"});
  EXPECT_TRUE(absl::IsFailedPrecondition(flags.status()));
  EXPECT_EQ(flags.status().message(),
            "cannot apply function annotation overrides: invalid function "
            "annotation format \"k\", expected key=value");
}

TEST_F(RenderFlagsTest, AllTakesThePlaceOfTheComposite) {
  const auto flags = Parse({"--all", dir_.path(), composition_, "f.yaml",
                            "--all=" + xr_, "--jobs", "3"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_THAT(flags->all, ElementsAre(dir_.path(), xr_));
  EXPECT_EQ(flags->composite, "");
  EXPECT_EQ(flags->composition, composition_);
  EXPECT_EQ(flags->functions, "f.yaml");
  EXPECT_EQ(flags->jobs, 3);
  EXPECT_THAT(std::string(Parse({"--all", dir_.path() + "/gone", composition_})
                              .status()
                              .message()),
              HasSubstr("--all: stat"));
  EXPECT_THAT(std::string(Parse({"--all", xr_, xr_, composition_, "f.yaml"})
                              .status()
                              .message()),
              HasSubstr("--all repeats"));
}

TEST_F(RenderFlagsTest, FlagsOfTheReferenceCommandsEngineAreTakenAndIgnored) {
  Parsed({"--crossplane-binary", "/bin/crossplane", "--crossplane-image=i",
          "--crossplane-version=v2", "--cache-dir=/c", "--max-concurrency=8",
          "--verbose"});
}

TEST_F(RenderFlagsTest, TheFirstDefinitionCounts) {
  // The second is not even looked for, as the reference does it.
  EXPECT_EQ(
      Parsed({"--xrd", xr_, "--xrd", dir_.path() + "/gone.yaml"}).definition,
      xr_);
  EXPECT_EQ(Parsed({"-o", "a", "-o", "b"}).observed, "b");
}

TEST_F(RenderFlagsTest, WhatIsForTheReferencesEngineIsIgnored) {
  Parsed({"--crossplane-docker-network", "kind", "--crossplane-version", "v2",
          "--crossplane-image", "x", "--crossplane-binary", "gone",
          "--cache-dir", "d", "--max-concurrency", "2", "--verbose",
          "--config=c"});
  // A project's functions are needed only where no others are given.
  Parsed({"functions.yaml", "-f", "p.yaml"});
  EXPECT_THAT(Refused({"-f", "p.yaml"}), HasSubstr("projects"));
}

TEST_F(RenderFlagsTest, ATildeIsTheHomeFolder) {
  const char* const home = std::getenv("HOME");
  EXPECT_EQ(Parsed({"-o", "~/o.yaml"}).observed,
            std::string(home == nullptr ? "~" : home) + "/o.yaml");
  EXPECT_EQ(Parsed({"-o", "~"}).observed, "~");
}

TEST_F(RenderFlagsTest, OneFileMayBeStandardInput) {
  const auto composite = Parse({"-", composition_});
  ASSERT_TRUE(composite.ok()) << composite.status();
  EXPECT_EQ(composite->composite, kStandardInput);
  const auto composition = Parse({xr_, "-"});
  ASSERT_TRUE(composition.ok()) << composition.status();
  EXPECT_EQ(composition->composition, kStandardInput);
  const auto all = Parse({"--all", "-", composition_});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(all->all, ElementsAre(kStandardInput));

  EXPECT_EQ(Parsed({"-"}).functions, kStandardInput);
  EXPECT_EQ(Parsed({"-o", "-"}).observed, kStandardInput);
  EXPECT_THAT(Parsed({"-e", "a,-"}).required, ElementsAre("a", kStandardInput));
  EXPECT_THAT(Parsed({"--extra-resources=-"}).extra,
              ElementsAre(kStandardInput));
  EXPECT_EQ(Parsed({"--function-credentials", "-"}).credentials,
            kStandardInput);
  EXPECT_EQ(Parsed({"--xrd", "-"}).definition, kStandardInput);
  EXPECT_THAT(Parsed({"--context-files", "k=-"}).context_files,
              ElementsAre(Pair("k", kStandardInput)));
  EXPECT_EQ(Parsed({"-o", "./-"}).observed, "./-");

  EXPECT_THAT(Refused({"-", "-o", "-"}), HasSubstr("one file argument only"));
  EXPECT_THAT(Refused({"-", "--xrd", "/dev/stdin"}),
              HasSubstr("one file argument only"));
  EXPECT_THAT(Refused({"-", "--watch"}), HasSubstr("cannot be read twice"));
}

TEST_F(RenderFlagsTest, ColorIsForTerminalsUnlessToldOtherwise) {
  using Color = RenderFlags::Color;
  EXPECT_EQ(Parsed({}).color, Color::kAuto);
  EXPECT_EQ(Parsed({"--color", "always"}).color, Color::kAlways);
  EXPECT_EQ(Parsed({"--color=always", "--color=never"}).color, Color::kNever);
  EXPECT_EQ(Parsed({"--color=never", "--color=auto"}).color, Color::kAuto);
  EXPECT_THAT(Refused({"--color", "blue"}),
              HasSubstr("accepted: auto, always, never"));
}

TEST_F(RenderFlagsTest, HelpNamesEveryFlag) {
  for (const char* flag : {"-h", "--help"}) {
    const auto flags = Parse({flag});
    ASSERT_TRUE(flags.ok());
    EXPECT_TRUE(flags->help);
    for (const char* name : {"-o, --observed-resources",
                             "-e, --required-resources",
                             "--extra-resources",
                             "-s, --required-schemas",
                             "--function-credentials",
                             "--xrd",
                             "-a, --function-annotations",
                             "--context-values",
                             "--context-files",
                             "--timeout",
                             "--function NAME",
                             "--tls-dir",
                             "--without-capability",
                             "--step-timeout",
                             "--openapi-url",
                             "--openapi-token-file",
                             "--openapi-ca",
                             "--all",
                             "--jobs",
                             "-r, --include-function-results",
                             "-x, --include-full-xr",
                             "-c, --include-context",
                             "--trace",
                             "--color WHEN",
                             "--watch",
                             "(default 1m0s)",
                             "(default 16)",
                             "(default auto)",
                             "- for standard input"}) {
      EXPECT_THAT(RenderHelp(), HasSubstr(name));
    }
    EXPECT_THAT(RenderHelp(), Not(HasSubstr("--crossplane-binary FILE")));
    const std::string help = RenderHelp();
    for (const absl::string_view line : absl::StrSplit(help, '\n')) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
}

TEST(InputPathsTest, NamesEverythingThatIsRead) {
  RenderFlags flags;
  flags.composite = "xr";
  flags.composition = "c";
  flags.functions = "f";
  flags.observed = "o";
  flags.required = {"e1", "e2"};
  flags.extra = {"x"};
  flags.schemas = "s";
  flags.credentials = "cr";
  flags.definition = "d";
  flags.context_files = {{"k", "cf"}};
  flags.all = {"all"};
  EXPECT_THAT(InputPaths(flags),
              UnorderedElementsAre("xr", "c", "f", "o", "e1", "e2", "x", "s",
                                   "cr", "d", "cf", "all"));
}

}  // namespace
}  // namespace fncache::runner::render
