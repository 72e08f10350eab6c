// SPDX-License-Identifier: Apache-2.0
// Writes an Advice as YAML with comments and as JSON.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/duration.h"
#include "common/json_tree.h"
#include "common/text_table.h"
#include "common/utf8.h"
#include "runner/advise/advise.h"

namespace fncache::runner::advise {
namespace {

using insight::explain::RepeatOver;

constexpr size_t kMostListed = 12;

std::string Rate(const absl::optional<double>& rate) {
  return rate.has_value() ? absl::StrFormat("%.1f %%", 100 * *rate) : "-";
}

// A path or a name of a set as a YAML scalar.
std::string Scalar(const std::string& text) {
  const bool plain =
      !text.empty() &&
      absl::ascii_isalpha(static_cast<unsigned char>(text[0])) &&
      std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
               c == '_' || c == '-' || c == '/' || c == '*';
      });
  return plain ? text : JsonTree(text).Dump();
}

// Every line of `text` as a comment.
std::string Commented(absl::string_view text, absl::string_view indent = "") {
  std::string out;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::StrAppend(&out, indent, line.empty() ? "#" : "# ", line, "\n");
  }
  return out;
}

std::string List(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() == kMostListed) break;
    shown.push_back(Printable(name));
  }
  std::string text = absl::StrJoin(shown, ", ");
  if (names.size() > shown.size()) {
    absl::StrAppend(&text, " and ", names.size() - shown.size(),
                    " more (--json has all)");
  }
  return text;
}

// Fields that no request has, and that the function reads all the same.
std::vector<std::string> ReadIfAdded(const probe::ProbeResult& result) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < result.fields.size(); ++i) {
    if (!result.fields[i].real &&
        result.results[i] == probe::Search::Result::kRead) {
      paths.push_back(result.fields[i].mask);
    }
  }
  return paths;
}

std::vector<std::string> ReadOf(const probe::ProbeResult& result) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < result.fields.size(); ++i) {
    if (result.fields[i].real &&
        result.results[i] == probe::Search::Result::kRead) {
      paths.push_back(result.fields[i].mask);
    }
  }
  return paths;
}

// The function's settings, `indent` deep.
std::string Settings(const FunctionAdvice& one, bool share,
                     const std::string& indent) {
  std::string yaml;
  const auto comment = [&](const std::string& text) {
    yaml += Commented(text, indent);
  };
  if (!one.not_asked.empty()) {
    comment(absl::StrCat(Printable(one.function),
                         " was not asked: ", Printable(one.not_asked)));
  } else {
    comment(absl::StrCat(Printable(one.function), ", asked ", one.probe.calls,
                         " times with ", Printable(one.asked_with),
                         ".\nIt reads ",
                         !ReadOf(one.probe).empty() ? List(ReadOf(one.probe))
                         : one.probe.complete ? "nothing that a mask may hide"
                                              : "nothing of what was asked",
                         "."));
    if (!one.probe.complete) {
      comment(
          "The calls ended before all was asked: give it more (--calls). "
          "Fields whose\nquestions did not end are not masked.");
    }
    const std::vector<std::string> added = ReadIfAdded(one.probe);
    if (!added.empty()) {
      comment(absl::StrCat(
          "It waits for what no request has yet: ", List(added), "."));
    }
  }
  const uint64_t drifted = one.repeats.Over(RepeatOver::kDrift);
  if (one.tune_in_force) {
    absl::StrAppend(&yaml, indent, "tune: on  # in force\n");
  } else if (one.tune) {
    absl::StrAppendFormat(&yaml,
                          "%stune: on  # %d of %d runs gave the answer of "
                          "before over drift only\n",
                          indent, drifted, one.repeats.runs);
  }
  const bool identity = share && !one.identity.empty();
  if (!one.in_force.empty() || !one.masks.empty() || identity) {
    absl::StrAppend(&yaml, indent, "mask:\n");
  }
  for (const std::string& mask : one.in_force) {
    absl::StrAppend(&yaml, indent, "- ", Scalar(mask), "  # in force\n");
  }
  for (const probe::ProposedMask& mask : one.masks) {
    absl::StrAppend(&yaml, indent, "- ", Scalar(mask.mask), "  # unread");
    if (one.compared > 0) {
      absl::StrAppendFormat(&yaml, "; changed in %d of %d calls", mask.varied,
                            one.compared);
    }
    absl::StrAppend(&yaml, "\n");
  }
  if (identity) {
    comment(
        "Unread, and with these composites share answers: what was made "
        "for one is\ngiven to another that asks the same.");
    for (const std::string& mask : one.identity) {
      absl::StrAppend(&yaml, indent, "- ", Scalar(mask), "\n");
    }
  }
  if (one.composites > 1 && !one.apart.empty()) {
    comment(
        absl::StrCat("Composites differ besides in ", List(one.apart), "."));
  }
  if (one.not_asked.empty() && one.probe.unstable.empty()) {
    comment(
        "Only if the answer depends on its request alone:\n"
        "ttl: {min: 24h}\n"
        "requeue_ttl: original");
  }
  return yaml;
}

}  // namespace

