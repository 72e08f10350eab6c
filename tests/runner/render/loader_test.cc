// SPDX-License-Identifier: Apache-2.0
#include "runner/render/loader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runner/engine/composition.h"
#include "runner/render/input_file.h"
#include "tests/common/temp_dir.h"
#include "tests/common/test_data.h"

namespace fncache::runner::render {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kComposition[] = R"(apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: shop
  labels: {tier: gold, size: 3}
spec:
  compositeTypeRef: {apiVersion: ex.org/v1, kind: XShop}
  mode: Pipeline
  pipeline:
  - step: one
    functionRef: {name: f}
)";
constexpr char kComposite[] = R"(apiVersion: ex.org/v1
kind: XShop
metadata: {name: a}
)";

std::string FunctionYaml(const std::string& name,
                         const std::string& annotations) {
  return absl::StrCat(
      "apiVersion: pkg.crossplane.io/v1\nkind: Function\nmetadata:\n  name: ",
      name, "\n  annotations: {", annotations, "}\n");
}

std::string Development(const std::string& target) {
  return absl::StrCat(
      "render.crossplane.io/runtime: Development, "
      "render.crossplane.io/runtime-development-target: '",
      target, "'");
}

class LoaderTest : public ::testing::Test {
 protected:
  std::string PathOf(const std::string& name) const {
    return (folder_ / name).string();
  }

  std::string Write(const std::string& name, const std::string& content) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return PathOf(name);
  }

  text::Json Yaml(const std::string& text) {
    const auto loaded = LoadObject(Write("parsed.yaml", text));
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *loaded->object : text::Json();
  }

  static std::vector<std::string> Names(
      const std::vector<LoadedObject>& objects) {
    std::vector<std::string> names;
    for (const LoadedObject& object : objects) {
      const auto it = object.object->find("name");
      names.push_back(it == object.object->end() ? "-" : it->dump());
    }
    return names;
  }

  template <typename Loaded>
  static std::string ErrorOf(const absl::StatusOr<Loaded>& loaded) {
    return std::string(loaded.status().message());
  }

  const ::fncache::testing::TempDir temp_;
  const fs::path folder_ = temp_.path();
};

TEST_F(LoaderTest, ASingleObjectIsTheFirstDocumentOfItsFile) {
  for (const char* text :
       {"name: a\n---\nname: b\n", "---\nname: a\n---\nname: b\n",
        "# licence\n---\nname: a\n", "%YAML 1.1\n---\nname: a\n...\nname: b\n",
        "\n# licence\n\n---   # shop\nname: a\n", "name: a\n--- {name: b}\n",
        "--- {name: a}\n--- [\n", "\xef\xbb\xbf---\r\nname: a\r\n---\r\n]\r\n",
        "name: a\n---\n\tbroken: [\n", "name: a\n...\n}\n", "{\"name\": \"a\"}",
        "text: |\n  --- x\nname: a\n"}) {
    const auto loaded = LoadObject(Write("x.yaml", text));
    ASSERT_TRUE(loaded.ok()) << text << loaded.status();
    EXPECT_EQ((*loaded->object)["name"], "a") << text;
    EXPECT_EQ(loaded->where, PathOf("x.yaml"));
  }
}

