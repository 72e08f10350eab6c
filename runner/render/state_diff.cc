// SPDX-License-Identifier: Apache-2.0
#include "runner/render/state_diff.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/field_path.h"
#include "common/utf8.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "text/differences.h"
#include "text/json.h"
#include "text/object.h"
#include "text/yaml_writer.h"

namespace fncache::runner::render {

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

std::string Key(absl::string_view key) { return Printable(SpellKey(key)); }

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

void AddDifference(const std::string& path, const Value* before,
                   const Value* after, Lines* lines) {
  if (before == nullptr && IsLarge(*after)) {
    lines->push_back(absl::StrCat("+ ", path, ":"));
    AddYaml(text::ValueToYaml(*after), lines);
  } else if (before == nullptr) {
    lines->push_back(absl::StrCat("+ ", path, ": ", Shown(*after)));
  } else if (after == nullptr) {
    lines->push_back(absl::StrCat("- ", path, ": ", Shown(*before)));
  } else {
    lines->push_back(
        absl::StrCat("~ ", path, ": ", Shown(*before), " -> ", Shown(*after)));
  }
}

void DiffFields(absl::string_view path, const Struct& before,
                const Struct& after, Lines* lines) {
  text::DifferenceVisitor visitor;
  visitor.below = Below;
  visitor.differs = [lines](const std::string& at, const Value* was,
                            const Value* is) {
    AddDifference(at, was, is, lines);
  };
  text::VisitDifferences(std::string(path), before, after, visitor);
}

std::string ReadyText(Ready ready) {
  if (ready == READY_TRUE) return "ready";
  if (ready == READY_FALSE) return "not ready";
  return "unspecified";
}

void DiffDetails(const std::string& path, const Resource& before,
                 const Resource& after, Lines* lines) {
  text::ForEachKey(
      before.connection_details(), after.connection_details(),
      [&](const std::string& name, const std::string* was,
          const std::string* is) {
        const std::string what =
            absl::StrCat(path, ": connection detail ", Key(name), ": ");
        if (was == nullptr) {
          lines->push_back(absl::StrCat("+ ", what, is->size(), " bytes"));
        } else if (is == nullptr) {
          lines->push_back(absl::StrCat("- ", what, was->size(), " bytes"));
        } else if (*was != *is) {
          lines->push_back(absl::StrCat("~ ", what, was->size(), " bytes -> ",
                                        is->size(), " other bytes"));
        }
      });
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
  text::ForEachKey(
      before.resources(), after.resources(),
      [&](const std::string& name, const Resource* was, const Resource* is) {
        const std::string at = Below(absl::StrCat(path, ".resources"), name);
        if (was == nullptr) {
          AddResource(at, *is, &lines);
        } else if (is == nullptr) {
          lines.push_back(absl::StrCat("- ", Heading(at, *was)));
        } else {
          DiffResources(at, *was, *is, &lines);
        }
      });
  return lines;
}

std::vector<std::string> DiffMaps(absl::string_view path, const Struct& before,
                                  const Struct& after) {
  Lines lines;
  DiffFields(path, before, after, &lines);
  return lines;
}

}  // namespace fncache::runner::render
