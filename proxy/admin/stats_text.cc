// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/stats_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/json_tree.h"
#include "common/utf8.h"
#include "proxy/admin/units.h"

namespace fncache::proxy::admin {
namespace {

using Json = JsonTree;
using Row = std::vector<std::string>;

// The most columns of a name, so that the table fits 80 columns.
constexpr size_t kNameColumns = 20;
// The columns of most numbers.
constexpr size_t kNumberColumns = 6;
constexpr absl::Duration kExpirySoon = absl::Hours(7 * 24);
// The nodes of the shared tier's server that are named. --json has all.
constexpr size_t kMostNodes = 3;

std::string Percent(double share) {
  return absl::StrFormat("%.1f%%", 100 * share);
}

// Cuts a name to kNameColumns. A byte counts as a column: all text of these
// tables is ASCII or cut.
std::string Shortened(absl::string_view name) {
  const std::string printable = Printable(name);
  if (printable.size() <= kNameColumns) return printable;
  size_t end = kNameColumns - 1;
  while (end > 0 && (printable[end] & 0xc0) == 0x80) --end;
  return absl::StrCat(printable.substr(0, end), "~");
}

// Rows below each other. The first column is aligned left, the others right and
// with a width that does not change with the numbers. Columns are two blanks
// apart, or one if they would not fit otherwise.
std::string Columns(const std::vector<Row>& rows, size_t columns) {
  std::vector<size_t> widths(rows[0].size(), kNumberColumns);
  widths[0] = 0;
  size_t total = 0;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  for (const size_t width : widths) total += width + 2;
  const std::string gap = total - 2 <= columns ? "  " : " ";
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      absl::StrAppend(&text, i == 0 ? "" : gap, i == 0 ? "" : pad, row[i],
                      i == 0 && row.size() > 1 ? pad : "");
    }
    text += '\n';
  }
  return text;
}

class Table {
 public:
  Table(const v1::StatsResponse& now, const Change& change,
        const Extent& extent)
      : now_(now),
        change_(change),
        extent_(extent),
        seconds_(absl::ToDoubleSeconds(change.length)) {}

  std::string Text() const {
    const std::string head = absl::StrCat(Head(), Problems());
    const std::string rest = absl::StrCat(
        "\n",
        Kinds("calls", now_.functions(), change_.counted.functions(),
              &v1::FunctionStats::calls_by_outcome),
        "\n",
        Kinds("misses", now_.functions(), change_.counted.functions(),
              &v1::FunctionStats::misses_by_reason),
        "\n", Tiers(), Shared(), "\n", Fills(), Bypasses(), Stale(),
        Abandoned(), BackingOff(), AccessLog());
    return absl::StrCat(head, "\n", Functions(Lines(head) + Lines(rest) + 1),
                        rest);
  }

 private:
  static size_t Lines(absl::string_view text) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  std::string Rate(uint64_t count) const {
    return ShortNumber(static_cast<double>(count) / seconds_);
  }

  std::string Head() const {
    const auto& process = now_.process();
    const auto& inflight = now_.inflight();
    const double cpu =
        absl::ToDoubleSeconds(FromProto(change_.counted.process().cpu())) /
        seconds_;
    return absl::StrCat(
        "fncache ", now_.version(), "  ", now_.state(), "  up ",
        ShortDuration(FromProto(now_.uptime())), "  ",
        TimeText(FromProto(now_.now())), "\n", "cpu ", Percent(cpu),
        "  resident ", ShortSize(process.resident_bytes()), "  files ",
        process.open_files(), "/", process.max_open_files(), "  in flight ",
        ShortSize(inflight.reading_bytes() + inflight.waiting_bytes() +
                  inflight.running_bytes()),
        " of ", ShortSize(inflight.limit_bytes()), "\n");
  }

