// SPDX-License-Identifier: Apache-2.0
// Tests of composition functions, without a cluster, a port or a process.
//
//   namespace ft = fncache::function::testing;
//   TEST(Storage, HoldsTheAclUntilTheBucketHasItsName) {
//     ft::Call call(Storage);
//     call.composite("spec: {parameters: {location: EU, acl: private}}");
//     const ft::Answer answer = call();
//     EXPECT_THAT(answer.resource("bucket"),
//                 ft::HasField("spec.forProvider.location", "EU"));
//     EXPECT_THAT(answer.held(), testing::ElementsAre("acl"));
//     EXPECT_TRUE(ft::CheckSafe(call));
//   }
//
// The matchers need <gmock/gmock.h>; the rest needs no test framework. Paths
// are spelled as in masks: `spec.zones[0].name`,
// `metadata.annotations."a.b/c"`.
//
// YAML that is broken throws std::invalid_argument, which ends the test with
// its text. Used by one thread at a time.
#ifndef FNCACHE_FUNCTION_TESTING_H_
#define FNCACHE_FUNCTION_TESTING_H_

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "fncache/function/context.h"
#include "fncache/function/value.h"

#if __has_include(<gmock/gmock.h>)
#include <gmock/gmock.h>
#define FNCACHE_FUNCTION_TESTING_MATCHERS 1
#endif

namespace fncache::function {

// Prints the document as YAML, for the failures of matchers.
void PrintTo(const Value& value, std::ostream* out);

namespace testing {

struct AnswerState;
struct CallState;

enum class Severity { kUnspecified, kFatal, kWarning, kNormal };

struct Result {
  Severity severity = Severity::kUnspecified;
  std::string message;
  std::string reason;
  Target target = Target::kComposite;
};

struct Condition {
  std::string type;
  Status status = Status::kUnknown;
  std::string reason;
  std::string message;
  Target target = Target::kComposite;
};

// A selector of the response. A schema's has apiVersion and kind only.
struct Requirement {
  std::string api_version;
  std::string kind;
  std::string match_name;  // empty: by labels
  std::map<std::string, std::string> match_labels;
  std::optional<std::string> name_space;
};

// The response of one call. Immutable; copies share their content.
class Answer {
 public:
  explicit Answer(std::shared_ptr<const AnswerState> state)
      : state_(std::move(state)) {}

  // OK, or the gRPC status that the call ended with; the rest is empty then.
  absl::Status status() const;
  // The text of the first FATAL result, "" for none.
  std::string fatal() const;

  // The desired resource, or the composite's desired state. Absent where it is
  // not desired. The caller may write to it; the answer stays as it is.
  Value resource(std::string_view name) const;
  Value composite() const;
  // All names that are desired, sorted.
  std::vector<std::string> resources() const;
  // Readiness of a resource, or of the composite; nullopt where unspecified.
  std::optional<bool> ready(std::string_view name) const;
  std::optional<bool> ready() const;
  std::map<std::string, std::string> connection_details() const;

  // Names of resources that are held; fields that are kept (`bucket.spec.x`).
  // Sorted.
  std::vector<std::string> held() const;
  std::vector<std::string> kept() const;

  std::vector<Result> results() const;
  std::vector<Condition> conditions() const;
  // By name. Selectors of old and new runners are the same requirement.
  std::map<std::string, Requirement> requirements() const;
  std::map<std::string, Requirement> required_schemas() const;
  std::optional<absl::Duration> ttl() const;
  Value context(std::string_view key) const;
  Value output() const;

  // The paths of the hint, sorted.
  std::vector<std::string> reads() const;
  // Whether the hint is `pure`.
  bool pure() const;

  // The response for people. Connection details are sizes only.
  std::string yaml() const;

  const AnswerState& state() const { return *state_; }

 private:
  std::shared_ptr<const AnswerState> state_;
};

// A function and the request that it is called with. Copies are independent;
// the setters return the call, so that they chain.
class Call {
 public:
  explicit Call(Function function);
  Call(const Call& other);
  Call& operator=(const Call& other);
  Call(Call&&) noexcept;
  Call& operator=(Call&&) noexcept;
  ~Call();

  Call& options(const Options& options);
  // The observed state.
  Call& composite(std::string_view yaml);
  Call& observed(std::string_view name, std::string_view yaml);
  // Those of an observed resource; "" is the composite.
  Call& connection_details(std::string_view name,
                           std::map<std::string, std::string> details);
  // The desired state of earlier steps.
  Call& desired(std::string_view name, std::string_view yaml);
  Call& desired_composite(std::string_view yaml);
  // The runner's answer to a requirement. Without items: it found nothing.
  // Settle selects from the objects of all of them, whatever their names.
  Call& required(std::string_view name, const std::vector<std::string>& yaml);
  // An empty text is the answer for a kind without schema.
  Call& schema(std::string_view name, std::string_view yaml);
  // A request of the Composition's step itself, for Settle and Reconcile.
  Call& bootstrap(std::string_view name, std::string_view api_version,
                  std::string_view kind, const Selector& selector);
  Call& bootstrap_schema(std::string_view name, std::string_view api_version,
                         std::string_view kind);
  Call& credentials(std::string_view name,
                    std::map<std::string, std::string> data);
  Call& input(std::string_view yaml);
  Call& context(std::string_view key, std::string_view yaml);
  // Default: all. None: a runner before 2.2, which sends extra_resources.
  Call& capabilities(std::vector<Capability> capabilities);

  // Calls the function once.
  Answer operator()() const;

