// What keying a request costs: the digest against the obvious way (parse,
// serialize deterministically, XXH3), on real shapes with maps in random order.
//
// Requests are those of tests/data and, where it is present, of the folder that
// FNCACHE_TEST_DATA names.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "benchmark/benchmark.h"
#include "cache/digest.h"
#include "cache/schema.h"
#include "cache/wire.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/function_v1.pb.h"
#include "xxhash.h"
#if defined(__x86_64__)
// As the digest hashes: with the widest vectors that the machine has.
#include "xxh_x86dispatch.h"
#endif

namespace fncache::cache {
namespace {

namespace pb = google::protobuf;
using apiextensions::fn::proto::v1::RunFunctionRequest;

// So many requests of each size that no branch predictor learns one, and that
// those of 17 KB and more lie beyond the first caches.
constexpr size_t kDistinct = 64;
// Encodings of each, of the larger sizes fewer.
constexpr size_t kOrders = 8;
constexpr size_t kBytes = 64 << 20;

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

using Random = std::mt19937_64;

// Writes a message anew, as another encoder or another cluster would have it.
class Rewriter {
 public:
  explicit Rewriter(uint64_t seed) : random_(seed) {}

  // Map entries in random order, as Go writes them.
  std::string Shuffle(const std::string& request) {
    shuffle_ = true;
    vary_ = false;
    return Message(kRunFunctionRequestType, request);
  }
  // Other texts, names and sizes in the same structure.
  std::string Vary(const std::string& request) {
    shuffle_ = false;
    vary_ = true;
    return Message(kRunFunctionRequestType, request);
  }

 private:
  std::string Message(const MessageType& type, absl::string_view bytes) {
    std::string out;
    std::vector<std::string> entries;
    const auto flush = [&] {
      if (shuffle_) std::shuffle(entries.begin(), entries.end(), random_);
      for (const std::string& entry : entries) out += entry;
      entries.clear();
    };
    uint32_t last = 0;
    for (Cursor cursor(bytes); !cursor.done();) {
      const char* const start = cursor.position();
      uint32_t tag;
      absl::string_view part;
      if (!cursor.ReadTag(&tag)) std::abort();
      const FieldType* field = type.Find(TagNumber(tag));
      if (tag != last) flush();
      last = tag;
      if (field == nullptr || TagType(tag) != WireType::kBytes) {
        if (!cursor.Skip(tag, 100)) std::abort();
        out.append(start, cursor.position());
        continue;
      }
      if (!cursor.ReadBytes(&part)) std::abort();
      if (field->label == FieldLabel::kMap) {
        AppendBytesField(&entries.emplace_back(), 1, Entry(*field, part));
      } else {
        AppendBytesField(&out, TagNumber(tag), Part(*field, part));
      }
      if (field->label == FieldLabel::kMap) {
        // The entry's own tag, of the field that it is an element of.
        entries.back()[0] = static_cast<char>(tag);
      }
    }
    flush();
    return out;
  }

  std::string Part(const FieldType& field, absl::string_view bytes) {
    if (field.kind == FieldKind::kMessage) {
      return Message(*field.message, bytes);
    }
    return field.kind == FieldKind::kString ? Text(bytes) : std::string(bytes);
  }

  std::string Entry(const FieldType& field, absl::string_view bytes) {
    std::string out;
    for (Cursor cursor(bytes); !cursor.done();) {
      uint32_t tag;
      absl::string_view part;
      if (!cursor.ReadTag(&tag) || !cursor.ReadBytes(&part)) std::abort();
      AppendBytesField(
          &out, TagNumber(tag),
          TagNumber(tag) == 1 ? std::string(part) : Part(field, part));
    }
    return out;
  }

  std::string Text(absl::string_view text) {
    std::string out(text);
    if (!vary_) return out;
    for (char& c : out) {
      if (random_() % 4 != 0) continue;
      if (absl::ascii_isdigit(c)) c = static_cast<char>('0' + random_() % 10);
      if (absl::ascii_islower(c)) c = static_cast<char>('a' + random_() % 26);
    }
    if (random_() % 4 == 0) {
      out.resize(out.size() + random_() % 16, 'x');
      out.resize(out.size() - std::min<size_t>(out.size(), random_() % 16));
    }
    return out;
  }

