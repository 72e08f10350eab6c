// SPDX-License-Identifier: Apache-2.0
// Bad input with tuning: settings that are refused, and requests that no
// Crossplane sends. Such requests are keyed or bypassed as without tuning.
#include <atomic>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/eventually.h"
#include "tests/integration/tuning_testing.h"
#include "tests/proxy/serving/scripted.h"
#include "tests/proxy/simulated_daemon.h"

namespace fncache::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// ------------------------------------------------------------------- Settings

constexpr char kUpstream[] = "--upstream=127.0.0.1:1";

struct Ended {
  int code;
  std::string out;
  std::string err;
};

Ended Serve(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"serve", "--insecure"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Process process(arguments);
  const int code = process.Wait();
  return {code, process.Stdout(), process.Stderr()};
}

TEST(TuningSettings, BadValuesEndInExitTwoAndOneLine) {
  const TempDir dir;
  const std::string file = dir.File("f.yaml");
  const struct {
    std::vector<std::string> flags;
    std::string yaml;
    std::string says;
  } kCases[] = {
      {{kUpstream, "--tune=maybe"},
       "",
       "--tune: \"maybe\" is not accepted; accepted: off or on"},
      {{kUpstream, "--tune-share=1.01"},
       "",
       "accepted: a fraction from 0 to 1"},
      {{kUpstream, "--tune-share=-0.1"},
       "",
       "accepted: a fraction from 0 to 1"},
      {{kUpstream, "--tune-share=nan"}, "", "accepted: a fraction from 0 to 1"},
      {{kUpstream, "--tune-share=some"},
       "",
       "accepted: a fraction from 0 to 1"},
      {{kUpstream, "--tune=on", "--key=tag"}, "", "contradicts key: tag"},
      {{kUpstream},
       "tune: maybe\n",
       "f.yaml:1: tune: \"maybe\" is not accepted; accepted: off or on"},
      {{kUpstream}, "tune: [on]\n", "f.yaml:1: "},
      {{kUpstream},
       "\ntune_share: 2\n",
       "f.yaml:2: tune_share: \"2\" is not accepted; accepted: "},
      {{kUpstream},
       "key: tag\ntune: on\n",
       "f.yaml:2: tune: contradicts key: tag"},
      {{},
       "key: tag\nfunctions:\n- {name: a, listen: 'h:1', upstream: 'x:1', "
       "tune: on}\n",
       "for function \"a\""},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(
        absl::StrCat(test.yaml, test.flags.empty() ? "" : test.flags.back()));
    std::vector<std::string> flags = test.flags;
    if (!test.yaml.empty()) {
      WriteFile(file, test.yaml);
      flags.insert(flags.end(), {"--config", file});
    }
    const Ended ended = Serve(flags);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_THAT(ended.err, AllOf(MatchesRegex("fncache[^\n]*: [^\n]+\n"),
                                 HasSubstr(test.says)));
  }
  for (const std::string fraction : {"0", "1", "0.5"}) {
    EXPECT_EQ(
        Serve({kUpstream, "--check", "--tune=on", "--tune-share", fraction})
            .code,
        0);
  }
}

TEST(TuningSettings, CheckWarnsWhereTuningIsIdle) {
  for (const std::string mode : {"off", "shadow"}) {
    std::vector<std::string> flags = {kUpstream, "--check", "--tune=on",
                                      "--mode", mode};
    if (mode == "shadow") flags.push_back("--mask=@versions");
    const Ended ended = Serve(flags);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_THAT(ended.err,
                HasSubstr("tune: on has no effect with mode: " + mode));
  }
  EXPECT_EQ(Serve({kUpstream, "--check", "--tune=on"}).err, "");
  EXPECT_EQ(Serve({kUpstream, "--check", "--mode=off"}).err, "");
}

TEST_F(TuningTest, AReloadWithABadValueKeepsWhatWas) {
  StartProcess([](const Request& request) -> Reply {
    return Text(Composite(request), {"spec", "tier"});
  });
  ASSERT_TRUE(TickUntil(IsAcross));
  int refused = 0;
  for (const std::string bad :
       {"tune: maybe\n", "tune: on\ntune_share: 3\n", "tune: on\nkey: tag\n"}) {
    WriteFile(file_, Settings(bad));
    process_->Signal(SIGHUP);
    ASSERT_TRUE(
        process_->WaitForStderr("settings were not reloaded", ++refused))
        << process_->Stderr();
    cluster_.Tick();
    EXPECT_TRUE(CallOnce().across()) << bad;
  }
}

// ------------------------------------------------------------------- Requests

// The treatment of requests whose versions tick.
enum class Fate {
  kTuned,  // an entry answers across drift once it is proven
  kNever,  // equal keys, but no entry answers, and nothing is asked
  kOther,  // each has another key, or none
};

