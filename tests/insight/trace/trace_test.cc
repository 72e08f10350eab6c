// SPDX-License-Identifier: Apache-2.0
// A trace that was written is read again: whole, cut off, damaged, over full
// disks, and without what must not be in it.
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "insight/trace/block.h"
#include "insight/trace/reader.h"
#include "insight/trace/ring.h"
#include "insight/trace/writer.h"
#include "proto/function_v1.pb.h"
#include "tests/common/temp_dir.h"

namespace fncache::insight::trace {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
using ::fncache::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr size_t kMaxFile = 100 << 20;

std::string Request(const std::string& name, const std::string& version,
                    const std::string& secret = "c2VjcmV0LXZhbHVl") {
  fn::RunFunctionRequest request;
  const auto status = google::protobuf::util::JsonStringToMessage(
      absl::StrCat(R"({"meta": {"tag": "a-tag"},
        "observed": {"composite": {"resource": {"apiVersion": "e.org/v1",
          "kind": "XApp", "metadata": {"name": ")",
                   name, R"(", "namespace": "ns", "uid": "uid-)", name,
                   R"(", "resourceVersion": ")", version,
                   R"(", "managedFields": [{"manager": "who", "operation":
          "Apply", "time": "2026-01-01T00:00:00Z"}]},
          "spec": {"plain": "plain-value", "list": [1, 2, 3]}},
          "connectionDetails": {"hidden-key": ")",
                   secret, R"("}}},
        "credentials": {"aws": {"credentialData": {"data": {
          "hidden-key": ")",
                   secret, R"("}}}}})"),
      &request);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return request.SerializeAsString();
}

TraceOptions Options(const std::string& dir, Level level) {
  TraceOptions options;
  options.dir = dir;
  options.level = level;
  options.writer = "test";
  options.settings["ttl.max"] = "24h";
  return options;
}

TracedCall Call(int number) {
  TracedCall call;
  call.arrived = absl::FromUnixSeconds(1'800'000'000 + number);
  call.function = "f";
  call.outcome = Outcome::kMiss;
  call.reason = Reason::kChanged;
  call.detail = "a.path";
  call.key = cache::key::Key{7, static_cast<uint64_t>(number)};
  call.composite.api_version = "e.org/v1";
  call.composite.kind = "XApp";
  call.composite.object_namespace = "ns";
  call.composite.name = "n";
  call.composite.uid = "uid-n";
  call.request_bytes = 100;
  call.response_bytes = 50;
  call.function_ttl = absl::Seconds(60);
  call.told_ttl = absl::Seconds(59);
  call.lifetime = absl::Seconds(60);
  call.stored = true;
  call.cost = absl::Milliseconds(3);
  call.latency = absl::Milliseconds(4);
  call.phase = "measure";
  call.step = "s";
  call.call_of_step = 1;
  call.trigger = "timer";
  call.pipeline = 12;
  return call;
}

TraceWriter::Messages Of(std::string request, std::string response = "") {
  TraceWriter::Messages messages;
  messages.held = request.size() + response.size();
  messages.request = [request = std::move(request)] { return request; };
  messages.response = [response = std::move(response)] { return response; };
  return messages;
}

std::vector<ReadCall> ReadAll(TraceReader* reader) {
  std::vector<ReadCall> calls;
  ReadCall call;
  while (reader->Next(&call)) calls.push_back(call);
  return calls;
}

std::vector<std::string> ChangedPaths(const TraceReader& reader,
                                      const ReadCall& call) {
  std::vector<std::string> paths;
  for (const PathId id : call.changed) {
    paths.push_back(std::string(reader.PathOf(id)));
  }
  return paths;
}

// All that the files hold, uncompressed.
std::string AllBytes(const std::string& dir) {
  std::string all;
  const auto files = TraceFiles(dir);
  EXPECT_TRUE(files.ok()) << files.status();
  for (const std::string& path : *files) {
    const auto bytes = ReadSmallFile(path, kMaxFile);
    EXPECT_TRUE(bytes.ok());
    all += *bytes;
    size_t at = kFileMagic.size();
    std::string block;
    while (ReadBlock(*bytes, &at, &block) == BlockRead::kRead) all += block;
  }
  return all;
}

TEST(Trace, ACallIsReadAsItWasWritten) {
  const TempDir dir;
  {
    auto writer = TraceWriter::Create(Options(dir.path() + "/t", Level::kKeys));
    ASSERT_TRUE(writer.ok()) << writer.status();
    (*writer)->Write(Call(1), {});
  }
  auto reader = TraceReader::Open(dir.path() + "/t");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->header().writer, "test");
  EXPECT_EQ((*reader)->header().level, Level::kKeys);
  EXPECT_EQ((*reader)->header().settings.at("ttl.max"), "24h");
  const auto calls = ReadAll(reader->get());
  ASSERT_THAT(calls, SizeIs(1));
  const TracedCall& read = calls[0].call;
  const TracedCall written = Call(1);
  EXPECT_EQ(read.arrived, written.arrived);
  EXPECT_EQ(read.function, "f");
  EXPECT_EQ(read.outcome, Outcome::kMiss);
  EXPECT_EQ(read.reason, Reason::kChanged);
  EXPECT_EQ(read.detail, "a.path");
  EXPECT_EQ(read.key, written.key);
  EXPECT_EQ(read.composite.uid, "uid-n");
  EXPECT_EQ(read.function_ttl, written.function_ttl);
  EXPECT_EQ(read.told_ttl, written.told_ttl);
  EXPECT_EQ(read.lifetime, written.lifetime);
  EXPECT_TRUE(read.stored);
  EXPECT_EQ(read.cost, written.cost);
  EXPECT_EQ(read.phase, "measure");
  EXPECT_EQ(read.trigger, "timer");
  EXPECT_EQ(read.pipeline, 12u);
  EXPECT_EQ(calls[0].nodes, nullptr);
}

