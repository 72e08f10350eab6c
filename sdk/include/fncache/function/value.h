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
// function has returned. A handle that was moved from is still one of its node.
// A document that stands alone (Yaml, Value(), a model that was constructed)
// lives as long as a handle of it does. Several calls may read it and copy from
// it at once, as long as none writes to it. It keeps 400 bytes for each absent
// path that was asked for.
//
// Mistakes do not throw and have no error codes: they make the call's response
// FATAL, with the path, and the function continues.
#ifndef FNCACHE_FUNCTION_VALUE_H_
#define FNCACHE_FUNCTION_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fncache/function/observable.h"

namespace fncache::function {

namespace internal {
// The handle of an element of a List<T> or Map<T>.
template <class T>
using HandleOf = std::conditional_t<kIsScalar<T>, Field<T>, T>;
// The type that is assigned to such an element.
template <class T>
using AssignedTo = std::conditional_t<kIsScalar<T>, Observable<T>, T>;

// An index or a count: C++ would convert a double or a boolean, too.
template <class I>
using IfIndex =
    std::enable_if_t<std::is_convertible_v<I, size_t> &&
                     !std::is_floating_point_v<I> && !std::is_same_v<I, bool>>;

// Whether it is the handle of a node: a Value, an Object, a List, a
// Map or a Field.
template <class T, class = void>
inline constexpr bool kIsHandle = false;
template <class T>
inline constexpr bool
    kIsHandle<T, std::void_t<decltype(std::declval<const T&>().ref())>> = true;

// The type of a handle's copy: for a Field its value, for others a Value.
template <class T>
struct TakenAs {
  using Type = Value;
};
template <class T>
struct TakenAs<Field<T>> {
  using Type = Observable<T>;
};
// A new element of the list, which may be the list or in it already.
template <class T, class U>
T Take(const Ref& list, const U& element) {
  if constexpr (kIsHandle<T>) {
    return T(Apart(list, element.ref()));
  } else {
    return T(element);
  }
}
// The elements of what the list becomes.
template <class T, class U>
std::vector<T> Taken(const Ref& list, const std::initializer_list<U>& from) {
  std::vector<T> elements;
  elements.reserve(from.size());
  for (const U& element : from) {
    elements.push_back(Take<T>(list, element));
  }
  return elements;
}
}  // namespace internal

// Any node. Reading another type than the node has is FATAL.
class Value {
 public:
  // A document that stands alone.
  Value() : node_(internal::NewDocument()) {}
  explicit Value(internal::Ref node) : node_(std::move(node)) {}
  Value(const Value&) = default;

  Value operator[](std::string_view name) const {
    return Value(internal::Child(node_, name));
  }
  Value operator[](const char* name) const {
    return (*this)[std::string_view(name)];
  }
  Value operator[](const std::string& name) const {
    return (*this)[std::string_view(name)];
  }
  Value operator[](std::nullptr_t) const = delete;
  template <class I, class = internal::IfIndex<I>>
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
  // The same with this value; none if the value is absent and cannot come.
  template <class T>
  Value add(const T& value) {
    if constexpr (internal::kIsHandle<T>) {
      return Append(
          internal::Take<typename internal::TakenAs<T>::Type>(node_, value));
    } else {
      return Append(value);
    }
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
    return *this = Observable<T>(field);  // which has this type
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
    if constexpr (internal::kIsHandle<U>) {
      return SetList(internal::Taken<typename internal::TakenAs<U>::Type>(
          node_, elements));
    } else {
      return SetList(elements);
    }
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
  template <class T>
  Value& merge(const Map<T>& other) {
    return merge(Value(other.ref()));
  }

  const internal::Ref& ref() const { return node_; }

 private:
  template <class Elements>
  Value& SetList(const Elements& elements) {
    internal::StartList(node_, elements.size() != 0);
    for (const auto& element : elements) Append(element);
    return *this;
  }
  template <class T>
  Value Append(const T& value) {
    Value element = add();
    element = value;
    internal::DropUnset(element.node_);
    return element;
  }

  internal::Ref node_;
};

namespace internal {
// A Value as the argument of a model's setter. Unlike Value itself it is made
// neither of {} nor of another model.
class Untyped {
 public:
  Untyped(const Value& value) : node_(value.ref()) {}  // NOLINT
  const Ref& ref() const { return node_; }

 private:
  Ref node_;
};
}  // namespace internal

namespace internal {
// Iterates over all[0], all[1] and so on.
template <class All, class Element>
class IndexIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Element;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = Element;
  IndexIterator(const All* all, size_t index) : all_(all), index_(index) {}
  Element operator*() const { return (*all_)[index_]; }
  IndexIterator& operator++() {
    ++index_;
    return *this;
  }
  bool operator==(const IndexIterator& o) const { return index_ == o.index_; }
  bool operator!=(const IndexIterator& o) const { return index_ != o.index_; }

