// SPDX-License-Identifier: Apache-2.0
// Search: which fields of a request matter, found by asking about groups of
// them.
//
//   altered, all together       a group that matters is halved until single
//   left out, all together      fields stand
//   set to likely values, all together, once for each number of a value: also
//                               fields that are not there
//   all that seems unread, left out, altered and set at random, three times
//   guessed fields set, at the end: what their names do says nothing of others
//
// It knows fields only by their numbers, and nothing of functions. Its caller
// says whether the answer differs when some fields are changed.
//
// Where a group matters and neither of its halves does, the fields that matter
// only together are looked for (QuickXplain, Junker 2004), and all of them
// count as read.
//
// Belongs to one thread.
#ifndef FNCACHE_RUNNER_PROBE_SEARCH_H_
#define FNCACHE_RUNNER_PROBE_SEARCH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "runner/probe/fields.h"

namespace fncache::runner::probe {

// The result of a question.
enum class Verdict {
  kSame,
  kDiffers,
  kEnd,  // nothing more can be asked: the search ends as it stands
};

class Search {
 public:
  // Whether the answer differs when the fields are changed so; one Change for
  // each field, and what the new values are made from.
  using Ask =
      std::function<Verdict(const std::vector<Change>& changes, uint64_t seed)>;

  // Those of `read` are known to be read (one for each field). Fields lie in
  // `groups` where it is known which of them go together: a
  // number for each field, equal for those that do. Groups are asked about in
  // the order of their numbers, whole for as long as possible.
  Search(const std::vector<Field>& fields, std::vector<int> groups,
         const std::vector<bool>& read, uint64_t seed, Ask ask);

  // Once.
  void Run();

  // Then, of a field:
  enum class Result { kUntried, kUnread, kRead };
  Result ResultOf(int field) const;
  // How the fields that were found to be read made a difference, in that order.
  struct Found {
    int field;
    Change change;
    uint64_t seed;  // of the new value
  };
  const std::vector<Found>& found() const { return found_; }
  // Whether all was asked about, the rounds at random included; guessed fields
  // aside.
  bool complete() const { return complete_; }
  // Whether all of those were set, too.
  bool guesses_complete() const { return guesses_complete_; }

 private:
  // A method of changing fields, under which the answer differs or not.
  struct Method {
    enum class Kind { kAlter, kRemove, kSet, kMixed } kind;
    uint64_t seed;  // of kSet the number of the value
  };
  using Items = std::vector<int>;

  // All fields not found read yet that `method` can change, in the order of
  // asking. Guessed ones, or all others.
  Items Left(const Method& method, bool guessed = false) const;
  // The topmost of those whose children were all not found read.
  Items WholeLeft() const;

  // Asks about all the items together. A kEnd counts as the same, and sets
  // ended_.
  bool Differs(const Method& method, const Items& items);
  // The result of Differs for these items; without asking where none is given.
  std::vector<Change> ChangesOf(const Method& method, const Items& items) const;
  // Asks about the items until none that was found read is among them. Whether
  // there was any.
  bool Sift(const Method& method, const Items& items);
  // `items` matter together where `known`. Whether any was found.
  bool Narrow(const Method& method, const Items& items, bool known);
  bool NarrowOne(const Method& method, int item, bool known);
  // The fewest of some items that matter together.
  Items Fewest(const Method& method, const Items& kept, bool grown,
               const Items& items);
  // Where to cut the list in two.
  size_t Middle(const Items& items) const;
  void Settle(const Method& method, const Items& items, bool settled);
  void MarkRead(int field);

  const std::vector<Field>& fields_;
  const std::vector<int> groups_;
  const uint64_t seed_;
  const Ask ask_;

  std::vector<bool> read_;
  std::vector<Found> found_;
  // Whether a field was in a group that did not matter, the last time: altered,
  // left out, and at random, which begins as yes.
  std::vector<bool> altered_, removed_, mixed_;
  // Likewise by the number of the value that it was set to, a bit for each.
  std::vector<uint8_t> set_;
  // Has a field below it that was found read, or is one.
  std::vector<bool> holds_read_;
  bool guessing_ = false;
  int guesses_read_ = 0;
  bool ended_ = false;
  bool complete_ = false;
  bool guesses_complete_ = false;
};

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_SEARCH_H_
