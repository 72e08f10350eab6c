// SPDX-License-Identifier: Apache-2.0
#include "runner/function/recordings.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cache/key/reencode.h"
#include "common/file.h"
#include "common/utf8.h"
#include "fncache/function/raw.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "runner/client/parse.h"
#include "sdk/compose/call.h"
#include "text/deterministic_bytes.h"

namespace fncache::runner::function {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kRequestEnd = ".req.bin";
constexpr absl::string_view kResponseEnd = ".rsp.bin";
constexpr size_t kMaxPathsShown = 20;
// protobuf cannot parse a larger message.
constexpr size_t kMaxMessageBytes = std::numeric_limits<int32_t>::max();

absl::Status ReadMessage(const std::string& file,
                         google::protobuf::MessageLite* message) {
  const auto bytes = ReadSmallFile(file, kMaxMessageBytes);
  if (!bytes.ok()) return bytes.status();
  google::protobuf::io::ArrayInputStream stream(
      bytes->data(), static_cast<int>(bytes->size()));
  if (!client::ParseNested(&stream, message)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": is not a ", message->GetTypeName()));
  }
  return absl::OkStatus();
}

// Sorted, so that runs do not differ.
absl::StatusOr<std::vector<std::string>> RequestFiles(
    const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error);
  for (; !error && at != fs::recursive_directory_iterator();
       at.increment(error)) {
    const std::string file = at->path().string();
    if (absl::EndsWith(file, kRequestEnd)) files.push_back(file);
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat(folder, ": ", error.message()));
  }
  if (files.empty()) {
    return absl::NotFoundError(
        absl::StrCat(folder, ": no *", kRequestEnd, " below it"));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Recordings::Recordings(cache::key::MaskSet masks,
                       absl::optional<absl::Duration> ttl)
    : masks_(std::move(masks)), ttl_(ttl) {}

absl::StatusOr<std::unique_ptr<Recordings>> Recordings::Load(
    const std::vector<std::string>& folders, const cache::key::MaskSet& masks,
    absl::optional<absl::Duration> ttl) {
  std::unique_ptr<Recordings> recordings(new Recordings(masks, ttl));
  for (const std::string& folder : folders) {
    const auto files = RequestFiles(folder);
    if (!files.ok()) return files.status();
    for (const std::string& file : *files) {
      const absl::Status status = recordings->Add(file);
      if (!status.ok()) return status;
    }
  }
  return recordings;
}

absl::Status Recordings::Add(const std::string& request_file) {
  Recording recording;
  recording.file = request_file;
  RunFunctionRequest request;
  absl::Status status = ReadMessage(request_file, &request);
  if (!status.ok()) return status;
  const std::string response_file =
      absl::StrCat(absl::string_view(request_file)
                       .substr(0, request_file.size() - kRequestEnd.size()),
                   kResponseEnd);
  status = ReadMessage(response_file, &recording.response);
  if (!status.ok()) return status;
  if (recording.response.has_meta()) {
    recording.response.mutable_meta()->clear_tag();
  }
  recording.comparable_response = text::DeterministicBytes(recording.response);

  cache::key::ClearMasked(masks_, &request);
  cache::key::OrderUnknownFields(&request);
  const auto [at, added] = by_request_.emplace(
      text::DeterministicBytes(request), recordings_.size());
  if (added) {
    recording.request = Flatten(request);
    recordings_.push_back(std::move(recording));
    return absl::OkStatus();
  }
  const Recording& other = recordings_[at->second];
  if (other.comparable_response == recording.comparable_response) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      other.file, " and ", request_file,
      ": equal requests (tag and masks apart) with different responses:\n",
      DescribeDifferences(Flatten(other.response), Flatten(recording.response),
                          kMaxPathsShown)));
}

::fncache::function::Function Recordings::Function() const {
  return [this](::fncache::function::Context& ctx) {
    sdk::Call* const call = ctx.call();
    const std::string_view request = ::fncache::function::RawRequest(ctx);
    const auto found = Find({request.data(), request.size()});
    if (!found.ok()) {
      call->failed = found.status();
      return;
    }
    RunFunctionResponse response = **found;
    if (ttl_.has_value()) response.mutable_meta()->clear_ttl();
    call->Answer(response.SerializeAsString());
    if (!ttl_.has_value()) return;
    call->no_ttl = false;
    ctx.ttl(*ttl_);
  };
}

absl::StatusOr<const RunFunctionResponse*> Recordings::Find(
    absl::string_view request) const {
  google::protobuf::io::ArrayInputStream stream(
      request.data(), static_cast<int>(request.size()));
  RunFunctionRequest comparable;
  if (!client::ParseNested(&stream, &comparable)) {
    return absl::InternalError("the request is not a RunFunctionRequest");
  }
  cache::key::ClearMasked(masks_, &comparable);
  cache::key::OrderUnknownFields(&comparable);
  const auto found = by_request_.find(text::DeterministicBytes(comparable));
  if (found == by_request_.end()) return NoneEquals(comparable);
  return &recordings_[found->second].response;
}

absl::Status Recordings::NoneEquals(
    const RunFunctionRequest& comparable) const {
  const FlatMessage sent = Flatten(comparable);
  const Recording* nearest = nullptr;
  size_t fewest = 0;
  for (const Recording& recording : recordings_) {
    const size_t count = CountDifferences(recording.request, sent);
    if (nearest == nullptr || count < fewest) {
      nearest = &recording;
      fewest = count;
    }
  }
  const std::string summary =
      absl::StrCat("no recording equals the request; the nearest is ",
                   Printable(nearest->file), " with ", fewest,
                   fewest == 1 ? " difference" : " differences");
  const std::string text =
      absl::StrCat(summary, "\n",
                   DescribeDifferences(nearest->request, sent, kMaxPathsShown));
  // One write: calls at once do not mix their lines.
  std::fwrite(text.data(), 1, text.size(), stderr);
  return absl::FailedPreconditionError(summary);
}

}  // namespace fncache::runner::function