TEST_F(LoaderTest, AFirstDocumentWithoutContentIsAnError) {
  for (const char* text :
       {"", "\n", "# only this\n", "---\n# x\n---\nname: a\n",
        "---\n---\nname: a\n", "null\n"}) {
    const auto loaded = LoadObject(Write("x.yaml", text));
    EXPECT_EQ(ErrorOf(loaded),
              absl::StrCat(PathOf("x.yaml"), ": its first document is empty"))
        << text;
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(LoaderTest, WhatIsNoObjectIsSaid) {
  EXPECT_EQ(ErrorOf(LoadObject(Write("x.yaml", "- a\n"))),
            absl::StrCat(PathOf("x.yaml"),
                         ": error unmarshaling JSON: while decoding JSON: "
                         "json: cannot unmarshal array into Go value of type "
                         "map[string]interface {}"));
  EXPECT_THAT(ErrorOf(LoadObjects(Write("y.yaml", "a: 1\n---\ntext\n"))),
              StartsWith(absl::StrCat(
                  PathOf("y.yaml"),
                  " (document 2): error unmarshaling JSON: while decoding "
                  "JSON: json: cannot unmarshal string into")));
}

// Lines are those of the document, as the reference counts them.
TEST_F(LoaderTest, ErrorsOfYamlNameFileDocumentAndLine) {
  EXPECT_EQ(ErrorOf(LoadObject(Write("x.yaml", "a: 1\nb: [\n"))),
            absl::StrCat(PathOf("x.yaml"),
                         ": error converting YAML to JSON: yaml: line 2: did "
                         "not find expected node content"));
  EXPECT_EQ(
      ErrorOf(LoadObjects(Write("y.yaml", "a: 1\n---\nb: 2\n\tc: 3\n"))),
      absl::StrCat(PathOf("y.yaml"),
                   " (document 2): error converting YAML to JSON: yaml: line "
                   "2: found a tab character that violates indentation"));
  EXPECT_EQ(
      ErrorOf(LoadObjects(Write("z.yaml", "a: 1\n--- b\nc: 3\n"))),
      absl::StrCat(PathOf("z.yaml"), ": invalid Yaml document separator: b"));
}

TEST_F(LoaderTest, BytesThatAreNotUtf8AreAnError) {
  const std::string path = Write("x.yaml", "a: 1\nb: \xff\xfe\n");
  const std::string error = absl::StrCat(
      path,
      ": error converting YAML to JSON: yaml: invalid leading UTF-8 octet");
  EXPECT_EQ(ErrorOf(LoadObject(path)), error);
  EXPECT_EQ(ErrorOf(LoadObjects(path)), error);
}

TEST_F(LoaderTest, AMissingFileIsNotFound) {
  const std::string path = PathOf("none.yaml");
  for (const absl::Status& status :
       {LoadObject(path).status(), LoadObjects(path).status(),
        LoadResources({path}).status(), LoadComposite(path).status(),
        LoadComposition(path).status(), LoadFunctions(path, {}).status(),
        LoadSchemas(path).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("No such file or directory"));
  }
}

TEST_F(LoaderTest, ADirectoryInAFilesPlaceIsSaid) {
  fs::create_directory(PathOf("dir.yaml"));
  for (const absl::Status& status :
       {LoadObject(PathOf("dir.yaml")).status(),
        LoadComposite(PathOf("dir.yaml")).status(),
        LoadComposition(PathOf("dir.yaml")).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("is a directory, not a file"));
  }
}

TEST_F(LoaderTest, AnUnreadableFileIsSaid) {
  const std::string path = Write("x.yaml", "a: 1\n");
  fs::permissions(path, fs::perms::none);
  if (access(path.c_str(), R_OK) == 0) {
    GTEST_SKIP() << "this user may read everything";
  }
  EXPECT_THAT(ErrorOf(LoadObject(path)), HasSubstr("Permission denied"));
}

TEST_F(LoaderTest, AFileThatIsTooLargeIsSaid) {
  const std::string path = Write("x.yaml", "a: 1\n");
  fs::resize_file(path, kMaxLoadedBytes + 1);
  const auto loaded = LoadObject(path);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrorOf(loaded), absl::StrCat(path, ": is over 64 MiB"));
  EXPECT_EQ(ErrorOf(LoadObjects(path)), absl::StrCat(path, ": is over 64 MiB"));
}

// A device without an end stops where a file would be too large.
TEST_F(LoaderTest, ADeviceIsReadUpToTheLimit) {
  EXPECT_EQ(ErrorOf(LoadObject("/dev/zero")), "/dev/zero: is over 64 MiB");
}

TEST_F(LoaderTest, APipeThatIsNamedIsReadToItsEnd) {
  const std::string path = PathOf("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto writing = [&path](const std::string& text) {
    return std::thread([&path, text] { std::ofstream(path) << text; });
  };
  std::thread writer = writing(kComposite);
  const auto composite = LoadComposite(path);
  writer.join();
  ASSERT_TRUE(composite.ok()) << composite.status();
  EXPECT_EQ((*composite->object)["kind"], "XShop");

  writer = writing("name: 1\n---\nname: 2\n");
  const auto objects = LoadObjects(path);
  writer.join();
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_THAT(Names(*objects), ElementsAre("1", "2"));
}

TEST_F(LoaderTest, APipeInADirectoryIsNotWaitedFor) {
  fs::create_directory(PathOf("dir"));
  ASSERT_EQ(mkfifo(PathOf("dir/a.yaml").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo(PathOf("dir/a.json").c_str(), 0600), 0);
  EXPECT_EQ(ErrorOf(LoadObjects(PathOf("dir"))),
            absl::StrCat(PathOf("dir/a.yaml"), ": is not a regular file"));
  EXPECT_THAT(ErrorOf(LoadSchemas(PathOf("dir"))),
              HasSubstr("is not a regular file"));
}

TEST_F(LoaderTest, AllDocumentsOfAFileAreLoaded) {
  const std::string path =
      Write("x.yaml", "name: 1\n---\n---\nname: 2\n---  # three\nname: 3\n");
  const auto objects = LoadObjects(path);
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_THAT(Names(*objects), ElementsAre("1", "2", "3"));
  EXPECT_EQ((*objects)[2].where, absl::StrCat(path, " (document 3)"));
}

TEST_F(LoaderTest, AnEmptyFileHasNoDocuments) {
  const auto objects = LoadObjects(Write("x.yaml", ""));
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_THAT(*objects, IsEmpty());
}

TEST_F(LoaderTest, ADocumentOfCommentsIsAnEmptyObject) {
  const std::string path =
      Write("x.yaml", "# licence\n---\nkind: A\nname: 1\n");
  for (const auto& objects : {LoadObjects(path), LoadResources({path})}) {
    ASSERT_TRUE(objects.ok()) << objects.status();
    EXPECT_THAT(Names(*objects), ElementsAre("-", "1"));
    EXPECT_EQ(*(*objects)[0].object, text::Json::object());
  }
}

TEST_F(LoaderTest, OfADirectoryItsYamlFilesAreLoadedByName) {
  Write("dir/b.yaml", "name: 2\n---\nname: 3\n");
  Write("dir/a.yml", "name: 1\n");
  Write("dir/c.json", "{\"name\": 9}");
  Write("dir/d.yaml.bak", "name: 9\n");
  Write("dir/.e.yaml", "name: 0\n");
  Write("dir/sub/f.yaml", "name: 9\n");
  Write("dir/z.yaml/f.yaml", "name: 9\n");
  const auto objects = LoadObjects(PathOf("dir"));
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_THAT(Names(*objects), ElementsAre("0", "1", "2", "3"));
  EXPECT_EQ((*objects)[1].where, PathOf("dir/a.yml"));
  EXPECT_EQ((*objects)[3].where,
            absl::StrCat(PathOf("dir/b.yaml"), " (document 2)"));
}

TEST_F(LoaderTest, ADirectoryWithoutYamlFilesIsAnError) {
  Write("dir/sub/f.yaml", "name: 9\n");
  EXPECT_EQ(ErrorOf(LoadObjects(PathOf("dir"))),
            absl::StrCat("no YAML files found in \"", PathOf("dir"),
                         "\" (.yaml or .yml)"));
}

TEST_F(LoaderTest, ALinkInADirectoryIsFollowedToAFileOnly) {
  Write("real.yaml", "name: 1\n");
  fs::create_directory(PathOf("dir"));
  fs::create_symlink(PathOf("real.yaml"), PathOf("dir/a.yaml"));
  const auto objects = LoadObjects(PathOf("dir"));
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_THAT(Names(*objects), ElementsAre("1"));
  fs::create_directory_symlink(folder_, PathOf("dir/b.yaml"));
  EXPECT_EQ(ErrorOf(LoadObjects(PathOf("dir"))),
            absl::StrCat(PathOf("dir/b.yaml"), ": is a directory, not a file"));
}

TEST_F(LoaderTest, ResourcesOfSeveralPathsFollowEachOther) {
  const std::string one = Write("1.yaml", "kind: A\nname: 1\n");
  const std::string two = Write("2.yaml", "kind: A\nname: 2\n");
  const auto resources = LoadResources({two, one, two});
  ASSERT_TRUE(resources.ok()) << resources.status();
  EXPECT_THAT(Names(*resources), ElementsAre("2", "1", "2"));
}

TEST_F(LoaderTest, AResourceNeedsAKind) {
  for (const char* text :
       {R"({"apiVersion": "v1", "kind": ""})", R"({"kind": 1})", "{}",
        R"({"apiVersion": "a/b/c", "kind": "A"})"}) {
    const std::string path =
        Write("x.yaml", absl::StrCat("kind: A\n---\n", text, "\n"));
    EXPECT_THAT(ErrorOf(LoadResources({path})),
                StartsWith(absl::StrCat(
                    path,
                    " (document 2): error unmarshaling JSON: while decoding "
                    "JSON: Object 'Kind' is missing in '{")))
        << text;
  }
  EXPECT_EQ(ErrorOf(LoadResources({Write("y.yaml", "a: <\nb: 1\n")})),
            absl::StrCat(PathOf("y.yaml"),
                         ": error unmarshaling JSON: while decoding JSON: ",
                         R"(Object 'Kind' is missing in '{"a":"<","b":1}')"));
}

TEST_F(LoaderTest, AListIsNotUnpacked) {
  const auto resources = LoadResources(
      {Write("x.yaml", "kind: List\nname: 1\nitems: [{kind: A}]\n")});
  ASSERT_TRUE(resources.ok()) << resources.status();
  EXPECT_THAT(*resources, SizeIs(1));
}

TEST_F(LoaderTest, OnlyPartOfALargeObjectIsShown) {
  const std::string path = Write(
      "x.yaml", absl::StrCat("a: \"", std::string(999, 'x'), "\xc3\xa4\"\n"));
  EXPECT_THAT(ErrorOf(LoadResources({path})), SizeIs(::testing::Lt(1200)));
}

TEST_F(LoaderTest, ACompositeNeedsAKind) {
  const auto loaded = LoadComposite(Write("xr.yaml", kComposite));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded->object)["metadata"]["name"], "a");
  EXPECT_EQ(ErrorOf(LoadComposite(Write("no.yaml", "apiVersion: ex.org/v1\n"))),
            absl::StrCat(PathOf("no.yaml"),
                         ": cannot unmarshal composite resource YAML: error "
                         "unmarshaling JSON: while decoding JSON: Object "
                         "'Kind' is missing in "
                         "'{\"apiVersion\":\"ex.org/v1\"}'"));
}

