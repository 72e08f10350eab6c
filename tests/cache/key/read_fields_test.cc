// SPDX-License-Identifier: Apache-2.0
// Keys by hint against a slow reference: delete what does not count from the
// message, path by path, and make a plain key of the rest.
#include "cache/key/read_fields.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cache/key/digest.h"
#include "cache/key/hint.h"
#include "cache/wire/wire.h"
#include "common/method.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/random_encoding.h"
#include "tests/cache/key/random_request.h"
#include "tests/cache/key/request_data.h"
#include "tests/common/long_form.h"

// extra_resources, which runners still send.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fncache::cache::key {
namespace {

namespace fnv1 = ::apiextensions::fn::proto::v1;
namespace pb = ::google::protobuf;

Hint HintOf(const std::vector<std::string>& paths) {
  std::string field = "reads=(";
  for (const std::string& path : paths) {
    absl::StrAppend(&field, "\"",
                    absl::StrReplaceAll(path, {{"\\", "\\\\"}, {"\"", "\\\""}}),
                    "\" ");
  }
  field += ")";
  const absl::string_view values[] = {field};
  auto hint = Hint::Parse(values);
  EXPECT_TRUE(hint.ok()) << hint.status() << " " << field;
  return *hint;
}

// The reference.
class Reducer {
 public:
  explicit Reducer(const MaskSet& reads) : reads_(reads.paths()) {}

  void Reduce(fnv1::RunFunctionRequest* request) const {
    if (request->has_observed()) {
      fnv1::State* const observed = request->mutable_observed();
      if (observed->has_composite()) {
        Resource(observed->mutable_composite(), {"observed", "composite"});
      }
      for (auto& [name, resource] : *observed->mutable_resources()) {
        Resource(&resource, {"observed", "resources", name});
      }
    }
    for (auto& [name, all] : *request->mutable_extra_resources()) {
      Items(&all, {"extra_resources", name, "items"});
    }
    for (auto& [name, all] : *request->mutable_required_resources()) {
      Items(&all, {"required_resources", name, "items"});
    }
  }

 private:
  // A name, or none for an element of a list.
  struct Step {
    Step(const char* name) : name(name) {}             // NOLINT
    Step(std::string name) : name(std::move(name)) {}  // NOLINT
    Step() : is_element(true) {}
    std::string name;
    bool is_element = false;
  };
  using Path = std::vector<Step>;

  static bool Agree(const MaskPath& read, const Path& path) {
    for (size_t i = 0; i < std::min(read.size(), path.size()); ++i) {
      if (read[i].any) continue;
      if (path[i].is_element || read[i].name != path[i].name) return false;
    }
    return true;
  }
  bool Related(const Path& path) const {
    for (const MaskPath& read : reads_) {
      if (Agree(read, path)) return true;
    }
    return false;
  }
  bool Whole(const Path& path) const {
    for (const MaskPath& read : reads_) {
      if (read.size() <= path.size() && Agree(read, path)) return true;
    }
    return false;
  }
  static Path Below(Path path, Step step) {
    path.push_back(std::move(step));
    return path;
  }

  void Items(fnv1::Resources* all, const Path& path) const {
    for (fnv1::Resource& one : *all->mutable_items()) {
      Resource(&one, Below(path, {}));
    }
  }
  void Resource(fnv1::Resource* resource, const Path& path) const {
    if (!resource->has_resource()) return;
    Struct(resource->mutable_resource(), Below(path, "resource"), true);
  }
  void Struct(pb::Struct* object, const Path& path, bool is_object) const {
    if (Whole(path)) return;
    std::vector<std::string> gone;
    for (auto& [key, value] : *object->mutable_fields()) {
      const Path below = Below(path, key);
      const bool stays = is_object && (key == "spec" || key == "metadata");
      if (!Related(below) && !stays) {
        gone.push_back(key);
      } else {
        Value(&value, below);
      }
    }
    for (const std::string& key : gone) object->mutable_fields()->erase(key);
  }
  void Value(pb::Value* value, const Path& path) const {
    if (Whole(path)) return;
    if (value->has_struct_value()) {
      if (!Related(path)) return value->mutable_struct_value()->Clear();
      Struct(value->mutable_struct_value(), path, false);
    }
    if (!value->has_list_value() || !Related(path)) return;
    for (pb::Value& element : *value->mutable_list_value()->mutable_values()) {
      const Path below = Below(path, {});
      if (Related(below)) {
        Value(&element, below);
      } else {
        element.Clear();
      }
    }
  }

