// SPDX-License-Identifier: Apache-2.0
// Scalars of documents: Field, a handle of one, and Observable, a value or a
// reference to where a value will be. value.h explains handles.
#ifndef FNCACHE_FUNCTION_OBSERVABLE_H_
#define FNCACHE_FUNCTION_OBSERVABLE_H_

#include <cstddef>
#include <cstdint>
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
  IntOrString(T number)  // NOLINT
      : number_(std::is_unsigned_v<T> && static_cast<uint64_t>(number) >> 63
                    ? INT64_MAX  // which no document takes either
                    : static_cast<int64_t>(number)) {}
  IntOrString(std::string text)  // NOLINT
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
// The same, to be written at once. The key is one of a model: UTF-8.
Ref ChildToSet(const Ref& object, std::string_view key);
Ref Element(const Ref& list, size_t index);
// A new element behind the last.
Ref Append(const Ref& list);
// Takes back such an element if it was not set: its value is absent.
void DropUnset(const Ref& element);
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
// `from`; a copy of it if it is in the document of `to`.
Ref Apart(const Ref& to, const Ref& from);
// The node becomes an empty list or object of this call. Implicit: one that is
// not emitted while it is empty.
void StartList(const Ref& node, bool implicit = false);
void StartObject(const Ref& node);
// The list becomes one of copies of `elements`, which may be in it already.
// Those that were not set are left out. Not a template, so that models stay
// cheap to compile.
void SetElements(const Ref& list, std::vector<Ref> elements);
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

// Whether the node has a value, of any kind, with nothing awaited in it, and
// where it comes from.
Origin OriginOf(const Ref& node);
// The node's value as a T; T{} where it has none.
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

// Whether a plain U may stand for an absent T: what a T may be made of. Texts
// and enumerators convert as C++ does, and so do types that no document has.
template <class T, class U>
inline constexpr bool kReplaces =
    kAccepts<T, U> ||
    (std::is_convertible_v<U, T> && !std::is_null_pointer_v<std::decay_t<U>> &&
     (!kIsScalar<T> || std::is_same_v<T, std::string> ||
      (std::is_enum_v<std::decay_t<U>> && !std::is_same_v<T, bool>)));

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
  template <class U = T, std::enable_if_t<internal::kReplaces<T, U>, int> = 0>
  T value_or(U&& other) const {
    return has_value() ? value_ : static_cast<T>(std::forward<U>(other));
  }
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

  bool has_value() const { return internal::HasValue(node_); }
  bool is_null() const { return internal::IsNull(node_); }
  T value() const { return Get().value(); }
  template <class U = T, std::enable_if_t<internal::kReplaces<T, U>, int> = 0>
  T value_or(U&& other) const {
    return Get().value_or(std::forward<U>(other));
  }
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

}  // namespace internal

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

#endif  // FNCACHE_FUNCTION_OBSERVABLE_H_