TEST_F(LoaderTest, OperationsAreRefused) {
  const std::pair<const char*, const char*> kKinds[] = {
      {"Operation", "operation"},
      {"CronOperation", "cron operation"},
      {"WatchOperation", "watch operation"}};
  for (const auto& [kind, what] : kKinds) {
    // The mode is of a type that a Composition has not.
    const std::string path = Write(
        "operation.yaml",
        absl::StrCat("apiVersion: ops.crossplane.io/v1alpha1\nkind: ", kind,
                     "\nspec: {mode: {}}\n"));
    const std::string error =
        absl::StrCat(path, ": cannot render ", what,
                     ": not supported, fncache renders composite resources "
                     "only");
    EXPECT_EQ(ErrorOf(LoadComposite(path)), error);
    EXPECT_EQ(ErrorOf(LoadComposition(path)), error);
  }
  EXPECT_TRUE(LoadComposite(
                  Write("xr.yaml", "apiVersion: ex.org/v1\nkind: Operation\n"))
                  .ok());
}

TEST_F(LoaderTest, ACompositionIsOfItsKindAndGroup) {
  const auto loaded = LoadComposition(Write("c.yaml", kComposition));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const struct {
    const char* text;
    const char* what;
  } cases[] = {
      {kComposite, "XShop/a"},
      {"apiVersion: apiextensions.crossplane.io/v1\nkind: Other\n", "Other/"},
      {"apiVersion: apiextensions.crossplane.io/v1beta1\nkind: Composition\n"
       "metadata: {name: 7}\n",
       "Composition/7"},
      {"apiVersion: ex.org/v1\nkind: Composition\nmetadata: {name: c}\n",
       "Composition/c"},
      {"a: 1\n", "/"},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(
        ErrorOf(LoadComposition(Write("d.yaml", test.text))),
        absl::StrCat(PathOf("d.yaml"), ": not a composition: ", test.what));
  }
}

