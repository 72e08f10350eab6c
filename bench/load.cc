// SPDX-License-Identifier: Apache-2.0
// `load`: the benchmark's load client. See `load --help`.
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/answer_check.h"
#include "bench/load_client.h"
#include "bench/load_options.h"
#include "bench/load_report.h"
#include "bench/load_workload.h"
#include "bench/random.h"
#include "bench/request_encoding.h"
#include "bench/request_generator.h"
#include "common/file.h"
#include "proto/function_v1.pb.h"

namespace fncache::bench {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr size_t kMaxResponse = size_t{64} << 20;

int Complain(absl::string_view message, int code) {
  std::fprintf(stderr, "load: %s\n", std::string(message).c_str());
  return code;
}

absl::Status WriteFile(const std::string& path, const std::string& bytes) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  }
  const size_t written = std::fwrite(bytes.data(), 1, bytes.size(), file);
  if (std::fclose(file) != 0 || written != bytes.size()) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  }
  return absl::OkStatus();
}

absl::Status WriteFiles(const LoadCommand& command) {
  absl::Status status;
  if (!command.write_request.empty()) {
    WorkloadOptions one = command.workload;
    one.orders = 1;
    Random random(one.seed);
    status = WriteFile(command.write_request,
                       Workload(one).Framed(command.load.first_key, &random));
  }
  if (!command.write_response.empty()) {
    status.Update(WriteFile(
        command.write_response,
        EncodeShuffled(
            MakeAnswer(command.answer, command.workload.seed, command.ttl),
            command.workload.seed)));
  }
  return status;
}

absl::Status ReadExpected(const std::string& path, Expectation* expected) {
  const auto message = ReadSmallFile(path, kMaxResponse);
  if (!message.ok()) return message.status();
  auto parts = SplitAnswer(*message);
  if (!parts.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", parts.status().message()));
  }
  expected->body = std::move(parts->body);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  auto command = ParseLoadCommand(argc, argv);
  if (!command.ok()) return Complain(command.status().message(), kUsage);
  if (!command->help.empty()) {
    std::fputs(command->help.c_str(), stdout);
    return 0;
  }
  absl::Status status = WriteFiles(*command);
  if (!status.ok()) return Complain(status.message(), kFailed);
  if (command->load.targets.empty()) return 0;
  if (!command->expect_response.empty()) {
    status = ReadExpected(command->expect_response, &command->load.expected);
    if (!status.ok()) return Complain(status.message(), kFailed);
  }
  const Workload workload(command->workload);
  const auto result = RunLoad(command->load, workload);
  if (!result.ok()) return Complain(result.status().message(), kFailed);
  std::printf("%s\n", LoadReport(command->load, *result).c_str());
  for (const auto& [message, count] : result->messages) {
    Complain(absl::StrCat(count, " of ", result->begun, " calls: ", message),
             kFailed);
  }
  if (result->errors > 0) return kFailed;
  if (result->calls == 0) {
    return Complain("no call ended in the measured window", kFailed);
  }
  return 0;
}

}  // namespace
}  // namespace fncache::bench

int main(int argc, char** argv) { return fncache::bench::Main(argc, argv); }
