// SPDX-License-Identifier: Apache-2.0
// Measures what a miss pays to read and keep a response, and a hit to send it:
// the walk and surgery over the 13 KB response of DESIGN's measurements, beside
// building the message; the stored form beside it. Takes FNCACHE_TEST_DATA
// (../shared/data).
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/types/span.h"
#include "cache/response.h"
#include "cache/store/entry.h"
#include "cache/store/stored_entry.h"
#include "proto/function_v1.pb.h"

namespace fncache::cache {
namespace {

const key::Key kKey{1, 2};
constexpr char kTag[] =
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

const std::string& Response() {
  static const std::string* const response = [] {
    const char* folder = std::getenv("FNCACHE_TEST_DATA");
    const std::string path =
        std::string(folder != nullptr ? folder
                                      : FNCACHE_SOURCE_DIR "/../shared/data") +
        "/requests/13k.rsp.bin";
    std::ifstream in(path, std::ios::binary);
    auto* bytes = new std::string(std::istreambuf_iterator<char>(in), {});
    if (bytes->empty()) {
      std::fprintf(stderr, "no response in %s\n", path.c_str());
      std::exit(1);
    }
    return bytes;
  }();
  return *response;
}

store::EntryRef MakeEntry(const ResponseView& view) {
  store::EntryInfo info;
  info.arrived = info.started = absl::FromUnixSeconds(1'750'000'000);
  info.lifetime = absl::Seconds(60);
  info.ttl = absl::Seconds(60);
  return store::Entry::Create(info, view.meta_rest, view.body);
}

void SetBytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(Response().size()));
}

void BM_ReadResponse(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(ReadResponse(Response()));
  }
  SetBytes(state);
}
BENCHMARK(BM_ReadResponse);

// The walk replaces this.
void BM_ParseMessage(benchmark::State& state) {
  for (auto _ : state) {
    ::apiextensions::fn::proto::v1::RunFunctionResponse message;
    benchmark::DoNotOptimize(message.ParseFromString(Response()));
  }
  SetBytes(state);
}
BENCHMARK(BM_ParseMessage);

void BM_MakeMeta(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        MakeMeta(kTag, absl::Seconds(37) + absl::Nanoseconds(5), ""));
  }
}
BENCHMARK(BM_MakeMeta);

void BM_CreateEntry(benchmark::State& state) {
  const absl::StatusOr<ResponseView> view = ReadResponse(Response());
  for (auto _ : state) {
    benchmark::DoNotOptimize(MakeEntry(*view));
  }
  SetBytes(state);
}
BENCHMARK(BM_CreateEntry);

void BM_EncodeStored(benchmark::State& state) {
  const store::EntryRef entry = MakeEntry(*ReadResponse(Response()));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        store::EncodeStored(kKey, "function", "rev-1", *entry));
  }
  SetBytes(state);
}
BENCHMARK(BM_EncodeStored);

void BM_DecodeStored(benchmark::State& state) {
  const std::string bytes = store::EncodeStored(
      kKey, "function", "rev-1", *MakeEntry(*ReadResponse(Response())));
  for (auto _ : state) {
    const store::Stored stored =
        store::DecodeStored(kKey, bytes, [](absl::string_view) {
          return absl::make_optional(store::StoredScope{1, "rev-1"});
        });
    if (stored.miss != store::StoredMiss::kNone) std::abort();
    benchmark::DoNotOptimize(stored.entry.get());
  }
  SetBytes(state);
}
BENCHMARK(BM_DecodeStored);

}  // namespace
}  // namespace fncache::cache

BENCHMARK_MAIN();
