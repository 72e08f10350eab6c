// SPDX-License-Identifier: Apache-2.0
// Forms of settings. A form makes a value of one type from a text, and
// describes the accepted texts for help and messages. A row of the table
// (settings.cc) names a form and the field that gets the value.
//
// The description is made from the bounds, so the two cannot differ.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_SETTINGS_FORMS_H_
#define FNCACHE_PROXY_SETTINGS_FORMS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/mask.h"
#include "cache/policy.h"
#include "common/setting.h"
#include "proxy/settings/options.h"

namespace fncache::proxy::settings {

// One text, or any number for a list.
using Texts = std::vector<std::string>;

template <typename T>
struct Form {
  // The placeholder of the value in help.
  std::string metavar;
  std::string accepted;
  // Sets the value, or returns an error; see Setting::check.
  std::function<absl::Status(const Texts&, T*)> read;
  Setting::Kind kind = Setting::Kind::kText;
  // As in Setting.
  std::function<Texts(const Texts&)> explain = nullptr;
};

// The error of a text if `accepted` is enough to explain it.
absl::Status NotAccepted();

// "on, off or shadow".
std::string JoinedByOr(const Texts& names);

template <typename T>
using Choices = std::vector<std::pair<const char*, T>>;

// The value of one of the names.
template <typename T>
absl::Status ReadChoice(absl::string_view text, const Choices<T>& all, T* out) {
  for (const auto& [name, value] : all) {
    if (text != name) continue;
    *out = value;
    return absl::OkStatus();
  }
  return NotAccepted();
}

template <typename T>
Form<T> OneOf(std::string metavar, Choices<T> all) {
  Texts names;
  for (const auto& choice : all) names.emplace_back(choice.first);
  return {std::move(metavar), JoinedByOr(names),
          [all](const Texts& texts, T* out) {
            return ReadChoice(texts[0], all, out);
          }};
}

// A flag without value, or `true` and `false` in the file.
Form<bool> Switch();

// Any text.
Form<std::string> AnyText(std::string metavar, std::string accepted);
Form<std::string> NotEmptyText(std::string metavar);
// A longer one is refused.
Form<std::string> TextOfAtMost(size_t bytes);
// The empty text means that there is none.
Form<absl::optional<std::string>> Directory(std::string accepted);
// The text may be empty, which differs from no text.
Form<absl::optional<std::string>> SocketPath();

// `check` is one of those of address.h. An address without host gets one.
Form<std::string> Address(absl::string_view more,
                          absl::Status (*check)(absl::string_view));
// Empty = none.
Form<std::string> AddressOrNone();
Form<std::string> Target();
// For resp::ParseUrl; empty = none. Its errors never repeat
// the text, because it may have a password.
Form<std::string> ServerUrl();
Form<std::string> NamePrefix();

// Bounds are texts such as "1KiB", which the description shows. Without `most`
// there is no upper bound.
Form<uint64_t> Size(const std::string& least,
                    const absl::optional<std::string>& most,
                    absl::string_view such_as);
Form<uint64_t> ZeroOr(const Form<uint64_t>& form);
// A whole number. Without `most` the upper bound is that of an int.
Form<int> Number(int least, absl::optional<int> most = absl::nullopt);
// From 0 to below 1: digits and a point.
Form<double> Fraction();
// Over 0, to 1.
Form<double> Sample();
// From 0 to 1: digits and a point.
Form<double> WholeFraction();

Form<absl::Duration> DurationFromZero(
    absl::string_view such_as = "90s, 1h30m or 100ms");
Form<absl::Duration> DurationAboveZero();
// Bounds are texts such as "5ms", which the description shows.
Form<absl::Duration> DurationBetween(const std::string& least,
                                     const std::string& most,
                                     absl::string_view such_as);
// From 1s up; 0 = none.
Form<absl::Duration> DurationOrNone(absl::string_view such_as);
Form<cache::RequeueTtl> RequeueTtl();

// The setting log.access: which calls, and for slow ones how slow.
struct CallsToLog {
  telemetry::LoggedCalls calls = telemetry::LoggedCalls::kNone;
  absl::optional<absl::Duration> slow;
};
Form<CallsToLog> LoggedCalls();

// Paths and names of sets; `explain` shows the paths of the sets.
Form<cache::key::MaskSet> Masks();
// Keys arrive in lower case, and are kept so.
Form<std::vector<std::string>> MetadataKeys();

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_FORMS_H_
