// SPDX-License-Identifier: Apache-2.0
// Measures what keying a request costs: the digest against the obvious way
// (parse, serialize deterministically, XXH3) and plain XXH3, on requests as
// runners send them (request_generator.h), with maps in random order and
// sorted; and the digest of the same requests as different encoders write them.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/request_encoding.h"
#include "bench/request_generator.h"
#include "benchmark/benchmark.h"
#include "cache/key/digest.h"
#include "common/method.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/function_v1.pb.h"
#include "xxhash.h"
#if defined(__x86_64__)
// The digest hashes in this way: with the widest vectors that the machine has.
#include "xxh_x86dispatch.h"
#endif

namespace fncache::cache {
namespace {

namespace pb = google::protobuf;
using apiextensions::fn::proto::v1::RunFunctionRequest;

// Requests of each size: enough that no branch predictor learns one, and that
// those of 17 KB and more exceed the first caches.
constexpr size_t kDistinct = 64;
// Encodings of each, of the larger sizes fewer.
constexpr size_t kOrders = 8;
constexpr size_t kBytes = 64 << 20;
constexpr uint64_t kSeed = 1;

// The bytes that a deterministic encoder writes: map entries in order of their
// keys.
std::string Sorted(const RunFunctionRequest& message) {
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
  std::vector<Shape> shapes;
  for (const bench::Shape size : {bench::Shape::k4K, bench::Shape::k17K,
                                  bench::Shape::k130K, bench::Shape::k1M}) {
    Shape shape;
    shape.name = bench::ShapeName(size);
    std::vector<bench::Request> requests;
    for (size_t i = 0; i < kDistinct; ++i) {
      requests.push_back(bench::MakeRequest(size, kSeed, i));
      shape.sorted.push_back(Sorted(requests.back()));
    }
    const size_t orders = std::clamp<size_t>(
        kBytes / (kDistinct * shape.sorted[0].size()), 1, kOrders);
    for (size_t i = 0; i < orders * kDistinct; ++i) {
      shape.shuffled.push_back(
          bench::Encode(requests[i % kDistinct], kSeed + i).bytes);
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

// The same requests as one encoder writes them.
struct Encoded {
  std::string name;
  std::vector<std::string> requests;
};

struct EncoderShape {
  std::string name;
  size_t bytes = 0;  // of a request, on average, as Go writes it
  std::vector<Encoded> encoders;
};

std::vector<EncoderShape> EncoderShapes() {
  std::vector<EncoderShape> shapes;
  for (const bench::Shape size : {bench::Shape::k4K, bench::Shape::k130K}) {
    EncoderShape shape;
    shape.name = bench::ShapeName(size);
    for (const bench::Encoder encoder :
         {bench::Encoder::kGo, bench::Encoder::kProst, bench::Encoder::kTsProto,
          bench::Encoder::kProtobufjsDefaults, bench::Encoder::kReversed}) {
      Encoded encoded;
      encoded.name = bench::EncoderName(encoder);
      for (size_t i = 0; i < kDistinct; ++i) {
        const bench::Request request =
            bench::WithEmptyFields(bench::MakeRequest(size, kSeed, i));
        encoded.requests.push_back(
            bench::EncodeAs(encoder, request, kSeed + i));
        if (encoder == bench::Encoder::kGo) {
          shape.bytes += encoded.requests.back().size() / kDistinct;
        }
      }
      shape.encoders.push_back(std::move(encoded));
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

key::Digester MakeDigester(const std::vector<std::string>& masks, bool drift) {
  return key::Digester(key::Seed{},
                       {"function", kRunFunctionV1, "function-1234567890ab",
                        key::KeySource::kContent, key::KeyHash::kXxh3, drift},
                       *key::MaskSet::Parse(masks));
}

void Report(benchmark::State& state, size_t bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}

// `same` has the kDistinct requests of `requests`, in their order and in
// another encoding.
void DigestOf(benchmark::State& state, const std::vector<std::string>& requests,
              const std::vector<std::string>& same,
              const std::vector<std::string>& masks, bool drift = false) {
  const key::Digester digester = MakeDigester(masks, drift);
  key::DigestScratch scratch;
  std::vector<key::Key> keys;
  for (const std::string& request : same) {
    keys.push_back(digester.Compute({request}, &scratch).key);
  }
  size_t bytes = 0;
  size_t i = 0;
  for (auto _ : state) {
    const std::string& request = requests[i];
    const key::Digest digest = digester.Compute({request}, &scratch);
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
  const std::vector<std::string> masks = {"@versions", "@times",
                                          "@composite-conditions"};
  const std::vector<std::string> no_masks;
  for (const Shape& shape : *kShapes) {
    const struct {
      const char* name;
      const char* order;
      const std::vector<std::string>& requests;
      const std::vector<std::string>& masks;
      bool drift;
    } digests[] = {
        {"digest/", "/shuffled", shape.shuffled, no_masks, false},
        {"digest/", "/sorted", shape.sorted, no_masks, false},
        {"digest_masked/", "/shuffled", shape.shuffled, masks, false},
        {"digest_tuned/", "/shuffled", shape.shuffled, no_masks, true}};
    for (const auto& digest : digests) {
      benchmark::RegisterBenchmark(
          (digest.name + shape.name + digest.order).c_str(),
          [&shape, digest](benchmark::State& state) {
            DigestOf(state, digest.requests, shape.sorted, digest.masks,
                     digest.drift);
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
  // Counted in Go's bytes, so that the figures compare what a request costs.
  static const auto* const kEncoderShapes =
      new std::vector<EncoderShape>(EncoderShapes());
  for (const EncoderShape& shape : *kEncoderShapes) {
    const Encoded& go = shape.encoders.front();
    for (const Encoded& encoded : shape.encoders) {
      benchmark::RegisterBenchmark(
          ("digest_encoder/" + shape.name + "/" + encoded.name).c_str(),
          [&shape, &go, &encoded, no_masks](benchmark::State& state) {
            DigestOf(state, encoded.requests, go.requests, no_masks);
            Report(state, state.iterations() * shape.bytes);
          });
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
