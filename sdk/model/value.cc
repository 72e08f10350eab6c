// SPDX-License-Identifier: Apache-2.0
#include "fncache/function/value.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/utf8.h"
#include "sdk/model/node.h"

namespace fncache::function {
namespace internal {
namespace {

using sdk::Kind;
using sdk::Node;

// Numbers of the protocol are doubles: whole ones are exact up to here.
constexpr int64_t kMaxInteger = int64_t{1} << 53;
constexpr char kIntegerError[] =
    "must be a whole number from -9007199254740992 to 9007199254740992";

absl::string_view Absl(std::string_view text) {
  return {text.data(), text.size()};
}

bool IsWhole(double number) {
  return std::abs(number) <= static_cast<double>(kMaxInteger) &&
         number == std::trunc(number);
}

// The kind that a node must have to be read as a T, and its value then.
template <class T>
struct Scalar;
template <>
struct Scalar<std::string> {
  static constexpr char kName[] = "text";
  static bool Read(const Node& node, std::string* value) {
    if (node.kind != Kind::kText) return false;
    value->assign(node.text.data(), node.text.size());
    return true;
  }
};
template <>
struct Scalar<bool> {
  static constexpr char kName[] = "a boolean";
  static bool Read(const Node& node, bool* value) {
    *value = node.boolean;
    return node.kind == Kind::kBool;
  }
};
template <>
struct Scalar<double> {
  static constexpr char kName[] = "a number";
  static bool Read(const Node& node, double* value) {
    *value = node.number;
    return node.kind == Kind::kNumber;
  }
};
template <>
struct Scalar<int64_t> {
  static constexpr char kName[] = "a whole number";
  static bool Read(const Node& node, int64_t* value) {
    if (node.kind != Kind::kNumber || !IsWhole(node.number)) return false;
    *value = static_cast<int64_t>(node.number);
    return true;
  }
};
template <>
struct Scalar<IntOrString> {
  static constexpr char kName[] = "a whole number or text";
  static bool Read(const Node& node, IntOrString* value) {
    std::string text;
    if (Scalar<std::string>::Read(node, &text)) {
      *value = IntOrString(std::move(text));
      return true;
    }
    int64_t number;
    if (!Scalar<int64_t>::Read(node, &number)) return false;
    *value = IntOrString(number);
    return true;
  }
};

// Why no document can hold the value; empty if one can.
std::string Fault(const std::string& text) {
  return IsUtf8(text) ? "" : "must be UTF-8";
}
std::string Fault(bool) { return ""; }
std::string Fault(double number) {
  return std::isfinite(number) ? "" : "must be a finite number";
}
std::string Fault(int64_t number) {
  return number < -kMaxInteger || number > kMaxInteger ? kIntegerError : "";
}
std::string Fault(const IntOrString& value) {
  return value.is_text() ? Fault(value.text()) : Fault(value.number());
}

void Set(Node* node, const std::string& text) {
  if (!StartNode(node, Kind::kText)) return;
  node->text = node->document->arena()->Keep(text);
}
void Set(Node* node, bool value) {
  if (StartNode(node, Kind::kBool)) node->boolean = value;
}
void Set(Node* node, double number) {
  if (StartNode(node, Kind::kNumber)) node->number = number;
}
void Set(Node* node, int64_t number) { Set(node, static_cast<double>(number)); }
void Set(Node* node, const IntOrString& value) {
  value.is_text() ? Set(node, value.text()) : Set(node, value.number());
}

std::vector<Ref> Refs(const std::vector<Node*>& nodes) {
  return {nodes.begin(), nodes.end()};
}

}  // namespace

Ref::Ref(Node* node) : node_(node) {
  if (node_ != nullptr) node_->document->arena()->Ref();
}

Ref::Ref(const Ref& other) : Ref(other.node_) {}

Ref::~Ref() {
  if (node_ != nullptr) node_->document->arena()->Unref();
}

Ref NewDocument() {
  sdk::Arena* const arena = sdk::Arena::New();
  Ref root(arena->NewDocument()->root());
  arena->Unref();
  return root;
}

Ref Child(const Ref& node, std::string_view key) {
  if (!IsUtf8(Absl(key))) {
    sdk::WriteFails(node.get(), "the name of a field must be UTF-8");
    return NewDocument();
  }
  return Ref(sdk::ChildOf(node.get(), Absl(key)));
}

Ref ChildToSet(const Ref& object, std::string_view key) {
  return Ref(sdk::ChildToSet(object.get(), Absl(key)));
}

Ref Element(const Ref& list, size_t index) {
  return Ref(sdk::ElementOf(list.get(), index));
}

Ref Append(const Ref& list) { return Ref(sdk::AppendNode(list.get())); }

void DropUnset(const Ref& element) {
  const Node* const node = element.get();
  if (node->kind == Kind::kNull && node->implicit) Clear(element);
}

size_t SizeOf(const Ref& node) { return sdk::Size(node.get()); }

std::vector<std::string> KeysOf(const Ref& node) {
  std::vector<std::string> keys;
  for (const absl::string_view key : sdk::Keys(node.get())) {
    keys.emplace_back(key);
  }
  return keys;
}

bool HasValue(const Ref& node) {
  const Node* const shown = sdk::Look(node.get());
  return shown != nullptr && shown->kind != Kind::kNull;
}

bool IsNull(const Ref& node) {
  const Node* const shown = sdk::Look(node.get());
  return shown != nullptr && shown->kind == Kind::kNull;
}

void Clear(const Ref& node) { sdk::RemoveNode(node.get()); }

void Erase(const Ref& map, std::string_view key) {
  sdk::RemoveNode(Child(map, key).get());
}

void Copy(const Ref& to, const Ref& from) {
  sdk::CopyNode(to.get(), from.get());
}

void Merge(const Ref& to, const Ref& from) {
  sdk::MergeNode(to.get(), from.get());
}

void StartList(const Ref& node, bool implicit) {
  if (sdk::StartNode(node.get(), Kind::kList)) node.get()->implicit = implicit;
}

void StartObject(const Ref& node) { sdk::StartNode(node.get(), Kind::kObject); }

Ref Apart(const Ref& to, const Ref& from) {
  return Ref(sdk::Apart(to.get(), from.get()));
}

void SetElements(const Ref& list, std::vector<Ref> elements) {
  for (Ref& element : elements) element = Apart(list, element);
  StartList(list, !elements.empty());
  for (const Ref& from : elements) {
    const Ref element = Append(list);
    Copy(element, from);
    DropUnset(element);
  }
}

std::string PathOf(const Ref& node) { return sdk::PathOf(node.get()); }

// What Look found, as a presence and its sources.
static void Describe(const Ref& ref, const Node* shown, Origin* origin) {
  Node* const node = ref.get();
  if (shown == nullptr) {
    origin->sources = Refs(sdk::SourcesOf(node));
    origin->presence =
        origin->sources.empty() ? Presence::kFinal : Presence::kAwaited;
    if (origin->sources.empty()) origin->sources.push_back(ref);
    return;
  }
  if (node->document->section != sdk::Section::kAlone) {
    origin->sources.push_back(ref);
  }
  // Where a value may still come, a null is none yet.
  origin->presence = shown->kind != Kind::kNull ? Presence::kValue
                     : node->document->awaits   ? Presence::kAwaited
                                                : Presence::kNull;
}

Origin OriginOf(const Ref& ref) {
  Node* const node = ref.get();
  Origin origin;
  Describe(ref, sdk::Look(node), &origin);
  if (origin.presence != Presence::kValue) return origin;
  for (const sdk::Wait& wait : sdk::WaitsOf(node)) {
    origin.presence = Presence::kAwaited;
    for (Node* const source : wait.sources) {
      origin.sources.emplace_back(source);
    }
  }
  return origin;
}

template <class T>
T Read(const Ref& ref, Origin* origin) {
  const Node* const shown = sdk::Look(ref.get());
  Describe(ref, shown, origin);
  T value{};
  if (origin->presence != Presence::kValue) return value;
  if (!Scalar<T>::Read(*shown, &value)) {
    sdk::ReportFatal(absl::StrCat(PathOf(ref), ": must be ", Scalar<T>::kName,
                                  ", is ", sdk::KindName(shown->kind)));
    origin->presence = Presence::kFinal;
    return T{};
  }
  return value;
}

template <class T>
void Write(const Ref& ref, const Origin& origin, const T& value) {
  Node* const node = ref.get();
  if (!sdk::Writable(node)) return;
  std::string fault = origin.error;
  if (fault.empty() && origin.presence == Presence::kValue) {
    fault = Fault(value);
  }
  if (!fault.empty()) return sdk::WriteFails(node, fault);
  switch (origin.presence) {
    case Presence::kValue:
      Set(node, value);
      for (const Ref& source : origin.sources) {
        sdk::NoteOrigin(node, source.get());
      }
      return;
    case Presence::kNull:
      sdk::StartNode(node, Kind::kNull);
      return;
    case Presence::kFinal:
      return;
    case Presence::kAwaited: {
      if (origin.optional) {
        for (const Ref& source : origin.sources) {
          sdk::AddDependency(node->document, source.get());
        }
        return;
      }
      if (!sdk::StartNode(node, Kind::kUnset)) return;
      std::vector<Node*> sources;
      for (const Ref& source : origin.sources) {
        // A value that was computed has sources that are there, too.
        const Node* const shown = sdk::Peek(source.get());
        if (shown == nullptr || shown->kind == Kind::kNull) {
          sources.push_back(source.get());
        } else {
          sdk::NoteOrigin(node, source.get());
        }
      }
      sdk::AwaitNode(node, sources);
      return;
    }
  }
}

#define FNCACHE_SCALAR(T)                  \
  template T Read<T>(const Ref&, Origin*); \
  template void Write<T>(const Ref&, const Origin&, const T&);
FNCACHE_SCALAR(std::string)
FNCACHE_SCALAR(bool)
FNCACHE_SCALAR(int64_t)
FNCACHE_SCALAR(double)
FNCACHE_SCALAR(IntOrString)
#undef FNCACHE_SCALAR

void Needed(const Origin& origin) {
  for (const Ref& source : origin.sources) {
    const Node* const shown = sdk::Peek(source.get());
    if (shown == nullptr || shown->kind == Kind::kNull) {
      const std::string path = PathOf(source);
      return sdk::ReportFatal(
          absl::StrCat(path.empty() ? "a value" : path, " is needed"));
    }
  }
  sdk::ReportFatal("a value is needed");
}

std::vector<std::string> NamesOf(const Origin& origin) {
  std::vector<std::string> names;
  for (const Ref& source : origin.sources) {
    names.push_back(sdk::SourceName(source.get()));
  }
  return names;
}

void Combine(const Origin& input, Origin* result) {
  // One final input is enough: the result can never come.
  const bool absent =
      input.presence == Presence::kFinal || input.presence == Presence::kNull;
  if (absent) {
    result->presence = Presence::kFinal;
  } else if (input.presence == Presence::kAwaited &&
             result->presence == Presence::kValue) {
    result->presence = Presence::kAwaited;
  }
  result->optional = result->optional ||
                     (input.optional && input.presence != Presence::kValue);
  if (result->error.empty()) result->error = input.error;
  result->sources.insert(result->sources.end(), input.sources.begin(),
                         input.sources.end());
}

void CheckInteger(bool is_signed, uint64_t bits, Origin* origin) {
  const bool fits = is_signed ? Fault(static_cast<int64_t>(bits)).empty()
                              : bits <= static_cast<uint64_t>(kMaxInteger);
  if (!fits) origin->error = kIntegerError;
}

Piece::Piece(const Value& value) {
  Node* const node = value.ref().get();
  const Node* const shown = sdk::Peek(node);
  if (shown == nullptr || shown->kind == Kind::kText) {
    *this = Piece(Observable<std::string>(value));
  } else if (shown->kind == Kind::kBool) {
    *this = Piece(Observable<bool>(value));
  } else if (shown->kind == Kind::kNumber) {
    *this = Piece(Observable<double>(value));
  } else {
    *this = Piece(Observable<std::string>(value));  // reports the type
  }
}

std::string Piece::Spell(const std::string& text, Origin* origin) {
  if (origin->error.empty()) origin->error = Fault(text);
  return text;
}
std::string Piece::Spell(bool value, Origin*) {
  return value ? "true" : "false";
}
std::string Piece::Spell(int64_t value, Origin* origin) {
  if (origin->error.empty()) origin->error = Fault(value);
  return absl::StrCat(value);
}
std::string Piece::Spell(const IntOrString& value, Origin* origin) {
  return value.is_text() ? Spell(value.text(), origin)
                         : Spell(value.number(), origin);
}

Observable<std::string> Join(const Piece* pieces, size_t count) {
  Origin origin;
  origin.presence = Presence::kValue;
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    Combine(pieces[i].origin(), &origin);
    text += pieces[i].text();
  }
  if (origin.presence != Presence::kValue) text.clear();
  return {std::move(origin), std::move(text)};
}

std::string TextOf(const Ref& node) {
  const Node* const shown = sdk::Look(node.get());
  if (shown == nullptr || shown->kind == Kind::kNull) return "";
  return Piece(Value(node)).text();
}

}  // namespace internal

