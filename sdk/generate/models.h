// SPDX-License-Identifier: Apache-2.0
// Models: the classes that a header declares, made of definitions.
//
// Values own their content; the functions are pure and thread-safe.
#ifndef FNCACHE_SDK_GENERATE_MODELS_H_
#define FNCACHE_SDK_GENERATE_MODELS_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sdk/generate/definitions.h"

namespace fncache::sdk {

// The type of a field's value.
struct Type {
  enum class Kind {
    kText,
    kBoolean,
    kInteger,
    kNumber,
    kIntOrString,
    kValue,   // any
    kObject,  // `name` is a class or an alias in the class of the field
    kList,
    kMap,
  };
  Kind kind = Kind::kValue;
  std::string name;
  bool component = false;     // of kObject: a class of another header
  std::vector<Type> element;  // one, of a list or map
};

struct Field {
  std::string wire;  // as in the document
  std::string name;  // in C++, of getter and setter
  Type type;
  std::string comment;
  std::string default_value;  // as JSON; empty without one
};

// The values of an enum.
struct Constants {
  std::string name;
  // Name and value of each.
  std::vector<std::pair<std::string, std::string>> values;
};

// A class with its namespace, and the header that has it.
struct Place {
  std::vector<std::string> namespaces;  // below `model`
  std::string name;
  std::string file;  // model/.../kind.h
};

// The class' name from the global namespace on.
std::string FullName(const Place& place);

struct Class {
  std::string name;
  std::string comment;
  std::vector<Constants> constants;
  // Names for classes of other headers.
  std::vector<std::pair<std::string, Place>> aliases;
  std::vector<Class> classes;
  // Names for classes that this header declares before, with the same fields
  // and comments, by their full names. Real definitions repeat most of their
  // classes: one of 6,400 fields has 760 different ones.
  std::vector<std::pair<std::string, std::string>> repeated;
  std::vector<Field> fields;
};

struct Header {
  Place place;
  std::string api_version;  // of a kind; empty for a component
  std::string kind;
  std::string component;  // its name in the OpenAPI document
  bool input = false;
  std::string schema;  // of an input, as JSON
  Class root;
  std::set<std::string> includes;  // headers of aliases
  // Where it is defined.
  std::shared_ptr<const YamlDocument> document;
  DocumentPath path;
};

// Makes the headers of the wanted definitions, and of the kinds and components
// that they refer to. Inputs get their schema. Two definitions
// of one kind give two headers of one file. InvalidArgument `FILE:LINE: why`
// for a definition without schema, references that dangle or nest without end,
// and schemas beyond the bounds (200 levels, 20,000 fields each).
absl::StatusOr<std::vector<Header>> MakeHeaders(
    std::vector<Definition> definitions);

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_GENERATE_MODELS_H_
