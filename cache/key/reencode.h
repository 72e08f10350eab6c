// SPDX-License-Identifier: Apache-2.0
// The slow path to a key, and the message's view of what a key leaves out.
//
// Wire forms that are legal but unusual (fields out of order or repeated, split
// messages, repeated map keys, long varints...) are parsed by protobuf itself
// and written anew in the plain form that the fast path takes, so that both
// lead to the same digest.
//
// Pure functions; thread-safe. They recurse as deep as messages are nested, at
// most kMaxDepth.
#ifndef FNCACHE_CACHE_KEY_REENCODE_H_
#define FNCACHE_CACHE_KEY_REENCODE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "cache/key/mask.h"

namespace apiextensions::fn::proto::v1 {
class RunFunctionRequest;
class RunFunctionResponse;
}  // namespace apiextensions::fn::proto::v1

namespace fncache::cache::key {

// Writes the RunFunctionRequest `bytes` anew to `plain`: fields in order of
// their numbers, map entries of their keys, unknown fields behind the known
// ones in order of their numbers, nothing twice. False if protobuf would not
// parse it with a recursion limit of kMaxDepth.
bool Reencode(absl::string_view bytes, std::string* plain);
// The same of a RunFunctionResponse.
bool ReencodeResponse(absl::string_view bytes, std::string* plain);

// ParseRequest parses with a recursion limit of kMaxDepth, where protobuf's
// default is 100. Logs nothing.
bool ParseRequest(absl::string_view bytes,
                  apiextensions::fn::proto::v1::RunFunctionRequest* request);

// Removes what is not of the key: meta.tag and what `masks` masks. Works on the
// message, by the paths as written, and so independently of the digest.
void ClearMasked(const MaskSet& masks,
                 apiextensions::fn::proto::v1::RunFunctionRequest* request);

// Puts the unknown fields of the message and of every one below it in order of
// their numbers, those of one number staying in theirs.
void OrderUnknownFields(
    apiextensions::fn::proto::v1::RunFunctionRequest* request);
void OrderUnknownFields(
    apiextensions::fn::proto::v1::RunFunctionResponse* response);

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_REENCODE_H_
