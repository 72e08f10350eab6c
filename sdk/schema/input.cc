// SPDX-License-Identifier: Apache-2.0
#include "sdk/schema/input.h"

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "google/protobuf/struct.pb.h"
#include "sdk/schema/validate.h"
#include "text/json.h"

namespace fncache::sdk::schema {
namespace {

// Schemas that are kept: a process has one for each model of an input. The next
// one drops them all.
constexpr size_t kMaxSchemas = 64;

// A schema that stands alone and is not changed any more.
class Parsed {
 public:
  explicit Parsed(absl::string_view json) {
    const auto schema = text::ParseJsonStruct(json);
    if (!schema.ok()) return;
    bytes_ = schema->SerializeAsString();
    std::string error;
    if (!DecodeStruct(bytes_, document_->root(), &error)) document_ = nullptr;
  }
  Parsed(const Parsed&) = delete;
  Parsed& operator=(const Parsed&) = delete;
  ~Parsed() { arena_->Unref(); }

  // Null where there is none.
  const Node* root() const {
    return document_ == nullptr ? nullptr : document_->root();
  }

 private:
  Arena* const arena_ = Arena::New();
  Document* document_ = arena_->NewDocument();
  std::string bytes_;
};

std::shared_ptr<const Parsed> SchemaOf(absl::string_view json) {
  using Schemas =
      absl::flat_hash_map<std::string, std::shared_ptr<const Parsed>>;
  static Mutex* const mutex = new Mutex;
  static Schemas* const schemas = new Schemas;
  MutexLock lock(mutex);
  const auto known = schemas->find(json);
  if (known != schemas->end()) return known->second;
  if (schemas->size() >= kMaxSchemas) schemas->clear();
  return (*schemas)[json] = std::make_shared<const Parsed>(json);
}

}  // namespace

std::vector<function::Problem> CheckInput(absl::string_view schema_json,
                                          Node* input) {
  const auto schema = SchemaOf(schema_json);
  if (schema->root() == nullptr) return {};
  return Validate(schema->root(), input);
}

std::string InputMessage(const function::Problem& problem) {
  const bool apart =
      !problem.path.empty() && !absl::StartsWith(problem.path, "[");
  return absl::StrCat("input", apart ? "." : "", problem.path, ": ",
                      problem.text);
}

}  // namespace fncache::sdk::schema
