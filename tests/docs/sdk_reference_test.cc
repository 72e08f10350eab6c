// SPDX-License-Identifier: Apache-2.0
// docs/function-sdk-reference.md names what the public headers of the SDK
// declare, and quotes what the SDK reports.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fncache/function/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"
#include "tests/docs/markdown.h"
#include "tests/docs/public_names.h"

namespace fncache::docs {
namespace {

namespace fn = fncache::function;
namespace fs = std::filesystem;
using ::testing::SizeIs;

constexpr char kPage[] = "docs/function-sdk-reference.md";

// The block that the test compares, without its last newline.
std::string Quoted(const std::string& test) {
  std::vector<std::string> wrong;
  for (const Block& block : BlocksOf(kPage, &wrong)) {
    if (block.argument == test) {
      return block.text.substr(0, block.text.size() - 1);
    }
  }
  ADD_FAILURE() << kPage << " quotes nothing for " << test;
  return "";
}

// The identifiers between code marks.
std::set<std::string> NamesOfThePage() {
  std::set<std::string> names;
  std::string name;
  bool code = false;
  for (const char c : ReadSource(kPage)) {
    if (c == '`') code = !code;
    const bool more = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    if (more) {
      name += c;
    } else {
      if (code || c == '`') names.insert(name);
      name.clear();
    }
  }
  return names;
}

TEST(SdkReferenceTest, EveryPublicNameIsInTheReference) {
  // Names by which the SDK's own code and generated models reach each other.
  const std::set<std::string> plumbing = {
      "FromNode", "Handle",          "Iterator",
      "PrintTo",  "by_name",         "call",
      "composed", "difference_type", "iterator_category",
      "labels",   "name_space_",     "observable",
      "origin",   "pointer",         "raw",
      "ref",      "reference",       "value_type"};
  const std::set<std::string> page = NamesOfThePage();
  size_t count = 0;
  for (const auto& file : fs::recursive_directory_iterator(
           fs::path(FNCACHE_SOURCE_DIR) / "sdk/include")) {
    if (file.path().extension() != ".h") continue;
    for (const std::string& name :
         PublicNames(fncache::testing::ReadFile(file.path().string()))) {
      ++count;
      EXPECT_TRUE(page.count(name) > 0 || plumbing.count(name) > 0)
          << file.path() << " declares " << name << ", which " << kPage
          << " does not name";
    }
  }
  EXPECT_GT(count, 200u);
}

TEST(SdkReferenceTest, PublicNamesAreFound) {
  EXPECT_THAT(PublicNames(R"(
      #define NO 1
      namespace a { struct Other; }
      namespace a::b {
      enum class E { kOne, kTwo = 2 };
      struct S { int field = 3; std::map<int, int> other; };  // no
      template <class T, class U = void> class C : public S {
       public:
        using Inner = T;
        explicit C(int no) : no_(no) { Hidden(); }
        bool operator==(const C& o) const { return o.no_ == no_; }
        static C<T> Make(int arguments, bool (*no)(int));
        operator bool() const;
        friend bool Friend(const C& c) { return true; }
       protected:
        void Protected();
       private:
        int no_;
      };
      namespace internal { void Internal(); }
      inline constexpr S kConstant{};
      void Free(std::initializer_list<C<int>> list = {});
      extern template class C<int>;
      inline int C<int>::Make() { return Hidden(); }
      }
      )"),
              ::testing::UnorderedElementsAre("E", "kOne", "kTwo", "S", "field",
                                              "other", "C", "Inner", "Make",
                                              "kConstant", "Free"));
}

fn::testing::Answer Answered(fn::Function function) {
  return fn::testing::Call(std::move(function)).composite("spec: {}")();
}

TEST(SdkReferenceTest, WaitsReadAsTheReferenceSays) {
  const fn::testing::Answer answer = Answered([](fn::Context& ctx) {
    const auto add = [&](const char* name, const char* kind) {
      return ctx.resource(name, "ec2.aws.upbound.io/v1beta1", kind);
    };
    auto vpc = add("vpc", "VPC");
    auto subnet = add("subnet", "Subnet");
    subnet["spec"]["vpcId"] = vpc.observed()["status"]["atProvider"]["vpcId"];
    auto group = add("security-group", "SecurityGroup");
    group["spec"]["vpcId"] = vpc.observed()["status"]["atProvider"]["vpcId"];
    group["spec"]["subnetId"] = subnet.observed()["status"]["atProvider"]["id"];
  });
  ASSERT_THAT(answer.results(), SizeIs(1));
  EXPECT_EQ(answer.results()[0].reason, "Dependencies");
  EXPECT_EQ(answer.results()[0].message,
            Quoted("SdkReferenceTest.WaitsReadAsTheReferenceSays"));
}

TEST(SdkReferenceTest, CyclesReadAsTheReferenceSays) {
  const fn::testing::Answer answer = Answered([](fn::Context& ctx) {
    auto a = ctx.resource("a", "example.org/v1", "A");
    auto b = ctx.resource("b", "example.org/v1", "B");
    a["spec"]["x"] = b.observed()["status"]["y"];
    b["spec"]["z"] = a.observed()["status"]["w"];
  });
  EXPECT_EQ(answer.fatal(),
            Quoted("SdkReferenceTest.CyclesReadAsTheReferenceSays"));
}

}  // namespace
}  // namespace fncache::docs
