// SPDX-License-Identifier: Apache-2.0
// The oracle that says, by protobuf's own means, which requests can be keyed
// and which of them are one, and the checker that holds keys against it.
#ifndef FNCACHE_TESTS_CACHE_KEY_KEY_ORACLE_H_
#define FNCACHE_TESTS_CACHE_KEY_KEY_ORACLE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "cache/key/digest.h"
#include "cache/key/mask.h"
#include "proto/function_v1.pb.h"

namespace fncache::cache::key {

// Sets of masks of many shapes, the empty one first.
const std::vector<MaskSet>& MaskSets();

// Whether the two are equal messages without tag and masked paths: by
// MessageDifferencer with every double as its bits, and unknown fields in order
// of their numbers.
bool SameRequest(const MaskSet& masks,
                 apiextensions::fn::proto::v1::RunFunctionRequest a,
                 apiextensions::fn::proto::v1::RunFunctionRequest b);

// The same of any two messages, with all that they hold.
bool SameMessage(google::protobuf::Message* a, google::protobuf::Message* b);

// Parses as ParseRequest ought to, without its precautions.
bool ProtobufParses(absl::string_view bytes,
                    apiextensions::fn::proto::v1::RunFunctionRequest* request);

// Parses what `key: tag` reads: protobuf parses a message that has bytes in
// place of the skipped fields. `rest` is the request without those.
bool ProtobufParsesTagPart(
    absl::string_view bytes,
    apiextensions::fn::proto::v1::RunFunctionRequest* rest);

// Checks the key contract on requests and pairs of requests; each check returns
// what is wrong, or nothing. Belongs to one thread.
class KeyChecker {
 public:
  // Precondition: no masks with KeySource::kTag.
  explicit KeyChecker(const MaskSet& masks,
                      KeySource source = KeySource::kContent,
                      KeyHash hash = KeyHash::kXxh3);

  // Keyed if and only if protobuf parses it (with `key: tag`, what is read of
  // it); the same key by the slow path, in slices, and on machines with fewer
  // instructions; the tag is the message's. `fast`, if given, tells whether it
  // was plain.
  std::string CheckOne(absl::string_view bytes, bool* fast = nullptr);
  // Equal keys if and only if equal messages (with `key: tag`, equal tags and
  // equal messages without what is skipped). `equal`, if given, tells, where
  // both can be keyed.
  std::string CheckPair(absl::string_view a, absl::string_view b,
                        bool* equal = nullptr);

  // Whether keys are made with `key: tag`.
  bool by_tag() const { return by_tag_; }

 private:
  // That on which a request's key depends.
  struct Judged {
    bool keyed = false;
    bool by_tag = false;
    // The message: all of it, or by tag without what is skipped.
    apiextensions::fn::proto::v1::RunFunctionRequest message;
  };

  Judged Judge(absl::string_view bytes) const;
  Digest Compute(absl::string_view bytes);
  // The same in three slices, all of them of exactly their size.
  std::string CheckSlices(absl::string_view bytes, const Digest& whole);
  // The canonical form, where content decides.
  std::string CheckForm(absl::string_view bytes, const Judged& judged,
                        const Key& key, bool* fast);
  // Checks the result of the instruction sets below this machine's. It is
  // `form` and `tag`, or a refusal if there is no form.
  std::string CheckOtherMachines(absl::string_view bytes, int depth,
                                 absl::optional<absl::string_view> form,
                                 absl::string_view tag) const;

  const MaskSet masks_;
  const bool by_tag_;
  const Digester digester_;
  DigestScratch scratch_;
};

}  // namespace fncache::cache::key

#endif  // FNCACHE_TESTS_CACHE_KEY_KEY_ORACLE_H_