TEST(Trace, WhatChangedIsToldAgainstTheOneBefore) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  {
    auto writer = TraceWriter::Create(Options(path, Level::kPaths));
    ASSERT_TRUE(writer.ok()) << writer.status();
    (*writer)->Write(Call(1), Of(Request("n", "1")));
    (*writer)->Write(Call(2), Of(Request("n", "1")));
    (*writer)->Write(Call(3), Of(Request("n", "2")));
    (*writer)->Write(Call(4), Of(Request("n", "2", "YW5vdGhlcg==")));
    (*writer)->Write(Call(5), Of(Request("n", "1", "YW5vdGhlcg==")));
  }
  auto reader = TraceReader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto calls = ReadAll(reader->get());
  ASSERT_THAT(calls, SizeIs(5));
  EXPECT_FALSE(calls[0].has_previous);
  ASSERT_NE(calls[0].nodes, nullptr);
  EXPECT_TRUE(calls[1].has_previous);
  EXPECT_THAT(calls[1].changed, IsEmpty());
  EXPECT_EQ(*calls[0].nodes, *calls[1].nodes);
  constexpr char kVersion[] =
      "observed.composite.resource.metadata.resourceVersion";
  EXPECT_THAT(ChangedPaths(**reader, calls[2]), ElementsAre(kVersion));
  EXPECT_THAT(ChangedPaths(**reader, calls[3]),
              UnorderedElementsAre("observed.composite.connection_details.*",
                                   "credentials.aws.credential_data.data.*"));
  EXPECT_THAT(ChangedPaths(**reader, calls[4]), ElementsAre(kVersion));
  ASSERT_NE(calls[4].writers, nullptr);
  EXPECT_EQ(calls[4].writers->at("observed.composite.resource").manager, "who");
  EXPECT_EQ((*reader)->damaged(), 0u);
}

