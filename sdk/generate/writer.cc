// SPDX-License-Identifier: Apache-2.0
#include "sdk/generate/writer.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/utf8.h"

namespace fncache::sdk {
namespace {

constexpr size_t kCommentColumns = 100;
constexpr size_t kMaxComment = 600;
constexpr size_t kMaxDefault = 100;
// clang warns of longer literals.
constexpr size_t kMaxLiteral = 60000;

// Generated classes have names of their own (`List`, `std`), so all others are
// written from the global namespace on.
constexpr char kBase[] = "::fncache::function::";

std::string Text(absl::string_view text) {
  std::string out = "\"";
  for (const char character : text) {
    const auto c = static_cast<unsigned char>(character);
    if (c == '"' || c == '\\' || c == '?') {
      absl::StrAppend(&out, "\\", std::string(1, character));
    } else if (c >= 0x20 && c < 0x7f) {
      out += character;
    } else {
      absl::StrAppendFormat(&out, "\\%03o", c);
    }
  }
  return out + "\"";
}

// A text of any length as an array's content.
std::string Array(absl::string_view text, absl::string_view indent) {
  if (text.size() <= kMaxLiteral) return Literal(text, indent);
  std::string out = "{";
  for (size_t i = 0; i < text.size(); ++i) {
    if (i % 24 == 0) absl::StrAppend(&out, "\n", indent);
    // A char may be signed.
    absl::StrAppend(&out, static_cast<int>(static_cast<signed char>(text[i])),
                    ",");
  }
  return out + "0}";
}

class Writer {
 public:
  explicit Writer(const Header& header) : header_(header) {}

  std::string Write() {
    const Place& place = header_.place;
    const std::string guard = Guard(place.file);
    absl::StrAppend(&out_, "// ", Title(), ", ", kGenerated,
                    ". Changes here are lost.\n#ifndef ", guard, "\n#define ",
                    guard, "\n#include <fncache/function/resource.h>\n\n");
    for (const auto& [name, other] : Others()) {
      absl::StrAppend(&out_, "namespace ", Namespace(other), " {\nclass ",
                      other.name, ";\n}\n");
    }
    absl::StrAppend(&out_, "namespace ", Namespace(place), " {\n\n");
    WriteClass(header_.root, "", "");
    out_ += "\n}\n";
    if (!later_.empty()) {
      // The classes are declared in whatever order their headers include each
      // other.
      for (const std::string& file : header_.includes) {
        absl::StrAppend(&out_, "#include \"", file, "\"\n");
      }
      absl::StrAppend(&out_, "\nnamespace ", Namespace(place), " {\n", later_,
                      "}\n");
    }
    return out_ + "#endif\n";
  }

 private:
  std::string Title() const {
    const std::string name =
        header_.kind.empty()
            ? header_.component
            : absl::StrCat(header_.api_version, " ", header_.kind);
    std::string title;
    for (const char c : name) title += absl::ascii_isgraph(c) ? c : ' ';
    return title;
  }

  // No two files have one guard: only a `_` of the file's name is before a 0.
  static std::string Guard(absl::string_view file) {
    return absl::StrCat(
        absl::StrReplaceAll(file, {{"_", "_0"}, {"/", "_"}, {".", "_"}}), "_");
  }

  static std::string Namespace(const Place& place) {
    std::string name = "model";
    for (const std::string& part : place.namespaces) {
      absl::StrAppend(&name, "::", part);
    }
    return name;
  }

  // The classes of other headers by their full names.
  std::map<std::string, Place> Others() const {
    std::map<std::string, Place> others;
    Collect(header_.root, &others);
    others.erase(
        absl::StrCat(Namespace(header_.place), "::", header_.place.name));
    return others;
  }

  static void Collect(const Class& from, std::map<std::string, Place>* others) {
    for (const auto& [name, place] : from.aliases) {
      others->try_emplace(FullName(place), place);
    }
    for (const Class& inner : from.classes) Collect(inner, others);
  }

