// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/text.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

// The most rows of a list; --json has all.
constexpr int kListed = 10;
// A tier counts an entry's hits up to this number.
constexpr uint32_t kMostHits = 3;

std::string Hex(const std::string& key) { return absl::BytesToHexString(key); }

// "1 entry", "3 entries".
std::string Number(uint64_t count, absl::string_view one,
                   absl::string_view many) {
  return absl::StrCat(Grouped(count), " ", count == 1 ? one : many);
}

std::string Percent(double share) {
  return absl::StrFormat("%.1f%%", 100 * share);
}

std::string Dump(const Json& json) { return json.Dump(2) + "\n"; }

double UnixSeconds(const google::protobuf::Timestamp& time) {
  return absl::ToDoubleSeconds(FromProto(time) - absl::UnixEpoch());
}

std::string OrDash(const std::string& text) {
  return text.empty() ? "-" : Printable(text);
}

// The first rows of a list, below a heading; empty if the list is.
std::string Most(absl::string_view heading, const Counts& counts) {
  if (counts.empty()) return "";
  Rows rows = {{std::string(heading), "misses"}};
  for (const v1::Count& count : counts) {
    if (rows.size() > kListed) break;
    rows.push_back({Printable(count.name()), Grouped(count.count())});
  }
  if (counts.size() > kListed) {
    rows.push_back(
        {absl::StrCat("and ", counts.size() - kListed, " more; --json has all"),
         ""});
  }
  return absl::StrCat("\n", TextTable(rows, {false, true}));
}

std::string MasksText(const v1::ExplainResponse::FunctionMisses& function) {
  if (function.masks().empty()) return "";
  Rows rows = {{"masks that hide what changed", "misses", "function"}};
  for (const auto& mask : function.masks()) {
    if (rows.size() > kListed) break;
    rows.push_back(
        {Printable(mask.mask()), Grouped(mask.count()), "not asked"});
  }
  if (static_cast<size_t>(function.masks().size()) > kListed) {
    rows.push_back({absl::StrCat("and ", function.masks().size() - kListed,
                                 " more; --json has all"),
                    "", ""});
  }
  return absl::StrCat("\n", TextTable(rows, {false, true, false}));
}

Json ListJson(const Counts& counts, const char* what) {
  Json list = Json::Array();
  for (const v1::Count& count : counts) {
    list.Append({{what, count.name()}, {"count", count.count()}});
  }
  return list;
}

std::string Until(bool limited, const google::protobuf::Timestamp& until) {
  return limited ? absl::StrCat(" until ", TimeText(FromProto(until))) : "";
}

std::string ChangesText(
    absl::string_view heading, absl::string_view old_heading,
    absl::string_view new_heading,
    const google::protobuf::RepeatedPtrField<v1::ReloadResponse::SettingChange>&
        changes) {
  if (changes.empty()) return "";
  Rows rows = {{std::string(heading), std::string(old_heading),
                std::string(new_heading)}};
  for (const auto& change : changes) {
    rows.push_back(
        {Printable(change.function().empty()
                       ? change.key()
                       : absl::StrCat(change.function(), ": ", change.key())),
         OrDash(change.old_value()), OrDash(change.new_value())});
  }
  return TextTable(rows, {false, false, false});
}

}  // namespace

namespace {

// The text in quotes, because it may be any text; "-": none, or not known.
std::string Quoted(const std::string& text) {
  return text.empty() ? "-" : absl::StrCat("\"", Printable(text), "\"");
}

std::string ServedText(const v1::EntryReport& entry) {
  if (!entry.has_served()) return "not reported by this daemon";
  return absl::StrCat(entry.served() ? "yes" : "no",
                      entry.served_why().empty() ? "" : ": ",
                      Printable(entry.served_why()));
}

std::string RecentHits(const v1::EntryReport& entry) {
  if (!entry.has_recent_hits()) return "not counted here";
  return absl::StrCat(entry.recent_hits(),
                      entry.recent_hits() >= kMostHits ? " or more" : "");
}

}  // namespace

