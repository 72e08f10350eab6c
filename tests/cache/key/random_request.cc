// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/key/random_request.h"

#include <cstring>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/function_v1.pb.h"

namespace fncache::cache::key {
namespace {

namespace pb = google::protobuf;
namespace v1 = apiextensions::fn::proto::v1;
using Reflection = pb::Reflection;
using Field = pb::FieldDescriptor;

std::string RandomText(Random* random) {
  static const std::string* const kTexts =
      new std::string[16]{"",
                          "a",
                          "b",
                          "metadata",
                          "metadatb",
                          "spec",
                          "status",
                          "resourceVersion",
                          "crossplane.io/composition-resource-name",
                          "crossplane.io/composition-resource-names",
                          std::string("a\0", 2),
                          "caf\xc3\xa9",
                          "\xf0\x9f\x98\x80 sixteen and more bytes",
                          "exactly8",
                          "0",
                          std::string(130, 'x')};
  if (random->OneIn(12)) {
    return std::string(random->Below(40), 'k') +
           std::to_string(random->Below(9));
  }
  return kTexts[random->Below(16)];
}

// Half of them are tags to go by; some of the others nearly are.
std::string RandomTag(Random* random) {
  static constexpr char kDigits[] = "0f9aAF";
  std::string tag(64, kDigits[random->Below(6)]);
  tag[random->Below(64)] = kDigits[random->Below(6)];
  switch (random->Below(10)) {
    case 0:
      tag[random->Below(64)] = "g:@/`G\0 "[random->Below(8)];
      return tag;
    case 1:
      return tag.substr(1);
    case 2:
      return tag + "0";
    case 3:
    case 4:
      return RandomText(random);
    default:
      return tag;
  }
}

double RandomNumber(Random* random) {
  static constexpr uint64_t kBits[] = {0,
                                       0x8000000000000000u,
                                       0x3ff0000000000000u,
                                       0x7ff8000000000000u,
                                       0x7ff8000000000001u,
                                       0xfff8000000000000u,
                                       0x7ff0000000000001u,
                                       0x7ff0000000000000u,
                                       1};
  const uint64_t bits = kBits[random->Below(9)];
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

int RandomEnum(Random* random) {
  static constexpr int kValues[] = {0, 1, 2, 3, 127, 128, 70000, -1, 1 << 30};
  return random->OneIn(3) ? kValues[random->Below(9)]
                          : static_cast<int>(random->Below(3));
}

void AddUnknown(pb::UnknownFieldSet* fields, Random* random, int depth) {
  static constexpr int kNumbers[] = {10, 11, 12, 15, 16, 2000, (1 << 29) - 1};
  const int number = kNumbers[random->Below(7)];
  switch (random->Below(depth > 0 ? 5 : 4)) {
    case 0:
      fields->AddVarint(number, random->Bits() >> random->Below(64));
      break;
    case 1:
      fields->AddFixed32(number, static_cast<uint32_t>(random->Below(3)));
      break;
    case 2:
      fields->AddFixed64(number, random->Below(3));
      break;
    case 3:
      fields->AddLengthDelimited(number, random->OneIn(3) ? "\xff\xfe" : "u");
      break;
    default: {
      pb::UnknownFieldSet* group = fields->AddGroup(number);
      for (size_t i = random->Below(3); i > 0; --i) {
        AddUnknown(group, random, depth - 1);
      }
    }
  }
}

// A known field of the wrong wire type is an unknown one.
void AddMistyped(pb::Message* message, Random* random) {
  pb::UnknownFieldSet* fields =
      message->GetReflection()->MutableUnknownFields(message);
  const int number =
      1 +
      static_cast<int>(random->Below(message->GetDescriptor()->field_count()));
  fields->AddFixed32(number, static_cast<uint32_t>(random->Below(3)));
}

void MaybeUnknown(pb::Message* message, Random* random) {
  if (!random->OneIn(16)) return;
  for (size_t i = 1 + random->Below(3); i > 0; --i) {
    AddUnknown(message->GetReflection()->MutableUnknownFields(message), random,
               2);
  }
  if (random->OneIn(3)) AddMistyped(message, random);
}

void FillStruct(pb::Struct* message, Random* random, int depth);

void FillValue(pb::Value* value, Random* random, int depth) {
  MaybeUnknown(value, random);
  switch (random->Below(depth > 0 ? 8 : 6)) {
    case 0:
      break;
    case 1:
      value->set_null_value(random->OneIn(4)
                                ? static_cast<pb::NullValue>(RandomEnum(random))
                                : pb::NULL_VALUE);
      break;
    case 2:
      value->set_number_value(RandomNumber(random));
      break;
    case 3:
    case 4:
      value->set_string_value(RandomText(random));
      break;
    case 5:
      value->set_bool_value(random->OneIn(2));
      break;
    case 6:
      FillStruct(value->mutable_struct_value(), random, depth - 1);
      break;
    default:
      MaybeUnknown(value->mutable_list_value(), random);
      for (size_t i = random->Below(3); i > 0; --i) {
        FillValue(value->mutable_list_value()->add_values(), random, depth - 1);
      }
  }
}

void FillStruct(pb::Struct* message, Random* random, int depth) {
  MaybeUnknown(message, random);
  for (size_t i = random->OneIn(40) ? 40 : random->Below(4); i > 0; --i) {
    std::string key = RandomText(random);
    if (random->OneIn(40)) key += std::to_string(i);
    FillValue(&(*message->mutable_fields())[key], random, depth - 1);
  }
}

void FillResource(v1::Resource* resource, Random* random) {
  MaybeUnknown(resource, random);
  if (!random->OneIn(5)) FillStruct(resource->mutable_resource(), random, 3);
  for (size_t i = random->Below(3); i > 0; --i) {
    (*resource->mutable_connection_details())[RandomText(random)] =
        random->OneIn(3) ? "\xff" : RandomText(random);
  }
  if (random->OneIn(2)) {
    resource->set_ready(static_cast<v1::Ready>(RandomEnum(random)));
  }
}

void FillState(v1::State* state, Random* random) {
  MaybeUnknown(state, random);
  if (!random->OneIn(4)) FillResource(state->mutable_composite(), random);
  for (size_t i = random->Below(3); i > 0; --i) {
    FillResource(&(*state->mutable_resources())[RandomText(random)], random);
  }
}

void FillResources(v1::Resources* resources, Random* random) {
  MaybeUnknown(resources, random);
  for (size_t i = random->Below(3); i > 0; --i) {
    FillResource(resources->add_items(), random);
  }
}

void FillSelector(v1::ResourceSelector* selector, Random* random) {
  MaybeUnknown(selector, random);
  if (!random->OneIn(3)) selector->set_api_version(RandomText(random));
  if (!random->OneIn(3)) selector->set_kind(RandomText(random));
  if (random->OneIn(3)) {
    selector->set_match_name(RandomText(random));
  } else if (random->OneIn(2)) {
    MaybeUnknown(selector->mutable_match_labels(), random);
    for (size_t i = random->Below(3); i > 0; --i) {
      (*selector->mutable_match_labels()
            ->mutable_labels())[RandomText(random)] = RandomText(random);
    }
  }
  if (random->OneIn(4)) selector->set_namespace_(RandomText(random));
}

// Every message in `message`, itself included.
void Collect(pb::Message* message, std::vector<pb::Message*>* all) {
  all->push_back(message);
  const Reflection* reflection = message->GetReflection();
  std::vector<const Field*> fields;
  reflection->ListFields(*message, &fields);
  for (const Field* field : fields) {
    if (field->cpp_type() != Field::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Collect(reflection->MutableMessage(message, field), all);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
      Collect(reflection->MutableRepeatedMessage(message, field, i), all);
    }
  }
}

void MutateScalar(pb::Message* message, const Field* field, Random* random) {
  const Reflection* reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case Field::CPPTYPE_STRING:
      reflection->SetString(
          message, field,
          field->name() == "tag" ? RandomTag(random) : RandomText(random));
      break;
    case Field::CPPTYPE_ENUM:
      reflection->SetEnumValue(message, field, RandomEnum(random));
      break;
    case Field::CPPTYPE_BOOL:
      reflection->SetBool(message, field, random->OneIn(2));
      break;
    case Field::CPPTYPE_DOUBLE:
      reflection->SetDouble(message, field, RandomNumber(random));
      break;
    default:
      break;
  }
}

void MutateRepeated(pb::Message* message, const Field* field, Random* random) {
  const Reflection* reflection = message->GetReflection();
  const int size = reflection->FieldSize(*message, field);
  const size_t what = random->Below(3);
  if (what == 0 && size > 0) {
    reflection->RemoveLast(message, field);
  } else if (what == 1 && size > 1) {
    reflection->SwapElements(message, field, 0, size - 1);
  } else if (field->cpp_type() == Field::CPPTYPE_ENUM) {
    reflection->AddEnumValue(message, field, RandomEnum(random));
  } else if (!field->is_map()) {
    reflection->AddMessage(message, field);
  }
}

}  // namespace

v1::RunFunctionRequest RandomRequest(Random* random) {
  v1::RunFunctionRequest request;
  MaybeUnknown(&request, random);
  if (!random->OneIn(4)) {
    v1::RequestMeta* meta = request.mutable_meta();
    MaybeUnknown(meta, random);
    if (!random->OneIn(3)) meta->set_tag(RandomTag(random));
    for (size_t i = random->Below(4); i > 0; --i) {
      meta->add_capabilities(static_cast<v1::Capability>(RandomEnum(random)));
    }
  }
  if (!random->OneIn(3)) FillState(request.mutable_observed(), random);
  if (random->OneIn(3)) FillState(request.mutable_desired(), random);
  if (random->OneIn(3)) FillStruct(request.mutable_input(), random, 3);
  if (random->OneIn(2)) FillStruct(request.mutable_context(), random, 4);
  for (size_t i = random->Below(3); i > 0; --i) {
    FillResources(&(*request.mutable_required_resources())[RandomText(random)],
                  random);
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  if (random->OneIn(4)) {
    FillResources(&(*request.mutable_extra_resources())[RandomText(random)],
                  random);
  }
#pragma GCC diagnostic pop
  if (random->OneIn(3)) {
    v1::Credentials& credentials =
        (*request.mutable_credentials())[RandomText(random)];
    MaybeUnknown(&credentials, random);
    if (!random->OneIn(3)) {
      MaybeUnknown(credentials.mutable_credential_data(), random);
      (*credentials.mutable_credential_data()
            ->mutable_data())[RandomText(random)] = RandomText(random);
    }
  }
  if (random->OneIn(4)) {
    v1::Schema& schema = (*request.mutable_required_schemas())["s"];
    if (random->OneIn(2)) FillStruct(schema.mutable_openapi_v3(), random, 3);
  }
  return request;
}

v1::RunFunctionResponse RandomResponse(Random* random) {
  v1::RunFunctionResponse response;
  MaybeUnknown(&response, random);
  if (!random->OneIn(4)) FillState(response.mutable_desired(), random);
  for (size_t i = random->Below(3); i > 0; --i) {
    v1::Result* const result = response.add_results();
    MaybeUnknown(result, random);
    result->set_severity(static_cast<v1::Severity>(RandomEnum(random)));
    if (!random->OneIn(3)) result->set_message(RandomText(random));
    // Where presence counts, a default is not the same as nothing.
    if (random->OneIn(3)) result->set_reason(RandomText(random));
    if (random->OneIn(3)) {
      result->set_target(static_cast<v1::Target>(RandomEnum(random)));
    }
  }
  if (random->OneIn(3)) FillStruct(response.mutable_context(), random, 3);
  if (random->OneIn(2)) {
    v1::Requirements* const requirements = response.mutable_requirements();
    MaybeUnknown(requirements, random);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    if (random->OneIn(3)) {
      FillSelector(
          &(*requirements->mutable_extra_resources())[RandomText(random)],
          random);
    }
#pragma GCC diagnostic pop
    for (size_t i = random->Below(3); i > 0; --i) {
      FillSelector(&(*requirements->mutable_resources())[RandomText(random)],
                   random);
    }
    if (random->OneIn(3)) {
      v1::SchemaSelector& schema =
          (*requirements->mutable_schemas())[RandomText(random)];
      MaybeUnknown(&schema, random);
      schema.set_kind(RandomText(random));
    }
  }
  for (size_t i = random->Below(3); i > 0; --i) {
    v1::Condition* const condition = response.add_conditions();
    MaybeUnknown(condition, random);
    condition->set_type(RandomText(random));
    condition->set_status(static_cast<v1::Status>(RandomEnum(random)));
    if (random->OneIn(3)) condition->set_message(RandomText(random));
  }
  if (random->OneIn(4)) FillStruct(response.mutable_output(), random, 2);
  return response;
}

void Mutate(pb::Message* root, Random* random) {
  std::vector<pb::Message*> all;
  Collect(root, &all);
  pb::Message* message = all[random->Below(all.size())];
  const pb::Descriptor* descriptor = message->GetDescriptor();
  const Reflection* reflection = message->GetReflection();
  if (random->OneIn(6) && !descriptor->options().map_entry()) {
    pb::UnknownFieldSet* unknown = reflection->MutableUnknownFields(message);
    if (!unknown->empty() && random->OneIn(2)) {
      unknown->DeleteSubrange(unknown->field_count() - 1, 1);
    } else {
      AddUnknown(unknown, random, 2);
    }
    return;
  }
  const Field* field = descriptor->field(
      static_cast<int>(random->Below(descriptor->field_count())));
  if (field->is_repeated()) {
    MutateRepeated(message, field, random);
  } else if (field->cpp_type() != Field::CPPTYPE_MESSAGE) {
    if (reflection->HasField(*message, field) && random->OneIn(3) &&
        !descriptor->options().map_entry()) {
      reflection->ClearField(message, field);
    } else {
      MutateScalar(message, field, random);
    }
  } else if (reflection->HasField(*message, field) &&
             !descriptor->options().map_entry()) {
    reflection->ClearField(message, field);
  } else {
    reflection->MutableMessage(message, field);
  }
}

const std::vector<MaskSet>& MaskSets() {
  static const auto* const kSets = [] {
    auto* sets = new std::vector<MaskSet>();
    const std::vector<std::vector<std::string>> paths = {
        {},
        {"context.a"},
        {"observed.composite.resource.metadata",
         "observed.resources.*.resource.metadata.resourceVersion"},
        {"observed.composite.resource.*.a", "observed.composite.resource.spec",
         "observed.composite.resource.status.*", "context.*.*"},
        {"observed.resources.a.resource.*.*.*", "input.*.metadata",
         "input.spec.*", "context.\"\""},
        {"required_resources.*.items.*.resource.*", "meta.capabilities.*",
         "observed.resources.*.connection_details.a"},
        {"required_resources.a.items.*", "desired.composite", "credentials",
         "required_schemas.*.openapi_v3.a", "observed.composite.ready"},
        {"meta", "observed.composite.connection_details", "desired.resources.*",
         "credentials.*.credential_data.data.*", "context"},
        {"meta.tag", "meta.capabilities", "required_resources.*.items",
         "credentials.a.credential_data", "input.*.*.*.*", "input.a.b",
         "input.*.b.*"},
    };
    for (const auto& list : paths) {
      sets->push_back(*MaskSet::Parse(list, MaskRules::kAnyPath));
    }
    return sets;
  }();
  return *kSets;
}

}  // namespace fncache::cache::key