  void WriteClass(const Class& made, const std::string& scope,
                  const std::string& indent) {
    const bool root = scope.empty();
    const bool model = root && !header_.kind.empty() && !header_.input;
    const std::string inner = absl::StrCat(indent, "  ");
    const std::string path = absl::StrCat(scope, made.name, "::");
    const std::string base = absl::StrCat(
        kBase, model ? absl::StrCat("Model<", made.name, ">") : "Object");
    absl::StrAppend(&out_, Comment(made.comment, indent), indent, "class ",
                    made.name, " : public ", base, " {\n", indent, " public:\n",
                    inner, "using ", base,
                    model ? "::Model;\n" : "::Object;\n");
    if (!model) {
      absl::StrAppend(&out_, inner, "void operator=(const ", kBase,
                      "internal::Untyped& value) { PutAll(value.ref()); }\n");
    }
    if (root && !header_.kind.empty()) {
      absl::StrAppend(&out_, inner, "static constexpr char kApiVersion[] = ",
                      Text(header_.api_version), ";\n", inner,
                      "static constexpr char kKind[] = ", Text(header_.kind),
                      ";\n");
      if (header_.input) {
        absl::StrAppend(&out_, inner, "static constexpr char kSchema[] =",
                        Array(header_.schema, absl::StrCat(inner, "    ")),
                        ";\n");
      }
    }
    for (const Constants& constants : made.constants) {
      absl::StrAppend(&out_, inner, "struct ", constants.name, " {\n");
      for (const auto& [name, value] : constants.values) {
        absl::StrAppend(&out_, inner, "  static constexpr char ", name,
                        "[] = ", Text(value), ";\n");
      }
      absl::StrAppend(&out_, inner, "};\n");
    }
    for (const auto& [name, place] : made.aliases) {
      absl::StrAppend(&out_, inner, "using ", name, " = ", FullName(place),
                      ";\n");
    }
    // A repeated class may be one within a class of this one.
    for (const Class& nested : made.classes) WriteClass(nested, path, inner);
    for (const auto& [name, full_name] : made.repeated) {
      absl::StrAppend(&out_, inner, "using ", name, " = ", full_name, ";\n");
    }
    for (const Field& field : made.fields) WriteField(field, made, path, inner);
    absl::StrAppend(&out_, indent, "};\n");
  }

  void WriteField(const Field& field, const Class& owner,
                  const std::string& path, const std::string& indent) {
    std::string comment = field.comment;
    if (!field.default_value.empty()) {
      absl::StrAppend(&comment, comment.empty() ? "" : "\n",
                      "Default: ", field.default_value.substr(0, kMaxDefault));
    }
    out_ += Comment(comment, indent);
    const bool later = InOtherHeader(field.type);
    const std::string type = TypeName(field.type, "");
    const std::string wire = Text(field.wire);
    const std::string at = absl::StrCat(type, "(At(", wire, "))");
    WriteMember(indent, later, type, TypeName(field.type, path), path,
                absl::StrCat(field.name, "() const"),
                absl::StrCat("{ return ", at, "; }"));
    const std::string self = absl::StrCat("const ", owner.name, "&");
    const std::string outer_self =
        absl::StrCat("const ", path.substr(0, path.size() - 2), "&");
    const auto setter = [&](const std::string& argument,
                            const std::string& write) {
      WriteMember(indent, later, self, outer_self, path,
                  absl::StrCat(field.name, "(", argument, " value) const"),
                  absl::StrCat("{ ", write, "; return *this; }"));
    };
    if (field.type.kind == Type::Kind::kValue) {
      // A template takes all that a Value can be assigned.
      absl::StrAppend(&out_, indent, "template <class T>\n");
      setter("const T&", absl::StrCat(at, " = value"));
      return;
    }
    const std::string assigned = AssignedTo(field.type);
    if (assigned != type) {
      setter(absl::StrCat("const ", assigned, "&"),
             absl::StrCat("Put(", wire, ", value)"));
      return;
    }
    const std::string copy = absl::StrCat("Put(", wire, ", value.ref())");
    if (!field.type.element.empty()) {
      const std::string element = AssignedTo(field.type.element.front());
      const bool list = field.type.kind == Type::Kind::kList;
      setter(list ? absl::StrCat("::std::initializer_list<", element, ">")
                  : absl::StrCat("::std::initializer_list<::std::pair<::std::"
                                 "string_view, ",
                                 element, ">>"),
             list ? absl::StrCat(at, " = value")
                  : absl::StrCat("Put(", wire, ", ", type, "(value).ref())"));
    }
    setter(absl::StrCat("const ", type, "&"), copy);
    setter(absl::StrCat("const ", kBase, "internal::Untyped&"), copy);
  }

