// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/key/key_oracle.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache/key/canonical_walk.h"
#include "cache/key/reencode.h"
#include "cache/key/walk_machine.h"
#include "cache/wire/schema.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/cache/key/unfold.h"

namespace fncache::cache::key {
namespace {

namespace pb = google::protobuf;
namespace v1 = apiextensions::fn::proto::v1;
using Reflection = pb::Reflection;
using Field = pb::FieldDescriptor;

std::string Ordered(const pb::UnknownFieldSet& fields) {
  std::vector<std::pair<int, std::string>> parts;
  for (int i = 0; i < fields.field_count(); ++i) {
    const pb::UnknownField& field = fields.field(i);
    std::string bytes;
    if (field.type() == pb::UnknownField::TYPE_GROUP) {
      bytes = absl::StrCat("group(", Ordered(field.group()), ")");
    } else {
      pb::UnknownFieldSet one;
      one.AddField(field);
      one.SerializeToString(&bytes);
    }
    parts.emplace_back(field.number(), absl::StrCat(field.number(), ":",
                                                    bytes.size(), ":", bytes));
  }
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out;
  for (const auto& part : parts) out += part.second;
  return out;
}

// Takes the unknown fields out of every message into `unknown`, by where they
// were, and makes numbers into strings of their bits.
void Flatten(const std::string& path, pb::Message* message,
             std::map<std::string, std::string>* unknown) {
  const Reflection* reflection = message->GetReflection();
  if (!reflection->GetUnknownFields(*message).empty()) {
    (*unknown)[path] = Ordered(reflection->GetUnknownFields(*message));
    reflection->MutableUnknownFields(message)->Clear();
  }
  if (message->GetDescriptor() == pb::Value::descriptor()) {
    auto* value = static_cast<pb::Value*>(message);
    if (value->kind_case() == pb::Value::kStringValue) {
      value->set_string_value("text " + value->string_value());
    } else if (value->kind_case() == pb::Value::kNumberValue) {
      const double number = value->number_value();
      uint64_t bits;
      std::memcpy(&bits, &number, sizeof(bits));
      value->set_string_value(absl::StrCat("number ", absl::Hex(bits)));
    }
  }
  std::vector<const Field*> fields;
  reflection->ListFields(*message, &fields);
  for (const Field* field : fields) {
    if (field->cpp_type() != Field::CPPTYPE_MESSAGE) continue;
    const std::string below = absl::StrCat(path, "/", field->number());
    if (!field->is_repeated()) {
      Flatten(below, reflection->MutableMessage(message, field), unknown);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
      pb::Message* element =
          reflection->MutableRepeatedMessage(message, field, i);
      std::string name = std::to_string(i);
      if (field->is_map()) {
        name = element->GetReflection()->GetString(
            *element, element->GetDescriptor()->map_key());
        name = absl::StrCat(name.size(), " ", name);
      }
      Flatten(absl::StrCat(below, "[", name, "]"), element, unknown);
    }
  }
}

bool ParseTo(absl::string_view bytes, int depth, pb::Message* message) {
  pb::LogSilencer silence;
  pb::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                              static_cast<int>(bytes.size()));
  in.SetRecursionLimit(depth);
  return message->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

bool Is64HexDigits(const std::string& tag) {
  return tag.size() == 64 &&
         tag.find_first_not_of("0123456789abcdefABCDEF") == tag.npos;
}

void ClearSkippedByTag(v1::RunFunctionRequest* request) {
  request->clear_observed();
  request->clear_desired();
  request->clear_input();
  request->clear_credentials();
}

// A type like RunFunctionRequest, but for the skipped fields, which are bytes
// that may come any number of times, as none of them is looked at.
class TagPartParser {
 public:
  TagPartParser()
      : pool_(pb::DescriptorPool::generated_pool()), factory_(&pool_) {
    // Only the outermost message is of another type.
    factory_.SetDelegateToGeneratedFactory(true);
    const pb::Descriptor* request = v1::RunFunctionRequest::descriptor();
    pb::FileDescriptorProto file;
    file.set_name("tag_part.proto");
    file.set_package("tag_part");
    file.set_syntax("proto3");
    file.add_dependency(request->file()->name());
    file.add_dependency(pb::Struct::descriptor()->file()->name());
    pb::DescriptorProto* type = file.add_message_type();
    type->set_name("TagPart");
    for (int i = 0; i < request->field_count(); ++i) {
      const Field* field = request->field(i);
      pb::FieldDescriptorProto* part = type->add_field();
      part->set_name(field->name());
      part->set_number(field->number());
      part->set_label(field->is_repeated()
                          ? pb::FieldDescriptorProto::LABEL_REPEATED
                          : pb::FieldDescriptorProto::LABEL_OPTIONAL);
      if (IsSkipped(*field)) {
        part->set_label(pb::FieldDescriptorProto::LABEL_REPEATED);
        part->set_type(pb::FieldDescriptorProto::TYPE_BYTES);
        continue;
      }
      part->set_type(pb::FieldDescriptorProto::TYPE_MESSAGE);
      if (!field->is_map()) {
        part->set_type_name("." + field->message_type()->full_name());
        continue;
      }
      // Entries as messages like any other: all of them are kept, and what
      // they mean together is for the real type to say.
      pb::DescriptorProto* entry = type->add_nested_type();
      entry->set_name(absl::StrCat("Entry", field->number()));
      part->set_type_name(".tag_part.TagPart." + entry->name());
      for (int j = 0; j < 2; ++j) {
        field->message_type()->field(j)->CopyTo(entry->add_field());
      }
    }
    prototype_ = factory_.GetPrototype(
        pool_.BuildFile(file)->FindMessageTypeByName("TagPart"));
  }

