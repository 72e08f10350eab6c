// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proxy/telemetry/status_testing.h"

namespace fncache::proxy::telemetry {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ProblemsTest : public testing::Test {
 protected:
  // "error disk: The disk tier ..."
  std::vector<std::string> Problems() {
    std::vector<std::string> found;
    for (const Problem& problem : FindProblems(source_.Now())) {
      found.push_back(absl::StrCat(
          problem.severity == Problem::Severity::kError ? "error " : "warning ",
          problem.kind, " ", problem.subject, ": ", problem.text));
    }
    return found;
  }

  StatusSource source_{{"a", "b"}};
};

TEST_F(ProblemsTest, NothingIsWrongWhereCallsEndWell) {
  source_.Call(0, Outcome::kHit, absl::Milliseconds(1));
  source_.Call(0, Outcome::kMiss, absl::Seconds(1));
  source_.Call(0, Outcome::kMiss, absl::Seconds(1), 1);   // the caller left
  source_.Call(0, Outcome::kMiss, absl::Seconds(1), 12);  // v1beta1 is next
  source_.instruments.WatchCertificate(
      TlsSide::kServer, [&] { return source_.clock.Now() + absl::Hours(999); });
  source_.instruments.WatchTier(cache::Tier::kMemory, [] {
    return cache::store::StoreStats{1, 2, 3};
  });
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(ProblemsTest, AnUnreachableFunctionIsNamedWithTimeAndReason) {
  const FunctionInstruments& b = source_.instruments.function(1);
  b.Unreachable(source_.clock.Now(), "Connection refused");
  source_.Pass(absl::Seconds(63));
  // The reason may change, the time not.
  b.Unreachable(source_.clock.Now(), "DNS resolution failed");
  EXPECT_THAT(Problems(),
              ElementsAre("error function_unreachable b: b cannot be reached "
                          "at dns:///b since 2027-01-15 08:00:00 UTC (for 1m "
                          "3s): DNS resolution failed"));
  b.Reachable();
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(ProblemsTest, OldAnswersInPlaceOfErrorsAreToldThoughNoCallerSawThem) {
  const FunctionInstruments& a = source_.instruments.function(0);
  a.Unreachable(source_.clock.Now(), "why");
  a.RecordServedOver(14);
  a.RecordServedOver(4);
  a.RecordServedOver(4);
  EXPECT_THAT(Problems(),
              ElementsAre(testing::StartsWith("error function_unreachable a"),
                          "warning errors_served_over a: Callers of a got old "
                          "answers instead of errors in the last minute "
                          "(stale_if_error): DEADLINE_EXCEEDED 2 times, "
                          "UNAVAILABLE once."));
  a.Reachable();
  source_.Pass(absl::Minutes(2));
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(ProblemsTest, CallsThatFoundNoRoomWithoutACallerAreTold) {
  const FunctionInstruments& b = source_.instruments.function(1);
  b.RefreshRefused();
  b.RefreshRefused();
  b.AbandonedRefused();
  EXPECT_THAT(Problems(),
              ElementsAre("warning no_room_without_caller b: As many calls to "
                          "b as may run without a caller did in the last "
                          "minute: a refresh was not begun 2 times, an "
                          "abandoned call was cancelled once."));
}

TEST_F(ProblemsTest, CallsThatWereRefusedAreTold) {
  const FunctionInstruments& b = source_.instruments.function(1);
  b.RequestRefused(2);
  b.RequestRefused(2);
  b.RequestRefused(4);
  EXPECT_THAT(Problems(),
              ElementsAre("warning calls_refused b: Calls of b were refused in "
                          "the last minute: inflight.bytes used up 2 times, "
                          "a loop, as upstream leads back here once."));
  source_.Pass(absl::Minutes(2));
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(ProblemsTest, LostLinesOfTheAccessLogAreTold) {
  source_.instruments.access_log().written.Add(1);
  EXPECT_THAT(Problems(), IsEmpty());
  source_.instruments.access_log().dropped.Add(2);
  EXPECT_THAT(Problems(),
              ElementsAre("warning access_log_dropped access log: 2 lines of "
                          "the access log were not written in the last minute: "
                          "its output takes them too slowly, or not at all. "
                          "The log says more."));
}

TEST_F(ProblemsTest, ASettingsFileThatIsNotInForceIsToldWithTheReason) {
  Status status = source_.Now();
  status.reload.file = "fncache.yaml";
  status.reload.last_successful = false;
  status.reload.failing_since = status.reading.now - absl::Seconds(61);
  status.reload.error = "fncache.yaml:3: mode: why";
  status.reload.restart = {"listen: a -> b", "workers: 1 -> 2"};
  const std::vector<Problem> problems = FindProblems(status);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].kind, "reload_failed");
  EXPECT_EQ(problems[0].subject, "fncache.yaml");
  EXPECT_THAT(problems[0].text, testing::HasSubstr("(for 1m 1s)"));
  EXPECT_THAT(problems[0].text,
              testing::HasSubstr("fncache.yaml:3: mode: why"));
  EXPECT_EQ(problems[1].kind, "restart_needed");
  EXPECT_THAT(problems[1].text,
              testing::HasSubstr("listen: a -> b, workers: 1 -> 2."));
}

TEST_F(ProblemsTest, ASharedTierThatIsDownIsNamedWithTimeAndReason) {
  cache::store::SharedFigures shared = SharedExample(source_.clock.Now());
  source_.instruments.WatchShared([&shared] { return shared; });
  EXPECT_THAT(
      Problems(),
      ElementsAre("warning nodes_not_up shared: 1 of 2 nodes of the shared "
                  "tier's server are not up. The first is redis-1:6379, down: "
                  "Connection <refused>."));
  shared.server.nodes.pop_back();
  EXPECT_THAT(Problems(), IsEmpty());
  shared.bans_written = false;
  EXPECT_THAT(Problems(),
              ElementsAre("warning bans_not_shared shared: The record of bans "
                          "lacks a purge of this daemon, so other replicas do "
                          "not know it. That is retried."));
  shared.up = false;
  shared.why = "the clocks differ by 3s";
  EXPECT_THAT(Problems(),
              ElementsAre("error tier_down shared: The shared tier is down "
                          "since 2027-01-15 07:58:30 UTC (for 1m 30s): the "
                          "clocks differ by 3s. Look-ups there are misses, and "
                          "fills are dropped there."));
}

TEST_F(ProblemsTest, ErrorsOfAFunctionAreToldForAMinute) {
  source_.Call(0, Outcome::kMiss, absl::Seconds(1), 14);
  source_.Call(0, Outcome::kMiss, absl::Seconds(1), 14);
  source_.Call(0, Outcome::kMiss, absl::Seconds(1), 2);
  source_.Call(0, Outcome::kMiss, absl::Seconds(1));
  EXPECT_THAT(Problems(),
              ElementsAre("warning upstream_errors a: 3 of 4 calls to a ended "
                          "with an error in the last minute: UNKNOWN once, "
                          "UNAVAILABLE 2 times."));
  source_.Pass(absl::Minutes(2));
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(ProblemsTest, ErrorsComeBeforeWarnings) {
  source_.instruments.HandshakeFailed(TlsSide::kServer,
                                      HandshakeFault::kNoCertificate);
  source_.instruments.HandshakeFailed(TlsSide::kServer,
                                      HandshakeFault::kExpired);
  source_.instruments.HandshakeFailed(TlsSide::kServer,
                                      HandshakeFault::kExpired);
  source_.instruments.observer()->OnDropped(
      cache::Tier::kDisk, cache::Dropped::kQueueFull, cache::FunctionId{0});
  source_.instruments.observer()->OnError(
      cache::Tier::kDisk, cache::TierError::kRead, cache::FunctionId{0});
  source_.instruments.WatchTier(cache::Tier::kDisk, [] {
    cache::store::StoreStats stats;
    stats.up = false;
    return stats;
  });
  EXPECT_THAT(
      Problems(),
      ElementsAre(
          "error tier_down disk: The disk tier is down since 2027-01-15 "
          "08:00:00 UTC (for 0s): look-ups and fills leave it out. The log "
          "says why.",
          "warning tier_errors disk: The disk tier failed in the last minute: "
          "read once. No call failed for it.",
          "warning handshakes_failed listener: TLS handshakes failed in the "
          "last minute (listener): expired 2 times, no_certificate once.",
          "warning fills_dropped cache: Responses were not stored in the last "
          "minute: queue_full once."));
}

TEST_F(ProblemsTest, CertificatesThatEndSoonOrWereNotReplacedAreTold) {
  absl::Duration left = absl::Hours(49);
  source_.instruments.WatchCertificate(
      TlsSide::kServer, [&] { return source_.clock.Now() + left; });
  EXPECT_THAT(Problems(),
              ElementsAre("warning certificate_expires_soon listener: The "
                          "listener certificate ends in 2d 1h 0m 0s, at "
                          "2027-01-17 09:00:00 UTC."));
  left = absl::Hours(-1);
  EXPECT_THAT(Problems(),
              ElementsAre("error certificate_expired listener: The listener "
                          "certificate ended at 2027-01-15 07:00:00 UTC: peers "
                          "refuse it."));
  left = absl::Hours(9999);
  source_.instruments.CertificateReloadFailed(TlsSide::kServer);
  EXPECT_THAT(Problems(),
              ElementsAre("warning certificate_reload_failed listener: The "
                          "listener certificate files were replaced by files "
                          "that cannot be used; the older ones stay in use. "
                          "The log says why."));
  source_.instruments.CertificateReloaded(TlsSide::kServer);
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST(HitRateTest, IsTheShareOfLookUpsAnsweredFromTheCache) {
  FunctionCounts counts;
  EXPECT_EQ(HitRate(counts), absl::nullopt);
  counts.hits = 3;
  counts.misses = 1;
  EXPECT_EQ(HitRate(counts), 0.75);
}

}  // namespace
}  // namespace fncache::proxy::telemetry
