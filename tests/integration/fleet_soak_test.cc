// SPDX-License-Identifier: Apache-2.0
// A fleet under load whose server comes and goes: the daemons do not grow.
// Short form: some seconds; FNCACHE_LONG_TESTS=1: 20 minutes.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/common/eventually.h"
#include "tests/common/long_form.h"
#include "tests/integration/fleet_testing.h"

namespace fncache::testing {
namespace {

constexpr int kReplicas = 3;
// Pools of connections and the heap may differ by this much between two
// moments.
constexpr int kMoreFiles = 12;
constexpr int kMoreThreads = 2;
constexpr int kMoreKilobytes = 24 << 10;

struct Size {
  int kilobytes = 0;
  int threads = 0;
  int files = 0;
};

class FleetSoakHeavyTest : public FleetTest {
 protected:
  Size SizeOf(int i) {
    const std::string process =
        absl::StrCat("/proc/", replica(i).process->pid());
    Size size;
    const std::string status = ReadFile(process + "/status");
    const auto number = [&status](const char* name) {
      return std::atoi(status.c_str() + status.find(name) + strlen(name));
    };
    size.kilobytes = number("\nVmRSS:");
    size.threads = number("\nThreads:");
    for (const auto& file :
         std::filesystem::directory_iterator(process + "/fd")) {
      size.files += file.path().empty() ? 0 : 1;
    }
    return size;
  }
};

TEST_F(FleetSoakHeavyTest, AServerThatComesAndGoesLeavesNothingBehind) {
  RedisServer server(Tcp());
  for (int i = 0; i < kReplicas; ++i) {
    ReplicaOptions options;
    options.url = server.url();
    // So that they are full soon.
    options.more = "cache:\n  memory: 8MiB\nexplain:\n  memory: 1MiB\n";
    ASSERT_NO_FATAL_FAILURE(StartReplica(options));
  }
  EXPECT_TRUE(AllShare());
  const absl::Duration whole = ShortOrLong(absl::Seconds(9), absl::Minutes(20));
  const absl::Time begin = absl::Now();
  Size first[kReplicas];
  int rounds = 0;
  int early = 0;  // rounds at whose end `first` was measured
  Load load(this, 2);
  // Two rounds at least follow these, however slow the machine is.
  for (; absl::Now() < begin + whole || rounds < early + 2; ++rounds) {
    if (rounds % 2 == 0) {
      server.Stop();
      EXPECT_TRUE(TierBecomes(false));
      server.Continue();
    } else {
      server.Kill();
      EXPECT_TRUE(TierBecomes(false));
      server.Restart();
    }
    EXPECT_TRUE(TierBecomes(true));
    load.Await(50);
    // After two rounds every path has been taken.
    if (rounds < 2 || absl::Now() < begin + whole / 3) {
      early = rounds + 1;
      for (int i = 0; i < kReplicas; ++i) first[i] = SizeOf(i);
    }
  }
  EXPECT_TRUE(AllShare());
  for (int i = 0; i < kReplicas; ++i) {
    const Size last = SizeOf(i);
    std::printf("replica %d: %d -> %d KiB, %d -> %d threads, %d -> %d files\n",
                i, first[i].kilobytes, last.kilobytes, first[i].threads,
                last.threads, first[i].files, last.files);
    EXPECT_LE(last.kilobytes, first[i].kilobytes + kMoreKilobytes);
    EXPECT_LE(last.threads, first[i].threads + kMoreThreads);
    EXPECT_LE(last.files, first[i].files + kMoreFiles);
  }
  std::printf("%d rounds in %s, %d calls, %d runs of the function\n", rounds,
              absl::FormatDuration(absl::Now() - begin).c_str(), load.calls(),
              function_->runs());
}

}  // namespace
}  // namespace fncache::testing