  bool Parse(absl::string_view bytes, v1::RunFunctionRequest* rest) const {
    const std::unique_ptr<pb::Message> part(prototype_->New());
    if (!ParseTo(bytes, wire::kMaxDepth, part.get())) return false;
    const pb::Descriptor* type = part->GetDescriptor();
    for (int i = 0; i < type->field_count(); ++i) {
      const Field* field = type->field(i);
      if (IsSkipped(*field)) {
        part->GetReflection()->ClearField(part.get(), field);
      }
    }
    // An entry without a value gets one, which may lie deeper than it did.
    return ParseTo(part->SerializeAsString(), wire::kMaxDepth + 10, rest);
  }

 private:
  static bool IsSkipped(const Field& field) {
    const std::string& name = field.name();
    return name == "observed" || name == "desired" || name == "input" ||
           name == "credentials";
  }

  pb::DescriptorPool pool_;
  pb::DynamicMessageFactory factory_;
  const pb::Message* prototype_;
};

}  // namespace

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

bool SameRequest(const MaskSet& masks, v1::RunFunctionRequest a,
                 v1::RunFunctionRequest b) {
  ClearMasked(masks, &a);
  ClearMasked(masks, &b);
  return SameMessage(&a, &b);
}

bool SameMessage(pb::Message* a, pb::Message* b) {
  std::map<std::string, std::string> unknown_a;
  std::map<std::string, std::string> unknown_b;
  Flatten("", a, &unknown_a);
  Flatten("", b, &unknown_b);
  return unknown_a == unknown_b && pb::util::MessageDifferencer::Equals(*a, *b);
}

bool ProtobufParses(absl::string_view bytes, v1::RunFunctionRequest* request) {
  return ParseTo(bytes, wire::kMaxDepth, request);
}

bool ProtobufParsesTagPart(absl::string_view bytes,
                           v1::RunFunctionRequest* rest) {
  static const auto* const kParser = new TagPartParser();
  return kParser->Parse(bytes, rest);
}

KeyChecker::KeyChecker(const MaskSet& masks, KeySource source, KeyHash hash)
    : masks_(masks),
      by_tag_(source == KeySource::kTag),
      digester_(Seed{}, {"f", "m", "g", source, hash}, masks) {}

Digest KeyChecker::Compute(absl::string_view bytes) {
  return digester_.Compute({bytes}, &scratch_);
}

KeyChecker::Judged KeyChecker::Judge(absl::string_view bytes) const {
  Judged judged;
  if (by_tag_) {
    if (!ProtobufParsesTagPart(bytes, &judged.message)) return judged;
    judged.by_tag = Is64HexDigits(judged.message.meta().tag());
    judged.keyed = judged.by_tag;
    if (judged.keyed) return judged;
    judged.message.Clear();
  }
  judged.keyed = ProtobufParses(bytes, &judged.message);
  return judged;
}

std::string KeyChecker::CheckOne(absl::string_view bytes, bool* fast) {
  // On the heap and of exactly this size, so that a sanitizer sees what is read
  // beyond it.
  const std::vector<char> exact(bytes.begin(), bytes.end());
  bytes = absl::string_view(exact.data(), exact.size());
  const Judged judged = Judge(bytes);
  const Digest digest = Compute(bytes);
  if (digest.keyed != judged.keyed) {
    return absl::StrCat("keyed ", digest.keyed, ", by protobuf ", judged.keyed);
  }
  if (judged.keyed && digest.tag != judged.message.meta().tag()) {
    return "another tag";
  }
  if (!judged.keyed && !digest.tag.empty()) return "a tag without a key";
  const Key key = digest.key;
  std::string wrong = CheckSlices(bytes, digest);
  if (!wrong.empty()) return wrong;
  if (!judged.by_tag) return CheckForm(bytes, judged, key, fast);
  // Protobuf's own encoding of what counts has the same key; it may be deeper
  // by one.
  std::string rest;
  judged.message.SerializeToString(&rest);
  const Digest again = Compute(rest);
  if (again.keyed && again.key != key) return "another key without the rest";
  // Where all of it parses, clearing what is skipped comes to the same.
  v1::RunFunctionRequest whole;
  if (!ProtobufParses(bytes, &whole)) return "";
  ClearSkippedByTag(&whole);
  if (whole.meta().tag() != judged.message.meta().tag() ||
      !SameRequest(masks_, whole, judged.message)) {
    return "the oracle is of two minds";
  }
  return "";
}

std::string KeyChecker::CheckSlices(absl::string_view bytes,
                                    const Digest& whole) {
  const bool keyed = whole.keyed;
  const Key key = whole.key;
  const std::string tag(whole.tag);
  const size_t first = bytes.size() / 3;
  const size_t second = first + (bytes.size() * 31 % 97) % (first + 1);
  std::vector<std::vector<char>> parts;
  std::vector<absl::string_view> slices;
  for (const absl::string_view part :
       {bytes.substr(0, first), bytes.substr(first, second - first),
        bytes.substr(second)}) {
    parts.emplace_back(part.begin(), part.end());
    slices.emplace_back(parts.back().data(), parts.back().size());
  }
  const Digest digest = digester_.Compute(slices, &scratch_);
  if (digest.keyed != keyed) return "in slices keyed otherwise";
  if (keyed && digest.key != key) return "another key in slices";
  if (keyed && digest.tag != tag) return "another tag in slices";
  return "";
}

std::string KeyChecker::CheckForm(absl::string_view bytes, const Judged& judged,
                                  const Key& key, bool* fast) {
  CanonicalWalk walk;
  absl::string_view tag;
  std::string out(CanonicalWalk::Room(bytes.size()), '\0');
  const char* end =
      walk.Run(bytes, masks_.root(), wire::kMaxDepth, &out[0], &tag);
  if (fast != nullptr) *fast = end != nullptr;
  absl::optional<absl::string_view> form;
  if (end != nullptr) form = absl::string_view(out.data(), end - out.data());
  const std::string wrong =
      CheckOtherMachines(bytes, wire::kMaxDepth, form, tag);
  if (!wrong.empty()) return wrong;
  if (!judged.keyed) {
    v1::RunFunctionRequest request;
    return end != nullptr && !ProtobufParses(bytes, &request)
               ? "plain, and protobuf does not parse it"
               : "";
  }
  std::string plain;
  if (!Reencode(bytes, &plain)) return "the slow path refuses it";
  std::string slow(CanonicalWalk::Room(plain.size()), '\0');
  const char* slow_end =
      walk.Run(plain, masks_.root(), kMaxPlainDepth, &slow[0], &tag);
  if (slow_end == nullptr) return "the slow path's form is not plain";
  slow.resize(slow_end - slow.data());
  if (end != nullptr) {
    out.resize(end - out.data());
    if (out != slow) return "fast and slow path differ";
  } else {
    const std::string wrong_plain =
        CheckOtherMachines(plain, kMaxPlainDepth, slow, tag);
    if (!wrong_plain.empty()) return wrong_plain;
  }
  // The canonical form says the message without its masked parts.
  if (slow.size() < 2000) {
    const absl::optional<std::string> unfolded = Unfold(masks_, slow);
    v1::RunFunctionRequest rest;
    if (!unfolded.has_value() || !ProtobufParses(*unfolded, &rest)) {
      return "the canonical form cannot be read";
    }
    if (!SameRequest(masks_, judged.message, rest)) {
      return "the canonical form is another message";
    }
    if (!Reencode(*unfolded, &plain)) return "what it says is not plain";
    std::string again(CanonicalWalk::Room(plain.size()), '\0');
    const char* again_end =
        walk.Run(plain, masks_.root(), kMaxPlainDepth, &again[0], &tag);
    if (again_end == nullptr ||
        again.substr(0, again_end - again.data()) != slow) {
      return "the canonical form is not its own";
    }
  }
  if (Reencode(bytes, &plain) && Compute(plain).keyed &&
      Compute(plain).key != key) {
    return "another key by the slow path";
  }
  return "";
}

std::string KeyChecker::CheckOtherMachines(
    absl::string_view bytes, int depth, absl::optional<absl::string_view> form,
    absl::string_view tag) const {
  if (ThisMachine() == Machine::kAny) return "";
  const auto out = std::make_unique<char[]>(CanonicalWalk::Room(bytes.size()));
  absl::string_view other_tag;
  CanonicalWalk walk(Machine::kAny);
  const char* const end =
      walk.Run(bytes, masks_.root(), depth, out.get(), &other_tag);
  if ((end != nullptr) != form.has_value()) {
    return "plain on one machine alone";
  }
  if (end == nullptr) return "";
  if (absl::string_view(out.get(), end - out.get()) != *form) {
    return "another form on another machine";
  }
  return other_tag == tag ? "" : "another tag on another machine";
}

std::string KeyChecker::CheckPair(absl::string_view a, absl::string_view b,
                                  bool* equal) {
  const Judged judged_a = Judge(a);
  const Judged judged_b = Judge(b);
  if (!judged_a.keyed || !judged_b.keyed) return "";
  const Digest digest_a = Compute(a);
  const Key key_a = digest_a.key;
  const Digest digest_b = Compute(b);
  if (!digest_a.keyed || !digest_b.keyed) return "not keyed";
  const bool same = judged_a.by_tag == judged_b.by_tag &&
                    (!judged_a.by_tag || judged_a.message.meta().tag() ==
                                             judged_b.message.meta().tag()) &&
                    SameRequest(masks_, judged_a.message, judged_b.message);
  if (equal != nullptr) *equal = same;
  if (same == (key_a == digest_b.key)) return "";
  return absl::StrCat(
      same ? "equal messages, two keys: " : "two messages, one key: ",
      judged_a.message.ShortDebugString(), " and ",
      judged_b.message.ShortDebugString());
}

}  // namespace fncache::cache::key