TEST(Trace, OtherCompositesDoNotDisturb) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  {
    auto writer = TraceWriter::Create(Options(path, Level::kPaths));
    ASSERT_TRUE(writer.ok());
    for (int i = 0; i < 4; ++i) {
      TracedCall call = Call(i);
      call.composite = {};  // found in the request
      (*writer)->Write(TracedCall(call),
                       Of(Request(i % 2 == 0 ? "a" : "b", "1")));
    }
  }
  auto reader = TraceReader::Open(path);
  ASSERT_TRUE(reader.ok());
  const auto calls = ReadAll(reader->get());
  ASSERT_THAT(calls, SizeIs(4));
  EXPECT_EQ(calls[0].call.composite.name, "a");
  EXPECT_EQ(calls[1].call.composite.name, "b");
  EXPECT_FALSE(calls[1].has_previous);
  EXPECT_TRUE(calls[2].has_previous);
  EXPECT_THAT(calls[2].changed, IsEmpty());
  // Equal values of two composites have other digests.
  const auto value = [&](const ReadCall& call, absl::string_view name) {
    for (const auto& [id, node] : *call.nodes) {
      if ((*reader)->PathOf(id) == name) return node.value;
    }
    return uint64_t{0};
  };
  constexpr char kPlain[] = "observed.composite.resource.spec.plain";
  EXPECT_NE(value(calls[0], kPlain), 0u);
  EXPECT_NE(value(calls[0], kPlain), value(calls[1], kPlain));
  EXPECT_EQ(value(calls[0], kPlain), value(calls[2], kPlain));
}

TEST(Trace, ValuesAreInNoneOfItAndSecretsAtNoLevel) {
  for (const Level level : {Level::kKeys, Level::kPaths, Level::kFull}) {
    const TempDir dir;
    const std::string path = dir.path() + "/t";
    fn::RunFunctionResponse response;
    (*response.mutable_desired()
          ->mutable_composite()
          ->mutable_connection_details())["hidden-key"] = "secret-value";
    response.mutable_meta()->set_tag("t");
    {
      auto writer = TraceWriter::Create(Options(path, level));
      ASSERT_TRUE(writer.ok());
      (*writer)->Write(Call(1),
                       Of(Request("n", "1"), response.SerializeAsString()));
    }
    const std::string bytes = AllBytes(path);
    EXPECT_FALSE(absl::StrContains(bytes, "secret-value"));
    EXPECT_FALSE(absl::StrContains(bytes, "hidden-key"));
    EXPECT_EQ(absl::StrContains(bytes, "plain-value"), level == Level::kFull);
    struct stat info = {};
    const auto files = TraceFiles(path);
    ASSERT_TRUE(files.ok());
    ASSERT_EQ(stat((*files)[0].c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
  }
}

TEST(Trace, WholeBlocksAreReadAfterACrashAnywhere) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  {
    auto writer = TraceWriter::Create(Options(path, Level::kPaths));
    ASSERT_TRUE(writer.ok());
    for (int i = 0; i < 3; ++i) {
      (*writer)->Write(Call(i), Of(Request("n", absl::StrCat(i))));
      ASSERT_TRUE((*writer)->Flush().ok());
    }
  }
  const auto files = TraceFiles(path);
  ASSERT_TRUE(files.ok());
  const auto bytes = ReadSmallFile((*files)[0], kMaxFile);
  ASSERT_TRUE(bytes.ok());
  size_t most = 0;
  for (size_t size = 0; size <= bytes->size(); ++size) {
    auto reader = TraceReader::OfBytes(bytes->substr(0, size));
    if (!reader.ok()) {
      EXPECT_LT(size, kFileMagic.size());
      continue;
    }
    const size_t calls = ReadAll(reader->get()).size();
    EXPECT_GE(calls, most) << size;
    most = calls;
  }
  EXPECT_EQ(most, 3u);
}

TEST(Trace, DamageCostsABlockAndIsCounted) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  {
    auto writer = TraceWriter::Create(Options(path, Level::kPaths));
    ASSERT_TRUE(writer.ok());
    for (int i = 0; i < 3; ++i) {
      (*writer)->Write(Call(i), Of(Request("n", absl::StrCat(i))));
      ASSERT_TRUE((*writer)->Flush().ok());
    }
  }
  const auto files = TraceFiles(path);
  const auto bytes = ReadSmallFile((*files)[0], kMaxFile);
  ASSERT_TRUE(bytes.ok());
  // The second call's block is the third one of the file.
  size_t at = kFileMagic.size();
  std::string block;
  ASSERT_EQ(ReadBlock(*bytes, &at, &block), BlockRead::kRead);
  ASSERT_EQ(ReadBlock(*bytes, &at, &block), BlockRead::kRead);
  std::string damaged = *bytes;
  damaged[at + kBlockHead + 3] ^= 1;
  auto reader = TraceReader::OfBytes(damaged);
  ASSERT_TRUE(reader.ok());
  const auto calls = ReadAll(reader->get());
  EXPECT_THAT(calls, SizeIs(2));
  EXPECT_GT((*reader)->damaged(), 0u);
  // Changes are those since the call that was read before.
  ASSERT_NE(calls[1].nodes, nullptr);
  EXPECT_THAT(ChangedPaths(**reader, calls[1]),
              ElementsAre("observed.composite.resource.metadata."
                          "resourceVersion"));
}

