// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/tuning_log.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache/key/canonicalizer.h"
#include "cache/response_digest.h"
#include "common/log.h"
#include "insight/request/nodes.h"
#include "insight/request/response_difference.h"

namespace fncache::proxy::serving {
namespace {

// Bytes of both answers. To find their paths takes a worker 6 ms for a MiB, to
// find their fields 10 ms. Beyond the second limit neither is sought.
constexpr size_t kMostCompared = 256 << 10;
constexpr size_t kMostDigested = 1 << 20;
constexpr size_t kMostPaths = 5;
constexpr size_t kMostPath = 256;  // bytes of one path

// Paths contain names that users chose, which may be long.
std::string Cut(const std::string& path) {
  return path.size() <= kMostPath
             ? path
             : absl::StrCat(path.substr(0, kMostPath), "...");
}

size_t SizeOf(absl::Span<const absl::string_view> pieces) {
  size_t size = 0;
  for (const absl::string_view piece : pieces) size += piece.size();
  return size;
}

void Line(LogLevel level, absl::string_view what, LogLimiter* limiter,
          absl::Time now, std::vector<LogField> fields) {
  uint64_t unlogged = 0;
  if (!limiter->Allows(now, &unlogged)) return;
  if (unlogged > 0) fields.emplace_back("unlogged", unlogged);
  Log(level, what, fields);
}

}  // namespace

std::string PathsDiffering(absl::Span<const absl::string_view> first,
                           absl::Span<const absl::string_view> second) {
  const size_t size = SizeOf(first) + SizeOf(second);
  if (size > kMostDigested) return "";
  if (size > kMostCompared) {
    const cache::ResponseDigester digester;
    cache::key::Canonicalizer canonicalizer;
    const cache::ResponseDigest ours = digester.Compute(first, &canonicalizer);
    const cache::ResponseDigest theirs =
        digester.Compute(second, &canonicalizer);
    if (!ours.readable || !theirs.readable) return "";
    return absl::StrJoin(cache::ResponseDigester::FieldsDiffering(ours, theirs),
                         ", ");
  }
  // The hashes of values are not shown, so any seed does.
  insight::request::ResponseComparer comparer(
      insight::request::FingerprintSecret::Random(), cache::key::Seed{});
  std::vector<std::string> paths;
  for (const auto& difference : comparer.Compare(first, second, kMostPaths)) {
    paths.push_back(Cut(difference.path));
  }
  return absl::StrJoin(paths, ", ");
}

const char* ReadsName(Reads reads) {
  switch (reads) {
    case Reads::kNothing:
      return "";
    case Reads::kUndecided:
      return "drift";
    case Reads::kTimes:
      return "times";
    case Reads::kAll:
      return "versions";
  }
  return "";
}

void TuningLog::Found(const Finding& finding, Reads reads,
                      const StepNames& step, absl::string_view paths,
                      absl::Time now) {
  if (!finding.reads && !finding.varies) return;
  std::vector<LogField> fields = {{"function", function_},
                                  {"composite", step.composite}};
  if (finding.reads) fields.emplace_back("reads", ReadsName(reads));
  std::vector<LogField> found = fields;
  if (!paths.empty()) found.emplace_back("paths", paths);
  if (finding.reads) {
    Line(LogLevel::kInfo,
         "tune: the function reads drift: requests that differ in it are "
         "misses from now on",
         &steps_, now, found);
  } else if (finding.varies) {
    Line(LogLevel::kInfo,
         "tune: the function gave equal requests other answers: no questions "
         "about this step for some time",
         &steps_, now, found);
  }
  if (finding.revoked_hits == 0) return;
  fields.emplace_back("hits", finding.revoked_hits);
  Line(LogLevel::kError,
       "tune: the function reads drift that earlier hits differed in: their "
       "answers may have been late, and such requests are misses from now on",
       &revoked_, now, fields);
}

}  // namespace fncache::proxy::serving
