// SPDX-License-Identifier: Apache-2.0
// Reads whatever bytes as a trace's file, explains it and plays it: nothing
// crashes, and nothing is without end.
#include <cstddef>
#include <cstdint>
#include <string>

#include "insight/explain/analysis.h"
#include "insight/trace/block.h"
#include "insight/trace/reader.h"
#include "insight/whatif/engine.h"
#include "insight/whatif/info.h"
#include "insight/whatif/recording.h"

namespace {

// The input is either a file, or what a block of a file holds: records that no
// checksum guards are found sooner.
std::string FileOf(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (size > 0 && data[0] == 'f') return bytes;
  return std::string(fncache::insight::trace::kFileMagic) +
         fncache::insight::trace::MakeBlock(bytes);
}

void Play(const std::string& file) {
  namespace whatif = fncache::insight::whatif;
  auto reader = fncache::insight::trace::TraceReader::OfBytes(file);
  if (!reader.ok()) return;
  const auto recording = whatif::Read(
      reader->get(), {*fncache::cache::key::MaskSet::Parse({"@versions"})});
  if (!recording.ok()) return;
  whatif::InfoText(whatif::InfoOf(*recording));
  whatif::Variant variant;
  variant.masked_of.assign(recording->functions.size(), 0);
  for (const auto arrivals :
       {whatif::Arrivals::kRecorded, whatif::Arrivals::kModel}) {
    whatif::Replay(*recording, variant, {arrivals, true});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxInput = 1 << 16;
  if (size > kMaxInput) return 0;
  const std::string file = FileOf(data, size);
  Play(file);
  fncache::insight::explain::AnalysisOptions options;
  options.most_masks = 2;
  const auto analysis = fncache::insight::explain::Analyze(
      [&file] { return fncache::insight::trace::TraceReader::OfBytes(file); },
      options);
  if (!analysis.ok()) return 0;
  fncache::insight::explain::AnalysisText(*analysis, "path");
  fncache::insight::explain::AnalysisJson(*analysis);
  return 0;
}
