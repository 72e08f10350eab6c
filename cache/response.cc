// SPDX-License-Identifier: Apache-2.0
#include "cache/response.h"

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "cache/wire/schema.h"
#include "cache/wire/validate.h"
#include "cache/wire/wire.h"

namespace fncache::cache {
namespace {

// Field numbers: PROTOCOL.md, proto/function_v1.proto.
constexpr uint32_t kMeta = wire::MakeTag(1, wire::WireType::kBytes);
constexpr uint32_t kDesired = wire::MakeTag(2, wire::WireType::kBytes);
constexpr uint32_t kResults = wire::MakeTag(3, wire::WireType::kBytes);
constexpr uint32_t kMetaTag = wire::MakeTag(1, wire::WireType::kBytes);
constexpr uint32_t kMetaTtl = wire::MakeTag(2, wire::WireType::kBytes);
constexpr uint32_t kSeconds = wire::MakeTag(1, wire::WireType::kVarint);
constexpr uint32_t kNanos = wire::MakeTag(2, wire::WireType::kVarint);
constexpr uint32_t kSeverity = wire::MakeTag(1, wire::WireType::kVarint);
constexpr uint32_t kComposite = wire::MakeTag(1, wire::WireType::kBytes);
constexpr uint32_t kResources = wire::MakeTag(2, wire::WireType::kBytes);
constexpr uint32_t kMapValue = wire::MakeTag(2, wire::WireType::kBytes);
constexpr uint32_t kConnectionDetails =
    wire::MakeTag(2, wire::WireType::kBytes);

constexpr int32_t kFatal = 1;
constexpr int64_t kNanosPerSecond = 1'000'000'000;

// The merged meta of a response: singular fields given twice, in one meta or in
// several, follow protobuf's rules (the last scalar wins, messages merge).
struct Meta {
  absl::string_view tag;
  bool has_ttl = false;
  int64_t seconds = 0;
  int32_t nanos = 0;
  // The payloads of all TTLs joined, which is the merged TTL, and its unknown
  // fields alone.
  std::string ttl_bytes;
  std::string ttl_unknown;
  std::string unknown;
};

bool Skip(uint32_t tag, wire::Cursor* in) {
  return in->Skip(tag, wire::kMaxDepth);
}

// Skips a field that began at `start`, and appends its bytes.
bool Keep(uint32_t tag, const char* start, wire::Cursor* in, std::string* out) {
  if (!Skip(tag, in)) return false;
  out->append(start, in->position() - start);
  return true;
}

bool ReadTtl(absl::string_view bytes, Meta* meta) {
  meta->has_ttl = true;
  meta->ttl_bytes.append(bytes.data(), bytes.size());
  const char* start = bytes.data();
  return wire::ForEachField(bytes, [&](uint32_t tag, wire::Cursor* in) {
    uint64_t value;
    bool ok;
    if (tag == kSeconds) {
      ok = in->ReadVarint(&value);
      if (ok) meta->seconds = static_cast<int64_t>(value);
    } else if (tag == kNanos) {
      ok = in->ReadVarint(&value);
      if (ok) meta->nanos = static_cast<int32_t>(value);
    } else {
      ok = Keep(tag, start, in, &meta->ttl_unknown);
    }
    start = in->position();
    return ok;
  });
}

bool ReadMeta(absl::string_view bytes, Meta* meta) {
  const char* start = bytes.data();
  return wire::ForEachField(bytes, [&](uint32_t tag, wire::Cursor* in) {
    absl::string_view ttl;
    bool ok;
    if (tag == kMetaTag) {
      ok = in->ReadBytes(&meta->tag);
    } else if (tag == kMetaTtl) {
      ok = in->ReadBytes(&ttl) && ReadTtl(ttl, meta);
    } else {
      ok = Keep(tag, start, in, &meta->unknown);
    }
    start = in->position();
    return ok;
  });
}

bool ReadResult(absl::string_view bytes, bool* fatal) {
  int32_t severity = 0;
  const bool ok =
      wire::ForEachField(bytes, [&](uint32_t tag, wire::Cursor* in) {
        if (tag != kSeverity) return Skip(tag, in);
        uint64_t value;
        if (!in->ReadVarint(&value)) return false;
        severity = static_cast<int32_t>(value);
        return true;
      });
  *fatal |= severity == kFatal;
  return ok;
}

bool ReadResource(absl::string_view bytes, bool* secrets) {
  return wire::ForEachField(bytes, [&](uint32_t tag, wire::Cursor* in) {
    *secrets |= tag == kConnectionDetails;
    return Skip(tag, in);
  });
}

// Reads field `wanted` of a message, if the tag is its tag, with `read`.
template <typename Read>
bool ReadIf(uint32_t wanted, uint32_t tag, wire::Cursor* in, Read read) {
  if (tag != wanted) return Skip(tag, in);
  absl::string_view bytes;
  return in->ReadBytes(&bytes) && read(bytes);
}

bool ReadDesired(absl::string_view bytes, bool* secrets) {
  const auto resource = [&](absl::string_view value) {
    return ReadResource(value, secrets);
  };
  const auto entry = [&](absl::string_view map_entry) {
    return wire::ForEachField(map_entry, [&](uint32_t tag, wire::Cursor* in) {
      return ReadIf(kMapValue, tag, in, resource);
    });
  };
  return wire::ForEachField(bytes, [&](uint32_t tag, wire::Cursor* in) {
    if (*secrets) return Skip(tag, in);
    if (tag == kComposite) return ReadIf(kComposite, tag, in, resource);
    return ReadIf(kResources, tag, in, entry);
  });
}

// Collects the byte ranges of a response that are not meta.
class Body {
 public:
  explicit Body(std::vector<absl::string_view>* pieces) : pieces_(pieces) {}

