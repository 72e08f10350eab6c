// SPDX-License-Identifier: Apache-2.0
// The recorded traffic of a control plane through a daemon that tunes, in
// simulated time. Each answer is compared with the recorded one.
//
// No recording has an answer to a question. So the function gives what it gave
// to all recorded requests that differ in drift only; where those answers
// differ, it reads drift.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/key/alteration.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/common/test_data.h"
#include "tests/common/threads_rest.h"
#include "tests/integration/tuning_testing.h"
#include "tests/proxy/serving/scripted.h"
#include "tests/proxy/simulated_daemon.h"

namespace fncache::testing {
namespace {

namespace fs = std::filesystem;

struct Recorded {
  int64_t milliseconds;
  std::string function;
  std::string phase;
  Request request;
  Response response;
};

std::vector<Recorded> ReadRecordings(const fs::path& folder) {
  std::vector<Recorded> all;
  std::ifstream in(folder / "calls.tsv");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    Recorded call;
    std::string sequence, composite, request, response;
    fields >> sequence >> call.milliseconds >> call.function >> call.phase >>
        composite >> request >> response;
    EXPECT_TRUE(
        call.request.ParseFromString(ReadFile((folder / request).string())));
    EXPECT_TRUE(
        call.response.ParseFromString(ReadFile((folder / response).string())));
    all.push_back(std::move(call));
  }
  return all;
}

// The same for equal requests but for the tag.
std::string Exact(Request request) {
  request.mutable_meta()->clear_tag();
  std::string bytes;
  {
    pb::io::StringOutputStream stream(&bytes);
    pb::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    request.SerializeToCodedStream(&coded);
  }
  return bytes;
}

// The same for requests that differ in drift only.
std::string WithoutDrift(Request request) {
  cache::key::VisitDrift(
      {}, &request,
      [](auto, cache::key::DriftType type, auto, pb::Value* value) {
        value->set_string_value(absl::StrCat("drift ", static_cast<int>(type)));
      });
  return Exact(std::move(request));
}

bool SameAnswer(Response a, Response b) {
  a.clear_meta();
  b.clear_meta();
  return pb::util::MessageDifferencer::Equals(a, b);
}

struct Figures {
  int calls = 0;
  int hits = 0;
  int runs = 0;
  int questions = 0;
};

TEST(TuningRecordings, AreNeverAnsweredOtherwise) {
  for (const fs::path& folder : DataFolders({"cluster"})) {
    const std::vector<Recorded> calls = ReadRecordings(folder);
    ASSERT_FALSE(calls.empty());
    std::map<std::string, const Recorded*> exact;
    std::map<std::string, const Recorded*> without_drift;
    std::set<std::string> reads;
    std::set<std::string> names;
    for (const Recorded& call : calls) {
      exact.emplace(Exact(call.request), &call);
      names.insert(call.function);
      const std::string form = WithoutDrift(call.request);
      const Recorded* const other =
          without_drift.emplace(form, &call).first->second;
      if (!SameAnswer(other->response, call.response)) reads.insert(form);
    }
    std::atomic<int> runs{0};
    std::atomic<int> questions{0};
    proxy::serving::ScriptedFunction function(
        [&](const proxy::serving::FunctionCallPtr& call) {
          const Request request = call->request();
          const bool question = call->metadata.count("cache-control") > 0;
          Response response;
          const std::string form = WithoutDrift(request);
          const auto known = exact.find(Exact(request));
          if (known != exact.end()) {
            response = known->second->response;
          } else if (reads.count(form) > 0) {
            Function::Fill(Exact(request), &response);
          } else {
            response = without_drift.at(form)->response;
          }
          ++(question ? questions : runs);
          response.mutable_meta()->set_tag(request.meta().tag());
          call->Answer(response.SerializeAsString());
        });
    proxy::SimulatedDaemon daemon("tune: on\n", function.target(),
                                  {names.begin(), names.end()});
    std::map<std::string, Figures> phases;
    int wrong = 0;
    for (const Recorded& call : calls) {
      daemon.SetTime(absl::Milliseconds(call.milliseconds) +
                     absl::Microseconds(&call - calls.data()));
      const int runs_before = runs;
      const int questions_before = questions;
      const auto answer = daemon.Call(call.function, call.request);
      Figures& phase = phases[call.phase];
      ++phase.calls;
      phase.hits += answer.hit ? 1 : 0;
      const bool right = SameAnswer(answer.response, call.response);
      wrong += right ? 0 : 1;
      EXPECT_TRUE(right) << call.function << " at " << call.milliseconds;
      // Questions follow the answer at once: the function takes no time.
      if (!answer.hit) {
        AwaitRest(
            [&] { return runs + questions; },
            [&] { return function.running() == 0 && ThreadsRest(getpid()); });
      }
      phase.runs += runs - runs_before;
      phase.questions += questions - questions_before;
    }
    for (const auto& [name, phase] : phases) {
      std::printf("%-10s %4d calls %4d hits %4d runs %4d questions\n",
                  name.c_str(), phase.calls, phase.hits, phase.runs,
                  phase.questions);
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(phases["create"].questions, 0);
    const auto rate = [&](const std::string& name) {
      return static_cast<double>(phases[name].hits) / phases[name].calls;
    };
    EXPECT_GE(rate("heartbeat"), 0.75);
    EXPECT_GE(rate("owner"), 0.35);
    // The budget of each function begins at 40. Each run adds a tenth of a
    // question, and each hit half of one.
    EXPECT_LE(questions,
              40 * names.size() + 0.1 * runs + 0.5 * (calls.size() - runs));
  }
}

}  // namespace
}  // namespace fncache::testing