  Random random_;
  bool shuffle_ = false;
  bool vary_ = false;
};

// As a deterministic encoder writes it: map entries in order of their keys.
std::string Sorted(const std::string& request) {
  RunFunctionRequest message;
  if (!message.ParseFromString(request)) std::abort();
  std::string out;
  pb::io::StringOutputStream stream(&out);
  pb::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return out;
}

struct Shape {
  std::string name;
  std::vector<std::string> sorted;    // kDistinct of them
  std::vector<std::string> shuffled;  // these in random orders, in turn
};

std::vector<Shape> Shapes() {
  std::filesystem::path root =
      std::filesystem::path(FNCACHE_SOURCE_DIR) / "tests" / "data";
  const char* folder = std::getenv("FNCACHE_TEST_DATA");
  const std::filesystem::path more =
      folder != nullptr ? std::filesystem::path(folder)
                        : std::filesystem::path(FNCACHE_SOURCE_DIR) / ".." /
                              "shared" / "data";
  if (std::filesystem::exists(more / "requests")) root = more;
  Rewriter rewriter(1);
  std::vector<Shape> shapes;
  for (const char* name : {"4k", "17k", "130k", "1m"}) {
    const std::string bytes =
        ReadFile(root / "requests" / (std::string(name) + ".req.bin"));
    if (bytes.empty()) continue;
    Shape shape;
    shape.name = name;
    for (size_t i = 0; i < kDistinct; ++i) {
      shape.sorted.push_back(Sorted(rewriter.Vary(bytes)));
    }
    const size_t orders =
        std::clamp<size_t>(kBytes / (kDistinct * bytes.size()), 1, kOrders);
    for (size_t i = 0; i < orders * kDistinct; ++i) {
      shape.shuffled.push_back(rewriter.Shuffle(shape.sorted[i % kDistinct]));
    }
    shapes.push_back(shape);
  }
  return shapes;
}

Digester MakeDigester(const std::vector<std::string>& masks) {
  return Digester(
      Seed{},
      {"function",
       "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction",
       "function-1234567890ab"},
      *MaskSet::Parse(masks));
}

void Report(benchmark::State& state, size_t bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}

void DigestOf(benchmark::State& state, const std::vector<std::string>& requests,
              const Shape& shape, const std::vector<std::string>& masks) {
  const Digester digester = MakeDigester(masks);
  DigestScratch scratch;
  std::vector<Key> keys;
  for (const std::string& request : shape.sorted) {
    keys.push_back(digester.Compute({request}, &scratch).key);
  }
  size_t bytes = 0;
  size_t i = 0;
  for (auto _ : state) {
    const std::string& request = requests[i];
    const Digest digest = digester.Compute({request}, &scratch);
    if (!digest.keyed || digest.key != keys[i % kDistinct]) {
      state.SkipWithError("equal requests have different keys");
      return;
    }
    bytes += request.size();
    if (++i == requests.size()) i = 0;
  }
  Report(state, bytes);
}

void ParseSerializeHash(benchmark::State& state,
                        const std::vector<std::string>& requests) {
  size_t bytes = 0;
  size_t i = 0;
  std::string out;
  for (auto _ : state) {
    const std::string& bytes_in = requests[i];
    RunFunctionRequest request;
    if (!request.ParseFromString(bytes_in)) {
      state.SkipWithError("does not parse");
      return;
    }
    request.mutable_meta()->clear_tag();
    out.clear();
    {
      pb::io::StringOutputStream stream(&out);
      pb::io::CodedOutputStream coded(&stream);
      coded.SetSerializationDeterministic(true);
      request.SerializeToCodedStream(&coded);
    }
    benchmark::DoNotOptimize(XXH3_128bits(out.data(), out.size()));
    bytes += bytes_in.size();
    if (++i == requests.size()) i = 0;
  }
  Report(state, bytes);
}

void Xxh3(benchmark::State& state, const std::vector<std::string>& requests) {
  size_t bytes = 0;
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        XXH3_128bits(requests[i].data(), requests[i].size()));
    bytes += requests[i].size();
    if (++i == requests.size()) i = 0;
  }
  Report(state, bytes);
}

}  // namespace
}  // namespace fncache::cache

int main(int argc, char** argv) {
  using namespace fncache::cache;  // NOLINT(google-build-using-namespace)
  static const std::vector<Shape>* const kShapes =
      new std::vector<Shape>(Shapes());
  const std::vector<std::string> masks = {
      "observed.composite.resource.metadata.resourceVersion",
      "observed.composite.resource.metadata.managedFields",
      "observed.resources.*.resource.metadata.resourceVersion",
      "observed.resources.*.resource.metadata.managedFields",
      "observed.resources.*.resource.status.conditions.*.lastTransitionTime"};
  const std::vector<std::string> no_masks;
  for (const Shape& shape : *kShapes) {
    const struct {
      const char* name;
      const char* order;
      const std::vector<std::string>& requests;
      const std::vector<std::string>& masks;
    } digests[] = {{"digest/", "/shuffled", shape.shuffled, no_masks},
                   {"digest/", "/sorted", shape.sorted, no_masks},
                   {"digest_masked/", "/shuffled", shape.shuffled, masks}};
    for (const auto& digest : digests) {
      benchmark::RegisterBenchmark(
          (digest.name + shape.name + digest.order).c_str(),
          [&shape, digest](benchmark::State& state) {
            DigestOf(state, digest.requests, shape, digest.masks);
          });
    }
    benchmark::RegisterBenchmark(("parse_serialize_hash/" + shape.name).c_str(),
                                 [&shape](benchmark::State& state) {
                                   ParseSerializeHash(state, shape.shuffled);
                                 });
    benchmark::RegisterBenchmark(
        ("xxh3/" + shape.name).c_str(),
        [&shape](benchmark::State& state) { Xxh3(state, shape.shuffled); });
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