  CallState& state() { return *state_; }
  const CallState& state() const { return *state_; }

 private:
  std::unique_ptr<CallState> state_;
};

// The last answer of a step, and the ones before it.
class Settled : public Answer {
 public:
  Settled(absl::Status outcome, std::vector<Answer> answers)
      : Answer(answers.back()),
        outcome_(std::move(outcome)),
        answers_(std::move(answers)) {}
  // OK, or the runner's error: FATAL, a call that ended with a status, or
  // requirements that never settle.
  const absl::Status& outcome() const { return outcome_; }
  size_t calls() const { return answers_.size(); }
  const std::vector<Answer>& answers() const { return answers_; }

 private:
  absl::Status outcome_;
  std::vector<Answer> answers_;
};

// Calls the function as the runner does, on the engine of `fncache render`:
// again with what it requires, until its requirements stay the same.
Settled Settle(const Call& call);

// Fills in what a provider writes, usually `status`, of a resource that exists.
using Provider = std::function<void(const std::string& name, Value object)>;

// Settles, applies what is desired (what is not, is deleted), and calls the
// provider for each resource that exists, until nothing changes. The answers in
// their order. Throws std::runtime_error with a path that changes still after
// 100 rounds.
std::vector<Answer> Reconcile(Call call, const Provider& provider);

// A check's verdict. In EXPECT_TRUE, a failure prints its text.
class [[nodiscard]] CheckResult {
 public:
  CheckResult(std::string text, size_t calls)
      : text_(std::move(text)), calls_(calls) {}
  bool ok() const { return text_.empty(); }
  explicit operator bool() const { return ok(); }
  // Empty, or the failure with its path.
  const std::string& text() const { return text_; }
  // How often the function was called.
  size_t calls() const { return calls_; }
#ifdef FNCACHE_FUNCTION_TESTING_MATCHERS
  operator ::testing::AssertionResult() const {  // NOLINT
    return ok() ? ::testing::AssertionSuccess()
                : ::testing::AssertionFailure() << text_;
  }
#endif

 private:
  std::string text_;
  size_t calls_;
};

// Equal requests get equal responses: repeated, with maps in another order and
// another tag. A response must not have the time of its call, either.
CheckResult CheckDeterministic(const Call& call, int rounds = 8);

// Alters, removes and adds at random what the hint does not name; the response
// must stay the same. Content that a mask may not hide stays as it is.
CheckResult CheckReads(const Call& call, int rounds = 16);

// Removes each observed resource, each of its fields and connection details and
// each required item, one after the other, and all items of a requirement. A
// resource that is still observed and was desired must not be left out. FATAL
// responses change nothing, so they pass: expect fatal() to be empty, too.
CheckResult CheckSafe(const Call& call);

namespace internal {
// Throws std::invalid_argument.
Value ParseYaml(std::string_view what, std::string_view yaml);
// Where not equal, `why` gets the path.
bool IsEqual(const Value& value, const Value& wanted, std::string* why);
// wanted: null asks only whether the field is there.
bool IsFieldEqual(const Value& value, const std::string& path,
                  const Value* wanted, std::string* why);
std::string TextOf(const Value& value);
}  // namespace internal

#ifdef FNCACHE_FUNCTION_TESTING_MATCHERS
namespace internal {

class YamlMatcher {
 public:
  explicit YamlMatcher(Value wanted) : wanted_(std::move(wanted)) {}
  bool MatchAndExplain(const Value& value,
                       ::testing::MatchResultListener* listener) const {
    std::string why;
    const bool equal = IsEqual(value, wanted_, &why);
    *listener << why;
    return equal;
  }
  void DescribeTo(std::ostream* out) const {
    *out << "is\n" << TextOf(wanted_);
  }
  void DescribeNegationTo(std::ostream* out) const {
    *out << "is not\n" << TextOf(wanted_);
  }

 private:
  Value wanted_;
};

class FieldMatcher {
 public:
  FieldMatcher(std::string_view path, std::optional<Value> wanted)
      : path_(path), wanted_(std::move(wanted)) {}
  bool MatchAndExplain(const Value& value,
                       ::testing::MatchResultListener* listener) const {
    std::string why;
    const bool equal = IsFieldEqual(
        value, path_, wanted_.has_value() ? &*wanted_ : nullptr, &why);
    *listener << why;
    return equal;
  }
  void DescribeTo(std::ostream* out) const { Describe("has", out); }
  void DescribeNegationTo(std::ostream* out) const { Describe("lacks", out); }

 private:
  void Describe(const char* verb, std::ostream* out) const {
    *out << verb << " " << path_;
    if (wanted_.has_value()) *out << ": " << TextOf(*wanted_);
  }

  std::string path_;
  std::optional<Value> wanted_;
};

}  // namespace internal

// The document equals this one: the same fields, and numbers by their value.
inline auto IsYaml(std::string_view yaml) {
  return ::testing::MakePolymorphicMatcher(
      internal::YamlMatcher(internal::ParseYaml("IsYaml", yaml)));
}

// The field is there: with this value, or with any.
template <class T>
auto HasField(std::string_view path, const T& value) {
  Value wanted;
  wanted = value;
  return ::testing::MakePolymorphicMatcher(
      internal::FieldMatcher(path, wanted));
}
inline auto HasField(std::string_view path) {
  return ::testing::MakePolymorphicMatcher(
      internal::FieldMatcher(path, std::nullopt));
}
#endif

}  // namespace testing
}  // namespace fncache::function

#endif  // FNCACHE_FUNCTION_TESTING_H_
