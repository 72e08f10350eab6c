// SPDX-License-Identifier: Apache-2.0
// Values and documents: what a function reads of a request and writes into a
// response.
//
//   bucket["spec"]["region"] = xr.observed()["spec"]["region"];
//
// A handle (Field, List, Map, Value, Object) stands for a node of a document. A
// copy is another handle of the same node; `=` writes through the handle. A
// path that is absent has handles, too, and reading it is no error. An
// Observable is a value, or a reference to where a value will be.
//
// Handles of a call belong to its thread, and must not be used once the
// function has returned. A document that stands alone (Yaml, Value(), a model
// that was constructed) lives as long as a handle of it does; several calls may
// copy from it at once, as long as none writes to it.
//
// Mistakes do not throw and have no error codes: they make the call's response
// FATAL, with the path, and the function continues.
#ifndef FNCACHE_FUNCTION_VALUE_H_
#define FNCACHE_FUNCTION_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace fncache::sdk {
struct Node;
}  // namespace fncache::sdk

namespace fncache::function {

// A null, as a value: `field = kNull` writes one.
struct Null {};
inline constexpr Null kNull{};

// A whole number or a text, as `x-kubernetes-int-or-string` is.
class IntOrString {
 public:
  IntOrString() = default;
  template <class T, class = std::enable_if_t<std::is_integral_v<T> &&
                                              !std::is_same_v<T, bool>>>
  IntOrString(T number) : number_(static_cast<int64_t>(number)) {}  // NOLINT
  IntOrString(std::string text)                                     // NOLINT
      : is_text_(true), text_(std::move(text)) {}
  IntOrString(const char* text) : IntOrString(std::string(text)) {}  // NOLINT
  IntOrString(std::string_view text)                                 // NOLINT
      : IntOrString(std::string(text)) {}

  bool is_text() const { return is_text_; }
  int64_t number() const { return number_; }
  const std::string& text() const { return text_; }
  friend bool operator==(const IntOrString& a, const IntOrString& b) {
    return a.is_text_ == b.is_text_ && a.number_ == b.number_ &&
           a.text_ == b.text_;
  }
  friend bool operator!=(const IntOrString& a, const IntOrString& b) {
    return !(a == b);
  }

