// SPDX-License-Identifier: Apache-2.0
#include "bench/load_options.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/method.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"

namespace fncache::bench {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

absl::StatusOr<LoadCommand> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "load");
  return ParseLoadCommand(static_cast<int>(arguments.size()), arguments.data());
}

TEST(LoadOptions, DefaultsAreAClosedLoopOfOneCall) {
  const auto command = Parse({"--target", "127.0.0.1:1"});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(command->load.connections, 1u);
  EXPECT_EQ(command->load.streams, 1u);
  EXPECT_EQ(command->load.rate, 0);
  EXPECT_EQ(command->load.calls, 0u);
  EXPECT_EQ(command->load.keys, 64u);
  EXPECT_TRUE(command->load.random_keys);
  EXPECT_EQ(command->load.expected.tags, TagCheck::kHits);
  EXPECT_EQ(command->workload.distinct, 64u);
  EXPECT_EQ(command->workload.orders, 8u);
  EXPECT_EQ(command->load.path, kRunFunctionV1);
}

TEST(LoadOptions, EverythingCanBeSet) {
  const auto command = Parse({"--target",
                              "a:1",
                              "--target",
                              "[::1]:2",
                              "--connections",
                              "16",
                              "--streams",
                              "4",
                              "--rate",
                              "2500.5",
                              "--warmup",
                              "1s",
                              "--duration",
                              "1m30s",
                              "--calls",
                              "1000000",
                              "--shape",
                              "130k",
                              "--distinct",
                              "65",
                              "--orders",
                              "3",
                              "--keys",
                              "0",
                              "--first-key",
                              "77",
                              "--pick",
                              "sequential",
                              "--seed",
                              "9",
                              "--path",
                              "/a.B/C",
                              "--header",
                              "X-Tenant: a:b",
                              "--header",
                              "grpc-timeout:5S",
                              "--expect-status",
                              "hit",
                              "--check-every",
                              "1",
                              "--check-tags",
                              "all",
                              "--server-pid",
                              "11",
                              "--server-pid",
                              "12",
                              "--max-outstanding",
                              "5",
                              "--patience",
                              "2s",
                              "--response",
                              "small",
                              "--ttl",
                              "none"});
  ASSERT_TRUE(command.ok()) << command.status();
  const LoadOptions& load = command->load;
  EXPECT_THAT(load.targets, ElementsAre("a:1", "[::1]:2"));
  EXPECT_EQ(load.connections, 16u);
  EXPECT_EQ(load.streams, 4u);
  EXPECT_EQ(load.rate, 2500.5);
  EXPECT_EQ(load.warmup, absl::Seconds(1));
  EXPECT_EQ(load.duration, absl::Seconds(90));
  EXPECT_EQ(load.calls, 1000000u);
  EXPECT_EQ(command->workload.shape, Shape::k130K);
  EXPECT_EQ(command->workload.distinct, 65u);
  EXPECT_EQ(command->workload.orders, 3u);
  EXPECT_EQ(load.keys, 0u);
  EXPECT_EQ(load.first_key, 77u);
  EXPECT_FALSE(load.random_keys);
  EXPECT_EQ(load.seed, 9u);
  EXPECT_EQ(command->workload.seed, 9u);
  EXPECT_EQ(load.path, "/a.B/C");
  EXPECT_THAT(load.headers,
              ElementsAre(Pair("x-tenant", "a:b"), Pair("grpc-timeout", "5S")));
  EXPECT_EQ(load.expected.status, CacheStatus::kHit);
  EXPECT_EQ(load.check_every, 1u);
  EXPECT_EQ(load.expected.tags, TagCheck::kAll);
  EXPECT_THAT(load.server_pids, ElementsAre(11, 12));
  EXPECT_EQ(load.max_outstanding, 5u);
  EXPECT_EQ(load.patience, absl::Seconds(2));
  EXPECT_EQ(command->answer, AnswerShape::kSmall);
  EXPECT_FALSE(command->ttl.has_value());
}

TEST(LoadOptions, LargeMessagesArePreparedInFewerOrders) {
  EXPECT_EQ(Parse({"--target", "a:1", "--shape", "1m"})->workload.orders, 2u);
  EXPECT_EQ(Parse({"--target", "a:1", "--shape", "1m", "--orders", "5"})
                ->workload.orders,
            5u);
}

