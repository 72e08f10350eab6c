// SPDX-License-Identifier: Apache-2.0
#include "runner/function/recordings.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"
#include "tests/common/test_data.h"
#include "tests/runner/function/respond.h"
#include "tests/runner/messages.h"

namespace fncache::runner::function {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class RecordingsTest : public ::testing::Test {
 protected:
  void Write(const std::string& file, const std::string& bytes) {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file, std::ios::binary) << bytes;
  }

  void Record(const std::string& name, const RunFunctionRequest& request,
              const RunFunctionResponse& response) {
    Write(name + ".req.bin", request.SerializeAsString());
    Write(name + ".rsp.bin", response.SerializeAsString());
  }
  void Record(const std::string& name, absl::string_view request,
              absl::string_view response) {
    Record(name, FromJson<RunFunctionRequest>(request),
           FromJson<RunFunctionResponse>(response));
  }

  absl::Status TryLoad(const std::vector<std::string>& masks = {},
                       absl::optional<absl::Duration> ttl = absl::nullopt) {
    const auto set =
        cache::key::MaskSet::Parse(masks, cache::key::MaskRules::kAnyPath);
    if (!set.ok()) return set.status();
    auto loaded = Recordings::Load({folder_.string()}, *set, ttl);
    if (!loaded.ok()) return loaded.status();
    recordings_ = *std::move(loaded);
    return absl::OkStatus();
  }

  // The answer; its status is in status_, what was printed in printed_.
  RunFunctionResponse Respond(const RunFunctionRequest& request) {
    ::testing::internal::CaptureStderr();
    auto response = TryRespond(recordings_->Function(), request);
    printed_ = ::testing::internal::GetCapturedStderr();
    status_ = response.status();
    return response.ok() ? *std::move(response) : RunFunctionResponse();
  }
  RunFunctionResponse Respond(absl::string_view request) {
    return Respond(FromJson<RunFunctionRequest>(request));
  }

  const ::fncache::testing::TempDir temp_;
  const fs::path folder_ = temp_.path();
  std::unique_ptr<Recordings> recordings_;
  absl::Status status_;
  std::string printed_;
};

TEST_F(RecordingsTest, EqualRequestGetsTheAnswerUnderItsOwnTag) {
  Record("a/b/one", R"({"meta": {"tag": "x"}, "context": {"k": 1}})",
         R"({"meta": {"tag": "x", "ttl": "7s"}, "context": {"r": 1}})");
  ASSERT_EQ(TryLoad(), absl::OkStatus());
  ExpectJson(Respond(R"({"meta": {"tag": "y"}, "context": {"k": 1}})"),
             R"({"meta": {"tag": "y", "ttl": "7s"}, "context": {"r": 1}})");
  EXPECT_EQ(status_, absl::OkStatus());
  EXPECT_EQ(printed_, "");
}

TEST_F(RecordingsTest, TtlReplacesTheRecordedOne) {
  Record("one", "{}", R"({"meta": {"ttl": "7s"}})");
  ASSERT_EQ(TryLoad({}, absl::Seconds(3)), absl::OkStatus());
  ExpectJson(Respond("{}"), R"({"meta": {"ttl": "3s"}})");
}

TEST_F(RecordingsTest, OtherRequestFailsAndIsComparedWithTheNearest) {
  Record("near", R"({"context": {"a": 1, "b": ["x"], "c": {"d": "text"}}})",
         "{}");
  Record("far", R"({"context": {"z": 1}, "input": {"q": true}})", "{}");
  ASSERT_EQ(TryLoad(), absl::OkStatus());
  Respond(R"({"context": {"a": 2, "b": ["x", null], "c": {"d": "text"}}})");
  EXPECT_EQ(status_.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status_.message()),
              HasSubstr("near.req.bin with 2 differences"));
  EXPECT_THAT(printed_, HasSubstr("  context.a\n"
                                  "    recorded: 1\n"
                                  "    sent:     2\n"
                                  "  context.b[1]\n"
                                  "    recorded: (absent)\n"
                                  "    sent:     null\n"));
  EXPECT_THAT(printed_, Not(HasSubstr("context.c")));
}

