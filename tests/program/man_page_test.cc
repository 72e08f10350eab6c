// SPDX-License-Identifier: Apache-2.0
#include "program/man_page.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::program {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ManPageTest, SectionsComeOfTheHelpsHeadings) {
  ManPage page;
  page.name = "fncache-try";
  page.purpose = "tries - it's all";
  page.version = "fncache 0.1.0";
  page.help =
      "Tries everything.\n\nUsage: fncache try [flags]\n"
      "       fncache try --all\n\nFlags:\n  --all  .all of it\n\n"
      ".dot 'quote' `tick` back\\slash\n'x\n";
  page.see_also = "fncache(1)";
  EXPECT_EQ(PrintManPage(page), R"(.TH FNCACHE\-TRY 1 "" "fncache 0.1.0"
.SH "NAME"
fncache\-try \- tries \- it\(aqs all
.SH "SYNOPSIS"
.in 0
.nf
fncache try [flags]
fncache try \-\-all
.fi
.SH "DESCRIPTION"
.in 0
.nf
Tries everything.
.fi
.SH "FLAGS"
.in 0
.nf
  \-\-all  .all of it
.sp
\&.dot \(aqquote\(aq \(gatick\(ga back\eslash
\&\(aqx
.fi
.SH "SEE ALSO"
fncache(1)
)");
}

TEST(ManPageTest, NothingOfAHelpIsLost) {
  ManPage page;
  page.help = "One\n\nUsage: two\n\nthree\nFour:\nfive\n\nsix\n";
  const std::string printed = PrintManPage(page);
  for (const char* part : {"One", "two", "three", "FOUR", "five", "six"}) {
    EXPECT_THAT(printed, HasSubstr(part));
  }
  EXPECT_THAT(printed, Not(HasSubstr("Usage")));
}

}  // namespace
}  // namespace fncache::program
