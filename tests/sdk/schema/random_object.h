// SPDX-License-Identifier: Apache-2.0
// Random objects of a schema, and changes of them. The same seed gives the same
// objects everywhere.
#ifndef FNCACHE_TESTS_SDK_SCHEMA_RANDOM_OBJECT_H_
#define FNCACHE_TESTS_SDK_SCHEMA_RANDOM_OBJECT_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "text/json.h"

namespace fncache::sdk::schema {

class RandomObject {
 public:
  explicit RandomObject(uint64_t seed) : random_(seed) {}

  // An object that keeps most rules of the schema; all but patterns, `not` and
  // the like.
  text::Json Make(const text::Json& schema);
  // Only what is required.
  text::Json MakeLeast(const text::Json& schema);
  // Changes a random value at or below `*value`, which is of the schema.
  void Mutate(const text::Json& schema, text::Json* value);
  // From 0 to below `limit`.
  size_t Below(size_t limit) { return random_() % limit; }

 private:
  struct Place {
    text::Json* value;
    const text::Json* schema;
  };

  text::Json Make(const text::Json& schema, int depth);
  text::Json MakeText(const text::Json& schema);
  text::Json MakeNumber(const text::Json& schema);
  text::Json MakeObject(const text::Json& schema, int depth);
  text::Json AnyValue();
  void Find(text::Json* value, const text::Json& schema,
            std::vector<Place>* places);
  void Change(const Place& place);

  std::mt19937_64 random_;
};

}  // namespace fncache::sdk::schema

#endif  // FNCACHE_TESTS_SDK_SCHEMA_RANDOM_OBJECT_H_
