// SPDX-License-Identifier: Apache-2.0
// Documents for tests of the SDK's values: made of YAML, emitted as YAML.
#ifndef FNCACHE_TESTS_SDK_MODEL_DOCUMENTS_H_
#define FNCACHE_TESTS_SDK_MODEL_DOCUMENTS_H_

#include <string>
#include <utility>
#include <vector>

#include "fncache/function/value.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "sdk/model/node.h"
#include "text/json.h"
#include "text/kubernetes_yaml.h"

namespace fncache::sdk {

inline google::protobuf::Struct StructOf(absl::string_view yaml) {
  const auto json = text::ParseKubernetesYaml(yaml);
  EXPECT_TRUE(json.ok()) << json.status();
  return text::ToStruct(*json);
}

// Keeps the errors of values, and the documents of a call.
class Documents : public Reporter {
 public:
  Documents() : arena_(Arena::New()), with_(this) {}
  ~Documents() override { arena_->Unref(); }

  void Fatal(std::string text) override { errors.push_back(std::move(text)); }

  Document* Observed(absl::string_view name, absl::string_view yaml) {
    Document* const document = Absent(name);
    document->SetBytes(arena_->Keep(StructOf(yaml).SerializeAsString()));
    return document;
  }
  Document* Absent(absl::string_view name) {
    Document* const document = arena_->NewDocument();
    document->section = Section::kObservedResource;
    document->name = arena_->Keep(name);
    document->writable = false;
    document->awaits = true;
    return document;
  }
  Document* Composite(absl::string_view yaml) {
    Document* const document = Observed("", yaml);
    document->section = Section::kObservedComposite;
    document->awaits = false;
    return document;
  }
  // The desired state of a composed resource, on top of that of earlier steps.
  Document* Desired(absl::string_view name, absl::string_view earlier = "") {
    Document* const document = arena_->NewDocument();
    document->section = Section::kDesiredResource;
    document->name = arena_->Keep(name);
    if (!earlier.empty()) {
      document->base = arena_->NewDocument();
      document->base->writable = false;
      document->base->section = Section::kDesiredResource;
      document->base->name = document->name;
      document->base->SetBytes(
          arena_->Keep(StructOf(earlier).SerializeAsString()));
    }
    return document;
  }
  static function::Value Of(const Document* document) {
    return function::Value(function::internal::Ref(document->root()));
  }
  // What Emit gives, as JSON.
  static std::string Emitted(Document* document, Document* observed = nullptr,
                             std::vector<const Node*>* kept = nullptr) {
    google::protobuf::Struct out;
    EXPECT_TRUE(out.ParseFromString(Emit(
        document, observed == nullptr ? nullptr : observed->root(), kept)));
    google::protobuf::Value value;
    *value.mutable_struct_value() = out;
    return text::ToJsonText(value);
  }
  Arena* arena() { return arena_; }

  std::vector<std::string> errors;

 private:
  Arena* const arena_;
  const WithReporter with_;
};

}  // namespace fncache::sdk

#endif  // FNCACHE_TESTS_SDK_MODEL_DOCUMENTS_H_
