// SPDX-License-Identifier: Apache-2.0
// Resources, of which most requests consist. The walk reads one at once if it
// has the usual encoding, and field by field otherwise. Each request is
// compared with protobuf, the slow path and the page (KeyChecker).
#include "cache/key/canonical_walk.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache/wire/wire.h"
#include "gtest/gtest.h"
#include "tests/cache/key/key_checker.h"
#include "tests/cache/key/random_request.h"
#include "tests/common/long_form.h"

namespace fncache::cache::key {
namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace)

std::string Field(uint32_t number, absl::string_view bytes) {
  std::string out;
  wire::AppendBytesField(&out, number, bytes);
  return out;
}

std::string Entry(absl::string_view key, absl::string_view value) {
  return Field(1, Field(1, key) + Field(2, value));
}
std::string Text(absl::string_view text) { return Field(3, text); }

// Values that a Resource may contain, usual and not.
std::vector<std::string> Resources() {
  const std::string object = Entry("kind", Text("Bucket")) +
                             Entry("spec", Field(5, Entry("a", Text("b"))));
  // Written with an empty key, its canonical form takes more bytes.
  const std::string grows = Field(1, Field(2, Text("t")));
  const std::string details = Field(2, Field(1, "k") + Field(2, "v"));
  std::vector<std::string> all = {"", details, details + "\x18\x01"s};
  for (const std::string& one :
       {object, ""s, grows, object + grows, Entry("a", Text("b")) + object,
        Entry("a", Text(std::string(200, 'a'))),
        Entry("a", Text(std::string(20000, 'a'))),
        Entry("a", Text("b")) + Field(9, "unknown"), object + object}) {
    const std::string resource = Field(1, one);
    for (const std::string& rest :
         {""s, "\x18\x00"s, "\x18\x01"s, "\x18\x02"s, "\x18\x7f"s, "\x18\x80"s,
          "\x18\x80\x01"s, "\x18\x81\x00"s,
          "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s, "\x1a\x00"s,
          "\x20\x01"s, "\x18"s, "\x18\x01\x18\x02"s, details,
          details + "\x18\x01"s, "\x18\x01"s + details, resource, Field(9, "u"),
          "\x18\x01"s + Field(9, "u")}) {
      all.push_back(resource + rest);
    }
    all.push_back("\x18\x01"s + resource);
    all.push_back(details + resource);
  }
  // It ends before its object does.
  all.push_back("\x0a\x05\x0a"s);
  all.push_back("\x0a"s);
  all.push_back("\x0a\x80\x00"s);
  return all;
}

// `resource` among others in `observed` and `desired`.
std::string Request(absl::string_view resource) {
  const std::string other =
      Field(2, Field(1, "other") +
                   Field(2, Field(1, Entry("a", Text("b"))) + "\x18\x01"s));
  const std::string own = Field(2, Field(1, "own") + Field(2, resource));
  return Field(2, other + own) + Field(3, own + other) +
         Field(5, Entry("end", Text(std::string(300, 'e'))));
}

TEST(CanonicalWalk, TakesEveryResourceAsProtobufDoes) {
  const std::vector<std::string> resources = Resources();
  for (const MaskSet& masks : MaskSets()) {
    KeyChecker checker(masks);
    for (const std::string& resource : resources) {
      EXPECT_EQ(checker.CheckOne(Request(resource)), "")
          << ::testing::PrintToString(resource.substr(0, 100));
    }
  }
}

// Resources that the masks below lead into, usual and not. Some differ in what
// is masked only.
std::vector<std::string> MaskedResources() {
  const auto structure = [](absl::string_view fields) {
    return Field(5, fields);
  };
  const auto list = [](absl::string_view element) {
    return Field(6, Field(1, element));
  };
  std::vector<std::string> all;
  // Around the sizes where a length takes one byte more, and where an entry is
  // copied as one block, as two, or otherwise.
  for (const size_t size : {0, 1, 20, 50, 64, 90, 110, 130, 300}) {
    const std::string text(size, 't');
    for (const std::string& masked :
         {""s, Entry("resourceVersion", Text("1")),
          Entry("resourceVersion", Text(text)),
          Entry("resourceVersion", "\x10\x01"s),
          Entry("resourceVersion", Text("\xff")),
          Entry("resourceVersion", Text("1")) +
              Entry("resourceVersion", Text("2")),
          Entry("generation", structure(Entry("a", list(Text(text))))),
          Entry("managedFields", list(structure(Entry("f:a", structure(""))))),
          Entry("managedFields", list(structure(Entry("\xff", Text("")))))}) {
      const std::string metadata =
          Entry("name", Text(text)) + masked +
          Entry("labels",
                structure(Entry("a", Text("b")) + Entry("c", structure(""))));
      for (const std::string& status :
           {Text("no Struct"), structure(Entry("conditions", Text("no list"))),
            structure(Entry("conditions", structure(Entry("a", Text("b"))))),
            structure(Entry("conditions", list(Text("no Struct")))),
            structure(
                Entry("conditions",
                      list(structure(Entry("type", Text("Ready")) +
                                     Entry("lastTransitionTime", Text(text)) +
                                     Entry("message", Text(text)))))),
            structure(Entry("conditions", list(structure(""))) +
                      Field(9, "unknown"))}) {
        all.push_back(Field(1, Entry("status", status) +
                                   Entry("metadata", structure(metadata)) +
                                   Entry("kind", Text("Bucket"))));
      }
    }
  }
  return all;
}