 private:
  const All* all_;
  size_t index_;
};
}  // namespace internal

// A list of T: a scalar type, a generated class or Value. `add` appends to what
// earlier steps set; `=` replaces it.
template <class T>
class List {
 public:
  using Handle = internal::HandleOf<T>;
  using Iterator = internal::IndexIterator<List, Handle>;

  List() : node_(internal::NewDocument()) { internal::StartList(node_); }
  List(std::initializer_list<internal::AssignedTo<T>> elements) : List() {
    *this = elements;
  }
  explicit List(internal::Ref node) : node_(std::move(node)) {}
  List(const List&) = default;

  size_t size() const { return internal::SizeOf(node_); }
  bool has_value() const { return internal::HasValue(node_); }
  bool empty() const { return size() == 0; }
  template <class I, class = internal::IfIndex<I>>
  Handle operator[](I index) const {
    return Handle(internal::Element(node_, static_cast<size_t>(index)));
  }
  Iterator begin() const { return Iterator(this, 0); }
  Iterator end() const { return Iterator(this, size()); }
  Handle add() {
    internal::Ref element = internal::Append(node_);
    if constexpr (std::is_base_of_v<Object, T>) internal::StartObject(element);
    return Handle(std::move(element));
  }
  Handle add(const internal::AssignedTo<T>& value) {
    if constexpr (internal::kIsHandle<T>) {
      return Append(internal::Take<T>(node_, value));
    } else {
      return Append(value);
    }
  }
  // Takes the same as a Value's `add`.
  template <class U, class V = T,
            class = std::enable_if_t<std::is_same_v<V, Value>>>
  Handle add(const U& value) {
    return Value(node_).add(value);
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
    if constexpr (internal::kIsHandle<T>) {
      std::vector<internal::Ref> nodes;
      nodes.reserve(elements.size());
      for (const T& element : elements) nodes.push_back(element.ref());
      internal::SetElements(node_, std::move(nodes));
    } else {
      internal::StartList(node_, elements.size() != 0);
      for (const auto& element : elements) Append(element);
    }
    return *this;
  }

  const internal::Ref& ref() const { return node_; }

 private:
  Handle Append(const internal::AssignedTo<T>& value) {
    Handle element(internal::Append(node_));
    element = value;
    internal::DropUnset(element.ref());
    return element;
  }

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

  Handle operator[](std::string_view key) const {
    return Handle(internal::Child(node_, key));
  }
  Handle operator[](int) const = delete;  // a null pointer
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
  Value operator[](int) const = delete;  // a null pointer
  bool has_value() const { return internal::HasValue(node_); }
  bool is_null() const { return internal::IsNull(node_); }
  explicit operator bool() const { return has_value(); }
  std::vector<std::string> keys() const { return internal::KeysOf(node_); }
  void clear() { internal::Clear(node_); }
  void merge(const Value& other) { internal::Merge(node_, other.ref()); }
  template <class T>
  void merge(const Map<T>& other) {
    internal::Merge(node_, other.ref());
  }
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
    internal::Copy(internal::ChildToSet(node_, name), from);
  }
  void PutAll(const internal::Ref& from) const { internal::Copy(node_, from); }

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

// For GoogleTest, which would print its bytes.
void PrintTo(const Secret& secret, std::ostream* out);

inline Value& Value::operator=(const Secret& secret) {
  return *this = secret.observable();
}

namespace internal {

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
  if constexpr (kIsHandle<T>) {
    return Observable<T>(OriginOf(plain.ref()), plain);
  } else if constexpr (std::is_void_v<Scalar>) {
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
template <class T>
Observable<std::string> Json(const List<T>& list) {
  return Json(Value(list.ref()));
}
template <class T>
Observable<std::string> Json(const Map<T>& map) {
  return Json(Value(map.ref()));
}
// RFC 4648, section 4, with padding.
Observable<std::string> Base64(const Observable<std::string>& text);
// The document that `text` is, as Kubernetes reads YAML. Broken YAML makes the
// call FATAL where the value is used.
Value Yaml(std::string_view text);
// The parts, joined by dashes, as a DNS label (RFC 1123): at most 63
// characters. If characters had to be changed or cut, a hash of all parts is at
// the end.
Observable<std::string> ChildName(
    std::initializer_list<Observable<std::string>> parts);

}  // namespace fncache::function

#endif  // FNCACHE_FUNCTION_VALUE_H_