TEST_F(LoaderTest, ACompositionsWrongFieldIsNamed) {
  EXPECT_EQ(ErrorOf(LoadComposition(Write(
                "c.yaml",
                absl::StrCat(kComposition, "  - functionRef: {name: [f]}\n")))),
            absl::StrCat(PathOf("c.yaml"),
                         ": cannot unmarshal composition resource YAML: error "
                         "unmarshaling JSON: while decoding JSON: json: cannot "
                         "unmarshal array into Go struct field "
                         "FunctionReference.spec.pipeline.functionRef.name of "
                         "type string"));
}

TEST_F(LoaderTest, AMistypedOrMissingPipelineIsSaidWithItsFile) {
  const std::string mistyped =
      absl::StrReplaceAll(kComposition, {{"  pipeline:", "  pipelines:"}});
  EXPECT_EQ(ErrorOf(LoadComposition(Write("c.yaml", mistyped))),
            absl::StrCat(PathOf("c.yaml"),
                         ": spec.pipelines: a Composition has no such field; "
                         "did you mean pipeline?"));
  const std::string missing = mistyped.substr(0, mistyped.find("  pipelines:"));
  EXPECT_EQ(ErrorOf(LoadComposition(Write("c.yaml", missing))),
            absl::StrCat(PathOf("c.yaml"),
                         ": spec.pipeline: is missing, and nothing would be "
                         "composed without its steps; spec has "
                         "compositeTypeRef, mode"));
}