TEST(LoadOptions, FilesNeedNoTarget) {
  EXPECT_TRUE(Parse({"--write-request", "x"}).ok());
  EXPECT_TRUE(Parse({"--write-response", "x"}).ok());
  EXPECT_THAT(std::string(Parse({}).status().message()),
              StartsWith("--target: needed"));
}

TEST(LoadOptions, ComplaintsNameTheOptionAndItsRange) {
  const std::vector<std::pair<std::vector<const char*>, std::string>> cases = {
      {{"--target", "nohost"}, "HOST:PORT"},
      {{"--target", "a:0"}, "HOST:PORT"},
      {{"--target", "a:65536"}, "HOST:PORT"},
      {{"--connections", "0"}, "from 1 to 50000"},
      {{"--connections", "50001"}, "from 1 to 50000"},
      {{"--streams", "-1"}, "from 1 to 100000"},
      {{"--rate", "0.001"}, "from 0.01 to 10000000"},
      {{"--rate", "-1"}, "from 0.01 to 10000000"},
      {{"--rate", "nan"}, "from 0.01 to 10000000"},
      {{"--rate", "x"}, "from 0.01 to 10000000"},
      {{"--max-outstanding", "0"}, "from 1"},
      {{"--calls", "-1"}, "from 0"},
      {{"--calls", ""}, "from 0"},
      {{"--duration", "0s"}, "from 1ms to 24h"},
      {{"--duration", "5"}, "from 1ms to 24h"},
      {{"--warmup", "-1s"}, "from 0s to 24h"},
      {{"--patience", "25h"}, "from 1ms to 24h"},
      {{"--shape", "5k"}, "small, 4k, 17k, 130k, 1m"},
      {{"--distinct", "0"}, "from 1"},
      {{"--orders", "x"}, "from 0"},
      {{"--keys", "1.5"}, "from 0"},
      {{"--first-key", "-1"}, "from 0"},
      {{"--pick", "best"}, "random, sequential"},
      {{"--seed", "x"}, "from 0"},
      {{"--path", "RunFunction"}, "/package.Service/Method"},
      {{"--header", "novalue"}, "NAME:VALUE"},
      {{"--header", ":v"}, "NAME:VALUE"},
      {{"--header", "a b:v"}, "NAME:VALUE"},
      {{"--expect-status", "cold"}, "hit, miss, stale"},
      {{"--check-every", "0"}, "from 1"},
      {{"--check-tags", "some"}, "hits, all, none"},
      {{"--server-pid", "0"}, "from 1"},
      {{"--response", "4k"}, "13k, small"},
      {{"--ttl", "soon"}, "from 0s"},
  };
  for (const auto& [arguments, range] : cases) {
    std::vector<const char*> all = arguments;
    if (arguments[0] != std::string("--target")) {
      all.insert(all.begin(), {"--target", "a:1"});
    }
    const auto command = Parse(all);
    EXPECT_THAT(std::string(command.status().message()),
                AllOf(StartsWith(absl::StrCat(arguments[0], ": \"",
                                              arguments[1], "\"")),
                      HasSubstr("accepted: "), HasSubstr(range)));
  }
  EXPECT_THAT(std::string(Parse({"--targets", "a:1"}).status().message()),
              HasSubstr("--targets"));
}

TEST(LoadOptions, HelpNamesEveryOptionWithin80Columns) {
  const auto command = Parse({"--help"});
  ASSERT_TRUE(command.ok());
  for (const char* option :
       {"--target",        "--connections",    "--streams",
        "--rate",          "--warmup",         "--duration",
        "--calls",         "--server-pid",     "--shape",
        "--distinct",      "--orders",         "--keys",
        "--first-key",     "--pick",           "--seed",
        "--path",          "--header",         "--expect-response",
        "--expect-status", "--check-every",    "--check-tags",
        "--write-request", "--write-response", "--response",
        "--ttl",           "Exit codes:"}) {
    EXPECT_THAT(command->help, HasSubstr(option));
  }
  for (const absl::string_view line : absl::StrSplit(command->help, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

}  // namespace
}  // namespace fncache::bench