 private:
  bool is_text_ = false;
  int64_t number_ = 0;
  std::string text_;
};

template <class T>
class Field;
template <class T>
class List;
template <class T>
class Map;
class Object;
class Secret;
class Value;

namespace internal {

// A counted reference to a node, which keeps its document in memory.
class Ref {
 public:
  Ref() = default;
  explicit Ref(sdk::Node* node);
  Ref(const Ref& other);
  Ref(Ref&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Ref();
  sdk::Node* get() const { return node_; }

 private:
  sdk::Node* node_ = nullptr;
};

// A new document that stands alone; its root is absent until it is written.
Ref NewDocument();
Ref Child(const Ref& node, std::string_view key);
Ref Element(const Ref& list, size_t index);
// A new element behind the last.
Ref Append(const Ref& list);
size_t SizeOf(const Ref& node);
std::vector<std::string> KeysOf(const Ref& node);
bool HasValue(const Ref& node);
bool IsNull(const Ref& node);
void Clear(const Ref& node);
void Erase(const Ref& map, std::string_view key);
// A deep copy of `from`, with what is awaited in it, replaces what this call
// set at `to`.
void Copy(const Ref& to, const Ref& from);
void Merge(const Ref& to, const Ref& from);
// The node becomes an empty list or object of this call.
void StartList(const Ref& node);
void StartObject(const Ref& node);
// The path of the node, for messages.
std::string PathOf(const Ref& node);
// The text of a scalar: true, 5, abc.
std::string TextOf(const Ref& node);
// The whole content as canonical JSON, which reads all of it.
std::string JsonOf(const Ref& node);

enum class Presence : uint8_t { kValue, kNull, kFinal, kAwaited };

// Where a value comes from, whatever its type.
struct Origin {
  Presence presence = Presence::kFinal;
  bool optional = false;
  std::vector<Ref> sources;
  // The error that a value has which no document can hold.
  std::string error;
};

// What the node has, as a T; T{} where it has none.
template <class T>
T Read(const Ref& node, Origin* origin);
template <class T>
void Write(const Ref& node, const Origin& origin, const T& value);

// Makes the call FATAL: `SOURCE is needed`.
void Needed(const Origin& origin);
std::vector<std::string> NamesOf(const Origin& origin);
// Folds what is known of one input into that of a computed value.
void Combine(const Origin& input, Origin* result);

template <class T>
inline constexpr bool kIsScalar =
    std::is_same_v<T, std::string> || std::is_same_v<T, bool> ||
    std::is_same_v<T, int64_t> || std::is_same_v<T, double> ||
    std::is_same_v<T, IntOrString>;

// The scalar type that a C++ value of type T becomes, void for none: `5` is an
// int64_t. A pointer never becomes a bool, nor a double an integer.
template <class T>
struct ScalarOf {
  using type = std::conditional_t<
      std::is_same_v<T, bool>, bool,
      std::conditional_t<
          std::is_integral_v<T>, int64_t,
          std::conditional_t<std::is_floating_point_v<T>, double, void>>>;
};
template <>
struct ScalarOf<std::string> {
  using type = std::string;
};
template <>
struct ScalarOf<std::string_view> {
  using type = std::string;
};
template <>
struct ScalarOf<const char*> {
  using type = std::string;
};
template <>
struct ScalarOf<char*> {
  using type = std::string;
};
template <>
struct ScalarOf<IntOrString> {
  using type = IntOrString;
};
template <class T>
using ScalarOfT = typename ScalarOf<std::decay_t<T>>::type;

// Whether an Observable<T> may be made of a plain U.
template <class T, class U>
inline constexpr bool kAccepts = std::is_same_v<T, std::decay_t<U>> ||
                                 std::is_same_v<T, ScalarOfT<U>> ||
                                 (std::is_same_v<T, double> &&
                                  std::is_same_v<ScalarOfT<U>, int64_t>) ||
                                 (std::is_same_v<T, IntOrString> &&
                                  (std::is_same_v<ScalarOfT<U>, int64_t> ||
                                   std::is_same_v<ScalarOfT<U>, std::string>));

template <class T, class U>
T Convert(U&& plain, Origin* origin);
// An integer that no double holds is an error of the value.
void CheckInteger(bool is_signed, uint64_t bits, Origin* origin);

}  // namespace internal

// A T, or a reference to where a T will be. T: std::string, bool, int64_t,
// double, IntOrString; with Apply also others, which no document takes.
template <class T>
class Observable {
 public:
  Observable() = default;  // absent, and final
  template <class U, std::enable_if_t<internal::kAccepts<T, U>, int> = 0>
  Observable(U&& plain)  // NOLINT(google-explicit-constructor)
      : value_(internal::Convert<T>(std::forward<U>(plain), &origin_)) {}
  template <class U = T, std::enable_if_t<internal::kIsScalar<U>, int> = 0>
  Observable(const Field<U>& field);  // NOLINT
  // From where the SDK reads: a Field or a Value.
  static Observable FromNode(const internal::Ref& node) {
    Observable result;
    result.value_ = internal::Read<T>(node, &result.origin_);
    return result;
  }
  template <class V,
            std::enable_if_t<std::is_same_v<V, Value> && internal::kIsScalar<T>,
                             int> = 0>
  Observable(const V& value)  // NOLINT
      : Observable(FromNode(value.ref())) {}
  Observable(Null) {  // NOLINT
    origin_.presence = internal::Presence::kNull;
  }
  template <class S, std::enable_if_t<std::is_same_v<S, Secret> &&
                                          std::is_same_v<T, std::string>,
                                      int> = 0>
  Observable(const S& secret)  // NOLINT
      : Observable(secret.observable()) {}
  Observable(internal::Origin origin, T value)
      : origin_(std::move(origin)), value_(std::move(value)) {}

  bool has_value() const {
    return origin_.presence == internal::Presence::kValue;
  }
  explicit operator bool() const {
    if constexpr (std::is_same_v<T, bool>) return has_value() && value_;
    return has_value();
  }
  // T{} where it is absent, which makes the call FATAL.
  const T& value() const {
    if (!has_value()) internal::Needed(origin_);
    return value_;
  }
  T value_or(T other) const { return has_value() ? value_ : std::move(other); }
  // The paths that the value comes from, present or awaited.
  std::vector<std::string> sources() const {
    return internal::NamesOf(origin_);
  }
  // The same, but where it is awaited its target is left alone.
  Observable optional() const {
    Observable result = *this;
    result.origin_.optional = true;
    return result;
  }

  const internal::Origin& origin() const { return origin_; }
  // T{} where there is none; no error.
  const T& raw() const { return value_; }