TEST_F(LoaderTest, TheCompositionMustBeForTheComposite) {
  const text::Json composition = Yaml(kComposition);
  EXPECT_TRUE(CheckComposition(composition, Yaml(kComposite)).ok());
  EXPECT_EQ(CheckComposition(composition,
                             Yaml("apiVersion: ex.org/v1\nkind: XCart\n"))
                .message(),
            "composition's compositeTypeRef.kind (XShop) does not match XR's "
            "kind (XCart)");
  EXPECT_EQ(CheckComposition(composition,
                             Yaml("apiVersion: ex.org/v2\nkind: XShop\n"))
                .message(),
            "composition's compositeTypeRef.apiVersion (ex.org/v1) does not "
            "match XR's apiVersion (ex.org/v2)");
  EXPECT_THAT(
      std::string(CheckComposition(composition,
                                   Yaml("apiVersion: ex.org/v2\nkind: XCart\n"))
                      .message()),
      HasSubstr("compositeTypeRef.kind"));
}

TEST_F(LoaderTest, TheCompositionMustHaveTheLabelsThatAreSelected) {
  const auto loaded = LoadComposition(Write("c.yaml", kComposition));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const text::Json composition = *loaded->object;
  const auto check = [&](const std::string& selector) {
    return std::string(
        CheckComposition(composition,
                         Yaml(absl::StrCat(kComposite, "spec: {crossplane: {",
                                           selector, "}}\n")))
            .message());
  };
  EXPECT_EQ(check("compositionSelector: {matchLabels: {tier: gold}}"), "");
  EXPECT_EQ(check("compositionSelector: {matchLabels: {size: '3'}}"), "");
  EXPECT_EQ(check("compositionSelector: {matchLabels: {}}"), "");
  EXPECT_EQ(check("compositionSelector: {matchLabels: {zone: eu}}"),
            "composition \"shop\" is missing required label \"zone\"");
  EXPECT_EQ(check("compositionSelector: {matchLabels: {tier: iron}}"),
            "composition \"shop\" has incorrect value for label \"tier\": want "
            "\"iron\", got \"gold\"");
  // A value that is no selector selects nothing.
  EXPECT_EQ(check("compositionSelector: {matchLabels: {tier: 1}}"), "");
  EXPECT_EQ(check("compositionSelector: [x]"), "");
}

