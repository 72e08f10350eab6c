// SPDX-License-Identifier: Apache-2.0
// The plain reference of drift, over messages: what is drift, and what a
// request is without it. It shares no code with the digest.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_TESTS_CACHE_KEY_DRIFT_ORACLE_H_
#define FNCACHE_TESTS_CACHE_KEY_DRIFT_ORACLE_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"

namespace fncache::cache::key {

// A drift in a message.
struct FoundDrift {
  std::string path;     // of field names and keys, with a slash before each
  std::string section;  // composite, composed or required
  std::string key;      // the nearest map key above it
  char type;            // v(ersion), m(anagedFields) or t(ime)
  google::protobuf::Value* value;
};

// All drift of a request, in the order of the paths, but for lists, whose
// elements are in their order.
std::vector<FoundDrift> FindDrift(
    apiextensions::fn::proto::v1::RunFunctionRequest* request);

// The tag of the unknown field that stands for a mark in a Value: a varint, the
// number of the type (DriftType).
inline constexpr char kMarkTag = 13 << 3;
// Puts marks instead of all drift. Returns that drift: equal if and only if all
// drift is, of requests that are equal then.
std::string TakeOutDrift(
    apiextensions::fn::proto::v1::RunFunctionRequest* request);

// One encoding for equal values.
std::string ValueBytes(const google::protobuf::Value& value);

// By a regular expression, and the days of a calendar.
bool IsTimeByExpression(absl::string_view text);

}  // namespace fncache::cache::key

#endif  // FNCACHE_TESTS_CACHE_KEY_DRIFT_ORACLE_H_
