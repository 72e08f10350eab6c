// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/key/random_drift.h"

#include <vector>

#include "absl/strings/str_format.h"
#include "google/protobuf/struct.pb.h"
#include "tests/cache/key/drift_oracle.h"

namespace fncache::cache::key {
namespace {

namespace pb = google::protobuf;
namespace v1 = apiextensions::fn::proto::v1;

std::string RandomVersion(Random* random) {
  static const auto* const kVersions = new std::vector<std::string>{
      "0",
      "7",
      "1234567",
      "12345678901234567890",
      "123456789012345678901",
      "",
      "12a",
      "-1",
      "12 ",
  };
  if (random->OneIn(3)) return (*kVersions)[random->Below(9)];
  return std::to_string(random->Below(10'000'000));
}

std::string RandomKey(Random* random) {
  static constexpr const char* kKeys[] = {"resourceVersion",
                                          "managedFields",
                                          "lastTransitionTime",
                                          "time",
                                          "conditions",
                                          "atProvider",
                                          "",
                                          "phase"};
  return kKeys[random->Below(8)];
}

void FillManagedFields(pb::Value* value, Random* random) {
  pb::ListValue* const list = value->mutable_list_value();
  for (size_t i = random->Below(4); i > 0; --i) {
    pb::Value* const element = list->add_values();
    if (random->OneIn(8)) {
      element->set_string_value(RandomTime(random));
      continue;
    }
    auto& fields = *element->mutable_struct_value()->mutable_fields();
    fields["manager"].set_string_value(random->OneIn(2) ? "crossplane" : "x");
    fields["time"].set_string_value(RandomTime(random));
    auto& owned = *fields["fieldsV1"].mutable_struct_value()->mutable_fields();
    for (size_t j = random->Below(4); j > 0; --j) {
      auto& inner = *owned["f:" + RandomKey(random)]
                         .mutable_struct_value()
                         ->mutable_fields();
      if (random->OneIn(2)) inner["."].mutable_struct_value();
      if (random->OneIn(2))
        inner["k:" + RandomKey(random)].set_bool_value(true);
    }
  }
}

void FillStatus(pb::Value* value, const std::string& key, Random* random,
                int depth) {
  switch (random->Below(depth > 0 ? 9 : 5)) {
    case 0:
    case 1:
      value->set_string_value(RandomTime(random));
      break;
    case 2:
      value->set_string_value(RandomVersion(random));
      break;
    case 3:
      value->set_number_value(static_cast<double>(random->Below(3)));
      break;
    case 4:
      value->set_null_value(pb::NULL_VALUE);
      break;
    case 5:
      if (key == "managedFields") {
        FillManagedFields(value, random);
        break;
      }
      for (size_t i = random->Below(4); i > 0; --i) {
        FillStatus(value->mutable_list_value()->add_values(), key, random,
                   depth - 1);
      }
      break;
    default:
      for (size_t i = random->Below(5); i > 0; --i) {
        const std::string name = RandomKey(random);
        FillStatus(&(*value->mutable_struct_value()->mutable_fields())[name],
                   name, random, depth - 1);
      }
  }
  if (random->OneIn(30)) {
    value->GetReflection()->MutableUnknownFields(value)->AddVarint(100, 1);
  }
}

void AddTo(v1::Resource* resource, Random* random) {
  auto& object = *resource->mutable_resource()->mutable_fields();
  if (!random->OneIn(4)) {
    pb::Value& metadata = object["metadata"];
    auto& fields = *metadata.mutable_struct_value()->mutable_fields();
    if (!random->OneIn(4)) {
      fields["resourceVersion"].set_string_value(RandomVersion(random));
    }
    if (random->OneIn(8)) {
      FillStatus(&fields["managedFields"], "managedFields", random, 1);
    } else if (!random->OneIn(4)) {
      FillManagedFields(&fields["managedFields"], random);
    }
    if (random->OneIn(3)) {
      fields["creationTimestamp"].set_string_value(RandomTime(random));
    }
  }
  if (!random->OneIn(4)) {
    FillStatus(&object["status"], "status", random, random->OneIn(8) ? 0 : 5);
  }
  if (random->OneIn(8)) {
    object["spec"].set_string_value(RandomTime(random));
  }
}

}  // namespace

std::string RandomTime(Random* random) {
  std::string time = absl::StrFormat(
      "20%02d-%02d-%02dT%02d:%02d:%02d", random->Below(40),
      1 + random->Below(12), 1 + random->Below(random->OneIn(9) ? 33 : 28),
      random->Below(random->OneIn(9) ? 26 : 24), random->Below(60),
      random->Below(60));
  if (random->OneIn(4)) {
    time += "." + std::string(random->Below(11), '4');
  }
  static constexpr const char* kZones[] = {"Z", "+01:00", "-11:30", "z",
                                           "",  "+0100",  "Z ",     "+25:00"};
  time += random->OneIn(3) ? kZones[random->Below(8)] : "Z";
  if (random->OneIn(20)) time[random->Below(time.size())] = ' ';
  if (random->OneIn(30)) time.resize(10);
  return time;
}

void AddDrift(v1::RunFunctionRequest* request, Random* random) {
  v1::State* const observed = request->mutable_observed();
  AddTo(observed->mutable_composite(), random);
  for (size_t i = random->Below(3); i > 0; --i) {
    AddTo(&(*observed->mutable_resources())[std::to_string(i)], random);
  }
  if (random->OneIn(3)) {
    AddTo((*request->mutable_required_resources())["r"].add_items(), random);
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  if (random->OneIn(3)) {
    AddTo((*request->mutable_extra_resources())["e"].add_items(), random);
  }
#pragma GCC diagnostic pop
  if (random->OneIn(3)) {
    AddTo(&(*request->mutable_desired()->mutable_resources())["d"], random);
  }
}

void MutateDrift(v1::RunFunctionRequest* request, Random* random) {
  const std::vector<FoundDrift> found = FindDrift(request);
  if (found.empty()) return;
  const FoundDrift& drift = found[random->Below(found.size())];
  if (random->OneIn(8)) {
    FillStatus(drift.value, drift.key, random, 2);
  } else if (drift.type == 'm') {
    FillManagedFields(drift.value, random);
  } else {
    drift.value->set_string_value(drift.type == 't' ? RandomTime(random)
                                                    : RandomVersion(random));
  }
}

}  // namespace fncache::cache::key
