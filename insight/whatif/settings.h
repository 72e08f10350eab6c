// SPDX-License-Identifier: Apache-2.0
// The settings under which a what-if plays a trace, and how their names and
// texts become values.
//
// Names and texts are those of the daemon's settings. The daemon's own table
// parses them, and this module does not know it. The table's owner implements
// SettingsReader, and main connects the two.
//
// Plain data, and an interface whose implementations are thread-safe.
#ifndef FNCACHE_INSIGHT_WHATIF_SETTINGS_H_
#define FNCACHE_INSIGHT_WHATIF_SETTINGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache/key/mask.h"
#include "cache/policy.h"

namespace fncache::insight::whatif {

struct FunctionSettings {
  cache::PolicyOptions policy;
  cache::key::MaskSet masks;
};

struct CacheSettings {
  uint64_t memory = 256ull << 20;  // bytes
  FunctionSettings defaults;
  // The functions with settings of their own.
  std::map<std::string, FunctionSettings> functions;

  const FunctionSettings& Of(const std::string& function) const;
};

// By name: `ttl.max`, or `functions.NAME.ttl.max`. A list has any number of
// texts, any other setting one.
using SettingTexts = std::map<std::string, std::vector<std::string>>;

class SettingsReader {
 public:
  virtual ~SettingsReader() = default;

  // The names that Read takes, without a function's.
  virtual std::vector<std::string> Names() const = 0;
  // Whether it accepts this name, a function's or not.
  virtual bool Takes(absl::string_view name) const = 0;
  // The texts of a value: commas outside quotes separate a list's.
  virtual std::vector<std::string> Split(absl::string_view name,
                                         absl::string_view text) const = 0;
  // InvalidArgument names the setting and what is accepted, in one line.
  virtual absl::StatusOr<CacheSettings> Read(
      const SettingTexts& texts) const = 0;
  // The behaviour under the daemon's settings that cannot be played again, one
  // line each. Print it beside the results.
  virtual std::vector<std::string> NotPlayed(
      const std::map<std::string, std::string>& settings) const = 0;
};

// The texts of `base`, replaced by those of `over`. If `over` sets something
// for all functions, this also replaces it for the functions that `base` sets
// apart.
SettingTexts Overlaid(SettingTexts base, const SettingTexts& over);

}  // namespace fncache::insight::whatif

#endif  // FNCACHE_INSIGHT_WHATIF_SETTINGS_H_
