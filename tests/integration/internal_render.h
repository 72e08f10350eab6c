// SPDX-License-Identifier: Apache-2.0
// `fncache internal render` for tests: its process, and requests made of the
// files of a render.
#ifndef FNCACHE_TESTS_INTEGRATION_INTERNAL_RENDER_H_
#define FNCACHE_TESTS_INTEGRATION_INTERNAL_RENDER_H_

#include <filesystem>
#include <functional>
#include <string>

#include "proto/render.pb.h"
#include "text/json.h"

namespace fncache::testing {

struct Ended {
  int exit_code = 0;
  std::string out;
  std::string err;
};

std::string ReadAll(const std::filesystem::path& path);

// Runs the shell's `command`, in which $0 is the binary and $1 a file of
// `input`.
Ended Shell(const std::string& command, const std::string& input = "");

Ended InternalRender(const crossplane::render::v1alpha1::RenderRequest& request,
                     const std::string& flags = "");

// The first document of a file.
text::Json LoadFile(const std::filesystem::path& path);

// The request that the command line makes of the files in a folder: xr.yaml,
// composition.yaml and, where they are there, observed.yaml, required.yaml,
// credentials.yaml and schemas/. `address` gives where a function listens.
crossplane::render::v1alpha1::RenderRequest CaseRequest(
    const std::filesystem::path& folder,
    const std::function<std::string(const std::string& name)>& address);

// As the command line prints conditions.
void FixTimes(text::Json* object);

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_INTEGRATION_INTERNAL_RENDER_H_
