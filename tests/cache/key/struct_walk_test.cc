// SPDX-License-Identifier: Apache-2.0
// The edges of reading Structs at speed: sizes at which lengths grow, keys that
// share an order, text that is not ASCII, and the request's end. Each request
// is compared with protobuf, the slow path and the page (KeyChecker).
#include "cache/key/struct_walk.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "cache/key/plain_wire.h"
#include "cache/key/walk_machine.h"
#include "cache/wire/wire.h"
#include "gtest/gtest.h"
#include "tests/cache/key/key_checker.h"

namespace fncache::cache::key {
namespace {

std::string Field(uint32_t number, absl::string_view bytes) {
  std::string out;
  wire::AppendBytesField(&out, number, bytes);
  return out;
}

// A Struct's entry, its value being a Value's bytes.
std::string Entry(absl::string_view key, absl::string_view value) {
  return Field(1, Field(1, key) + Field(2, value));
}
std::string Text(absl::string_view text) { return Field(3, text); }
std::string Struct(absl::string_view fields) { return Field(5, fields); }
std::string List(absl::string_view values) { return Field(6, values); }

// A request with this Struct as its context; `rest` keeps its end away.
std::string Request(absl::string_view fields, bool rest) {
  std::string out = Field(5, fields);
  if (rest) absl::StrAppend(&out, Field(15, std::string(300, 'r')));
  return out;
}

class StructWalkTest : public testing::Test {
 protected:
  // Requires that it can be keyed, by the fast path.
  void Check(const std::string& fields) {
    for (const bool rest : {false, true}) {
      bool fast = false;
      EXPECT_EQ(checker_.CheckOne(Request(fields, rest), &fast), "");
      EXPECT_TRUE(fast);
    }
  }
  void CheckRefused(const std::string& fields) {
    for (const bool rest : {false, true}) {
      bool fast = true;
      EXPECT_EQ(checker_.CheckOne(Request(fields, rest), &fast), "");
      EXPECT_FALSE(fast);
    }
  }
  void CheckSame(const std::string& a, const std::string& b) {
    bool equal = false;
    EXPECT_EQ(checker_.CheckPair(Request(a, false), Request(b, false), &equal),
              "");
    EXPECT_TRUE(equal);
  }