// The reference command line takes every composite for a modern one.
TEST_F(LoaderTest, ALegacySelectorIsNotLookedAt) {
  EXPECT_TRUE(
      CheckComposition(Yaml(kComposition),
                       Yaml(absl::StrCat(kComposite,
                                         "spec: {compositionSelector: "
                                         "{matchLabels: {zone: eu}}}\n")))
          .ok());
}

TEST_F(LoaderTest, TheCompositionMustBeAPipeline) {
  text::Json composition = Yaml(kComposition);
  const char* error =
      "render only supports Composition Function pipelines: Composition "
      "\"shop\" must use spec.mode: Pipeline";
  for (const char* mode : {"Resources", "pipeline", ""}) {
    composition["spec"]["mode"] = mode;
    EXPECT_EQ(CheckComposition(composition, Yaml(kComposite)).message(), error);
  }
  composition["spec"].erase("mode");
  EXPECT_EQ(CheckComposition(composition, Yaml(kComposite)).message(), error);
  // The type is checked first.
  EXPECT_THAT(
      std::string(
          CheckComposition(composition, Yaml("kind: XCart\n")).message()),
      HasSubstr("compositeTypeRef.kind"));
}

std::vector<std::string> Targets(
    const absl::StatusOr<std::vector<client::FunctionTarget>>& functions) {
  EXPECT_TRUE(functions.ok()) << functions.status();
  std::vector<std::string> targets;
  if (!functions.ok()) return targets;
  for (const client::FunctionTarget& function : *functions) {
    targets.push_back(absl::StrCat(function.name, "=", function.target));
  }
  return targets;
}

TEST_F(LoaderTest, FunctionsAreWhereTheirAnnotationsSay) {
  const std::string path = Write(
      "f.yaml",
      absl::StrCat(
          FunctionYaml("a", Development("dns:///example.org:7443")), "---\n",
          FunctionYaml("b", "render.crossplane.io/runtime: Development"),
          "---\n",
          "apiVersion: pkg.crossplane.io/v1beta1\nkind: Function\nmetadata: "
          "{name: 3, annotations: {",
          Development(""), "}}\n"));
  EXPECT_THAT(Targets(LoadFunctions(path, {})),
              ElementsAre("3=localhost:9443", "a=dns:///example.org:7443",
                          "b=localhost:9443"));
}

TEST_F(LoaderTest, AnotherFunctionOfTheNameReplacesTheFirst) {
  const std::string path = Write(
      "f.yaml", absl::StrCat(FunctionYaml("a", Development("x:1")), "---\n",
                             FunctionYaml("a", Development("x:2")), "---\n"));
  EXPECT_THAT(Targets(LoadFunctions(path, {})), ElementsAre("a=x:2"));
}

TEST_F(LoaderTest, AnnotationsCanBeReplacedForAllFunctions) {
  const std::string path =
      Write("f.yaml", absl::StrCat(FunctionYaml("a", ""), "---\n",
                                   FunctionYaml("b", Development("x:1"))));
  EXPECT_THAT(
      Targets(LoadFunctions(
          path, {{"render.crossplane.io/runtime", "Development"},
                 {"render.crossplane.io/runtime-development-target", "y:1"},
                 {"render.crossplane.io/runtime-development-target", "y:2"}})),
      ElementsAre("a=y:2", "b=y:2"));
}

