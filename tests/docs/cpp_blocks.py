#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one C++ source of all C++ blocks of some pages, so that one compiler
run tries all of them.

tests/docs/cpp_blocks.py OUTPUT PAGE...

  cpp step=NAME  a function, or what belongs to it: each NAME is a namespace
  cpp test=NAME  tests of that step
  cpp body       statements of a function. A test calls it with a composite

Each block finds the includes and the names for namespaces of all others, so that
a page shows them once.

The program runs the tests. `--step NAME` serves the function of a step instead,
with the flags of every function.
"""
import re
import sys

HEAD = """// Made of pages by tests/docs/cpp_blocks.py.
#include <cstdio>
#include <map>
#include <string>

#include <fncache/function.h>
#include <fncache/function/testing.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
"""

BODY = """
static void {name}([[maybe_unused]] fncache::function::Context& ctx) {{
#line {line} "{page}"
{text}}}
TEST(Body, {name}) {{
  fncache::function::testing::Call call({name});
  call.composite("apiVersion: example.org/v1\\nkind: X\\nmetadata: {{name: x}}\\nspec: {{region: eu, size: 3}}");
  EXPECT_EQ(call().fatal(), "");
}}
"""

TAIL = """
int main(int argc, char** argv) {{
  const std::map<std::string, fncache::function::Function> steps = {{{steps}}};
  if (argc > 2 && std::string(argv[1]) == "--step") {{
    const auto step = steps.find(argv[2]);
    if (step == steps.end()) {{
      std::fprintf(stderr, "no step %s\\n", argv[2]);
      return 2;
    }}
    argv[2] = argv[0];
    return fncache::function::Main(argc - 2, argv + 2, "function-storage", step->second);
  }}
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}}
"""


def blocks_of(page):
    """[(line of the first line, directive, argument, text)]"""
    with open(page, encoding="utf-8") as file:
        lines = file.read().split("\n")
    blocks, start = [], None
    for number, line in enumerate(lines, 1):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number
            continue
        words = lines[start - 1][3:].split()
        if len(words) == 2 and words[0] == "cpp":
            directive, _, argument = words[1].partition("=")
            blocks.append((start + 1, directive, argument, "\n".join(lines[start:number - 1]) + "\n"))
        start = None
    return blocks


def source_of(pages):
    includes, names, parts, steps = [], [], [], {}
    for page in pages:
        for line, directive, argument, text in blocks_of(page):
            for include in re.findall(r"^#include .*$", text, re.M):
                if include not in includes:
                    includes.append(include)
            # Its line stays, so that the compiler names the page's.
            text = re.sub(r"^#include .*$", "", text, flags=re.M)
            for name in re.findall(r"^(?:namespace \w+ =|using \w+::).*;$", text, re.M):
                if name not in names:
                    names.append(name)
            if directive == "body":
                name = re.sub(r"\W", "_", page) + f"_{line}"
                parts.append(BODY.format(name=name, line=line, page=page, text=text))
            elif directive in ("step", "test"):
                text = re.sub(r"\bint main\(", "[[maybe_unused]] static int main_(", text)
                parts.append(f'\nnamespace {argument} {{\n#line {line} "{page}"\n{text}}}  // namespace {argument}\n')
                functions = re.findall(r"^void (\w+)\(fn::Context& ctx\)", text, re.M)
                if directive == "step" and functions:
                    steps[argument] = f"{argument}::{functions[-1]}"
    table = ", ".join(f'{{"{name}", {function}}}' for name, function in sorted(steps.items()))
    return HEAD + "\n".join(includes + names) + "\n" + "".join(parts) + TAIL.format(steps=table)


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as output:
        output.write(source_of(sys.argv[2:]))
