// SPDX-License-Identifier: Apache-2.0
// fncache explain and fncache replay --info on what is no trace, half of one,
// or not what they were meant for: they say which input, and never crash.
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "insight/trace/block.h"
#include "insight/trace/ring.h"
#include "insight/trace/writer.h"
#include "nlohmann/json.hpp"
#include "proto/function_v1.pb.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

namespace fs = std::filesystem;
namespace trace = insight::trace;
using apiextensions::fn::proto::v1::RunFunctionRequest;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Texts = std::vector<std::string>;

constexpr int kCalls = 6;

RunFunctionRequest Request(int version) {
  RunFunctionRequest request;
  auto& fields = *request.mutable_observed()
                      ->mutable_composite()
                      ->mutable_resource()
                      ->mutable_fields();
  fields["kind"].set_string_value("XApp");
  auto& metadata = *fields["metadata"].mutable_struct_value()->mutable_fields();
  metadata["name"].set_string_value("a");
  metadata["resourceVersion"].set_string_value(absl::StrCat(version));
  return request;
}

// A trace of kCalls misses, of which each but the first changed, one a block.
void WriteTrace(const std::string& dir) {
  trace::TraceOptions options;
  options.dir = dir;
  options.level = trace::Level::kPaths;
  options.writer = "serve";
  auto writer = trace::TraceWriter::Create(options);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (int i = 0; i < kCalls; ++i) {
    trace::TracedCall call;
    call.arrived = absl::FromUnixSeconds(1'800'000'000 + i);
    call.function = "f";
    call.outcome = trace::Outcome::kMiss;
    call.reason = i == 0 ? trace::Reason::kNew : trace::Reason::kChanged;
    call.key = cache::key::Key{7, static_cast<uint64_t>(i)};
    call.function_ttl = call.told_ttl = call.lifetime = absl::Hours(1);
    call.stored = true;
    call.cost = absl::Milliseconds(3);
    trace::TraceWriter::Messages messages;
    messages.request = [bytes = Request(i).SerializeAsString()] {
      return bytes;
    };
    (*writer)->Write(trace::TracedCall(call), std::move(messages));
    ASSERT_TRUE((*writer)->Flush().ok());
  }
}

class TraceInputTest : public ::testing::Test {
 protected:
  struct Ended {
    int code;
    std::string output;
    std::string error;
  };
  static Ended Run(const Texts& arguments) {
    Process process(arguments);
    Ended ended;
    ended.code = process.Wait();
    ended.output = process.Stdout();
    ended.error = process.Stderr();
    return ended;
  }
  static Ended Explain(Texts arguments) {
    arguments.insert(arguments.begin(), "explain");
    return Run(arguments);
  }
  static Ended Info(const std::string& input) {
    return Run({"replay", input, "--info"});
  }

  // The only file of a trace.
  std::string TraceFile() {
    WriteTrace(dir_.File("t"));
    const auto files = trace::TraceFiles(dir_.File("t"));
    EXPECT_TRUE(files.ok());
    EXPECT_THAT(*files, SizeIs(1));
    return files->front();
  }

  const TempDir dir_;
};

TEST_F(TraceInputTest, WhatIsNoTraceIsRefusedByItsName) {
  std::mt19937_64 random(7);
  std::string garbage;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&garbage, random());
  fs::create_directory(dir_.File("empty"));
  fs::create_directory(dir_.File("others"));
  WriteFile(dir_.File("others/readme.txt"), "text");
  WriteFile(dir_.File("others/fncache-a.trace"), "text");
  fs::create_directory(dir_.File("ring"));
  WriteFile(dir_.File("ring/fncache-000001.trace"), "");
  WriteFile(dir_.File("ring/fncache-000002.trace"), garbage);
  WriteFile(dir_.File("nothing"), "");
  WriteFile(dir_.File("garbage"), garbage);
  WriteFile(dir_.File("beginning"), "fnctrc");
  WriteFile(dir_.File("later"), "fnctrc\x02\nmore");
  const struct {
    const char* input;
    const char* why;
  } kRefused[] = {
      {"empty", "holds no trace"},
      {"others", "holds no trace"},
      {"ring", "fncache-000001.trace: is no trace"},
      {"nothing", "is no trace"},
      {"garbage", "is no trace"},
      {"beginning", "is no trace"},
      {"later", "a later fncache writes"},
      {"none", "no such file or folder"},
  };
  for (const auto& refused : kRefused) {
    const std::string input = dir_.File(refused.input);
    SCOPED_TRACE(input);
    for (const Texts& command :
         {Texts{"explain", input}, Texts{"explain", input, "--json"},
          Texts{"replay", input, "--info"}, Texts{"replay", input}}) {
      const Ended ended = Run(command);
      EXPECT_EQ(ended.code, 1);
      EXPECT_THAT(ended.error, AllOf(StartsWith("fncache " + command[0] + ": "),
                                     HasSubstr(input), HasSubstr(refused.why)));
      EXPECT_THAT(ended.output, IsEmpty());
    }
  }
}

