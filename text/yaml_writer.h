// SPDX-License-Identifier: Apache-2.0
// Json as YAML text, byte for byte as the reference runner's command line
// prints it: keys sorted (runs of digits by value), indent 2, the dashes of a
// list at its parent's column, plain scalars folded at 80 columns, `|` for text
// of several lines, quotes where YAML 1.1 would read another type, doubles in
// the shortest digits that read back.
//
// One thing differs: controls of the direction of writing (U+202E...) are
// escaped, in double quotes, so that what is read on a screen is what is there.
// The text means the same.
//
// Pure function, thread-safe.
#ifndef FNCACHE_TEXT_YAML_WRITER_H_
#define FNCACHE_TEXT_YAML_WRITER_H_

#include <string>

#include "proto/struct_fwd.h"
#include "text/json.h"

namespace fncache::text {

// Returns one document whose last line is ended, without a `---` before it.
std::string ToYaml(const Json& json);
// The same of FromStruct, or of FromValue. No overloads of ToYaml:
// nlohmann/json would ask whether a Json converts to these types, which are
// incomplete here.
std::string StructToYaml(const google::protobuf::Struct& object);
std::string ValueToYaml(const google::protobuf::Value& value);

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_YAML_WRITER_H_