// docs/function.md shows it.
TEST_F(RecordingsTest, WhatIsPrintedIsTheDocumentsExample) {
  const auto request = [](absl::string_view version) {
    return FromJson<RunFunctionRequest>(
        absl::StrCat(R"({"observed": {"composite": {"resource": {"metadata": )"
                     R"({"name": "x", "resourceVersion": ")",
                     version, R"("}}}}})"));
  };
  Record("calls/gt-29", request("1041"), RunFunctionResponse());
  ASSERT_EQ(TryLoad(), absl::OkStatus());
  Respond(request("1042"));
  std::ifstream in(FNCACHE_SOURCE_DIR "/docs/function.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const std::string shown = absl::StrReplaceAll(
      printed_, {{absl::StrCat(folder_.string(), "/"), ""}});
  EXPECT_THAT(page, HasSubstr(absl::StrCat("\n", shown, "```\n")));
}

TEST_F(RecordingsTest, MaskedPathsAreNotCompared) {
  Record("one", R"({"context": {"a": 1, "t": "now"}, "input": {"i": 1}})",
         "{}");
  ASSERT_EQ(TryLoad({"context.t", "input"}), absl::OkStatus());
  Respond(R"({"context": {"a": 1, "t": "later"}})");
  EXPECT_EQ(status_, absl::OkStatus()) << printed_;
  Respond(R"({"context": {"a": 2, "t": "now"}})");
  EXPECT_EQ(status_.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(printed_, Not(HasSubstr("context.t")));
}

TEST_F(RecordingsTest, AbsentAndEmptyAreNotTheSame) {
  Record("one", R"({"context": {}})", "{}");
  ASSERT_EQ(TryLoad(), absl::OkStatus());
  Respond("{}");
  EXPECT_EQ(status_.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(printed_, HasSubstr("  context\n    recorded: {}\n"
                                  "    sent:     (absent)\n"));
}

TEST_F(RecordingsTest, DoublesAreComparedByTheirBits) {
  RunFunctionRequest request;
  auto& number = (*request.mutable_context()->mutable_fields())["n"];
  number.set_number_value(std::numeric_limits<double>::quiet_NaN());
  Record("nan", request, {});
  number.set_number_value(0.0);
  Record("zero", request, {});
  ASSERT_EQ(TryLoad(), absl::OkStatus());
  number.set_number_value(std::numeric_limits<double>::quiet_NaN());
  Respond(request);
  EXPECT_EQ(status_, absl::OkStatus()) << printed_;
  number.set_number_value(-0.0);
  Respond(request);
  EXPECT_EQ(status_.code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(RecordingsTest, UnknownFieldsCountInOrderOfTheirNumbers) {
  RunFunctionRequest request;
  const auto unknown = [&request](int number, const char* value) {
    request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
        number, value);
  };
  unknown(50, "a");
  unknown(60, "b");
  Record("one", request, {});
  ASSERT_EQ(TryLoad(), absl::OkStatus());
  request.Clear();
  unknown(60, "b");
  unknown(50, "a");
  Respond(request);
  EXPECT_EQ(status_, absl::OkStatus()) << printed_;
  unknown(60, "c");
  Respond(request);
  EXPECT_EQ(status_.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(printed_, HasSubstr("<unknown field 60>"));
}

TEST_F(RecordingsTest, SecretsAreNotPrinted) {
  Record("one",
         R"({"credentials": {"c": {"credentialData": {"data":
             {"k": "c2VjcmV0LW9uZQ=="}}}}})",
         "{}");
  ASSERT_EQ(TryLoad(), absl::OkStatus());
  Respond(R"({"credentials": {"c": {"credentialData": {"data":
             {"k": "c2VjcmV0LXR3bw=="}}}}})");
  EXPECT_THAT(printed_, HasSubstr("credentials.c.credential_data.data.k"));
  EXPECT_THAT(printed_, HasSubstr("<10 bytes, hash "));
  EXPECT_THAT(printed_, Not(HasSubstr("secret")));
}

