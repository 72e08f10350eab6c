// SPDX-License-Identifier: Apache-2.0
// SDK.md, sections 2 to 4: what is merged, copied and cleared while references
// are lost.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sdk/compose/caller.h"

namespace fncache::sdk {
namespace {

using testing::ElementsAre;

// The spec of resource `a`, as the function with a handle of `b` desires it.
class Merge : public testing::Test {
 protected:
  using Body = void (*)(fn::Value spec, fn::Value status, fn::Context& ctx);
  std::string Spec(Body body) {
    call_([body](fn::Context& ctx) {
      auto a = ctx.resource("a", "v1", "A");
      body(a["spec"], ctx.existing("b").observed()["status"], ctx);
    });
    EXPECT_TRUE(call_.response.desired().resources().count("a"));
    const auto& fields =
        call_.response.desired().resources().at("a").resource().fields();
    return fields.count("spec") ? ToJson(fields.at("spec").struct_value())
                                : "none";
  }

  Caller call_;
};

constexpr char kKept[] = "WARNING KeptObserved: a.spec.o";

TEST_F(Merge, AMergeOntoAnAwaitedObjectStillAwaitsTheRest) {
  const Body body = [](fn::Value spec, fn::Value status, fn::Context&) {
    spec["o"] = status["o"];
    spec["o"].merge(fn::Yaml("{extra: 2}"));
  };
  call_.Observed("a", "{spec: {o: {x: 1, extra: 1}}}");
  call_.Observed("b", "{status: {}}");
  EXPECT_EQ(Spec(body), R"({"o":{"extra":2,"x":1}})");
  EXPECT_THAT(call_.Results(), ElementsAre(kKept));
  call_.Observed("b", "{status: {o: {x: 3}}}");
  EXPECT_EQ(Spec(body), R"({"o":{"extra":2,"x":3}})");
  // Not there yet: held.
  call_.request.mutable_observed()->mutable_resources()->clear();
  call_([body](fn::Context& ctx) {
    body(ctx.resource("a", "v1", "A")["spec"],
         ctx.resource("b", "v1", "B").observed()["status"], ctx);
  });
  EXPECT_EQ(call_.Resource("a"), "");
}

TEST_F(Merge, TwoMergesAwaitBoth) {
  const Body body = [](fn::Value spec, fn::Value status, fn::Context&) {
    spec["o"]["app"] = "new";
    spec["o"].merge(status["o"]);
    spec["o"].merge(status["p"]);
    spec["o"].merge(fn::Yaml("{deep: {own: 1}}"));
  };
  call_.Observed("a", "{spec: {o: {app: old, deep: {own: 1, k: v}, x: 1}}}");
  call_.Observed("b", "{}");
  EXPECT_EQ(Spec(body),
            R"({"o":{"app":"new","deep":{"k":"v","own":1},"x":1}})");
  EXPECT_THAT(call_.Results(), ElementsAre(kKept));
  call_.Observed("a", "{}");
  EXPECT_EQ(Spec(body), R"({"o":{"app":"new","deep":{"own":1}}})");
}

TEST_F(Merge, AFieldThatWasClearedBeforeAMergeIsAwaited) {
  call_.Desired("a", "{spec: {o: {k: e, deep: {k: e}, other: 1}}}");
  call_.Observed("a", "{spec: {o: {k: v, deep: {k: v}, other: 1}}}");
  EXPECT_EQ(Spec([](fn::Value spec, fn::Value status, fn::Context&) {
              spec["o"]["k"].clear();
              spec["o"]["deep"]["k"].clear();
              spec["o"].merge(status["o"]);
              spec["o"]["other"].clear();
            }),
            R"({"o":{"deep":{"k":"v"},"k":"v"}})");
}

TEST_F(Merge, ALostReferenceLeavesWhatAnEarlierStepHas) {
  call_.Desired("a", "{spec: {o: {x: 1, u: 2}}}");
  call_.Observed("a", "{spec: {o: {x: 0, z: 3}}}");
  EXPECT_EQ(Spec([](fn::Value spec, fn::Value status, fn::Context&) {
              spec["o"].merge(status["o"]);
            }),
            R"({"o":{"u":2,"x":0,"z":3}})");
}

TEST_F(Merge, ACopyOfWhatIsAwaitedHasNothingOfEarlierSteps) {
  call_.Desired("a", "{spec: {o: {q: e}}}");
  call_.Observed("a", "{spec: {o: {q: {x: 1}}, p: {q: {x: 1}}}}");
  EXPECT_EQ(Spec([](fn::Value spec, fn::Value status, fn::Context&) {
              spec["o"] = status["o"];
              spec["o"]["r"] = 2;
              spec["p"] = spec["o"];
            }),
            R"({"o":{"q":{"x":1},"r":2},"p":{"q":{"x":1},"r":2}})");
}

TEST_F(Merge, AnObjectThatAwaitsIsMergedWithItsWait) {
  call_.Observed("a", "{spec: {o: {app: old, x: 1}}}");
  EXPECT_EQ(Spec([](fn::Value spec, fn::Value status, fn::Context&) {
              fn::Value object;
              object["o"] = status["o"];
              object["o"]["y"] = 2;
              spec["o"]["app"] = "new";
              spec.merge(object);
            }),
            R"({"o":{"app":"new","x":1,"y":2}})");
}

TEST_F(Merge, NothingThatIsAbsentIsEmitted) {
  const Body body = [](fn::Value spec, fn::Value, fn::Context& ctx) {
    const fn::Value absent = ctx.input()["absent"];
    spec["containers"].add()["image"] = absent;
    spec["args"].add(absent);
    spec["init"] = {absent, absent};
    fn::List<std::string> texts(spec["texts"].ref());
    texts = {absent};
    fn::List<fn::Object> objects(spec["objects"].ref());
    objects.add(fn::Object(absent.ref()));
    fn::List<fn::Object> some(spec["some"].ref());
    some.add(fn::Object(absent.ref()));
    some.add(fn::Object());
    some.add();
    spec["empty"] = fn::List<std::string>();
  };
  EXPECT_EQ(Spec(body), R"({"empty":[],"some":[{},{}]})");
  // An earlier step's values stay.
  call_.Desired("a", "{spec: {args: [], init: x, containers: [{a: 1}]}}");
  EXPECT_EQ(
      Spec(body),
      R"({"args":[],"containers":[{"a":1}],"empty":[],"init":"x","some":[{},{}]})");
  EXPECT_EQ(Spec([](fn::Value spec, fn::Value, fn::Context& ctx) {
              spec["args"].clear();
              spec["args"].add(ctx.input()["absent"]);
              spec["containers"][0].clear();
              spec["init"] = 1;
            }),
            R"({"containers":[],"init":1})");
}

TEST_F(Merge, TheStatusOfTheCompositeKeepsWhatIsSet) {
  call_([](fn::Context& ctx) {
    auto status = ctx.composite()["status"];
    status["mine"] = 1;
    status.merge(ctx.existing("b").observed()["spec"]["more"]);
  });
  EXPECT_EQ(call_.DesiredComposite(),
            YamlAsJson("{apiVersion: example.org/v1, kind: XNet, status: "
                       "{mine: 1}}"));
}

TEST_F(Merge, TheStatusOfAnEarlierStepsCompositeIsCleared) {
  *call_.request.mutable_desired()->mutable_composite()->mutable_resource() =
      FromYaml("{status: {e: 1}}");
  call_([](fn::Context& ctx) { ctx.composite()["status"].clear(); });
  EXPECT_EQ(call_.DesiredComposite(),
            YamlAsJson("{apiVersion: example.org/v1, kind: XNet}"));
}

TEST_F(Merge, ObjectsOfOneDocumentMerge) {
  EXPECT_EQ(Spec([](fn::Value spec, fn::Value, fn::Context&) {
              spec["o"] = fn::Yaml("{x: 1}");
              spec["p"] = fn::Yaml("{z: 2}");
              spec["o"].merge(spec["p"]);
            }),
            R"({"o":{"x":1,"z":2},"p":{"z":2}})");
}

TEST_F(Merge, ANullInACopyOfObservedIsAwaited) {
  call_.Observed("a", "{spec: {o: {x: old, k: 1}, l: [7, 1]}}");
  call_.Observed("b", "{status: {o: {x: null, k: 2}, l: [null, 1]}}");
  EXPECT_EQ(Spec([](fn::Value spec, fn::Value status, fn::Context&) {
              spec["o"] = status["o"];
              spec["l"] = status["l"];
              spec["json"] = fn::Json(status["o"]["x"]);
            }),
            R"({"l":[7,1],"o":{"k":2,"x":"old"}})");
}

TEST_F(Merge, AnElementAddedToAnAwaitedListAwaitsTheOthers) {
  call_.Desired("a", "{spec: {o: {l: [7]}}}");
  call_.Observed("a", "{spec: {o: {l: [1, 2]}}}");
  EXPECT_EQ(Spec([](fn::Value spec, fn::Value status, fn::Context&) {
              spec["o"] = status["o"];
              spec["o"]["l"].add(2);
            }),
            R"({"o":{"l":[1,2]}})");
}

TEST_F(Merge, AValueStaysUntilAnObjectInsteadOfItIsThere) {
  const Body body = [](fn::Value spec, fn::Value status, fn::Context&) {
    spec["o"]["x"] = status["x"];
  };
  call_.Observed("a", "{spec: {o: 5}}");
  EXPECT_EQ(Spec(body), R"({"o":5})");
  call_.Observed("b", "{status: {x: 1}}");
  EXPECT_EQ(Spec(body), R"({"o":{"x":1}})");
}

TEST_F(Merge, WhatIsClearedBelowAnAwaitedValueLeavesIt) {
  const Body body = [](fn::Value spec, fn::Value status, fn::Context&) {
    for (const char* const key : {"text", "list", "object"}) {
      spec[key] = status[key];
      spec[key].erase("below");
    }
  };
  call_.Observed("a", "{spec: {text: t, list: [1], object: {}}}");
  call_.Observed("b", "{status: {text: t, list: [1], object: {below: 1}}}");
  EXPECT_EQ(Spec(body), R"({"list":[1],"object":{},"text":"t"})");
  call_.Observed("b", "{}");
  EXPECT_EQ(Spec(body), R"({"list":[1],"object":{},"text":"t"})");
}

}  // namespace
}  // namespace fncache::sdk
