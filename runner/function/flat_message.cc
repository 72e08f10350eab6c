// SPDX-License-Identifier: Apache-2.0
#include "runner/function/flat_message.h"

#include <charconv>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/field_path.h"
#include "common/sha256.h"
#include "common/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "text/quoted.h"

namespace fncache::runner::function {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::Struct;
using google::protobuf::UnknownFieldSet;
using google::protobuf::Value;

constexpr size_t kMaxValueLength = 160;

// Equal values have equal results within one process, but the result does not
// reveal the value: the hash covers random bytes of this process and the value.
std::string Hidden(absl::string_view bytes) {
  static const std::string* const salt = [] {
    std::random_device random;
    auto* const made = new std::string;
    for (int i = 0; i < 8; ++i) absl::StrAppend(made, random(), ",");
    return made;
  }();
  constexpr size_t kShownDigits = 16;
  return absl::StrCat(
      "<", bytes.size(), " bytes, hash ",
      Sha256Hex(absl::StrCat(*salt, bytes)).substr(0, kShownDigits), ">");
}

std::string Number(double number) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number);
  return std::string(buffer, end.ptr);
}

class Flattener {
 public:
  explicit Flattener(FlatMessage* out) : out_(out) {}

  void Add(const Message& message) {
    if (message.GetDescriptor() == Struct::descriptor()) {
      AddStruct(static_cast<const Struct&>(message));
      return;
    }
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    const UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
    if (fields.empty() && unknown.empty()) Put("{}");
    for (const FieldDescriptor* field : fields) {
      const Below below(this, field->name());
      if (field->is_map()) {
        AddMap(message, field);
      } else if (field->is_repeated()) {
        for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
          const Item item(this, i);
          AddField(message, field, i);
        }
      } else {
        AddField(message, field, -1);
      }
    }
    AddUnknown(unknown);
  }

 private:
  // Lengthens the path for as long as it lives.
  class Below {
   public:
    Below(Flattener* flattener, absl::string_view key)
        : flattener_(flattener), length_(flattener->path_.size()) {
      absl::StrAppend(&flattener->path_, length_ == 0 ? "" : ".",
                      Printable(SpellKey(key)));
    }
    ~Below() { flattener_->path_.resize(length_); }
    Below(const Below&) = delete;
    Below& operator=(const Below&) = delete;

   private:
    Flattener* const flattener_;
    const size_t length_;
  };
  class Item {
   public:
    Item(Flattener* flattener, int index)
        : flattener_(flattener), length_(flattener->path_.size()) {
      absl::StrAppend(&flattener->path_, "[", index, "]");
    }
    ~Item() { flattener_->path_.resize(length_); }
    Item(const Item&) = delete;
    Item& operator=(const Item&) = delete;

   private:
    Flattener* const flattener_;
    const size_t length_;
  };

  void Put(std::string value) { (*out_)[path_] = std::move(value); }

  void AddMap(const Message& message, const FieldDescriptor* field) {
    // Every map of the protocol has text as its key.
    const FieldDescriptor* key = field->message_type()->map_key();
    const FieldDescriptor* value = field->message_type()->map_value();
    const Reflection& reflection = *message.GetReflection();
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      const Message& entry = reflection.GetRepeatedMessage(message, field, i);
      const Below below(this, entry.GetReflection()->GetString(entry, key));
      AddField(entry, value, -1);
    }
  }

  // `index` is -1 for a singular field.
  void AddField(const Message& message, const FieldDescriptor* field,
                int index) {
    const Reflection& reflection = *message.GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        Add(index < 0 ? reflection.GetMessage(message, field)
                      : reflection.GetRepeatedMessage(message, field, index));
        break;
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text =
            index < 0 ? reflection.GetString(message, field)
                      : reflection.GetRepeatedString(message, field, index);
        Put(field->type() == FieldDescriptor::TYPE_BYTES ? Hidden(text)
                                                         : text::Quoted(text));
        break;
      }
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int number =
            index < 0 ? reflection.GetEnumValue(message, field)
                      : reflection.GetRepeatedEnumValue(message, field, index);
        const auto* known = field->enum_type()->FindValueByNumber(number);
        Put(known == nullptr ? absl::StrCat(number) : known->name());
        break;
      }
      default:
        // The protocol has no other types; a new one would show here.
        Put(absl::StrCat("<", field->type_name(), ">"));
    }
  }

  void AddStruct(const Struct& object) {
    if (object.fields().empty()) Put("{}");
    for (const auto& field : object.fields()) {
      const Below below(this, field.first);
      AddValue(field.second);
    }
    AddUnknownOf(object);
  }

  void AddValue(const Value& value) {
    switch (value.kind_case()) {
      case Value::kNullValue:
        Put(value.null_value() == 0
                ? "null"
                : absl::StrCat("null(", static_cast<int>(value.null_value()),
                               ")"));
        break;
      case Value::kNumberValue:
        Put(Number(value.number_value()));
        break;
      case Value::kStringValue:
        Put(text::Quoted(value.string_value()));
        break;
      case Value::kBoolValue:
        Put(value.bool_value() ? "true" : "false");
        break;
      case Value::kStructValue:
        AddStruct(value.struct_value());
        break;
      case Value::kListValue: {
        const auto& list = value.list_value();
        if (list.values().empty()) Put("[]");
        for (int i = 0; i < list.values_size(); ++i) {
          const Item item(this, i);
          AddValue(list.values(i));
        }
        AddUnknownOf(list);
        break;
      }
      case Value::KIND_NOT_SET:
        Put("<no value>");
        break;
    }
    AddUnknownOf(value);
  }

  void AddUnknownOf(const Message& message) {
    AddUnknown(message.GetReflection()->GetUnknownFields(message));
  }

  void AddUnknown(const UnknownFieldSet& unknown) {
    std::map<int, std::string> by_number;
    for (int i = 0; i < unknown.field_count(); ++i) {
      UnknownFieldSet one;
      one.AddField(unknown.field(i));
      std::string bytes;
      one.SerializeToString(&bytes);
      by_number[unknown.field(i).number()] += bytes;
    }
    for (const auto& [number, bytes] : by_number) {
      const size_t length = path_.size();
      absl::StrAppend(&path_, "<unknown field ", number, ">");
      Put(Hidden(bytes));
      path_.resize(length);
    }
  }

  FlatMessage* const out_;
  std::string path_;
};