TEST_F(RecordingsTest, DiffIsBounded) {
  Record("one", "{}", "{}");
  ASSERT_EQ(TryLoad(), absl::OkStatus());
  RunFunctionRequest request;
  auto& fields = *request.mutable_context()->mutable_fields();
  for (int i = 0; i < 500; ++i) {
    fields[absl::StrCat("key\n", i)].set_string_value(std::string(100000, 'x'));
  }
  Respond(request);
  EXPECT_LT(printed_.size(), 10000u);
  EXPECT_THAT(printed_, HasSubstr("and 481 more"));
  EXPECT_THAT(printed_, Not(HasSubstr("key\n")));
}

TEST_F(RecordingsTest, HashesOfSecretsSayWhetherTheyAreTheSame) {
  const auto request = [](absl::string_view one, absl::string_view other) {
    return absl::StrCat(
        R"({"credentials": {"c": {"credentialData": {"data": {"k": ")", one,
        R"(", "l": ")", other, R"("}}}}})");
  };
  Record("one", request("c2VjcmV0LW9uZQ==", "c2VjcmV0LW9uZQ=="), "{}");
  ASSERT_EQ(TryLoad(), absl::OkStatus());
  Respond(request("c2VjcmV0LW9uZQ==", "c2VjcmV0LXR3bw=="));
  EXPECT_THAT(std::string(status_.message()), HasSubstr("with 1 difference"));
  // FNV-1a of it, which anybody could compare with guesses.
  EXPECT_THAT(printed_, Not(HasSubstr("a19405ac7ffa882e")));
}

TEST_F(RecordingsTest, NothingOfARequestActsOnTheTerminal) {
  Record("on\x1b[31me", "{}", "{}");
  ASSERT_EQ(TryLoad(), absl::OkStatus());
  RunFunctionRequest request;
  auto& fields = *request.mutable_context()->mutable_fields();
  // Escape, and the same as one character of Latin-1.
  fields["\x1b]0;title\a"].set_string_value(
      "\x1b[2J \xc2\x9b"
      "2J \r\n");
  fields["cut"].set_string_value(std::string(158, 'x') + "\xc3\xa4");
  Respond(request);
  for (const std::string& text : {printed_, std::string(status_.message())}) {
    for (const char c : absl::StrReplaceAll(text, {{"\n", ""}})) {
      EXPECT_TRUE(static_cast<unsigned char>(c) >= ' ' && c != 0x7f);
    }
    EXPECT_THAT(text, Not(HasSubstr("\xc2\x9b")));
    EXPECT_TRUE(IsUtf8(text));
  }
  EXPECT_THAT(printed_, HasSubstr("\\x1b[2J "));
}

TEST_F(RecordingsTest, LongPathsAreCut) {
  Record("one", "{}", "{}");
  ASSERT_EQ(TryLoad(), absl::OkStatus());
  RunFunctionRequest request;
  (*request.mutable_context()->mutable_fields())[std::string(100000, 'k')]
      .set_bool_value(true);
  Respond(request);
  EXPECT_LT(printed_.size(), 1000u);
}

TEST_F(RecordingsTest, WhatIsNoFileOfAMessageIsRefusedByItsName) {
  const auto load = [&] { return std::string(TryLoad().message()); };
  const std::string pipe = folder_ / "pipe.req.bin";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(load(), pipe + ": is a named pipe, not a regular file");
  fs::remove(pipe);

  const std::string folder = folder_ / "folder.req.bin";
  fs::create_directory(folder);
  EXPECT_EQ(load(), folder + ": is a folder, not a regular file");
  fs::remove(folder);

  const std::string large = folder_ / "large.req.bin";
  Write("large.req.bin", "");
  fs::resize_file(large, uint64_t{1} << 31);
  EXPECT_EQ(load(), large + ": is over 2147483647 bytes");
  fs::remove(large);

  Record("one", "{}", "{}");
  fs::remove(folder_ / "one.rsp.bin");
  fs::create_directory(folder_ / "one.rsp.bin");
  EXPECT_EQ(load(), (folder_ / "one.rsp.bin").string() +
                        ": is a folder, not a regular file");
}

