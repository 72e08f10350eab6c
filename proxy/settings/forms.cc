// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/forms.h"

#include <limits>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/duration.h"
#include "common/listen_address.h"
#include "common/size.h"
#include "proxy/settings/address.h"
#include "resp/url.h"

namespace fncache::proxy::settings {
namespace {

absl::Status ReadDuration(absl::string_view text, absl::Duration least,
                          absl::Duration* out) {
  const absl::StatusOr<absl::Duration> parsed =
      ParseGoDuration(std::string(text));
  if (!parsed.ok() || *parsed < least) return NotAccepted();
  *out = *parsed;
  return absl::OkStatus();
}

bool IsDigit(char c) { return absl::ascii_isdigit(c); }

bool IsDigitOrPoint(char c) { return c == '.' || IsDigit(c); }

// The grammar is gRPC's.
bool IsMetadataKey(absl::string_view key) {
  return !key.empty() && absl::c_all_of(key, [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

absl::Status ReadMasks(const Texts& texts, cache::key::MaskSet* out) {
  absl::StatusOr<cache::key::MaskSet> masks = cache::key::MaskSet::Parse(texts);
  if (!masks.ok()) return masks.status();
  *out = *std::move(masks);
  return absl::OkStatus();
}

// All paths, if one of the texts is the name of a set; else empty.
Texts ExplainMasks(const Texts& texts) {
  const bool named = absl::c_any_of(texts, [](const std::string& text) {
    return absl::StartsWith(text, "@");
  });
  if (!named) return Texts();
  const auto masks = cache::key::MaskSet::Parse(texts);
  return masks.ok() ? masks->canonical() : Texts();
}

// Digits and a point only: no nan, hexadecimal or exponent.
bool ReadFraction(absl::string_view text, double* fraction) {
  return absl::c_all_of(text, IsDigitOrPoint) &&
         absl::SimpleAtod(text, fraction) && *fraction >= 0;
}

}  // namespace

absl::Status NotAccepted() { return absl::InvalidArgumentError(""); }

std::string JoinedByOr(const Texts& names) {
  return absl::StrCat(absl::StrJoin(names.begin(), names.end() - 1, ", "),
                      " or ", names.back());
}

Form<bool> Switch() {
  return {"", "true or false",
          [](const Texts& texts, bool* out) {
            *out = texts[0] == "true";
            return absl::OkStatus();
          },
          Setting::Kind::kBool};
}

Form<std::string> AnyText(std::string metavar, std::string accepted) {
  return {std::move(metavar), std::move(accepted),
          [](const Texts& texts, std::string* out) {
            *out = texts[0];
            return absl::OkStatus();
          }};
}

Form<std::string> NotEmptyText(std::string metavar) {
  return {std::move(metavar), "a text, not empty",
          [](const Texts& texts, std::string* out) {
            if (texts[0].empty()) {
              return absl::InvalidArgumentError("must not be empty");
            }
            *out = texts[0];
            return absl::OkStatus();
          }};
}

Form<std::string> TextOfAtMost(size_t bytes) {
  return {"TEXT", absl::StrCat("a text of at most ", bytes, " bytes"),
          [bytes](const Texts& texts, std::string* out) {
            if (texts[0].size() > bytes) return NotAccepted();
            *out = texts[0];
            return absl::OkStatus();
          }};
}

Form<absl::optional<std::string>> Directory(std::string accepted) {
  return {"DIR", std::move(accepted),
          [](const Texts& texts, absl::optional<std::string>* out) {
            if (!texts[0].empty()) *out = texts[0];
            return absl::OkStatus();
          }};
}

Form<absl::optional<std::string>> SocketPath() {
  return {"PATH",
          absl::StrCat("a path of at most ", kMaxSocketPath,
                       " bytes; empty = none"),
          [](const Texts& texts, absl::optional<std::string>* out) {
            if (texts[0].size() > kMaxSocketPath) {
              return absl::InvalidArgumentError(
                  absl::StrCat("the path has ", texts[0].size(), " bytes"));
            }
            *out = texts[0];
            return absl::OkStatus();
          }};
}

Form<std::string> Address(absl::string_view more,
                          absl::Status (*check)(absl::string_view)) {
  return {"ADDR",
          absl::StrCat(
              "HOST:PORT, [IPV6]:PORT or :PORT (every address of IPv4) with a "
              "port from 0 to 65535 (0 takes a free one)",
              more),
          [check](const Texts& texts, std::string* out) {
            absl::Status status = check(texts[0]);
            if (status.ok()) *out = WithHost(texts[0]);
            return status;
          }};
}

Form<std::string> AddressOrNone() {
  Form<std::string> form = Address("; empty = none", &CheckAddress);
  form.read = [some = form.read](const Texts& texts, std::string* out) {
    if (!texts[0].empty()) return some(texts, out);
    out->clear();
    return absl::OkStatus();
  };
  return form;
}

Form<std::string> Target() {
  return {"TARGET", kTargetForms, [](const Texts& texts, std::string* out) {
            absl::Status status = CheckTarget(texts[0]);
            if (status.ok()) *out = texts[0];
            return status;
          }};
}

Form<std::string> ServerUrl() {
  return {"URL",
          "redis://HOST:PORT, rediss://HOST:PORT (TLS) or unix:PATH, IPv6 in "
          "brackets, without user and password (shared.username, "
          "shared.password_file); empty = none",
          [](const Texts& texts, std::string* out) {
            absl::Status status;
            if (!texts[0].empty()) status = resp::ParseUrl(texts[0]).status();
            if (status.ok()) *out = texts[0];
            return status;
          }};
}

Form<std::string> NamePrefix() {
  return {"PREFIX", "1 to 64 letters, digits, `:`, `_`, `.` and `-`",
          [](const Texts& texts, std::string* out) {
            const std::string& text = texts[0];
            if (text.empty() || text.size() > 64 ||
                !absl::c_all_of(text, [](char c) {
                  return absl::ascii_isalnum(c) || absl::StrContains(":_.-", c);
                })) {
              return NotAccepted();
            }
            *out = text;
            return absl::OkStatus();
          }};
}

Form<uint64_t> Size(const std::string& least,
                    const absl::optional<std::string>& most,
                    absl::string_view such_as) {
  const uint64_t from = ParseSize(least).value();
  const uint64_t to = most.has_value() ? ParseSize(*most).value()
                                       : std::numeric_limits<uint64_t>::max();
  return {"SIZE",
          absl::StrCat("a size from ", least, " ",
                       most.has_value() ? absl::StrCat("to ", *most) : "up",
                       ", such as ", such_as),
          [from, to](const Texts& texts, uint64_t* out) {
            const absl::StatusOr<uint64_t> parsed = ParseSize(texts[0]);
            if (!parsed.ok() || *parsed < from || *parsed > to) {
              return NotAccepted();
            }
            *out = *parsed;
            return absl::OkStatus();
          }};
}

Form<uint64_t> ZeroOr(const Form<uint64_t>& form) {
  return {form.metavar, absl::StrCat("0, or ", form.accepted),
          [form](const Texts& texts, uint64_t* out) {
            if (texts[0] != "0") return form.read(texts, out);
            *out = 0;
            return absl::OkStatus();
          }};
}

Form<int> Number(int least, absl::optional<int> most) {
  const int to = most.value_or(std::numeric_limits<int>::max());
  return {"NUMBER",
          absl::StrCat("a whole number from ", least, " ",
                       most.has_value() ? absl::StrCat("to ", *most) : "up"),
          [least, to](const Texts& texts, int* out) {
            int parsed = 0;
            if (!absl::c_all_of(texts[0], IsDigit) ||
                !absl::SimpleAtoi(texts[0], &parsed) || parsed < least ||
                parsed > to) {
              return NotAccepted();
            }
            *out = parsed;
            return absl::OkStatus();
          }};
}

Form<double> Fraction() {
  return {"FRACTION", "a fraction from 0 to below 1",
          [](const Texts& texts, double* out) {
            double parsed = 0;
            if (!ReadFraction(texts[0], &parsed) || parsed >= 1) {
              return NotAccepted();
            }
            *out = parsed;
            return absl::OkStatus();
          }};
}

Form<double> WholeFraction() {
  return {"FRACTION", "a fraction from 0 to 1",
          [](const Texts& texts, double* out) {
            double parsed = 0;
            if (!ReadFraction(texts[0], &parsed) || parsed > 1) {
              return NotAccepted();
            }
            *out = parsed;
            return absl::OkStatus();
          }};
}

Form<double> Sample() {
  return {"FRACTION", "a fraction over 0, to 1",
          [](const Texts& texts, double* out) {
            double parsed = 0;
            if (!absl::SimpleAtod(texts[0], &parsed) ||
                !(parsed > 0 && parsed <= 1)) {
              return NotAccepted();
            }
            *out = parsed;
            return absl::OkStatus();
          }};
}

Form<absl::Duration> DurationFromZero(absl::string_view such_as) {
  return {"DURATION", absl::StrCat("a duration from 0 up, such as ", such_as),
          [](const Texts& texts, absl::Duration* out) {
            return ReadDuration(texts[0], absl::ZeroDuration(), out);
          }};
}

Form<absl::Duration> DurationAboveZero() {
  return {"DURATION", "a duration above 0, such as 90s or 1h30m",
          [](const Texts& texts, absl::Duration* out) {
            return ReadDuration(texts[0], absl::Nanoseconds(1), out);
          }};
}

Form<absl::Duration> DurationBetween(const std::string& least,
                                     const std::string& most,
                                     absl::string_view such_as) {
  const absl::Duration from = ParseGoDuration(least).value();
  const absl::Duration to = ParseGoDuration(most).value();
  return {"DURATION",
          absl::StrCat("a duration from ", least, " to ", most, ", such as ",
                       such_as),
          [from, to](const Texts& texts, absl::Duration* out) {
            absl::Status status = ReadDuration(texts[0], from, out);
            return status.ok() && *out > to ? NotAccepted() : status;
          }};
}

Form<absl::Duration> DurationOrNone(absl::string_view such_as) {
  return {
      "DURATION",
      absl::StrCat("a duration from 1s up, or 0 for none, such as ", such_as),
      [](const Texts& texts, absl::Duration* out) {
        absl::Status status = ReadDuration(texts[0], absl::ZeroDuration(), out);
        if (status.ok() && *out != absl::ZeroDuration() &&
            *out < absl::Seconds(1)) {
          return NotAccepted();
        }
        return status;
      }};
}

Form<cache::RequeueTtl> RequeueTtl() {
  return {"TTL",
          "remaining, original, or a duration above 0 such as 90s or 1h30m",
          [](const Texts& texts, cache::RequeueTtl* out) {
            using Kind = cache::RequeueTtl::Kind;
            const Choices<Kind> names = {{"remaining", Kind::kRemaining},
                                         {"original", Kind::kOriginal}};
            absl::Status status = ReadChoice(texts[0], names, &out->kind);
            if (status.ok()) return status;
            out->kind = Kind::kFixed;
            return ReadDuration(texts[0], absl::Nanoseconds(1), &out->fixed);
          }};
}

Form<CallsToLog> LoggedCalls() {
  return {"CALLS", "off, misses, all, or slow=DURATION, such as slow=1s",
          [](const Texts& texts, CallsToLog* out) {
            using Calls = telemetry::LoggedCalls;
            absl::string_view text = texts[0];
            if (absl::ConsumePrefix(&text, "slow=")) {
              out->calls = Calls::kSlow;
              return ReadDuration(text, absl::Nanoseconds(1),
                                  &out->slow.emplace());
            }
            const Choices<Calls> names = {{"off", Calls::kNone},
                                          {"misses", Calls::kMisses},
                                          {"all", Calls::kAll}};
            return ReadChoice(text, names, &out->calls);
          }};
}

Form<cache::key::MaskSet> Masks() {
  // Quoted, as YAML and the environment need them.
  const std::string sets = absl::StrJoin(
      cache::key::NamedMaskSets(), ", ", [](std::string* out, const auto& set) {
        absl::StrAppend(out, "\"", set.name, "\"");
      });
  return {"FIELD",
          absl::StrCat("paths below observed.composite.resource, "
                       "observed.resources.K.resource, "
                       "required_resources.K.items.*.resource or "
                       "extra_resources.K.items.*.resource, but no whole "
                       "spec or metadata, or of a context key; or named "
                       "sets: ",
                       sets),
          &ReadMasks, Setting::Kind::kList, &ExplainMasks};
}

Form<std::vector<std::string>> MetadataKeys() {
  return {"KEY", "metadata keys of letters, digits, `-`, `_` and `.`",
          [](const Texts& texts, std::vector<std::string>* out) {
            for (const std::string& text : texts) {
              if (!IsMetadataKey(text)) return NotAccepted();
              out->push_back(absl::AsciiStrToLower(text));
            }
            return absl::OkStatus();
          },
          Setting::Kind::kList};
}

}  // namespace fncache::proxy::settings
