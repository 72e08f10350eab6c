// SPDX-License-Identifier: Apache-2.0
#include "tests/docs/markdown.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/common/temp_dir.h"

namespace fncache::docs {
namespace {

namespace fs = std::filesystem;

constexpr char kFence[] = "```";

// Its language, directive and argument, from the text behind the fence.
void ReadInfo(absl::string_view info, Block* block) {
  const std::vector<std::string> words =
      absl::StrSplit(info, ' ', absl::SkipEmpty());
  if (!words.empty()) block->language = words[0];
  if (words.size() != 2) return;
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(words[1], absl::MaxSplits('=', 1));
  block->directive = parts.first;
  block->argument = parts.second;
}

}  // namespace

std::string Block::where() const { return absl::StrCat(page, ":", line); }

std::vector<std::string> Pages() {
  std::vector<std::string> pages;
  for (const char* folder : {"", "docs/", "examples/"}) {
    for (const auto& file :
         fs::directory_iterator(fs::path(FNCACHE_SOURCE_DIR) / folder)) {
      if (file.path().extension() != ".md") continue;
      pages.push_back(folder + file.path().filename().string());
    }
  }
  std::sort(pages.begin(), pages.end());
  return pages;
}

std::string ReadSource(const std::string& path) {
  return testing::ReadFile(absl::StrCat(FNCACHE_SOURCE_DIR, "/", path));
}

std::vector<Block> BlocksOf(const std::string& page,
                            std::vector<std::string>* wrong) {
  std::vector<Block> blocks;
  const std::string content = ReadSource(page);
  const std::vector<std::string> lines = absl::StrSplit(content, '\n');
  bool open = false;
  bool blank = true;
  int number = 0;
  for (const std::string& line : lines) {
    ++number;
    const absl::string_view fence = absl::StripLeadingAsciiWhitespace(line);
    if (!open && (absl::StartsWith(fence, "~~~") ||
                  (absl::StartsWith(fence, kFence) && fence != line))) {
      wrong->push_back(absl::StrCat(page, ":", number, ": a fence is ", kFence,
                                    " at the start of its line"));
    }
    if (absl::StartsWith(line, kFence)) {
      open = !open;
      if (!open) continue;
      Block block;
      block.page = page;
      block.line = number;
      ReadInfo(line.substr(sizeof kFence - 1), &block);
      if (block.directive.empty()) {
        wrong->push_back(absl::StrCat(
            block.where(), ": the block does not say how it is tested: ```",
            block.language.empty() ? "sh" : block.language, " run"));
      }
      blocks.push_back(std::move(block));
    } else if (open) {
      absl::StrAppend(&blocks.back().text, line, "\n");
    } else if (blank && absl::StartsWith(line, "    ")) {
      wrong->push_back(absl::StrCat(
          page, ":", number,
          ": an indented block, which cannot say how it is tested"));
    }
    blank = line.empty();
  }
  if (open) wrong->push_back(blocks.back().where() + ": is not closed");
  return blocks;
}

}  // namespace fncache::docs
