// SPDX-License-Identifier: Apache-2.0
// Requests that no runner should send: one clear FATAL or a plain response,
// never a crash or an omission. And no value of a request in any text.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/function_lazy.pb.h"
#include "tests/sdk/compose/caller.h"

namespace fncache::sdk {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

void AThenB(fn::Context& ctx) {
  auto a = ctx.resource("a", "v1", "A");
  a.ready(fn::Ready::kObserved);
  ctx.resource("b", "v1", "B")["spec"]["x"] = a.observed()["status"]["id"];
  ctx.auto_ready();
}

TEST(BadInput, AnEmptyRequestHasAPlainResponse) {
  const auto result = sdk::Run(AThenB, fn::Options(), "", CallInfo());
  v1::RunFunctionResponse response;
  ASSERT_TRUE(response.ParseFromString(result.response));
  EXPECT_EQ(response.desired().resources_size(), 1);
  EXPECT_FALSE(response.desired().has_composite());
}

TEST(BadInput, OddNames) {
  const std::string names[] = {"a.b",  "say \"a\"", "*",
                               "a\\b", "0",         "größe",
                               "[0]",  "a b\n",     std::string(253, 'n')};
  for (const std::string& name : names) {
    Caller call;
    const auto function = [&](fn::Context& ctx) {
      auto one = ctx.resource(name, "v1", "A");
      EXPECT_EQ(one.name(), name);
      ctx.resource("b", "v1", "B")["spec"]["x"] =
          one.observed()["status"]["id"];
    };
    call(function);
    EXPECT_NE(call.Resource(name), "");
    EXPECT_EQ(call.Resource("b"), "");
    call.Observed(name, "{status: {id: 1}}")(function);
    EXPECT_NE(call.Resource("b"), "");
    EXPECT_THAT(call.Results(), IsEmpty());
  }
}

TEST(BadInput, AStatusThatIsAText) {
  Caller call;
  call.Observed("a", "{status: broken}").Observed("b", "{spec: {x: 1}}");
  call(AThenB);
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: observed.resources.a.status: must be an "
                          "object, is text"));
  // The SDK itself finds no conditions then.
  call([](fn::Context& ctx) {
    ctx.resource("a", "v1", "A").ready(fn::Ready::kObserved);
  });
  EXPECT_THAT(call.Results(), IsEmpty());
}

TEST(BadInput, ConditionsThatAreAMap) {
  Caller call;
  call.Observed("a", "{status: {conditions: {type: Ready, status: 'True'}}}");
  call(AThenB);
  EXPECT_THAT(call.Results(),
              ElementsAre("NORMAL Dependencies: b waits for a.status.id (not "
                          "ready yet); graph: a -> b"));
  call([](fn::Context& ctx) {
    EXPECT_FALSE(ctx.existing("a").condition("Ready").is_true());
  });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: observed.resources.a.status.conditions: "
                          "must be a list, is an object"));
  call.Observed("a",
                "{status: {conditions: [5, {type: 7}, {status: 'True'}]}}");
  call(AThenB);
  EXPECT_EQ(call.Results().size(), 1u);
}

TEST(BadInput, ConditionsAreReadByTheirType) {
  Caller call;
  call.Observed("a",
                "{status: {conditions: [{type: Synced, status: 'True'}, {type: "
                "Ready, status: 'False', reason: Creating, message: wait}]}}");
  call([](fn::Context& ctx) {
    auto a = ctx.existing("a");
    EXPECT_TRUE(a.condition("Synced"));
    EXPECT_FALSE(a.condition("Ready"));
    EXPECT_EQ(a.observed().condition("Ready").reason(), "Creating");
    EXPECT_EQ(a.condition("Ready").message(), "wait");
    EXPECT_FALSE(a.condition("Other").has_value());
    ctx.resource("b", "v1", "B")["spec"]["x"] = a.condition("Other").reason();
  });
  EXPECT_THAT(
      call.Results(),
      ElementsAre("NORMAL Dependencies: b waits for a.status.conditions[2]."
                  "reason (not ready yet); graph: a -> b"));
}

