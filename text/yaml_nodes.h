// SPDX-License-Identifier: Apache-2.0
// YamlNodes: the first document of a text as it was written, before it is known
// what its scalars mean.
//
// The grammar is that of the reference runner's YAML library, on the tokens of
// yaml_scanner.h. Not thread-safe while it parses, read-only from then on.
#ifndef FNCACHE_TEXT_YAML_NODES_H_
#define FNCACHE_TEXT_YAML_NODES_H_

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "text/yaml_scanner.h"

namespace fncache::text {

struct YamlNode {
  enum class Kind { kScalar, kMap, kList, kAlias };
  Kind kind = Kind::kScalar;
  // A scalar whose text says what it is: one without quotes and tag, or with
  // the tag `!`.
  bool plain = false;
  int line = 0;  // where it begins, counted from 0
  std::string tag;
  std::string text;  // of a scalar; of an alias, its anchor's name
  // The elements of a list, or a map's keys and values, alternating.
  std::vector<const YamlNode*> children;
  const YamlNode* target = nullptr;  // of an alias
};

class YamlNodes {
 public:
  explicit YamlNodes(absl::string_view text) : scanner_(text) {}
  YamlNodes(const YamlNodes&) = delete;
  YamlNodes& operator=(const YamlNodes&) = delete;

  // Returns the document's node, which lives as long as this; null where there
  // is no document. InvalidArgument has the reference's message. Nesting beyond
  // kMaxJsonDepth is an error. Call it once.
  absl::StatusOr<const YamlNode*> Parse();
  // The line, counted from 0, where the text stopped being YAML; 0 if Parse did
  // not fail there. (The message has the reference's number.)
  int fault_line() const;

 private:
  using Type = YamlToken::Type;

  // The next token's type; false with a fault.
  bool Next(Type* type);
  bool Fail(absl::string_view problem, const YamlMark& at,
            const YamlMark& context = YamlMark());

  bool ParseDirectives();
  bool ParseDocument(const YamlNode** root);
  // `indentless`: a list may begin at the column of the key before it.
  bool ParseNode(bool block, bool indentless, const YamlNode** node);
  bool ParseProperties(YamlNode* node, YamlMark* start, std::string* anchor,
                       bool* any);
  bool ParseBlockList(YamlNode* list);
  bool ParseIndentlessList(YamlNode* list);
  bool ParseBlockMap(YamlNode* map);
  const YamlToken* NextFlowEntry(Type end, absl::string_view problem,
                                 bool first, const YamlMark& start);
  bool ParseFlowList(YamlNode* list);
  bool ParseFlowMap(YamlNode* map);
  bool ParseFlowPair(YamlNode* list);
  // The value behind `:`; empty without one, before `,` or `end`.
  bool ParseFlowValue(Type end, YamlNode* parent);
  bool ParseChild(bool block, bool indentless, YamlNode* parent);
  const YamlNode* Empty();

  YamlScanner scanner_;
  absl::optional<YamlFault> fault_;
  std::string alias_problem_;
  int alias_line_ = 0;
  std::deque<YamlNode> nodes_;
  std::map<std::string, const YamlNode*> anchors_;
  std::map<std::string, std::string> tag_prefixes_;
  int depth_ = 0;
};

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_YAML_NODES_H_
