// SPDX-License-Identifier: Apache-2.0
#include "bench/answer_check.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace fncache::bench {
namespace {

using ::google::protobuf::internal::WireFormatLite;
using ::google::protobuf::io::CodedInputStream;

constexpr size_t kPrefix = 5;  // of a gRPC message: flag and length

constexpr const char* kNames[kCacheStatuses] = {
    "none", "hit", "miss", "stale", "request", "bypass", "other"};

CodedInputStream Stream(absl::string_view bytes) {
  return CodedInputStream(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(bytes.size()));
}

// The tag of a `meta`, if it has one.
bool ReadTag(absl::string_view meta, std::string* tag) {
  CodedInputStream in = Stream(meta);
  while (const uint32_t field = in.ReadTag()) {
    if (field == (1 << 3 | 2)) {
      if (!WireFormatLite::ReadBytes(&in, tag)) return false;
    } else if (!WireFormatLite::SkipField(&in, field)) {
      return false;
    }
  }
  return in.ConsumedEntireMessage();
}

}  // namespace

const char* CacheStatusName(CacheStatus status) {
  return kNames[static_cast<size_t>(status)];
}

absl::optional<CacheStatus> CacheStatusOf(absl::string_view name) {
  for (size_t i = 0; i < kCacheStatuses; ++i) {
    if (name == kNames[i]) return static_cast<CacheStatus>(i);
  }
  return absl::nullopt;
}

absl::StatusOr<AnswerParts> SplitAnswer(absl::string_view message) {
  AnswerParts parts;
  CodedInputStream in = Stream(message);
  while (true) {
    const int start = in.CurrentPosition();
    const uint32_t field = in.ReadTag();
    if (field == 0) break;
    if (field == (1 << 3 | 2)) {
      std::string meta;
      if (!WireFormatLite::ReadBytes(&in, &meta) ||
          !ReadTag(meta, &parts.tag)) {
        return absl::DataLossError("the answer's meta cannot be read");
      }
      continue;
    }
    if (!WireFormatLite::SkipField(&in, field)) break;
    parts.body.append(message.data() + start, in.CurrentPosition() - start);
  }
  if (!in.ConsumedEntireMessage()) {
    return absl::DataLossError("the answer is no message");
  }
  return parts;
}

void AnswerReader::Reset(bool sampled) {
  sampled_ = sampled;
  received_ = 0;
  message_.clear();
  http_status_ = 0;
  grpc_status_ = -1;
  grpc_message_.clear();
  cache_status_ = CacheStatus::kNone;
  stored_ = false;
  collapsed_ = false;
}

void AnswerReader::OnHeader(absl::string_view name, absl::string_view value) {
  if (name == ":status") {
    if (!absl::SimpleAtoi(value, &http_status_)) http_status_ = 0;
  } else if (name == "grpc-status") {
    if (!absl::SimpleAtoi(value, &grpc_status_)) grpc_status_ = -1;
  } else if (name == "grpc-message") {
    grpc_message_ = std::string(value);
  } else if (name == "cache-status") {
    cache_status_ = CacheStatus::kOther;
    for (absl::string_view part : absl::StrSplit(value, ';')) {
      part = absl::StripAsciiWhitespace(part);
      if (part == "hit") {
        cache_status_ = CacheStatus::kHit;
      } else if (part == "stored") {
        stored_ = true;
      } else if (part == "collapsed") {
        collapsed_ = true;
      } else if (part.substr(0, 4) == "fwd=") {
        cache_status_ =
            CacheStatusOf(part.substr(4)).value_or(CacheStatus::kOther);
      }
    }
  }
}

void AnswerReader::OnData(absl::string_view data) {
  if (received_ < head_.size()) {
    const size_t n = std::min(data.size(), head_.size() - received_);
    std::memcpy(&head_[received_], data.data(), n);
  }
  received_ += data.size();
  if (sampled_) message_.append(data.data(), data.size());
}

absl::Status AnswerReader::Check(const Expectation& expected,
                                 absl::FunctionRef<std::string()> tag) const {
  if (http_status_ != 200) {
    return absl::UnknownError(absl::StrCat("HTTP status ", http_status_));
  }
  if (grpc_status_ != 0) {
    return absl::UnknownError(
        grpc_status_ < 0
            ? "no grpc-status"
            : absl::StrCat("grpc-status ", grpc_status_, ": ", grpc_message_));
  }
  if (expected.status.has_value() && cache_status_ != *expected.status) {
    return absl::UnknownError(
        absl::StrCat("cache-status ", CacheStatusName(cache_status_),
                     " instead of ", CacheStatusName(*expected.status)));
  }
  if (received_ < kPrefix) {
    return absl::DataLossError(
        absl::StrCat("an answer of ", received_, " bytes"));
  }
  if (head_[0] != 0) return absl::DataLossError("a compressed answer");
  uint32_t announced = 0;
  for (size_t i = 1; i < kPrefix; ++i) {
    announced = announced << 8 | static_cast<unsigned char>(head_[i]);
  }
  if (received_ - kPrefix != announced) {
    return absl::DataLossError(absl::StrCat("an answer of ",
                                            received_ - kPrefix, " bytes, ",
                                            announced, " were announced"));
  }
  if (expected.body.has_value()) {
    absl::Status status = CheckLength(*expected.body);
    if (!status.ok()) return status;
  }
  return sampled_ ? CheckSample(expected, tag()) : absl::OkStatus();
}

// The length, `meta` aside, which has to come first if there is any.
absl::Status AnswerReader::CheckLength(absl::string_view body) const {
  const size_t length = received_ - kPrefix;
  size_t meta = 0;
  const size_t known = std::min(received_, head_.size());
  if (known > kPrefix && head_[kPrefix] == (1 << 3 | 2)) {
    CodedInputStream in =
        Stream(absl::string_view(head_.data(), known).substr(kPrefix + 1));
    uint32_t size = 0;
    if (!in.ReadVarint32(&size)) {
      return absl::DataLossError("the answer's meta cannot be read");
    }
    meta = 1 + in.CurrentPosition() + size;
  }
  if (length != meta + body.size()) {
    return absl::DataLossError(
        absl::StrCat("an answer of ", length, " bytes, ", meta,
                     " of them meta; its body should have ", body.size()));
  }
  return absl::OkStatus();
}

absl::Status AnswerReader::CheckSample(const Expectation& expected,
                                       const std::string& tag) const {
  const auto parts = SplitAnswer(absl::string_view(message_).substr(kPrefix));
  if (!parts.ok()) return parts.status();
  if (expected.body.has_value() && parts->body != *expected.body) {
    return absl::DataLossError("an answer with other bytes than expected");
  }
  const bool check_tag = expected.tags == TagCheck::kAll ||
                         (expected.tags == TagCheck::kHits &&
                          (cache_status_ == CacheStatus::kHit || collapsed_));
  if (check_tag && parts->tag != tag) {
    return absl::DataLossError(absl::StrCat("an answer with tag \"", parts->tag,
                                            "\" to a call with \"", tag, "\""));
  }
  return absl::OkStatus();
}

}  // namespace fncache::bench