struct BadRequest {
  const char* name;
  Fate fate;
  // Makes the request of a tick.
  std::function<std::string(int tick)> bytes;
};

class TuningBadRequestTest : public TuningTest,
                             public ::testing::WithParamInterface<BadRequest> {
};

// The cluster's request, with one object edited.
std::string Edited(int tick, const std::function<void(pb::Struct*)>& edit) {
  Cluster cluster;
  cluster.versions = tick;
  Request request = cluster.Make();
  edit((*request.mutable_observed()->mutable_resources())["a"]
           .mutable_resource());
  return request.SerializeAsString();
}

TEST_P(TuningBadRequestTest, IsTreatedAsWithoutTuning) {
  std::atomic<int> questions{0};
  const auto script = [&](const proxy::serving::FunctionCallPtr& call) {
    const auto control = call->metadata.find("cache-control");
    if (control != call->metadata.end()) ++questions;
    Response response;
    Function::Fill("constant", &response);
    call->Answer(response.SerializeAsString());
  };
  proxy::serving::ScriptedFunction function(script);
  const auto start = [&](const std::string& tune) {
    auto daemon = std::make_unique<Process>(std::vector<std::string>{
        "serve", "--insecure", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0",
        "--upstream", function.target(), "--tune", tune, "--tune-share=1"});
    EXPECT_TRUE(daemon->WaitForStderr("(admin:")) << daemon->Stderr();
    return daemon;
  };
  const std::unique_ptr<Process> daemons[] = {start("off"), start("on")};
  const auto call = [&](const Process& daemon, const std::string& bytes) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    auto caller = std::make_shared<proxy::serving::Caller>();
    caller->context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    caller->Start(grpc::CreateCustomChannel(daemon.Listening()[0],
                                            grpc::InsecureChannelCredentials(),
                                            arguments),
                  kRunFunctionV1, bytes);
    const grpc::Status status = caller->Wait();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return caller->cache_status();
  };
  const auto kind = [](const std::string& status) {
    for (const std::string each : {"hit", "fwd=miss", "fwd=bypass"}) {
      if (absl::StrContains(status, each)) return each;
    }
    return status;
  };
  const BadRequest& bad = GetParam();
  // Equal requests, as without tuning.
  const std::string same = bad.bytes(0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(kind(call(*daemons[0], same)), kind(call(*daemons[1], same)));
  }
  // Others that drift.
  bool across = false;
  for (int tick = 1; tick < (bad.fate == Fate::kTuned ? 300 : 12); ++tick) {
    const std::string status = call(*daemons[1], bad.bytes(tick));
    if (bad.fate == Fate::kOther) {
      EXPECT_NE(kind(status), "hit");
      EXPECT_THAT(status, Not(HasSubstr("drift")));
    }
    across = across || absl::EndsWith(status, "detail=drift");
    if (across) break;
  }
  EXPECT_EQ(across, bad.fate == Fate::kTuned);
  if (bad.fate != Fate::kTuned) {
    EXPECT_EQ(questions, 0);
  }
  for (const auto& daemon : daemons) {
    daemon->Signal(SIGTERM);
    EXPECT_EQ(daemon->Wait(), 0) << daemon->Stderr();
  }
}

pb::Value Nested(int depth, const std::string& text) {
  pb::Value value;
  pb::Value* at = &value;
  for (int i = 0; i < depth; ++i) {
    at = &(*at->mutable_struct_value()->mutable_fields())["x"];
  }
  at->set_string_value(text);
  return value;
}

// An answer that nothing can read is passed on, and ends the key's proof.
TEST(TuningAnswers, AnUnreadableAnswerEndsTheProof) {
  std::atomic<bool> unreadable{false};
  proxy::serving::ScriptedFunction function(
      [&](const proxy::serving::FunctionCallPtr& call) {
        Response response;
        Function::Fill("constant", &response);
        std::string bytes = response.SerializeAsString();
        if (unreadable) bytes.resize(bytes.size() - 3);
        call->Answer(bytes);
      });
  proxy::SimulatedDaemon daemon("tune: on\ntune_share: 1\n", function.target());
  Cluster cluster;
  int64_t milliseconds = 0;
  const auto hits = [&](const std::map<std::string, std::string>& metadata) {
    cluster.Tick();
    daemon.SetTime(absl::Milliseconds(++milliseconds));
    return daemon.Call("function", cluster.Make(), metadata).hit;
  };
  ASSERT_TRUE(Eventually([&] { return hits({}); }));
  EXPECT_TRUE(hits({}));
  unreadable = true;
  cluster.Tick();
  daemon.SetTime(absl::Milliseconds(++milliseconds));
  // The caller's library cannot read it either.
  EXPECT_NE(daemon.Status("function", cluster.Make(),
                          {{"cache-control", "no-cache"}}),
            grpc::StatusCode::OK);
  unreadable = false;
  EXPECT_FALSE(hits({}));
}