  std::string Problems() const {
    std::string text;
    for (const v1::FunctionStats& function : now_.functions()) {
      if (function.reachable()) continue;
      absl::StrAppend(&text, "! ", Printable(function.name()),
                      " cannot be reached at ", Printable(function.upstream()),
                      " for ", Lasted(function.unreachable_since()), ": ",
                      Printable(function.unreachable_why()), "\n");
    }
    for (const v1::TierStats& tier : now_.tiers()) {
      if (!tier.up()) {
        absl::StrAppend(&text, "! the ", tier.tier(),
                        " tier is down; the daemon's log says why\n");
      }
    }
    const v1::SharedStats& shared = now_.shared();
    if (now_.has_shared() && !shared.up()) {
      absl::StrAppend(&text, "! the shared tier is down for ",
                      Lasted(shared.since()), ": ", Printable(shared.why()),
                      "\n");
    }
    size_t down = 0;
    for (const v1::SharedStats::Node& node : shared.nodes()) {
      if (node.state() == "up" || ++down > kMostNodes) continue;
      absl::StrAppend(&text, "! its node ", Printable(node.address()), " is ",
                      node.state(), " for ", Lasted(node.since()),
                      node.why().empty() ? "" : ": ", Printable(node.why()),
                      "\n");
    }
    for (const auto& certificate : now_.certificates()) {
      const absl::Duration left =
          FromProto(certificate.expires()) - FromProto(now_.now());
      if (left <= absl::ZeroDuration()) {
        absl::StrAppend(&text, "! the ", certificate.side(),
                        " certificate has expired\n");
      } else if (left < kExpirySoon) {
        absl::StrAppend(&text, "! the ", certificate.side(),
                        " certificate expires in ", ShortDuration(left), "\n");
      }
    }
    return text;
  }

  // `others`: the number of lines of the rest of the table.
  std::string Functions(size_t others) const {
    std::vector<std::pair<const v1::FunctionStats*, const v1::FunctionStats*>>
        functions;
    for (int i = 0; i < now_.functions_size(); ++i) {
      functions.emplace_back(&now_.functions(i), &change_.counted.functions(i));
    }
    size_t shown = functions.size();
    if (extent_.rows > 0 && others + 1 + shown > extent_.rows) {
      // One line says how many functions are left out.
      shown = extent_.rows > others + 3 ? extent_.rows - others - 2 : 1;
      std::stable_sort(functions.begin(), functions.end(),
                       [](const auto& a, const auto& b) {
                         return Sum(a.second->calls_by_outcome()) >
                                Sum(b.second->calls_by_outcome());
                       });
    }
    std::vector<Row> rows = {{"function", "calls/s", "hits", "miss/s",
                              "hit p99", "fn p50", "fn p99", "err/s", "saved"}};
    for (size_t i = 0; i < std::min(shown, functions.size()); ++i) {
      rows.push_back(FunctionRow(*functions[i].first, *functions[i].second));
    }
    if (shown < functions.size()) {
      rows.push_back(
          {absl::StrCat("and ", functions.size() - shown, " less busy ones")});
    }
    return Columns(rows, extent_.columns);
  }

  Row FunctionRow(const v1::FunctionStats& now,
                  const v1::FunctionStats& counted) const {
    const auto quantile = [](const v1::Latency* latency, double q) {
      return latency == nullptr || latency->parts().empty()
                 ? std::string("-")
                 : ShortDuration(Quantile(*latency, q));
    };
    const absl::optional<double> rate = HitRate(counted);
    return {Shortened(now.name()),
            Rate(Sum(counted.calls_by_outcome())),
            rate.has_value() ? Percent(*rate) : "-",
            Rate(counted.misses()),
            quantile(LatencyOf(counted, "hit"), 0.99),
            quantile(&counted.upstream_latency(), 0.5),
            quantile(&counted.upstream_latency(), 0.99),
            Rate(counted.upstream_errors()),
            ShortDuration(FromProto(now.function_time_saved()))};
  }

