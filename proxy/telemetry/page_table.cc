// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/page_table.h"

#include "absl/strings/str_cat.h"
#include "proxy/telemetry/page_text.h"

namespace fncache::proxy::telemetry {

void Head(const std::vector<Column>& columns, std::string* out) {
  absl::StrAppend(out, "<thead><tr>");
  for (const Column& column : columns) {
    absl::StrAppend(out, "<th");
    if (*column.classes != 0) {
      absl::StrAppend(out, " class=\"", column.classes, "\"");
    }
    if (*column.meaning != 0) {
      absl::StrAppend(out, " title=\"", Shown(column.meaning), "\"");
    }
    absl::StrAppend(out, ">", Shown(column.name));
  }
  absl::StrAppend(out, "</tr></thead>\n");
}

void TwoLines(absl::string_view column, const std::string& recent,
              const std::string& total, absl::string_view classes,
              std::string* out) {
  const auto shade = [](const std::string& text, absl::string_view more) {
    const bool nothing = text == "0" || text == "0/s" || text == kDash;
    return nothing ? absl::string_view("zero") : more;
  };
  absl::StrAppend(out, "<td data-of=\"", column, "\"><span class=\"",
                  shade(recent, classes), "\">", recent,
                  "</span><small class=\"", shade(total, ""), "\">");
  absl::StrAppend(out, total, "</small>");
}

void TwoCounts(absl::string_view column, uint64_t recent, uint64_t total,
               std::string* out) {
  TwoLines(column, Count(recent), Count(total), "", out);
}

void TwoFaults(const char* column, uint64_t recent, uint64_t total,
               std::string* out) {
  TwoLines(column, Count(recent), Count(total), "bad", out);
}

}  // namespace fncache::proxy::telemetry