TEST(Trace, TheDirectoryNeverHoldsMoreThanItMay) {
  const TempDir dir;
  TraceOptions options = Options(dir.path() + "/t", Level::kPaths);
  options.file_size = 64 << 10;
  options.files = 3;
  uint64_t most = 0;
  {
    auto writer = TraceWriter::Create(options);
    ASSERT_TRUE(writer.ok());
    for (int i = 0; i < 3000; ++i) {
      TracedCall call = Call(i);
      call.composite.uid = absl::StrCat("uid", i);
      (*writer)->Write(TracedCall(call),
                       Of(Request(absl::StrCat("n", i), "1")));
      if (i % 100 != 0) continue;
      ASSERT_TRUE((*writer)->Flush().ok());
      uint64_t bytes = 0;
      for (const auto& file :
           std::filesystem::directory_iterator(options.dir)) {
        bytes += file.file_size();
      }
      most = std::max(most, bytes);
    }
  }
  EXPECT_GT(most, options.file_size);
  EXPECT_LE(most, options.file_size * options.files);
  auto reader = TraceReader::Open(options.dir);
  ASSERT_TRUE(reader.ok());
  const auto calls = ReadAll(reader->get());
  ASSERT_FALSE(calls.empty());
  EXPECT_EQ(calls.back().call.arrived, Call(2999).arrived);
  for (const ReadCall& call : calls) EXPECT_NE(call.nodes, nullptr);
  EXPECT_EQ((*reader)->damaged(), 0u);
}

TEST(Trace, EachFileBeginsWhole) {
  const TempDir dir;
  TraceOptions options = Options(dir.path() + "/t", Level::kPaths);
  options.file_size = 64 << 10;
  options.files = 100;
  {
    auto writer = TraceWriter::Create(options);
    ASSERT_TRUE(writer.ok());
    for (int i = 0; i < 2000; ++i) {
      (*writer)->Write(Call(i), Of(Request("n", absl::StrCat(i))));
      if (i % 50 == 0) {
        ASSERT_TRUE((*writer)->Flush().ok());
      }
    }
  }
  const auto files = TraceFiles(options.dir);
  ASSERT_TRUE(files.ok());
  ASSERT_GT(files->size(), 1u);
  for (const std::string& file : *files) {
    auto reader = TraceReader::Open(file);
    ASSERT_TRUE(reader.ok());
    ReadCall first;
    ASSERT_TRUE((*reader)->Next(&first));
    EXPECT_NE(first.nodes, nullptr);
  }
  auto reader = TraceReader::Open(options.dir);
  ASSERT_TRUE(reader.ok());
  const auto calls = ReadAll(reader->get());
  ASSERT_EQ(calls.size(), 2000u);
  // Across files, too, it is one path that changes.
  for (size_t i = 1; i < calls.size(); ++i) {
    EXPECT_THAT(calls[i].changed, SizeIs(1)) << i;
  }
}

TEST(Trace, AFullQueueDropsAndSaysHowMany) {
  const TempDir dir;
  TraceOptions options = Options(dir.path() + "/t", Level::kPaths);
  options.queue_bytes = 1;
  uint64_t dropped = 0;
  {
    auto writer = TraceWriter::Create(options);
    ASSERT_TRUE(writer.ok());
    for (int i = 0; i < 10; ++i) (*writer)->Write(Call(i), {});
    dropped = (*writer)->Stats().dropped_queue;
  }
  EXPECT_EQ(dropped, 10u);
}