// A composite whose Struct is broken, nested too deep, or a text.
TEST(BadInput, BrokenDocumentsAreFatalWhenTheyAreAccessed) {
  google::protobuf::Value deep;
  for (int i = 0; i < 340; ++i) {
    google::protobuf::Value above;
    (*above.mutable_struct_value()->mutable_fields())["k"] = deep;
    deep.Swap(&above);
  }
  const std::pair<std::string, std::string> documents[] = {
      {std::string("\x0a\x05\x0a"), "is broken: no Struct of protobuf"},
      {std::string("\xff"), "is broken: no Struct of protobuf"},
      {deep.struct_value().SerializeAsString(),
       "is nested deeper than 330 levels"},
  };
  for (const auto& document : documents) {
    // clang captures no structured binding.
    const auto& bytes = std::get<0>(document);
    const auto& why = std::get<1>(document);
    lazy::RunFunctionRequest request;
    request.mutable_observed()->mutable_composite()->add_resource(bytes);
    auto& desired = *request.mutable_desired()->mutable_resources();
    desired["a"].add_resource(bytes);
    request.add_input(bytes);
    request.add_context(bytes);
    (*request.mutable_required_resources())["r"].add_items()->add_resource(
        bytes);
    const auto run = [&](const fn::Function& function) {
      const auto result = sdk::Run(function, fn::Options(),
                                   request.SerializeAsString(), CallInfo());
      lazy::RunFunctionResponse response;
      EXPECT_TRUE(response.ParseFromString(result.response));
      EXPECT_EQ(response.desired().resources().at("a").resource(0), bytes);
      EXPECT_EQ(response.context(0), bytes);
      return response.results_size() == 0 ? "" : response.results(0).message();
    };
    // Untouched: passed on.
    EXPECT_EQ(run([](fn::Context& ctx) {
                ctx.resource("other", "v1", "A");
                ctx.existing("a").ready(fn::Ready::kTrue);
                ctx.log().debug("x");
              }),
              "");
    EXPECT_EQ(
        run([](fn::Context& ctx) { ctx.composite().observed()["x"].size(); }),
        "observed.composite: " + why);
    EXPECT_EQ(run([](fn::Context& ctx) { ctx.resource("a", "v1", "A"); }),
              "desired.resources.a: " + why);
    EXPECT_EQ(run([](fn::Context& ctx) { ctx.input()["x"].size(); }),
              "input: " + why);
    EXPECT_EQ(run([](fn::Context& ctx) { ctx.context("x").size(); }),
              "context: " + why);
    EXPECT_EQ(run([](fn::Context& ctx) { ctx.set_context("x", 1); }),
              "context: " + why);
    EXPECT_EQ(
        run([](fn::Context& ctx) { ctx.bootstrap("r").first()["x"].size(); }),
        "required.r[0]: " + why);
  }
}

TEST(BadInput, ManyResourcesAndLongLists) {
  Caller call;
  for (int i = 0; i < 3000; ++i) {
    call.Desired(absl::StrCat("r", i), "{apiVersion: v1, kind: A}");
  }
  auto& list = *(*call.request.mutable_observed()
                      ->mutable_composite()
                      ->mutable_resource()
                      ->mutable_fields())["list"]
                    .mutable_list_value();
  for (int i = 0; i < 100000; ++i) list.add_values()->set_number_value(i);
  call([](fn::Context& ctx) {
    auto from = ctx.composite().observed()["list"];
    auto to = ctx.resource("new", "v1", "A")["spec"]["list"];
    for (size_t i = 0; i < from.size(); ++i) to.add(from[i]);
    for (int i = 0; i < 3000; ++i) {
      ctx.resource(absl::StrCat("r", i), "v1", "A")["spec"]["x"] = i;
    }
  });
  EXPECT_EQ(call.response.desired().resources_size(), 3001);
  EXPECT_EQ(call.response.desired()
                .resources()
                .at("new")
                .resource()
                .fields()
                .at("spec")
                .struct_value()
                .fields()
                .at("list")
                .list_value()
                .values_size(),
            100000);
  EXPECT_THAT(call.Results(), IsEmpty());
}

