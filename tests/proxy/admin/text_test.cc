// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/text.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/admin.pb.h"
#include "tests/proxy/admin/stats_testing.h"

namespace fncache::proxy::admin {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kExplain[] = R"pb(
  explained: true
  share: 1
  paths_share: 1
  functions {
    function: "function-a"
    reasons { name: "new" count: 2 }
    reasons { name: "changed" count: 1234 }
    paths {
      name: "observed.composite.resource.metadata.resourceVersion"
      count: 1200
    }
    paths { name: "observed.composite.resource.status" count: 34 }
    writers { name: "crossplane" count: 1234 }
    masks {
      mask: "observed.composite.resource.metadata.resourceVersion"
      count: 1200
    }
    masks { mask: "@times" count: 34 }
  }
  functions { function: "function-b" }
  last {
    time { seconds: 1800000000 nanos: 123000000 }
    function: "function-a"
    composite: "XBucket team/b"
    reason: "changed"
    detail: "observed.composite.resource.metadata.resourceVersion"
    writer: "crossplane"
    mask: "observed.composite.resource.metadata.resourceVersion"
    key: "\001\002"
  }
  last {
    time { seconds: 1799999999 }
    function: "function-a"
    reason: "new"
  }
)pb";

TEST(TextTest, LookUp) {
  EXPECT_EQ(LookUpText(Parsed<v1::LookUpResponse>(R"pb(
              key: "0123456789abcdef"
              entries {
                tier: "memory"
                function: "function-a"
                generation: "a \033 1"
                age { seconds: 90 }
                remaining { seconds: -30 }
                size_bytes: 13000
                function_ttl { seconds: 60 }
                lifetime { seconds: 60 }
                told_ttl { seconds: 10 }
                recent_hits: 3
                secrets: true
                ban: "purge of function function-a at 2027-01-15"
                served: false
                served_why: "it is purged"
              }
              entries {
                tier: "disk"
                function: "function-a"
                age { seconds: 30 }
                remaining { seconds: 24 }
                size_bytes: 13000
                lifetime { seconds: 60 }
                served: true
              })pb")),
            R"(key 30313233343536373839616263646566

memory
  function            function-a
  generation          "a \x1b 1"
  served              no: it is purged
  age                 1m30s
  remaining           -30s (no longer served as fresh)
  size                12.7 KiB
  function's TTL      1m0s
  lifetime            1m0s
  TTL sent now        10s
  recent hits         3 or more
  connection details  yes
  banned              by purge of function function-a at 2027-01-15

disk
  function            function-a
  generation          -
  served              yes
  age                 30s
  remaining           24s
  size                12.7 KiB
  function's TTL      none
  lifetime            1m0s
  TTL sent now        none
  recent hits         not counted here
  connection details  no
  banned              no
)");
}

TEST(TextTest, LookUpOfNothing) {
  EXPECT_EQ(LookUpText(Parsed<v1::LookUpResponse>(R"pb(key: "\001\377")pb")),
            "key 01ff\nno tier has an entry\n");
}

TEST(TextTest, LookUpWhileTheSharedTierIsDown) {
  v1::LookUpResponse response;
  response.set_key("\001");
  response.set_shared_down("the clocks \033 differ");
  EXPECT_EQ(LookUpText(response),
            "key 01\nnot looked up in the shared tier, which is down: the "
            "clocks \\x1b differ\nno other tier has an entry\n");
  response.add_entries()->set_tier("shared");
  response.clear_shared_down();
  EXPECT_THAT(LookUpText(response), StartsWith("key 01\n\nshared\n  func"));
}

TEST(TextTest, PurgeOfAFleet) {
  v1::PurgeResponse response;
  response.set_removed(2);
  response.set_durable(true);
  response.set_shared(true);
  EXPECT_EQ(PurgeText("key 00", /*soft=*/false, "/run/a.sock", response),
            "purged: key 00, on /run/a.sock; 2 entries gone, those in the "
            "shared tier under a ban, 0 calls in progress that no caller can "
            "join\nThe record of bans has it: other replicas have it within "
            "2 s, and it holds after a restart.\n");
  response.set_unknown_generation(true);
  EXPECT_THAT(PurgeText("g", /*soft=*/true, "/run/a.sock", response),
              AllOf(StartsWith("made stale: g, on /run/a.sock; all in memory "
                               "and those in the shared tier under a ban, 0 "
                               "calls"),
                    HasSubstr("no entry in memory was of this generation, and "
                              "those in the shared tier are of it only if "
                              "another replica had it. (")));
}

TEST(TextTest, Purge) {
  EXPECT_EQ(PurgeText("function a", /*soft=*/false, "/run/a.sock",
                      Parsed<v1::PurgeResponse>(R"pb(
                        removed: 1
                        covered: 1234
                        flights: 1
                        durable: true)pb")),
            "purged: function a, on /run/a.sock; 1 entry gone, up to 1,234 on "
            "disk under a ban, 1 "
            "call in progress that no caller can join\nIt holds after a "
            "restart, too.\n");
  EXPECT_EQ(
      PurgeText("key 00", /*soft=*/true, "/run/a.sock",
                Parsed<v1::PurgeResponse>(R"pb(
                  widened: true
                  widened_to: "function a"
                  unreached: "shared tier: redis-1:6379")pb")),
      "made stale: key 00, on /run/a.sock; all in memory and up to 0 on disk "
      "under a ban, 0 calls in progress that no caller can join\nMore is "
      "purged for now than is remembered one by one: function a has "
      "been purged instead.\n"
      "There is no tier that outlives the process: nothing had to be written "
      "down.\n"
      "not reached: shared tier: redis-1:6379\n");
}

TEST(TextTest, PurgeOfAGenerationThatNobodyHad) {
  v1::PurgeResponse response;
  response.set_unknown_generation(true);
  const std::string what = "function a, generation \"typo\"";
  EXPECT_THAT(
      PurgeText(what, /*soft=*/false, "/run/a.sock", response),
      StartsWith(
          "purged: function a, generation \"typo\", on /run/a.sock; 0 "
          "entries gone, 0 calls in progress that no caller can join\nNot in "
          "use since the daemon's start: no entry in memory was "
          "of this generation, and there is none of the function on "
          "disk. (fncache admin config tells which one is in use.)\n"));
  response.set_covered(7);
  EXPECT_THAT(PurgeText(what, /*soft=*/false, "/run/a.sock", response),
              HasSubstr("of this generation, and those on disk are of it only "
                        "if an earlier daemon had it. ("));
}

TEST(TextTest, Explain) {
  EXPECT_EQ(ExplainText(Parsed<v1::ExplainResponse>(kExplain)),
            R"(function-a: 1,236 misses since the start

  why      misses
  new           2
  changed   1,234

  what changed                                          misses
  observed.composite.resource.metadata.resourceVersion   1,200
  observed.composite.resource.status                        34

  last writer of what changed  misses
  crossplane                    1,234

  masks that hide what changed                          misses  function
  observed.composite.resource.metadata.resourceVersion   1,200  not asked
  @times                                                    34  not asked

function-b: 0 misses since the start

  last misses         function    composite       why      detail
  01-15 08:00:00.123  function-a  XBucket team/b  changed  observed.composite.resource.metadata.resourceVersion
  01-15 07:59:59.000  function-a  -               new      -

A mask says that the function does not read what it hides. It was not asked:
fncache probe asks it, mode: shadow proves the mask in service.
)");
}

TEST(TextTest, ExplainOfAFullMemoryAndOfNone) {
  EXPECT_THAT(
      ExplainText(Parsed<v1::ExplainResponse>(R"pb(explained: true
                                                   share: 0.5
                                                   paths_share: 0.25)pb")),
      HasSubstr("explain.memory is full, or there are more misses than can "
                "be looked at: of 50.0% of composites "
                "requests are remembered, of 25.0% with their paths."));
  EXPECT_THAT(ExplainText(Parsed<v1::ExplainResponse>(
                  R"pb(functions {
                         function: "a"
                         reasons { name: "unknown" count: 1 }
                       })pb")),
              HasSubstr("explain.memory is 0"));
}

TEST(TextTest, ExplainAsJson) {
  const json said =
      json::parse(ExplainJson(Parsed<v1::ExplainResponse>(kExplain)));
  EXPECT_EQ(said["functions"][0]["misses"], 1236);
  EXPECT_EQ(said["functions"][0]["reasons"][1]["reason"], "changed");
  EXPECT_EQ(said["functions"][0]["masks"][1]["function_asked"], false);
  EXPECT_EQ(said["last"][0]["key"], "0102");
  EXPECT_NEAR(said["last"][0]["time_unix_seconds"].get<double>(),
              1800000000.123, 1e-6);
  EXPECT_EQ(said["last"][0]["mask"],
            "observed.composite.resource.metadata.resourceVersion");
}

TEST(TextTest, NamesOfUsersCannotHarmATerminal) {
  v1::ExplainResponse response = Parsed<v1::ExplainResponse>(kExplain);
  response.mutable_last(0)->set_composite("\033[2J");
  response.mutable_last(0)->set_detail("a.\"\n\r\"");
  response.mutable_functions(0)->mutable_paths(0)->set_name("\033c");
  response.mutable_functions(0)->mutable_writers(0)->set_name("\a");
  EXPECT_THAT(ExplainText(response), Not(HasSubstr("\033")));
  EXPECT_THAT(ExplainText(response), Not(HasSubstr("\a")));
  EXPECT_THAT(ExplainText(response), Not(HasSubstr("\r")));
}

TEST(TextTest, Reload) {
  EXPECT_EQ(ReloadText(v1::ReloadResponse()),
            "The settings are what they were.\n");
  EXPECT_EQ(ReloadText(Parsed<v1::ReloadResponse>(R"pb(
              changed { key: "ttl.max" old_value: "24h" new_value: "1h" }
              changed { key: "mask" function: "a" new_value: "@versions" }
              needs_restart {
                key: "admin"
                old_value: "127.0.0.1:9901"
                new_value: "0.0.0.0:9901"
              })pb")),
            R"(  changed  was  is
  ttl.max  24h  1h
  a: mask  -    @versions

  not changed, as it needs a restart  stays           file says
  admin                               127.0.0.1:9901  0.0.0.0:9901
)");
}

TEST(TextTest, TraceAndLog) {
  EXPECT_EQ(StartTraceText(Parsed<v1::StartTraceResponse>(R"pb(
              dir: "/t"
              level: "paths"
              until { seconds: 1800000000 })pb")),
            "tracing to /t at level paths until 2027-01-15 08:00:00 UTC\n");
  EXPECT_EQ(StartTraceText(Parsed<v1::StartTraceResponse>(
                R"pb(dir: "/t" level: "keys")pb")),
            "tracing to /t at level keys, until fncache admin trace stop\n");
  EXPECT_EQ(StopTraceText(Parsed<v1::StopTraceResponse>(R"pb(dir: "/t"
                                                             records: 12
                                                             dropped: 1
                                                             bytes: 2048)pb")),
            "stopped tracing to /t: 12 calls in 2.0 KiB, 1 dropped\n");
  EXPECT_EQ(LogLevelText(Parsed<v1::SetLogLevelResponse>(
                R"pb(level: "debug" old_level: "info")pb")),
            "log level debug; was info\n");
  EXPECT_EQ(LogLevelText(Parsed<v1::SetLogLevelResponse>(
                R"pb(level: "warn"
                     until { seconds: 1800000000 })pb")),
            "log level warn until 2027-01-15 08:00:00 UTC\n");
  EXPECT_EQ(StopTraceText(v1::StopTraceResponse()), "no trace was written\n");
}

TEST(TextTest, Shadow) {
  EXPECT_EQ(ShadowText(v1::ShadowResponse()),
            "No function has mode: shadow.\n");
  EXPECT_EQ(ShadowText(Parsed<v1::ShadowResponse>(R"pb(text: "a: wrong\n")pb")),
            "a: wrong\n");
}

}  // namespace
}  // namespace fncache::proxy::admin
