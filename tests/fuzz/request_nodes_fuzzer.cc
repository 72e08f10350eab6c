// SPDX-License-Identifier: Apache-2.0
// Nodes of any bytes: they are read if and only if the bytes can be keyed, and
// every path that is spelled can be split again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "cache/key/digest.h"
#include "insight/request/compare.h"
#include "insight/request/identity.h"
#include "insight/request/nodes.h"
#include "insight/request/outline.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using fncache::insight::request::RequestNodes;
  static auto* const nodes =
      new RequestNodes(fncache::insight::request::FingerprintSecret::Random());
  static const auto* const digester = new fncache::cache::key::Digester(
      {}, {"f", "/m", "g"}, fncache::cache::key::MaskSet());
  static auto* const scratch = new fncache::cache::key::DigestScratch;
  constexpr size_t kMaxInput = 1 << 16;
  if (size > kMaxInput) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const bool keyed = digester->Compute({bytes}, scratch).keyed;
  fncache::insight::request::ReadComposite({bytes});
  fncache::insight::request::Outline outline;
  fncache::insight::request::ReadOutline({bytes}, &outline);
  if (nodes->Read({bytes}) != keyed) abort();
  for (size_t i = 0; i < nodes->nodes().size(); ++i) {
    const std::string path = nodes->Spell(i);
    if (fncache::insight::request::SplitPath(path).empty()) abort();
    fncache::insight::request::MaskFor(path);
  }
  fncache::insight::request::CompositeOf(nodes->nodes());
  fncache::insight::request::WritersOf(nodes->nodes());
  return 0;
}