// Fields of protobuf, of at most 127 bytes or as much as `bytes` has.
std::string Piece(int field, const std::string& bytes) {
  std::string piece(1, static_cast<char>(field << 3 | 2));
  size_t size = bytes.size();
  for (; size > 127; size >>= 7) piece += static_cast<char>(size | 128);
  return piece + static_cast<char>(size) + bytes;
}

TEST(BadInput, PiecesOfAValueAreThoseOfProtobuf) {
  const auto object = [](const std::string& key) {
    return Piece(5, Piece(1, Piece(1, key) + Piece(2, Piece(3, key))));
  };
  const auto list = [](const std::string& text) {
    return Piece(6, Piece(1, Piece(3, text)));
  };
  const std::string null(1, '\x08');
  for (const std::string& value :
       {object("a") + object("b"), object("b") + object("a") + object("b"),
        object("a") + Piece(3, "x") + object("b"), list("1") + list("2"),
        list("1") + object("a"), object("a") + list("1") + list("2"),
        object("a") + null + '\0', list("1") + null + '\0' + list("2"),
        object("a") + Piece(5, ""), object("a") + list("1") + Piece(3, "x")}) {
    for (const std::string& entry :
         {Piece(2, value) + Piece(1, "k"),
          Piece(1, "j") + Piece(2, value) + Piece(2, value) + Piece(1, "k"),
          Piece(2, object("z")) + Piece(1, "k") + Piece(2, value),
          Piece(2, value) + Piece(2, "") + Piece(1, "k")}) {
      // The input, twice.
      const std::string bytes =
          Piece(4, Piece(1, entry) + Piece(1, Piece(1, "k") + Piece(2, "")) +
                       Piece(1, entry));
      v1::RunFunctionRequest meant;
      ASSERT_TRUE(meant.ParseFromString(bytes));
      const auto result = sdk::Run(
          [](fn::Context& ctx) { ctx.set_context("c", ctx.input()["k"]); },
          fn::Options(), bytes, CallInfo());
      v1::RunFunctionResponse response;
      ASSERT_TRUE(response.ParseFromString(result.response));
      EXPECT_EQ(response.context().fields().at("c").ShortDebugString(),
                meant.input().fields().at("k").ShortDebugString());
    }
  }
}

// Joined one after another, they would need a terabyte.
TEST(BadInput, PiecesOfAValueCostTheirBytes) {
  const std::string piece = Piece(5, Piece(1, Piece(1, "x")));
  std::string pieces, values;
  for (int i = 0; i < 300'000; ++i) {
    pieces += piece;
    values += Piece(2, piece);
  }
  for (const std::string& value : {Piece(2, pieces), values}) {
    int size = 0;
    sdk::Run([&](fn::Context& ctx) { size = ctx.input()["k"].size(); },
             fn::Options(), Piece(4, Piece(1, Piece(1, "k") + value)),
             CallInfo());
    EXPECT_EQ(size, 1);
  }
}

TEST(BadInput, ASchemaOfAnotherKind) {
  Caller call;
  auto& schema = (*call.request.mutable_required_schemas())["s"];
  *schema.mutable_openapi_v3() = FromYaml("{type: 5, properties: [x]}");
  call([](fn::Context& ctx) {
    ctx.require_schema("s", "v1", "A").Validate(ctx.resource("a", "v1", "A"));
  });
  EXPECT_THAT(call.Results(), IsEmpty());
}