std::string LookUpText(const v1::LookUpResponse& response) {
  std::string text = absl::StrCat("key ", Hex(response.key()), "\n");
  if (response.has_shared_down()) {
    absl::StrAppend(&text, "not looked up in the shared tier, which is down: ",
                    Printable(response.shared_down()), "\n");
  }
  if (response.entries().empty()) {
    return absl::StrCat(text, response.has_shared_down()
                                  ? "no other tier has an entry\n"
                                  : "no tier has an entry\n");
  }
  for (const v1::EntryReport& entry : response.entries()) {
    const absl::Duration remaining = FromProto(entry.remaining());
    const auto row = [](absl::string_view what, const std::string& value) {
      return std::vector<std::string>{std::string(what), value};
    };
    Rows rows = {
        row("function", OrDash(entry.function())),
        row("generation", Quoted(entry.generation())),
        row("served", ServedText(entry)),
        row("age", ShortDuration(FromProto(entry.age()))),
        row("remaining", absl::StrCat(ShortDuration(remaining),
                                      remaining <= absl::ZeroDuration()
                                          ? " (no longer served as fresh)"
                                          : "")),
        row("size", ShortSize(entry.size_bytes())),
        row("function's TTL",
            entry.has_function_ttl()
                ? ShortDuration(FromProto(entry.function_ttl()))
                : "none"),
        row("lifetime", ShortDuration(FromProto(entry.lifetime()))),
        row("TTL sent now", entry.has_told_ttl()
                                ? ShortDuration(FromProto(entry.told_ttl()))
                                : "none"),
        row("recent hits", RecentHits(entry)),
        row("connection details", entry.secrets() ? "yes" : "no"),
        row("banned", entry.ban().empty()
                          ? "no"
                          : absl::StrCat("by ", Printable(entry.ban()))),
    };
    absl::StrAppend(&text, "\n", Printable(entry.tier()), "\n",
                    TextTable(rows, {false, false}));
  }
  return text;
}

std::string PurgeText(const std::string& what, bool soft,
                      const std::string& socket,
                      const v1::PurgeResponse& response) {
  std::string text = absl::StrCat(
      soft ? "made stale: " : "purged: ", Printable(what), ", on ",
      Printable(socket), "; ",
      // A ban makes entries in memory stale, so they are not counted.
      soft ? "all in memory and "
           : absl::StrCat(Number(response.removed(), "entry", "entries"),
                          " gone, "),
      // How many a server has is not known here.
      response.shared() ? "those in the shared tier under a ban, "
      : !soft && response.covered() == 0
          ? ""
          : absl::StrCat("up to ", Grouped(response.covered()),
                         " on disk under a ban, "),
      Number(response.flights(), "call", "calls"),
      " in progress that no caller can join\n");
  if (response.widened()) {
    // An older daemon does not say what is purged: it is this at most.
    const std::string wider = response.widened_to().empty()
                                  ? "the whole function, or everything,"
                                  : absl::StrJoin(response.widened_to(), ", ");
    absl::StrAppend(&text,
                    "More is purged for now than is remembered one by one: ",
                    Printable(wider), " has been purged instead.\n");
  }
  if (response.unknown_generation()) {
    absl::StrAppend(
        &text,
        "Not in use since the daemon's start: no entry in memory was of this "
        "generation",
        response.shared()
            ? ", and those in the shared tier are of it only if another "
              "replica had it"
        : response.covered() == 0
            ? ", and there is none of the function on disk"
            : ", and those on disk are of it only if an earlier daemon had it",
        ". (fncache admin config tells which one is in use.)\n");
  }
  absl::StrAppend(&text, response.shared()
                             ? "The record of bans has it: other replicas have "
                               "it within 2 s, and it holds after a restart.\n"
                         : response.durable()
                             ? "It holds after a restart, too.\n"
                             : "There is no tier that outlives the process: "
                               "nothing had to be written down.\n");
  for (const std::string& part : response.unreached()) {
    absl::StrAppend(&text, "not reached: ", Printable(part), "\n");
  }
  return text;
}

