// SPDX-License-Identifier: Apache-2.0
// The meaning of a YAML 1.1 scalar to the reference runner's YAML library
// (go-yaml version 2). It decides what is read, and which text must be quoted
// when it is written.
//
// Pure functions, thread-safe; time and memory linear in the text.
#ifndef FNCACHE_TEXT_YAML_SCALAR_H_
#define FNCACHE_TEXT_YAML_SCALAR_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache::text {

struct YamlScalar {
  enum class Type {
    kText,
    kNull,
    kBool,
    kInteger,    // in the range of int64
    kUnsigned,   // whole and beyond int64, in the range of uint64
    kFloat,      // .inf and .nan too
    kTimestamp,  // text that looks like one; a value of it is that text
  };
  Type type = Type::kText;
  bool truth = false;
  int64_t integer = 0;
  uint64_t whole = 0;
  double number = 0;
};

// Resolves a plain scalar without a tag.
YamlScalar ResolveYamlScalar(absl::string_view text);

// Resolves a scalar with a tag ("tag:yaml.org,2002:int"). An unknown tag makes
// it text. InvalidArgument if it is not what its tag says.
absl::StatusOr<YamlScalar> ResolveTaggedYamlScalar(absl::string_view tag,
                                                   absl::string_view text);

// Whether `text` is a number to the base 60 (`1:30`), which YAML 1.1 has and
// go-yaml quotes, though it reads it as text.
bool IsBase60(absl::string_view text);

// The shortest digits that read back as `number`, with an exponent of at least
// two digits below 1e-4 and from 1e6 up; else ".inf", "-.inf" or ".nan".
std::string YamlNumber(double number);
std::string YamlNumber(float number);

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_YAML_SCALAR_H_
