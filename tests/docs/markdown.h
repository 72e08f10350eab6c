// SPDX-License-Identifier: Apache-2.0
// The pages that people read, and the code blocks in them.
//
// Every block says in its info string, behind the language, how it is tested:
// "sh run" (see blocks_test.cc for all of them). GitHub shows the language
// only.
#ifndef FNCACHE_TESTS_DOCS_MARKDOWN_H_
#define FNCACHE_TESTS_DOCS_MARKDOWN_H_

#include <string>
#include <vector>

namespace fncache::docs {

struct Block {
  std::string page;  // relative to the source folder: "docs/operating.md"
  int line = 0;      // of its fence
  std::string language;
  std::string directive;  // "run", "same"; empty = none
  std::string argument;   // of "same=examples/xr.yaml": the path
  std::string text;       // its lines, each with its end

  // "docs/operating.md:48"
  std::string where() const;
};

// README.md and its neighbours, docs/ and examples/, in order of their names.
std::vector<std::string> Pages();

// The content of a file of the source folder. Aborts if there is none.
std::string ReadSource(const std::string& path);

// The fenced blocks of a page, in order. `wrong` gets a line for each thing
// that is no fenced block with a directive: an indented block, a fence that is
// not closed.
std::vector<Block> BlocksOf(const std::string& page,
                            std::vector<std::string>* wrong);

}  // namespace fncache::docs

#endif  // FNCACHE_TESTS_DOCS_MARKDOWN_H_
