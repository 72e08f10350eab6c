// SPDX-License-Identifier: Apache-2.0
// The checks, tried with functions that fail them.
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "fncache/function/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"
#include "sdk/model/node.h"

namespace fncache::function::testing {
namespace {

using ::testing::StartsWith;

Value Spec(Context& ctx) { return ctx.composite().observed()["spec"]; }

Call Sized(Function function) {
  return Call(std::move(function))
      .composite("{metadata: {name: xr}, spec: {size: 3, zones: [a, b]}}");
}

TEST(CheckDeterministicTest, AGlobalCounterIsFoundByItsPath) {
  int calls = 0;
  const CheckResult check = CheckDeterministic(Sized([&](Context& ctx) {
    ctx.resource("a", "v1", "A")["spec"]["n"] = ++calls;
  }));
  EXPECT_FALSE(check.ok());
  EXPECT_EQ(check.text(),
            "desired.resources.a.resource.spec.n differs between two calls "
            "with the same request");
}

TEST(CheckDeterministicTest, ATimeInAStatusIsFoundByItsPath) {
  const std::string kStatus =
      "desired.composite.resource.status.at is the time of the call";
  EXPECT_EQ(CheckDeterministic(Sized([](Context& ctx) {
              ctx.composite()["status"]["at"] = absl::FormatTime(
                  "%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
            })).text(),
            kStatus);
  EXPECT_EQ(CheckDeterministic(Sized([](Context& ctx) {
              ctx.composite()["status"]["at"] = absl::ToUnixSeconds(ctx.now());
            })).text(),
            kStatus);
  EXPECT_EQ(CheckDeterministic(Sized([](Context& ctx) {
              ctx.composite()["status"]["at"] = absl::StrCat(
                  "since ", absl::FormatTime(absl::RFC3339_full, ctx.now(),
                                             absl::FixedTimeZone(3600)));
            })).text(),
            kStatus);
}

TEST(CheckDeterministicTest, ATimeInATextIsFoundByItsPath) {
  for (const auto& text : std::vector<std::function<std::string(absl::Time)>>{
           [](absl::Time now) {
             return absl::FormatTime("%Y-%m-%dT%H:%MZ", now,
                                     absl::UTCTimeZone());
           },
           [](absl::Time now) {
             return absl::StrCat("id-", absl::ToUnixSeconds(now));
           },
           [](absl::Time now) {
             return absl::StrCat(absl::ToUnixNanos(now));
           }}) {
    EXPECT_EQ(CheckDeterministic(Sized([&](Context& ctx) {
                ctx.composite()["status"]["at"] = text(ctx.now());
              })).text(),
              "desired.composite.resource.status.at is the time of the call");
  }
}

TEST(CheckDeterministicTest, ATimeOfTheRequestIsNone) {
  const std::string now =
      absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
  Call call([](Context& ctx) {
    ctx.composite()["status"]["at"] =
        ctx.composite().observed()["metadata"]["creationTimestamp"];
    ctx.composite()["status"]["since"] =
        Concat("since ", ctx.composite()
                             .observed()["metadata"]["creationTimestamp"]
                             .as<std::string>());
    ctx.composite()["status"]["n"] = Spec(ctx)["n"];
    ctx.composite()["status"]["text"] =
        Concat("n", Spec(ctx)["n"].as<int64_t>());
  });
  call.composite(
      absl::StrCat("{metadata: {creationTimestamp: '", now,
                   "'}, spec: {n: ", absl::ToUnixSeconds(absl::Now()), "}}"));
  EXPECT_TRUE(CheckDeterministic(call));
}

TEST(CheckDeterministicTest, AReadThatAGlobalSavesIsFoundByItsPath) {
  std::string saved;
  const CheckResult check = CheckDeterministic(Sized([&](Context& ctx) {
    if (saved.empty()) saved = absl::StrCat(Spec(ctx)["size"].text());
    ctx.resource("a", "v1", "A")["spec"]["size"] = saved;
  }));
  EXPECT_EQ(check.text(),
            "observed.composite.resource.spec.size is read in some of the "
            "calls with equal requests");
}

TEST(CheckDeterministicTest, AStatusInSomeCallsIsFound) {
  int calls = 0;
  const CheckResult check = CheckDeterministic(Sized([&](Context& ctx) {
    if (++calls == 3) ctx.fail(absl::UnavailableError("later"));
  }));
  EXPECT_THAT(check.text(), StartsWith("the call's gRPC status differs"));
}

TEST(CheckReadsTest, AReadThroughAGlobalIsFoundByItsPath) {
  std::string last;
  const CheckResult check = CheckReads(Sized([&](Context& ctx) {
    ctx.resource("a", "v1", "A")["spec"]["size"] = last;
    last = Spec(ctx)["size"].text();
  }));
  EXPECT_EQ(check.text(),
            "desired.resources.a.resource.spec.size differs between two calls "
            "with the same request");
  std::string first;
  const CheckResult saved = CheckReads(Sized([&](Context& ctx) {
    if (first.empty()) first = Spec(ctx)["size"].text();
    ctx.resource("a", "v1", "A")["spec"]["size"] = first;
  }));
  EXPECT_EQ(saved.text(),
            "observed.composite.resource.spec.size is read in some of the "
            "calls with the same request");
}

// Peek reads what no hint names, as a fault of the SDK would.
double Hidden(Context& ctx, const char* field) {
  const sdk::Node* const node = sdk::Peek(Spec(ctx)[field].ref().get());
  return node == nullptr ? 0 : node->number;
}

TEST(CheckReadsTest, AGapOfTheHintIsFoundByItsPath) {
  const CheckResult check = CheckReads(Sized([](Context& ctx) {
    ctx.resource("a", "v1", "A")["spec"]["size"] = Hidden(ctx, "size");
    ctx.output()["zone"] = Spec(ctx)["zones"][0];
  }));
  EXPECT_EQ(check.text(),
            "the hint does not name observed.composite.resource.spec.size, and "
            "a change there changes desired.resources.a.resource.spec.size");
}

TEST(CheckReadsTest, AGapThatNeedsTwoChangesNamesBoth) {
  Call call([](Context& ctx) {
    const bool both = Hidden(ctx, "a") != 1 && Hidden(ctx, "b") != 2;
    ctx.output()["both"] = both;
    ctx.output()["c"] = Spec(ctx)["c"];
  });
  const CheckResult check =
      CheckReads(call.composite("{kind: XR, spec: {a: 1, b: 2, c: 3, d: 4}}"));
  EXPECT_EQ(check.text(),
            "the hint does not name observed.composite.resource.spec.a, "
            "observed.composite.resource.spec.b, and a change there changes "
            "output.both");
}

TEST(CheckReadsTest, AnAbsentFieldThatIsReadStaysAbsent) {
  Call call([](Context& ctx) {
    ctx.output()["there"] = Spec(ctx)["size"].has_value();
    ctx.output()["n"] = ctx.existing("vpc").observed()["zones"][3].has_value();
  });
  EXPECT_TRUE(CheckReads(call.composite("{kind: XR, spec: {a: 1}}")
                             .observed("vpc", "{zones: [a, b], size: 2}"),
                         /*rounds=*/100));
}

TEST(CheckReadsTest, AHintThatWasWidenedNamesAllThatIsRead) {
  const auto name = [](int i) {
    return absl::StrCat(i % 7 == 0 ? "k\xc3\xa4se-" : "a.resource-", i);
  };
  Call call([name](Context& ctx) {
    for (int i = 0; i < 60; ++i) {
      const Value status = ctx.existing(name(i)).observed()["status"];
      for (const char* const key : {"one", "two", "sch\xc3\xb6n"}) {
        ctx.output()[absl::StrCat("o", i)][key] = status[key]["deep"];
      }
    }
  });
  for (int i = 0; i < 60; i += 2) {
    call.observed(name(i),
                  "{spec: {a: 1}, status: {one: {deep: 1, more: 2}, three: 3, "
                  "sch\xc3\xb6n: {deep: 3}}}");
  }
  EXPECT_LT(call().reads().size(), 60u);
  EXPECT_TRUE(CheckReads(call));
}

TEST(CheckReadsTest, AFunctionWithoutReadsPasses) {
  const CheckResult check = CheckReads(Sized(
      [](Context& ctx) { ctx.resource("a", "v1", "A")["spec"]["size"] = 1; }));
  EXPECT_TRUE(check) << check.text();
  EXPECT_EQ(check.calls(), 19u);  // 16 altered, the first, two repeated
}

TEST(CheckSafeTest, IfReadyAroundAResourceIsFoundByItsPath) {
  Call call([](Context& ctx) {
    Resource vpc = ctx.resource("vpc", "v1", "VPC");
    if (vpc.condition("Ready")) ctx.resource("subnet", "v1", "Subnet");
  });
  call.observed("vpc", R"(
      metadata: {name: vpc}
      status: {conditions: [{type: Ready, status: "True"}]})");
  EXPECT_TRUE(CheckSafe(call));  // the subnet does not exist yet
  call.observed("subnet", "kind: Subnet");
  EXPECT_EQ(CheckSafe(call).text(),
            "without observed.resources.vpc, the response leaves out "
            "desired.resources.subnet, which is observed and was desired: it "
            "would be deleted");
}

TEST(CheckSafeTest, OneFieldIsEnough) {
  Call call([](Context& ctx) {
    Resource vpc = ctx.resource("vpc", "v1", "VPC");
    if (!vpc.exists() || vpc.observed()["status"]["zones"][1]) {
      ctx.resource("subnet.a", "v1", "Subnet");
    }
  });
  call.observed("vpc", "status: {id: x, zones: [a, b]}")
      .observed("subnet.a", "kind: Subnet");
  EXPECT_THAT(CheckSafe(call).text(),
              StartsWith("without observed.resources.vpc.resource.status, the "
                         "response leaves out desired.resources.\"subnet.a\""));
  Call elements([](Context& ctx) {
    const Value status = ctx.resource("vpc", "v1", "VPC").observed()["status"];
    if (!status || status["zones"].size() != 1) {
      ctx.resource("subnet", "v1", "Subnet");
    }
  });
  elements.observed("vpc", "status: {zones: [a, b]}")
      .observed("subnet", "kind: Subnet");
  EXPECT_THAT(
      CheckSafe(elements).text(),
      StartsWith("without observed.resources.vpc.resource.status.zones[0], "));
}

TEST(CheckSafeTest, AListMadeOfAnEmptyRequirementIsFoundByItsPath) {
  const auto zones = [](size_t least) {
    Call call([least](Context& ctx) {
      auto items = ctx.require("zones", "v1", "Zone", MatchLabels({{"a", "b"}}))
                       .at_least(least);
      Resource group = ctx.existing("group");
      if (!items.empty()) group = ctx.resource("group", "v1", "Group");
      for (const Resource zone : items) {
        ctx.resource("group", "v1", "Group")["spec"]["zones"].add(zone.name());
      }
    });
    call.required("zones", {"metadata: {name: a}", "metadata: {name: b}"})
        .observed("group", "kind: Group");
    return call;
  };
  EXPECT_EQ(CheckSafe(zones(0)).text(),
            "without required_resources.zones.items, the response leaves out "
            "desired.resources.group, which is observed and was desired: it "
            "would be deleted");
  EXPECT_TRUE(CheckSafe(zones(1)));
}

TEST(CheckSafeTest, AResourceForEachItemIsFoundByTheItem) {
  Call call([](Context& ctx) {
    for (const Resource zone :
         ctx.require("zones", "v1", "Zone", MatchLabels({{"a", "b"}}))) {
      ctx.resource(zone.name(), "v1", "Subnet");
    }
  });
  call.required("zones", {"metadata: {name: a}", "metadata: {name: b}"})
      .observed("b", "kind: Subnet");
  const std::string text =
      "items[1], the response leaves out desired.resources.b, which is "
      "observed and was desired: it would be deleted";
  EXPECT_EQ(CheckSafe(call).text(),
            absl::StrCat("without required_resources.zones.", text));
  EXPECT_EQ(CheckSafe(call.capabilities({})).text(),
            absl::StrCat("without extra_resources.zones.", text));
}

// at_least() has no answer to judge then.
TEST(CheckSafeTest, ALoopOverAnAwaitedSelectorIsFoundByWhatItWaitsFor) {
  Call call([](Context& ctx) {
    const Value net = ctx.resource("net", "v1", "Net").observed();
    for (const Resource zone :
         ctx.require("zones", "v1", "Zone", MatchName(net["status"]["zone"]))
             .at_least(1)) {
      ctx.resource(zone.name(), "v1", "Subnet");
    }
  });
  call.observed("net", "status: {zone: a}")
      .required("zones", {"metadata: {name: a}"})
      .observed("a", "kind: Subnet");
  EXPECT_EQ(CheckSafe(call).text(),
            "without observed.resources.net, the response leaves out "
            "desired.resources.a, which is observed and was desired: it would "
            "be deleted");
}

TEST(CheckSafeTest, AConnectionDetailIsEnough) {
  Call call([](Context& ctx) {
    Resource db = ctx.resource("db", "v1", "DB");
    if (!db.exists() || db.connection_details()["p.w"].has_value()) {
      ctx.resource("user", "v1", "User");
    }
  });
  call.observed("db", "{}")
      .observed("user", "{}")
      .connection_details("db", {{"a", "b"}, {"p.w", "x"}});
  EXPECT_EQ(CheckSafe(call).text(),
            "without observed.resources.db.connection_details.\"p.w\", the "
            "response leaves out desired.resources.user, which is observed and "
            "was desired: it would be deleted");
}

TEST(CheckSafeTest, FatalResponsesDeleteNothing) {
  Call call([](Context& ctx) {
    ctx.resource("vpc", "v1", "VPC");
    if (!ctx.existing("vpc")
             .observed()["status"]["id"]
             .as<std::string>()
             .value()
             .empty()) {
      ctx.resource("subnet", "v1", "Subnet");
    }
  });
  call.observed("vpc", "status: {id: x}").observed("subnet", "kind: Subnet");
  EXPECT_TRUE(CheckSafe(call));
}

TEST(CheckResultTest, AFailurePrintsItsText) {
  EXPECT_NONFATAL_FAILURE(EXPECT_TRUE(CheckResult("a.b is lost", 1)),
                          "a.b is lost");
  EXPECT_TRUE(CheckResult("", 1));
}

}  // namespace
}  // namespace fncache::function::testing
