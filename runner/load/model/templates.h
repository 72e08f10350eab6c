// SPDX-License-Identifier: Apache-2.0
// Templates: the common data of many composites. Composite i is a copy of
// template i modulo their number, with a name of its own.
//
// Thread-safe: all but the required objects is fixed once it is made.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_TEMPLATES_H_
#define FNCACHE_RUNNER_LOAD_MODEL_TEMPLATES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/mutex.h"
#include "google/protobuf/struct.pb.h"
#include "runner/engine/composite_schema.h"
#include "runner/engine/engine.h"
#include "runner/engine/object_store.h"

namespace fncache::runner::load::model {

struct Template {
  engine::EngineInput input;
  engine::CompositeSchema schema = engine::CompositeSchema::kModern;
  std::string error;  // why none of its composites can be reconciled
  std::string revision;
  size_t kind = 0;  // index of the kind of XR
};

class Templates {
 public:
  explicit Templates(std::vector<engine::EngineInput> inputs);

  const Template& Of(int composite) const {
    return templates_[IndexOf(composite)];
  }
  // Kinds of XR, each with workers of its own.
  size_t kinds() const { return kinds_.size(); }

  // NAMESPACE/NAME, or the name.
  std::string NameOf(int composite) const;
  // The composite as its author creates it.
  google::protobuf::Struct Named(int composite) const;

  // The objects that selectors choose from.
  std::shared_ptr<const engine::ObjectStore> ObjectsFor(int composite) const;
  // Adds a required object, or replaces the one of its name.
  void PutRequired(const google::protobuf::Struct& object);

 private:
  using Objects = std::shared_ptr<const engine::ObjectStore>;

  size_t IndexOf(int composite) const {
    return static_cast<size_t>(composite) % templates_.size();
  }
  size_t KindOf(const google::protobuf::Struct& composite);

  std::vector<Template> templates_;
  std::vector<std::string> kinds_;
  mutable Mutex mutex_;
  std::vector<Objects> objects_ ABSL_GUARDED_BY(mutex_);  // by template
};

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_TEMPLATES_H_
