// SPDX-License-Identifier: Apache-2.0
#include "bench/answer_check.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "proto/function_v1.pb.h"

namespace fncache::bench {
namespace {

constexpr size_t kPrefix = 5;  // of a gRPC message: flag and length

}  // namespace

absl::StatusOr<size_t> MetaBytes(absl::string_view message) {
  if (message.empty() || message[0] != (1 << 3 | 2)) return 0;
  message.remove_prefix(1);
  google::protobuf::io::CodedInputStream in(
      reinterpret_cast<const uint8_t*>(message.data()),
      static_cast<int>(message.size()));
  uint32_t size = 0;
  if (!in.ReadVarint32(&size)) {
    return absl::DataLossError("the answer's meta cannot be read");
  }
  return 1 + in.CurrentPosition() + size_t{size};
}

void AnswerCheck::Reset(bool sampled) {
  sampled_ = sampled;
  received_ = 0;
  message_.clear();
}

void AnswerCheck::OnData(absl::string_view data) {
  if (received_ < head_.size()) {
    const size_t n = std::min(data.size(), head_.size() - received_);
    std::memcpy(&head_[received_], data.data(), n);
  }
  received_ += data.size();
  if (sampled_) message_.append(data.data(), data.size());
}

absl::Status AnswerCheck::Check(const absl::optional<std::string>& body,
                                const absl::optional<std::string>& tag) const {
  if (received_ < kPrefix) {
    return absl::DataLossError(
        absl::StrCat("an answer of ", received_, " bytes"));
  }
  if (head_[0] != 0) return absl::DataLossError("a compressed answer");
  size_t announced = 0;
  for (size_t i = 1; i < kPrefix; ++i) {
    announced = announced << 8 | static_cast<unsigned char>(head_[i]);
  }
  const size_t length = received_ - kPrefix;
  if (length != announced) {
    return absl::DataLossError(absl::StrCat("an answer of ", length, " bytes, ",
                                            announced, " were announced"));
  }
  const absl::string_view head(head_.data(), std::min(received_, head_.size()));
  const auto meta = MetaBytes(head.substr(kPrefix));
  if (!meta.ok()) return meta.status();
  if (body.has_value() && length != *meta + body->size()) {
    return absl::DataLossError(
        absl::StrCat("an answer of ", length, " bytes, ", *meta,
                     " of them meta; its body should have ", body->size()));
  }
  if (!sampled_) return absl::OkStatus();
  absl::string_view message = absl::string_view(message_).substr(kPrefix);
  if (body.has_value()) {
    if (message.substr(*meta) != *body) {
      return absl::DataLossError("an answer with other bytes than expected");
    }
    message = message.substr(0, *meta);
  }
  apiextensions::fn::proto::v1::RunFunctionResponse answer;
  if (!answer.ParseFromArray(message.data(),
                             static_cast<int>(message.size()))) {
    return absl::DataLossError("the answer is no message");
  }
  if (tag.has_value() && answer.meta().tag() != *tag) {
    return absl::DataLossError(
        absl::StrCat("an answer with tag \"", answer.meta().tag(),
                     "\" to a call with \"", *tag, "\""));
  }
  return absl::OkStatus();
}

}  // namespace fncache::bench
