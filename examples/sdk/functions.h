// SPDX-License-Identifier: Apache-2.0
// The functions of this folder. Each has its process (NAME_main.cc) and its
// test (NAME_test.cc).
#ifndef EXAMPLES_SDK_FUNCTIONS_H_
#define EXAMPLES_SDK_FUNCTIONS_H_

#include "fncache/function/context.h"

// A VPC, a subnet in it and a security group in both. Each refers to the status
// of those before it.
void Network(fncache::function::Context& ctx);

// A bucket in the project of the default VPC, which exists already.
void Shared(fncache::function::Context& ctx);

// A Deployment that is checked against the cluster's schema before it is
// applied. Needs an input and credentials.
void Checked(fncache::function::Context& ctx);

#endif  // EXAMPLES_SDK_FUNCTIONS_H_
