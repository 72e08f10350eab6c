// SPDX-License-Identifier: Apache-2.0
#include "runner/scrape/scrape.h"

#include <curl/curl.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace fncache::runner::scrape {
namespace {

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};

size_t TakeBody(char* bytes, size_t size, size_t count, void* body) {
  static_cast<std::string*>(body)->append(bytes, size * count);
  return size * count;
}

absl::Status Failed(absl::string_view url, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat(url, ": ", why));
}

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
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::string url = absl::StrCat("http://", address, path);
  if (started != CURLE_OK) return Failed(url, curl_easy_strerror(started));
  const std::unique_ptr<CURL, EasyDeleter> easy(curl_easy_init());
  if (easy == nullptr) return Failed(url, "out of memory");
  CURL* const curl = easy.get();
  std::string body;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(curl, CURLOPT_PROXY, "");  // none of the environment's
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                   static_cast<long>(std::max<int64_t>(
                       1, absl::ToInt64Milliseconds(patience))));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, TakeBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  const CURLcode code = curl_easy_perform(curl);
  if (code != CURLE_OK) return Failed(url, curl_easy_strerror(code));
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) return Failed(url, absl::StrCat("status ", status));
  return body;
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