TEST_F(RecordingsTest, EqualRequestsWithEqualResponsesAreOneRecording) {
  Record("one", R"({"meta": {"tag": "x"}})",
         R"({"meta": {"tag": "x"}, "context": {}})");
  Record("two", R"({"meta": {"tag": "y"}})",
         R"({"meta": {"tag": "y"}, "context": {}})");
  ASSERT_EQ(TryLoad(), absl::OkStatus());
  EXPECT_EQ(recordings_->size(), 1u);
}

TEST_F(RecordingsTest, EqualRequestsWithOtherResponsesEndTheStart) {
  Record("one", R"({"input": {"a": 1}})", R"({"context": {"k": 1}})");
  Record("two", R"({"input": {"a": 2}})", R"({"context": {"k": 2}})");
  EXPECT_EQ(TryLoad(), absl::OkStatus());
  const std::string message(TryLoad({"input.a"}).message());
  EXPECT_THAT(message, HasSubstr("one.req.bin"));
  EXPECT_THAT(message, HasSubstr("two.req.bin"));
  EXPECT_THAT(message, HasSubstr("context.k"));
}

TEST_F(RecordingsTest, WhatCannotBeReadEndsTheStartAndIsNamed) {
  EXPECT_THAT(std::string(TryLoad().message()),
              HasSubstr("no *.req.bin below it"));
  Record("one", "{}", "{}");
  fs::remove(folder_ / "one.rsp.bin");
  EXPECT_THAT(std::string(TryLoad().message()),
              HasSubstr("one.rsp.bin: No such file"));
  Write("one.rsp.bin", "\xff");
  EXPECT_THAT(std::string(TryLoad().message()),
              HasSubstr("one.rsp.bin: is not a"));
  Write("one.rsp.bin", "");
  Write("one.req.bin", "\xff");
  EXPECT_THAT(std::string(TryLoad().message()),
              HasSubstr("one.req.bin: is not a"));
  fs::remove_all(folder_);
  EXPECT_THAT(std::string(TryLoad().message()), HasSubstr(folder_.string()));
}

// Every request of real pipelines gets back what the real function answered.
TEST_F(RecordingsTest, RealRecordingsAnswerThemselves) {
  std::vector<fs::path> roots =
      ::fncache::testing::DataFolders({"recorded", "examples"});
  roots.push_back(::fncache::testing::OwnRecordings());
  for (const fs::path& root : roots) {
    auto loaded = Recordings::Load({root.string()}, {}, absl::nullopt);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    recordings_ = *std::move(loaded);
    size_t requests = 0;
    for (const auto& file : fs::recursive_directory_iterator(root)) {
      const std::string name = file.path().string();
      if (!absl::EndsWith(name, ".req.bin")) continue;
      RunFunctionRequest request;
      std::ifstream in(name, std::ios::binary);
      ASSERT_TRUE(request.ParseFromIstream(&in)) << name;
      RunFunctionResponse wanted;
      std::ifstream out(name.substr(0, name.size() - 8) + ".rsp.bin",
                        std::ios::binary);
      ASSERT_TRUE(wanted.ParseFromIstream(&out)) << name;
      request.mutable_meta()->set_tag("mine");
      wanted.mutable_meta()->set_tag("mine");
      const RunFunctionResponse response = Respond(request);
      ASSERT_EQ(status_, absl::OkStatus()) << name << "\n" << printed_;
      EXPECT_TRUE(
          google::protobuf::util::MessageDifferencer::Equals(response, wanted))
          << name;
      ++requests;
    }
    EXPECT_GT(requests, 10u) << root;
  }
}

}  // namespace
}  // namespace fncache::runner::function
