// SPDX-License-Identifier: Apache-2.0
#include "proxy/limits/read_grants.h"

#include <atomic>
#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "tests/proxy/limits/lanes.h"

namespace fncache::proxy::limits {
namespace {

using Quota = Budget::Quota;

// A request, which charges its bytes as it is granted.
class Reading final : public ReadGrants::Reader {
 public:
  explicit Reading(Budget* budget) : charge_(budget, Quota::kReading, 0) {}
  void Ask(ReadGrants* grants, const void* connection, size_t bytes) {
    bytes_ = bytes;
    grants->Ask(this, connection, bytes);
  }
  void OnGranted(Quota quota) override {
    charge_.Move(quota);
    charge_.Set(bytes_);
    ++granted;
  }
  // It has arrived, and its call releases it.
  void End(ReadGrants* grants) {
    charge_.Set(0);
    grants->Forget(this);
  }
  bool beyond() const { return charge_.quota() == Quota::kBeyond; }
  std::atomic<int> granted{0};

 private:
  size_t bytes_ = 0;
  Charge charge_;
};

// Everything runs on one worker's thread, whose timer polls for memory.
class ReadGrantsTest : public LanesTest {
 protected:
  void Do(absl::AnyInvocable<void()> task) {
    LanesTest::Do(0, std::move(task));
  }
  ReadGrants grants_{&budget_, loop(0)};
};

TEST_F(ReadGrantsTest, InOrderOfArrivalAndTheOldestAlwaysContinues) {
  int connections[5] = {};
  Reading first(&budget_);
  Reading large(&budget_);
  Reading middle(&budget_);
  Reading small(&budget_);
  Reading last(&budget_);
  Do([&] {
    first.Ask(&grants_, &connections[0], 45);
    EXPECT_EQ(first.granted, 1);
    EXPECT_FALSE(first.beyond());
    // There is no memory for this one, but one may always continue.
    large.Ask(&grants_, &connections[1], 5000);
    EXPECT_EQ(large.granted, 1);
    EXPECT_TRUE(large.beyond());
    middle.Ask(&grants_, &connections[2], 40);
    small.Ask(&grants_, &connections[3], 30);
    last.Ask(&grants_, &connections[4], 25);
    EXPECT_EQ(middle.granted + small.granted, 0);
    EXPECT_EQ(last.granted, 1) << "it fits, and delays nobody";
    first.End(&grants_);
  });
  // 75 are free, of which half may be granted: to the oldest that fits.
  EXPECT_TRUE(Eventually([&] { return small.granted == 1; }));
  EXPECT_EQ(middle.granted, 0);
  // The one beyond ends, and the oldest one that waits goes there.
  Do([&] { large.End(&grants_); });
  EXPECT_TRUE(Eventually([&] { return middle.granted == 1; }));
  EXPECT_TRUE(middle.beyond());
  Do([&] {
    for (Reading* one : {&middle, &small, &last}) one->End(&grants_);
  });
  EXPECT_EQ(budget_.reading(), 0u);
}

// One that has arrived, and is looked up or waits, keeps its bytes.
TEST_F(ReadGrantsTest, TheNextGoesBeyondWhenTheBytesOfTheOneBeforeHaveGone) {
  int connections[2] = {};
  Reading first(&budget_);
  Reading second(&budget_);
  Do([&] {
    first.Ask(&grants_, &connections[0], 5000);
    EXPECT_TRUE(first.beyond());
    second.Ask(&grants_, &connections[1], 4000);
    grants_.Complete(&first);
  });
  EXPECT_FALSE(
      Eventually([&] { return second.granted > 0; }, absl::Milliseconds(100)));
  Do([&] { first.End(&grants_); });
  EXPECT_TRUE(Eventually([&] { return second.granted == 1; }));
  Do([&] { second.End(&grants_); });
}

// Otherwise one that asks for much and sends little would keep all others
// waiting.
TEST_F(ReadGrantsTest, AConnectionLeavesAsMuchAsItHas) {
  int greedy = 0;
  int others[2] = {};
  Reading a(&budget_), b(&budget_), c(&budget_), d(&budget_), e(&budget_);
  EXPECT_TRUE(budget_.GoBeyond(Quota::kBeyond, this));
  Do([&] {
    a.Ask(&grants_, &greedy, 20);
    b.Ask(&grants_, &greedy, 20);
    c.Ask(&grants_, &greedy, 20);
    EXPECT_EQ(a.granted + b.granted, 2);
    EXPECT_EQ(c.granted, 0);
    // One that is complete, and looked up, keeps what it had.
    grants_.Complete(&a);
    d.Ask(&grants_, &others[0], 30);
    EXPECT_EQ(d.granted, 1);
    e.Ask(&grants_, &others[1], 16);
    EXPECT_EQ(e.granted, 0);
    a.End(&grants_);
    b.End(&grants_);
  });
  EXPECT_TRUE(Eventually([&] { return c.granted == 1 && e.granted == 1; }));
  Do([&] {
    for (Reading* one : {&c, &d, &e}) one->End(&grants_);
    budget_.Yield(Quota::kBeyond, this);
  });
  EXPECT_EQ(budget_.reading(), 0u);
}

TEST_F(ReadGrantsTest, DecompressedBytesNeedMemoryToo) {
  Reading packed(&budget_);
  Reading other(&budget_);
  Do([&] {
    EXPECT_TRUE(grants_.Hold(&packed, this, 30));
    budget_.Add(Quota::kReading, 0, 30);
    EXPECT_TRUE(grants_.Hold(&packed, this, 50));
    budget_.Add(Quota::kReading, 0, 20);
    EXPECT_FALSE(grants_.Hold(&packed, this, 51));
    // It has 50, so its connection's cap is reached.
    EXPECT_FALSE(grants_.Hold(&other, this, 1));
    int connection = 0;
    EXPECT_TRUE(grants_.Hold(&other, &connection, 25));
    grants_.Forget(&other);
    grants_.Forget(&packed);
    budget_.Remove(Quota::kReading, 0, 50);
    EXPECT_TRUE(grants_.Hold(&other, this, 50));
    grants_.Forget(&other);
  });
}

TEST_F(ReadGrantsTest, OtherWorkersKnowOfThoseThatWait) {
  Reading large(&budget_);
  Reading waits(&budget_);
  Do([&] {
    large.Ask(&grants_, this, 5000);  // beyond
    EXPECT_FALSE(budget_.OthersWait(Quota::kReading));
    waits.Ask(&grants_, this, 5000);
    EXPECT_TRUE(budget_.OthersWait(Quota::kReading));
    waits.End(&grants_);
    EXPECT_FALSE(budget_.OthersWait(Quota::kReading));
    large.End(&grants_);
  });
}

// A thousand that wait are all granted in one look, in their order.
TEST_F(ReadGrantsTest, ManyAreGrantedTogether) {
  budget_.SetBound(1 << 20);
  int connections[1000] = {};
  std::vector<std::unique_ptr<Reading>> readers;
  Do([&] {
    budget_.Add(Quota::kReading, 0, 1 << 17);
    EXPECT_TRUE(budget_.GoBeyond(Quota::kBeyond, this));
    for (int& connection : connections) {
      readers.push_back(std::make_unique<Reading>(&budget_));
      readers.back()->Ask(&grants_, &connection, 10);
      EXPECT_EQ(readers.back()->granted, 0);
    }
    budget_.Remove(Quota::kReading, 0, 1 << 17);
  });
  EXPECT_TRUE(Eventually([&] { return readers.back()->granted == 1; }));
  Do([&] {
    for (const auto& one : readers) {
      EXPECT_EQ(one->granted, 1);
      one->End(&grants_);
    }
    budget_.Yield(Quota::kBeyond, this);
  });
}

TEST_F(ReadGrantsTest, WithoutABudgetEveryRequestIsGranted) {
  ReadGrants open(nullptr, loop(0));
  Reading reader(nullptr);
  Do([&] {
    reader.Ask(&open, this, size_t{1} << 40);
    open.Forget(&reader);
    open.Forget(&reader);
  });
  EXPECT_EQ(reader.granted, 1);
}

}  // namespace
}  // namespace fncache::proxy::limits
