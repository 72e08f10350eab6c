// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/steps.h"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/proxy/loopback.h"

namespace fncache::proxy::transport {
namespace {

class StepsTest : public ::testing::Test {
 protected:
  // Does `left` steps of size `much`, and writes its name at each.
  struct Named final : Steps::Task {
    Named(StepsTest* to, char called, int steps, size_t how_much)
        : test(to), name(called), left(steps), much(how_much) {}
    Step OnStep() override {
      test->done_ += name;
      if (--left == 0) ++test->ended_;
      return {much, left > 0};
    }
    StepsTest* const test;
    const char name;
    int left;
    const size_t much;
  };

  StepsTest() { worker_->Start(); }
  ~StepsTest() override { worker_->Stop(); }
  // They are names here only.
  static http2::Connection* ConnectionOf(const void* whoever) {
    return static_cast<http2::Connection*>(const_cast<void*>(whoever));
  }
  // Each of a connection of its own.
  void Add(Named& task) { steps_.Add(&task, 0, ConnectionOf(&task)); }
  void Do(absl::AnyInvocable<void()> task) {
    ASSERT_TRUE(DoOn(worker_.get(), std::move(task)));
  }
  bool Ended(int tasks) {
    return Eventually([&] { return ended_ == tasks; });
  }

  const std::unique_ptr<Worker> worker_ = std::make_unique<Worker>(0);
  std::set<http2::Connection*> held_up_;
  Steps steps_{worker_->loop(), 10, 100,
               [this](http2::Connection* connection, bool much) {
                 if (much) {
                   EXPECT_TRUE(held_up_.insert(connection).second);
                 } else {
                   EXPECT_EQ(held_up_.erase(connection), 1u);
                 }
               }};
  std::string done_;
  std::atomic<int> ended_{0};
};

TEST_F(StepsTest, SmallTasksAreDoneAtOnce) {
  Named a(this, 'a', 1, 4);
  Named b(this, 'b', 1, 4);
  Do([&] {
    Add(a);
    EXPECT_EQ(done_, "a");
    Add(b);
    EXPECT_EQ(done_, "ab");
  });
  EXPECT_EQ(ended_, 2);
}

TEST_F(StepsTest, ATurnHasSoMuchAndTheRestHasItsTurn) {
  Named a(this, 'a', 3, 10);
  Named b(this, 'b', 2, 10);
  Named c(this, 'c', 1, 1);
  Do([&] {
    Add(a);
    Add(b);
    Add(c);
    EXPECT_EQ(done_, "a");
    // The limit of each event-loop iteration.
    worker_->Post([&] { EXPECT_LE(done_.size(), 2u); });
  });
  ASSERT_TRUE(Ended(3));
  Do([&] { EXPECT_EQ(done_, "aabcab"); });
}

TEST_F(StepsTest, ManySmallOnesAreNoMoreThanALargeOne) {
  std::vector<std::unique_ptr<Named>> many;
  for (int i = 0; i < 100; ++i) {
    many.push_back(std::make_unique<Named>(this, 'm', 1, 1));
  }
  Do([&] {
    for (const auto& one : many) Add(*one);
    EXPECT_EQ(done_.size(), 10u);
  });
  EXPECT_TRUE(Ended(100));
}

// Otherwise a connection that sends many would delay all others.
TEST_F(StepsTest, ConnectionsHaveTheirTurnWhateverTheySend) {
  const int greedy = 0;
  Named many[] = {{this, 'm', 2, 10}, {this, 'n', 2, 10}, {this, 'o', 1, 10}};
  Named other(this, 'x', 2, 10);
  Do([&] {
    for (Named& one : many) steps_.Add(&one, 0, ConnectionOf(&greedy));
    Add(other);
  });
  ASSERT_TRUE(Ended(4));
  Do([&] { EXPECT_EQ(done_, "mmxnxno"); });
}

// Otherwise the bytes that it sends would stay in memory until then.
TEST_F(StepsTest, WhoeverSendsMoreThanIsDoneIsHeldUp) {
  const int here = 0;
  const int there = 0;
  Named greedy[] = {{this, 'a', 1, 10},
                    {this, 'b', 1, 10},
                    {this, 'c', 1, 10},
                    {this, 'd', 1, 10}};
  Named other(this, 'x', 1, 10);
  Do([&] {
    const auto add = [&](Named& task, const int& connection) {
      steps_.Add(&task, 60, ConnectionOf(&connection));
    };
    add(other, there);  // is done at once
    add(greedy[0], here);
    add(greedy[1], here);
    EXPECT_TRUE(held_up_.empty());  // sixty wait, besides the first
    add(greedy[2], here);
    EXPECT_EQ(held_up_.count(ConnectionOf(&here)), 1u);
    add(greedy[3], here);
    // Half of what it may be is less than two, and the first is none of them.
    steps_.Forget(&greedy[3], ConnectionOf(&here));
    steps_.Forget(&greedy[0], ConnectionOf(&here));
    EXPECT_EQ(held_up_.count(ConnectionOf(&here)), 1u);
    steps_.Forget(&greedy[2], ConnectionOf(&here));
    EXPECT_TRUE(held_up_.empty());
  });
  ASSERT_TRUE(Ended(2));
  Do([&] { EXPECT_EQ(done_, "xb"); });
}

// Otherwise many small tasks would take as many iterations as large ones.
TEST_F(StepsTest, SmallTasksOfAConnectionAreDoneTogether) {
  const int small = 0;
  Named many[] = {{this, 'm', 1, 3},
                  {this, 'n', 1, 3},
                  {this, 'o', 1, 3},
                  {this, 'p', 1, 3},
                  {this, 'q', 1, 3}};
  Named large(this, 'x', 4, 10);
  Do([&] {
    Add(large);
    for (Named& one : many) steps_.Add(&one, 0, ConnectionOf(&small));
  });
  ASSERT_TRUE(Ended(6));
  Do([&] { EXPECT_EQ(done_, "xxmnopxqx"); });
}

TEST_F(StepsTest, ForgottenOnesAreNotDone) {
  Named a(this, 'a', 2, 10);
  Named b(this, 'b', 2, 10);
  Do([&] {
    Add(a);
    Add(b);
    steps_.Forget(&b, ConnectionOf(&b));
    steps_.Forget(&b, ConnectionOf(&b));
  });
  ASSERT_TRUE(Ended(1));
  Do([&] { EXPECT_EQ(done_, "aa"); });
}

}  // namespace
}  // namespace fncache::proxy::transport
