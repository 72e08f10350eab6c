// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/json_tree.h"
#include "common/utf8.h"

namespace fncache::runner::probe {
namespace {

using Result = Search::Result;

constexpr size_t kRows = 20;

// Whether a hint replaced questions.
bool Rests(const ProbeResult& result) { return result.hint.calls_saved > 0; }

std::string Count(uint64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::vector<std::string> PathsOf(const ProbeResult& result, Result wanted) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < result.fields.size(); ++i) {
    if (result.fields[i].real && result.results[i] == wanted) {
      paths.push_back(result.fields[i].mask);
    }
  }
  return paths;
}

// Fields that no request has, which were added: those that the function reads.
std::vector<std::string> AddedAndRead(const ProbeResult& result) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < result.fields.size(); ++i) {
    const Field& field = result.fields[i];
    if (!field.real && result.results[i] == Result::kRead) {
      paths.push_back(field.mask);
    }
  }
  return paths;
}

size_t CountOf(const ProbeResult& result, bool real) {
  return std::count_if(
      result.fields.begin(), result.fields.end(), [real](const Field& field) {
        return field.real == real && (real || !field.container);
      });
}

// The topmost fields of which all that is in them is `wanted` too, with how
// many those are.
std::vector<std::string> TopmostOf(const ProbeResult& result, Result wanted) {
  std::vector<std::string> lines;
  for (int i = 0; i < static_cast<int>(result.fields.size());) {
    const int end = result.fields[i].end;
    int inside = 0;
    bool whole = result.fields[i].real;
    for (int j = i; j < end; ++j) {
      // An added field that is read is listed elsewhere, and so are its
      // parents.
      if (!result.fields[j].real) {
        whole = whole && result.results[j] != Result::kRead;
        continue;
      }
      whole = whole && result.results[j] == wanted;
      ++inside;
    }
    if (!whole) {
      // Its children are listed one by one, and so is it, unless it is a
      // container.
      if (result.fields[i].real && result.results[i] == wanted &&
          !result.fields[i].container) {
        lines.push_back(result.fields[i].mask);
      }
      ++i;
      continue;
    }
    lines.push_back(inside == 1
                        ? result.fields[i].mask
                        : absl::StrCat(result.fields[i].mask, " and the ",
                                       Count(inside - 1, "path"), " in it"));
    i = end;
  }
  return lines;
}

std::string List(absl::string_view title, uint64_t count,
                 const std::vector<std::string>& lines) {
  std::string text = absl::StrCat(
      "\n", title, ": ", count == 0 ? "none" : Count(count, "path"), "\n");
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == kRows && lines.size() > kRows + 1) {
      absl::StrAppend(&text, "  and ", lines.size() - kRows,
                      " more (--json has all)\n");
      break;
    }
    absl::StrAppend(&text, "  ", Printable(lines[i]), "\n");
  }
  return text;
}

std::string MaskTable(const ProbeReport& report) {
  const std::vector<ProposedMask>& masks = report.result.masks;
  if (masks.empty()) {
    return "\nNo mask is proposed: no leaf that a mask may hide was found "
           "unread" +
           std::string(report.trace_calls > 0 ? " and varied.\n" : ".\n");
  }
  size_t width = 0;
  const size_t rows = std::min(masks.size(), kRows);
  for (size_t i = 0; i < rows; ++i) {
    width = std::max(width, Printable(masks[i].mask).size());
  }
  const absl::string_view title = "masks to propose";
  width = std::max(width, title.size());
  const bool traced = report.trace_calls > 0;
  std::string text =
      absl::StrFormat("\n%-*s  %s%8s  %8s\n", width + 2, title,
                      traced ? "     varied  " : "", "paths", "bytes");
  for (size_t i = 0; i < rows; ++i) {
    const std::string varied =
        traced ? absl::StrFormat("%9.1f %%  ",
                                 100.0 * masks[i].varied / report.trace_calls)
               : "";
    absl::StrAppendFormat(&text, "  %-*s  %s%8d  %8d\n", width,
                          Printable(masks[i].mask), varied, masks[i].fields,
                          masks[i].bytes);
  }
  if (masks.size() > kRows) {
    absl::StrAppend(&text, "  and ", masks.size() - kRows,
                    " more (--json has all)\n");
  }
  return text;
}

