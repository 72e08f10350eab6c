// SPDX-License-Identifier: Apache-2.0
// The smallest function: what earlier steps desire, and one result.
#include <fncache/function.h>

namespace fn = fncache::function;

void Hello(fn::Context& ctx) { ctx.normal("hello"); }

int main(int argc, char** argv) {
  return fn::Main(argc, argv, "function-hello", Hello);
}
