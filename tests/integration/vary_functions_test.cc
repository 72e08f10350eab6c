// SPDX-License-Identifier: Apache-2.0
// Random functions of the SDK behind a real daemon with `vary: on`. They read
// random paths, decide by what they find, copy and refer; the SDK makes the
// hints. Requests differ in read and unread content. Every response must be the
// function's own, called without a daemon.
//
// `make nightly` runs 300 functions with 100 requests each.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cache/key/mask.h"
#include "fncache/function/context.h"
#include "fncache/function/serve.h"
#include "fncache/function/testing.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "runner/testing/alter.h"
#include "runner/testing/call_state.h"
#include "runner/testing/messages.h"
#include "sdk/compose/run.h"
#include "tests/common/long_form.h"
#include "tests/proxy/serving/scripted.h"
#include "tests/proxy/simulated_daemon.h"
#include "tests/runner/testing/random_functions.h"

namespace fncache::testing {
namespace {

namespace fn = function;
namespace ft = function::testing;
using proxy::SimulatedDaemon;
using Request = SimulatedDaemon::Request;
using Response = SimulatedDaemon::Response;
using google::protobuf::Struct;

constexpr int kBatch = 30;    // functions of one daemon
constexpr int kOthers = 100;  // requests whose content others get

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t Next() { return engine_(); }
  int Below(int limit) {
    return static_cast<int>(engine_() % static_cast<uint64_t>(limit));
  }
  bool OneIn(int n) { return Below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

// One server has all functions: the input says which.
void Chosen(fn::Context& ctx) {
  const auto seed = ctx.input()["seed"].as<int64_t>().value();
  ft::RandomFunction(static_cast<uint64_t>(seed))(ctx);
}

std::shared_ptr<const ft::AnswerState> Own(const Request& request) {
  static const auto* const state = new ft::Call(Chosen);
  return ft::Run(state->state(), request.SerializeAsString());
}

// Whether an object has a spec and a metadata always counts.
void KeepSections(const Struct& before, Struct* object) {
  for (const char* const section : {"spec", "metadata"}) {
    const auto found = before.fields().find(section);
    if (found == before.fields().end()) {
      object->mutable_fields()->erase(section);
    } else if (!(*object->mutable_fields())[section].has_struct_value()) {
      (*object->mutable_fields())[section] = found->second;
    }
  }
}

// Content that was not read becomes other content.
void ChangeUnread(const std::vector<std::string>& read, Random* random,
                  Request* request, std::set<std::string>* altered) {
  const auto reads =
      cache::key::MaskSet::Parse(read, cache::key::MaskRules::kAnyPath);
  ASSERT_TRUE(reads.ok()) << reads.status();
  const Request before = *request;
  *request = ft::Altered(std::move(*request), *reads, random->Next(), nullptr,
                         altered);
  auto* const observed = request->mutable_observed();
  KeepSections(before.observed().composite().resource(),
               observed->mutable_composite()->mutable_resource());
  for (const auto& [name, resource] : before.observed().resources()) {
    KeepSections(resource.resource(),
                 (*observed->mutable_resources())[name].mutable_resource());
  }
  for (const auto& [name, items] : before.required_resources()) {
    for (int i = 0; i < items.items_size(); ++i) {
      KeepSections(items.items(i).resource(),
                   (*request->mutable_required_resources())[name]
                       .mutable_items(i)
                       ->mutable_resource());
    }
  }
}

// So does that of one path that it did read.
void ChangeOneRead(std::vector<std::string> read, Random* random,
                   Request* request) {
  if (read.empty()) return;
  const auto one = read.begin() + random->Below(static_cast<int>(read.size()));
  const std::string path = one->substr(0, one->find(".*"));
  read.erase(one);
  for (int tries = 0; tries < 2; ++tries) {
    Request changed = *request;
    std::set<std::string> altered;
    ChangeUnread(read, random, &changed, &altered);
    if (std::none_of(altered.begin(), altered.end(), [&](const auto& at) {
          return absl::StartsWith(at, path) || absl::StartsWith(path, at);
        })) {
      continue;
    }
    *request = std::move(changed);
    return;
  }
}

// A part of an object becomes that of another one, read or not.
void ChangeObject(const Struct& other, Random* random, Struct* object) {
  const char* const sections[] = {"spec", "status", "metadata"};
  const char* const section = sections[random->Below(3)];
  auto& fields = *object->mutable_fields();
  const auto found = other.fields().find(section);
  if (found == other.fields().end()) {
    fields.erase(section);
  } else if (random->OneIn(3) || !fields[section].has_struct_value()) {
    fields[section] = found->second;
  } else {
    const auto& all = found->second.struct_value().fields();
    // In the order of keys, so that a seed gives the same requests each time.
    for (const auto& [key, value] : std::map(all.begin(), all.end())) {
      if (random->OneIn(4)) {
        (*fields[section].mutable_struct_value()->mutable_fields())[key] =
            value;
      }
    }
  }
}

void Change(const Request& other, Random* random, Request* request) {
  auto* const observed = request->mutable_observed();
  const char* const names[] = {"a", "b", "c.d", "e"};
  const std::string name = names[random->Below(4)];
  const auto object = other.observed().resources().find(name);
  const bool exists = object != other.observed().resources().end();
  switch (random->Below(8)) {
    case 0:
    case 1:
    case 2:
      return ChangeObject(other.observed().composite().resource(), random,
                          observed->mutable_composite()->mutable_resource());
    case 3:
    case 4:
      if (!exists) return;
      return ChangeObject(
          object->second.resource(), random,
          (*observed->mutable_resources())[name].mutable_resource());
    case 5:
      for (const char* const required : {"one", "two"}) {
        const auto found = other.required_resources().find(required);
        const auto items =
            request->mutable_required_resources()->find(required);
        if (found == other.required_resources().end() ||
            items == request->mutable_required_resources()->end()) {
          continue;
        }
        const int size =
            std::min(items->second.items_size(), found->second.items_size());
        for (int i = 0; i < size; ++i) {
          ChangeObject(found->second.items(i).resource(), random,
                       items->second.mutable_items(i)->mutable_resource());
        }
      }
      return;
    case 6:
      if (random->OneIn(3)) observed->mutable_resources()->erase(name);
      return;
    default:
      if (random->OneIn(3)) *request->mutable_desired() = other.desired();
  }
}

struct Outcome {
  int calls = 0;
  int hits = 0;
  int by_hint = 0;
  std::set<int> wrong;  // functions
  std::string first;    // the first wrong response
};

// Calls the functions from `first` on, which are at `upstream`.
void Drive(const std::string& upstream, int first, int functions, int requests,
           Outcome* outcome) {
  std::vector<std::string> names;
  for (int i = 0; i < functions; ++i) {
    names.push_back(absl::StrCat("function-", i));
  }
  SimulatedDaemon daemon("vary: on\nstale_while_revalidate: 20s\n", upstream,
                         names);
  Random random(static_cast<uint64_t>(first));
  std::vector<Request> others;
  while (others.size() < kOthers) {
    others.push_back(ft::RandomCall(Chosen, random.Next()).state().request);
  }
  for (int i = 0; i < functions; ++i) {
    const auto seed = static_cast<uint64_t>(first + i);
    ft::CallState state = ft::RandomCall(Chosen, seed).state();
    std::vector<Request> before;
    for (int n = 0; n < requests; ++n) {
      daemon.SetTime(absl::Seconds(i * requests + n));
      (*state.request.mutable_input()->mutable_fields())["seed"]
          .set_number_value(static_cast<double>(seed));
      // Some come back.
      if (!before.empty() && random.OneIn(8)) {
        state.request = before[static_cast<size_t>(
            random.Below(static_cast<int>(before.size())))];
      }
      Request request = ft::Request(state);
      request.mutable_meta()->set_tag(absl::StrCat(seed, "/", n));
      const std::shared_ptr<const ft::AnswerState> own = Own(request);
      auto answer = daemon.Call(names[static_cast<size_t>(i)], request);
      ++outcome->calls;
      outcome->hits += answer.hit;
      outcome->by_hint += absl::StrContains(answer.status, "detail=hint");
      Response response = own->response;
      // A hit has the time that its entry has left.
      if (answer.hit) {
        response.mutable_meta()->clear_ttl();
        answer.response.mutable_meta()->clear_ttl();
      }
      std::string difference = ft::Difference(answer.response, response);
      if (answer.response.meta().tag() != request.meta().tag()) {
        difference = "meta.tag";
      }
      if (!difference.empty() && outcome->wrong.insert(first + i).second &&
          outcome->first.empty()) {
        outcome->first = absl::StrCat("function ", seed, ", request ", n, ", ",
                                      answer.status, ": ", difference,
                                      "; its hint: ", own->depends);
      }
      // From what is FATAL few changes lead back.
      if (ft::Answer(own).fatal().empty()) {
        before.push_back(state.request);
      } else if (!before.empty()) {
        state.request = before.back();
      }
      const std::vector<std::string> read = ft::Answer(own).reads();
      std::set<std::string> altered;
      if (const int kind = random.Below(6); kind < 3) {
        ChangeUnread(read, &random, &state.request, &altered);
      } else if (kind < 5) {
        ChangeOneRead(read, &random, &state.request);
      } else {
        Change(others[static_cast<size_t>(random.Below(kOthers))], &random,
               &state.request);
      }
    }
  }
}

TEST(VaryFunctions, EveryResponseIsTheFunctionsOwn) {
  const int batches = ShortOrLong(kSanitized ? 1 : 2, 10);
  constexpr int kRequests = 100;
  Outcome outcome;
  for (int batch = 0; batch < batches; ++batch) {
    fn::ServerOptions options;
    options.address = "127.0.0.1:0";
    options.insecure = true;
    options.function_options.pure = batch % 2 == 0;
    const auto server = fn::Server::Start(options, Chosen);
    ASSERT_TRUE(server.ok()) << server.status();
    Drive((*server)->address(), batch * kBatch, kBatch, kRequests, &outcome);
  }
  std::cout << batches * kBatch << " functions, " << outcome.calls << " calls, "
            << outcome.hits << " hits, " << outcome.by_hint
            << " of them by hint, " << outcome.wrong.size()
            << " functions with wrong responses\n";
  EXPECT_TRUE(outcome.wrong.empty()) << outcome.first;
  EXPECT_GT(outcome.by_hint, outcome.calls / 5);
  EXPECT_LT(outcome.hits, outcome.calls * 9 / 10);
}

// The hint without the `n`-th of its paths.
std::string Without(const std::string& hint, uint64_t n) {
  const std::vector<std::string> halves =
      absl::StrSplit(hint, absl::MaxSplits(')', 1));
  std::vector<std::string> paths =
      absl::StrSplit(halves[0].substr(halves[0].find('(') + 1), ' ');
  paths.erase(paths.begin() + static_cast<ptrdiff_t>(n % paths.size()));
  return absl::StrCat("reads=(", absl::StrJoin(paths, " "), ")", halves[1]);
}

// The same functions, whose hints leave out one path each.
TEST(VaryFunctions, AHintThatDropsOneReadIsFound) {
  proxy::serving::ScriptedFunction upstream(
      [](const proxy::serving::FunctionCallPtr& call) {
        sdk::CallInfo info;
        info.depends = true;
        fn::Options options;
        options.pure = true;
        const sdk::CallResult result =
            sdk::Run(Chosen, options, call->bytes, info);
        const Request request = call->request();
        call->AddTrailer(
            "fncache-depends",
            Without(result.depends,
                    static_cast<uint64_t>(
                        request.input().fields().at("seed").number_value())));
        call->Answer(result.response);
      });
  constexpr int kFunctions = kSanitized ? 8 : 30;
  Outcome outcome;
  Drive(upstream.target(), 0, kFunctions, 60, &outcome);
  std::cout << kFunctions << " functions whose hints drop one read, "
            << outcome.calls << " calls, " << outcome.by_hint << " hits, "
            << outcome.wrong.size() << " functions with wrong responses\n";
  EXPECT_GT(outcome.wrong.size(), kFunctions / 5);
}

}  // namespace
}  // namespace fncache::testing
