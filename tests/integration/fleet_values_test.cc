// SPDX-License-Identifier: Apache-2.0
// A fleet whose server gives back something else than what it got: values, and
// the record of bans. They are misses, and purges hold.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cache/store/seal.h"
#include "gtest/gtest.h"
#include "tests/common/eventually.h"
#include "tests/integration/fleet_testing.h"

namespace fncache::testing {
namespace {

constexpr char kLookups[] = "fncache_shared_lookups_total";

class FleetValuesTest : public FleetTest {
 protected:
  struct Value {
    std::string composite;
    std::string name;  // on the server
  };

  std::set<std::string> Names() const {
    const std::string names = server_.Cli({"KEYS", "*"});
    return absl::StrSplit(names, '\n', absl::SkipEmpty());
  }
  // A composite that replica `from` filled, with its name on the server. No
  // load may run.
  Value Fill(int from) {
    Value value;
    EXPECT_TRUE(Eventually([&] {
      const std::set<std::string> before = Names();
      value.composite = Filled(from);
      for (const std::string& name : Names()) {
        // The record of bans may come meanwhile.
        if (before.count(name) > 0 || name == NameOfRecord()) continue;
        value.name = name;
        return true;
      }
      return false;
    }));
    return value;
  }
  std::string NameOfRecord(const std::string& prefix = "fncache") const {
    return cache::store::Seal(ReplicaOptions().secret, prefix).NameOfBans();
  }
  // Replica `at` has not seen the value, and does not take it now.
  void ExpectRejected(int at, const Value& value, const std::string& what) {
    const double before = Metric(at, kLookups, "result=\"rejected\"");
    const Answered answered = Call(at, value.composite);
    EXPECT_FALSE(answered.hit) << what;
    EXPECT_EQ(answered.run, 2) << what;
    EXPECT_GE(Metric(at, kLookups, "result=\"rejected\""), before + 1) << what;
  }

  RedisServer server_;
};

TEST_F(FleetValuesTest, SwappedValuesAreRejected) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url(), kPatient));
  const Value a = Fill(0);
  const Value b = Fill(0);
  server_.Cli({"RENAME", a.name, "kept"});
  server_.Cli({"RENAME", b.name, a.name});
  server_.Cli({"RENAME", "kept", b.name});
  ExpectRejected(1, a, "a");
  ExpectRejected(1, b, "b");
  MeasureMisses("values rejected", 10);
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetValuesTest, CutValuesAreRejected) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url(), kPatient));
  for (const int size : {1, 20, 21, 44, 45, 60, 61, -2}) {
    const Value value = Fill(0);
    server_.Cli({"EVAL",
                 "local v = redis.call('GET', KEYS[1])\n"
                 "local n = tonumber(ARGV[1])\n"
                 "redis.call('SET', KEYS[1], string.sub(v, 1, n), 'KEEPTTL')",
                 "1", value.name, absl::StrCat(size)});
    ExpectRejected(1, value, absl::StrCat("cut to ", size));
  }
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetValuesTest, FlippedBytesAreRejected) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url(), kPatient));
  // One byte each of version, start, nonce, message and tag.
  for (const int at : {0, 20, 30, 60, -1}) {
    const Value value = Fill(0);
    server_.Cli(
        {"EVAL",
         "local n = tonumber(ARGV[1])\n"
         "if n < 0 then n = redis.call('STRLEN', KEYS[1]) + n end\n"
         "local b = string.byte(redis.call('GETRANGE', KEYS[1], n, n))\n"
         "redis.call('SETRANGE', KEYS[1], n, string.char(255 - b))",
         "1", value.name, absl::StrCat(at)});
    ExpectRejected(1, value, absl::StrCat("flipped at ", at));
  }
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetValuesTest, AStartThatWasRaisedIsRejectedAndKeepsNoFillOut) {
  ASSERT_NO_FATAL_FAILURE(Start(3, server_.url(), kPatient));
  const Value value = Fill(0);
  server_.Cli({"SETRANGE", value.name, "1", "09000000000000000000"});
  ExpectRejected(1, value, "started raised");
  // Replica 1's fill is there.
  EXPECT_TRUE(
      Reaches(1, "fncache_shared_writes_total", "result=\"stored\"", 1));
  const Answered third = Call(2, value.composite);
  EXPECT_TRUE(third.hit);
  EXPECT_EQ(third.run, 2);
}

