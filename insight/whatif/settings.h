// SPDX-License-Identifier: Apache-2.0
// The settings that a what-if plays a trace under, and how they come of their
// names and texts.
//
// Names and texts are those of the daemon's settings. What parses them is the
// daemon's own table, which this room does not know: whoever owns the table
// implements SettingsReader, and main brings the two together.
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
  // Of functions for which something else was said.
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
  // Whether it takes this one, a function's or not.
  virtual bool Takes(absl::string_view name) const = 0;
  // The texts of a value: a list's are parted by commas outside quotes.
  virtual std::vector<std::string> Split(absl::string_view name,
                                         absl::string_view text) const = 0;
  // InvalidArgument names the setting and what is accepted, in one line.
  virtual absl::StatusOr<CacheSettings> Read(
      const SettingTexts& texts) const = 0;
  // What the settings of a daemon had it do that cannot be played again, in a
  // line each: it is to be told beside what was played.
  virtual std::vector<std::string> NotPlayed(
      const std::map<std::string, std::string>& settings) const = 0;
};

// The texts of `base` with those of `over` in their place. What `over` says of
// all functions holds for those, too, of which `base` says something of their
// own.
SettingTexts Overlaid(SettingTexts base, const SettingTexts& over);

}  // namespace fncache::insight::whatif

#endif  // FNCACHE_INSIGHT_WHATIF_SETTINGS_H_
