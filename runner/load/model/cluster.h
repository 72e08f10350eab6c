// SPDX-License-Identifier: Apache-2.0
// SimulatedCluster: an API server's objects for one composite resource and its
// composed resources. A write to them updates versions, generations and owners
// of fields. Each composite has its own, so that no composite affects another.
//
// Objects are kept serialized, which is much smaller, since there are hundreds
// of thousands. Used by one thread at a time.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_CLUSTER_H_
#define FNCACHE_RUNNER_LOAD_MODEL_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/struct_fwd.h"
#include "runner/load/model/field_owners.h"
#include "runner/load/model/random.h"

namespace fncache::runner::load::model {

// Managers' names as the real ones have them.
inline constexpr char kRunner[] = "crossplane";
inline constexpr char kRunnerApply[] = "apiextensions.crossplane.io/composite";
inline constexpr char kProvider[] = "provider";
inline constexpr char kFinalizer[] = "composite.apiextensions.crossplane.io";
inline constexpr absl::string_view kExternalName =
    "crossplane.io/external-name";

class SimulatedCluster {
 public:
  using Struct = google::protobuf::Struct;
  enum class Effect { kNone, kCreated, kUpdated };

  // An empty cluster whose uids and versions follow from `random`.
  explicit SimulatedCluster(SplitMix64 random);

  // Creates the composite as its author's client would. `composite` has a name;
  // the fields that an API server sets are set here.
  void Create(Struct composite, absl::Time now);

  Struct Composite() const;
  // The composed resources, in the order of their creation.
  size_t size() const { return composed_.size(); }
  const std::string& ResourceNameOf(size_t i) const {
    return composed_[i].resource_name;
  }
  Struct ComposedAt(size_t i) const;
  // The i-th, or size() if there is none of this composition resource name.
  size_t Find(absl::string_view resource_name) const;

  // Writes to the composite. An apply has some of its fields, an update all of
  // them; a writer to the subresource `status` changes only the status. Returns
  // whether the write had an effect.
  bool ApplyComposite(const Struct& wanted, const Writer& writer,
                      absl::Time now);
  bool UpdateComposite(Struct updated, const Writer& writer, absl::Time now);

  Effect ApplyComposed(const std::string& resource_name, const Struct& wanted,
                       absl::Time now);
  void DeleteComposed(size_t i);
  // Annotates the i-th with its own name as its external name, as providers do
  // before they create something. An annotation that is there stays.
  void NameExternally(size_t i, absl::Time now);
  // Lets `change` change the status of the i-th, as `manager`.
  bool UpdateComposedStatus(size_t i, const std::string& manager,
                            const std::function<void(Struct*)>& change,
                            absl::Time now);
  // A write that changes nothing but the version and the time of the newest
  // owner.
  void TouchComposite(absl::Time now);
  void TouchComposed(size_t i, absl::Time now);

  // Counts every write that had an effect.
  uint64_t resource_version() const { return version_; }
  const std::string& uid() const { return uid_; }
  size_t MemoryBytes() const;

 private:
  struct Composed {
    std::string resource_name;
    std::string object;
    // Digest of the runner's last apply. No other writer changes these fields,
    // so that an equal apply has no effect.
    uint64_t applied = 0;
  };

  std::string NewUid();
  // Sets the fields that a write changes: the version, and the generation if
  // anything but metadata and status differs from `before`.
  void Bump(const Struct& before, Struct* object);
  void Touch(absl::Time now, Struct* object);
  void PutComposite(const Struct& composite);

  bool UpdateComposed(size_t i, const Writer& writer,
                      const std::function<void(Struct*)>& change,
                      absl::Time now);

  SplitMix64 random_;
  uint64_t version_;
  std::string uid_;
  std::string manager_;  // of composed resources
  std::string composite_;
  std::vector<Composed> composed_;
};

// Sets the condition `type` of status.conditions, or adds it; its time is set
// only where its status or reason becomes another.
void SetProviderCondition(absl::string_view type, bool status,
                          absl::string_view reason, absl::Time now,
                          google::protobuf::Struct* object);

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_CLUSTER_H_