void Object::Put(std::string_view name,
                 const Observable<std::string>& value) const {
  internal::Write(internal::ChildToSet(ref(), name), value.origin(),
                  value.raw());
}
void Object::Put(std::string_view name, const Observable<bool>& value) const {
  internal::Write(internal::ChildToSet(ref(), name), value.origin(),
                  value.raw());
}
void Object::Put(std::string_view name,
                 const Observable<int64_t>& value) const {
  internal::Write(internal::ChildToSet(ref(), name), value.origin(),
                  value.raw());
}
void Object::Put(std::string_view name, const Observable<double>& value) const {
  internal::Write(internal::ChildToSet(ref(), name), value.origin(),
                  value.raw());
}
void Object::Put(std::string_view name,
                 const Observable<IntOrString>& value) const {
  internal::Write(internal::ChildToSet(ref(), name), value.origin(),
                  value.raw());
}

template class Observable<std::string>;
template class Observable<bool>;
template class Observable<int64_t>;
template class Observable<double>;
template class Observable<IntOrString>;
template class Field<std::string>;
template class Field<bool>;
template class Field<int64_t>;
template class Field<double>;
template class Field<IntOrString>;

void PrintTo(const Secret& /*secret*/, std::ostream* out) { *out << "Secret"; }

}  // namespace fncache::function