TEST_F(FleetValuesTest, AValueThatIsReplayedAfterAPurgeIsPurged) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url(), kPatient));
  const Value key = Fill(0);
  const Value all = Fill(0);
  for (const Value& value : {key, all}) {
    server_.Cli({"COPY", value.name, "kept:" + value.name});
  }
  EXPECT_EQ(Purge(0, {"--key", KeyOf(key.composite)}, {key.composite}).code, 0);
  server_.Cli({"COPY", "kept:" + key.name, key.name, "REPLACE"});
  AwaitPurge();
  EXPECT_EQ(Call(1, key.composite).run, 2);
  EXPECT_EQ(Purge(1, {"--all"}).code, 0);
  server_.Cli({"COPY", "kept:" + all.name, all.name, "REPLACE"});
  server_.Cli({"COPY", "kept:" + key.name, key.name, "REPLACE"});
  AwaitPurge();
  EXPECT_EQ(Call(0, all.composite).run, 2);
  EXPECT_EQ(Call(0, key.composite).run, 3);
  // A replica that starts now has learned them, too.
  server_.Cli({"COPY", "kept:" + all.name, all.name, "REPLACE"});
  server_.Cli({"COPY", "kept:" + key.name, key.name, "REPLACE"});
  ReplicaOptions options;
  options.url = server_.url();
  options.shared = kPatient;
  const int third = StartReplica(options);
  EXPECT_TRUE(TierOf(third, true));
  EXPECT_GT(Call(third, all.composite).run, 1);
  EXPECT_GT(Call(third, key.composite).run, 1);
}

TEST_F(FleetValuesTest, ValuesOfAnotherSecretOrPrefixAreRejected) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url(), kPatient));
  ReplicaOptions options;
  options.url = server_.url();
  options.shared = kPatient;
  options.secret = "another secret, which is as long as it must be";
  const int secret = StartReplica(options);
  options.secret = ReplicaOptions().secret;
  options.shared = std::string("  prefix: other\n") + kPatient;
  const int prefix = StartReplica(options);
  EXPECT_TRUE(TierBecomes(true));
  for (const int other : {secret, prefix}) {
    const Value own = Fill(0);
    const std::set<std::string> before = Names();
    std::string foreign;
    // The same request.
    EXPECT_FALSE(Call(other, own.composite).hit);
    EXPECT_TRUE(Eventually([&] {
      for (const std::string& name : Names()) {
        if (before.count(name) == 0) foreign = name;
      }
      return !foreign.empty();
    }));
    server_.Cli({"COPY", foreign, own.name, "REPLACE"});
    const double rejected = Metric(1, kLookups, "result=\"rejected\"");
    EXPECT_EQ(Call(1, own.composite).run, 3);
    EXPECT_GE(Metric(1, kLookups, "result=\"rejected\""), rejected + 1);
  }
}

// ------------------------------------------------------- Secrets and record

TEST_F(FleetValuesTest, ReplicasWithTwoSecretsNeverMeet) {
  FleetFunction other("other");
  for (int i = 0; i < 4; ++i) {
    ReplicaOptions options;
    options.url = server_.url();
    options.shared = kPatient;
    if (i >= 2) {
      options.secret = "another secret, which is as long as it must be";
      options.function = &other;
    }
    ASSERT_NO_FATAL_FAILURE(StartReplica(options));
  }
  EXPECT_TRUE(TierBecomes(true));
  // Each answer is checked for its function.
  Load load(this);
  load.Await(200);
  EXPECT_TRUE(Shares(0, 1));
  EXPECT_TRUE(Shares(1, 0));
  const int before = other.runs();
  EXPECT_TRUE(Eventually([&] { return other.runs() > before; }));
  for (int i = 0; i < replicas(); ++i) {
    EXPECT_LE(Metric(i, kLookups, "result=\"rejected\""), 0);
  }
}