  const std::vector<MaskPath> reads_;
};

class Keys {
 public:
  explicit Keys(std::vector<std::string> paths)
      : hint_(HintOf(paths)),
        reducer_(*MaskSet::Parse(paths, MaskRules::kAnyPath)),
        digester_(TestSeed(), {"function", kRunFunctionV1, "1"}, MaskSet()),
        prefix_(digester_.HintPrefix(hint_)) {}

  Key ByHint(const std::string& bytes) {
    const Digest digest =
        digester_.ComputeByHint(bytes, hint_, prefix_, &scratch_);
    EXPECT_TRUE(digest.keyed);
    return digest.key;
  }
  std::string Tag(const std::string& bytes) {
    return std::string(
        digester_.ComputeByHint(bytes, hint_, prefix_, &scratch_).tag);
  }
  // The plain key of what counts.
  Key OfReduced(fnv1::RunFunctionRequest request) {
    reducer_.Reduce(&request);
    const std::string bytes = request.SerializeAsString();
    const absl::string_view slices[] = {bytes};
    const Digest digest = digester_.Compute(slices, &scratch_);
    EXPECT_TRUE(digest.keyed);
    return digest.key;
  }
  const Hint& hint() const { return hint_; }

 private:
  const Hint hint_;
  const Reducer reducer_;
  const Digester digester_;
  const std::string prefix_;
  DigestScratch scratch_;
};

// Hints that lead to what random requests have.
std::vector<std::vector<std::string>> RandomReads(Random* random) {
  std::vector<std::vector<std::string>> all = {{}, {"observed"}};
  for (const MaskSet& masks : MaskSets()) {
    if (!masks.empty()) all.push_back(masks.canonical());
  }
  std::vector<std::string> names = {"spec", "metadata", "status", "a", "b",
                                    "\"\"", "*",        "name",   "k"};
  const char* const roots[] = {
      "observed.composite.resource", "observed.resources.*.resource",
      "observed.resources.a.resource", "required_resources.*.items.*.resource",
      "extra_resources.a.items.*.resource"};
  for (int i = 0; i < 20; ++i) {
    std::vector<std::string> paths;
    for (size_t n = random->Below(4); n-- > 0;) {
      std::string path = roots[random->Below(5)];
      for (size_t depth = random->Below(4); depth-- > 0;) {
        absl::StrAppend(&path, ".", names[random->Below(names.size())]);
      }
      paths.push_back(path);
    }
    all.push_back(paths);
  }
  return all;
}

TEST(KeyByHint, IsThePlainKeyOfWhatCounts) {
  Random random(38);
  size_t equal = 0;
  size_t pairs = 0;
  size_t hidden = 0;
  Keys all({"observed", "required_resources", "extra_resources"});
  for (const auto& reads : RandomReads(&random)) {
    SCOPED_TRACE(absl::StrJoin(reads, " "));
    Keys keys(reads);
    std::map<std::string, Key> by_reduced;
    const int rounds = testing::ShortOrLong(testing::FewerSanitized(120), 5000);
    for (int i = 0; i < rounds; ++i) {
      fnv1::RunFunctionRequest a = RandomRequest(&random);
      fnv1::RunFunctionRequest b = a;
      for (size_t n = random.Below(4); n-- > 0;) Mutate(&b, &random);
      // A key that it has twice counts once.
      ASSERT_TRUE(b.ParseFromString(Encode(b, Style::kPlain, &random)));
      const Key key = keys.ByHint(Encode(a, Style::kPlain, &random));
      // All encodings of one message have one key.
      ASSERT_EQ(keys.ByHint(Encode(a, Style::kAnyEncoder, &random)).Hex(),
                key.Hex());
      ASSERT_EQ(keys.ByHint(Encode(a, Style::kWild, &random)).Hex(), key.Hex());
      const bool same = key == keys.ByHint(Encode(b, Style::kPlain, &random));
      ASSERT_EQ(same, keys.OfReduced(a) == keys.OfReduced(b))
          << a.DebugString() << "\n----\n"
          << b.DebugString();
      ++pairs;
      equal += same;
      hidden += same && all.ByHint(a.SerializeAsString()) !=
                            all.ByHint(b.SerializeAsString());
    }
  }
  // Both happen, and often because something was left out.
  EXPECT_GT(equal, pairs / 10);
  EXPECT_GT(pairs - equal, pairs / 10);
  EXPECT_GT(hidden, pairs / 100);
}

// Also as the first one of a thread.
TEST(KeyByHint, ARequestOfNoBytesIsKeyed) {
  Keys keys({"observed"});
  const Key key = keys.ByHint("");
  fnv1::RunFunctionRequest other;
  other.mutable_observed()->mutable_composite()->mutable_resource();
  EXPECT_NE(keys.ByHint(other.SerializeAsString()), key);
  EXPECT_EQ(keys.ByHint(""), key);
  const Digester digester(TestSeed(), {"function", kRunFunctionV1, "1"},
                          MaskSet());
  DigestScratch scratch;
  EXPECT_TRUE(digester.ComputeInput("", &scratch).keyed);
}

TEST(KeyByHint, HasTheTagOfItsRequest) {
  fnv1::RunFunctionRequest request;
  request.mutable_meta()->set_tag("mine");
  EXPECT_EQ(Keys({}).Tag(request.SerializeAsString()), "mine");
}

TEST(KeyByHint, DiffersFromHintToHint) {
  fnv1::RunFunctionRequest request;
  request.mutable_observed()->mutable_composite()->mutable_resource();
  const std::string bytes = request.SerializeAsString();
  const Digester digester(TestSeed(), {"function", kRunFunctionV1, "1"},
                          MaskSet());
  DigestScratch scratch;
  std::map<std::string, std::string> keys;
  for (const char* field :
       {"reads=()", "reads=(), pure", "reads=(\"observed\")",
        "reads=(\"observed.composite\")", "reads=(\"observed\"), pure"}) {
    const absl::string_view values[] = {field};
    const Hint hint = *Hint::Parse(values);
    keys[digester
             .ComputeByHint(bytes, hint, digester.HintPrefix(hint), &scratch)
             .key.Hex()] = field;
  }
  const absl::string_view slices[] = {bytes};
  keys[digester.Compute(slices, &scratch).key.Hex()] = "plain";
  EXPECT_EQ(keys.size(), 6u);
}

// Content that was not read may be anything.
TEST(KeyByHint, DoesNotReadWhatDoesNotCount) {
  const auto request = [](const std::string& status) {
    const auto field = [](uint32_t number, const std::string& bytes) {
      std::string out;
      wire::AppendBytesField(&out, number, bytes);
      return out;
    };
    const std::string entry = field(1, field(1, "status") + field(2, status));
    return field(2, field(1, field(1, entry)));
  };
  Keys keys({"observed.composite.resource.spec"});
  EXPECT_EQ(keys.ByHint(request("\xff\xff broken")),
            keys.ByHint(request("\x08\x01")));
}

// Objects of which nothing was read, in forms that the quick path takes and in
// others.
TEST(KeyByHint, CountsOfAnUnreadObjectItsSpecAndMetadataAlone) {
  const auto field = [](uint32_t number, const std::string& bytes) {
    std::string out;
    wire::AppendBytesField(&out, number, bytes);
    return out;
  };
  const auto entry = [&](const std::string& key, const std::string& value) {
    return field(1, field(1, key) + field(2, value));
  };
  const std::string some = field(5, entry("a", field(3, "b")));
  const std::string many =
      field(5, entry("a", field(3, std::string(200, 'b'))));
  const std::string kind = entry("kind", field(3, "Bucket"));
  const std::string spec = entry("spec", some);
  const std::string metadata = entry("metadata", many);
  const std::string objects[] = {"",
                                 kind,
                                 spec,
                                 metadata,
                                 spec + metadata,
                                 metadata + kind + entry("spec", field(5, "")),
                                 metadata + spec + entry("status", many),
                                 entry("spec", many) + spec + kind,
                                 entry("spec", field(3, "text")) + metadata,
                                 entry("spec", ""),
                                 entry("metadata", field(6, field(1, some))),
                                 kind + field(9, "unknown")};
  const std::string ready("\x18\x01", 2);
  const std::string details = field(2, field(1, "user") + field(2, "me"));
  const std::string rests[] = {"",
                               ready,
                               details,
                               details + ready,
                               ready + details,
                               field(1, kind),
                               ready + field(1, metadata),
                               field(1, spec) + details,
                               field(9, "unknown")};
  Keys keys({"observed.composite.resource.spec.size"});
  std::map<std::string, std::string> by_reduced;
  std::map<std::string, std::string> by_hint;
  for (const std::string& name : {std::string("a"), std::string(150, 'n')}) {
    for (const std::string& object : objects) {
      for (const std::string& rest : rests) {
        const std::string bytes = field(
            2, field(2, field(1, name) + field(2, field(1, object) + rest)));
        fnv1::RunFunctionRequest request;
        ASSERT_TRUE(request.ParseFromString(bytes));
        const std::string key = keys.ByHint(bytes).Hex();
        EXPECT_EQ(key, keys.ByHint(request.SerializeAsString()).Hex());
        const std::string reduced = keys.OfReduced(request).Hex();
        EXPECT_EQ(by_reduced.try_emplace(reduced, key).first->second, key);
        EXPECT_EQ(by_hint.try_emplace(key, reduced).first->second, reduced);
      }
    }
  }
  EXPECT_GT(by_hint.size(), 50u);
}

TEST(KeyByHint, MasksApplyInAddition) {
  const auto masks = MaskSet::Parse({"observed.composite.resource.spec.a"});
  const Digester digester(TestSeed(), {"function", kRunFunctionV1, "1"},
                          *masks);
  DigestScratch scratch;
  const Hint hint = HintOf({"observed.composite.resource.spec"});
  const std::string prefix = digester.HintPrefix(hint);
  const auto key = [&](const std::string& a, const std::string& b) {
    fnv1::RunFunctionRequest request;
    auto& spec = *(*request.mutable_observed()
                        ->mutable_composite()
                        ->mutable_resource()
                        ->mutable_fields())["spec"]
                      .mutable_struct_value()
                      ->mutable_fields();
    spec["a"].set_string_value(a);
    spec["b"].set_string_value(b);
    return digester
        .ComputeByHint(request.SerializeAsString(), hint, prefix, &scratch)
        .key;
  };
  EXPECT_EQ(key("1", "2"), key("3", "2"));
  EXPECT_NE(key("1", "2"), key("1", "3"));
}

TEST(InputDigest, IsOfTheInputAlone) {
  const Digester digester(TestSeed(), {"function", kRunFunctionV1, "1"},
                          MaskSet());
  DigestScratch scratch;
  Random random(1);
  size_t equal = 0;
  for (int i = 0; i < 500; ++i) {
    const fnv1::RunFunctionRequest a = RandomRequest(&random);
    fnv1::RunFunctionRequest b = RandomRequest(&random);
    if (random.OneIn(2)) *b.mutable_input() = a.input();
    fnv1::RunFunctionRequest only_a;
    fnv1::RunFunctionRequest only_b;
    if (a.has_input()) *only_a.mutable_input() = a.input();
    if (b.has_input()) *only_b.mutable_input() = b.input();
    const auto input = [&](const fnv1::RunFunctionRequest& request) {
      const Digest digest = digester.ComputeInput(
          Encode(request, Style::kWild, &random), &scratch);
      EXPECT_TRUE(digest.keyed);
      return digest.key;
    };
    const auto plain = [&](const fnv1::RunFunctionRequest& request) {
      const std::string bytes = request.SerializeAsString();
      const absl::string_view slices[] = {bytes};
      return digester.Compute(slices, &scratch).key;
    };
    ASSERT_EQ(input(a) == input(b), plain(only_a) == plain(only_b));
    equal += input(a) == input(b);
  }
  EXPECT_GT(equal, 100u);
}

}  // namespace
}  // namespace fncache::cache::key
