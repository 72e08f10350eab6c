// SPDX-License-Identifier: Apache-2.0
// Questions: their requests, when none is asked, and when a proof ends.
#include "proxy/serving/question.h"

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cache/wire/wire.h"
#include "gtest/gtest.h"
#include "tests/proxy/serving/drift_testing.h"

namespace fncache::proxy::serving {
namespace {

class QuestionTest : public DriftTest {
 protected:
  // All that a call causes is done: its worker has served another call of the
  // same connection since.
  void Settle() {
    const cache::store::EntryRef entry = EntryOf(Request("settle", "t"));
    if (!entry) {
      auto caller = Send(Request("settle", "t"));
      NextRun()->Answer(Same());
      ASSERT_TRUE(caller->Wait().ok());
    }
    ASSERT_TRUE(Send(Request("settle", "t"))->Wait().ok());
  }
  void ExpectNoQuestion() {
    Settle();
    EXPECT_EQ(Proxy().flights().unattended, 0);
    // A question would wait here for its answer.
    EXPECT_TRUE(Eventually([&] { return function_.running() == 0; }));
  }
  // The next repeat causes questions, and they prove the answer.
  void ExpectQuestionsAfter(int tick, const std::string& name = "a") {
    Run(Drifted(tick, "t", name));
    AnswerQuestions(Proof::kQuestions);
    EXPECT_TRUE(Eventually([&] { return Figures().keys_proven > 0; }));
  }
};

// ---- The request of a question.

TEST_F(QuestionTest, ItIsTheCallersRequestWithAnotherTag) {
  const std::string tag(64, 'a');
  Repeat();
  std::set<std::string> tags = {tag};
  const cache::key::Digest digest = DigestOf(Drifted(3));
  const cache::key::Key key = digest.key;
  const cache::key::Key drift = digest.drift;
  for (int i = 0; i < Proof::kQuestions; ++i) {
    const auto question = NextQuestion();
    ASSERT_TRUE(question != nullptr);
    EXPECT_EQ(question->path, kRunFunctionV1);
    const std::string own = question->request().meta().tag();
    EXPECT_EQ(own.size(), 64u);
    for (const char c : own) {
      EXPECT_TRUE(absl::ascii_isxdigit(static_cast<unsigned char>(c)));
    }
    EXPECT_TRUE(tags.insert(own).second);
    const cache::key::Digest asked = DigestOf(question->bytes);
    EXPECT_EQ(asked.key, key);
    EXPECT_FALSE(asked.drift == drift);
    EXPECT_GT(question->TimeLeft(), absl::Seconds(90));
    EXPECT_LE(question->TimeLeft(), absl::Seconds(121));
    // No more than one at a time.
    EXPECT_EQ(function_.running(), 1);
    EXPECT_EQ(Proxy().flights().unattended, 1);
    question->Answer(Same());
  }
}

TEST_F(QuestionTest, ItHasTheCallersMetadataAndMethod) {
  for (int tick = 1; tick <= 3; ++tick) {
    Proxy().clock.Advance(absl::Milliseconds(10));
    auto caller =
        Send(Drifted(tick), {{"x-mine", "1"}, {"cache-control", "max-age=5"}},
             absl::Seconds(20), kRunFunctionV1beta1);
    auto run = NextRun();
    EXPECT_EQ(run->path, kRunFunctionV1beta1);
    run->Answer(Same());
    ASSERT_TRUE(caller->Wait().ok());
  }
  for (int i = 0; i < Proof::kQuestions; ++i) {
    const auto question = NextQuestion();
    EXPECT_EQ(question->path, kRunFunctionV1beta1);
    EXPECT_EQ(question->metadata.find("x-mine")->second, "1");
    EXPECT_EQ(question->metadata.count("cache-control"), 1u);
    EXPECT_EQ(question->metadata.find("cache-control")->second, "no-store");
    EXPECT_GT(question->TimeLeft(), absl::Seconds(90));
    question->Answer(Same());
  }
  EXPECT_TRUE(Eventually([&] { return Figures().keys_proven == 1; }));
}

// The caller compresses and accepts compressed answers. A question does not, so
// the function does not compress its answer.
TEST_F(QuestionTest, ItIsNotCompressed) {
  for (int tick = 1; tick <= 3; ++tick) {
    Proxy().clock.Advance(absl::Milliseconds(10));
    auto caller = std::make_shared<Caller>();
    caller->context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    caller->Start(channel_, kRunFunctionV1, Drifted(tick));
    const auto run = NextRun();
    run->Compress();
    run->Answer(Same());
    ASSERT_TRUE(caller->Wait().ok());
  }
  for (int i = 0; i < Proof::kQuestions; ++i) {
    const auto question = NextQuestion();
    question->Compress();
    question->Answer(Same());
  }
  EXPECT_TRUE(Eventually([&] { return Figures().keys_proven == 1; }));
}

TEST_F(QuestionTest, AtADifferenceTheRequestAsItCameIsSentInBetween) {
  Repeat();
  const std::string other = Response("t", "other", kTtl).SerializeAsString();
  const auto first = NextQuestion();
  const cache::key::Key drift = DigestOf(first->bytes).drift;
  first->Answer(other);

  const auto as_it_came = NextQuestion();
  EXPECT_EQ(TickOf(*as_it_came), 3);
  EXPECT_EQ(DigestOf(as_it_came->bytes).drift, DigestOf(Drifted(3)).drift);
  EXPECT_EQ(as_it_came->request().meta().tag().size(), 64u);
  as_it_came->Answer(Same());

  for (int i = 0; i < 2; ++i) {
    const auto again = NextQuestion();
    EXPECT_EQ(DigestOf(again->bytes).drift, drift);
    EXPECT_NE(again->request().meta().tag(), first->request().meta().tag());
    again->Answer(other);
  }

  // The step reads drift. From now on versions alone are altered.
  for (int i = 0; i < Proof::kQuestions; ++i) {
    const auto question = NextQuestion();
    auto request = question->request();
    auto* const composed =
        (*request.mutable_observed()->mutable_resources())["one"]
            .mutable_resource();
    EXPECT_EQ(At(composed, {"status", "lastSync"}).string_value(), Time(3));
    EXPECT_NE(TickOf(*question), 3);
    question->Answer(Same());
  }
  WaitForQuestions();
  EXPECT_EQ(Run(Drifted(9))->cache_status(),
            "fncache; fwd=miss; stored; detail=\"drift: read\"");
  ExpectNoQuestion();
}

// A step that reads drift gets no questions about it until such a purge.
TEST_F(QuestionTest, APurgeOfTheFunctionForgetsThatAStepReads) {
  Repeat();
  const std::string other = Response("t", "other", kTtl).SerializeAsString();
  // The first question, the request as it came, that question twice again, and
  // the same about versions alone.
  for (int i = 0; i < 2; ++i) {
    AnswerQuestions(1, other);
    AnswerQuestions(1);
    AnswerQuestions(2, other);
  }
  WaitForQuestions();
  Run(Drifted(4));
  ExpectNoQuestion();
  Proxy().handler().DetachFlight(KeyOf(Drifted(4)));
  for (int tick = 5; tick <= 8; ++tick) Run(Drifted(tick));
  ExpectNoQuestion();
  Proxy().handler().DetachFlights();
  Run(Drifted(9));
  ExpectQuestionsAfter(10);
}

// ---- When none is asked.

TEST_F(QuestionTest, AtMostTwoOfAFunctionRunAtOnce) {
  for (const std::string name : {"a", "b", "c"}) Repeat(name);
  Settle();
  EXPECT_EQ(Proxy().flights().unattended, 2);
  EXPECT_TRUE(Eventually([&] { return function_.running() == 2; }));
  AnswerQuestions(2 * Proof::kQuestions);
  EXPECT_TRUE(Eventually([&] { return Figures().keys_proven == 2; }));
  WaitForQuestions();
  ExpectNoQuestion();
  Run(Drifted(4, "t", "c"));
  AnswerQuestions(Proof::kQuestions);
  EXPECT_TRUE(Eventually([&] { return Figures().keys_proven == 3; }));
}

TEST_F(QuestionTest, NoneWhileACallerWaitsForASlot) {
  options_.policy.max_released = 1;
  std::vector<CallerPtr> callers;
  callers.push_back(Send(Request("z", "1")));
  const auto first = NextRun();
  for (size_t n = 2; n <= 3; ++n) {
    callers.push_back(Send(Request("z", "more")));
    WaitForCallers(n);
  }
  first->Answer(Same(-1));
  const auto second = NextRun();
  EXPECT_TRUE(Eventually([&] { return proxy_->flights().queued == 1; }));

  Repeat();
  Settle();
  EXPECT_EQ(Proxy().flights().unattended, 0);
  EXPECT_EQ(function_.running(), 1);

  second->Answer(Same(-1));
  NextRun()->Answer(Same(-1));
  for (const auto& caller : callers) EXPECT_TRUE(caller->Wait().ok());
  ExpectQuestionsAfter(4);
}

TEST_F(QuestionTest, NoneWithoutMemoryOfUnattendedCalls) {
  inflight_bytes_ = 1 << 20;
  {
    const auto taken = Proxy().inflight().TakeUnattended(inflight_bytes_ / 8);
    ASSERT_TRUE(taken.taken());
    Repeat();
    ExpectNoQuestion();
  }
  ExpectQuestionsAfter(4);
  WaitForQuestions();
  // More than the eighth: only as long as there is nothing else.
  EXPECT_TRUE(Eventually([&] {
    return Proxy().inflight().TakeUnattended(inflight_bytes_ / 4).taken();
  }));
}

TEST_F(QuestionTest, ARunningProofKeepsMemoryOfUnattendedCalls) {
  inflight_bytes_ = 1 << 20;
  Repeat();
  const auto question = NextQuestion();
  EXPECT_FALSE(Proxy().inflight().TakeUnattended(inflight_bytes_ / 8).taken());
  question->Fail(grpc::Status(grpc::StatusCode::INTERNAL, "no"));
  EXPECT_TRUE(Eventually([&] {
    return Proxy().inflight().TakeUnattended(inflight_bytes_ / 8).taken();
  }));
}

TEST_F(QuestionTest, NoneWhileDraining) {
  Proxy().tuning.silent = true;
  Repeat();
  ExpectNoQuestion();
}

TEST_F(QuestionTest, NoneWithinTenSecondsOfAFailure) {
  for (int tick = 1; tick <= 2; ++tick) Run(Drifted(tick));
  auto fails = Send(Request("z", "t"));
  NextRun()->Fail(grpc::Status(grpc::StatusCode::UNAVAILABLE, "no"));
  EXPECT_FALSE(fails->Wait().ok());
  Run(Drifted(3));
  ExpectNoQuestion();
  Proxy().clock.Advance(absl::Milliseconds(9900));
  Run(Drifted(4));
  ExpectNoQuestion();
  Proxy().clock.Advance(absl::Milliseconds(100));
  ExpectQuestionsAfter(5);
}

TEST_F(QuestionTest, NoneForABypassOrANoStoreCall) {
  for (const Metadata& metadata : {Metadata{{"authorization", "me"}},
                                   Metadata{{"cache-control", "no-store"}}}) {
    for (int tick = 1; tick <= 5; ++tick) {
      auto caller = Send(Drifted(tick), metadata);
      function_.Next()->Answer(Same());
      ASSERT_TRUE(caller->Wait().ok());
    }
    ExpectNoQuestion();
  }
  EXPECT_EQ(Figures().keys_repeating, 0u);
  // Nor do they count as repeats.
  Run(Drifted(1));
  Run(Drifted(2));
  ExpectNoQuestion();
}

TEST_F(QuestionTest, NoneForARequestOverOneMebibyte) {
  const auto large = [](int tick, size_t bytes) {
    fnv1::RunFunctionRequest request;
    EXPECT_TRUE(request.ParseFromString(Drifted(tick)));
    auto& pad = (*request.mutable_context()->mutable_fields())["pad"];
    pad.set_string_value("x");
    const size_t without = request.ByteSizeLong() + 12;
    pad.set_string_value(std::string(bytes - without, 'x'));
    return request.SerializeAsString();
  };
  EXPECT_GT(large(1, (1 << 20) + 32).size(), Questions::kMostBytes);
  for (int tick = 1; tick <= 5; ++tick) Run(large(tick, (1 << 20) + 32));
  ExpectNoQuestion();
  EXPECT_LE(large(1, 1 << 20).size(), Questions::kMostBytes);
  for (int tick = 1; tick <= 3; ++tick) Run(large(tick, 1 << 20));
  AnswerQuestions(Proof::kQuestions);
  EXPECT_TRUE(Eventually([&] { return Figures().keys_proven == 1; }));
}

TEST_F(QuestionTest, NoneForARequestOnTheSlowPath) {
  const auto slow = [](int tick) {
    // Fields that come twice are merged.
    fnv1::RunFunctionRequest tag;
    tag.mutable_meta()->set_tag("t");
    return tag.SerializeAsString() + Drifted(tick);
  };
  ASSERT_TRUE(DigestOf(slow(1)).reencoded);
  ASSERT_EQ(KeyOf(slow(1)), KeyOf(Drifted(1)));
  for (int tick = 1; tick <= 3; ++tick) Run(slow(tick));
  ExpectNoQuestion();
  // Its repeats count.
  ExpectQuestionsAfter(4);
  EXPECT_EQ(Send(slow(9))->Wait().error_code(), grpc::StatusCode::OK);
  EXPECT_EQ(Figures().hits, 1u);
}

// A question that cannot be made is not sent, and costs nothing: memory and
// keys change when a disk tier opens late.
TEST_F(QuestionTest, AQuestionOfAnotherKeyIsNeitherSentNorPaid) {
  Run(Drifted(1));
  Run(Drifted(2));
  Proxy().clock.Advance(absl::Milliseconds(10));
  auto caller = Send(Drifted(3));
  const auto run = NextRun();
  store_->OpenLate();
  const double before = Figures().budget;
  run->Answer(Same());
  ASSERT_TRUE(caller->Wait().ok());
  ExpectNoQuestion();
  EXPECT_GE(Figures().budget, before);
}

// ---- The end of a proof.

struct Event {
  const char* name;
  std::function<void(CachingProxy*, const settings::FunctionOptions&,
                     const cache::key::Key&)>
      happens;
};

class ProofEndTest : public QuestionTest,
                     public ::testing::WithParamInterface<Event> {};

// With such an event during a question its proof ends, and proves nothing.
TEST_P(ProofEndTest, DuringEachQuestion) {
  for (int at = 1; at <= Proof::kQuestions; ++at) {
    SCOPED_TRACE(at);
    const std::string name = absl::StrCat("key", at);
    Repeat(name);
    AnswerQuestions(at - 1);
    const auto question = NextQuestion();
    const int calls = function_.calls();
    GetParam().happens(&Proxy(), options_, KeyOf(Drifted(1, "t", name)));
    question->Answer(Same());
    WaitForQuestions();
    Settle();
    EXPECT_LE(function_.calls(), calls + 1);  // Settle's
    EXPECT_EQ(Figures().keys_proven, 0u);
    Proxy().tuning.silent = false;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Events, ProofEndTest,
    ::testing::Values(
        Event{
            "Reload",
            [](CachingProxy* proxy, const settings::FunctionOptions& options,
               const cache::key::Key&) { proxy->handler().Replace(options); }},
        Event{"Generation",
              [](CachingProxy* proxy, settings::FunctionOptions options,
                 const cache::key::Key&) {
                options.generation += "+";
                proxy->handler().Replace(options);
                options.generation = "";
                proxy->handler().Replace(options);
              }},
        Event{"KeyPurge",
              [](CachingProxy* proxy, const settings::FunctionOptions&,
                 const cache::key::Key& key) {
                proxy->handler().DetachFlight(key);
              }},
        Event{
            "FunctionPurge",
            [](CachingProxy* proxy, const settings::FunctionOptions&,
               const cache::key::Key&) { proxy->handler().DetachFlights(); }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(QuestionTest, AnErrorEndsTheProofAndTheStepPauses) {
  Repeat();
  AnswerQuestions(2);
  NextQuestion()->Fail(grpc::Status(grpc::StatusCode::UNAVAILABLE, "no"));
  WaitForQuestions();
  ExpectNoQuestion();
  Run(Drifted(4));
  ExpectNoQuestion();
  Proxy().clock.Advance(absl::Seconds(11));
  ExpectQuestionsAfter(5);
}

TEST_F(QuestionTest, ADrainEndsTheProof) {
  Repeat();
  AnswerQuestions(1);
  const auto question = NextQuestion();
  Proxy().tuning.silent = true;
  question->Answer(Same());
  WaitForQuestions();
  ExpectNoQuestion();
}

// A stop waits for no question, and leaves nothing behind.
TEST_F(QuestionTest, AStopCancelsAQuestion) {
  Repeat("a");
  Repeat("b");
  const auto a = NextQuestion();
  const auto b = NextQuestion();
  Proxy().Stop();
  EXPECT_TRUE(Eventually([&] { return a->cancelled() && b->cancelled(); }));
  EXPECT_EQ(Proxy().flights().unattended, 0);
  EXPECT_EQ(Figures().proofs[static_cast<size_t>(ProofResult::kFailed)], 2u);
}

}  // namespace
}  // namespace fncache::proxy::serving