 private:
  internal::Origin origin_;
  T value_{};
};

// One scalar of a document.
template <class T>
class Field {
 public:
  explicit Field(internal::Ref node) : node_(std::move(node)) {}
  Field(const Field&) = default;
  Field(Field&&) = default;

  bool has_value() const { return internal::HasValue(node_); }
  bool is_null() const { return internal::IsNull(node_); }
  T value() const { return Get().value(); }
  T value_or(T other) const { return Get().value_or(std::move(other)); }
  Observable<T> optional() const { return Get().optional(); }
  std::vector<std::string> sources() const { return Get().sources(); }
  // There and not null; of a bool: there and true.
  explicit operator bool() const { return static_cast<bool>(Get()); }
  std::string path() const { return internal::PathOf(node_); }
  void clear() { internal::Clear(node_); }

  Field& operator=(const Observable<T>& value) {
    internal::Write<T>(node_, value.origin(), value.raw());
    return *this;
  }
  Field& operator=(const Field& other) { return *this = other.Get(); }

  template <class U, class = std::enable_if_t<internal::kAccepts<T, U>>>
  friend bool operator==(const Field& field, const U& plain) {
    const Observable<T> value = field.Get();
    return value.has_value() && value.raw() == Observable<T>(plain).raw();
  }
  template <class U, class = std::enable_if_t<internal::kAccepts<T, U>>>
  friend bool operator!=(const Field& field, const U& plain) {
    return !(field == plain);
  }
  template <class U, class = std::enable_if_t<internal::kAccepts<T, U>>>
  friend bool operator==(const U& plain, const Field& field) {
    return field == plain;
  }
  template <class U, class = std::enable_if_t<internal::kAccepts<T, U>>>
  friend bool operator!=(const U& plain, const Field& field) {
    return !(field == plain);
  }
  // Two absent fields are equal.
  friend bool operator==(const Field& a, const Field& b) {
    const Observable<T> one = a.Get(), other = b.Get();
    return one.has_value() == other.has_value() && one.raw() == other.raw();
  }
  friend bool operator!=(const Field& a, const Field& b) { return !(a == b); }

  const internal::Ref& ref() const { return node_; }

 private:
  Observable<T> Get() const { return Observable<T>::FromNode(node_); }

  internal::Ref node_;
};

template <class T>
template <class U, std::enable_if_t<internal::kIsScalar<U>, int>>
Observable<T>::Observable(const Field<U>& field)
    : Observable(FromNode(field.ref())) {
  static_assert(std::is_same_v<T, U>,
                "the field has another type than the value");
}

namespace internal {
// What stands for an element of a List<T> or Map<T>.
template <class T>
using HandleOf = std::conditional_t<kIsScalar<T>, Field<T>, T>;
// What may be assigned to such an element.
template <class T>
using AssignedTo = std::conditional_t<kIsScalar<T>, Observable<T>, T>;
}  // namespace internal

// Any node. Reading another type than the node has is FATAL.
class Value {
 public:
  // A document that stands alone.
  Value() : node_(internal::NewDocument()) {}
  explicit Value(internal::Ref node) : node_(std::move(node)) {}
  Value(const Value&) = default;
  Value(Value&&) = default;

  Value operator[](std::string_view name) const {
    return Value(internal::Child(node_, name));
  }
  Value operator[](const char* name) const {
    return (*this)[std::string_view(name)];
  }
  Value operator[](const std::string& name) const {
    return (*this)[std::string_view(name)];
  }
  template <class I, class = std::enable_if_t<std::is_integral_v<I> &&
                                              !std::is_same_v<I, bool>>>
  Value operator[](I index) const {
    return Value(internal::Element(node_, static_cast<size_t>(index)));
  }
  template <class T>
  Field<T> as() const {
    static_assert(internal::kIsScalar<T>,
                  "accepted: std::string, bool, int64_t, double, IntOrString");
    return Field<T>(node_);
  }