// The function's hint beside the findings.
std::string HintText(const ProbeReport& report) {
  const HintFindings& hint = report.result.hint;
  std::string text = "\nhint of the function (fncache-depends): ";
  const bool none = hint.hints == 0;
  if (none && hint.refused.empty()) {
    absl::StrAppend(&text, "none");
  } else if (none) {
    absl::StrAppend(&text, "refused, it ", Printable(hint.refused));
  } else {
    absl::StrAppend(&text, Count(hint.paths.size(), "path"),
                    hint.pure ? ", pure"
                              : "; it does not say `pure`, so something else "
                                "than the request may decide the answer");
    if (!hint.refused.empty()) {
      absl::StrAppend(&text, "; another one is refused, it ",
                      Printable(hint.refused));
    } else if (hint.hints < hint.answers) {
      absl::StrAppend(&text, "; some answers have none");
    }
  }
  if (none && hint.trusted) {
    absl::StrAppend(&text, "; --trust-hint has no effect");
  }
  absl::StrAppend(&text, "\n");
  size_t width = 0;
  const size_t rows = std::min(hint.paths.size(), kRows);
  for (size_t i = 0; i < rows; ++i) {
    width = std::max(width, Printable(hint.paths[i].path).size());
  }
  for (size_t i = 0; i < rows; ++i) {
    absl::StrAppendFormat(&text, "  %-*s  %s\n", width,
                          Printable(hint.paths[i].path),
                          hint.paths[i].read ? "read" : "not found read");
  }
  if (hint.paths.size() > kRows) {
    absl::StrAppend(&text, "  and ", hint.paths.size() - kRows,
                    " more (--json has all)\n");
  }
  if (!hint.unnamed.empty()) {
    text += List(
        "BUG of the function: its hint says that these do not decide the "
        "answer, and they do",
        hint.unnamed.size(), hint.unnamed);
  }
  return text;
}

// How sure the result is, and why, in whole sentences.
std::vector<std::string> Evidence(const ProbeReport& report) {
  const ProbeResult& result = report.result;
  std::vector<std::string> said;
  said.push_back(absl::StrCat(
      "This is evidence for ",
      result.requests == 1 ? "one request" : "these requests",
      ", not proof: a path that is unread here may be read where other values "
      "are."));
  if (Rests(result)) {
    said.push_back(absl::StrCat(
        "With --trust-hint ", Count(result.hint.calls_saved, "call"),
        result.hint.calls_saved == 1 ? " was" : " were",
        " not made, because the function's hint decides the answer. All that "
        "is called unread, and the masks, rest on that hint, which was not "
        "tried."));
  }
  if (result.complete && !Rests(result)) {
    said.push_back(
        "Every path that is called unread was altered, was left out, had the "
        "values that the input and other requests have for it, and was all of "
        "that at random with all the others three times; the answer stayed "
        "what it was.");
  } else if (!result.complete) {
    said.push_back(absl::StrCat("The search is not complete: it ended after ",
                                Count(result.calls, "call"),
                                " (--calls), before all of it was asked."));
  }
  if (result.complete && !result.guesses_complete) {
    said.push_back(
        "Not all names that occur in the input were tried as fields that are "
        "not there: --calls ended, or the function answers otherwise to any "
        "field that is new.");
  }
  if (!result.not_probed.empty()) {
    said.push_back(absl::StrCat(
        "Masks name single resources, since of some that the function desires, "
        "or that other requests have, nothing was asked: ",
        Printable(absl::StrJoin(result.not_probed, ", ")), "."));
  }
  if (!result.failing.empty()) {
    said.push_back(absl::StrCat(
        "The function fails with each value that was tried for these fields, "
        "so it is not known what it reads once they have a right one: ",
        Printable(absl::StrJoin(result.failing, ", ")), "."));
  }
  if (!result.unstable.empty()) {
    said.push_back(
        "The answer varies by itself; a path that is read for what varies only "
        "is not found.");
  }
  if (result.restarts > 0) {
    said.push_back(absl::StrCat(
        "The answer varied in the middle of the search, which restarted ",
        Count(result.restarts, "time"), "."));
  }
  said.push_back(
      "Probe requests of several composites before a mask is relied on, then "
      "prove it in\nservice with `mode: shadow` (docs/shadow.md).");
  return said;
}

}  // namespace

