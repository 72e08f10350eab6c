// SPDX-License-Identifier: Apache-2.0
// What `fncache replay` takes for a trace of level keys: reading it, and
// playing it once. The target is 5 million records in under a minute.
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/random.h"
#include "benchmark/benchmark.h"
#include "insight/trace/writer.h"
#include "insight/whatif/engine.h"
#include "insight/whatif/recording.h"

namespace fncache::insight::whatif {
namespace {

constexpr int kComposites = 20'000;
constexpr absl::Duration kTtl = absl::Seconds(60);

// A folder that goes with the process.
class TraceOf {
 public:
  explicit TraceOf(int64_t calls) {
    char name[] = "/tmp/fncache-replay-XXXXXX";
    if (mkdtemp(name) == nullptr) std::abort();
    folder_ = name;
    trace::TraceOptions options;
    options.dir = path();
    options.level = trace::Level::kKeys;
    options.file_size = 1 << 30;
    options.queue_bytes = 1 << 30;
    options.writer = "benchmark";
    auto writer = trace::TraceWriter::Create(options);
    if (!writer.ok()) std::abort();
    const absl::Time began = absl::FromUnixSeconds(1'800'000'000);
    for (int64_t i = 0; i < calls; ++i) {
      const int64_t composite = i % kComposites, round = i / kComposites;
      trace::TracedCall call;
      call.arrived = began + round * kTtl + kTtl * composite / kComposites;
      call.function = "function-measured";
      // Every fifth round is of another request.
      const auto key =
          static_cast<uint64_t>(composite + round / 5 * kComposites);
      bench::Random random(key);
      const uint64_t high = random.Next();
      // Keys are hashes.
      call.key = cache::key::Key{high, random.Next()};
      call.outcome = trace::Outcome::kMiss;
      call.composite.kind = "XStore";
      call.composite.object_namespace = "default";
      call.composite.name = absl::StrCat("store-", composite);
      call.request_bytes = 17'000;
      call.response_bytes = 2'000;
      call.function_ttl = call.told_ttl = call.lifetime = kTtl;
      call.cost = call.latency = absl::Milliseconds(20);
      call.stored = true;
      (*writer)->Write(std::move(call), {});
      if (i % 100'000 == 0 && !(*writer)->Flush().ok()) std::abort();
    }
  }
  ~TraceOf() {
    if (std::system(absl::StrCat("rm -r ", folder_).c_str()) != 0) return;
  }
  std::string path() const { return folder_ + "/trace"; }

 private:
  std::string folder_;
};

Recording ReadAll(const std::string& path) {
  auto reader = trace::TraceReader::Open(path);
  if (!reader.ok()) std::abort();
  auto recording = Read(reader->get(), {});
  if (!recording.ok()) std::abort();
  return *std::move(recording);
}

void BM_Read(benchmark::State& state) {
  const TraceOf trace(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(ReadAll(trace.path()));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Read)->Arg(5'000'000)->Unit(benchmark::kSecond)->Iterations(1);

void BM_Play(benchmark::State& state) {
  const TraceOf trace(state.range(0));
  const Recording recording = ReadAll(trace.path());
  ReplayOptions options;
  options.arrivals =
      state.range(1) == 0 ? Arrivals::kRecorded : Arrivals::kModel;
  for (auto _ : state) {
    benchmark::DoNotOptimize(Replay(recording, Variant(), options));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Play)
    ->Args({5'000'000, 0})
    ->Args({5'000'000, 1})
    ->Unit(benchmark::kSecond)
    ->Iterations(1);

}  // namespace
}  // namespace fncache::insight::whatif

BENCHMARK_MAIN();
