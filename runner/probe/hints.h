// SPDX-License-Identifier: Apache-2.0
// The hints of a function's answers (docs/depends.md) beside the findings of a
// probe. A hint says which requests get the same answer: those with the same
// key by hint (cache/key/read_fields.h). So it decides the answer to many
// questions, and a question can show that it is wrong.
//
// Thread-compatible.
#ifndef FNCACHE_RUNNER_PROBE_HINTS_H_
#define FNCACHE_RUNNER_PROBE_HINTS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "cache/key/hint.h"
#include "proto/function_v1_fwd.h"
#include "runner/probe/fields.h"
#include "runner/probe/search.h"

namespace fncache::runner::probe {

// The hint of one answer.
class ReceivedHint {
 public:
  using Request = apiextensions::fn::proto::v1::RunFunctionRequest;

  // The metadata as it came; nullopt if there was none.
  explicit ReceivedHint(const absl::optional<std::string>& metadata);

  // Null if none came, or it is refused.
  const cache::key::Hint* hint() const { return hint_ ? &*hint_ : nullptr; }
  // Why it is refused, as a daemon says it; empty if it is not.
  const std::string& refused() const { return refused_; }

  // Whether the hint, which came for one of the requests, says that both get
  // the same answer. False without a hint.
  bool SaysSame(const Request& a, const Request& b) const;
  // Whether it may be that the field at this path, as masks spell it, decides
  // the answer. True without a hint.
  bool Counts(absl::string_view mask) const {
    return !hint_ || hint_->Counts(mask);
  }

 private:
  absl::optional<cache::key::Hint> hint_;
  std::string refused_;
};

// Collects the groups of fields that changed an answer although the hint says
// that it stays the same, and keeps the smallest ones. `fields` outlives it.
class UnnamedReads {
 public:
  explicit UnnamedReads(const std::vector<Field>& fields) : fields_(fields) {}

  void Add(const std::vector<Change>& changes);
  // Their masks; of fields that matter together only, all in one text.
  std::set<std::string> Masks() const;

 private:
  using Group = std::vector<int>;
  // Whether each field of `group` is, or is in, one of `of`.
  bool IsWithin(const Group& group, const Group& of) const;

  const std::vector<Field>& fields_;
  std::vector<Group> groups_;
};

struct HintFindings {
  struct Path {
    std::string path;
    // Something at or below it was found read.
    bool read = false;
  };
  int answers = 0;          // of which it is known whether they have a hint
  int hints = 0;            // those that can be used
  std::string refused;      // why one cannot be used; empty: all can
  bool pure = false;        // all hints say so
  std::vector<Path> paths;  // of all hints, sorted
  // Fields that were found read although no hint names them (UnnamedReads).
  std::vector<std::string> unnamed;
  bool trusted = false;
  int calls_saved = 0;  // questions that a hint decided
};

// All but the last three.
HintFindings CompareHints(const std::vector<ReceivedHint>& hints,
                          const std::vector<Field>& fields,
                          const std::vector<Search::Result>& results);

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_HINTS_H_