// The record of the drop is the first one of its block.
TEST(Trace, BeyondItsLimitsItReadsSomeCompositesOnly) {
  const TempDir dir;
  TraceOptions options = Options(dir.path() + "/t", Level::kPaths);
  options.read_limits = {/*of_process=*/1e-9, /*of_core=*/0};
  int told = 0;
  options.on_unread = [&told] { ++told; };
  auto writer = TraceWriter::Create(options);
  ASSERT_TRUE(writer.ok());
  constexpr int kComposites = 64;
  const auto call = [](int number) {
    TracedCall one = Call(number);
    one.composite.name = absl::StrCat("n", number % kComposites);
    one.composite.uid = one.composite.name;
    return one;
  };
  const absl::Time until = absl::Now() + absl::Seconds(60);
  int calls = 0;
  while ((*writer)->Stats().read_share > 0.01 && absl::Now() < until) {
    const TracedCall one = call(calls++);
    (*writer)->Write(TracedCall(one), Of(Request(one.composite.name, "1")));
    ASSERT_TRUE((*writer)->Flush().ok());
  }
  const int before = calls;
  int read = 0;
  for (; calls < before + kComposites; ++calls) {
    const TracedCall one = call(calls);
    if ((*writer)->Reads(one.composite)) ++read;
    (*writer)->Write(TracedCall(one), Of(Request(one.composite.name, "2")));
  }
  EXPECT_LT(read, kComposites / 4);
  const TraceStats stats = (*writer)->Stats();
  (*writer).reset();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(stats.dropped_queue, 0u);
  auto reader = TraceReader::Open(options.dir);
  ASSERT_TRUE(reader.ok());
  const auto all = ReadAll(reader->get());
  ASSERT_THAT(all, SizeIs(calls));
  // The first one is read, and then ever fewer; none is missing.
  EXPECT_NE(all[0].nodes, nullptr);
  int with_nodes = 0;
  for (int i = before; i < calls; ++i) with_nodes += all[i].nodes != nullptr;
  EXPECT_EQ(with_nodes, read);
}

TEST(Trace, ARecordAfterADropIsWrittenWithinASecond) {
  const TempDir dir;
  TraceOptions options = Options(dir.path() + "/t", Level::kPaths);
  options.queue_bytes = 1 << 20;
  auto writer = TraceWriter::Create(options);
  ASSERT_TRUE(writer.ok());
  TraceWriter::Messages large;
  large.held = 2 << 20;
  (*writer)->Write(Call(1), std::move(large));
  EXPECT_EQ((*writer)->Stats().dropped_queue, 1u);
  (*writer)->Write(Call(2), {});
  const absl::Time until = absl::Now() + absl::Seconds(60);
  while ((*writer)->Stats().written == 0 && absl::Now() < until) {
    std::this_thread::yield();
  }
  EXPECT_EQ((*writer)->Stats().written, 1u);
  auto reader = TraceReader::Open(options.dir);
  ASSERT_TRUE(reader.ok());
  const auto calls = ReadAll(reader->get());
  ASSERT_THAT(calls, SizeIs(1));
  EXPECT_EQ(calls[0].dropped_before, 1u);
}

