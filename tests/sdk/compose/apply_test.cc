// SPDX-License-Identifier: Apache-2.0
// Apply and Json of handles: Values, objects, lists and maps are inputs as
// Fields are.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sdk/compose/caller.h"

namespace fncache::sdk {
namespace {

using testing::HasSubstr;

// `x` of "a" is made of the status of "b".
template <class Make>
auto AOfB(Make make) {
  return [make](fn::Context& ctx) {
    auto b = ctx.resource("b", "v1", "B");
    ctx.resource("a", "v1", "A")["spec"]["x"] = make(b.observed()["status"]);
  };
}
template <class Make>
void ExpectAwaited(Make make, const std::string& status) {
  Caller fresh, lost, there;
  fresh.Observed("b", "{}")(AOfB(make));
  EXPECT_EQ(fresh.Resource("a"), "") << "held";
  lost.Observed("b", "{}").Observed("a", "{spec: {x: before}}")(AOfB(make));
  EXPECT_THAT(lost.Resource("a"), HasSubstr("before")) << "kept";
  there.Observed("b", "{status: " + status + "}")(AOfB(make));
  EXPECT_THAT(there.Resource("a"), HasSubstr("arn:"));
}

TEST(ApplyTest, AValueIsAwaitedAsAFieldIs) {
  const auto make = [](const fn::Value& status) {
    return fn::Apply([](const fn::Value& id) { return "arn:" + id.text(); },
                     status["id"]);
  };
  ExpectAwaited(make, "{id: 1}");
  // A null of an observed resource is no value yet.
  Caller null;
  null.Observed("b", "{status: {id: null}}")(AOfB(make));
  EXPECT_EQ(null.Resource("a"), "");
}

TEST(ApplyTest, AListAMapAndAnObjectAreAwaited) {
  ExpectAwaited(
      [](const fn::Value& status) {
        return fn::Apply(
            [](const fn::List<std::string>& all) {
              return "arn:" + std::to_string(all.size());
            },
            fn::List<std::string>(status["all"].ref()));
      },
      "{all: [x]}");
  ExpectAwaited(
      [](const fn::Value& status) {
        return fn::Apply(
            [](const fn::Map<std::string>& all) {
              return "arn:" + all["k"].value();
            },
            fn::Map<std::string>(status["all"].ref()));
      },
      "{all: {k: v}}");
  ExpectAwaited(
      [](const fn::Value& status) {
        return fn::Apply(
            [](const fn::Object& all) { return "arn:" + all["k"].text(); },
            fn::Object(status["all"].ref()));
      },
      "{all: {k: v}}");
}

TEST(ApplyTest, TheValueDependsOnWhatItWasMadeOf) {
  Caller call;
  const auto function = AOfB([](const fn::Value& status) {
    return fn::Apply([](const fn::Value& id) { return id.text(); },
                     status["id"]);
  });
  call.Observed("b", "{}")(function);
  EXPECT_THAT(call.Results(),
              testing::ElementsAre(HasSubstr("a waits for b.status.id")));
}

TEST(JsonTest, ListsMapsAndObjects) {
  Caller call;
  call([](fn::Context& ctx) {
    fn::Value spec = ctx.resource("a", "v1", "A")["spec"];
    fn::List<int64_t> list = {2, 1};
    fn::Map<std::string> map = {{"b", "2"}, {"a", "1"}};
    spec["list"] = fn::Json(list);
    spec["map"] = fn::Json(map);
    spec["merged"]["c"] = 3;
    spec["merged"].merge(map);
    fn::Object(spec["object"].ref()).merge(map);
    fn::List<fn::Value> values(spec["values"].ref());
    values.add(5);
    values.add("x");
    values.add(fn::Yaml("[1]"));
    values.add(map);
  });
  EXPECT_THAT(call.Resource("a"),
              HasSubstr(R"("list":"[2,1]","map":"{\"a\":\"1\",\"b\":\"2\"}",)"
                        R"("merged":{"a":"1","b":"2","c":3},)"
                        R"("object":{"a":"1","b":"2"},)"
                        R"("values":[5,"x",[1],{"a":"1","b":"2"}]})"));
}

TEST(SecretTest, IsNotPrintedByTests) {
  EXPECT_EQ(::testing::PrintToString(
                fn::Secret(fn::Observable<std::string>("sEcReT"))),
            "Secret");
}

}  // namespace
}  // namespace fncache::sdk
