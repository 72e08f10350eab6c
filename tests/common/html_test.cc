// SPDX-License-Identifier: Apache-2.0
#include "common/html.h"

#include "gtest/gtest.h"

namespace fncache {
namespace {

TEST(EscapeHtmlTest, WhatHtmlWouldReadAsItsOwnIsReferredTo) {
  EXPECT_EQ(EscapeHtml("<a href=\"x\" id='y'>&amp;</a>"),
            "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;amp;&lt;/a&gt;");
}

TEST(EscapeHtmlTest, OtherTextStays) {
  EXPECT_EQ(EscapeHtml(""), "");
  EXPECT_EQ(EscapeHtml("Köln – 100 %\n"), "Köln – 100 %\n");
}

}  // namespace
}  // namespace fncache
