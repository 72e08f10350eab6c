// Random requests, random legal encodings of them, small changes to them, and
// the oracle that says which of them are equal: what the key's property tests
// and fuzzers are made of.
#ifndef FNCACHE_TESTS_CACHE_RANDOM_REQUEST_H_
#define FNCACHE_TESTS_CACHE_RANDOM_REQUEST_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cache/digest.h"
#include "cache/mask.h"
#include "google/protobuf/message.h"
#include "proto/function_v1.pb.h"

namespace fncache::cache {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // In [0, n).
  size_t Below(size_t n) { return engine_() % n; }
  bool OneIn(size_t n) { return Below(n) == 0; }
  uint64_t Bits() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// A request of a few dozen fields out of small sets of names and values, so
// that two of them often share parts, with every odd thing that a message may
// hold: empty keys and messages, values without kind, unknown fields and
// groups, unknown enum numbers, NaNs and -0.0.
apiextensions::fn::proto::v1::RunFunctionRequest RandomRequest(Random* random);

// Changes one field somewhere in the request, or adds or removes one. May find
// nothing to change.
void Mutate(google::protobuf::Message* message, Random* random);

enum class Style {
  // What encoders write, map entries in random order.
  kPlain,
  // Whatever parses as the same message: fields in any order, messages split,
  // keys and singular fields repeated, long varints, junk in map entries...
  kWild,
};
std::string Encode(const google::protobuf::Message& message, Style style,
                   Random* random);

// Sets of masks of many shapes, the empty one first.
const std::vector<MaskSet>& MaskSets();

// Whether the two are equal messages without tag and masked paths: by
// MessageDifferencer with every double as its bits, and unknown fields in order
// of their numbers.
bool SameRequest(const MaskSet& masks,
                 apiextensions::fn::proto::v1::RunFunctionRequest a,
                 apiextensions::fn::proto::v1::RunFunctionRequest b);

// Parses as ParseRequest ought to, without its precautions.
bool ProtobufParses(absl::string_view bytes,
                    apiextensions::fn::proto::v1::RunFunctionRequest* request);

// Checks the key contract on requests and pairs of requests; each check returns
// what is wrong, or nothing.
class KeyChecker {
 public:
  explicit KeyChecker(const MaskSet& masks);

  // Keyed if and only if protobuf parses it; the same key by the slow path;
  // the tag is the message's. `fast`, if given, tells whether it was plain.
  std::string CheckOne(absl::string_view bytes, bool* fast = nullptr);
  // Equal keys if and only if equal messages. `equal`, if given, tells.
  std::string CheckPair(absl::string_view a, absl::string_view b,
                        bool* equal = nullptr);

 private:
  Digest Compute(absl::string_view bytes);

  const MaskSet masks_;
  const Digester digester_;
  DigestScratch scratch_;
};

}  // namespace fncache::cache

#endif  // FNCACHE_TESTS_CACHE_RANDOM_REQUEST_H_
