// SPDX-License-Identifier: Apache-2.0
// The tests of calls with `tune: on` share this: requests whose versions and
// times tick, and a function that proves its answers.
#ifndef FNCACHE_TESTS_PROXY_SERVING_DRIFT_TESTING_H_
#define FNCACHE_TESTS_PROXY_SERVING_DRIFT_TESTING_H_

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "tests/proxy/serving/call_testing.h"

namespace fncache::proxy::serving {

inline google::protobuf::Value& At(google::protobuf::Struct* object,
                                   const std::vector<std::string>& path) {
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    object = (*object->mutable_fields())[path[i]].mutable_struct_value();
  }
  return (*object->mutable_fields())[path.back()];
}

inline std::string Time(int seconds) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                          absl::FromUnixSeconds(1'790'000'000 + seconds),
                          absl::UTCTimeZone());
}

// A request of the composite `name`, which has a step of its own. Three kinds
// of its drift differ for each `tick`, and a fourth one for each `event`.
inline std::string Drifted(int tick, const std::string& tag = "t",
                           const std::string& name = "a", int event = 0) {
  fnv1::RunFunctionRequest request;
  EXPECT_TRUE(request.ParseFromString(Request(name, tag)));
  auto* const composite =
      request.mutable_observed()->mutable_composite()->mutable_resource();
  At(composite, {"kind"}).set_string_value(absl::StrCat("Bucket-", name));
  At(composite, {"metadata", "name"}).set_string_value(name);
  At(composite, {"metadata", "resourceVersion"})
      .set_string_value(std::to_string(100'000 + tick));
  auto* const composed =
      (*request.mutable_observed()->mutable_resources())["one"]
          .mutable_resource();
  At(composed, {"metadata", "resourceVersion"})
      .set_string_value(std::to_string(200'000 + tick));
  At(composed, {"status", "lastSync"}).set_string_value(Time(tick));
  At(composed, {"status", "lastTransitionTime"}).set_string_value(Time(event));
  return request.SerializeAsString();
}

class DriftTest : public CallTest {
 protected:
  static constexpr int kTtl = 60;  // so entries are fresh for 54 s
  static constexpr int kEnough = 3;

  DriftTest() { options_.tune = true; }
  void TearDown() override {
    if (proxy_ != nullptr) WaitForQuestions();
    CallTest::TearDown();
  }

  static std::string Same(int ttl = kTtl) {
    return Response("t", "same", ttl).SerializeAsString();
  }
  // A call that misses; the function answers it so. Time passes before, so that
  // it starts later than all calls before.
  CallerPtr Run(const std::string& request, const std::string& answer = Same(),
                const Metadata& metadata = {}) {
    Proxy().clock.Advance(absl::Milliseconds(10));
    auto caller = Send(request, metadata);
    NextRun()->Answer(answer);
    EXPECT_TRUE(caller->Wait().ok());
    return caller;
  }
  // The next call for a caller or a refresh, and the next question.
  FunctionCallPtr NextRun() { return Next(/*question=*/false); }
  FunctionCallPtr NextQuestion() { return Next(/*question=*/true); }
  // The function gives the answer of before to so many questions.
  void AnswerQuestions(int questions, const std::string& answer = Same()) {
    for (int i = 0; i < questions; ++i) {
      const auto question = NextQuestion();
      ASSERT_TRUE(question != nullptr);
      question->Answer(answer);
    }
  }
  static bool IsQuestion(const FunctionCall& call) {
    const auto found = call.metadata.find("cache-control");
    return found != call.metadata.end() && found->second == "no-store";
  }
  // Waits until no question is asked any more.
  void WaitForQuestions() {
    EXPECT_TRUE(Eventually([&] { return proxy_->flights().unattended == 0; }));
  }
  // Runs with ticks 1 to 3 repeat an answer.
  void Repeat(const std::string& name = "a") {
    for (int tick = 1; tick <= kEnough; ++tick) {
      Run(Drifted(tick, "t", name));
    }
  }
  // The same, and the function proves the answer.
  void Prove(const std::string& name = "a") {
    const size_t before = Figures().keys_proven;
    Repeat(name);
    AnswerQuestions(Proof::kQuestions);
    EXPECT_TRUE(
        Eventually([&] { return Figures().keys_proven == before + 1; }));
    WaitForQuestions();
  }
  Evidence::FunctionFigures Figures() {
    return Proxy().tuning.evidence.Figures(Proxy().clock.Now())[0];
  }
  cache::key::Digest DigestOf(const std::string& request) {
    thread_local cache::key::DigestScratch scratch;
    return Proxy()
        .handler()
        .State()
        ->digester(Method::kV1)
        .Compute({request}, &scratch);
  }
  cache::key::Key KeyOf(const std::string& request) {
    return DigestOf(request).key;
  }
  // The entry in memory.
  cache::store::EntryRef EntryOf(const std::string& request) {
    return store_->GetMemory(KeyOf(request), Proxy().clock.Now()).entry;
  }

  // The tick of the request that the function got.
  static int TickOf(const FunctionCall& call) {
    auto request = call.request();
    const std::string version =
        At(request.mutable_observed()->mutable_composite()->mutable_resource(),
           {"metadata", "resourceVersion"})
            .string_value();
    return std::stoi(version) - 100'000;
  }

  // A call that must be answered without the function.
  CallerPtr ExpectStatus(const CallerPtr& caller, const std::string& status) {
    EXPECT_TRUE(caller->Wait().ok());
    EXPECT_EQ(caller->cache_status(), status);
    return caller;
  }

 private:
  FunctionCallPtr Next(bool question) {
    for (auto it = others_.begin(); it != others_.end(); ++it) {
      if (IsQuestion(**it) != question) continue;
      const FunctionCallPtr call = *it;
      others_.erase(it);
      return call;
    }
    while (true) {
      const FunctionCallPtr call = function_.Next();
      if (call == nullptr || IsQuestion(*call) == question) return call;
      others_.push_back(call);
    }
  }
  std::deque<FunctionCallPtr> others_;  // not taken yet
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_TESTS_PROXY_SERVING_DRIFT_TESTING_H_
