// SPDX-License-Identifier: Apache-2.0
// Fills a cache directory as a daemon leaves it when it is killed: with answers
// to the load client's requests, under the keys that a daemon on that directory
// makes of them. It ends when the database has N GiB (with its logs, which a
// start has to replay).
//
//   fill_disk --dir DIR --gib N [--shape 4k] [--first-key 0] [--seed 1]
//             [--distinct 64] [--response FILE] [--function function]
//             [--generation bench]
//
// `fncache serve --cache-dir DIR --generation bench` with a `--cache-disk` of
// at least the `capacity` that is printed, and function and policy left at
// their defaults, then answers `load --shape 4k --keys ENTRIES` from disk.
// Prints one JSON object.
#include <absl/strings/numbers.h>
#include <absl/synchronization/mutex.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/request_encoding.h"
#include "bench/request_generator.h"
#include "cache/key/digest.h"
#include "cache/response.h"
#include "cache/store/disk_store.h"
#include "cache/store/entry.h"
#include "common/clock.h"
#include "common/command_line.h"
#include "common/file.h"
#include "common/method.h"
#include "proto/function_v1.pb.h"

namespace fncache::bench {
namespace {

using cache::store::DiskStore;
using cache::store::Entry;
using cache::store::EntryInfo;

constexpr size_t kMaxResponse = size_t{64} << 20;
// How often the size is looked at.
constexpr uint64_t kStride = 256;

struct Command {
  std::string dir;
  double gib = 1;
  std::string shape = "4k";
  uint64_t first_key = 0;
  uint64_t seed = 1;
  uint64_t distinct = 64;
  std::string response;
  std::string function = "function";
  std::string generation = "bench";
};

// The load client's requests, one encoding of each: which one is of no account
// to the key.
class Keys {
 public:
  Keys(const Command& command, Shape shape, const cache::key::Seed& seed)
      : digester_(seed,
                  {command.function, kRunFunctionV1, command.generation,
                   cache::key::KeySource::kContent, cache::key::KeyHash::kXxh3},
                  cache::key::MaskSet()) {
    for (uint64_t i = 0; i < command.distinct; ++i) {
      requests_.push_back(Encode(MakeRequest(shape, command.seed, i), i));
    }
  }

  cache::key::Key Of(uint64_t n) {
    EncodedRequest& request = requests_[n % requests_.size()];
    WriteSlot(n, &request.bytes[request.tag_slot]);
    WriteSlot(n, &request.bytes[request.content_slot]);
    const absl::string_view bytes = request.bytes;
    return digester_.Compute({bytes}, &scratch_).key;
  }

 private:
  const cache::key::Digester digester_;
  cache::key::DigestScratch scratch_;
  std::vector<EncodedRequest> requests_;
};

absl::Status Fill(const Command& command) {
  const absl::optional<Shape> shape = ShapeOf(command.shape);
  if (!shape.has_value()) {
    return absl::InvalidArgumentError("--shape is small, 4k, 17k, 130k or 1m");
  }
  if (command.distinct == 0 || command.gib <= 0 || command.gib > 1024) {
    return absl::InvalidArgumentError(
        "--distinct is at least 1, --gib over 0 and at most 1024");
  }
  std::string answer =
      EncodeShuffled(MakeAnswer(AnswerShape::k13K, command.seed), command.seed);
  if (!command.response.empty()) {
    auto read = ReadSmallFile(command.response, kMaxResponse);
    if (!read.ok()) return read.status();
    answer = *std::move(read);
  }
  const auto view = cache::ReadResponse(answer);
  if (!view.ok()) return view.status();

  const auto begin = std::chrono::steady_clock::now();
  const uint64_t wanted = static_cast<uint64_t>(command.gib * (1 << 30));
  SystemClock clock;
  cache::store::DiskStoreOptions options;
  options.dir = command.dir;
  // Room enough that nothing is dropped.
  options.capacity = wanted + wanted / 4 + (64 << 20);
  options.functions = {{command.function, command.generation}};
  auto opened = DiskStore::Open(options, &clock, nullptr);
  if (!opened.ok()) return opened.status();
  DiskStore& store = **opened;

  Keys keys(command, *shape, store.seed());
  uint64_t entries = 0;
  for (; entries % kStride != 0 || store.Stats().bytes < wanted; ++entries) {
    EntryInfo info;
    info.started = info.arrived = clock.Now();
    info.lifetime = absl::Hours(24);
    info.ttl = info.lifetime;
    info.cost = absl::Milliseconds(10);
    const auto put = store.Put(keys.Of(command.first_key + entries),
                               Entry::Create(info, view->meta_rest, view->body),
                               info.arrived);
    if (put != cache::store::PutResult::kStored) {
      return absl::InternalError("the store did not take an entry");
    }
  }
  const cache::store::StoreStats stats = store.Stats();
  if (stats.entries != entries) {
    return absl::InternalError("the directory held entries before");
  }
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - begin;
  std::printf(
      "{\"entries\": %llu, \"first_key\": %llu, \"bytes\": %llu, "
      "\"capacity\": %llu, \"value_bytes\": %zu, \"seconds\": %.2f}\n",
      static_cast<unsigned long long>(entries),
      static_cast<unsigned long long>(command.first_key),
      static_cast<unsigned long long>(stats.bytes),
      static_cast<unsigned long long>(options.capacity), answer.size(),
      took.count());
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  Command command;
  CommandLine line("Fills a cache directory with answers to the load client.");
  line.AddOption("--dir", &command.dir, "Made where it is missing").Required();
  line.AddOption("--gib", &command.gib, "How much is to be on disk");
  line.AddOption("--shape", &command.shape, "As in load");
  line.AddOption("--first-key", &command.first_key, "As in load");
  line.AddOption("--seed", &command.seed, "As in load");
  line.AddOption("--distinct", &command.distinct, "As in load");
  line.AddOption("--response", &command.response,
                 "The answer; else load's own of 13 KB");
  line.AddOption("--function", &command.function, "As the daemon has it");
  line.AddOption("--generation", &command.generation, "As the daemon has it");
  const absl::optional<int> code = line.ParseForMain(argc, argv);
  if (code.has_value()) return *code;
  const absl::Status status = Fill(command);
  if (status.ok()) return 0;
  std::fprintf(stderr, "fill_disk: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace fncache::bench

int main(int argc, char** argv) { return fncache::bench::Main(argc, argv); }