std::string ReportText(const ProbeReport& report) {
  const ProbeResult& result = report.result;
  std::string text = absl::StrCat(
      Printable(report.function), ", asked ", Count(result.calls, "time"),
      " with ", Printable(report.source), ": ",
      Count(CountOf(result, /*real=*/true), "path"),
      " that a mask may hide, and ", CountOf(result, /*real=*/false),
      " that it could have besides\n");
  if (report.trace_calls > 0) {
    absl::StrAppend(&text, "what varies is from ",
                    Count(report.trace_calls, "call"), " of the trace\n");
  }
  if (result.unstable.empty()) {
    absl::StrAppend(&text, "the same request got the same answer every time\n");
  } else {
    text += List("varies in the answer by itself, and is not compared",
                 result.unstable.size(), result.unstable);
  }
  const std::vector<std::string> read = PathsOf(result, Result::kRead);
  text += List("read", read.size(), read);
  const std::vector<std::string> added = AddedAndRead(result);
  if (!added.empty()) {
    text += List("read where it is added, as no request has it", added.size(),
                 added);
  }
  text += List("unread", PathsOf(result, Result::kUnread).size(),
               TopmostOf(result, Result::kUnread));
  const size_t untried = PathsOf(result, Result::kUntried).size();
  if (untried > 0) {
    text += List("untried", untried, TopmostOf(result, Result::kUntried));
  }
  text += HintText(report);
  text += MaskTable(report);
  text += "\n";
  for (const std::string& sentence : Evidence(report)) {
    absl::StrAppend(&text, sentence, "\n");
  }
  return text;
}

std::string ReportJson(const ProbeReport& report) {
  const ProbeResult& result = report.result;
  JsonTree masks = JsonTree::Array();
  for (const ProposedMask& one : result.masks) {
    JsonTree mask = {
        {"mask", one.mask}, {"paths", one.fields}, {"bytes", one.bytes}};
    if (report.trace_calls > 0) mask.Set("varied", one.varied);
    masks.Append(std::move(mask));
  }
  JsonTree paths = JsonTree::Array();
  for (const HintFindings::Path& one : result.hint.paths) {
    paths.Append({{"path", one.path}, {"read", one.read}});
  }
  const JsonTree hint = {{"answers", result.hint.answers},
                         {"hints", result.hint.hints},
                         {"refused", result.hint.refused},
                         {"pure", result.hint.pure},
                         {"paths", paths},
                         {"unnamed", result.hint.unnamed},
                         {"trusted", result.hint.trusted},
                         {"calls_saved", result.hint.calls_saved}};
  JsonTree all = {{"version", 1},
                  {"function", report.function},
                  {"request", report.source},
                  {"calls", result.calls},
                  {"complete", result.complete},
                  {"restarts", result.restarts},
                  {"guesses_complete", result.guesses_complete},
                  {"not_probed", result.not_probed},
                  {"failing", result.failing},
                  {"read", PathsOf(result, Result::kRead)},
                  {"read_if_added", AddedAndRead(result)},
                  {"added", CountOf(result, /*real=*/false)},
                  {"unread", PathsOf(result, Result::kUnread)},
                  {"untried", PathsOf(result, Result::kUntried)},
                  {"unstable", result.unstable},
                  {"hint", hint},
                  {"masks", masks},
                  {"evidence", Evidence(report)}};
  if (report.trace_calls > 0) all.Set("trace_calls", report.trace_calls);
  return all.Dump(2, JsonTree::Order::kSorted) + "\n";
}

}  // namespace fncache::runner::probe
