// SPDX-License-Identifier: Apache-2.0
// `fncache internal render`, run as Crossplane's command line runs its engine:
// a RenderRequest on standard input, functions on loopback.

#include "tests/integration/internal_render.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/render.pb.h"
#include "tests/common/test_data.h"
#include "tests/integration/process.h"
#include "text/json.h"
#include "text/kubernetes_yaml.h"

namespace fncache::testing {
namespace {

namespace fs = std::filesystem;
using crossplane::render::v1alpha1::CompositeInput;
using crossplane::render::v1alpha1::RenderRequest;
using crossplane::render::v1alpha1::RenderResponse;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using text::FromStruct;
using text::Json;
using text::ToStruct;

std::string Error(absl::string_view message) {
  return absl::StrCat("crossplane: error: ", message, "\n");
}

// A request of one step, which calls `fn` at `address`.
RenderRequest Request(const std::string& address) {
  const auto parse = [](absl::string_view text) {
    return ToStruct(*text::ParseJson(text));
  };
  RenderRequest request;
  request.mutable_meta();
  CompositeInput* const input = request.mutable_composite();
  *input->mutable_composite_resource() = parse(
      R"({"apiVersion": "ex.org/v1", "kind": "XR", "metadata": {"name": "a"}})");
  *input->mutable_composition() = parse(
      R"({"apiVersion": "apiextensions.crossplane.io/v1",
          "kind": "Composition", "metadata": {"name": "xrs"},
          "spec": {"compositeTypeRef": {"apiVersion": "ex.org/v1",
                                        "kind": "XR"},
                   "pipeline": [{"step": "one",
                                 "functionRef": {"name": "fn"}}]}})");
  if (!address.empty()) {
    auto* const function = input->add_functions();
    function->set_name("fn");
    function->set_address(address);
  }
  return request;
}

// A function process; `args` besides where it listens.
class FunctionProcess {
 public:
  explicit FunctionProcess(std::vector<std::string> args)
      : process_(WithListen(std::move(args))) {
    EXPECT_TRUE(process_.WaitForStderr("listening on "));
  }
  std::string address() const { return process_.Listening().at(0); }

 private:
  static std::vector<std::string> WithListen(std::vector<std::string> args) {
    args.insert(args.begin(),
                {"function", "--insecure", "--listen", "127.0.0.1:0"});
    return args;
  }
  Process process_;
};

constexpr char kReconcile[] =
    "cannot render composite resource: reconcile failed: cannot compose "
    "resources: cannot run Composition pipeline step \"one\": ";

TEST(InternalRenderTest, RendersWithMetaSetAndNothingOnStderr) {
  const FunctionProcess function({});
  const Ended ended = InternalRender(Request(function.address()));
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.err, "");
  RenderResponse response;
  ASSERT_TRUE(response.ParseFromString(ended.out));
  EXPECT_TRUE(response.has_meta());
  EXPECT_EQ(response.composite()
                .composite_resource()
                .fields()
                .at("kind")
                .string_value(),
            "XR");
}

TEST(InternalRenderTest, FatalResultIsExitCodeThreeWithPartOfTheOutput) {
  const FunctionProcess function({"--fatal=this cannot be"});
  const Ended ended = InternalRender(Request(function.address()));
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(ended.err,
            Error("cannot render composite resource: cannot compose resources: "
                  "pipeline step \"one\" returned a fatal result: this cannot "
                  "be"));
  RenderResponse response;
  ASSERT_TRUE(response.ParseFromString(ended.out));
  EXPECT_TRUE(response.has_meta());
  EXPECT_TRUE(response.composite().has_composite_resource());
}

TEST(InternalRenderTest, NothingThatATerminalObeysIsPrinted) {
  const FunctionProcess function(
      {"--fatal=a\033[31m\rb\n\007\xc2\x9b\xe2\x80\xae"
       "c"});
  const Ended ended = InternalRender(Request(function.address()));
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(ended.err,
            Error("cannot render composite resource: cannot compose resources: "
                  "pipeline step \"one\" returned a fatal result: "
                  "a\\x1b[31m\\rb\n"
                  "                   \\x07\\xc2\\x9b\\u202ec"));
}

TEST(InternalRenderTest, FailingFunctionIsExitCodeOneWithNothingOnStdout) {
  const FunctionProcess function({"--fail-rate", "1"});
  const Ended ended = InternalRender(Request(function.address()));
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.err,
            Error(absl::StrCat(kReconcile,
                               "rpc error: code = Unavailable desc = this call "
                               "fails, as --fail-rate asks")));
}

