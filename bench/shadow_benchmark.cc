// SPDX-License-Identifier: Apache-2.0
// Measures what a call costs more under `mode: shadow`: reading its request
// once more, for its exact digest and what masks hide, and comparing its answer
// (13 KB) with the entry's: the same bytes, the same maps in another order, and
// a difference that is looked into.
#include <memory>
#include <string>
#include <vector>

#include "bench/request_generator.h"
#include "benchmark/benchmark.h"
#include "cache/response.h"
#include "common/clock.h"
#include "proto/function_v1.pb.h"
#include "proxy/serving/shadow.h"
#include "proxy/telemetry/instruments.h"

namespace fncache::proxy::serving {
namespace {

constexpr size_t kDistinct = 64;

settings::FunctionOptions Options() {
  settings::FunctionOptions options;
  options.policy.mode = cache::Mode::kShadow;
  options.masks = *cache::key::MaskSet::Parse(
      {"@versions", "@times", "@composite-conditions"});
  return options;
}

const telemetry::FunctionInstruments& Counters() {
  static auto* const instruments = new telemetry::Instruments({"function"});
  return instruments->function(0);
}

void ReadRequest(benchmark::State& state) {
  const auto shape = static_cast<bench::Shape>(state.range(0));
  std::vector<std::string> requests;
  for (size_t i = 0; i < kDistinct; ++i) {
    requests.push_back(
        bench::MakeRequest(shape, /*seed=*/1, i).SerializeAsString());
  }
  SystemClock clock;
  const auto trial = ShadowTrial::For(Options(), nullptr);
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        trial->Read({requests[i++ % kDistinct]}, &Counters(), &clock));
  }
  state.SetLabel(std::to_string(requests[0].size()) + " bytes");
}

// `change` makes the answer of the entry's.
template <typename Change>
void JudgeAnswer(benchmark::State& state, Change change) {
  bench::Answer answer = bench::MakeAnswer(bench::AnswerShape::k13K, 1);
  answer.clear_meta();
  const std::string kept = answer.SerializeAsString();
  change(&answer);
  const std::string said = answer.SerializeAsString();
  const auto view = cache::ReadResponse(said);
  cache::store::EntryInfo info;
  info.lifetime = absl::Hours(1);
  const auto entry = cache::store::Entry::Create(info, "", {kept});
  const cache::Policy policy(Options().policy);
  SystemClock clock;
  const auto trial = ShadowTrial::For(Options(), nullptr);
  const std::string request =
      bench::MakeRequest(bench::Shape::kSmall, 1, 1).SerializeAsString();
  absl::Time now = clock.Now();
  for (auto _ : state) {
    state.PauseTiming();
    const auto call = trial->Read({request}, &Counters(), &clock);
    call->LookedUp(entry);
    now += absl::Seconds(1);  // so that its budget is full
    state.ResumeTiming();
    call->Judge(
        *view, {1, 2}, policy.options().max_entry_bytes,
        /*store=*/nullptr, [](const cache::store::Entry&) { return true; },
        now);
  }
}

void SameBytes(benchmark::State& state) {
  JudgeAnswer(state, [](bench::Answer*) {});
}
void SameMessage(benchmark::State& state) {
  // Another order of fields is what costs, wherever it is.
  JudgeAnswer(state, [](bench::Answer* answer) {
    auto* const resources = answer->mutable_desired()->mutable_resources();
    const auto copy = *resources;
    resources->clear();
    for (const auto& resource : copy) (*resources)[resource.first + "x"];
    for (const auto& resource : copy) resources->erase(resource.first + "x");
    for (const auto& resource : copy) {
      (*resources)[resource.first] = resource.second;
    }
  });
}
void Different(benchmark::State& state) {
  JudgeAnswer(state, [](bench::Answer* answer) {
    (*answer->mutable_context()->mutable_fields())["now"].set_number_value(1);
  });
}

BENCHMARK(ReadRequest)
    ->Arg(static_cast<int>(bench::Shape::k4K))
    ->Arg(static_cast<int>(bench::Shape::k17K))
    ->Arg(static_cast<int>(bench::Shape::k130K));
BENCHMARK(SameBytes);
BENCHMARK(SameMessage);
BENCHMARK(Different);

}  // namespace
}  // namespace fncache::proxy::serving

BENCHMARK_MAIN();