  // Counters of all functions by their names: the rate a second, and the total.
  template <typename Functions>
  std::string Kinds(const char* what, const Functions& now,
                    const Functions& counted,
                    const Counts& (v1::FunctionStats::*counts)() const) const {
    Row names = {what};
    Row rates = {"a second"};
    Row sums = {"in all"};
    if (now.empty()) return "";
    for (const v1::Count& kind : (now[0].*counts)()) {
      uint64_t sum = 0;
      uint64_t recent = 0;
      for (const auto& function : now) {
        sum += CountOf((function.*counts)(), kind.name());
      }
      for (const auto& function : counted) {
        recent += CountOf((function.*counts)(), kind.name());
      }
      names.push_back(kind.name());
      rates.push_back(Rate(recent));
      sums.push_back(ShortCount(sum));
    }
    if (change_.since_start) rates[0] = "a second *";
    return Columns({names, rates, sums}, extent_.columns);
  }

  std::string Tiers() const {
    std::vector<Row> rows = {{"tier", "entries", "bytes", "of", "used",
                              "evicted/s", "expired/s", "errors"}};
    for (int i = 0; i < now_.tiers_size(); ++i) {
      const v1::TierStats& tier = now_.tiers(i);
      const v1::TierStats& counted = change_.counted.tiers(i);
      const auto capacity = static_cast<double>(tier.capacity_bytes());
      rows.push_back(
          {tier.tier(), Grouped(tier.entries()), ShortSize(tier.bytes()),
           ShortSize(tier.capacity_bytes()),
           capacity > 0 ? Percent(static_cast<double>(tier.bytes()) / capacity)
                        : "-",
           Rate(CountOf(counted.removed(), "evicted")),
           Rate(CountOf(counted.removed(), "expired")),
           Grouped(Sum(tier.errors()))});
    }
    return Columns(rows, extent_.columns);
  }

  std::string Lasted(const google::protobuf::Timestamp& since) const {
    return ShortDuration(FromProto(now_.now()) - FromProto(since));
  }

  std::string Shared() const {
    if (!now_.has_shared()) return "";
    const v1::SharedStats& shared = now_.shared();
    const absl::Duration clock = FromProto(shared.clock_difference());
    const auto up = std::count_if(
        shared.nodes().begin(), shared.nodes().end(),
        [](const v1::SharedStats::Node& node) { return node.state() == "up"; });
    return absl::StrCat(
        "shared  ", shared.up() ? "up" : "down", " for ",
        Lasted(shared.since()),
        shared.cluster() ? "  Cluster, nodes " : "  nodes ", up, "/",
        shared.nodes_size(), "  version ",
        shared.version().empty() ? "-" : Printable(shared.version()),
        "  round trip ", ShortDuration(FromProto(shared.round_trip())),
        "\n  clock ", clock < absl::ZeroDuration() ? "" : "+",
        ShortDuration(clock), "  bans ",
        !shared.has_bans_age()
            ? "never read"
            : absl::StrCat("read ", ShortDuration(FromProto(shared.bans_age())),
                           " ago, ",
                           shared.bans_written() ? "all there" : "some lack"),
        "\n");
  }

  std::string Fills() const {
    uint64_t fills = 0;
    for (const auto& function : change_.counted.functions()) {
      fills += function.fills();
    }
    std::string text =
        absl::StrCat("fills ", Rate(fills), "/s  dropped ",
                     Grouped(Sum(now_.fills_dropped())), "  calls refused ",
                     Grouped(now_.inflight().refused()));
    if (change_.since_start) {
      absl::StrAppend(&text, "  * a second: since the start");
    }
    return absl::StrCat(text, "\n");
  }