  bool has_value() const { return internal::HasValue(node_); }
  bool is_null() const { return internal::IsNull(node_); }
  explicit operator bool() const { return has_value(); }
  // Elements of a list, fields of an object; 0 where it is absent.
  size_t size() const { return internal::SizeOf(node_); }
  // Sorted; empty where it is absent.
  std::vector<std::string> keys() const { return internal::KeysOf(node_); }
  // Appends an element.
  Value add() { return Value(internal::Append(node_)); }
  template <class T>
  Value add(const T& value) {
    Value element = add();
    element = value;
    return element;
  }
  // The text of a scalar: true, 5, abc; empty where it is absent.
  std::string text() const { return internal::TextOf(node_); }
  void clear() { internal::Clear(node_); }
  void erase(std::string_view key) { internal::Erase(node_, key); }
  std::string path() const { return internal::PathOf(node_); }
  // Objects merge field by field; anything else replaces.
  Value& merge(const Value& other) {
    internal::Merge(node_, other.node_);
    return *this;
  }

  Value& operator=(const Value& other) {
    internal::Copy(node_, other.node_);
    return *this;
  }
  Value& operator=(const Object& other);
  template <class T>
  Value& operator=(const List<T>& other) {
    internal::Copy(node_, other.ref());
    return *this;
  }
  template <class T>
  Value& operator=(const Map<T>& other) {
    internal::Copy(node_, other.ref());
    return *this;
  }
  template <class T>
  Value& operator=(const Field<T>& field) {
    internal::Copy(node_, field.ref());
    return *this;
  }
  template <class T>
  Value& operator=(const Observable<T>& value) {
    internal::Write<T>(node_, value.origin(), value.raw());
    return *this;
  }
  Value& operator=(const Secret& secret);
  Value& operator=(Null) { return *this = Observable<std::string>(kNull); }
  template <class U,
            std::enable_if_t<!std::is_void_v<internal::ScalarOfT<U>>, int> = 0>
  Value& operator=(const U& plain) {
    return *this = Observable<internal::ScalarOfT<U>>(plain);
  }
  template <class U>
  Value& operator=(std::initializer_list<U> elements) {
    internal::StartList(node_);
    for (const U& element : elements) add(element);
    return *this;
  }

  // False where the value is absent or of another type.
  template <class U,
            std::enable_if_t<!std::is_void_v<internal::ScalarOfT<U>>, int> = 0>
  friend bool operator==(const Value& value, const U& plain) {
    return value.as<internal::ScalarOfT<U>>() == plain;
  }
  template <class U,
            std::enable_if_t<!std::is_void_v<internal::ScalarOfT<U>>, int> = 0>
  friend bool operator!=(const Value& value, const U& plain) {
    return !(value == plain);
  }

  const internal::Ref& ref() const { return node_; }

 private:
  internal::Ref node_;
};

// A list of T: a scalar type, a generated class or Value. `add` appends to what
// earlier steps set; `=` replaces it.
template <class T>
class List {
 public:
  using Handle = internal::HandleOf<T>;
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Handle;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Handle;
    Iterator(const List* list, size_t index) : list_(list), index_(index) {}
    Handle operator*() const { return (*list_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator==(const Iterator& o) const { return index_ == o.index_; }
    bool operator!=(const Iterator& o) const { return index_ != o.index_; }

   private:
    const List* list_;
    size_t index_;
  };

  List() : node_(internal::NewDocument()) { internal::StartList(node_); }
  List(std::initializer_list<internal::AssignedTo<T>> elements) : List() {
    *this = elements;
  }
  explicit List(internal::Ref node) : node_(std::move(node)) {}
  List(const List&) = default;
  List(List&&) = default;

  size_t size() const { return internal::SizeOf(node_); }
  bool has_value() const { return internal::HasValue(node_); }
  bool empty() const { return size() == 0; }
  Handle operator[](size_t index) const {
    return Handle(internal::Element(node_, index));
  }
  Iterator begin() const { return Iterator(this, 0); }
  Iterator end() const { return Iterator(this, size()); }
  Handle add() {
    internal::Ref element = internal::Append(node_);
    if constexpr (std::is_base_of_v<Object, T>) internal::StartObject(element);
    return Handle(std::move(element));
  }
  Handle add(const internal::AssignedTo<T>& value) {
    Handle element = add();
    element = value;
    return element;
  }
  void push_back(const internal::AssignedTo<T>& value) { add(value); }
  void clear() { internal::Clear(node_); }

  List& operator=(const List& other) {
    internal::Copy(node_, other.node_);
    return *this;
  }
  List& operator=(const Value& other) {
    internal::Copy(node_, other.ref());
    return *this;
  }
  List& operator=(std::initializer_list<internal::AssignedTo<T>> elements) {
    internal::StartList(node_);
    for (const auto& element : elements) add(element);
    return *this;
  }

  const internal::Ref& ref() const { return node_; }

 private:
  internal::Ref node_;
};

// An object with any keys.
template <class T>
class Map {
 public:
  using Handle = internal::HandleOf<T>;

