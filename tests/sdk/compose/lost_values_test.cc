// SPDX-License-Identifier: Apache-2.0
// SDK.md, sections 3 to 5: what is iterated, indexed and computed while the
// values in it are lost.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sdk/compose/caller.h"

namespace fncache::sdk {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// `a` and others made of the status of `b`. Once all is there, they are
// observed as they were desired; then the status is lost.
class LostValues : public testing::Test {
 protected:
  using Body = void (*)(fn::Value spec, fn::Value status, fn::Context& ctx);

  void Call(Body body) {
    call_([body](fn::Context& ctx) {
      auto b = ctx.resource("b", "v1", "B");
      auto a = ctx.resource("a", "v1", "A");
      body(a["spec"], b.observed()["status"], ctx);
    });
  }
  // The response with this status is the one without it, but for results.
  void ExpectStays(const std::string& status, Body body,
                   const std::string& spec) {
    call_.Observed("b", "{status: " + status + "}");
    Call(body);
    EXPECT_EQ(call_.Resource("a"),
              YamlAsJson("{apiVersion: v1, kind: A, spec: " + spec + "}"));
    const v1::RunFunctionResponse there = call_.response;
    for (const auto& [name, resource] : there.desired().resources()) {
      *(*call_.request.mutable_observed()->mutable_resources())[name]
           .mutable_resource() = resource.resource();
    }
    call_.Observed("b", "{}");
    Call(body);
    EXPECT_TRUE(Same(call_.response.desired(), there.desired()))
        << call_.response.DebugString();
    // Nothing but `b` is there: held.
    call_.request.mutable_observed()->mutable_resources()->erase("a");
    Call(body);
    EXPECT_EQ(call_.Resource("a"), "");
    EXPECT_THAT(call_.Results(), Contains(HasSubstr("a waits for b.status")));
  }

