// SPDX-License-Identifier: Apache-2.0
// Expectations: `fncache render --all PATH --expect DIR [--update]`. The
// documents of each file of XRs are compared with the file of its name in DIR.
//
// Documents are compared, not texts: comments, the order of keys and the style
// of the YAML may be any. Belongs to one thread.
#ifndef FNCACHE_RUNNER_RENDER_EXPECT_H_
#define FNCACHE_RUNNER_RENDER_EXPECT_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache::runner::render {

class Expectations {
 public:
  // `update`: files that differ or are missing are written.
  Expectations(std::string folder, bool update);

  // InvalidArgument if another file of the same name was added before.
  absl::Status Add(const std::string& file, absl::string_view documents);
  // Something of the file could not be rendered: it is not compared.
  absl::Status Skip(const std::string& file);

  struct Comparison {
    std::string differences;  // unified diffs
    std::string report;       // lines for stderr
    bool as_expected = false;
  };
  // Compares, or writes, all that was added. Files in the folder that nothing
  // was rendered for are not as expected; they are never removed. An error
  // where the folder or a file cannot be read or written.
  absl::StatusOr<Comparison> Compare() const;

 private:
  struct Rendered {
    std::string file;  // of XRs
    std::string documents;
    bool skipped = false;
  };
  absl::StatusOr<Rendered*> Of(const std::string& file);

  const std::string folder_;
  const bool update_;
  std::map<std::string, Rendered> by_name_;  // the file's name in the folder
};

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_EXPECT_H_