// Renders with a time limit, once the error has `words`: a process that a busy
// machine delays gets a longer one.
Ended RenderUntilItSays(const RenderRequest& request,
                        const std::string& words) {
  Ended ended;
  for (const char* time : {"500ms", "5s", "30s"}) {
    ended = InternalRender(request, absl::StrCat("--timeout ", time));
    if (absl::StrContains(ended.err, words)) break;
  }
  return ended;
}

TEST(InternalRenderTest, SlowFunctionEndsWithTheTimeout) {
  const FunctionProcess function({"--cost", "sleep=1h"});
  const Ended ended = RenderUntilItSays(Request(function.address()),
                                        "context deadline exceeded\n");
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.err, Error(absl::StrCat(
                           kReconcile,
                           "rpc error: code = DeadlineExceeded desc = context "
                           "deadline exceeded")));
}

TEST(InternalRenderTest, FunctionThatStaysDownIsNamed) {
  // Port 1 of loopback: nothing that tests start listens there.
  const Ended ended =
      RenderUntilItSays(Request("127.0.0.1:1"), "dial tcp 127.0.0.1:1");
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(ended.err, StartsWith(Error(kReconcile).substr(0, 80)));
  EXPECT_THAT(ended.err, HasSubstr("dial tcp 127.0.0.1:1: connect: "));
}

TEST(InternalRenderTest, FunctionThatIsNotListedIsNamed) {
  const Ended ended = InternalRender(Request(""));
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(ended.err,
            Error(absl::StrCat(kReconcile,
                               "unknown function \"fn\" - is it listed in the "
                               "render input?")));
}

TEST(InternalRenderTest, OperationsAreRefused) {
  RenderRequest request;
  request.mutable_operation();
  const Ended ended = InternalRender(request);
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.err,
            Error("cannot render operation: not supported, fncache renders "
                  "composite resources only"));
}

TEST(InternalRenderTest, InputThatIsNoRequestIsExitCodeOne) {
  const struct {
    std::string input;
    const char* error;
  } kCases[] = {
      {"", "render request must set exactly one of: "},
      {"no request\n", "cannot unmarshal render request: "},
      {std::string(1 << 20, '\xff'), "cannot unmarshal render request: "}};
  for (const auto& one : kCases) {
    const Ended ended = Shell("exec \"$0\" internal render <\"$1\"", one.input);
    EXPECT_EQ(ended.exit_code, 1);
    EXPECT_EQ(ended.out, "");
    EXPECT_THAT(ended.err,
                StartsWith(absl::StrCat("crossplane: error: ", one.error)));
  }
}

TEST(InternalRenderTest, BadUsageIsExitCodeEighty) {
  const struct {
    const char* arguments;
    const char* error;
  } kCases[] = {
      {"", "expected \"render\""},
      {"paint", "unexpected argument paint"},
      {"render twice", "unexpected argument twice"},
      {"render --colour", "unknown flag --colour"},
      {"render --timeout", "--timeout: missing value"},
      {"render --timeout=soon", "--timeout: expected duration but got"},
      {"render --timeout=-1s", "--timeout: expected duration but got"},
      {"render --timeouts=1s", "unknown flag --timeouts=1s"}};
  for (const auto& one : kCases) {
    const Ended ended =
        Shell(absl::StrCat("exec \"$0\" internal ", one.arguments, " <\"$1\""));
    EXPECT_EQ(ended.exit_code, 80) << one.arguments;
    EXPECT_EQ(ended.out, "");
    EXPECT_THAT(ended.err,
                StartsWith(absl::StrCat("crossplane: error: ", one.error)));
  }
}

TEST(InternalRenderTest, HelpSaysWhatItIsFor) {
  const Ended ended = Shell("exec \"$0\" internal render --help");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.out, HasSubstr("--crossplane-binary fncache"));
}

TEST(InternalRenderTest, ClosedStandardStreamsAreErrors) {
  const FunctionProcess function({});
  const std::string request = Request(function.address()).SerializeAsString();
  Ended ended = Shell("exec \"$0\" internal render <\"$1\" >&-", request);
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("stdout is closed"));
  ended = Shell("exec \"$0\" internal render <&-", request);
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(ended.err, HasSubstr("cannot read render request from stdin"));
  // Nor does a closed stderr bring anything into the response.
  ended = Shell("exec \"$0\" internal render <\"$1\" 2>&-", request);
  EXPECT_EQ(ended.exit_code, 0);
  RenderResponse response;
  EXPECT_TRUE(response.ParseFromString(ended.out));
  EXPECT_TRUE(response.has_composite());
}

