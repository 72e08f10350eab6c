// SPDX-License-Identifier: Apache-2.0
// The shape of the function protocol as tables (PROTOCOL.md, proto/*.proto):
// all that a walk over wire bytes needs to know of RunFunctionRequest,
// RunFunctionResponse and everything below them, Struct and Duration included.
// v1 and v1beta1 have byte-identical messages and share the tables;
// tests/cache/wire/schema_test.cc holds them against both descriptors.
//
// Constant data and pure functions; thread-safe.
#ifndef FNCACHE_CACHE_WIRE_SCHEMA_H_
#define FNCACHE_CACHE_WIRE_SCHEMA_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "cache/wire/wire.h"

namespace fncache::cache::wire {

struct MessageType;

enum class FieldKind : uint8_t {
  kString,  // checked to be UTF-8
  kBytes,
  kBool,
  kEnum,  // open, as proto3's are: an int32
  kInt32,
  kInt64,
  kDouble,
  kMessage,
};

enum class FieldLabel : uint8_t {
  kImplicit,  // a scalar that is absent when it has its default
  kExplicit,  // a message, `optional`, or of a oneof: presence counts
  kRepeated,
  kMap,  // by string; `kind` and `message` are the value's
};

struct FieldType {
  uint32_t number;
  absl::string_view name;
  FieldKind kind;
  FieldLabel label;
  const MessageType* message = nullptr;  // of kMessage
  // A member of a oneof that has others: a message has one of them at most. No
  // message has two such oneofs.
  bool in_oneof = false;

  // The wire type of one element.
  WireType wire_type() const {
    switch (kind) {
      case FieldKind::kBool:
      case FieldKind::kEnum:
      case FieldKind::kInt32:
      case FieldKind::kInt64:
        return WireType::kVarint;
      case FieldKind::kDouble:
        return WireType::kFixed64;
      default:
        return WireType::kBytes;
    }
  }
};

struct MessageType {
  absl::string_view name;  // without its package
  // They are in order of their numbers, which in this protocol are 1, 2, 3...
  const FieldType* fields;
  size_t field_count;

  // Null if there is no such field.
  const FieldType* Find(uint32_t number) const {
    return number - 1 < field_count ? &fields[number - 1] : nullptr;
  }
  const FieldType* Find(absl::string_view field_name) const;
};

extern const MessageType kRunFunctionRequestType;
extern const MessageType kRequestMetaType;
extern const MessageType kStateType;
extern const MessageType kResourceType;
extern const MessageType kResourcesType;
extern const MessageType kCredentialsType;
extern const MessageType kCredentialDataType;
extern const MessageType kSchemaType;
extern const MessageType kRunFunctionResponseType;
extern const MessageType kResponseMetaType;
extern const MessageType kResultType;
extern const MessageType kConditionType;
extern const MessageType kRequirementsType;
extern const MessageType kResourceSelectorType;
extern const MessageType kMatchLabelsType;
extern const MessageType kSchemaSelectorType;
extern const MessageType kStructType;
extern const MessageType kValueType;
extern const MessageType kListValueType;
extern const MessageType kDurationType;

// How deep messages may be nested below the outermost, as CodedInputStream's
// recursion limit counts: each message, map entry and unknown group is one.
inline constexpr int kMaxDepth = 1000;

}  // namespace fncache::cache::wire

#endif  // FNCACHE_CACHE_WIRE_SCHEMA_H_