std::string AdviceText(const Advice& advice) {
  const insight::explain::Analysis& analysis = advice.analysis;
  std::string text = Commented(absl::StrFormat(
      "fncache advise, of %s: %d calls in %s for %d composites, %d hits.\n"
      "Masks are over leaves that the function was found not to read.",
      Printable(advice.trace), analysis.calls,
      FormatGoDuration(absl::Trunc(analysis.span, absl::Milliseconds(1))),
      analysis.composites, analysis.hits));
  if (advice.several || advice.functions.size() > 1) {
    absl::StrAppend(&text, "functions:\n");
    for (const FunctionAdvice& one : advice.functions) {
      absl::StrAppend(&text, "- name: ", Scalar(one.function), "\n",
                      Settings(one, advice.share, "  "));
    }
  } else {
    for (const FunctionAdvice& one : advice.functions) {
      absl::StrAppend(&text, Settings(one, advice.share, ""));
    }
  }
  std::vector<std::vector<std::string>> rows = {
      {"expected", "hit rate", "function runs", "while created"}};
  for (const Expected& one : advice.expected) {
    rows.push_back({one.settings, Rate(one.hit_rate), absl::StrCat(one.runs),
                    Rate(one.creation)});
  }
  std::string table = TextTable(rows, {false, true, true, true});
  absl::StrAppend(&text, "#\n",
                  Commented(absl::StripTrailingAsciiWhitespace(table)));
  if (advice.as_if_masked) {
    absl::StrAppend(&text,
                    "# with tune: on at most, as if versions and times were "
                    "masked\n");
  }
  std::vector<std::vector<std::string>> why = {{"why calls missed", "misses"}};
  for (const auto& reason : analysis.reasons) {
    why.push_back({Printable(reason.name), absl::StrCat(reason.misses)});
  }
  if (why.size() > 1) {
    table = TextTable(why, {false, true});
    absl::StrAppend(&text, "#\n",
                    Commented(absl::StripTrailingAsciiWhitespace(table)));
  }
  absl::StrAppend(&text, "#\n# It could not find out\n");
  for (const std::string& sentence : advice.unknown) {
    absl::StrAppend(&text, "# - ", Printable(sentence), "\n");
  }
  return text;
}

std::string AdviceJson(const Advice& advice) {
  const auto list = [](const std::vector<std::string>& texts) {
    return JsonTree(texts);
  };
  JsonTree functions = JsonTree::Array();
  for (const FunctionAdvice& one : advice.functions) {
    JsonTree masks = JsonTree::Array();
    for (const probe::ProposedMask& mask : one.masks) {
      masks.Append({{"mask", mask.mask},
                    {"varied", mask.varied},
                    {"bytes", mask.bytes},
                    {"paths", mask.fields}});
    }
    JsonTree repeats = JsonTree::Object();
    for (size_t over = 0; over < one.repeats.over.size(); ++over) {
      repeats.Set(insight::explain::RepeatOverName(over),
                  one.repeats.over[over]);
    }
    functions.Append({{"function", one.function},
                      {"function_asked", one.not_asked.empty()},
                      {"not_asked", one.not_asked},
                      {"calls", one.probe.calls},
                      {"compared", one.compared},
                      {"complete", one.probe.complete},
                      {"in_force", list(one.in_force)},
                      {"tune", one.tune},
                      {"tune_in_force", one.tune_in_force},
                      {"runs", one.repeats.runs},
                      {"repeats", repeats},
                      {"drift_masks", list(one.drift_masks)},
                      {"masks", masks},
                      {"identity", list(one.identity)},
                      {"apart", list(one.apart)},
                      {"read", list(ReadOf(one.probe))},
                      {"read_if_added", list(ReadIfAdded(one.probe))},
                      {"not_probed", list(one.probe.not_probed)},
                      {"unstable", list(one.probe.unstable)}});
  }
  const auto rate = [](const absl::optional<double>& value) {
    return value.has_value() ? JsonTree(*value) : JsonTree();
  };
  JsonTree expected = JsonTree::Array();
  for (const Expected& one : advice.expected) {
    expected.Append({{"settings", one.settings},
                     {"hit_rate", rate(one.hit_rate)},
                     {"function_runs", one.runs},
                     {"creation_hit_rate", rate(one.creation)}});
  }
  JsonTree reasons = JsonTree::Array();
  for (const auto& reason : advice.analysis.reasons) {
    reasons.Append({{"name", reason.name}, {"misses", reason.misses}});
  }
  const JsonTree all = {{"version", 1},
                        {"trace", advice.trace},
                        {"calls", advice.analysis.calls},
                        {"hits", advice.analysis.hits},
                        {"misses", advice.analysis.misses},
                        {"reasons", reasons},
                        {"share_between_composites", advice.share},
                        {"functions", functions},
                        {"expected", expected},
                        {"unknown", list(advice.unknown)}};
  return all.Dump(2, JsonTree::Order::kSorted) + "\n";
}

}  // namespace fncache::runner::advise
