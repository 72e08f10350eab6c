// SPDX-License-Identifier: Apache-2.0
// Kubernetes objects as the engine stores them: google.protobuf.Struct, for any
// source format, since a function gets them so.
//
// Reading never fails: a value that is absent, or below another type, is null
// or empty. Pure functions, thread-safe; pointers are into the object given.
#ifndef FNCACHE_TEXT_OBJECT_H_
#define FNCACHE_TEXT_OBJECT_H_

#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/struct_fwd.h"

namespace fncache::text {

using google::protobuf::ListValue;
using google::protobuf::Struct;
using google::protobuf::Value;

using ObjectPath = std::initializer_list<absl::string_view>;

// The value at `path`, a field name for each level; null where there is none.
const Value* Find(const Struct& object, ObjectPath path);
// The same where it is a map, a list or text; else null, null or "".
const Struct* FindMap(const Struct& object, ObjectPath path);
const ListValue* FindList(const Struct& object, ObjectPath path);
const std::string& FindText(const Struct& object, ObjectPath path);

// Whether `value` is null, or nothing at all, as a Value without a kind is.
bool IsNull(const Value& value);

// The value at `path`, with every level above it made a map that was absent or
// anything else. `path` has at least one level.
Value* Ensure(Struct* object, ObjectPath path);
Struct* EnsureMap(Struct* object, ObjectPath path);
void SetText(Struct* object, ObjectPath path, absl::string_view text);
// Removes the field at `path`, if it is there.
void Remove(Struct* object, ObjectPath path);

Value TextValue(absl::string_view text);
Value BoolValue(bool value);

// The parts of an apiVersion: "apps/v1" has group "apps" and version "v1", and
// "v1" has group "".
absl::string_view GroupOf(absl::string_view api_version);
absl::string_view VersionOf(absl::string_view api_version);

// Whether both hold the same, maps unordered, numbers by their value. A Value
// without a kind equals null.
bool Equal(const Value& a, const Value& b);
bool Equal(const Struct& a, const Struct& b);

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_OBJECT_H_
