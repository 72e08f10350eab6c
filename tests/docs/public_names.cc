// SPDX-License-Identifier: Apache-2.0
#include "tests/docs/public_names.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <vector>

namespace fncache::docs {
namespace {

using Tokens = std::vector<std::string>;

bool IsIdentifier(const std::string& token) {
  return std::isalpha(static_cast<unsigned char>(token[0])) != 0 ||
         token[0] == '_';
}

Tokens TokensOf(std::string text) {
  text = std::regex_replace(text, std::regex("//[^\n]*"), "");
  text = std::regex_replace(text, std::regex("(^|\n) *#[^\n]*"), "\n");
  const std::regex token("\"[^\"]*\"|[A-Za-z_][A-Za-z_0-9]*|[0-9]+|::|\\S");
  return {std::sregex_token_iterator(text.begin(), text.end(), token), {}};
}

class Reader {
 public:
  explicit Reader(const std::string& header) : tokens_(TokensOf(header)) {}

  std::set<std::string> Read() {
    while (at_ < tokens_.size()) Scope("");
    return names_;
  }

 private:
  // Leaves out the content of braces, with the closing one.
  void Skip() {
    for (int depth = 1; at_ < tokens_.size() && depth > 0; ++at_) {
      depth += tokens_[at_] == "{" ? 1 : tokens_[at_] == "}" ? -1 : 0;
    }
  }

  // Declarations of a namespace or of the class `name`, after its brace.
  void Scope(const std::string& name, bool is_public = true) {
    Tokens words;  // of the declaration so far
    while (at_ < tokens_.size()) {
      const std::string token = tokens_[at_++];
      if (token == "}") return;
      if (token == ":" && words.size() == 1 &&
          (words[0] == "public" || words[0] == "private" ||
           words[0] == "protected")) {
        is_public = words[0] == "public";
        words.clear();
      } else if (token == ";") {
        if (is_public) Declare(words, name);
        words.clear();
      } else if (token == "{" && Opens(words, is_public)) {
        words.clear();
      } else if (token == "{") {
        // A function's body ends its declaration; an initializer does not.
        const bool function = IsFunction(WithoutTemplate(words));
        Skip();
        if (function && (at_ == tokens_.size() || tokens_[at_] != ",")) {
          if (is_public) Declare(words, name);
          words.clear();
        }
      } else {
        words.push_back(token);
      }
    }
  }

  static bool IsFunction(const Tokens& words) {
    int depth = 0;
    bool arguments = false;
    for (const std::string& word : words) {
      if (word == "operator") return true;
      if (word == "=" && depth == 0) return false;
      depth += word == "(" ? 1 : word == ")" ? -1 : 0;
      arguments = arguments || (word == ")" && depth == 0);
    }
    return arguments && depth == 0;
  }

  // Enters the namespace, class or enum whose brace was read; false: no such.
  bool Opens(const Tokens& all, bool is_public) {
    const Tokens words = WithoutTemplate(all);
    if (words.empty()) return false;
    if (words[0] == "namespace") {
      if (words.back() == "internal") {
        Skip();
      } else {
        Scope("");
      }
      return true;
    }
    if (words[0] == "enum") {
      const std::string& name = words[words[1] == "class" ? 2 : 1];
      if (is_public) names_.insert(name);
      while (tokens_[at_] != "}") {
        if (is_public) names_.insert(tokens_[at_]);
        while (tokens_[at_] != "," && tokens_[at_] != "}") ++at_;
        if (tokens_[at_] == ",") ++at_;
      }
      ++at_;
      return true;
    }
    if (words[0] != "class" && words[0] != "struct") return false;
    std::string name;
    for (size_t i = 1; i < words.size() && words[i] != ":"; ++i) {
      if (words[i] == "final" || words[i] == "<") break;
      if (IsIdentifier(words[i]) && words[i] != "nodiscard") name = words[i];
    }
    if (is_public) names_.insert(name);
    Scope(name, is_public && words[0] == "struct");
    return true;
  }

  static Tokens WithoutTemplate(const Tokens& words) {
    size_t i = 0;
    while (i < words.size() && words[i] == "template") {
      int depth = 0;
      do {
        ++i;
        depth += words[i] == "<" ? 1 : words[i] == ">" ? -1 : 0;
      } while (depth > 0 && i + 1 < words.size());
      ++i;
    }
    return Tokens(
        words.begin() + static_cast<std::ptrdiff_t>(std::min(i, words.size())),
        words.end());
  }

  // The name of a function, an alias, a field or a constant.
  void Declare(const Tokens& all, const std::string& scope) {
    const Tokens words = WithoutTemplate(all);
    if (words.empty() || words[0] == "friend" || words[0] == "extern" ||
        std::find(words.begin(), words.end(), "operator") != words.end()) {
      return;
    }
    // A class that is only declared is defined elsewhere.
    if (words[0] == "class" || words[0] == "struct") return;
    if (words[0] == "using") {
      if (words.size() > 2 && words[2] == "=") names_.insert(words[1]);
      return;
    }
    std::string name;
    int depth = 0;
    for (const std::string& word : words) {
      if (word == "<") ++depth;
      if (word == ">") --depth;
      if (depth > 0) continue;
      if (word == "(" || word == "=" || word == "{" || word == "[") break;
      // A definition of what is declared in its class.
      if (word == "::" && name == scope) return;
      if (IsIdentifier(word)) name = word;
    }
    if (name != scope && name != "const" && !name.empty() &&
        !IsQualified(words, name)) {
      names_.insert(name);
    }
  }

  // Whether `name` follows a class, as in `void Class<T>::Name() {}`.
  static bool IsQualified(const Tokens& words, const std::string& name) {
    const auto at = std::find(words.begin(), words.end(), name);
    return at - words.begin() > 1 && *(at - 1) == "::" &&
           at + 1 != words.end() && *(at + 1) == "(";
  }

  const Tokens tokens_;
  size_t at_ = 0;
  std::set<std::string> names_;
};

}  // namespace

std::set<std::string> PublicNames(const std::string& header) {
  return Reader(header).Read();
}

}  // namespace fncache::docs