  // A member function, whose body follows the class if it needs others.
  void WriteMember(const std::string& indent, bool later,
                   const std::string& type, const std::string& outer_type,
                   const std::string& path, const std::string& signature,
                   const std::string& body) {
    absl::StrAppend(&out_, indent, type, " ", signature);
    if (!later) {
      absl::StrAppend(&out_, " ", body, "\n");
      return;
    }
    out_ += ";\n";
    absl::StrAppend(&later_, "inline ", outer_type, " ", path, signature, " ",
                    body, "\n");
  }

  static bool InOtherHeader(const Type& type) {
    return type.component ||
           (!type.element.empty() && InOtherHeader(type.element.front()));
  }

  // `scope` is what a class of the field's class needs before its name.
  static std::string TypeName(const Type& type, const std::string& scope) {
    switch (type.kind) {
      case Type::Kind::kValue:
        return absl::StrCat(kBase, "Value");
      case Type::Kind::kObject:
        return absl::StrCat(scope, type.name);
      case Type::Kind::kList:
      case Type::Kind::kMap:
        return absl::StrCat(kBase,
                            type.kind == Type::Kind::kList ? "List<" : "Map<",
                            Element(type.element.front(), scope), ">");
      default:
        return absl::StrCat(kBase, "Field<", Scalar(type.kind), ">");
    }
  }

  // The argument of List and Map.
  static std::string Element(const Type& type, const std::string& scope) {
    const char* const scalar = Scalar(type.kind);
    return *scalar == '\0' ? TypeName(type, scope) : scalar;
  }

  // The type that is assigned to a value of `type`.
  static std::string AssignedTo(const Type& type) {
    const char* const scalar = Scalar(type.kind);
    return *scalar == '\0' ? TypeName(type, "")
                           : absl::StrCat(kBase, "Observable<", scalar, ">");
  }

  static const char* Scalar(Type::Kind kind) {
    switch (kind) {
      case Type::Kind::kText:
        return "::std::string";
      case Type::Kind::kBoolean:
        return "bool";
      case Type::Kind::kInteger:
        return "::std::int64_t";
      case Type::Kind::kNumber:
        return "double";
      case Type::Kind::kIntOrString:
        return "::fncache::function::IntOrString";
      default:
        return "";
    }
  }

  const Header& header_;
  std::string out_;
  std::string later_;
};

}  // namespace

std::string Comment(absl::string_view text, absl::string_view indent) {
  std::string out;
  std::string clean;
  for (absl::string_view rest = text; !rest.empty();) {
    const size_t bytes = Utf8CharacterBytes(rest);
    const absl::string_view character = rest.substr(0, bytes == 0 ? 1 : bytes);
    rest.remove_prefix(character.size());
    const auto c = static_cast<unsigned char>(character[0]);
    const bool plain = bytes > 1 ? Printable(character) == character
                                 : c == '\n' || (c >= 0x20 && c < 0x7f);
    if (plain) {
      absl::StrAppend(&clean, character);
    } else {
      clean += ' ';
    }
  }
  if (clean.size() > kMaxComment) {
    // At a word's end, which no character is across.
    const size_t end = clean.rfind(' ', kMaxComment);
    clean.resize(end == std::string::npos ? 0 : end);
    clean += " ...";
  }
  const auto add = [&out, indent](absl::string_view line) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) return;
    absl::StrAppend(
        &out, indent, "// ", line,
        // It would continue the comment.
        absl::EndsWith(line, "\\") || absl::EndsWith(line, "\?\?/") ? " ." : "",
        "\n");
  };
  for (const absl::string_view paragraph : absl::StrSplit(clean, '\n')) {
    std::string line;
    for (const absl::string_view word :
         absl::StrSplit(paragraph, ' ', absl::SkipEmpty())) {
      if (!line.empty() &&
          indent.size() + line.size() + word.size() + 4 > kCommentColumns) {
        add(line);
        line.clear();
      }
      absl::StrAppend(&line, line.empty() ? "" : " ", word);
    }
    add(line);
  }
  return out;
}

std::string Literal(absl::string_view text, absl::string_view indent) {
  constexpr size_t kColumns = 90;
  std::string out;
  do {
    const absl::string_view piece = text.substr(0, kColumns);
    text.remove_prefix(piece.size());
    absl::StrAppend(&out, "\n", indent, Text(piece));
  } while (!text.empty());
  return out;
}

std::string WriteHeader(const Header& header) { return Writer(header).Write(); }

}  // namespace fncache::sdk