TEST_F(LoaderTest, AFunctionForDockerIsRefusedWithTheWayOut) {
  for (const char* annotations : {"", "render.crossplane.io/runtime: Docker"}) {
    const std::string path = Write("f.yaml", FunctionYaml("a", annotations));
    const std::string error = ErrorOf(LoadFunctions(path, {}));
    EXPECT_THAT(error, StartsWith(absl::StrCat(path, ": Function \"a\"")));
    EXPECT_THAT(error, HasSubstr("render.crossplane.io/runtime: Development"));
    EXPECT_THAT(error, HasSubstr("--function a=HOST:PORT"));
  }
}

TEST_F(LoaderTest, AGivenTargetNeedsNoAnnotation) {
  const std::string path = Write(
      "f.yaml", absl::StrCat(FunctionYaml("a", ""), "---\n",
                             FunctionYaml("b", Development("x:1")), "---\n",
                             FunctionYaml("c", Development("x:2"))));
  EXPECT_THAT(Targets(LoadFunctions(path, {},
                                    {{"a", "y:1"}, {"b", "y:2"}, {"d", "z"}})),
              ElementsAre("a=y:1", "b=y:2", "c=x:2", "d=z"));
}

TEST_F(LoaderTest, AnotherRuntimeIsRefused) {
  const std::string path = Write(
      "f.yaml", FunctionYaml("a", "render.crossplane.io/runtime: Podman"));
  EXPECT_EQ(ErrorOf(LoadFunctions(path, {})),
            absl::StrCat(path,
                         ": cannot get runtime for Function \"a\": "
                         "unsupported \"render.crossplane.io/runtime\" "
                         "annotation value \"Podman\" (unknown runtime)"));
}

TEST_F(LoaderTest, WhatIsNoFunctionIsRefused) {
  const std::string function = FunctionYaml("a", Development("x:1"));
  const std::string path = Write("f.yaml", kComposite);
  EXPECT_EQ(ErrorOf(LoadFunctions(path, {})),
            absl::StrCat(path, ": not a function: XShop/a"));
  // Comments only as well.
  Write("f.yaml", absl::StrCat("# licence\n---\n", function));
  EXPECT_EQ(ErrorOf(LoadFunctions(path, {})),
            absl::StrCat(path, " (document 1): not a function: /"));
  Write("f.yaml",
        absl::StrReplaceAll(function, {{"crossplane.io/v1", "x/v1"}}));
  EXPECT_THAT(ErrorOf(LoadFunctions(path, {})),
              HasSubstr("not a function: Function/a"));
}

TEST_F(LoaderTest, SecretsAreOfTheirForm) {
  const auto secrets = LoadSecrets(
      Write("s.yaml", "metadata: {name: 1e6}\nstringData: {a: 010}\nx: y\n"));
  ASSERT_TRUE(secrets.ok()) << secrets.status();
  EXPECT_EQ(secrets->at(0).object->dump(),
            R"({"metadata":{"name":"1e+06"},"stringData":{"a":"8"}})");
  EXPECT_EQ(ErrorOf(LoadSecrets(Write("t.yaml", "data: {a: '?'}\n"))),
            absl::StrCat(PathOf("t.yaml"),
                         ": cannot parse YAML secret manifest: error "
                         "unmarshaling JSON: while decoding JSON: illegal "
                         "base64 data at input byte 0"));
}

TEST_F(LoaderTest, SchemasAreLoadedInTheOrderOfAWalk) {
  for (const char* name : {"b.json", "a.json", "a/z.json", "a/b/c.json",
                           ".hidden/x.json", "c/.json"}) {
    Write(absl::StrCat("s/", name), absl::StrCat("{\"name\": \"", name, "\"}"));
  }
  Write("s/ignored.yaml", "]");
  const auto schemas = LoadSchemas(PathOf("s"));
  ASSERT_TRUE(schemas.ok()) << schemas.status();
  std::vector<std::string> names;
  for (const text::Json& schema : *schemas) names.push_back(schema["name"]);
  EXPECT_THAT(names, ElementsAre(".hidden/x.json", "a/b/c.json", "a/z.json",
                                 "a.json", "b.json", "c/.json"));
}