// A value in every section of a request, every kind of error, and all that the
// SDK says of it: the value is nowhere but in what the function asked for.
TEST(BadInput, NoTextHasAValueOfTheRequest) {
  constexpr char kSecret[] = "planted-53cr3t";
  const std::string object =
      "{apiVersion: planted-53cr3t, kind: planted-53cr3t, metadata: {name: "
      "planted-53cr3t, annotations: {crossplane.io/external-name: "
      "planted-53cr3t}}, spec: {x: planted-53cr3t, list: [planted-53cr3t]}, "
      "status: {id: planted-53cr3t, text: planted-53cr3t, conditions: [{type: "
      "planted-53cr3t, status: planted-53cr3t}]}}";
  Caller call;
  call.options.waiting_condition = "Composed";
  call.Composite(object).Observed("a", object).Desired("d", object);
  call.Required("r", {object}).Input(object);
  *call.request.mutable_context() = FromYaml("{k: " + object + "}");
  auto& credentials = *call.request.mutable_credentials();
  (*credentials["c"].mutable_credential_data()->mutable_data())["k"] = kSecret;
  for (auto* resource :
       {call.request.mutable_observed()->mutable_composite(),
        &(*call.request.mutable_observed()->mutable_resources())["a"]}) {
    (*resource->mutable_connection_details())["k"] = kSecret;
  }
  *(*call.request.mutable_required_schemas())["s"].mutable_openapi_v3() =
      FromYaml("{properties: {spec: {properties: {x: {enum: [" +
               std::string(kSecret) + "], type: number}}}}}");
  const fn::Function functions[] = {
      [](fn::Context& ctx) {
        ctx.composite().observed()["spec"]["x"].as<double>().value();
      },
      [](fn::Context& ctx) {
        ctx.composite().observed()["spec"]["x"]["y"].as<bool>().value();
      },
      [](fn::Context& ctx) { ctx.existing("a").observed()["spec"]["x"] = 1; },
      [](fn::Context& ctx) { ctx.resource("d", "v1", "A"); },
      [](fn::Context& ctx) {
        ctx.resource("n", "v1", "N");
        const fn::Value input = ctx.input();
        ctx.resource("n", input["apiVersion"].as<std::string>().value(),
                     input["kind"].as<std::string>().value());
      },
      [](fn::Context& ctx) { ctx.input()["spec"]["x"].keys(); },
      [](fn::Context& ctx) { ctx.context("k")["spec"]["list"].keys(); },
      [](fn::Context& ctx) {
        ctx.ttl(ctx.input()["spec"]["x"].as<std::string>());
      },
      [](fn::Context& ctx) { ctx.bootstrap("r").at_least(5); },
      [](fn::Context& ctx) {
        ctx.resource("n", "v1", "N")["spec"] = ctx.composite().observed();
      },
      [](fn::Context& ctx) {
        auto status = ctx.existing("a").observed()["status"];
        auto n = ctx.resource("n", "v1", "N");
        n["spec"]["x"] = status["none"];
        n["spec"]["z"] = ctx.existing("a").observed().connection_details()["z"];
        n["status"]["x"] = status["id"];
        ctx.resource("a2", "v1", "N")["spec"]["x"] =
            n.observed()["status"]["x"];
        ctx.existing("a").ready(fn::Ready::kObserved);
      },
      [](fn::Context& ctx) {
        ctx.require("r", "v1", "A",
                    fn::MatchName(ctx.input()["spec"]["x"].as<std::string>()));
        ctx.require("r", "v1", "B", fn::MatchName("x"));
      },
      [](fn::Context& ctx) {
        for (const auto& problem :
             ctx.bootstrap_schema("s").Validate(ctx.existing("d"))) {
          ctx.warning(problem.path + " " + problem.text);
        }
      },
      [](fn::Context& ctx) {
        fn::Value(ctx.resource("n", "v1", "N")) = ctx.input()["spec"]["x"];
      },
      [](fn::Context& ctx) { ctx.output() = ctx.credentials("c")["k"]; },
      [](fn::Context& ctx) {
        ctx.composite()["spec"]["x"] = ctx.credentials("c")["k"];
      },
      [](fn::Context& ctx) {
        fn::Observable<std::string>(ctx.credentials("c")["none"]).value();
      },
  };
  for (size_t i = 0; i < std::size(functions); ++i) {
    call(functions[i]);
    for (const std::string& text : call.Results()) {
      EXPECT_THAT(text, testing::Not(testing::HasSubstr("planted"))) << i;
    }
    for (const std::string& text : call.Conditions()) {
      EXPECT_THAT(text, testing::Not(testing::HasSubstr("planted"))) << i;
    }
    EXPECT_THAT(call.result.depends,
                testing::Not(testing::HasSubstr("planted")));
  }
}

}  // namespace
}  // namespace fncache::sdk