  // Bypasses are rare, so one line shows the most frequent reasons, and the
  // number of bypasses with other reasons. The JSON has all reasons.
  std::string Bypasses() const {
    constexpr size_t kMost = 3;
    std::map<std::string, uint64_t> sums;
    for (const v1::FunctionStats& function : now_.functions()) {
      for (const v1::Count& count : function.bypasses_by_reason()) {
        if (count.count() > 0) sums[count.name()] += count.count();
      }
    }
    if (sums.empty()) return "";
    std::vector<std::pair<std::string, uint64_t>> reasons(sums.begin(),
                                                          sums.end());
    std::stable_sort(
        reasons.begin(), reasons.end(),
        [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string text = "bypasses";
    uint64_t others = 0;
    for (size_t i = 0; i < reasons.size(); ++i) {
      const auto& [reason, count] = reasons[i];
      if (i >= kMost) {
        others += count;
        continue;
      }
      absl::StrAppend(&text, "  ", Printable(reason), " ", ShortCount(count));
    }
    if (others > 0) {
      absl::StrAppend(&text, "  others ", ShortCount(others));
    }
    return absl::StrCat(text, "\n");
  }

  // The sum of a number over the functions of a reading.
  template <typename Number>
  static uint64_t Over(const v1::StatsResponse& stats,
                       Number (v1::FunctionStats::*number)() const) {
    uint64_t sum = 0;
    for (const v1::FunctionStats& function : stats.functions()) {
      sum += static_cast<uint64_t>((function.*number)());
    }
    return sum;
  }

  // Lines about stale answers, which few daemons have. Empty without counts.
  std::string Stale() const {
    using Stats = v1::FunctionStats;
    uint64_t served_over = 0;
    for (const Stats& function : now_.functions()) {
      served_over += Sum(function.errors_served_over_by_code());
    }
    const uint64_t refused = Over(now_, &Stats::refreshes_refused);
    const uint64_t superseded = Over(now_, &Stats::entries_superseded);
    if (Over(now_, &Stats::refreshes) + served_over + refused + superseded ==
        0) {
      return "";
    }
    return absl::StrCat(
        "refreshes ", Rate(Over(change_.counted, &Stats::refreshes)),
        "/s  running ", Grouped(Over(now_, &Stats::refreshes_running)),
        "  failed ", Grouped(Over(now_, &Stats::refreshes_failed)),
        "  refused ", Grouped(refused), "\nerrors served over ",
        Grouped(served_over), "  old answers dropped ", Grouped(superseded),
        "\n");
  }

  std::string Abandoned() const {
    using Stats = v1::FunctionStats;
    const uint64_t refused = Over(now_, &Stats::abandoned_calls_refused);
    if (Over(now_, &Stats::abandoned_calls) + refused == 0) return "";
    return absl::StrCat(
        "abandoned ", Rate(Over(change_.counted, &Stats::abandoned_calls)),
        "/s  running ", Grouped(Over(now_, &Stats::abandoned_calls_running)),
        "  stored ", Grouped(Over(now_, &Stats::abandoned_calls_finished)),
        "  refused ", Grouped(refused), "\n");
  }

  std::string BackingOff() const {
    int64_t keys = 0;
    for (const v1::FunctionStats& function : now_.functions()) {
      keys += function.keys_backing_off();
    }
    if (keys <= 0) return "";
    return absl::StrCat("keys backing off ",
                        Grouped(static_cast<uint64_t>(keys)), "\n");
  }

  std::string AccessLog() const {
    if (now_.access_log_lines_dropped() == 0) return "";
    return absl::StrCat(
        "access log ", Rate(change_.counted.access_log_lines_written()),
        "/s  dropped ", Grouped(now_.access_log_lines_dropped()), "\n");
  }

  const v1::StatsResponse& now_;
  const Change& change_;
  const Extent& extent_;
  const double seconds_;
};

double UnixSeconds(absl::Time time) {
  return absl::ToDoubleSeconds(time - absl::UnixEpoch());
}

Json CountsJson(const Counts& counts) {
  Json object = Json::Object();
  for (const v1::Count& count : counts) object.Set(count.name(), count.count());
  return object;
}

Json LatencyJson(const v1::Latency& latency) {
  return {
      {"count", CountIn(latency)},
      {"mean_seconds", absl::ToDoubleSeconds(Mean(latency))},
      {"p50_seconds", absl::ToDoubleSeconds(Quantile(latency, 0.5))},
      {"p99_seconds", absl::ToDoubleSeconds(Quantile(latency, 0.99))},
  };
}

// The names are those of /statusz?format=json.
Json FunctionCountsJson(const v1::FunctionStats& function,
                        absl::Duration length) {
  Json latency = Json::Object();
  for (const auto& one : function.latency_by_outcome()) {
    latency.Set(one.outcome(), LatencyJson(one.latency()));
  }
  const uint64_t calls = Sum(function.calls_by_outcome());
  const absl::optional<double> rate = HitRate(function);
  return {
      {"calls", calls},
      {"calls_per_second",
       static_cast<double>(calls) / absl::ToDoubleSeconds(length)},
      {"calls_by_outcome", CountsJson(function.calls_by_outcome())},
      {"hits", function.hits()},
      {"misses", function.misses()},
      {"misses_by_reason", CountsJson(function.misses_by_reason())},
      {"bypasses_by_reason", CountsJson(function.bypasses_by_reason())},
      {"hit_rate", rate.has_value() ? Json(*rate) : Json()},
      {"fills", function.fills()},
      {"fills_dropped", function.fills_dropped()},
      {"cache_errors", function.cache_errors()},
      {"function_seconds_saved",
       absl::ToDoubleSeconds(FromProto(function.function_time_saved()))},
      {"upstream_calls", Sum(function.upstream_calls_by_code())},
      {"upstream_errors", function.upstream_errors()},
      {"upstream_calls_by_code", CountsJson(function.upstream_calls_by_code())},
      {"latency_by_outcome", latency},
      {"upstream_latency", LatencyJson(function.upstream_latency())},
      {"refreshes", function.refreshes()},
      {"refreshes_failed", function.refreshes_failed()},
      {"refreshes_refused", function.refreshes_refused()},
      {"errors_served_over", Sum(function.errors_served_over_by_code())},
      {"errors_served_over_by_code",
       CountsJson(function.errors_served_over_by_code())},
      {"entries_superseded", function.entries_superseded()},
      {"abandoned_calls", function.abandoned_calls()},
      {"abandoned_calls_finished", function.abandoned_calls_finished()},
      {"abandoned_calls_refused", function.abandoned_calls_refused()},
  };
}

Json FunctionJson(const v1::FunctionStats& now, absl::Duration uptime,
                  const v1::FunctionStats& counted, absl::Duration length) {
  const bool reachable = now.reachable();
  return {
      {"name", now.name()},
      {"upstream", now.upstream()},
      {"reachable", reachable},
      {"unreachable_since_unix_seconds",
       reachable ? Json()
                 : Json(UnixSeconds(FromProto(now.unreachable_since())))},
      {"unreachable_why", reachable ? Json() : Json(now.unreachable_why())},
      {"calls_in_flight", now.calls_in_flight()},
      {"flights", now.flights()},
      {"refreshes_running", now.refreshes_running()},
      {"abandoned_calls_running", now.abandoned_calls_running()},
      {"keys_backing_off", now.keys_backing_off()},
      {"interval", FunctionCountsJson(counted, length)},
      {"since_start", FunctionCountsJson(now, uptime)},
  };
}

Json SharedJson(const v1::SharedStats& now) {
  Json nodes = Json::Array();
  for (const auto& node : now.nodes()) {
    nodes.Append({{"address", node.address()},
                  {"state", node.state()},
                  {"since_unix_seconds", UnixSeconds(FromProto(node.since()))},
                  {"why", node.why()}});
  }
  const auto seconds = [](const google::protobuf::Duration& duration) {
    return absl::ToDoubleSeconds(FromProto(duration));
  };
  return {
      {"up", now.up()},
      {"since_unix_seconds", UnixSeconds(FromProto(now.since()))},
      {"why", now.why()},
      {"cluster", now.cluster()},
      {"nodes", nodes},
      {"version", now.version()},
      {"round_trip_seconds", seconds(now.round_trip())},
      {"clock_difference_seconds", seconds(now.clock_difference())},
      {"bans_age_seconds",
       now.has_bans_age() ? Json(seconds(now.bans_age())) : Json()},
      {"bans_written", now.bans_written()},
      {"lookups", CountsJson(now.lookups())},
      {"writes", CountsJson(now.writes())},
  };
}

}  // namespace

std::string StatsTable(const v1::StatsResponse& now, const Change& change,
                       const Extent& extent) {
  return Table(now, change, extent).Text();
}

std::string StatsJson(const v1::StatsResponse& now, const Change& change) {
  const absl::Duration uptime =
      std::max(FromProto(now.uptime()), absl::Milliseconds(1));
  Json functions = Json::Array();
  for (int i = 0; i < now.functions_size(); ++i) {
    functions.Append(FunctionJson(now.functions(i), uptime,
                                  change.counted.functions(i), change.length));
  }
  Json tiers = Json::Array();
  for (int i = 0; i < now.tiers_size(); ++i) {
    const v1::TierStats& tier = now.tiers(i);
    const v1::TierStats& counted = change.counted.tiers(i);
    tiers.Append({
        {"tier", tier.tier()},
        {"up", tier.up()},
        {"entries", tier.entries()},
        {"bytes", tier.bytes()},
        {"capacity_bytes", tier.capacity_bytes()},
        {"entries_removed",
         {{"interval", CountsJson(counted.removed())},
          {"since_start", CountsJson(tier.removed())}}},
        {"errors",
         {{"interval", CountsJson(counted.errors())},
          {"since_start", CountsJson(tier.errors())}}},
    });
  }
  Json certificates = Json::Array();
  for (const auto& certificate : now.certificates()) {
    certificates.Append({
        {"side", certificate.side()},
        {"expires_unix_seconds", UnixSeconds(FromProto(certificate.expires()))},
        {"last_reload_failed", certificate.last_reload_failed()},
    });
  }
  const auto& inflight = now.inflight();
  const Json json = {
      {"version", now.version()},
      {"state", now.state()},
      {"time_unix_seconds", UnixSeconds(FromProto(now.now()))},
      {"uptime_seconds", absl::ToDoubleSeconds(FromProto(now.uptime()))},
      {"interval_seconds", absl::ToDoubleSeconds(change.length)},
      {"process",
       {{"cpu_seconds",
         {{"interval",
           absl::ToDoubleSeconds(FromProto(change.counted.process().cpu()))},
          {"since_start",
           absl::ToDoubleSeconds(FromProto(now.process().cpu()))}}},
        {"resident_bytes", now.process().resident_bytes()},
        {"open_files", now.process().open_files()},
        {"max_open_files", now.process().max_open_files()}}},
      {"inflight_bytes",
       {{"reading", inflight.reading_bytes()},
        {"waiting", inflight.waiting_bytes()},
        {"running", inflight.running_bytes()},
        {"limit", inflight.limit_bytes()}}},
      {"inflight_refused",
       {{"interval", change.counted.inflight().refused()},
        {"since_start", inflight.refused()}}},
      {"functions", functions},
      {"tiers", tiers},
      {"shared", now.has_shared() ? SharedJson(now.shared()) : Json()},
      {"fills_dropped",
       {{"interval", CountsJson(change.counted.fills_dropped())},
        {"since_start", CountsJson(now.fills_dropped())}}},
      {"access_log_lines",
       {{"interval",
         {{"written", change.counted.access_log_lines_written()},
          {"dropped", change.counted.access_log_lines_dropped()}}},
        {"since_start",
         {{"written", now.access_log_lines_written()},
          {"dropped", now.access_log_lines_dropped()}}}}},
      {"certificates", certificates},
  };
  return json.Dump() + "\n";
}

}  // namespace fncache::proxy::admin
