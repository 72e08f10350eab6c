// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/key/key_checker.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/key/canonical_walk.h"
#include "cache/key/reencode.h"
#include "cache/key/walk_machine.h"
#include "cache/wire/schema.h"
#include "tests/cache/key/drift_oracle.h"
#include "tests/cache/key/unfold.h"

namespace fncache::cache::key {

namespace v1 = apiextensions::fn::proto::v1;

KeyChecker::KeyChecker(const MaskSet& masks, KeySource source, KeyHash hash,
                       bool drift)
    : masks_(masks),
      source_(source),
      drift_(drift),
      digester_(Seed{}, {"f", "m", "g", source, hash, drift}, masks) {}

Digest KeyChecker::Compute(absl::string_view bytes) {
  return digester_.Compute({bytes}, &scratch_);
}

std::string KeyChecker::CheckOne(absl::string_view bytes, bool* fast) {
  // On the heap and of exactly this size, so that a sanitizer sees what is read
  // beyond it.
  const std::vector<char> exact(bytes.begin(), bytes.end());
  bytes = absl::string_view(exact.data(), exact.size());
  const Judged judged = Judge(bytes, source_);
  const Digest digest = Compute(bytes);
  if (digest.keyed != judged.keyed) {
    return absl::StrCat("keyed ", digest.keyed, ", by protobuf ", judged.keyed);
  }
  if (judged.keyed && digest.tag != judged.message.meta().tag()) {
    return "another tag";
  }
  if (!judged.keyed && !digest.tag.empty()) return "a tag without a key";
  const Key key = digest.key;
  std::string wrong = CheckSlices(bytes, digest);
  if (!wrong.empty()) return wrong;
  return judged.by_tag ? CheckTagPart(bytes, judged, key)
                       : CheckForm(bytes, judged, key, fast);
}

std::string KeyChecker::CheckTagPart(absl::string_view bytes,
                                     const Judged& judged, const Key& key) {
  // Protobuf's own encoding of what counts has the same key; it may be deeper
  // by one.
  const std::string rest = judged.message.SerializeAsString();
  const Digest again = Compute(rest);
  if (again.keyed && again.key != key) return "another key without the rest";
  // If the whole request parses, clearing the skipped fields has the same
  // result.
  Judged whole = judged;
  if (!ProtobufParses(bytes, &whole.message)) return "";
  whole.message.clear_observed();
  whole.message.clear_desired();
  whole.message.clear_input();
  whole.message.clear_credentials();
  return SameKey(masks_, whole, judged) ? "" : "the oracle is of two minds";
}

std::string KeyChecker::CheckSlices(absl::string_view bytes,
                                    const Digest& whole) {
  const bool keyed = whole.keyed;
  const Key key = whole.key;
  const std::string tag(whole.tag);
  const Key drift = whole.drift;
  const size_t first = bytes.size() / 3;
  const size_t second = first + (bytes.size() * 31 % 97) % (first + 1);
  std::vector<std::vector<char>> parts;
  std::vector<absl::string_view> slices;
  for (const absl::string_view part :
       {bytes.substr(0, first), bytes.substr(first, second - first),
        bytes.substr(second)}) {
    parts.emplace_back(part.begin(), part.end());
    slices.emplace_back(parts.back().data(), parts.back().size());
  }
  const Digest digest = digester_.Compute(slices, &scratch_);
  if (digest.keyed != keyed) return "in slices keyed otherwise";
  if (keyed && digest.key != key) return "another key in slices";
  if (keyed && digest.tag != tag) return "another tag in slices";
  if (keyed && digest.drift != drift) return "another drift in slices";
  return "";
}

absl::optional<std::string> KeyChecker::Walk(absl::string_view bytes, int depth,
                                             std::string* wrong) const {
  struct Result {
    absl::optional<std::string> form;
    std::string tag;
  };
  const auto run = [&](Machine machine) {
    const auto out =
        std::make_unique<char[]>(CanonicalWalk::Capacity(bytes.size()));
    absl::string_view tag;
    CanonicalWalk walk(machine);
    std::string drifts;
    const char* const end =
        walk.Run(bytes, drift_ ? masks_.drift_root() : masks_.root(), depth,
                 drift_ ? &drifts : nullptr, out.get(), &tag);
    Result result;
    if (end == nullptr) return result;
    result.form.emplace(out.get(), end - out.get());
    result.tag = std::string(tag);
    return result;
  };
  const Result here = run(ThisMachine());
  const Result there = run(Machine::kAny);
  if (here.form.has_value() != there.form.has_value()) {
    *wrong = "plain on one machine alone";
  } else if (here.form != there.form) {
    *wrong = "another form on another machine";
  } else if (here.tag != there.tag) {
    *wrong = "another tag on another machine";
  }
  return here.form;
}

std::string KeyChecker::CheckForm(absl::string_view bytes, const Judged& judged,
                                  const Key& key, bool* fast) {
  std::string wrong;
  const absl::optional<std::string> form = Walk(bytes, wire::kMaxDepth, &wrong);
  if (fast != nullptr) *fast = form.has_value();
  if (!wrong.empty()) return wrong;
  if (!judged.keyed) {
    return form.has_value() ? "plain, and protobuf does not parse it" : "";
  }
  std::string plain;
  if (!Reencode(bytes, &plain)) return "the slow path refuses it";
  const absl::optional<std::string> slow = Walk(plain, kMaxPlainDepth, &wrong);
  if (!wrong.empty()) return wrong;
  if (!slow.has_value()) return "the slow path's form is not plain";
  if (form.has_value() && *form != *slow) return "fast and slow path differ";
  const Key drift = Compute(bytes).drift;
  const Digest by_slow_path = Compute(plain);
  if (by_slow_path.keyed &&
      (by_slow_path.key != key || by_slow_path.drift != drift)) {
    return "another key by the slow path";
  }
  if (slow->size() >= 2000) return "";
  // The canonical form can be read, as the message without what is masked.
  const absl::optional<std::string> unfolded = Unfold(masks_, drift_, *slow);
  v1::RunFunctionRequest rest;
  if (!unfolded.has_value() || !ProtobufParses(*unfolded, &rest)) {
    return "the canonical form cannot be read";
  }
  v1::RunFunctionRequest expected = judged.message;
  if (drift_) {
    ClearMasked(masks_, &expected);
    TakeOutDrift(&expected);
  }
  if (!SameRequest(masks_, expected, rest)) {
    return "the canonical form is another message";
  }
  if (drift_) return wrong;
  if (!Reencode(*unfolded, &plain)) return "what it says is not plain";
  if (Walk(plain, kMaxPlainDepth, &wrong) != slow) {
    return "the canonical form is not its own";
  }
  return wrong;
}

std::string KeyChecker::CheckPair(absl::string_view a, absl::string_view b,
                                  bool* equal) {
  Judged judged_a = Judge(a, source_);
  Judged judged_b = Judge(b, source_);
  if (!judged_a.keyed || !judged_b.keyed) return "";
  const Digest digest_a = Compute(a);
  const Digest digest_b = Compute(b);
  if (!digest_a.keyed || !digest_b.keyed) return "not keyed";
  std::string drift_a;
  std::string drift_b;
  if (drift_) {
    ClearMasked(masks_, &judged_a.message);
    ClearMasked(masks_, &judged_b.message);
    drift_a = TakeOutDrift(&judged_a.message);
    drift_b = TakeOutDrift(&judged_b.message);
  }
  const bool same = SameKey(masks_, judged_a, judged_b);
  if (equal != nullptr) *equal = same;
  if (same == (digest_a.key == digest_b.key)) {
    if (!same || (drift_a == drift_b) == (digest_a.drift == digest_b.drift)) {
      return "";
    }
    return absl::StrCat(drift_a == drift_b ? "equal drift, two digests: "
                                           : "two drifts, one digest: ",
                        judged_a.message.ShortDebugString());
  }
  return absl::StrCat(
      same ? "equal messages, two keys: " : "two messages, one key: ",
      judged_a.message.ShortDebugString(), " and ",
      judged_b.message.ShortDebugString());
}

}  // namespace fncache::cache::key
