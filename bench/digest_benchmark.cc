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
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "cache/digest.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message.h"
#include "proto/function_v1.pb.h"
#include "xxhash.h"

namespace fncache::cache {
namespace {

namespace pb = google::protobuf;
using apiextensions::fn::proto::v1::RunFunctionRequest;

// So many encodings of each request that no branch predictor learns them.
constexpr int kVariations = 16;

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void AppendTag(std::string* out, int number, uint64_t size) {
  for (uint64_t value : {static_cast<uint64_t>(number) << 3 | 2, size}) {
    for (; value >= 0x80; value >>= 7) {
      *out += static_cast<char>(value | 0x80);
    }
    *out += static_cast<char>(value);
  }
}

// As Go encodes it: map entries in random order. Message fields are written
// here, scalars by protobuf itself.
std::string Shuffled(const pb::Message& message, std::mt19937* random) {
  const pb::Reflection* reflection = message.GetReflection();
  std::vector<const pb::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  std::string out;
  for (const pb::FieldDescriptor* field : fields) {
    if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) {
      std::unique_ptr<pb::Message> one(message.New());
      std::vector<const pb::FieldDescriptor*> others = fields;
      one->CopyFrom(message);
      for (const pb::FieldDescriptor* other : others) {
        if (other != field) one->GetReflection()->ClearField(one.get(), other);
      }
      // An entry's empty key and value are written all the same.
      out += one->SerializeAsString();
      continue;
    }
    std::vector<std::string> parts;
    if (field->is_repeated()) {
      for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
        const pb::Message& element =
            reflection->GetRepeatedMessage(message, field, i);
        if (!field->is_map()) {
          parts.push_back(Shuffled(element, random));
          continue;
        }
        const pb::Descriptor* entry = element.GetDescriptor();
        std::string text;
        const std::string& key = element.GetReflection()->GetStringReference(
            element, entry->map_key(), &text);
        std::string bytes;
        AppendTag(&bytes, 1, key.size());
        bytes += key;
        std::string value;
        if (entry->map_value()->cpp_type() ==
            pb::FieldDescriptor::CPPTYPE_MESSAGE) {
          value = Shuffled(
              element.GetReflection()->GetMessage(element, entry->map_value()),
              random);
        } else {
          value = element.GetReflection()->GetStringReference(
              element, entry->map_value(), &text);
        }
        AppendTag(&bytes, 2, value.size());
        bytes += value;
        parts.push_back(bytes);
      }
    } else {
      parts.push_back(Shuffled(reflection->GetMessage(message, field), random));
    }
    if (field->is_map()) std::shuffle(parts.begin(), parts.end(), *random);
    for (const std::string& part : parts) {
      AppendTag(&out, field->number(), part.size());
      out += part;
    }
  }
  return out;
}

struct Shape {
  std::string name;
  std::vector<std::string> requests;
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
  std::mt19937 random(1);
  std::vector<Shape> shapes;
  for (const char* name : {"4k", "17k", "130k", "1m"}) {
    const std::string bytes =
        ReadFile(root / "requests" / (std::string(name) + ".req.bin"));
    RunFunctionRequest request;
    if (bytes.empty() || !request.ParseFromString(bytes)) continue;
    Shape shape;
    shape.name = name;
    for (int i = 0; i < kVariations; ++i) {
      request.mutable_meta()->set_tag(std::string(62, 'a') +
                                      static_cast<char>('a' + i) + "f");
      shape.requests.push_back(Shuffled(request, &random));
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

void DigestOf(benchmark::State& state, const Shape& shape,
              const std::vector<std::string>& masks) {
  const Digester digester = MakeDigester(masks);
  DigestScratch scratch;
  size_t bytes = 0;
  size_t i = 0;
  const Key key = digester.Compute({shape.requests[0]}, &scratch).key;
  for (auto _ : state) {
    const std::string& request = shape.requests[i++ % kVariations];
    const Digest digest = digester.Compute({request}, &scratch);
    if (!digest.keyed || digest.key != key) {
      state.SkipWithError("equal requests have different keys");
      return;
    }
    bytes += request.size();
  }
  Report(state, bytes);
}

void ParseSerializeHash(benchmark::State& state, const Shape& shape) {
  size_t bytes = 0;
  size_t i = 0;
  std::string out;
  for (auto _ : state) {
    const std::string& bytes_in = shape.requests[i++ % kVariations];
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
  }
  Report(state, bytes);
}

void CopyAndHash(benchmark::State& state, const Shape& shape) {
  size_t bytes = 0;
  size_t i = 0;
  std::string out(shape.requests[0].size(), '\0');
  for (auto _ : state) {
    const std::string& request = shape.requests[i++ % kVariations];
    out.assign(request);
    benchmark::DoNotOptimize(XXH3_128bits(out.data(), out.size()));
    bytes += request.size();
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
  for (const Shape& shape : *kShapes) {
    benchmark::RegisterBenchmark(
        ("digest/" + shape.name).c_str(),
        [&shape](benchmark::State& state) { DigestOf(state, shape, {}); });
    benchmark::RegisterBenchmark(("digest_masked/" + shape.name).c_str(),
                                 [&shape, masks](benchmark::State& state) {
                                   DigestOf(state, shape, masks);
                                 });
    benchmark::RegisterBenchmark(("parse_serialize_hash/" + shape.name).c_str(),
                                 [&shape](benchmark::State& state) {
                                   ParseSerializeHash(state, shape);
                                 });
    benchmark::RegisterBenchmark(
        ("copy_and_hash/" + shape.name).c_str(),
        [&shape](benchmark::State& state) { CopyAndHash(state, shape); });
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
