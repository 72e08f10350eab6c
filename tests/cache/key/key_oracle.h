// SPDX-License-Identifier: Apache-2.0
// The plain reference of keys, by protobuf's own parser and encoder: which
// requests can be keyed, and which two of them have one key. It shares no code
// with the digest but the masks.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_TESTS_CACHE_KEY_KEY_ORACLE_H_
#define FNCACHE_TESTS_CACHE_KEY_KEY_ORACLE_H_

#include "absl/strings/string_view.h"
#include "cache/key/digest.h"
#include "cache/key/mask.h"
#include "proto/function_v1.pb.h"

namespace fncache::cache::key {

// A request's key depends on this, on the scope and on the masks.
struct Judged {
  bool keyed = false;
  bool by_tag = false;
  // The message: all of it, or by tag without what is skipped.
  apiextensions::fn::proto::v1::RunFunctionRequest message;
};

Judged Judge(absl::string_view bytes, KeySource source);

// Whether two requests that can be keyed have one key.
bool SameKey(const MaskSet& masks, const Judged& a, const Judged& b);

// Whether two messages are equal: a double by its bits, unknown fields in the
// order of their numbers.
bool SameMessage(const google::protobuf::Message& a,
                 const google::protobuf::Message& b);

// Whether two requests are equal without meta.tag and masked paths.
bool SameRequest(const MaskSet& masks,
                 apiextensions::fn::proto::v1::RunFunctionRequest a,
                 apiextensions::fn::proto::v1::RunFunctionRequest b);

// Parses as ParseRequest should, without its precautions.
bool ProtobufParses(absl::string_view bytes,
                    apiextensions::fn::proto::v1::RunFunctionRequest* request);

// Parses what `key: tag` reads. `rest` is the request without the fields that
// are skipped.
bool ProtobufParsesTagFields(
    absl::string_view bytes,
    apiextensions::fn::proto::v1::RunFunctionRequest* rest);

}  // namespace fncache::cache::key

#endif  // FNCACHE_TESTS_CACHE_KEY_KEY_ORACLE_H_
