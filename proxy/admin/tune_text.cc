// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/tune_text.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/json_tree.h"
#include "common/text_table.h"
#include "common/utf8.h"
#include "proto/admin.pb.h"
#include "proxy/admin/change.h"
#include "proxy/admin/units.h"

namespace fncache::proxy::admin {
namespace {

using Json = JsonTree;
using Rows = std::vector<std::vector<std::string>>;
using Function = v1::TuneResponse::FunctionTuning;
using Step = v1::TuneResponse::Step;

// The most rows of the table of steps; --json has all.
constexpr size_t kListed = 10;

// "380 same, 12 differs, 8 none".
std::string CountsText(const Counts& counts) {
  return absl::StrJoin(counts, ", ",
                       [](std::string* out, const v1::Count& count) {
                         absl::StrAppend(out, Grouped(count.count()), " ",
                                         Printable(count.name()));
                       });
}

std::string NamesText(const std::string& first, const std::string& second) {
  if (first.empty() && second.empty()) return "-";
  return Printable(absl::StrCat(first, first.empty() ? "" : " ", second));
}

// One row for what it reads, one for that it varies.
void AddSteps(const Step& step, Rows* rows) {
  const auto add = [&](const std::string& finding, absl::Time since) {
    rows->push_back(
        {NamesText(step.input_kind(), step.input_digest()),
         NamesText(step.composite_api_version(), step.composite_kind()),
         Printable(finding), TimeText(since), NamesText(step.seen(), "")});
  };
  if (!step.reads().empty()) {
    add(step.reads(), FromProto(step.reads_since()));
  }
  if (!step.has_varies_since()) return;
  add(step.has_no_questions_until()
          ? absl::StrCat("varies, asked from ",
                         TimeText(FromProto(step.no_questions_until())))
          : "varies",
      FromProto(step.varies_since()));
}

// The paths that changed without changing answers; "" if there are none.
std::string UnreadText(const Function& function) {
  if (function.unread().empty()) return "";
  Rows rows = {{"changed without changing answers: mask", "runs", ""}};
  for (const auto& one : function.unread()) {
    if (rows.size() > kListed) break;
    std::string mask = Printable(one.mask());
    if (one.path() != one.mask()) {
      absl::StrAppend(&mask, " for ", Printable(one.path()));
    }
    rows.push_back({mask, Grouped(one.count()), "your promise"});
  }
  const size_t all = function.unread().size();
  if (all > kListed) {
    rows.push_back(
        {absl::StrCat("and ", all - kListed, " more; --json has all"), "", ""});
  }
  return absl::StrCat("\n", TextTable(rows, {false, true, false}));
}

std::string FunctionText(const Function& function) {
  std::string text = absl::StrCat(
      Printable(function.function()), ": tune: ", Printable(function.state()),
      function.state() == "idle" ? ", as mode is not on" : "", "\n");
  const uint64_t asked = Sum(function.questions_by_answer());
  if (function.state() == "off" && function.hits() + asked == 0) {
    return text + UnreadText(function);
  }
  std::string hits = Grouped(function.hits());
  if (function.revoked_hits() > 0) {
    absl::StrAppend(&hits, ", ", Grouped(function.revoked_hits()),
                    " of them revoked: the function reads what they differed "
                    "in");
  }
  std::string questions = Grouped(asked);
  if (asked > 0) {
    absl::StrAppend(&questions, ": ",
                    CountsText(function.questions_by_answer()));
  }
  const Rows rows = {
      {"hits across drift", hits},
      {"saved", ShortDuration(FromProto(function.saved()))},
      {"asked", questions},
      {"spent", ShortDuration(FromProto(function.question_time()))},
      {"proofs", CountsText(function.proofs_by_result())},
      {"keys", absl::StrCat(Grouped(function.keys_proven()), " proven, ",
                            Grouped(function.keys_repeating()), " repeating")},
      {"questions left",
       Grouped(static_cast<uint64_t>(std::floor(function.budget())))},
  };
  absl::StrAppend(&text, TextTable(rows, {false, false}));
  if (function.steps().empty()) return text + UnreadText(function);
  Rows steps = {{"input", "composite", "reads", "since", "seen at"}};
  for (const Step& step : function.steps()) AddSteps(step, &steps);
  const size_t more =
      steps.size() - 1 > kListed ? steps.size() - 1 - kListed : 0;
  steps.resize(steps.size() - more);
  if (more > 0) {
    steps.push_back(
        {absl::StrCat("and ", more, " more; --json has all"), "", "", "", ""});
  }
  absl::StrAppend(&text, "\n",
                  TextTable(steps, {false, false, false, false, false}));
  return text + UnreadText(function);
}

Json CountsJson(const Counts& counts) {
  Json object = Json::Object();
  for (const v1::Count& count : counts) object.Set(count.name(), count.count());
  return object;
}

Json Time(bool known, const google::protobuf::Timestamp& time) {
  if (!known) return Json();
  return absl::ToDoubleSeconds(FromProto(time) - absl::UnixEpoch());
}

Json TextOrNull(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json StepJson(const Step& step) {
  return {{"input_kind", TextOrNull(step.input_kind())},
          {"input_digest", TextOrNull(step.input_digest())},
          {"composite_api_version", step.composite_api_version()},
          {"composite_kind", step.composite_kind()},
          {"reads", TextOrNull(step.reads())},
          {"reads_since_unix_seconds",
           Time(step.has_reads_since(), step.reads_since())},
          {"varies", step.has_varies_since()},
          {"varies_since_unix_seconds",
           Time(step.has_varies_since(), step.varies_since())},
          {"no_questions_until_unix_seconds",
           Time(step.has_no_questions_until(), step.no_questions_until())},
          {"seen", step.seen()}};
}

}  // namespace

std::string TuneText(const v1::TuneResponse& response) {
  std::string text =
      absl::StrCat("since ", TimeText(FromProto(response.since())), "\n");
  for (const Function& function : response.functions()) {
    absl::StrAppend(&text, "\n", FunctionText(function));
  }
  if (response.functions().empty()) {
    absl::StrAppend(&text, "\nNo function has tune: on.\n");
  }
  for (const Function& function : response.functions()) {
    if (function.unread().empty()) continue;
    absl::StrAppend(&text,
                    "\nA mask is your promise that the function does not read "
                    "what it hides. The function\nwas not asked about it: "
                    "fncache probe asks.\n");
    break;
  }
  return text;
}

std::string TuneJson(const v1::TuneResponse& response) {
  Json functions = Json::Array();
  for (const Function& function : response.functions()) {
    Json steps = Json::Array();
    for (const Step& step : function.steps()) steps.Append(StepJson(step));
    Json unread = Json::Array();
    for (const auto& one : function.unread()) {
      unread.Append({{"path", one.path()},
                     {"mask", one.mask()},
                     {"runs", one.count()},
                     {"function_asked", false}});
    }
    functions.Append({
        {"function", function.function()},
        {"state", function.state()},
        {"hits_across_drift", function.hits()},
        {"seconds_saved", absl::ToDoubleSeconds(FromProto(function.saved()))},
        {"revoked_hits", function.revoked_hits()},
        {"questions", Sum(function.questions_by_answer())},
        {"questions_by_answer", CountsJson(function.questions_by_answer())},
        {"question_seconds",
         absl::ToDoubleSeconds(FromProto(function.question_time()))},
        {"questions_left", function.budget()},
        {"proofs_by_result", CountsJson(function.proofs_by_result())},
        {"keys_proven", function.keys_proven()},
        {"keys_repeating", function.keys_repeating()},
        {"steps", steps},
        {"changed_without_changing_answers", unread},
    });
  }
  const Json all = {
      {"since_unix_seconds", Time(response.has_since(), response.since())},
      {"functions", functions}};
  return all.Dump(2) + "\n";
}

}  // namespace fncache::proxy::admin
