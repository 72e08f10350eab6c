// SPDX-License-Identifier: Apache-2.0
// Measures what a key costs under each setting of `key` and `key_hash`, of
// requests as gRPC hands them over: in slices.
//
// by_tag should take the same time whatever the request's size, since what it
// skips it does not read.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/request_encoding.h"
#include "bench/request_generator.h"
#include "benchmark/benchmark.h"
#include "cache/key/digest.h"
#include "common/method.h"
#include "proto/function_v1.pb.h"

namespace fncache::bench {
namespace {

// Enough distinct requests that no branch predictor learns one and the larger
// ones lie beyond the caches, as they do when they come from a socket.
constexpr uint64_t kDistinct = 64;
// The most bytes of an HTTP/2 frame by default.
constexpr size_t kSliceBytes = 16 << 10;

struct Sliced {
  std::string bytes;
  std::vector<absl::string_view> slices;
};

std::vector<Sliced> MakeRequests(Shape shape) {
  std::vector<Sliced> requests(kDistinct);
  for (uint64_t i = 0; i < kDistinct; ++i) {
    Sliced& request = requests[i];
    request.bytes = Encode(MakeRequest(shape, 1, i), i).bytes;
    for (absl::string_view rest = request.bytes; !rest.empty();) {
      request.slices.push_back(rest.substr(0, kSliceBytes));
      rest.remove_prefix(request.slices.back().size());
    }
  }
  return requests;
}

void KeyOf(benchmark::State& state, Shape shape, cache::key::KeySource source,
           cache::key::KeyHash hash) {
  const std::vector<Sliced> requests = MakeRequests(shape);
  const cache::key::Digester digester(
      cache::key::Seed{},
      {"function", kRunFunctionV1, "function-1234567890ab", source, hash},
      cache::key::MaskSet());
  cache::key::DigestScratch scratch;
  size_t bytes = 0;
  size_t i = 0;
  for (auto _ : state) {
    const Sliced& request = requests[i++ % kDistinct];
    const cache::key::Digest digest =
        digester.Compute(request.slices, &scratch);
    if (!digest.keyed) {
      state.SkipWithError("not keyed");
      return;
    }
    benchmark::DoNotOptimize(digest.key.low);
    bytes += request.bytes.size();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}

void Register() {
  struct Setting {
    const char* name;
    cache::key::KeySource source;
    cache::key::KeyHash hash;
  };
  constexpr Setting kSettings[] = {
      {"by_tag", cache::key::KeySource::kTag, cache::key::KeyHash::kXxh3},
      {"by_tag_sha256", cache::key::KeySource::kTag,
       cache::key::KeyHash::kSha256},
      {"by_content", cache::key::KeySource::kContent,
       cache::key::KeyHash::kXxh3},
      {"by_content_sha256", cache::key::KeySource::kContent,
       cache::key::KeyHash::kSha256}};
  for (const Setting& setting : kSettings) {
    for (const Shape shape :
         {Shape::k4K, Shape::k17K, Shape::k130K, Shape::k1M}) {
      benchmark::RegisterBenchmark(
          absl::StrCat(setting.name, "/", ShapeName(shape)).c_str(),
          [shape, setting](benchmark::State& state) {
            KeyOf(state, shape, setting.source, setting.hash);
          });
    }
  }
}

}  // namespace
}  // namespace fncache::bench

int main(int argc, char** argv) {
  fncache::bench::Register();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