// Questions use the method that was answered.
TEST(TuningAnswers, QuestionsUseTheAnsweredMethod) {
  for (const char* const method : {kRunFunctionV1, kRunFunctionV1beta1}) {
    SCOPED_TRACE(method);
    std::atomic<int> questions{0};
    std::atomic<int> others{0};
    proxy::serving::ScriptedFunction function(
        [&](const proxy::serving::FunctionCallPtr& call) {
          questions += call->metadata.count("cache-control") > 0 ? 1 : 0;
          others += call->path != method ? 1 : 0;
          Response response;
          Function::Fill("constant", &response);
          call->Answer(response.SerializeAsString());
        });
    proxy::SimulatedDaemon daemon("tune: on\ntune_share: 1\n",
                                  function.target());
    Cluster cluster;
    int64_t milliseconds = 0;
    EXPECT_TRUE(Eventually([&] {
      cluster.Tick();
      daemon.SetTime(absl::Milliseconds(++milliseconds));
      return absl::EndsWith(
          daemon.CallBytes("function", cluster.Make().SerializeAsString(),
                           method),
          "drift");
    }));
    EXPECT_EQ(questions, 4);
    EXPECT_EQ(others, 0);
  }
}

// A request about which no question can be made costs no budget.
TEST(TuningAnswers, ARequestThatCannotBeAlteredLeavesTheBudgetToOthers) {
  proxy::serving::ScriptedFunction function(
      [&](const proxy::serving::FunctionCallPtr& call) {
        Response response;
        Function::Fill("constant", &response);
        call->Answer(response.SerializeAsString());
      });
  for (const std::string odd : {"no UTF-8", "doubled", "unknown field",
                                "unknown field of a value", "deep 330"}) {
    SCOPED_TRACE(odd);
    proxy::SimulatedDaemon daemon("tune: on\ntune_share: 0.000001\n",
                                  function.target());
    int64_t milliseconds = 0;
    Cluster cluster;
    const auto call = [&](const std::string& bytes) {
      daemon.SetTime(absl::Milliseconds(++milliseconds));
      return daemon.CallBytes("function", bytes);
    };
    for (int i = 0; i < 100; ++i) {
      cluster.Tick();
      Request request = cluster.Make();
      pb::Struct* const object =
          (*request.mutable_observed()->mutable_resources())["a"]
              .mutable_resource();
      At(object, {"spec", "odd"}).set_string_value("XXXX");
      if (odd == "unknown field") {
        request.GetReflection()->MutableUnknownFields(&request)->AddVarint(1000,
                                                                           7);
      } else if (odd == "unknown field of a value") {
        pb::Value& value = At(object, {"spec", "odd"});
        value.GetReflection()->MutableUnknownFields(&value)->AddVarint(1000, 7);
      }
      if (odd.substr(0, 4) == "deep")
        At(object, {"spec", "odd"}) = Nested(std::stoi(odd.substr(5)), "x");
      std::string bytes = request.SerializeAsString();
      if (odd == "no UTF-8") {
        bytes = absl::StrReplaceAll(bytes, {{"XXXX", "\xc3\x28\xff\x80"}});
      } else if (odd == "doubled") {
        bytes += bytes;
      }
      call(bytes);
    }
    cluster = Cluster();
    cluster.name = "usual";
    EXPECT_TRUE(Eventually([&] {
      cluster.Tick();
      return absl::EndsWith(call(cluster.Make().SerializeAsString()), "drift");
    }));
  }
}