  Caller call_;
};

TEST_F(LostValues, AKeyIsThereThoughItsValueIsAwaited) {
  ExpectStays(
      "{id: i}",
      [](fn::Value spec, fn::Value status, fn::Context&) {
        fn::Map<std::string> tags;
        tags["vpc"] = status["id"];
        tags["own"] = "x";
        EXPECT_EQ(tags.size(), 2u);
        for (const std::string& key : tags.keys()) spec[key] = tags[key];
        fn::Value more;
        more["m"] = status["id"];
        for (const std::string& key : more.keys()) spec[key] = more[key];
      },
      "{vpc: i, own: x, m: i}");
}

TEST_F(LostValues, AResourceForAKeyWhoseValueIsAwaitedStays) {
  const Body body = [](fn::Value, fn::Value status, fn::Context& ctx) {
    fn::Map<std::string> ids;
    ids["x"] = status["id"];
    for (const std::string& key : ids.keys()) {
      ctx.resource("sub-" + key, "v1", "S")["spec"]["id"] = ids[key];
    }
  };
  call_.Observed("b", "{}").Observed("sub-x", "{spec: {id: i}}");
  Call(body);
  EXPECT_EQ(call_.Resource("sub-x"),
            YamlAsJson("{apiVersion: v1, kind: S, spec: {id: i}}"));
  call_.request.mutable_observed()->mutable_resources()->erase("sub-x");
  Call(body);
  EXPECT_EQ(call_.Resource("sub-x"), "") << "held";
}

TEST_F(LostValues, WhatIsComputedOfAListWithAnAwaitedElementIsAwaited) {
  ExpectStays(
      "{id: i}",
      [](fn::Value spec, fn::Value status, fn::Context&) {
        const fn::List<std::string> list = {status["id"], "z"};
        fn::Map<std::string> map;
        map["k"] = status["id"];
        fn::Value value;
        value["deep"]["k"] = status["id"];
        spec["list"] = fn::Apply(
            [](const fn::List<std::string>& all) {
              return all[0].value_or("") + all[1].value();
            },
            list);
        spec["map"] = fn::Apply(
            [](const fn::Map<std::string>& all) {
              return all["k"].value_or("");
            },
            map);
        spec["value"] = fn::Apply(
            [](const fn::Value& all) { return all["deep"]["k"].text(); },
            value);
      },
      "{list: iz, map: i, value: i}");
}

TEST_F(LostValues, ElementsOfAnAwaitedListAreSet) {
  ExpectStays(
      "{l: [{k: 0}, {k: 1}, {k: 2}]}",
      [](fn::Value spec, fn::Value status, fn::Context&) {
        spec["first"] = status["l"];
        spec["first"][0]["x"] = 5;
        spec["second"] = status["l"];
        spec["second"][1]["x"] = 5;
        spec["cleared"] = status["l"];
        spec["cleared"][1]["k"].clear();
        spec["removed"] = status["l"];
        spec["removed"][2].clear();
        fn::Value own;
        own = status["l"];
        own[1]["x"] = 7;
        spec["own"] = own;
      },
      "{first: [{k: 0, x: 5}, {k: 1}, {k: 2}],"
      " second: [{k: 0}, {k: 1, x: 5}, {k: 2}],"
      " cleared: [{k: 0}, {}, {k: 2}], removed: [{k: 0}, {k: 1}],"
      " own: [{k: 0}, {k: 1, x: 7}, {k: 2}]}");
}

TEST_F(LostValues, AListBelowAnAwaitedObjectIsSet) {
  ExpectStays(
      "{o: {l: [1, 2, 3], p: 1}}",
      [](fn::Value spec, fn::Value status, fn::Context&) {
        spec["o"] = status["o"];
        spec["o"]["l"][2] = 7;
      },
      "{o: {l: [1, 2, 7], p: 1}}");
}

TEST_F(LostValues, WhatIsAppendedIsNotTheFirstElement) {
  ExpectStays(
      "{l: [a, b]}",
      [](fn::Value spec, fn::Value status, fn::Context&) {
        spec["l"] = status["l"];
        fn::Value own = spec["l"].add();
        own = "own";
        EXPECT_EQ(own, "own");
        spec["first"] = spec["l"][0];
        spec["copy"] = spec["l"];
        spec["last"] = spec["copy"][2];
        for (const auto& one : fn::List<std::string>(spec["l"].ref())) {
          fn::List<std::string>(spec["each"].ref()).add(one);
        }
      },
      "{l: [a, b, own], first: a, copy: [a, b, own], last: own,"
      " each: [a, b, own]}");
}

TEST_F(LostValues, AnElementBehindOneThatWasClearedIsAwaited) {
  call_.Observed("b", "{}").Observed("a", "{spec: {f: x}}");
  Call([](fn::Value spec, fn::Value status, fn::Context&) {
    fn::Value list;
    list = status["l"];
    list.add("x");
    list[1] = "z";
    list[0].clear();
    spec["f"] = list[1];
  });
  EXPECT_EQ(call_.Resource("a"),
            YamlAsJson("{apiVersion: v1, kind: A, spec: {f: x}}"));
}

TEST_F(LostValues, AHandleThatIsAppendedIsNotTheFirstElement) {
  ExpectStays(
      "{l: [a, b], own: o}",
      [](fn::Value spec, fn::Value status, fn::Context&) {
        fn::Value list;
        list = status["l"];
        list.add(status["own"]);
        list.add(fn::Yaml("fixed"));
        spec["first"] = list[0];
        fn::Value copy;
        copy = list;
        spec["second"] = copy[1];
        spec["l"] = copy;
      },
      "{first: a, second: b, l: [a, b, o, fixed]}");
}

TEST_F(LostValues, AListIsAddedToItself) {
  Call([](fn::Value spec, fn::Value, fn::Context&) {
    spec["l"].add("a");
    spec["l"].add(spec["l"]);
    EXPECT_EQ(fn::Json(spec["l"]).value(), R"(["a",["a"]])");
    spec["c"]["c"] = fn::Yaml("[3]");
    spec["c"]["c"].add(spec["c"]["c"][0].as<int64_t>());
    fn::List<fn::Value> typed(spec["t"].ref());
    typed.add(spec["l"]);
    typed.add(spec);
  });
  EXPECT_EQ(call_.Resource("a"),
            YamlAsJson("{apiVersion: v1, kind: A, spec: {l: [a, [a]],"
                       " c: {c: [3, 3]}, t: [[a, [a]], {l: [a, [a]],"
                       " c: {c: [3, 3]}, t: [[a, [a]]]}]}}"));
}

TEST_F(LostValues, AnotherKindOfValueStaysWhereAMergeIsLost) {
  call_.Observed("b", "{}").Observed("a", "{spec: {q: 5, r: null}}");
  Call([](fn::Value spec, fn::Value status, fn::Context&) {
    for (const char* name : {"q", "r"}) {
      spec[name]["m"] = 1;
      spec[name].merge(status["n"]);
    }
  });
  EXPECT_EQ(call_.Resource("a"),
            YamlAsJson("{apiVersion: v1, kind: A, spec: {q: 5, r: {m: 1}}}"));
}

// Lists that are set to elements of their own.
TEST_F(LostValues, AListIsMadeOfItsOwnElements) {
  call_.Desired("a", "{spec: {earlier: [{x: 1}, {x: 2}]}}");
  Call([](fn::Value spec, fn::Value, fn::Context&) {
    fn::Value earlier = spec["earlier"];
    earlier = {earlier[1], earlier[0]};
    spec["value"] = fn::Yaml("[{x: 1}, {x: 2}]");
    fn::Value value = spec["value"];
    value = {value[1], value[0]};
    spec["fields"] = fn::Yaml("[a, b]");
    fn::Value fields = spec["fields"];
    fields = {fields[1].as<std::string>(), fields[0].as<std::string>()};
    spec["typed"] = fn::Yaml("[{x: 1}, {x: 2}]");
    fn::List<fn::Object> typed(spec["typed"].ref());
    typed = {typed[1], typed[0], typed[1]};
    spec["nested"] = 1;
    fn::Value nested = spec["nested"];
    nested = {nested};
    spec["own"]["a"] = 1;
    fn::Value own = spec["own"]["list"];
    own = {spec["own"]};
  });
  EXPECT_EQ(call_.Resource("a"),
            YamlAsJson("{apiVersion: v1, kind: A, spec: {"
                       "earlier: [{x: 2}, {x: 1}], value: [{x: 2}, {x: 1}],"
                       "fields: [b, a], typed: [{x: 2}, {x: 1}, {x: 2}],"
                       "nested: [1], own: {a: 1, list: [{a: 1}]}}}"));
  // An element of something observed is still no more than may be copied.
  Call([](fn::Value spec, fn::Value, fn::Context& ctx) {
    spec["l"] = {fn::Value(ctx.existing("b").observed()["metadata"])};
  });
  EXPECT_THAT(call_.Results(),
              ElementsAre("FATAL: desired.resources.a.spec.l[0]: "
                          "observed.resources.b.metadata cannot be copied as a "
                          "whole"));
}

TEST_F(LostValues, TheGraphFollowsValuesThroughCopies) {
  call_.options.graph = fn::Graph::kAlways;
  const Body body = [](fn::Value spec, fn::Value status, fn::Context& ctx) {
    spec["id"] = status["id"];
    spec["cidr"] = "10";
    ctx.resource("c", "v1", "C")["spec"]["cidr"] = spec["cidr"];
    ctx.resource("d", "v1", "D")["spec"]["id"] = spec["id"];
    ctx.resource("e", "v1", "E")["spec"]["id"] = spec["id"].as<std::string>();
    ctx.resource("f", "v1", "F")["spec"]["id"] = fn::Concat(spec["id"], "-x");
    fn::Value own;
    own["k"] = status["id"];
    ctx.resource("g", "v1", "G")["spec"] = own;
    ctx.resource("h", "v1", "H")["spec"]["id"] =
        status["id"].as<std::string>().optional();
    fn::Value both;
    both["id"] = fn::Concat(spec["id"], ctx.existing("c").observed()["name"]);
    ctx.resource("i", "v1", "I")["spec"] = both;
  };
  constexpr char kEdges[] =
      "b -> a, b -> d, b -> e, b -> f, b -> g, b -> h, b -> i, c -> i";
  for (const char* observed : {"{status: {id: x}}", "{}"}) {
    call_.Observed("b", observed).Observed("c", "{name: n}");
    Call(body);
    ASSERT_FALSE(call_.Results().empty());
    EXPECT_THAT(call_.Results()[0], testing::EndsWith(kEdges));
  }
}

TEST_F(LostValues, AnExistingResourceKeepsItsKind) {
  call_.Desired("e", "{apiVersion: v1, kind: E, spec: {x: 1}}");
  for (const auto& body : {
           +[](fn::Resource e) { e["kind"].clear(); },
           +[](fn::Resource e) { e["apiVersion"] = fn::kNull; },
           +[](fn::Resource e) { e["kind"] = 5; },
       }) {
    call_([body](fn::Context& ctx) { body(ctx.existing("e")); });
    EXPECT_EQ(call_.Resource("e"),
              YamlAsJson("{apiVersion: v1, kind: E, spec: {x: 1}}"));
  }
  call_([](fn::Context& ctx) { ctx.existing("e").clear(); });
  EXPECT_EQ(call_.Resource("e"), YamlAsJson("{apiVersion: v1, kind: E}"));
}

TEST_F(LostValues, AConnectionDetailIsNamedWithItsKey) {
  call_.Observed("b", "{}");
  call_([](fn::Context& ctx) {
    auto details = ctx.resource("b", "v1", "B").observed().connection_details();
    ctx.resource("a", "v1", "A")["spec"]["p"] = details["password"];
    ctx.resource("a", "v1", "A")["spec"]["u"] = details["user"];
  });
  EXPECT_THAT(
      call_.Results(),
      ElementsAre(
          "NORMAL Dependencies: a waits for b.connection_details.password (not "
          "ready yet), b.connection_details.user (not ready yet); graph: b "
          "-> a"));
}

TEST_F(LostValues, WhateverIsThrownIsReported) {
  call_([](fn::Context&) { throw std::string("a text"); });
  EXPECT_THAT(call_.Results(),
              ElementsAre("FATAL: the function threw: a text"));
  call_([](fn::Context&) { throw "a literal"; });
  EXPECT_THAT(call_.Results(),
              ElementsAre("FATAL: the function threw: a literal"));
}

}  // namespace
}  // namespace fncache::sdk
