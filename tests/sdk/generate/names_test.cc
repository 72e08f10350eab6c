// SPDX-License-Identifier: Apache-2.0
#include "sdk/generate/names.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"
#include "tests/sdk/generate/compiler.h"

namespace fncache::sdk {
namespace {

TEST(NamesTest, NamesAreTheWiresButForWhatNoCompilerTakes) {
  EXPECT_EQ(CppName("forProvider"), "forProvider");
  EXPECT_EQ(CppName("a-b.c d"), "a_b_c_d");
  EXPECT_EQ(CppName("größe"), "gr____e");
  EXPECT_EQ(CppName("9lives"), "_9lives");
  EXPECT_EQ(CppName(""), "_");
  EXPECT_EQ(CppName("$ref"), "_ref");
}

TEST(NamesTest, ReservedWordsGetAnUnderscore) {
  for (const char* const word :
       {"int",      "bool",   "class",   "template",   "and",      "xor_eq",
        "errno",    "unix",   "linux",   "EOF",        "NULL",     "INT_MAX",
        "SIGINT",   "EINVAL", "assert",  "co_await",   "requires", "typeof",
        "__FILE__", "_Bool",  "_Pragma", "_GNU_SOURCE"}) {
    EXPECT_EQ(CppName(word), absl::StrCat(word, "_"));
  }
}

TEST(NamesTest, OrdinaryNamesAreNotReserved) {
  for (const char* const name :
       {"override", "final",   "import", "module",    "Int",       "ERROR",
        "EMAIL",    "ENABLED", "SIGNAL", "PRIMARY",   "CPU_LIMIT", "MAX",
        "std",      "main",    "M_x",    "LOG_LEVEL", "E",         "SCN",
        "FLT",      "_id",     "a__b",   "errno_"}) {
    EXPECT_FALSE(IsReserved(name)) << name;
  }
}

// On this machine's compilers and in this machine's headers.
TEST(NamesTest, MacrosOfTheStandardHeadersAreReserved) {
  const testing::TempDir dir;
  std::string text;
  for (const char* const header :
       {"cassert",    "cctype",      "cerrno",       "cfenv",     "cfloat",
        "cinttypes",  "climits",     "clocale",      "cmath",     "complex",
        "csetjmp",    "csignal",     "cstdarg",      "cstddef",   "cstdint",
        "cstdio",     "cstdlib",     "cstring",      "ctime",     "cuchar",
        "cwchar",     "cwctype",     "any",          "atomic",    "bitset",
        "charconv",   "chrono",      "deque",        "exception", "filesystem",
        "functional", "future",      "iostream",     "limits",    "locale",
        "memory",     "mutex",       "new",          "numeric",   "optional",
        "queue",      "random",      "ratio",        "regex",     "sstream",
        "string",     "string_view", "system_error", "thread",    "typeinfo",
        "valarray",   "variant"}) {
    absl::StrAppend(&text, "#include <", header, ">\n");
  }
  testing::WriteFile(dir.File("all.cc"), text);
  const std::vector<std::string> compilers = testing::Compiler::There();
  if (compilers.empty()) GTEST_SKIP() << "neither g++ nor clang++ is there";
  for (const std::string& compiler : compilers) {
    for (const char* const dialect : {"c++17", "gnu++17"}) {
      const testing::Said said = testing::Shell(absl::StrCat(
          compiler, " -std=", dialect, " -dM -E ", dir.File("all.cc")));
      ASSERT_TRUE(said.ok) << said.text;
      int macros = 0;
      for (const absl::string_view line : absl::StrSplit(said.text, '\n')) {
        const std::vector<absl::string_view> words =
            absl::StrSplit(line, absl::ByAnyChar(" ("));
        if (words.size() < 2 || words[0] != "#define") continue;
        ++macros;
        EXPECT_TRUE(IsReserved(words[1]) ||
                    (words[1][0] == '_' && words[1].size() > 1 &&
                     !absl::ascii_isupper(words[1][1]) && words[1][1] != '_'))
            << compiler << " " << dialect << ": " << words[1];
      }
      EXPECT_GT(macros, 1000);
    }
  }
}

TEST(NamesTest, ClassesBeginWithACapitalLetter) {
  EXPECT_EQ(CppClassName("forProvider"), "ForProvider");
  EXPECT_EQ(CppClassName("class"), "Class");
  EXPECT_EQ(CppClassName("rules", "Item"), "RulesItem");
  EXPECT_EQ(CppClassName("9lives"), "_9lives");
  EXPECT_EQ(CppClassName("eOF"), "EOF_");
}

TEST(NamesTest, ConstantsAreTheWordsOfTheirValues) {
  EXPECT_EQ(CppConstantName("private"), "kPrivate");
  EXPECT_EQ(CppConstantName("public-read"), "kPublicRead");
  EXPECT_EQ(CppConstantName("STANDARD_IA"), "kSTANDARDIA");
  EXPECT_EQ(CppConstantName("1.2"), "k1_2");
  EXPECT_EQ(CppConstantName(""), "kEmpty");
  EXPECT_EQ(CppConstantName(">="), "kX3EX3D");
}

TEST(NamesTest, ASecondNameGetsANumber) {
  Names names({"Own", "clear"});
  EXPECT_EQ(names.Add("a"), "a");
  EXPECT_EQ(names.Add("a"), "a_2");
  EXPECT_EQ(names.Add("a"), "a_3");
  EXPECT_EQ(names.Add("a_2"), "a_2_2");
  EXPECT_EQ(names.Add("clear"), "clear_");
  EXPECT_EQ(names.Add("clear"), "clear__2");
  EXPECT_EQ(names.Add("Own"), "Own_");
}

}  // namespace
}  // namespace fncache::sdk