  Map() : node_(internal::NewDocument()) { internal::StartObject(node_); }
  Map(std::initializer_list<
      std::pair<std::string_view, internal::AssignedTo<T>>>
          entries)
      : Map() {
    for (const auto& entry : entries) {
      Handle at = (*this)[entry.first];
      at = entry.second;
    }
  }
  explicit Map(internal::Ref node) : node_(std::move(node)) {}
  Map(const Map&) = default;
  Map(Map&&) = default;

  Handle operator[](std::string_view key) const {
    return Handle(internal::Child(node_, key));
  }
  size_t size() const { return internal::SizeOf(node_); }
  bool has_value() const { return internal::HasValue(node_); }
  std::vector<std::string> keys() const { return internal::KeysOf(node_); }
  void erase(std::string_view key) { internal::Erase(node_, key); }
  void clear() { internal::Clear(node_); }

  Map& operator=(const Map& other) {
    internal::Copy(node_, other.node_);
    return *this;
  }
  Map& operator=(const Value& other) {
    internal::Copy(node_, other.ref());
    return *this;
  }

  const internal::Ref& ref() const { return node_; }

 private:
  internal::Ref node_;
};

// Base of generated models, a view of an object: `[name]` reaches fields that
// the model does not know.
class Object {
 public:
  Object() : node_(internal::NewDocument()) { internal::StartObject(node_); }
  explicit Object(internal::Ref node) : node_(std::move(node)) {}
  Object(const Object&) = default;
  Object(Object&&) = default;
  Object& operator=(const Object& other) {
    internal::Copy(node_, other.node_);
    return *this;
  }
  Object& operator=(const Value& other) {
    internal::Copy(node_, other.ref());
    return *this;
  }

  Value operator[](std::string_view name) const {
    return Value(internal::Child(node_, name));
  }
  Value operator[](const char* name) const {
    return (*this)[std::string_view(name)];
  }
  bool has_value() const { return internal::HasValue(node_); }
  bool is_null() const { return internal::IsNull(node_); }
  explicit operator bool() const { return has_value(); }
  std::vector<std::string> keys() const { return internal::KeysOf(node_); }
  void clear() { internal::Clear(node_); }
  void merge(const Value& other) { internal::Merge(node_, other.ref()); }
  operator Value() const { return Value(node_); }  // NOLINT

  const internal::Ref& ref() const { return node_; }

 protected:
  internal::Ref At(std::string_view name) const {
    return internal::Child(node_, name);
  }
  // Defined once for each scalar type, so that models stay cheap to compile.
  void Put(std::string_view name, const Observable<std::string>& value) const;
  void Put(std::string_view name, const Observable<bool>& value) const;
  void Put(std::string_view name, const Observable<int64_t>& value) const;
  void Put(std::string_view name, const Observable<double>& value) const;
  void Put(std::string_view name, const Observable<IntOrString>& value) const;
  // A deep copy of another node.
  void Put(std::string_view name, const internal::Ref& from) const {
    internal::Copy(At(name), from);
  }

 private:
  internal::Ref node_;
};

inline Value& Value::operator=(const Object& other) {
  internal::Copy(node_, other.ref());
  return *this;
}

// A text that no message, log line or result prints. Usable as a value.
class Secret {
 public:
  Secret() = default;
  explicit Secret(Observable<std::string> value) : value_(std::move(value)) {}
  bool has_value() const { return value_.has_value(); }
  explicit operator bool() const { return has_value(); }
  // The bytes; empty where there is none.
  std::string reveal() const { return value_.raw(); }
  const Observable<std::string>& observable() const { return value_; }

