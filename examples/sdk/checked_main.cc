// SPDX-License-Identifier: Apache-2.0
#include "examples/sdk/functions.h"
#include "fncache/function.h"

int main(int argc, char** argv) {
  return fncache::function::Main(argc, argv, "function-checked", Checked);
}
