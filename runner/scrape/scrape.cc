// SPDX-License-Identifier: Apache-2.0
#include "runner/scrape/scrape.h"

#include <limits>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/http_client.h"

namespace fncache::runner::scrape {
namespace {

// Calls `sample(labels, value)` for each sample of `name`.
template <typename Sample>
void ForEachSample(absl::string_view exposition, absl::string_view name,
                   const Sample& sample) {
  for (const absl::string_view line : absl::StrSplit(exposition, '\n')) {
    if (!absl::StartsWith(line, name)) continue;
    const absl::string_view rest = line.substr(name.size());
    if (rest.empty() || (rest[0] != '{' && rest[0] != ' ')) continue;
    const size_t space = rest.rfind(' ');
    double value = 0;
    if (absl::SimpleAtod(rest.substr(space + 1), &value)) {
      sample(rest.substr(0, space), value);
    }
  }
}

// A bucket's upper bound in seconds, from its labels.
double UpperBound(absl::string_view labels) {
  constexpr absl::string_view kBound = "le=\"";
  const size_t at = labels.find(kBound);
  if (at == absl::string_view::npos) return 0;
  const absl::string_view rest = labels.substr(at + kBound.size());
  double bound = 0;
  return absl::SimpleAtod(rest.substr(0, rest.find('"')), &bound) ? bound : 0;
}

}  // namespace

absl::StatusOr<std::string> Get(const std::string& address,
                                const std::string& path,
                                absl::Duration patience) {
  HttpClient::Options options;
  options.timeout = patience;
  const std::string url = absl::StrCat("http://", address, path);
  auto answer = HttpClient().Get(url, options);
  if (!answer.ok()) return answer.status();
  if (answer->too_large || answer->status != 200) {
    return absl::UnavailableError(absl::StrCat(
        url, answer->too_large ? ": is too large, status " : ": status ",
        answer->status));
  }
  return std::move(answer->body);
}

double Sum(absl::string_view exposition, absl::string_view name,
           absl::string_view label) {
  double sum = 0;
  ForEachSample(exposition, name, [&](absl::string_view labels, double value) {
    if (absl::StrContains(labels, label)) sum += value;
  });
  return sum;
}

absl::Duration Quantile(absl::string_view exposition, absl::string_view name,
                        absl::string_view label, double fraction) {
  // How many durations are at most the bound, over all series.
  std::map<double, double> below;
  ForEachSample(exposition, absl::StrCat(name, "_bucket"),
                [&](absl::string_view labels, double count) {
                  if (absl::StrContains(labels, label)) {
                    below[UpperBound(labels)] += count;
                  }
                });
  if (below.empty() || below.rbegin()->second <= 0) {
    return absl::ZeroDuration();
  }
  const double rank = fraction * below.rbegin()->second;
  double from = 0;
  double counted = 0;
  for (const auto& [bound, count] : below) {
    if (count >= rank && count > counted) {
      if (bound == std::numeric_limits<double>::infinity()) break;
      return absl::Seconds(from + (bound - from) * (rank - counted) /
                                      (count - counted));
    }
    counted = count;
    from = bound;
  }
  return absl::Seconds(from);
}

}  // namespace fncache::runner::scrape