  // [from, to) belongs to the body; what adjoins the last piece lengthens it.
  void Add(const char* from, const char* to) {
    if (!pieces_->empty() && pieces_->back().end() == from) {
      absl::string_view& last = pieces_->back();
      last = absl::string_view(last.data(), to - last.data());
    } else {
      pieces_->emplace_back(from, to - from);
    }
  }

 private:
  std::vector<absl::string_view>* pieces_;
};

absl::optional<absl::Duration> ValidTtl(const Meta& meta) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  if (!meta.has_ttl || meta.seconds < 0 || meta.nanos < 0 ||
      meta.nanos >= kNanosPerSecond || meta.seconds > kMax / kNanosPerSecond) {
    return absl::nullopt;
  }
  const int64_t whole = meta.seconds * kNanosPerSecond;
  if (whole > kMax - meta.nanos) return absl::nullopt;
  return absl::Nanoseconds(whole + meta.nanos);
}

void TakeMeta(Meta meta, ResponseView* view) {
  view->tag = meta.tag;
  view->facts.ttl = ValidTtl(meta);
  view->meta_rest = std::move(meta.unknown);
  if (!meta.has_ttl) return;
  if (!view->facts.ttl.has_value()) {
    wire::AppendBytesField(&view->meta_rest, wire::TagNumber(kMetaTtl),
                           meta.ttl_bytes);
  } else if (!meta.ttl_unknown.empty()) {
    wire::AppendBytesField(&view->meta_rest, wire::TagNumber(kMetaTtl),
                           meta.ttl_unknown);
  }
}

}  // namespace

absl::StatusOr<ResponseView> ReadResponse(absl::string_view bytes) {
  // Validate looks at everything, the walk below only at what it needs.
  if (bytes.size() > std::numeric_limits<int32_t>::max() ||
      !wire::Validate(wire::kRunFunctionResponseType, bytes)) {
    return absl::InvalidArgumentError("not a RunFunctionResponse");
  }
  ResponseView view;
  ResponseFacts& facts = view.facts;
  Meta meta;
  Body body(&view.body);
  const char* start = bytes.data();
  const bool ok =
      wire::ForEachField(bytes, [&](uint32_t tag, wire::Cursor* in) {
        absl::string_view field;
        bool read;
        if (tag == kMeta) {
          read = in->ReadBytes(&field) && ReadMeta(field, &meta);
          start = in->position();
          return read;
        }
        if (tag == kDesired) {
          read = in->ReadBytes(&field) && ReadDesired(field, &facts.secrets);
        } else if (tag == kResults) {
          read = in->ReadBytes(&field) && ReadResult(field, &facts.fatal);
        } else {
          read = Skip(tag, in);
        }
        body.Add(start, in->position());
        start = in->position();
        return read;
      });
  if (!ok) return absl::InvalidArgumentError("not a RunFunctionResponse");
  TakeMeta(std::move(meta), &view);
  return view;
}

std::string MakeMeta(absl::string_view tag,
                     const absl::optional<absl::Duration>& ttl,
                     absl::string_view rest) {
  std::string meta;
  MakeMeta(tag, ttl, rest, &meta);
  return meta;
}

void MakeMeta(absl::string_view tag, const absl::optional<absl::Duration>& ttl,
              absl::string_view rest, std::string* meta) {
  // Two varint fields.
  char duration[2 * 11];
  char* duration_end = duration;
  if (ttl.has_value()) {
    absl::Duration nanos;
    const int64_t seconds = absl::IDivDuration(*ttl, absl::Seconds(1), &nanos);
    if (seconds != 0) {
      duration_end = wire::WriteVarint(duration_end, kSeconds);
      duration_end =
          wire::WriteVarint(duration_end, static_cast<uint64_t>(seconds));
    }
    const int64_t nano_count = absl::ToInt64Nanoseconds(nanos);
    if (nano_count != 0) {
      duration_end = wire::WriteVarint(duration_end, kNanos);
      duration_end =
          wire::WriteVarint(duration_end, static_cast<uint64_t>(nano_count));
    }
  }
  const size_t duration_size = duration_end - duration;

  size_t size = rest.size();
  if (!tag.empty()) size += 1 + wire::VarintSize(tag.size()) + tag.size();
  if (ttl.has_value()) size += 2 + duration_size;

  meta->clear();
  meta->reserve(1 + wire::VarintSize(size) + size);
  wire::AppendVarint(meta, kMeta);
  wire::AppendVarint(meta, size);
  if (!tag.empty()) {
    wire::AppendBytesField(meta, wire::TagNumber(kMetaTag), tag);
  }
  if (ttl.has_value()) {
    wire::AppendBytesField(meta, wire::TagNumber(kMetaTtl),
                           {duration, duration_size});
  }
  meta->append(rest.data(), rest.size());
}

std::string MetaWithTtl(const ResponseView& view, absl::Duration ttl) {
  return MakeMeta(view.tag, ttl, view.meta_rest);
}

}  // namespace fncache::cache