// Calls `differs(path, recorded, sent)` for each, null where it is absent.
template <typename Differs>
void ForEachDifference(const FlatMessage& recorded, const FlatMessage& sent,
                       const Differs& differs) {
  auto a = recorded.begin();
  auto b = sent.begin();
  while (a != recorded.end() || b != sent.end()) {
    const int order = a == recorded.end() ? 1
                      : b == sent.end()   ? -1
                                          : a->first.compare(b->first);
    if (order < 0) {
      differs(a->first, &a->second, nullptr);
      ++a;
    } else if (order > 0) {
      differs(b->first, nullptr, &b->second);
      ++b;
    } else {
      if (a->second != b->second) differs(a->first, &a->second, &b->second);
      ++a;
      ++b;
    }
  }
}

// `text`, or as many whole characters of it as fit a line.
std::string Cut(const std::string& text) {
  if (text.size() <= kMaxValueLength) return text;
  size_t length = kMaxValueLength;
  // The cut goes back to where a character begins.
  while (length > 0 && (static_cast<unsigned char>(text[length]) >> 6) == 2) {
    --length;
  }
  return absl::StrCat(absl::string_view(text).substr(0, length), "... (",
                      text.size(), " bytes)");
}

std::string Shown(const std::string* value) {
  return value == nullptr ? "(absent)" : Cut(*value);
}

}  // namespace

FlatMessage Flatten(const Message& message) {
  FlatMessage flat;
  Flattener(&flat).Add(message);
  return flat;
}

size_t CountDifferences(const FlatMessage& a, const FlatMessage& b) {
  size_t count = 0;
  ForEachDifference(a, b,
                    [&count](const std::string&, const std::string*,
                             const std::string*) { ++count; });
  return count;
}

std::string DescribeDifferences(const FlatMessage& recorded,
                                const FlatMessage& sent, size_t max_paths) {
  std::string text;
  size_t count = 0;
  ForEachDifference(recorded, sent,
                    [&](const std::string& path, const std::string* was,
                        const std::string* is) {
                      if (++count > max_paths) return;
                      absl::StrAppend(&text, "  ",
                                      path.empty() ? "(everything)" : Cut(path),
                                      "\n    recorded: ", Shown(was),
                                      "\n    sent:     ", Shown(is), "\n");
                    });
  if (count > max_paths) {
    absl::StrAppend(&text, "  and ", count - max_paths, " more\n");
  }
  return text;
}

}  // namespace fncache::runner::function
