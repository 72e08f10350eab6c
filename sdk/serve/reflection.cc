// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/reflection.h"

#include <cstddef>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/descriptor_database.h"
#include "sdk/serve/wire.h"

namespace fncache::sdk::serve {

// Generated (CMakeLists.txt): a FileDescriptorSet.
extern const unsigned char kDescriptors[];
extern const size_t kDescriptorsSize;

namespace {

using google::protobuf::FileDescriptorProto;
using google::protobuf::SimpleDescriptorDatabase;

// Fields of ServerReflectionRequest.
enum RequestField : uint32_t {
  kFileByFilename = 3,
  kFileContainingSymbol = 4,
  kListServices = 7,
};
// Fields of ServerReflectionResponse.
enum ResponseField : uint32_t {
  kOriginalRequest = 2,
  kFileDescriptors = 4,
  kServices = 6,
  kError = 7,
};

struct Files {
  Files() {
    google::protobuf::FileDescriptorSet set;
    set.ParseFromArray(kDescriptors, static_cast<int>(kDescriptorsSize));
    for (const FileDescriptorProto& file : set.file()) {
      database.Add(file);
      for (const auto& service : file.service()) {
        std::string one;
        AppendText(1, absl::StrCat(file.package(), ".", service.name()), &one);
        AppendText(1, one, &services);
      }
    }
  }

  Mutex mutex;
  SimpleDescriptorDatabase database ABSL_GUARDED_BY(mutex);
  std::string services;  // ListServiceResponse
};

// Appends the file and all that it imports.
void AppendFile(SimpleDescriptorDatabase* database,
                const FileDescriptorProto& file, std::set<std::string>* seen,
                std::string* out) {
  if (!seen->insert(file.name()).second) return;
  AppendText(1, file.SerializeAsString(), out);
  for (const std::string& import : file.dependency()) {
    FileDescriptorProto found;
    if (database->FindFileByName(import, &found)) {
      AppendFile(database, found, seen, out);
    }
  }
}

}  // namespace

std::string Reflect(absl::string_view request) {
  // Leaked: gRPC's threads may outlive main. Made with the first request.
  static auto* const files = new Files;
  std::string response;
  AppendText(kOriginalRequest, request, &response);
  // The last field of the oneof counts.
  uint32_t field = 0;
  std::string name;
  ForEachText(request, [&](uint32_t number, absl::string_view text) {
    if (number < kFileByFilename) return;
    field = number;
    name = std::string(text);
  });
  if (field == kListServices) {
    AppendText(kServices, files->services, &response);
    return response;
  }
  FileDescriptorProto file;
  MutexLock lock(&files->mutex);
  const bool found = (field == kFileByFilename &&
                      files->database.FindFileByName(name, &file)) ||
                     (field == kFileContainingSymbol &&
                      files->database.FindFileContainingSymbol(name, &file));
  std::string body;
  if (found) {
    std::set<std::string> seen;
    AppendFile(&files->database, file, &seen, &body);
    AppendText(kFileDescriptors, body, &response);
  } else {
    AppendVarint(1, static_cast<uint64_t>(absl::StatusCode::kNotFound), &body);
    AppendText(2, "not known", &body);
    AppendText(kError, body, &response);
  }
  return response;
}

}  // namespace fncache::sdk::serve