// Nothing is compressed of what is random, so at level full these are larger
// than a file; what is between them stays in one.
TEST(Trace, RecordsLargerThanAFilePushNoOthersOut) {
  const TempDir dir;
  TraceOptions options = Options(dir.path() + "/t", Level::kFull);
  options.file_size = 64 << 10;
  options.files = 2;
  std::mt19937_64 random(7);
  const auto text = [&random](size_t size) {
    std::string hex;
    while (hex.size() < size) absl::StrAppend(&hex, absl::Hex(random()));
    return hex;
  };
  {
    auto writer = TraceWriter::Create(options);
    ASSERT_TRUE(writer.ok());
    for (int i = 0; i < 10; ++i) {
      (*writer)->Write(Call(2 * i), Of(Request(text(100 << 10), "1")));
      (*writer)->Write(Call(2 * i + 1), Of(Request("n", "1")));
      ASSERT_TRUE((*writer)->Flush().ok());
    }
    EXPECT_EQ((*writer)->Stats().dropped_disk, 10u);
    EXPECT_EQ((*writer)->Stats().written, 10u);
    EXPECT_TRUE((*writer)->Stats().up);
  }
  auto reader = TraceReader::Open(options.dir);
  ASSERT_TRUE(reader.ok());
  const auto calls = ReadAll(reader->get());
  ASSERT_THAT(calls, SizeIs(10));
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].call.arrived, Call(2 * static_cast<int>(i) + 1).arrived);
    EXPECT_EQ(calls[i].dropped_before, 1u);
    EXPECT_NE(calls[i].nodes, nullptr);
  }
}

TEST(Trace, SamplesByCompositeNeverByCall) {
  const TempDir dir;
  TraceOptions options = Options(dir.path() + "/t", Level::kKeys);
  options.sample = 0.3;
  {
    auto writer = TraceWriter::Create(options);
    ASSERT_TRUE(writer.ok());
    for (int i = 0; i < 3000; ++i) {
      TracedCall call = Call(i);
      call.composite.uid = absl::StrCat("uid", i % 300);
      (*writer)->Write(TracedCall(call), {});
    }
    EXPECT_TRUE((*writer)->Samples({}));
  }
  auto reader = TraceReader::Open(options.dir);
  ASSERT_TRUE(reader.ok());
  std::map<std::string, int> seen;
  for (const ReadCall& call : ReadAll(reader->get())) {
    ++seen[call.call.composite.uid];
  }
  EXPECT_GT(seen.size(), 50u);
  EXPECT_LT(seen.size(), 130u);
  for (const auto& [uid, count] : seen) EXPECT_EQ(count, 10) << uid;
}

// RLIMIT_FSIZE makes writes fail as a full disk does.
TEST(Trace, AFullDiskDropsRecordsAndIsOverWhenThereIsRoom) {
  const TempDir dir;
  TraceOptions options = Options(dir.path() + "/t", Level::kKeys);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before = {};
  sigaction(SIGXFSZ, &ignore, &before);
  struct rlimit old = {};
  getrlimit(RLIMIT_FSIZE, &old);
  auto writer = TraceWriter::Create(options);
  ASSERT_TRUE(writer.ok());
  (*writer)->Write(Call(1), {});
  ASSERT_TRUE((*writer)->Flush().ok());
  struct rlimit none = old;
  none.rlim_cur = 0;
  setrlimit(RLIMIT_FSIZE, &none);
  (*writer)->Write(Call(2), {});
  const absl::Status full = (*writer)->Flush();
  setrlimit(RLIMIT_FSIZE, &old);
  sigaction(SIGXFSZ, &before, nullptr);
  EXPECT_FALSE(full.ok());
  EXPECT_EQ((*writer)->Stats().dropped_disk, 1u);
  EXPECT_THAT((*writer)->Stats().error, HasSubstr(options.dir));
  // The directory is tried again once a second.
  const absl::Time until = absl::Now() + absl::Seconds(60);
  int sent = 0;
  while (!(*writer)->Stats().up && absl::Now() < until) {
    (*writer)->Write(Call(100 + sent++), {});
    if ((*writer)->Flush().ok()) break;
  }
  EXPECT_TRUE((*writer)->Stats().up);
  const uint64_t dropped = (*writer)->Stats().dropped_disk;
  writer->reset();
  auto reader = TraceReader::Open(options.dir);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(ReadAll(reader->get()).size() + dropped, 2u + sent);
  EXPECT_EQ((*reader)->dropped(), dropped);
}

