// SPDX-License-Identifier: Apache-2.0
// Bytes of requests and answers with their maps in random order, as Go's
// encoder leaves them: fields by number, the entries of every map shuffled
// anew, at every level.
//
// Pure functions, thread-safe. All fields of the protocol are written; unknown
// fields are not.
#ifndef FNCACHE_BENCH_REQUEST_ENCODING_H_
#define FNCACHE_BENCH_REQUEST_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/request_generator.h"

namespace fncache::bench {

struct EncodedRequest {
  std::string bytes;
  // Where the slots' digits begin (request_generator.h): of `meta.tag`, and of
  // the composite's uid. The tag's is always the first.
  size_t tag_slot = 0;
  size_t content_slot = 0;
  // Where the drift slots begin, in any order, behind the two others. 0: the
  // shape has none.
  size_t version_slot = 0;
  size_t time_slot = 0;
};

// One encoding of a request that MakeRequest made; the same for the same order
// seed. All encodings of a message have the same length.
EncodedRequest Encode(const Request& request, uint64_t order_seed);

// The encoder as which a request is written. It is not run itself: each of
// these writes what that one does otherwise than Go (docs/key-format.md).
enum class Encoder {
  kGo,
  kProst,               // no empty keys and values in map entries
  kTsProto,             // no empty keys and bytes in map entries
  kProtobufjsDefaults,  // fields that have their default are written
  kReversed,            // no real encoder: fields by falling numbers
};
// "go", "prost", "ts-proto", "protobufjs-defaults", "reversed".
const char* EncoderName(Encoder encoder);

// The request with things in it that encoders write in different ways: empty
// connection details, an empty list of required resources, an empty key.
Request WithEmptyFields(Request request);

// One encoding by that encoder; its entries are in the same order as those that
// others write of the same request for the same order seed.
std::string EncodeAs(Encoder encoder, const Request& request,
                     uint64_t order_seed);

// Likewise of an answer, or of any request, without slots.
std::string EncodeShuffled(const Request& request, uint64_t order_seed);
std::string EncodeShuffled(const Answer& answer, uint64_t order_seed);

// `counter` as the kSlotDigits lower-case hex digits at `digits`.
void WriteSlot(uint64_t counter, char* digits);

// Drift number `drift`: a version of kVersionDigits at `version`, a time of
// kTimeBytes at `time`. Neighbours differ in both. Numbers below 2e11 that are
// not equal make drifts that are not equal.
void WriteDrift(uint64_t drift, char* version, char* time);

// `message` as one gRPC message, uncompressed: flag, length, bytes.
std::string GrpcFrame(const std::string& message);

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_REQUEST_ENCODING_H_
