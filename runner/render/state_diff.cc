// SPDX-License-Identifier: Apache-2.0
#include "runner/render/state_diff.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cache/key/field_path.h"
#include "common/utf8.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "runner/text/json.h"
#include "runner/text/object.h"
#include "runner/text/yaml_writer.h"

namespace fncache::runner::render {

using google::protobuf::ListValue;
using google::protobuf::Struct;
using google::protobuf::Value;

namespace {

using apiextensions::fn::proto::v1::Ready;
using apiextensions::fn::proto::v1::READY_FALSE;
using apiextensions::fn::proto::v1::READY_TRUE;
using apiextensions::fn::proto::v1::Resource;
using apiextensions::fn::proto::v1::State;
using Lines = std::vector<std::string>;

constexpr size_t kMaxShownBytes = 160;

std::string Key(absl::string_view key) {
  return Printable(cache::key::SpellKey(key));
}

std::string Below(absl::string_view path, absl::string_view key) {
  return absl::StrCat(path, ".", Key(key));
}

// A value on one line, cut where it is long.
std::string Shown(const Value& value) {
  std::string text = Printable(text::ToJsonText(value));
  if (text.size() <= kMaxShownBytes) return text;
  size_t end = 0;
  while (end < kMaxShownBytes) {
    end += Utf8CharacterBytes(absl::string_view(text).substr(end));
  }
  return absl::StrCat(text.substr(0, end), "... (", text.size(), " bytes)");
}

bool IsLarge(const Value& value) {
  return (value.has_struct_value() && value.struct_value().fields_size() > 0) ||
         (value.has_list_value() && value.list_value().values_size() > 0);
}

// The lines of what is new below a heading, at most kMaxShownLines of them.
void AddYaml(const std::string& yaml, Lines* lines) {
  Lines all = absl::StrSplit(yaml, '\n', absl::SkipEmpty());
  const size_t shown = std::min<size_t>(all.size(), kMaxShownLines);
  for (size_t i = 0; i < shown; ++i) {
    lines->push_back(absl::StrCat("  +   ", Printable(all[i])));
  }
  if (shown < all.size()) {
    lines->push_back(
        absl::StrCat("  +   ... and ", all.size() - shown, " lines more"));
  }
}

void DiffValues(const std::string& path, const Value* before,
                const Value* after, Lines* lines);

void DiffFields(absl::string_view path, const Struct& before,
                const Struct& after, Lines* lines) {
  std::set<std::string> names;
  for (const auto& [name, value] : before.fields()) names.insert(name);
  for (const auto& [name, value] : after.fields()) names.insert(name);
  for (const std::string& name : names) {
    const auto was = before.fields().find(name);
    const auto is = after.fields().find(name);
    DiffValues(Below(path, name),
               was == before.fields().end() ? nullptr : &was->second,
               is == after.fields().end() ? nullptr : &is->second, lines);
  }
}

void DiffLists(const std::string& path, const ListValue& before,
               const ListValue& after, Lines* lines) {
  const int size = std::max(before.values_size(), after.values_size());
  for (int i = 0; i < size; ++i) {
    DiffValues(cache::key::PathOfElement(path, i),
               i < before.values_size() ? &before.values(i) : nullptr,
               i < after.values_size() ? &after.values(i) : nullptr, lines);
  }
}

void DiffValues(const std::string& path, const Value* before,
                const Value* after, Lines* lines) {
  if (before == nullptr) {
    if (!IsLarge(*after)) {
      lines->push_back(absl::StrCat("+ ", path, ": ", Shown(*after)));
      return;
    }
    lines->push_back(absl::StrCat("+ ", path, ":"));
    AddYaml(text::ValueToYaml(*after), lines);
  } else if (after == nullptr) {
    lines->push_back(absl::StrCat("- ", path, ": ", Shown(*before)));
  } else if (text::Equal(*before, *after)) {
    return;
  } else if (before->has_struct_value() && after->has_struct_value()) {
    DiffFields(path, before->struct_value(), after->struct_value(), lines);
  } else if (before->has_list_value() && after->has_list_value()) {
    DiffLists(path, before->list_value(), after->list_value(), lines);
  } else {
    lines->push_back(
        absl::StrCat("~ ", path, ": ", Shown(*before), " -> ", Shown(*after)));
  }
}

std::string ReadyText(Ready ready) {
  if (ready == READY_TRUE) return "ready";
  if (ready == READY_FALSE) return "not ready";
  return "unspecified";
}

void DiffDetails(const std::string& path, const Resource& before,
                 const Resource& after, Lines* lines) {
  std::set<std::string> names;
  for (const auto& [name, value] : before.connection_details()) {
    names.insert(name);
  }
  for (const auto& [name, value] : after.connection_details()) {
    names.insert(name);
  }
  for (const std::string& name : names) {
    const auto was = before.connection_details().find(name);
    const auto is = after.connection_details().find(name);
    const std::string what =
        absl::StrCat(path, ": connection detail ", Key(name), ": ");
    if (was == before.connection_details().end()) {
      lines->push_back(absl::StrCat("+ ", what, is->second.size(), " bytes"));
    } else if (is == after.connection_details().end()) {
      lines->push_back(absl::StrCat("- ", what, was->second.size(), " bytes"));
    } else if (was->second != is->second) {
      lines->push_back(absl::StrCat("~ ", what, was->second.size(),
                                    " bytes -> ", is->second.size(),
                                    " other bytes"));
    }
  }
}

void DiffResources(const std::string& path, const Resource& before,
                   const Resource& after, Lines* lines) {
  DiffFields(path, before.resource(), after.resource(), lines);
  DiffDetails(path, before, after, lines);
  if (before.ready() != after.ready()) {
    lines->push_back(absl::StrCat("~ ", path, ": ", ReadyText(before.ready()),
                                  " -> ", ReadyText(after.ready())));
  }
}

// `PATH (apps/v1 Deployment)`
std::string Heading(const std::string& path, const Resource& resource) {
  return absl::StrCat(
      path, " (",
      Printable(text::FindText(resource.resource(), {"apiVersion"})), " ",
      Printable(text::FindText(resource.resource(), {"kind"})), ")");
}

// Leaves out apiVersion and kind, which the heading has already.
Struct Body(const Resource& resource) {
  Struct body = resource.resource();
  text::Remove(&body, {"apiVersion"});
  text::Remove(&body, {"kind"});
  return body;
}

void AddResource(const std::string& path, const Resource& resource,
                 Lines* lines) {
  lines->push_back(absl::StrCat("+ ", Heading(path, resource)));
  const Struct body = Body(resource);
  if (!body.fields().empty()) AddYaml(text::StructToYaml(body), lines);
  DiffDetails(path, Resource(), resource, lines);
  if (resource.ready() != Resource().ready()) {
    lines->push_back(
        absl::StrCat("~ ", path, ": ", ReadyText(resource.ready())));
  }
}

}  // namespace

std::vector<std::string> DiffStates(absl::string_view path, const State& before,
                                    const State& after) {
  Lines lines;
  DiffResources(absl::StrCat(path, ".composite"), before.composite(),
                after.composite(), &lines);
  std::set<std::string> names;
  for (const auto& [name, value] : before.resources()) names.insert(name);
  for (const auto& [name, value] : after.resources()) names.insert(name);
  for (const std::string& name : names) {
    const std::string at = Below(absl::StrCat(path, ".resources"), name);
    const auto was = before.resources().find(name);
    const auto is = after.resources().find(name);
    if (was == before.resources().end()) {
      AddResource(at, is->second, &lines);
    } else if (is == after.resources().end()) {
      lines.push_back(absl::StrCat("- ", Heading(at, was->second)));
    } else {
      DiffResources(at, was->second, is->second, &lines);
    }
  }
  return lines;
}

std::vector<std::string> DiffMaps(absl::string_view path, const Struct& before,
                                  const Struct& after) {
  Lines lines;
  DiffFields(path, before, after, &lines);
  return lines;
}

}  // namespace fncache::runner::render