std::string WithVersion(int tick, const std::string& version) {
  return Edited(tick, [&](pb::Struct* object) {
    At(object, {"metadata", "resourceVersion"}).set_string_value(version);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Requests, TuningBadRequestTest,
    ::testing::Values(
        BadRequest{"TenThousandDrifts", Fate::kTuned,
                   [](int tick) {
                     return Edited(tick, [&](pb::Struct* object) {
                       auto* const list =
                           At(object, {"status", "seen"}).mutable_list_value();
                       for (int i = 0; i < 10'000; ++i) {
                         list->add_values()->set_string_value(
                             TimeText(tick + i));
                       }
                     });
                   }},
        BadRequest{"AThousandKinds", Fate::kNever,
                   [](int tick) {
                     return Edited(tick, [&](pb::Struct* object) {
                       for (int i = 0; i < 1000; ++i) {
                         At(object, {"status", absl::StrCat("at", i)})
                             .set_string_value(TimeText(tick));
                       }
                     });
                   }},
        // The cluster's own kinds are nine, and 32 may be tuned.
        BadRequest{"AsManyKindsAsMayBe", Fate::kTuned,
                   [](int tick) {
                     return Edited(tick, [&](pb::Struct* object) {
                       for (int i = 0; i < 23; ++i) {
                         At(object, {"status", absl::StrCat("at", i)})
                             .set_string_value(TimeText(tick));
                       }
                     });
                   }},
        BadRequest{"AKindTooMany", Fate::kNever,
                   [](int tick) {
                     return Edited(tick, [&](pb::Struct* object) {
                       for (int i = 0; i < 24; ++i) {
                         At(object, {"status", absl::StrCat("at", i)})
                             .set_string_value(TimeText(tick));
                       }
                     });
                   }},
        BadRequest{
            "Deep", Fate::kTuned,
            [](int tick) {
              return Edited(tick, [&](pb::Struct* object) {
                At(object, {"status", "deep"}) = Nested(300, TimeText(tick));
              });
            }},
        // Deeper than what gets a key.
        BadRequest{
            "TooDeep", Fate::kOther,
            [](int tick) {
              return Edited(tick, [&](pb::Struct* object) {
                At(object, {"status", "deep"}) = Nested(4000, TimeText(tick));
              });
            }},
        BadRequest{"DeepManagedFields", Fate::kTuned,
                   [](int tick) {
                     return Edited(tick, [&](pb::Struct* object) {
                       *At(object, {"metadata", "managedFields"})
                            .mutable_list_value()
                            ->add_values() = Nested(300, TimeText(tick));
                     });
                   }},
        BadRequest{"ManagedFieldsThatAreAText", Fate::kOther,
                   [](int tick) {
                     return Edited(tick, [&](pb::Struct* object) {
                       At(object, {"metadata", "managedFields"})
                           .set_string_value(TimeText(tick));
                     });
                   }},
        BadRequest{"ManagedFieldsThatAreAnObject", Fate::kOther,
                   [](int tick) {
                     return Edited(tick, [&](pb::Struct* object) {
                       At(object, {"metadata", "managedFields"}) =
                           Nested(2, TimeText(tick));
                     });
                   }},
        // No question is that large.
        BadRequest{"LargerThanAMebibyte", Fate::kNever,
                   [](int tick) {
                     return Edited(tick, [&](pb::Struct* object) {
                       At(object, {"spec", "blob"})
                           .set_string_value(std::string(1 << 20, 'x'));
                     });
                   }},
        BadRequest{"AVersionOfAMegabyte", Fate::kOther,
                   [](int tick) {
                     return WithVersion(tick,
                                        std::string(1 << 20, '1' + tick % 9) +
                                            absl::StrCat(tick));
                   }},
        BadRequest{"AVersionOf21Digits", Fate::kOther,
                   [](int tick) {
                     return WithVersion(
                         tick, absl::StrCat("123456789012345678", 100 + tick));
                   }},
        BadRequest{"AVersionOf20Digits", Fate::kTuned,
                   [](int tick) {
                     return WithVersion(
                         tick, absl::StrCat("98765432109876543", 100 + tick));
                   }},
        BadRequest{"AVersionThatIsNoUtf8", Fate::kOther,
                   [](int tick) {
                     return absl::StrReplaceAll(
                         WithVersion(tick, absl::StrCat("XX", 100 + tick)),
                         {{"XX", "\xff\xfe"}});
                   }},
        BadRequest{"AVersionThatIsANumber", Fate::kOther,
                   [](int tick) {
                     return Edited(tick, [&](pb::Struct* object) {
                       At(object, {"metadata", "resourceVersion"})
                           .set_number_value(100 + tick);
                     });
                   }},
        BadRequest{"AKeyThatIsNoUtf8", Fate::kOther,
                   [](int tick) {
                     return absl::StrReplaceAll(
                         Edited(tick,
                                [&](pb::Struct* object) {
                                  At(object, {"status", "XXXX"})
                                      .set_string_value(absl::StrCat(tick));
                                }),
                         {{"XXXX", "\xc3\x28\xff\x80"}});
                   }},
        BadRequest{"AStatusThatIsATime", Fate::kTuned,
                   [](int tick) {
                     return Edited(tick, [&](pb::Struct* object) {
                       At(object, {"status"}).set_string_value(TimeText(tick));
                     });
                   }},
        BadRequest{"Doubled", Fate::kOther,
                   [](int tick) {
                     const std::string once =
                         WithVersion(tick, absl::StrCat("x", tick));
                     return once + once;
                   }},
        BadRequest{"CutOff", Fate::kOther,
                   [](int tick) {
                     std::string bytes = WithVersion(tick, "1");
                     bytes.resize(bytes.size() - 7);
                     return bytes;
                   }},
        BadRequest{"Noise", Fate::kOther,
                   [](int tick) {
                     return std::string(300, static_cast<char>(0xf0 + tick));
                   }}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fncache::testing
