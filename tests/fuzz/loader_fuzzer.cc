// SPDX-License-Identifier: Apache-2.0
// Loads any bytes as a render would: as a composite, a Composition, functions
// and resources, and the first two documents as a definition and its composite.
// For any bytes, loading ends with objects or with an error that says
// something. Defaults remove nothing, and are the same when applied twice.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runner/engine/composite_defaults.h"
#include "runner/engine/composite_schema.h"
#include "runner/engine/composition.h"
#include "runner/render/loader.h"
#include "text/object.h"

namespace {

using fncache::text::Json;

void Check(bool holds) {
  if (!holds) std::abort();
}

template <typename Loaded>
bool Loads(const absl::StatusOr<Loaded>& loaded) {
  if (!loaded.ok()) Check(!loaded.status().message().empty());
  return loaded.ok();
}

// Whether all of `before` but its nulls is in `after` as well.
bool Keeps(const Json& after, const Json& before) {
  if (before.is_null()) return true;
  if (before.is_object()) {
    if (!after.is_object()) return false;
    for (const auto& field : before.items()) {
      const auto it = after.find(field.key());
      if (it == after.end() || !Keeps(*it, field.value())) return false;
    }
    return true;
  }
  if (before.is_array()) {
    if (!after.is_array() || after.size() != before.size()) return false;
    for (size_t i = 0; i < before.size(); ++i) {
      if (!Keeps(after[i], before[i])) return false;
    }
    return true;
  }
  return after == before;
}

void Define(const Json& definition, const Json& composite) {
  const auto object = fncache::text::ToStruct(definition);
  Loads(fncache::runner::engine::SchemaOf(&object,
                                          fncache::text::ToStruct(composite)));
  Json defaulted = composite;
  const absl::Status status =
      fncache::runner::engine::ApplyDefaults(definition, &defaulted);
  if (!status.ok()) return;
  Check(Keeps(defaulted, composite));
  Json again = defaulted;
  Check(fncache::runner::engine::ApplyDefaults(definition, &again).ok());
  Check(again == defaulted);
}

void Compose(const Json& composition, const Json& composite) {
  Loads(fncache::runner::engine::ParseComposition(
      fncache::text::ToStruct(composition)));
  const absl::Status status =
      fncache::runner::render::CheckComposition(composition, composite);
  Check(status.ok() || !status.message().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 16384) return 0;
  const int file = memfd_create("fuzz", MFD_CLOEXEC);
  Check(file >= 0);
  Check(write(file, data, size) == static_cast<ssize_t>(size));
  const std::string path = absl::StrCat("/proc/self/fd/", file);

  Loads(fncache::runner::render::LoadObject(path));
  Loads(fncache::runner::render::LoadComposite(path));
  Loads(fncache::runner::render::LoadResources({path}));
  Loads(fncache::runner::render::LoadFunctions(path, {}));
  Loads(fncache::runner::render::LoadDefinition(path));
  Loads(fncache::runner::render::LoadSecrets(path));
  const auto composition = fncache::runner::render::LoadComposition(path);
  if (Loads(composition)) {
    const auto parsed = fncache::runner::engine::ParseComposition(
        fncache::text::ToStruct(*composition->object));
    Check(parsed.ok());
  }
  const auto objects = fncache::runner::render::LoadObjects(path);
  if (Loads(objects)) {
    for (size_t i = 0; i + 1 < objects->size() && i < 4; ++i) {
      Define(*(*objects)[i].object, *(*objects)[i + 1].object);
      Compose(*(*objects)[i].object, *(*objects)[i + 1].object);
    }
  }
  close(file);
  return 0;
}