 private:
  Observable<std::string> value_;
};

inline Value& Value::operator=(const Secret& secret) {
  return *this = secret.observable();
}

namespace internal {

template <class T, class U>
T Convert(U&& plain, Origin* origin) {
  origin->presence = Presence::kValue;
  using Plain = std::decay_t<U>;
  if constexpr (std::is_integral_v<Plain> && !std::is_same_v<Plain, bool> &&
                (std::is_same_v<T, int64_t> || std::is_same_v<T, double> ||
                 std::is_same_v<T, IntOrString>)) {
    CheckInteger(std::is_signed_v<Plain>, static_cast<uint64_t>(plain), origin);
  }
  if constexpr (std::is_same_v<Plain, T>) {
    return std::forward<U>(plain);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(plain);
  } else {
    return T(std::forward<U>(plain));
  }
}

// As Observable<T>, whatever handle or plain value it is.
template <class T>
Observable<T> Observed(const Observable<T>& value) {
  return value;
}
template <class T>
Observable<T> Observed(const Field<T>& field) {
  return field;
}
inline Observable<std::string> Observed(const Secret& secret) {
  return secret.observable();
}
template <class T>
auto Observed(const T& plain) {
  using Scalar = ScalarOfT<T>;
  if constexpr (std::is_void_v<Scalar>) {
    return Observable<T>(plain);
  } else {
    return Observable<Scalar>(plain);
  }
}

template <class T>
struct ResultOf {
  using type = Observable<std::conditional_t<std::is_void_v<ScalarOfT<T>>,
                                             std::decay_t<T>, ScalarOfT<T>>>;
};
template <class T>
struct ResultOf<Observable<T>> {
  using type = Observable<T>;
};

template <class F, class... T>
auto ApplyTo(F& f, const Observable<T>&... inputs) {
  using Result =
      typename ResultOf<std::decay_t<decltype(f(inputs.raw()...))>>::type;
  Origin origin;
  origin.presence = Presence::kValue;
  (Combine(inputs.origin(), &origin), ...);
  if (origin.presence != Presence::kValue) {
    return Result(std::move(origin), {});
  }
  Result result = f(inputs.raw()...);
  Origin all = result.origin();
  all.optional = all.optional || origin.optional;
  all.sources.insert(all.sources.end(), origin.sources.begin(),
                     origin.sources.end());
  return Result(std::move(all), result.raw());
}

// An argument of Concat.
class Piece {
 public:
  template <class T>
  Piece(const Observable<T>& value)  // NOLINT
      : origin_(value.origin()) {
    if (value.has_value()) text_ = Spell(value.raw(), &origin_);
  }
  template <class T>
  Piece(const Field<T>& field) : Piece(Observable<T>(field)) {}  // NOLINT
  Piece(const Value& value);                                     // NOLINT
  Piece(const Secret& secret) : Piece(secret.observable()) {}    // NOLINT
  template <class U, std::enable_if_t<!std::is_void_v<ScalarOfT<U>>, int> = 0>
  Piece(const U& plain)  // NOLINT
      : Piece(Observable<ScalarOfT<U>>(plain)) {}

  const Origin& origin() const { return origin_; }
  const std::string& text() const { return text_; }

 private:
  static std::string Spell(const std::string& text, Origin* origin);
  static std::string Spell(bool value, Origin* origin);
  static std::string Spell(int64_t value, Origin* origin);
  static std::string Spell(double value, Origin* origin);
  static std::string Spell(const IntOrString& value, Origin* origin);

  Origin origin_;
  std::string text_;
};
Observable<std::string> Join(const Piece* pieces, size_t count);

}  // namespace internal

// f of the inputs (Observables, Fields, plain values), once all of them have
// values.
template <class F, class... T>
auto Apply(F f, const T&... inputs) {
  return internal::ApplyTo(f, internal::Observed(inputs)...);
}

// The texts behind each other, once all of them are there. Numbers are written
// as JSON writes them.
template <class... T>
Observable<std::string> Concat(const T&... pieces) {
  const internal::Piece all[] = {internal::Piece(pieces)...};
  return internal::Join(all, sizeof...(pieces));
}

// Compact JSON of everything at and below `value`, keys sorted.
Observable<std::string> Json(const Value& value);
// RFC 4648, section 4, with padding.
Observable<std::string> Base64(const Observable<std::string>& text);
// The document that `text` is, as Kubernetes reads YAML. Broken YAML makes the
// call FATAL where the value is used.
Value Yaml(std::string_view text);
// A DNS label (RFC 1123: at most 63 characters) of the parts, with dashes
// between. A name that had to be changed or cut ends in a hash of the parts.
Observable<std::string> ChildName(
    std::initializer_list<Observable<std::string>> parts);

extern template class Observable<std::string>;
extern template class Observable<bool>;
extern template class Observable<int64_t>;
extern template class Observable<double>;
extern template class Observable<IntOrString>;
extern template class Field<std::string>;
extern template class Field<bool>;
extern template class Field<int64_t>;
extern template class Field<double>;
extern template class Field<IntOrString>;

}  // namespace fncache::function

#endif  // FNCACHE_FUNCTION_VALUE_H_
