// SPDX-License-Identifier: Apache-2.0
// MasksInForce: the masks that a daemon had while it wrote a trace, as the
// trace's header says. Values that they hide are in the trace, but were in no
// key.
//
// A trace of `fncache load` does not know the daemon's masks. Belongs to one
// thread: it remembers earlier answers.
#ifndef FNCACHE_INSIGHT_TRACE_MASKS_IN_FORCE_H_
#define FNCACHE_INSIGHT_TRACE_MASKS_IN_FORCE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "insight/request/compare.h"
#include "insight/trace/reader.h"

namespace fncache::insight::trace {

class MasksInForce {
 public:
  // `more` are in force, too, for every function. InvalidArgument: one of them
  // is no path. Any path counts, since older releases accepted masks that newer
  // ones refuse.
  static absl::StatusOr<MasksInForce> Of(const TraceHeader& header,
                                         const std::vector<std::string>& more);

  // The masks of this function, as they were written.
  const std::vector<std::string>& Texts(const std::string& function) const;
  // Whether its masks hide the path, spelled as RequestNodes::Spell does.
  bool Hide(const std::string& function, absl::string_view path) const;
  // Whether any function has any.
  bool any() const;

 private:
  struct Masks {
    std::vector<std::string> texts;
    request::MaskMatcher matcher;
  };
  const Masks& MasksOf(const std::string& function) const;

  // "" has the masks of functions without masks of their own.
  std::map<std::string, Masks> masks_;
};

}  // namespace fncache::insight::trace

#endif  // FNCACHE_INSIGHT_TRACE_MASKS_IN_FORCE_H_