TEST_F(LoaderTest, LinksAmongSchemasEnd) {
  Write("s/a.json", "{\"name\": 1}");
  fs::create_directory_symlink(PathOf("s"), PathOf("s/loop"));
  fs::create_symlink(PathOf("s/a.json"), PathOf("s/b.json"));
  const auto schemas = LoadSchemas(PathOf("s"));
  ASSERT_TRUE(schemas.ok()) << schemas.status();
  EXPECT_THAT(*schemas, SizeIs(2));
  fs::create_symlink("c.json", PathOf("s/c.json"));
  EXPECT_THAT(ErrorOf(LoadSchemas(PathOf("s"))), HasSubstr("s/c.json"));
}

TEST_F(LoaderTest, SchemasAreWholeJsonObjects) {
  Write("s/a.json", "{\"a\": ");
  EXPECT_THAT(ErrorOf(LoadSchemas(PathOf("s"))),
              StartsWith(absl::StrCat("cannot parse OpenAPI JSON from \"",
                                      PathOf("s/a.json"), "\": ")));
  Write("s/a.json", "[]");
  EXPECT_THAT(ErrorOf(LoadSchemas(PathOf("s"))),
              HasSubstr("is a list, not an object"));
}

TEST_F(LoaderTest, ADirectoryWithoutSchemasIsAnError) {
  Write("s/a.yaml", "a: 1\n");
  EXPECT_EQ(ErrorOf(LoadSchemas(PathOf("s"))),
            absl::StrCat("no JSON files found in \"", PathOf("s"), "\""));
}

// Every file of the cases that the real command line rendered.
TEST_F(LoaderTest, TheInputsOfRealPipelinesLoad) {
  int cases = 0;
  for (const fs::path& root :
       ::fncache::testing::DataFolders({"recorded", "examples"})) {
    for (const auto& folder : fs::directory_iterator(root)) {
      SCOPED_TRACE(folder.path().string());
      ++cases;
      const auto composite =
          LoadComposite((folder.path() / "xr.yaml").string());
      ASSERT_TRUE(composite.ok()) << composite.status();
      const auto composition =
          LoadComposition((folder.path() / "composition.yaml").string());
      ASSERT_TRUE(composition.ok()) << composition.status();
      const absl::Status checked =
          CheckComposition(*composition->object, *composite->object);
      EXPECT_TRUE(checked.ok()) << checked;
      const auto parsed =
          engine::ParseComposition(text::ToStruct(*composition->object));
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_THAT(parsed->steps, Not(IsEmpty()));
      std::ifstream args(folder.path() / "args");
      std::string option, arg;
      while (args >> arg) {
        if (absl::StartsWith(arg, "-")) {
          option = arg;
          continue;
        }
        const std::string path = (folder.path() / arg).string();
        if (option == "-o" || option == "-e") {
          const auto resources = LoadResources({path});
          ASSERT_TRUE(resources.ok()) << resources.status();
          EXPECT_THAT(*resources, Not(IsEmpty())) << arg;
        } else if (option == "--function-credentials") {
          const auto secrets = LoadSecrets(path);
          ASSERT_TRUE(secrets.ok()) << secrets.status();
          EXPECT_THAT(*secrets, Not(IsEmpty()));
        }
      }
    }
  }
  if (cases == 0) GTEST_SKIP() << "none is here";
  for (const fs::path& folder : ::fncache::testing::DataFolders({"openapi"})) {
    const auto schemas = LoadSchemas(folder.string());
    ASSERT_TRUE(schemas.ok()) << schemas.status();
    EXPECT_THAT(*schemas, Not(IsEmpty()));
  }
}

}  // namespace
}  // namespace fncache::runner::render
