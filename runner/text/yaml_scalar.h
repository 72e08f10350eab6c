// What a scalar of YAML 1.1 means to the reference runner's YAML library
// (go-yaml version 2): both reading it and deciding when text must be quoted.
//
// Pure functions, thread-safe; time and memory linear in the text.
#ifndef FNCACHE_RUNNER_TEXT_YAML_SCALAR_H_
#define FNCACHE_RUNNER_TEXT_YAML_SCALAR_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache::runner::text {

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

// Of a plain scalar without a tag.
YamlScalar ResolveYamlScalar(absl::string_view text);

// Of a scalar with a tag ("tag:yaml.org,2002:int"). A tag that stands for
// nothing known makes it text. InvalidArgument: it is not what its tag says.
absl::StatusOr<YamlScalar> ResolveTaggedYamlScalar(absl::string_view tag,
                                                   absl::string_view text);

// Whether `text` is a number to the base 60 (`1:30`), which YAML 1.1 has and
// go-yaml quotes, though it reads it as text.
bool IsBase60(absl::string_view text);

// Shortest digits that read back, with an exponent of at least two digits below
// 1e-4 and from 1e6 up; ".inf", "-.inf" and ".nan".
std::string YamlNumber(double number);
std::string YamlNumber(float number);

}  // namespace fncache::runner::text

#endif  // FNCACHE_RUNNER_TEXT_YAML_SCALAR_H_