TEST_F(FleetValuesTest, ARecordThatIsRemovedIsWrittenAgain) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url(), kPatient));
  const Value value = Fill(0);
  server_.Cli({"COPY", value.name, "kept"});
  EXPECT_EQ(Purge(0, {"--all"}).code, 0);
  Load load(this);
  server_.Cli({"DEL", NameOfRecord()});
  EXPECT_TRUE(Eventually([&] {
    return server_.Cli({"EXISTS", NameOfRecord()}) == "1";
  }));
  server_.Cli({"COPY", "kept", value.name, "REPLACE"});
  ReplicaOptions options;
  options.url = server_.url();
  options.shared = kPatient;
  const int third = StartReplica(options);
  EXPECT_TRUE(TierOf(third, true));
  EXPECT_GT(Call(third, value.composite).run, 1);
  load.Await(50);
  load.Stop();
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetValuesTest, AGarbledRecordPurgesEverythingThatIsStored) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url(), kPatient));
  EXPECT_EQ(Purge(0, {"--function", "no-such-function"}).code, 1);
  EXPECT_EQ(Purge(0, {"--generation", "v0", "--function", "function"}).code, 0);
  const Value value = Fill(0);
  EXPECT_TRUE(Call(0, value.composite).hit);
  server_.Cli({"SETRANGE", NameOfRecord(), "5", "garbled"});
  for (int i = 0; i < replicas(); ++i) {
    EXPECT_TRUE(Eventually([&] { return Call(i, value.composite).run > 1; }));
  }
  EXPECT_TRUE(AllShare());
}

// Replicas that know the record read it again only if its beginning changed.
// One that starts reads it, and writes what that means.
TEST_F(FleetValuesTest, ARecordGarbledAtItsEndIsFoundByAReplicaThatStarts) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url(), kPatient));
  EXPECT_EQ(Purge(0, {"--generation", "v0", "--function", "function"}).code, 0);
  const Value value = Fill(0);
  EXPECT_TRUE(replica(1).process->WaitForStderr("as another replica was"));
  EXPECT_TRUE(Call(1, value.composite).hit);
  server_.Cli({"SETRANGE", NameOfRecord(), "30", "garbled"});
  ReplicaOptions options;
  options.url = server_.url();
  options.shared = kPatient;
  ASSERT_NO_FATAL_FAILURE(StartReplica(options));
  for (int i = 0; i < replicas(); ++i) {
    EXPECT_TRUE(Eventually([&] { return Call(i, value.composite).run > 1; }));
  }
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetValuesTest, ARecordThatIsRolledBackIsWrittenAgain) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url(), kPatient));
  EXPECT_EQ(Purge(0, {"--generation", "v0", "--function", "function"}).code, 0);
  EXPECT_TRUE(Eventually([&] {
    return server_.Cli({"COPY", NameOfRecord(), "kept-record", "REPLACE"}) ==
           "1";
  }));
  const Value value = Fill(0);
  server_.Cli({"COPY", value.name, "kept"});
  EXPECT_EQ(Purge(1, {"--all"}).code, 0);
  const std::string same =
      "return redis.call('GET', KEYS[1]) == redis.call('GET', KEYS[2]) and 1 "
      "or 0";
  server_.Cli({"COPY", "kept-record", NameOfRecord(), "REPLACE"});
  EXPECT_TRUE(Eventually([&] {
    return server_.Cli({"EVAL", same, "2", NameOfRecord(), "kept-record"}) ==
           "0";
  }));
  server_.Cli({"COPY", "kept", value.name, "REPLACE"});
  ReplicaOptions options;
  options.url = server_.url();
  options.shared = kPatient;
  const int third = StartReplica(options);
  EXPECT_TRUE(TierOf(third, true));
  EXPECT_GT(Call(third, value.composite).run, 1);
  AwaitPurge();
  EXPECT_GT(Call(1, value.composite).run, 1);
  EXPECT_TRUE(AllShare());
}

}  // namespace
}  // namespace fncache::testing