// Cut off or damaged anywhere, a trace is what is whole of it.
TEST_F(TraceInputTest, WhatIsWholeOfATraceIsReadAndTheRestIsTold) {
  const std::string bytes = ReadFile(TraceFile());
  const std::string input = dir_.File("cut");
  size_t at = trace::kFileMagic.size();
  std::string block;
  std::vector<size_t> ends = {at};
  while (trace::ReadBlock(bytes, &at, &block) == trace::BlockRead::kRead) {
    ends.push_back(at);
  }
  // The header, and one for each call.
  ASSERT_THAT(ends, SizeIs(2 + kCalls));

  // Only the file's first bytes.
  WriteFile(input, bytes.substr(0, ends[0]));
  Ended ended = Info(input);
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(
      ended.output,
      "its beginning is lost: its writer is unknown\nit holds no calls\n");
  // A header, and no call.
  WriteFile(input, bytes.substr(0, ends[1]));
  ended = Info(input);
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output, AllOf(StartsWith("written by fncache serve "),
                                  EndsWith("it holds no calls\n")));
  ended = Explain({input});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.error, "fncache explain: " + input + ": holds no calls\n");

  for (const size_t size : {ends[4], ends[4] + 1, ends[5] - 1}) {
    WriteFile(input, bytes.substr(0, size));
    ended = Info(input);
    EXPECT_EQ(ended.code, 0) << ended.error;
    EXPECT_THAT(ended.output, HasSubstr(": 3 calls for 1 composite\n"));
    EXPECT_EQ(absl::StrContains(ended.output, "damaged"), size != ends[4]);
    ended = Explain({input, "--json"});
    EXPECT_EQ(ended.code, 0) << ended.error;
    EXPECT_EQ(json::parse(ended.output)["misses"], 3);
  }
  for (size_t i = ends[0]; i < bytes.size(); i += bytes.size() / 20) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    WriteFile(input, damaged);
    ended = Info(input);
    EXPECT_EQ(ended.code, 0) << "byte " << i << ": " << ended.error;
    EXPECT_THAT(ended.output, HasSubstr("damaged"));
    EXPECT_EQ(Explain({input}).code, 0) << "byte " << i;
  }
}

TEST_F(TraceInputTest, CallsThatNobodyMadeAreNamed) {
  const std::string input = TraceFile();
  const struct {
    Texts flags;
    const char* says;
  } kNone[] = {
      {{"--function", "other"}, ": holds no calls of function other\n"},
      {{"--xr", "ns/b"}, ": holds no calls for composite ns/b\n"},
      {{"--phase", "settle", "--function", "f"},
       ": holds no calls of function f of phase settle\n"},
  };
  for (const auto& none : kNone) {
    Texts arguments = none.flags;
    arguments.push_back(input);
    const Ended ended = Explain(arguments);
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.error, AllOf(HasSubstr(input), EndsWith(none.says)));
  }
}

TEST_F(TraceInputTest, TheLastZeroMissesAreAllOfThem) {
  const std::string input = TraceFile();
  const auto counted = [&](const char* last) {
    const Ended ended = Explain({input, "--json", "--last", last});
    EXPECT_EQ(ended.code, 0) << ended.error;
    uint64_t misses = 0;
    const json told = json::parse(ended.output);
    for (const json& reason : told["reasons"]) {
      misses += reason["misses"].get<uint64_t>();
    }
    return misses;
  };
  EXPECT_EQ(counted("0"), kCalls);
  EXPECT_EQ(counted("2"), 2);
  EXPECT_EQ(counted("1000000"), kCalls);
  for (const char* const wrong : {"-1", "few", "1.5", ""}) {
    const Ended ended = Explain({input, "--last", wrong});
    EXPECT_EQ(ended.code, 2) << wrong;
    EXPECT_THAT(ended.error, HasSubstr("--last")) << wrong;
  }
}

TEST_F(TraceInputTest, TwoRequestsAreComparedAndOneIsNoTrace) {
  const std::string a = dir_.File("a.binpb"), b = dir_.File("b.binpb"),
                    text = dir_.File("text");
  WriteFile(a, Request(1).SerializeAsString());
  WriteFile(b, Request(2).SerializeAsString());
  WriteFile(text, "no request");
  Ended ended = Explain({a, b});
  EXPECT_EQ(ended.code, 0) << ended.error;
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("1 difference:"), HasSubstr("resourceVersion")));
  ended = Explain({a, a});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output, HasSubstr("their keys are equal"));
  // The command needs two requests.
  ended = Explain({a});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.error, AllOf(HasSubstr(a), HasSubstr("two requests")));
  for (const std::string& wrong :
       {text, dir_.File("none"), dir_.path(), TraceFile()}) {
    for (const Texts& files : {Texts{a, wrong}, Texts{wrong, a}}) {
      ended = Explain(files);
      EXPECT_EQ(ended.code, 1) << wrong;
      EXPECT_THAT(ended.error, HasSubstr(wrong + ": "));
      EXPECT_THAT(ended.output, IsEmpty());
    }
  }
  EXPECT_EQ(Explain({a, b, a}).code, 2);
  EXPECT_EQ(Explain({}).code, 2);
}

}  // namespace
}  // namespace fncache::testing