std::string ExplainText(const v1::ExplainResponse& response) {
  std::string text;
  for (const auto& function : response.functions()) {
    absl::StrAppend(
        &text, text.empty() ? "" : "\n", Printable(function.function()), ": ",
        Number(Sum(function.reasons()), "miss", "misses"), " since the start\n",
        Most("why", function.reasons()), Most("what changed", function.paths()),
        Most("last writer of what changed", function.writers()),
        MasksText(function));
  }
  if (!response.explained()) {
    return absl::StrCat(text,
                        "\nexplain.memory is 0: requests that miss are not "
                        "remembered, so no more is known.\n");
  }
  if (!response.last().empty()) {
    Rows rows = {{"last misses", "function", "composite", "why", "detail"}};
    for (const auto& miss : response.last()) {
      rows.push_back(
          {absl::FormatTime("%m-%d %H:%M:%E3S", FromProto(miss.time()),
                            absl::UTCTimeZone()),
           Printable(miss.function()), OrDash(miss.composite()), miss.reason(),
           OrDash(miss.detail())});
    }
    absl::StrAppend(&text, "\n",
                    TextTable(rows, {false, false, false, false, false}));
  }
  for (const auto& function : response.functions()) {
    if (function.masks().empty()) continue;
    absl::StrAppend(&text,
                    "\nA mask says that the function does not read what it "
                    "hides. It was not asked:\nfncache probe asks it, mode: "
                    "shadow proves the mask in service.\n");
    break;
  }
  if (response.share() < 1 || response.paths_share() < 1) {
    absl::StrAppend(
        &text,
        "\nexplain.memory is full, or there are more misses than can be "
        "looked at: of ",
        Percent(response.share()),
        " of composites requests are remembered, of ",
        Percent(response.paths_share()), " with their paths.\n");
  }
  return text;
}

std::string ExplainJson(const v1::ExplainResponse& response) {
  Json functions = Json::Array();
  for (const auto& function : response.functions()) {
    Json masks = Json::Array();
    for (const auto& mask : function.masks()) {
      masks.Append({{"mask", mask.mask()},
                    {"count", mask.count()},
                    {"function_asked", false}});
    }
    functions.Append({
        {"function", function.function()},
        {"misses", Sum(function.reasons())},
        {"reasons", ListJson(function.reasons(), "reason")},
        {"paths", ListJson(function.paths(), "path")},
        {"writers", ListJson(function.writers(), "writer")},
        {"masks", masks},
    });
  }
  Json last = Json::Array();
  for (const auto& miss : response.last()) {
    last.Append({
        {"time_unix_seconds", UnixSeconds(miss.time())},
        {"function", miss.function()},
        {"composite", miss.composite()},
        {"reason", miss.reason()},
        {"detail", miss.detail()},
        {"writer", miss.writer()},
        {"mask", miss.mask()},
        {"key", Hex(miss.key())},
    });
  }
  return Dump({{"explained", response.explained()},
               {"composites_share", response.share()},
               {"paths_share", response.paths_share()},
               {"functions", functions},
               {"last", last}});
}

std::string ReloadText(const v1::ReloadResponse& response) {
  if (response.changed().empty() && response.needs_restart().empty()) {
    return "The settings are what they were.\n";
  }
  std::string text = ChangesText("changed", "was", "is", response.changed());
  if (response.changed().empty()) text = "Nothing has changed.\n";
  if (!response.needs_restart().empty()) {
    absl::StrAppend(&text, "\n",
                    ChangesText("not changed, as it needs a restart", "stays",
                                "file says", response.needs_restart()));
  }
  for (const std::string& note : response.notes()) {
    absl::StrAppend(&text, "\n", Printable(note), "\n");
  }
  return text;
}

std::string StartTraceText(const v1::StartTraceResponse& response) {
  return absl::StrCat("tracing to ", Printable(response.dir()), " at level ",
                      response.level(),
                      response.has_until() ? Until(true, response.until())
                                           : ", until fncache admin trace stop",
                      "\n");
}

std::string StopTraceText(const v1::StopTraceResponse& response) {
  if (response.dir().empty()) return "no trace was written\n";
  return absl::StrCat("stopped tracing to ", Printable(response.dir()), ": ",
                      Number(response.records(), "call", "calls"), " in ",
                      ShortSize(response.bytes()), ", ",
                      Grouped(response.dropped()), " dropped\n");
}

std::string LogLevelText(const v1::SetLogLevelResponse& response) {
  return absl::StrCat("log level ", response.level(),
                      Until(response.has_until(), response.until()),
                      response.old_level().empty() ? "" : "; was ",
                      response.old_level(), "\n");
}

std::string ShadowText(const v1::ShadowResponse& response) {
  return response.text().empty() ? "No function has mode: shadow.\n"
                                 : response.text();
}

}  // namespace fncache::proxy::admin
