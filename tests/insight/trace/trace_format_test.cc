// SPDX-License-Identifier: Apache-2.0
// Holds docs/trace-format.md against the code: the bytes of files, blocks and
// records as the page describes them, and every vector.
#include <lz4.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/internal/endian.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "insight/request/nodes.h"
#include "insight/trace/block.h"
#include "insight/trace/reader.h"
#include "insight/trace/record.h"
#include "proto/trace.pb.h"
#include "tests/common/temp_dir.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace fncache::insight::trace {
namespace {

namespace proto = ::fncache::trace;
using ::fncache::testing::ReadFile;
using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

struct Vector {
  std::string name, record, text, file;
};

std::string ReadPage() {
  return ReadFile(
      (std::filesystem::path(FNCACHE_SOURCE_DIR) / "docs" / "trace-format.md")
          .string());
}

std::vector<Vector> ReadVectors(const std::string& page) {
  std::vector<Vector> vectors;
  const size_t at = page.find("```text held=TraceFormat.EveryVectorHolds");
  if (at == page.npos) return vectors;
  for (absl::string_view line : absl::StrSplit(page.substr(at), '\n')) {
    const size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const absl::string_view name = line.substr(0, colon);
    const std::string text(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    if (name == "vector") {
      vectors.emplace_back().name = text;
    } else if (vectors.empty()) {
      ADD_FAILURE() << "before the first vector: " << line;
    } else if (name == "record") {
      vectors.back().record = absl::HexStringToBytes(text);
    } else if (name == "text") {
      vectors.back().text = text;
    } else if (name == "file") {
      vectors.back().file = absl::HexStringToBytes(text);
    } else {
      ADD_FAILURE() << "the page has another line: " << line;
    }
  }
  return vectors;
}

std::string BehindItsLength(const std::string& record) {
  std::string bytes;
  size_t left = record.size();
  for (; left >= 0x80; left >>= 7) bytes += static_cast<char>(left | 0x80);
  return bytes + static_cast<char>(left) + record;
}

// The records of a block, by the page's words and none of the code.
std::string RecordsOf(absl::string_view block) {
  EXPECT_EQ(absl::BytesToHexString(block.substr(0, 4)), "f154424b");
  const uint32_t compressed = absl::little_endian::Load32(&block[4]);
  const uint32_t size = absl::little_endian::Load32(&block[8]);
  EXPECT_EQ(block.size(), 4 + 4 + 4 + 8 + compressed);
  const absl::string_view bytes = block.substr(20);
  EXPECT_EQ(absl::little_endian::Load64(&block[12]),
            XXH3_64bits(bytes.data(), bytes.size()));
  std::string records(size, '\0');
  EXPECT_EQ(LZ4_decompress_safe(bytes.data(), records.data(),
                                static_cast<int>(bytes.size()),
                                static_cast<int>(size)),
            static_cast<int>(size));
  return records;
}

uint64_t CheckByThePage(const std::map<uint32_t, proto::Node>& nodes) {
  uint64_t sum = 0;
  for (const auto& [path, node] : nodes) {
    char bytes[16];
    absl::little_endian::Store32(bytes, path);
    absl::little_endian::Store32(bytes + 4, node.kind());
    absl::little_endian::Store64(bytes + 8, node.digest());
    sum += XXH3_64bits(bytes, sizeof bytes);
  }
  return sum;
}

TEST(TraceFormat, EveryVectorHolds) {
  const std::vector<Vector> vectors = ReadVectors(ReadPage());
  ASSERT_THAT(vectors, SizeIs(11));
  std::string records, file;
  std::vector<proto::Call> calls;
  std::map<uint32_t, proto::Node> nodes;
  for (const Vector& vector : vectors) {
    SCOPED_TRACE(vector.name);
    if (!vector.file.empty()) {
      file = vector.file;
      continue;
    }
    proto::Record written, read;
    ASSERT_TRUE(
        google::protobuf::TextFormat::ParseFromString(vector.text, &written));
    ASSERT_TRUE(read.ParseFromString(vector.record));
    EXPECT_TRUE(MessageDifferencer::Equals(written, read))
        << read.ShortDebugString();
    EXPECT_EQ(absl::BytesToHexString(written.SerializeAsString()),
              absl::BytesToHexString(vector.record));
    records += BehindItsLength(vector.record);
    if (!read.has_call()) continue;
    // As the code takes a call from a record, and makes one of it again.
    proto::Call again;
    std::string bytes;
    AppendCall(FromRecord(read.call()), &bytes);
    ASSERT_TRUE(again.ParseFromString(bytes));
    EXPECT_EQ(absl::BytesToHexString(again.SerializeAsString()),
              absl::BytesToHexString(bytes));
    *again.mutable_request() = read.call().request();
    if (!read.call().has_request()) again.clear_request();
    EXPECT_TRUE(MessageDifferencer::Equals(again, read.call()))
        << again.ShortDebugString();
    calls.push_back(read.call());
    if (!read.call().has_request()) continue;
    const proto::Request& request = read.call().request();
    if (!request.delta()) nodes.clear();
    for (const proto::Node& node : request.nodes()) nodes[node.path()] = node;
    for (const uint32_t path : request.removed()) nodes.erase(path);
    EXPECT_EQ(CheckByThePage(nodes), request.check());
    uint64_t by_the_code = 0;
    for (const auto& one : nodes) by_the_code += CheckOf(one.second);
    EXPECT_EQ(by_the_code, request.check());
  }

  // As the page describes a file, and as the code writes one.
  EXPECT_EQ(absl::BytesToHexString(file.substr(0, 8)), "666e63747263010a");
  EXPECT_EQ(file.substr(0, 8), kFileMagic);
  EXPECT_EQ(RecordsOf(file.substr(8)), records)
      << "the file of the records above:\n"
      << absl::BytesToHexString(absl::StrCat(kFileMagic, MakeBlock(records)));
  EXPECT_EQ(RecordsOf(MakeBlock(records)), records);

  auto reader = TraceReader::OfBytes(file);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->header().level, Level::kPaths);
  EXPECT_EQ((*reader)->header().writer, "serve");
  EXPECT_EQ((*reader)->header().run, "0123456789abcdef");
  EXPECT_THAT((*reader)->header().settings,
              ElementsAre(std::make_pair("trace.level", "paths")));
  std::vector<ReadCall> read;
  ReadCall call;
  while ((*reader)->Next(&call)) read.push_back(call);
  ASSERT_THAT(calls, SizeIs(4));
  ASSERT_THAT(read, SizeIs(4));
  EXPECT_EQ((*reader)->damaged(), 0u);
  EXPECT_EQ((*reader)->dropped(), 2u);
  for (size_t i = 0; i < read.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(read[i].call.arrived, absl::FromUnixNanos(calls[i].arrived()));
    EXPECT_EQ(read[i].call.composite.name, calls[i].composite().name());
    EXPECT_EQ(read[i].stream, calls[i].request().stream());
    EXPECT_EQ(read[i].dropped_before, i == 2 ? 2u : 0u);
    EXPECT_EQ(read[i].nodes != nullptr, calls[i].has_request());
  }
  EXPECT_THAT(*read[0].nodes, SizeIs(3));
  EXPECT_FALSE(read[0].has_previous);
  EXPECT_EQ(read[0].writers->at("observed.composite.resource").manager,
            "kubectl");
  EXPECT_THAT(*read[1].nodes, SizeIs(3));
  EXPECT_TRUE(read[1].has_previous);
  std::vector<std::string> changed;
  for (const PathId path : read[1].changed) {
    changed.push_back(std::string((*reader)->PathOf(path)));
  }
  EXPECT_THAT(
      changed,
      UnorderedElementsAre(
          "observed.composite.resource.metadata.annotations.\"example.org/"
          "size\"",
          "observed.composite.resource.spec.sizes[0]",
          "observed.composite.resource.spec.names"));
}

TEST(TraceFormat, EveryKindOfANodeIsThere) {
  using request::NodeKind;
  const std::string page = ReadPage();
  std::map<int, std::string> kinds;
  const size_t at = page.find("| kind | what |");
  ASSERT_NE(at, page.npos);
  for (absl::string_view line : absl::StrSplit(page.substr(at), '\n')) {
    if (line.empty()) break;
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    int kind = 0;
    if (absl::SimpleAtoi(cells[0].substr(2), &kind)) {
      kinds[kind] = cells[1].substr(0, cells[1].rfind(" |"));
    }
  }
  // A map is in no trace.
  EXPECT_THAT(kinds, SizeIs(static_cast<size_t>(NodeKind::kMap) - 1));
  const std::pair<NodeKind, const char*> kTold[] = {
      {NodeKind::kMessage, "a message of the protocol"},
      {NodeKind::kStruct, "an object"},
      {NodeKind::kList, "a list; its value is its count"},
      {NodeKind::kNull, "a null"},
      {NodeKind::kNumber, "a number"},
      {NodeKind::kString, "a text"},
      {NodeKind::kBool, "true or false"},
      {NodeKind::kNoKind, "a `Value` that has none"},
      {NodeKind::kScalar,
       "a scalar field of the protocol; a repeated one whole"},
      {NodeKind::kUnknown, "the unknown fields of a message"},
      {NodeKind::kSecret, "a secret"},
  };
  for (const auto& [kind, what] : kTold) {
    EXPECT_EQ(kinds[static_cast<int>(kind)], what);
  }
}

}  // namespace
}  // namespace fncache::insight::trace