TEST(InternalRenderTest, ReaderThatHasGoneIsAnError) {
  const FunctionProcess function({});
  const std::string request = Request(function.address()).SerializeAsString();
  // A named pipe of which the reading end is gone before anything is written.
  const Ended ended = Shell(
      "p=\"$1.pipe\"; mkfifo \"$p\"; exec 7<>\"$p\" 8>\"$p\" 7>&-; "
      "\"$0\" internal render <\"$1\" >&8",
      request);
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err,
              HasSubstr("cannot write render response: Broken pipe"));
}

TEST(InternalRenderTest, FullDiskIsAnError) {
  const FunctionProcess function({});
  const Ended ended = Shell("exec \"$0\" internal render <\"$1\" >/dev/full",
                            Request(function.address()).SerializeAsString());
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("cannot write render response: No space"));
}

// Recorded cases that hold what was rendered, not only the calls.
std::vector<fs::path> Cases() {
  std::vector<fs::path> cases;
  for (const fs::path& folder : {OwnRecordings(), DataFolder() / "recorded"}) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
      if (fs::exists(entry.path() / "want.rc")) cases.push_back(entry.path());
    }
  }
  return cases;
}

// Each a type, a reason and a message.
using Events = std::multiset<std::tuple<std::string, std::string, std::string>>;

// Holds what the engine must have given, as a case's want.yaml says.
struct Wanted {
  Json composite;
  std::multiset<std::string> composed;
  Events events;
};

Wanted ReadWanted(const fs::path& file) {
  Wanted wanted;
  const auto documents = text::SplitYamlDocuments(ReadAll(file));
  EXPECT_TRUE(documents.ok()) << documents.status();
  for (const auto& document : *documents) {
    const Json json = *text::ParseKubernetesYaml(document);
    if (wanted.composite.is_null()) {
      wanted.composite = json;
    } else if (json["apiVersion"] != "render.crossplane.io/v1beta1") {
      wanted.composed.insert(json.dump());
    } else if (json["kind"] == "Result") {
      wanted.events.emplace(json["severity"].get<std::string>(),
                            json["reason"].get<std::string>(),
                            json["message"].get<std::string>());
    }
  }
  return wanted;
}

TEST(InternalRenderTest, RecordedCasesGiveWhatTheReferenceEngineGave) {
  const std::vector<fs::path> cases = Cases();
  if (cases.empty()) GTEST_SKIP() << "no recorded cases with their outcome";
  for (const fs::path& folder : cases) {
    SCOPED_TRACE(folder.string());
    const FunctionProcess function(
        {"--recorded", (folder / "calls").string(), "--mask",
         "observed.composite.resource.status.conditions.*.lastTransitionTime"});
    const Ended ended = InternalRender(CaseRequest(
        folder, [&](const std::string&) { return function.address(); }));
    RenderResponse response;
    ASSERT_TRUE(response.ParseFromString(ended.out));
    EXPECT_TRUE(response.has_meta());
    if (absl::StartsWith(ReadAll(folder / "want.rc"), "1")) {
      EXPECT_EQ(ended.exit_code, 3);
      EXPECT_THAT(ReadAll(folder / "want.err"), EndsWith(ended.err));
      continue;
    }
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    const Wanted wanted = ReadWanted(folder / "want.yaml");
    // These were printed with -x, thus merged into what was rendered.
    Json composite = LoadFile(folder / "xr.yaml");
    text::MergeInto(&composite,
                    FromStruct(response.composite().composite_resource()));
    FixTimes(&composite);
    EXPECT_EQ(composite.dump(), wanted.composite.dump());
    std::multiset<std::string> composed;
    for (const auto& resource : response.composite().composed_resources()) {
      Json json = FromStruct(resource);
      FixTimes(&json);
      composed.insert(json.dump());
    }
    EXPECT_EQ(composed, wanted.composed);
    Events events;
    for (const auto& event : response.composite().events()) {
      events.emplace(event.type(), event.reason(), event.message());
    }
    EXPECT_EQ(events, wanted.events);
  }
}

}  // namespace
}  // namespace fncache::testing