// The first bytes of a file fit, its first block does not: again and again, as
// on a full disk.
TEST(TraceRing, AFullDiskCostsOneOldFileAtMost) {
  const TempDir dir;
  auto ring = TraceRing::Open(dir.path(), 4);
  ASSERT_TRUE(ring.ok());
  const std::string block = MakeBlock(std::string(100, 'r'));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE((*ring)->Next().ok());
    ASSERT_TRUE((*ring)->Append(block).ok());
  }
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before = {};
  sigaction(SIGXFSZ, &ignore, &before);
  struct rlimit old = {};
  getrlimit(RLIMIT_FSIZE, &old);
  struct rlimit little = old;
  little.rlim_cur = kFileMagic.size() + 1;
  setrlimit(RLIMIT_FSIZE, &little);
  int begun = 0, written = 0;
  for (int i = 0; i < 10; ++i) {
    begun += (*ring)->Next().ok();
    written += (*ring)->Append(block).ok();
  }
  setrlimit(RLIMIT_FSIZE, &old);
  sigaction(SIGXFSZ, &before, nullptr);
  EXPECT_EQ(begun, 10);
  EXPECT_EQ(written, 0);
  const auto files = TraceFiles(dir.path());
  ASSERT_TRUE(files.ok());
  EXPECT_THAT(*files, SizeIs(3));
  for (const std::string& file : *files) {
    EXPECT_EQ(std::filesystem::file_size(file),
              kFileMagic.size() + block.size());
  }
}

TEST(Trace, OneWriterForADirectory) {
  const TempDir dir;
  auto one = TraceWriter::Create(Options(dir.path() + "/t", Level::kKeys));
  ASSERT_TRUE(one.ok());
  const auto other =
      TraceWriter::Create(Options(dir.path() + "/t", Level::kKeys));
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr("another process writes"));
}

TEST(Trace, SettingsThatDoNotFitAreNamed) {
  const auto message = [](auto change) {
    TraceOptions options = Options("/nowhere/at/all", Level::kKeys);
    change(&options);
    return std::string(TraceWriter::Create(options).status().message());
  };
  EXPECT_THAT(message([](TraceOptions* o) { o->files = 1; }),
              HasSubstr("trace.files: 1"));
  EXPECT_THAT(message([](TraceOptions* o) { o->sample = 0; }),
              HasSubstr("trace.sample: 0"));
  EXPECT_THAT(message([](TraceOptions* o) { o->file_size = 1; }),
              HasSubstr("trace.file_size"));
  EXPECT_THAT(message([](TraceOptions* o) { o->dir = ""; }),
              HasSubstr("trace.dir"));
  EXPECT_THAT(message([](TraceOptions*) {}), HasSubstr("/nowhere/at/all"));
}

TEST(TraceReader, WhatIsNoTraceIsRefused) {
  for (const std::string& bytes : {std::string(), std::string("fnctrc"),
                                   std::string("PK\x03\x04 zip ...")}) {
    EXPECT_THAT(std::string(TraceReader::OfBytes(bytes).status().message()),
                HasSubstr("is no trace"));
  }
  EXPECT_THAT(
      std::string(TraceReader::OfBytes("fnctrc\x02\n").status().message()),
      HasSubstr("a later fncache writes"));
  const TempDir dir;
  EXPECT_THAT(std::string(TraceReader::Open(dir.path()).status().message()),
              HasSubstr("holds no trace"));
}

// A crash may come between a file and its first bytes, and the file stays until
// it is the oldest.
TEST(TraceReader, FilesWithoutABeginningHideNoOthers) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  for (int run = 0; run < 2; ++run) {
    auto writer = TraceWriter::Create(Options(path, Level::kKeys));
    ASSERT_TRUE(writer.ok());
    (*writer)->Write(Call(run), {});
  }
  auto files = TraceFiles(path);
  ASSERT_TRUE(files.ok());
  ASSERT_THAT(*files, SizeIs(2));
  std::filesystem::resize_file((*files)[0], 0);
  {
    auto reader = TraceReader::Open(path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_THAT(ReadAll(reader->get()), SizeIs(1));
    EXPECT_EQ((*reader)->header().writer, "test");
    EXPECT_EQ((*reader)->damaged(), 1u);
  }
  // Where none has one, the first is named.
  std::filesystem::resize_file((*files)[1], 0);
  EXPECT_THAT(std::string(TraceReader::Open(path).status().message()),
              HasSubstr((*files)[0]));
}

}  // namespace
}  // namespace fncache::insight::trace
