// SPDX-License-Identifier: Apache-2.0
// Measures what it costs to say why a request missed, on requests as runners
// send them (request_generator.h): reading its nodes, its outline, and
// explaining it by either, where it differs from the one before in
// resourceVersion and managedFields; and comparing its answer.
#include <cstdint>
#include <string>
#include <vector>

#include "bench/request_encoding.h"
#include "bench/request_generator.h"
#include "benchmark/benchmark.h"
#include "common/clock.h"
#include "insight/explain/miss_memory.h"
#include "insight/request/nodes.h"
#include "insight/request/outline.h"
#include "proto/function_v1.pb.h"

namespace fncache::insight {
namespace {

constexpr size_t kDistinct = 64;

std::vector<std::string> Requests(const benchmark::State& state) {
  const auto shape = static_cast<bench::Shape>(state.range(0));
  std::vector<std::string> requests;
  for (size_t i = 0; i < kDistinct; ++i) {
    requests.push_back(
        bench::MakeRequest(shape, /*seed=*/1, i).SerializeAsString());
  }
  return requests;
}

void Report(benchmark::State* state, const std::vector<std::string>& requests) {
  state->SetLabel(std::to_string(requests[0].size()) + " bytes");
}

void Nodes(benchmark::State& state) {
  const std::vector<std::string> requests = Requests(state);
  request::RequestNodes nodes(request::FingerprintSecret::Random());
  size_t i = 0, read = 0;
  for (auto _ : state) {
    nodes.Read({requests[i++ % kDistinct]});
    read += nodes.nodes().size();
  }
  state.counters["ns/node"] = benchmark::Counter(
      static_cast<double>(read),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  Report(&state, requests);
}

void Outlines(benchmark::State& state) {
  const std::vector<std::string> requests = Requests(state);
  request::Outline outline;
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        request::ReadOutline({requests[i++ % kDistinct]}, &outline));
  }
  Report(&state, requests);
}

void Explain(benchmark::State& state, uint64_t paths_bytes_per_second) {
  const std::vector<std::string> requests = Requests(state);
  SystemClock clock;
  explain::MissMemoryOptions options;
  options.bytes_per_second = explain::MissMemoryOptions::kUnbounded;
  options.paths_bytes_per_second = paths_bytes_per_second;
  explain::MissMemory memory(options, &clock);
  const cache::key::MaskSet masks;
  uint64_t key = 0;
  for (auto _ : state) {
    const std::string& request = requests[key % kDistinct];
    ++key;
    memory.Explain("f", Method::kV1, "g", {key, key}, masks, {request});
    memory.OnStored({key, key}, absl::InfiniteFuture());
  }
  Report(&state, requests);
}

// Comparing an answer with the answer of before. It desires what the request
// has observed, so it is about as large.
void Answers(benchmark::State& state) {
  const std::vector<std::string> requests = Requests(state);
  std::vector<std::string> answers;
  for (const std::string& bytes : requests) {
    apiextensions::fn::proto::v1::RunFunctionRequest request;
    request.ParseFromString(bytes);
    apiextensions::fn::proto::v1::RunFunctionResponse response;
    *response.mutable_desired() = request.observed();
    answers.push_back(response.SerializeAsString());
  }
  SystemClock clock;
  explain::MissMemoryOptions options;
  options.bytes_per_second = explain::MissMemoryOptions::kUnbounded;
  options.paths_bytes_per_second = explain::MissMemoryOptions::kUnbounded;
  explain::MissMemory memory(options, &clock);
  memory.Explain("f", Method::kV1, "g", {1, 1}, cache::key::MaskSet(),
                 {requests[0]});
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        memory.OnAnswer({1, 1}, {answers[i++ % kDistinct]}, absl::Seconds(60)));
  }
  Report(&state, answers);
}

const int kShapes[] = {static_cast<int>(bench::Shape::k4K),
                       static_cast<int>(bench::Shape::k17K)};

void Args(benchmark::internal::Benchmark* benchmark) {
  for (const int shape : kShapes) benchmark->Arg(shape);
}

BENCHMARK(Nodes)->Apply(Args);
BENCHMARK(Outlines)->Apply(Args);
BENCHMARK_CAPTURE(Explain, paths, explain::MissMemoryOptions::kUnbounded)
    ->Apply(Args);
BENCHMARK_CAPTURE(Explain, sections, 0)->Apply(Args);
BENCHMARK(Answers)->Apply(Args);

}  // namespace
}  // namespace fncache::insight

BENCHMARK_MAIN();