  KeyChecker checker_{MaskSet()};
  std::mt19937_64 random_{1};
};

TEST_F(StructWalkTest, ReadsKeysAndTextsOfEverySize) {
  for (const size_t key_size :
       {0,   1,   7,   8,   9,   15,  16,  60,  118, 119,
        120, 121, 122, 123, 124, 125, 126, 127, 128, 300}) {
    const std::string key(key_size, 'k');
    for (const size_t size :
         {0,   1,   20,  50,  55,  56,  57,  110, 118, 119,   120,
          121, 122, 123, 124, 125, 126, 127, 128, 129, 16383, 16384}) {
      SCOPED_TRACE(absl::StrCat(key_size, " ", size));
      const std::string text(size, 't');
      Check(Entry(key, Text(text)));
      Check(Entry("a", Struct(Entry(key, Text(text)))));
      Check(Entry(key, Struct(Entry("a", Text(text)))));
      Check(Entry(key, List(Field(1, Text(text)))));
      Check(Entry("a", List(Field(1, Struct(Entry(key, Text(text)))))));
    }
  }
}

TEST_F(StructWalkTest, ReadsEveryKindOfValueBesideOthers) {
  const std::vector<std::string> values = {
      "",
      std::string("\x08\0", 2),
      std::string("\x11\0\0\0\0\0\0\xf0\x3f", 9),
      std::string("\x11\xff\xff\xff\xff\xff\xff\xff\xff", 9),
      Text("text"),
      std::string("\x20\0", 2),
      std::string("\x20\x01", 2),
      Struct(""),
      List(""),
      Struct(Entry("in", Text("it"))),
      List(Field(1, Text("it")) + Field(1, "") + Field(1, Struct(""))),
      // With an unknown field, behind what is known or instead of it.
      Text("text") + Field(9, "u"),
      Struct(Entry("in", Text("it"))) + Field(9, "u"),
      List(Field(1, Struct(Entry("in", Text("it"))) + Field(9, "u"))),
      Field(9, "u"),
  };
  std::string all;
  std::string elements;
  for (size_t i = 0; i < values.size(); ++i) {
    all += Entry(absl::StrCat("key ", i), values[i]);
    elements += Field(1, values[i]);
    SCOPED_TRACE(i);
    Check(Entry("key", values[i]));
    Check(Entry("key", List(elements)));
    Check(all + Field(9, "unknown"));
    // Unknown fields with tags that a Value's contents have.
    for (const uint32_t number : {5, 6}) {
      Check(Entry("key", "") + Field(number, Field(1, "unknown")));
    }
    Check(Entry("list", List(elements + Field(9, "unknown"))) + all);
  }
}

TEST_F(StructWalkTest, RefusesWhatOnlyLooksLikeTheUsualShape) {
  for (const std::string& value :
       {std::string("\x20\x02", 2), std::string("\x1a\x05t", 3),
        std::string("\x1a", 1), std::string("\x1a\x80\0", 3),
        std::string("\x11\0\0", 3), std::string("\x2a\x01", 2),
        std::string("\x2a\x7f", 2), std::string("\x32\x03\x0a\x05\x1a", 5)}) {
    CheckRefused(Entry("key", value));
    CheckRefused(Entry("key", List(Field(1, value))));
    CheckRefused(Entry("a", Text("t")) + Entry("key", value));
  }
  // Lengths that take more bytes than they need.
  CheckRefused(std::string("\x0a\x88\0\x0a\x01k\x12\x03\x1a\x01t", 11));
  CheckRefused(std::string("\x0a\x0a\x0a\x81\0k\x12\x03\x1a\x01t", 11));
}

TEST_F(StructWalkTest, RefusesAWrongEntryAtEveryPlace) {
  const std::string wrong[] = {
      Entry("wrong", std::string("\x20\x02", 2)),
      Entry("wrong", std::string("\x2a\x01", 2)),
      Entry("wrong\xff", Text("t")),
      Field(1, Field(1, "wrong") + Field(2, Text("t")) + Field(3, "u")),
      std::string("\x0a\x20\x0a\x01k\x12\x03\x1a\x01t", 10),
      Entry("wrong", Text("t") + Text("t"))};
  for (size_t count = 1; count < 20; ++count) {
    for (size_t at = 0; at < count; ++at) {
      for (size_t i = 0; i < std::size(wrong); ++i) {
        SCOPED_TRACE(absl::StrCat(count, " ", at, " ", i));
        std::string fields;
        for (size_t entry = 0; entry < count; ++entry) {
          fields += entry == at ? wrong[i]
                                : Entry(absl::StrCat("k", entry * entry),
                                        Text(absl::StrCat(entry)));
        }
        CheckRefused(fields);
        CheckRefused(Entry("in", Struct(fields)) + Entry("b", Text("t")));
      }
    }
  }
}

// Every byte before what a value holds, each made another one: what the walk
// takes is what protobuf takes, and the same message.
TEST_F(StructWalkTest, JudgesEveryHeadAsProtobufDoes) {
  const std::string values[] = {
      std::string("\x08\0", 2),
      std::string("\x20\x01", 2),
      std::string("\x11\0\0\0\0\0\0\xf0\x3f", 9),
      Text(""),
      Text("text"),
      Text(std::string(119, 't')),
      Struct(""),
      Struct(Entry("in", Text("it"))),
      List(Field(1, Text("it"))),
      // In entries with a length of two bytes, the value's being of one.
      Struct(Entry("in", Text(std::string(100, 't')))),
      List(Field(1, Text(std::string(105, 't')))),
      Struct(Entry("in", Text(std::string(109, 't')))),
      Struct(Entry("in", Text(std::string(150, 't')))),
      List(Field(1, Text(std::string(150, 't')))),
      Struct(Entry("in", Text(std::string(16377, 't')))),
  };
  size_t odd = 0;
  for (const std::string& value : values) {
    for (const size_t key_size : {0, 3, 12, 52, 53}) {
      const std::string entry = Entry(std::string(key_size, 'k'), value);
      Check(entry);
      Check(Entry("a", Text("b")) + entry + Entry("c", Struct(entry)));
      const size_t heads = entry.size() - value.size() + 4;
      for (size_t at = 0; at < std::min(heads, entry.size()); ++at) {
        // All bytes of the key are alike, so most of them are skipped.
        if (at > 6 && at + 8 < heads) continue;
        for (const int by :
             {1,    2,    3,    4,    5,    6,    7,    8,    0x10, 0x18,
              0x20, 0x30, 0x40, 0x7f, 0x80, 0x81, 0xfc, 0xfd, 0xfe, 0xff}) {
          std::string changed = entry;
          changed[at] = static_cast<char>(changed[at] + by);
          for (const bool first : {false, true}) {
            const std::string fields =
                first ? changed + Entry("z", Struct(changed))
                      : Entry("a", Text("b")) + changed;
            bool fast = false;
            ASSERT_EQ(checker_.CheckOne(Request(fields, true), &fast), "")
                << key_size << " " << at << " " << by;
            odd += fast ? 0 : 1;
          }
        }
      }
    }
  }
  EXPECT_GT(odd, 1000U);
}

// An entry long enough for a length of two bytes, whose value is not; and the
// same with lengths that take more bytes than they need.
TEST_F(StructWalkTest, ReadsEntriesThatAreJustLong) {
  for (size_t size = 90; size < 150; ++size) {
    for (const size_t key_size : {1, 9, 30, 50}) {
      SCOPED_TRACE(absl::StrCat(size, " ", key_size));
      const std::string key(key_size, 'k');
      const std::string inner = Entry("in", Text(std::string(size, 't')));
      Check(Entry(key, Struct(inner)) + Entry("a", Text("b")));
      Check(Entry(key, List(Field(1, Struct(inner)))) + Entry("a", Text("b")));
      Check(Entry("b", Struct(Entry(key, Struct(inner)))));
    }
  }
  // Each of them, and any two or all: the entry's, the value's, and that of
  // what it holds.
  const auto length = [](size_t size, bool over_long) {
    std::string bytes;
    wire::AppendVarint(&bytes, size);
    if (!over_long) return bytes;
    bytes.back() = static_cast<char>(bytes.back() | 0x80);
    return bytes + '\0';
  };
  for (const char tag : {kStructValue, kListValue}) {
    for (const size_t size : {1, 60, 100, 110, 115, 120, 125, 130, 200}) {
      for (const size_t key_size : {1, 50}) {
        const std::string text = Text(std::string(size, 't'));
        const std::string held =
            tag == kStructValue ? Entry("in", text) : Field(1, text);
        for (int which = 1; which < 8; ++which) {
          std::string bytes = length(held.size(), (which & 4) != 0) + held;
          bytes = std::string(1, tag) + bytes;
          bytes = length(bytes.size(), (which & 2) != 0) + bytes;
          bytes = Field(1, std::string(key_size, 'k')) + '\x12' + bytes;
          bytes = '\x0a' + length(bytes.size(), (which & 1) != 0) + bytes;
          SCOPED_TRACE(absl::StrCat(size, " ", key_size, " ", which));
          CheckRefused(bytes);
          CheckRefused(Entry("a", Text("b")) + bytes);
        }
      }
    }
  }
}

TEST_F(StructWalkTest, ChecksTextAtEveryPlace) {
  for (size_t size = 1; size < 140; ++size) {
    for (size_t at = 0; at < size; at += 1 + at / 3) {
      SCOPED_TRACE(absl::StrCat(size, " ", at));
      std::string text(size, 't');
      text[at] = '\xff';
      CheckRefused(Entry("a", Text("b")) + Entry("key", Text(text)));
      CheckRefused(Entry(text, Text("t")));
      CheckRefused(Entry(text, std::string("\x11\0\0\0\0\0\0\xf0\x3f", 9)));
      CheckRefused(Entry(text, Struct(Entry("in", Text("it")))));
      CheckRefused(Entry("list", List(Field(1, Text(text)))));
      if (at + 1 == size) continue;
      text[at] = '\xc3';
      text[at + 1] = '\xa4';
      Check(Entry("a", Text("b")) + Entry("key", Text(text)));
      Check(Entry(text, Struct(Entry(text, Text(text)))));
    }
  }
}

// Keys that share their first and their last 8 bytes have one order.
std::string Alike(size_t number) {
  return absl::StrCat("the same", 1000 + number, "ends too");
}

TEST_F(StructWalkTest, OrdersMapsOfAnySizeAndKeysOfOneOrder) {
  for (const size_t alike : {0, 1, 2, 3, 5}) {
    for (const size_t count : {0,  1,  2,  3,   4,   5,   7,   8,   9,   12,
                               31, 32, 33, 127, 128, 129, 255, 256, 257, 600}) {
      SCOPED_TRACE(absl::StrCat(count, " ", alike));
      std::vector<std::string> entries;
      for (size_t i = 0; i < count; ++i) {
        entries.push_back(Entry(
            alike > 0 && i % alike == 0 ? Alike(i) : absl::StrCat("k", i * i),
            Text(absl::StrCat(i))));
      }
      const std::string first = absl::StrJoin(entries, "");
      std::shuffle(entries.begin(), entries.end(), random_);
      const std::string second = absl::StrJoin(entries, "");
      Check(first);
      Check(second);
      CheckSame(first, second);
      CheckSame(first + Field(9, "u"), second + Field(9, "u"));
      if (count == 0) continue;
      // One more of them, which is for the slow path.
      CheckRefused(second + entries[random_() % count]);
    }
  }
}

int32_t OrderOf(const std::string& key) {
  const std::string bytes = Entry(key, "");
  const char* p = bytes.data();
  MapEntry entry;
  EXPECT_TRUE(ReadEntry(&p, p + bytes.size(), p + bytes.size(), &entry));
  return entry.order;
}

TEST_F(StructWalkTest, KeysOfOneOrderAreThere) {
  EXPECT_EQ(OrderOf(Alike(1)), OrderOf(Alike(2)));
  EXPECT_NE(OrderOf("one"), OrderOf("two"));
}

// Orders of which the upper bits are the same, which is all that the walk
// compares at first.
TEST_F(StructWalkTest, OrdersKeysOfWhichOnlyTheLowerBitsOfTheirOrderDiffer) {
  constexpr int kLowerBits = 15;
  std::map<int32_t, std::vector<std::string>> near;
  std::vector<std::string> keys;
  for (int i = 0; keys.size() < 9; ++i) {
    const std::string key = absl::StrCat("key", i);
    std::vector<std::string>& group = near[OrderOf(key) >> kLowerBits];
    group.push_back(key);
    if (group.size() == 9) keys = group;
  }
  for (size_t count = 2; count <= keys.size(); ++count) {
    for (int run = 0; run < 20; ++run) {
      std::vector<std::string> entries;
      for (size_t i = 0; i < count; ++i) {
        // No two of one size: all but their orders are different.
        entries.push_back(
            Entry(keys[i], Struct(Entry("in", Text(std::string(2 * i, 't'))))));
      }
      const std::string first = absl::StrJoin(entries, "");
      std::shuffle(entries.begin(), entries.end(), random_);
      const std::string second = absl::StrJoin(entries, "");
      Check(second);
      CheckSame(first, second);
      const std::string other = Entry("other", Text("t"));
      CheckSame(other + first, second + other);
    }
  }
}

// An entry that begins 64 KiB behind its Struct's start, or about there.
TEST_F(StructWalkTest, ReadsStructsOfAbout64KiB) {
  // Nothing that is read in the usual way is larger than 16 KiB.
  std::string most;
  for (int i = 0; i < 4; ++i) {
    most += Entry(absl::StrCat("large ", i),
                  Struct(Entry("in", Text(std::string(16200, 't')))));
  }
  const auto fill = [](size_t text) {
    return Entry("fill", Struct(Entry("in", Text(std::string(text, 't')))));
  };
  const size_t heads = fill(200).size() - 200;
  for (size_t size = 65500; size < 65580; ++size) {
    const std::string fields = most + fill(size - most.size() - heads);
    ASSERT_EQ(fields.size(), size);
    SCOPED_TRACE(size);
    Check(fields);
    Check(fields + Entry("a", Text("b")));
    Check(fields + Entry("a", Struct(Entry("b", Text("c")))) +
          Entry("b", Text("d")));
    CheckSame(fields + Entry("a", Text("b")), Entry("a", Text("b")) + fields);
  }
}

TEST_F(StructWalkTest, TakesAnyNumberOfStructsAndLists) {
  const std::string inner =
      Entry("b", Text("t")) + Entry("a", Struct(Entry("in", Text("it"))));
  for (const size_t count :
       {100, 126, 500, 894, 1000, 1023, 1024, 1025, 3000}) {
    SCOPED_TRACE(count);
    std::string list;
    std::string lists;
    std::string structs;
    std::string nested;
    for (size_t i = 0; i < count; ++i) {
      const std::string key = absl::StrCat("k", i * i);
      list += Field(1, Struct(inner));
      lists += Entry(key, List(Field(1, Struct(inner)) + Field(1, Text("t"))));
      structs += Entry(key, Struct(inner));
      if (i % 50 == 49) {
        nested += Entry(key, Struct(structs));
        structs.clear();
      }
    }
    Check(Entry("list", List(list)));
    Check(lists);
    Check(structs + Entry("rest", List(list)));
    Check(nested + Entry("list", List(list)));
  }
}

// Some Struct's fields, nested up to `depth`.
std::string AnyFields(int depth, std::mt19937_64* random) {
  const auto below = [random](size_t most) { return (*random)() % most; };
  std::string fields;
  const size_t count = below(8) == 0 ? below(40) : below(7);
  for (size_t i = 0; i < count; ++i) {
    std::string key = absl::StrCat("k", i, "-");
    key.append(below(4) == 0 ? below(130) : below(20), 'k');
    if (below(50) == 0) key = Alike(i);
    std::string value;
    switch (below(depth > 0 ? 8 : 5)) {
      case 0:
        value = std::string("\x08\x00", 2);
        break;
      case 1:
        value = std::string("\x20\x01", 2);
        break;
      case 2:
        value = std::string("\x11\0\0\0\0\0\0\xf0\xbf", 9);
        break;
      case 3:
        value = Text(std::string(below(200), 't'));
        break;
      case 4:
        value = Text("\xc3\xa4");
        break;
      case 5: {
        std::string values;
        for (size_t n = below(4); n > 0; --n) {
          values += Field(
              1, below(3) == 0 ? Text("e") : Struct(AnyFields(0, random)));
        }
        value = List(values);
        break;
      }
      default:
        value = Struct(AnyFields(depth - 1, random));
        break;
    }
    if (below(100) == 0) value += Field(9, "unknown");
    if (below(200) == 0) value += "\x08";
    // As some encoders write them, or might.
    switch (below(40)) {
      case 0:
        fields += Field(1, Field(2, value) + Field(1, key));
        break;
      case 1:
        fields += Field(1, Field(1, key));
        break;
      case 2:
        if (i == 0) fields += Field(1, Field(2, value));
        break;
      default:
        fields += Entry(key, value);
    }
  }
  return below(30) == 0 ? fields + Field(7, "unknown") : fields;
}

// Entries without key or value, or with the value first, at every level of a
// Struct, so that lengths around them need another byte, and those around
// these.
TEST_F(StructWalkTest, TakesEntriesInEveryWayThatEncodersWriteThem) {
  const std::string odd[] = {
      Field(1, ""),
      Field(1, Field(2, Text("t"))),
      Field(1, Field(1, "novalue")),
      Field(1, Field(2, Text("t")) + Field(1, "swapped")),
      Field(1, Field(2, Struct(Entry("in", Text("it")))) + Field(1, "swapped")),
      Field(1, Field(2, List(Field(1, Struct(Field(1, "")))))),
  };
  for (const std::string& fields : odd) {
    for (size_t size = 0; size < 140; ++size) {
      SCOPED_TRACE(absl::StrCat(&fields - odd, " ", size));
      const std::string filler = Entry("filler", Text(std::string(size, 'f')));
      const std::string inner = filler + fields + Entry("b", Text("t"));
      Check(inner);
      Check(Entry("a", Struct(inner)) + filler);
      Check(Entry("a", List(Field(1, Struct(inner)) + Field(1, Text("t")))));
      Check(Entry("a", Struct(filler + Entry("b", Struct(inner)))) +
            Entry("c", List(Field(1, List(Field(1, Struct(inner)))))));
    }
  }
  // Where a length of two bytes becomes one of three.
  for (size_t size = 16384 - 100; size < 16384; ++size) {
    const std::string inner =
        Entry("filler", Text(std::string(size, 'f'))) + odd[0] + odd[2];
    Check(Entry("a", Struct(inner)) +
          Entry("b", List(Field(1, Struct(inner)))));
  }
  // An entry's contents are checked all the same, and come once.
  const std::string not_text = Field(3, "\xff");
  CheckRefused(Field(1, Field(2, not_text)));
  CheckRefused(Field(1, Field(2, not_text) + Field(1, "k")));
  CheckRefused(Field(1, Field(1, "\xff")));
  CheckRefused(Field(1, Field(1, "k") + Field(1, "k")));
  CheckRefused(Field(1, Field(2, "") + Field(2, "")));
  CheckRefused(Field(1, "") + Entry("", Text("t")));
}

// Many of them: every length around one is corrected by all that are in it.
TEST_F(StructWalkTest, TakesAnyNumberOfThem) {
  std::string list;
  std::string structs;
  for (size_t i = 0; i < 2000; ++i) {
    const std::string inner = Field(1, Field(1, absl::StrCat("novalue", i)));
    list += Field(1, Struct(inner + Field(1, Field(2, Text("t")))));
    structs += Entry(absl::StrCat("k", i), Struct(inner));
  }
  Check(Entry("list", List(list)) + structs);
  std::string nested;
  for (int i = 0; i < 300; ++i) {
    nested = Field(1, Field(2, Struct(nested)) + Field(1, "k")) +
             Field(1, Field(1, "novalue"));
  }
  Check(nested);
}

// One for each set of instructions that this machine has.
std::vector<StructWalk> EveryWalk() {
  std::vector<StructWalk> walks;
  for (const Machine machine : {Machine::kAny, Machine::kAvx2}) {
    if (machine <= ThisMachine()) walks.emplace_back(machine);
  }
  return walks;
}

// Returns the output of the walks for the first `size` bytes of `bytes`, all of
// which may be read. The output may be `growth` bytes longer; nullopt if they
// refuse it. Bytes and output are on the heap and have exactly these sizes, so
// that a sanitizer detects accesses beyond them.
absl::optional<std::string> Walked(std::vector<StructWalk>* walks,
                                   StructWalk::Kind kind,
                                   absl::string_view bytes, size_t size,
                                   size_t growth) {
  const auto in = std::make_unique<char[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), in.get());
  absl::optional<std::string> first;
  for (size_t i = 0; i < walks->size(); ++i) {
    const auto out = std::make_unique<char[]>(size + growth + 64);
    size_t left = growth;
    const char* const end = (*walks)[i].Run(
        kind, {in.get(), size}, 100, in.get() + bytes.size(), &left, out.get());
    absl::optional<std::string> written;
    if (end != nullptr) {
      written = std::string(out.get(), end - out.get());
      EXPECT_EQ(written->size() + left, size + growth);
    }
    if (i == 0) first = written;
    EXPECT_EQ(written, first) << "machine " << i;
  }
  return first;
}

// Structs of all forms and with tags and lengths of all sizes, each of which is
// the last thing there once the bytes are cut off.
std::vector<std::string> StructsToCut(std::mt19937_64* random) {
  std::vector<std::string> all;
  std::string usual;
  for (const size_t size : {0, 1, 8, 40, 119, 120, 130, 500}) {
    const std::string key(size % 60, 'k');
    const std::string text = Text(std::string(size, 't'));
    const std::string in = Struct(Entry("in", text));
    usual += Entry(absl::StrCat("text", size), text);
    usual += Entry(absl::StrCat("struct", key, size), in);
    usual += Entry(absl::StrCat("list", key, size),
                   List(Field(1, in) + Field(1, text)));
    all.push_back(Entry(key, text));
    all.push_back(Entry(key, in) + Entry(std::string(127, 'k'), text));
    all.push_back(usual);
  }
  all.push_back(Entry("n", std::string("\x08\0", 2)) +
                Entry("b", std::string("\x20\x01", 2)) +
                Entry("d", std::string("\x11\0\0\0\0\0\0\xf0\x3f", 9)) +
                Field(1, Field(1, "no value")) + Field(1, Field(2, Text("t"))) +
                Field(9, "unknown") + "\x53\x08\x01\x54");
  while (all.size() < 60) {
    const std::string fields = AnyFields(2, random);
    if (fields.size() < 1500) all.push_back(fields);
  }
  return all;
}

TEST_F(StructWalkTest, NoMachineReadsBeyondTheEndWhereverThatIs) {
  std::vector<StructWalk> walks = EveryWalk();
  size_t taken = 0;
  size_t refused = 0;
  for (const std::string& fields : StructsToCut(&random_)) {
    SCOPED_TRACE(testing::PrintToString(fields.substr(0, 100)));
    for (const auto kind :
         {StructWalk::Kind::kStruct, StructWalk::Kind::kList}) {
      // As a list the same bytes have fewer things in them that are right.
      const std::string bytes =
          kind == StructWalk::Kind::kStruct
              ? fields
              : Field(1, Struct(fields)) + Field(1, List(Field(1, Text("t"))));
      // Behind it come entries like any others; or one that begins in the last
      // byte, with a key as long as can be, which is read the farthest.
      std::string more = bytes;
      std::string farthest = bytes + '\x0a';
      while (farthest.size() < bytes.size() + 300) {
        more += Entry("k", Text("t"));
        farthest += "\x7f\x0a";
      }
      for (size_t size = 0; size <= bytes.size(); ++size) {
        const size_t growth = 4 * size;
        // At once behind the end, and so far behind it that the fast way is
        // taken up to it: what follows is what was cut off.
        const absl::string_view cut = absl::string_view(bytes).substr(0, size);
        const auto exact = Walked(&walks, kind, cut, size, growth);
        const absl::string_view all = more;
        for (const absl::string_view readable :
             {all, all.substr(0, size + 200)}) {
          ASSERT_EQ(Walked(&walks, kind, readable, size, growth), exact)
              << size;
        }
        ++(exact.has_value() ? taken : refused);
      }
      // Every distance of the end of what may be read.
      const size_t size = bytes.size();
      const auto all = Walked(&walks, kind, bytes, size, 4 * size);
      for (size_t rest = 1; rest < 260; ++rest) {
        for (const absl::string_view behind : {more, farthest}) {
          const absl::string_view some = behind.substr(0, size + rest);
          ASSERT_EQ(Walked(&walks, kind, some, size, 4 * size), all) << rest;
          ASSERT_EQ(Walked(&walks, kind, some, size + 1, 4 * size),
                    absl::nullopt)
              << rest;
        }
      }
      // Too little to grow by, just enough, and more.
      const size_t needed = all.has_value() ? all->size() - size : 0;
      for (size_t growth = 0; growth < needed + 3; ++growth) {
        for (const absl::string_view readable : {bytes, more}) {
          const auto written = Walked(&walks, kind, readable, size, growth);
          ASSERT_EQ(written, growth < needed ? absl::nullopt : all) << growth;
        }
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 300U);
  EXPECT_GT(refused, 10000U);
}

TEST_F(StructWalkTest, OrdersFewEntriesAlikeWhateverTheirOrder) {
  std::vector<StructWalk> walks = EveryWalk();
  // Some of one order, and others, each being the first in turn.
  std::vector<std::string> keys = {"a", Alike(1), Alike(2), "key",
                                   "b", "",       "z"};
  for (size_t turn = 0; turn < keys.size(); ++turn) {
    std::rotate(keys.begin(), keys.begin() + 1, keys.end());
    for (size_t count = 1; count <= 6; ++count) {
      for (const bool twice : {false, true}) {
        std::vector<std::string> entries;
        for (size_t i = 0; i < count; ++i) {
          entries.push_back(Entry(keys[i], Text(absl::StrCat("value ", i))));
        }
        if (twice) entries.back() = Entry(keys[0], Text("another"));
        std::sort(entries.begin(), entries.end());
        absl::optional<std::string> first;
        do {
          std::string fields;
          for (const std::string& entry : entries) fields += entry;
          const size_t size = fields.size();
          fields.append(300, 'r');
          const auto written =
              Walked(&walks, StructWalk::Kind::kStruct, fields, size, 0);
          if (!first.has_value()) first = written;
          ASSERT_EQ(written, first);
          // A key that comes twice is for the slow path, wherever the two are.
          ASSERT_EQ(written.has_value(), !twice || count == 1);
        } while (std::next_permutation(entries.begin(), entries.end()));
      }
    }
  }
}

TEST_F(StructWalkTest, EveryMachineWritesTheSame) {
  std::vector<StructWalk> walks = EveryWalk();
  size_t refused = 0;
  size_t taken = 0;
  constexpr size_t kRuns = 20000;
  for (size_t run = 0; run < kRuns; ++run) {
    const std::string fields = AnyFields(3, &random_);
    // More of it can be read at once if more bytes follow.
    for (const size_t rest : {size_t{0}, size_t{300}}) {
      const std::vector<char> bytes = [&] {
        std::vector<char> all(fields.begin(), fields.end());
        all.resize(fields.size() + rest);
        all.shrink_to_fit();
        return all;
      }();
      std::string first;
      for (size_t i = 0; i < walks.size(); ++i) {
        size_t growth = 10 * fields.size();
        std::string out(fields.size() + growth + 64, '\0');
        const char* const end = walks[i].Run(
            StructWalk::Kind::kStruct, {bytes.data(), fields.size()}, 100,
            bytes.data() + bytes.size(), &growth, out.data());
        if (i == 0 && rest == 0) ++(end == nullptr ? refused : taken);
        out.resize(end == nullptr ? 0 : end - out.data());
        ASSERT_EQ(out.size() + growth,
                  end == nullptr ? growth : 11 * fields.size());
        if (i == 0) first = out;
        ASSERT_EQ(out, first);
      }
    }
  }
  EXPECT_GT(refused, kRuns / 20);
  EXPECT_GT(taken, kRuns / 2);
}

}  // namespace
}  // namespace fncache::cache::key
