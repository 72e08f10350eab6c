// SPDX-License-Identifier: Apache-2.0
#include "text/yaml_writer.h"

#include <yaml.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/utf8.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "text/key_order.h"
#include "text/yaml_scalar.h"

namespace fncache::text {
namespace {

class Writer {
 public:
  explicit Writer(std::string* out) {
    ready_ = yaml_emitter_initialize(&emitter_) != 0;
    if (!ready_) return;
    yaml_emitter_set_output(&emitter_, &Append, out);
    yaml_emitter_set_unicode(&emitter_, 1);
    yaml_emitter_set_indent(&emitter_, 2);
    yaml_emitter_set_width(&emitter_, 80);
  }
  ~Writer() {
    if (ready_) yaml_emitter_delete(&emitter_);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Returns false if memory ran out.
  bool WriteDocument(const Json& json) {
    if (!ready_) return false;
    yaml_event_t event;
    // The stream is not ended: that would add "..." after text that ends in
    // empty lines, which the reference does not.
    return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
           Emit(&event) &&
           yaml_document_start_event_initialize(&event, nullptr, nullptr,
                                                nullptr, 1) &&
           Emit(&event) && Write(json) &&
           yaml_document_end_event_initialize(&event, 1) && Emit(&event) &&
           yaml_emitter_flush(&emitter_);
  }

 private:
  static int Append(void* out, unsigned char* bytes, size_t size) {
    static_cast<std::string*>(out)->append(reinterpret_cast<char*>(bytes),
                                           size);
    return 1;
  }

  // Takes the event over.
  bool Emit(yaml_event_t* event) {
    return yaml_emitter_emit(&emitter_, event) != 0;
  }

  bool WriteScalar(absl::string_view text, yaml_scalar_style_t style) {
    yaml_event_t event;
    return yaml_scalar_event_initialize(
               &event, nullptr, nullptr,
               reinterpret_cast<const yaml_char_t*>(text.data()),
               static_cast<int>(text.size()), 1, 1, style) &&
           Emit(&event);
  }

  bool WriteText(absl::string_view text) {
    const std::string valid = WellFormedUtf8(text);
    // The one thing that is not as the reference prints it: see ToYaml.
    if (HasBidiControl(valid)) {
      return WriteScalar(valid, YAML_DOUBLE_QUOTED_SCALAR_STYLE);
    }
    if (absl::StrContains(valid, '\n')) {
      return WriteScalar(valid, YAML_LITERAL_SCALAR_STYLE);
    }
    const bool means_text =
        ResolveYamlScalar(valid).type == YamlScalar::Type::kText;
    return WriteScalar(valid, means_text && !IsBase60(valid)
                                  ? YAML_PLAIN_SCALAR_STYLE
                                  : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
  }

  bool WriteMap(const Json& json) {
    std::vector<Json::const_iterator> fields;
    fields.reserve(json.size());
    for (auto it = json.begin(); it != json.end(); ++it) fields.push_back(it);
    std::stable_sort(
        fields.begin(), fields.end(),
        [](const auto& a, const auto& b) { return KeyLess(a.key(), b.key()); });
    yaml_event_t event;
    if (!yaml_mapping_start_event_initialize(&event, nullptr, nullptr, 1,
                                             YAML_BLOCK_MAPPING_STYLE) ||
        !Emit(&event)) {
      return false;
    }
    for (const auto& field : fields) {
      if (!WriteText(field.key()) || !Write(field.value())) return false;
    }
    return yaml_mapping_end_event_initialize(&event) && Emit(&event);
  }

  bool WriteList(const Json& json) {
    yaml_event_t event;
    if (!yaml_sequence_start_event_initialize(&event, nullptr, nullptr, 1,
                                              YAML_BLOCK_SEQUENCE_STYLE) ||
        !Emit(&event)) {
      return false;
    }
    for (const Json& element : json) {
      if (!Write(element)) return false;
    }
    return yaml_sequence_end_event_initialize(&event) && Emit(&event);
  }

  bool WriteNumber(double number) {
    google::protobuf::Value value;
    value.set_number_value(number);
    const Json shortest = FromValue(value);
    if (!shortest.is_number_float()) return Write(shortest);
    return WriteScalar(YamlNumber(number), YAML_PLAIN_SCALAR_STYLE);
  }

  bool Write(const Json& json) {
    switch (json.type()) {
      case Json::value_t::object:
        return WriteMap(json);
      case Json::value_t::array:
        return WriteList(json);
      case Json::value_t::string:
        return WriteText(*json.get_ptr<const std::string*>());
      case Json::value_t::boolean:
        return WriteScalar(*json.get_ptr<const bool*>() ? "true" : "false",
                           YAML_PLAIN_SCALAR_STYLE);
      case Json::value_t::number_integer:
        return WriteScalar(absl::StrCat(*json.get_ptr<const int64_t*>()),
                           YAML_PLAIN_SCALAR_STYLE);
      case Json::value_t::number_unsigned:
        return WriteScalar(absl::StrCat(*json.get_ptr<const uint64_t*>()),
                           YAML_PLAIN_SCALAR_STYLE);
      case Json::value_t::number_float:
        return WriteNumber(*json.get_ptr<const double*>());
      case Json::value_t::null:
      case Json::value_t::binary:
      case Json::value_t::discarded:
        break;
    }
    return WriteScalar("null", YAML_PLAIN_SCALAR_STYLE);
  }

  bool ready_ = false;
  yaml_emitter_t emitter_ = {};
};

}  // namespace

std::string ToYaml(const Json& json) {
  std::string text;
  Writer(&text).WriteDocument(json);
  // They are in double quotes, where \uNNNN means the character. (libyaml
  // itself escapes all other characters that a terminal would obey.)
  return WithoutBidiControls(text);
}

std::string StructToYaml(const google::protobuf::Struct& object) {
  return ToYaml(FromStruct(object));
}

std::string ValueToYaml(const google::protobuf::Value& value) {
  return ToYaml(FromValue(value));
}

}  // namespace fncache::text
