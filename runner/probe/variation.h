// SPDX-License-Identifier: Apache-2.0
// The variation in a trace: which paths changed, and at which of its calls.
//
// Built by one thread, read by any number.
#ifndef FNCACHE_RUNNER_PROBE_VARIATION_H_
#define FNCACHE_RUNNER_PROBE_VARIATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runner/probe/fields.h"

namespace fncache::runner::probe {

class Variation {
 public:
  struct Path {
    std::string path;  // as insight/request spells it, one of those of the mask
    std::vector<uint32_t> calls;  // at which it changed, in order
  };

  // The next call was compared with its composite's one before; these are the
  // paths that changed, as insight/request spells them. Where one of them is
  // none that a mask may hide, no mask would have saved that call, and none of
  // its paths count.
  void AddCall(const std::vector<absl::string_view>& changed);

  // How many calls were compared.
  uint32_t calls() const { return calls_; }
  // By the path as masks spell it.
  const std::map<std::string, Path>& paths() const { return paths_; }

  // A number for each field, equal for those that changed at the same calls.
  // The field that changed most often has the smallest, one that never did the
  // greatest.
  std::vector<int> GroupsOf(const std::vector<Field>& fields) const;

 private:
  uint32_t calls_ = 0;
  std::map<std::string, Path> paths_;
};

// `path`, as insight/request spells it, as a mask is written: indices become
// `*`.
std::string SpelledAsMask(absl::string_view path);

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_VARIATION_H_
