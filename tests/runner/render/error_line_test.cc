// SPDX-License-Identifier: Apache-2.0
#include "runner/render/error_line.h"

#include "gtest/gtest.h"

namespace fncache::runner::render {
namespace {

TEST(ErrorLineTest, IndentsFurtherLinesToWhereTheFirstBegins) {
  EXPECT_EQ(ErrorLine("why"), "crossplane: error: why\n");
  EXPECT_EQ(ErrorLine("why\n\n"), "crossplane: error: why\n");
  EXPECT_EQ(ErrorLine("a\nb\n\nc"),
            "crossplane: error: a\n"
            "                   b\n"
            "                   \n"
            "                   c\n");
}

TEST(ErrorLineTest, NothingThatATerminalObeysIsPrinted) {
  EXPECT_EQ(ErrorLine("a\033[31m\rb\n\007c\xc2\x9b\xe2\x80\xae\xff"),
            "crossplane: error: a\\x1b[31m\\rb\n"
            "                   \\x07c\\xc2\\x9b\\u202e\\xff\n");
}

}  // namespace
}  // namespace fncache::runner::render
