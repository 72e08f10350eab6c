// SPDX-License-Identifier: Apache-2.0
// Statements that must not compile, each beside one that does. HeavyCompileTest
// expects an error on every line with MISTAKE, and none in the other form.
#include <cstdint>
#include <string>

#include "fncache/function/context.h"
#include "fncache/function/value.h"
#include "model/com/example/platform/v1alpha1/xstoragebucket.h"
#include "model/io/upbound/gcp/storage/v1beta1/bucket.h"

#ifdef FNCACHE_MISTAKES
#define MISTAKE(wrong, right) wrong
#else
#define MISTAKE(wrong, right) right
#endif

namespace fn = fncache::function;
namespace gcp = model::io::upbound::gcp::storage::v1beta1;

void Mistakes(fn::Context& ctx, const char* pointer, void* memory) {
  const auto bucket = ctx.resource<gcp::Bucket>("bucket");
  const auto to = bucket.spec().forProvider();
  const auto versioning = to.versioning().add();
  const std::string text = "text";
  const double number = 1.5;
  fn::Value any = bucket["spec"]["any"];
  fn::Map<std::string> map(any["map"].ref());
  fn::Map<bool> flags(any["flags"].ref());

  // A null pointer for a name.
  any = bucket[MISTAKE(0, "spec")];
  any = any[MISTAKE(nullptr, "x")];
  any = map[MISTAKE(0, "x")].value();

  // A text for a boolean, and other things that C++ takes for one.
  versioning.enabled(MISTAKE("yes", true));
  versioning.enabled(MISTAKE(text, true));
  versioning.enabled(MISTAKE(pointer, pointer != nullptr));
  versioning.enabled(MISTAKE(memory, memory != nullptr));
  versioning.enabled(MISTAKE(nullptr, fn::kNull));
  versioning.enabled(MISTAKE(1, true));
  versioning.enabled(MISTAKE(number, number != 0));
  versioning.enabled(MISTAKE(to.location(), to.location().has_value()));

  // A list or an object for a text.
  to.location(MISTAKE(to.versioning(), "EU"));
  to.location(MISTAKE(to, "EU"));
  to.location(MISTAKE((fn::List<std::string>{"EU"}), "EU"));
  to.location(MISTAKE(5, "5"));
  to.location(MISTAKE('x', "x"));
  to.location(MISTAKE(true, "true"));
  to.location(MISTAKE(nullptr, fn::kNull));
  to.location(MISTAKE(to.retentionDays(), fn::Concat(to.retentionDays())));

  // A double, a boolean, a text or a pointer for an integer.
  to.retentionDays(MISTAKE(1.0, 1));
  to.retentionDays(MISTAKE(number, static_cast<int64_t>(number)));
  to.retentionDays(MISTAKE(1.0F, 1));
  to.retentionDays(MISTAKE(true, 1));
  to.retentionDays(MISTAKE("1", 1));
  to.retentionDays(MISTAKE(pointer, 1));
  to.retentionDays(MISTAKE(versioning.enabled(), 1));

  // A text made of a reference, which Python would write into the cloud.
  to.location(MISTAKE("arn:" +, fn::Concat)(bucket.observed().external_name()));
  to.location(MISTAKE(text +, fn::Concat)(bucket.observed().external_name()));
  any = MISTAKE("arn:" +, fn::Concat)(any["x"]);

  // In place of an absent value, for an index and for a count.
  any = any.as<bool>().value_or(MISTAKE("false", false));
  any = any.as<int64_t>().value_or(MISTAKE(2.9, 2));
  any = any.as<double>().value_or(MISTAKE(true, 1));
  any = any.as<std::string>().value_or(MISTAKE('x', "x"));
  any = to.retentionDays().optional().value_or(MISTAKE(number, 2));
  any = to.versioning()[MISTAKE(2.5, 2)];
  any = to.versioning()[MISTAKE(true, 1)];
  const auto required = ctx.require("r", "v1", "R", fn::MatchName("r"));
  required.at_least(MISTAKE(1.5, 1));
  required.at_least(MISTAKE(true, 1));

  // The same through untyped handles, lists, maps and other functions.
  any = MISTAKE(nullptr, fn::kNull);
  any = MISTAKE(memory, "text");
  any.as<bool>() = MISTAKE("yes", true);
  any.as<int64_t>() = MISTAKE(1.5, 1);
  any.as<std::string>() = MISTAKE(1, "1");
  any.as<double>() = MISTAKE(true, 1);
  static_cast<void>(any.as<MISTAKE(char, std::string)>());
  fn::List<std::string>(any["list"].ref()).add(MISTAKE(1, "1"));
  fn::List<int64_t>(any["list"].ref()) = {MISTAKE(1.5, 1)};
  map["key"] = MISTAKE(1, "1");
  flags["key"] = MISTAKE("yes", true);
  const bool flag = MISTAKE(any, any.has_value());
  const std::string plain = MISTAKE(to.location(), to.location().value());
  const int64_t days = MISTAKE(to.retentionDays(), to.retentionDays().value());
  fn::Observable<bool> observable = MISTAKE("yes", true);
  fn::Observable<double> other = MISTAKE(to.location(), 1);
  fn::MatchName(MISTAKE(5, "5"));
  ctx.ttl(MISTAKE(60, absl::Seconds(60)));
  ctx.credentials("cloud")["key"] MISTAKE(+text, .reveal());
  fn::Context& same = ctx;
  MISTAKE(fn::Context copy = ctx, same.auto_ready());
  static_cast<void>(flag && observable && other && days > 0 && plain == text);
}
