// SPDX-License-Identifier: Apache-2.0
// Composition functions in C++: values, calls and the process that serves them.
//
//   void Hello(fncache::function::Context& ctx) { ctx.normal("hello"); }
//   int main(int argc, char** argv) {
//     return fncache::function::Main(argc, argv, "function-hello", Hello);
//   }
#ifndef FNCACHE_FUNCTION_H_
#define FNCACHE_FUNCTION_H_

#include "fncache/function/context.h"
#include "fncache/function/serve.h"
#include "fncache/function/value.h"

#endif  // FNCACHE_FUNCTION_H_