TEST(CanonicalWalk, WhatIsMaskedIsReadAndLeftOut) {
  const std::vector<std::string> resources = MaskedResources();
  // Only what is observed is masked.
  const auto observing = [](absl::string_view resource) {
    return Field(2, Field(2, Field(1, "own") + Field(2, resource))) +
           Field(5, Entry("end", Text(std::string(300, 'e'))));
  };
  KeyChecker checker(*MaskSet::Parse({"@versions", "@times"}));
  size_t fast = 0;
  size_t same = 0;
  for (size_t i = 0; i < resources.size(); ++i) {
    const std::string request = observing(resources[i]);
    bool is_fast = false;
    ASSERT_EQ(checker.CheckOne(request, &is_fast), "")
        << ::testing::PrintToString(resources[i]);
    fast += is_fast ? 1 : 0;
    // With that of other masked fields, and with that of another status.
    for (const size_t by : {1, 6, 12, 36, 54}) {
      bool equal = false;
      ASSERT_EQ(checker.CheckPair(
                    request, observing(resources[(i + by) % resources.size()]),
                    &equal),
                "")
          << ::testing::PrintToString(resources[i]);
      same += equal ? 1 : 0;
    }
  }
  EXPECT_GT(fast, resources.size() / 2);
  EXPECT_GT(same, resources.size() / 2);
}

TEST(CanonicalWalk, MasksLeadIntoStructsOfAnySizeAndOrder) {
  const auto structure = [](absl::string_view fields) {
    return Field(5, fields);
  };
  KeyChecker checker(
      *MaskSet::Parse({"context.a.b.*.m", "context.a.m"}, MaskRules::kAnyPath));
  std::mt19937_64 random(1);
  for (size_t count = 1; count < 140; count += count < 20 ? 1 : 7) {
    SCOPED_TRACE(count);
    const auto request = [&](absl::string_view masked) {
      std::vector<std::string> inner = {Entry("m", masked)};
      for (size_t i = 1; i < count; ++i) {
        inner.push_back(Entry(absl::StrCat("key ", i),
                              i % 3 == 0 ? structure(Entry("k", Text("v")))
                                         : Text(absl::StrCat(i))));
      }
      std::shuffle(inner.begin(), inner.end(), random);
      const std::string element = Field(1, structure(absl::StrJoin(inner, "")));
      std::vector<std::string> outer = inner;
      outer.push_back(Entry("b", Field(6, element + element)));
      std::shuffle(outer.begin(), outer.end(), random);
      return Field(5, Entry("a", structure(absl::StrJoin(outer, "")))) +
             Field(15, std::string(300, 'r'));
    };
    const std::string text = request(Text("text"));
    bool fast = false;
    EXPECT_EQ(checker.CheckOne(text, &fast), "");
    EXPECT_TRUE(fast);
    for (const std::string& other :
         {Text("another, longer text"), Text("\xc3\xa4"), Text("\xff"), ""s,
          structure(Entry("k", Text("v"))), structure(Entry("k", Text("\xff"))),
          structure(Field(1, Field(9, "unknown"))), Field(6, Field(1, "")),
          Field(6, Field(1, "\x08"))}) {
      const std::string changed = request(other);
      EXPECT_EQ(checker.CheckOne(changed), "");
      EXPECT_EQ(checker.CheckPair(text, changed), "");
    }
  }
}

TEST(CanonicalWalk, ResourcesHaveOneFormIfAndOnlyIfTheyAreEqual) {
  const std::vector<std::string> resources = Resources();
  KeyChecker checker{MaskSet()};
  size_t same = 0;
  // With sanitizers each with itself and with one in seven others.
  constexpr size_t kStep = fncache::testing::kSanitized ? 7 : 1;
  for (size_t i = 0; i < resources.size(); ++i) {
    for (size_t j = i % kStep; j < resources.size(); j += kStep) {
      const std::string& a = resources[i];
      const std::string& b = resources[j];
      bool equal = false;
      ASSERT_EQ(checker.CheckPair(Request(a), Request(b), &equal), "")
          << ::testing::PrintToString(a.substr(0, 100)) << " "
          << ::testing::PrintToString(b.substr(0, 100));
      same += equal ? 1 : 0;
    }
  }
  EXPECT_GT(same, resources.size());
}

TEST(CanonicalWalk, UsualResourcesTakeTheFastPath) {
  KeyChecker checker{MaskSet()};
  for (const std::string& rest : {""s, "\x18\x00"s, "\x18\x01"s}) {
    bool fast = false;
    EXPECT_EQ(checker.CheckOne(Request(Field(1, Entry("a", Text("b"))) + rest),
                               &fast),
              "");
    EXPECT_TRUE(fast);
  }
}

TEST(CanonicalWalk, AResourceMayBeNestedAsDeepAsAnythingElse) {
  KeyChecker checker{MaskSet()};
  size_t keyed = 0;
  constexpr int kStep = fncache::testing::kSanitized ? 3 : 1;
  for (int levels = 331; levels < 336; levels += kStep) {
    for (const bool list : {false, true}) {
      // A Value around the innermost, so that every depth is met.
      for (const std::string& innermost :
           {""s, Text("t"), Field(6, Field(1, "")), Field(5, "")}) {
        std::string value = innermost;
        for (int level = 0; level < levels; ++level) {
          value = list && level == 0 ? Field(6, Field(1, value))
                                     : Field(5, Entry("k", value));
        }
        const std::string request =
            Request(Field(1, Entry("k", value)) + "\x18\x01"s);
        ASSERT_EQ(checker.CheckOne(request), "") << levels;
        bool equal = false;
        ASSERT_EQ(checker.CheckPair(request, request, &equal), "");
        keyed += equal ? 1 : 0;
      }
    }
  }
  EXPECT_GT(keyed, 4U);
  EXPECT_LT(keyed, 36U);
}

}  // namespace
}  // namespace fncache::cache::key
