// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/services.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"
#include "sdk/serve/reflection.h"
#include "sdk/serve/wire.h"
#include "tests/sdk/serve/serving.h"

namespace fncache::sdk::serve {
namespace {

using ::testing::ElementsAre;

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";
constexpr char kUnknown[] = "\x08\x03";

class ServicesTest : public ::testing::Test, public Serving {
 protected:
  static std::string Named(const std::string& service) {
    std::string message;
    AppendText(1, service, &message);
    return message;
  }
  static std::string Text(const grpc::ByteBuffer& bytes) {
    std::vector<grpc::Slice> slices;
    std::string text;
    EXPECT_TRUE(bytes.Dump(&slices).ok());
    for (const grpc::Slice& one : slices) {
      text.append(reinterpret_cast<const char*>(one.begin()), one.size());
    }
    return text;
  }
};

// One stream of bytes.
class Stream {
 public:
  Stream(const std::shared_ptr<grpc::Channel>& channel,
         const std::string& method)
      : stub_(channel), stream_(stub_.PrepareCall(&context_, method, &queue_)) {
    stream_->StartCall(this);
    EXPECT_TRUE(Next());
  }
  void Write(const std::string& message) {
    const grpc::Slice slice(message);
    stream_->Write(grpc::ByteBuffer(&slice, 1), this);
    EXPECT_TRUE(Next());
  }
  bool Read(std::string* message) {
    grpc::ByteBuffer bytes;
    stream_->Read(&bytes, this);
    if (!Next()) return false;
    std::vector<grpc::Slice> slices;
    message->clear();
    if (!bytes.Dump(&slices).ok()) return false;
    for (const grpc::Slice& one : slices) {
      message->append(reinterpret_cast<const char*>(one.begin()), one.size());
    }
    return true;
  }
  void Close() {
    stream_->WritesDone(this);
    Next();
  }
  grpc::Status Finish() {
    grpc::Status status;
    stream_->Finish(&status, this);
    Next();
    return status;
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

TEST_F(ServicesTest, HealthKnowsTheServices) {
  Start();
  for (const char* service :
       {"", "apiextensions.fn.proto.v1.FunctionRunnerService",
        "apiextensions.fn.proto.v1beta1.FunctionRunnerService"}) {
    std::string message = Named(service);
    const grpc::Status status = CallBytes(kCheck, &message);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(message, kServing);
  }
  std::string other = Named("other");
  EXPECT_EQ(CallBytes(kCheck, &other).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServicesTest, WatcherLearnsThatTheServerStops) {
  Start();
  Stream watch(channel, "/grpc.health.v1.Health/Watch");
  watch.Write(Named(""));
  std::string message;
  ASSERT_TRUE(watch.Read(&message));
  EXPECT_EQ(message, kServing);
  Stream unknown(channel, "/grpc.health.v1.Health/Watch");
  unknown.Write(Named("other"));
  ASSERT_TRUE(unknown.Read(&message));
  EXPECT_EQ(message, kUnknown);
  // Neither delays the stop, which would take an hour.
  std::thread stops([this] { server->Stop(absl::Hours(1)); });
  ASSERT_TRUE(watch.Read(&message));
  EXPECT_EQ(message, kNotServing);
  EXPECT_EQ(watch.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  stops.join();
}

TEST_F(ServicesTest, IdleReflectionDoesNotDelayTheStop) {
  Start();
  Stream idle(channel,
              "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
  std::string list, message;
  AppendText(7, "", &list);
  idle.Write(list);
  ASSERT_TRUE(idle.Read(&message));
  server->Stop(absl::Hours(1));
  EXPECT_EQ(idle.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ServicesTest, ReflectionListsAndDescribesTheServices) {
  Start();
  for (const char* version : {"v1", "v1alpha"}) {
    Stream stream(channel, absl::StrCat("/grpc.reflection.", version,
                                        ".ServerReflection/"
                                        "ServerReflectionInfo"));
    std::string request, response;
    AppendText(7, "*", &request);
    stream.Write(request);
    ASSERT_TRUE(stream.Read(&response));
    EXPECT_EQ(LastText(response, 2), request);
    std::vector<std::string> services;
    ForEachText(LastText(response, 6), [&](uint32_t, absl::string_view one) {
      services.emplace_back(LastText(one, 1));
    });
    EXPECT_THAT(
        services,
        ElementsAre("apiextensions.fn.proto.v1.FunctionRunnerService",
                    "apiextensions.fn.proto.v1beta1.FunctionRunnerService",
                    "grpc.health.v1.Health"));

    // A client builds each service from what it gets.
    for (const std::string& service : services) {
      request.clear();
      AppendText(4, service, &request);
      stream.Write(request);
      ASSERT_TRUE(stream.Read(&response));
      google::protobuf::DescriptorPool pool;
      std::vector<google::protobuf::FileDescriptorProto> files;
      ForEachText(LastText(response, 4), [&](uint32_t, absl::string_view one) {
        files.emplace_back();
        EXPECT_TRUE(files.back().ParseFromString(std::string(one)));
      });
      // The file itself comes first, and what it imports later.
      for (auto file = files.rbegin(); file != files.rend(); ++file) {
        EXPECT_NE(pool.BuildFile(*file), nullptr) << file->name();
      }
      const auto* const described = pool.FindServiceByName(service);
      ASSERT_NE(described, nullptr);
      EXPECT_NE(described->FindMethodByName(service == "grpc.health.v1.Health"
                                                ? "Watch"
                                                : "RunFunction"),
                nullptr);
    }
    stream.Close();
    EXPECT_TRUE(stream.Finish().ok());
  }
}

TEST_F(ServicesTest, ReflectionFindsFilesAndMessages) {
  for (const auto& [field, name] :
       {std::pair<uint32_t, std::string>{3, "proto/function_v1beta1.proto"},
        {4, "apiextensions.fn.proto.v1beta1.RunFunctionRequest"},
        {4, "apiextensions.fn.proto.v1.State.ResourcesEntry"},
        {4, "grpc.health.v1.HealthCheckResponse"},
        {3, "google/protobuf/struct.proto"}}) {
    std::string request;
    AppendText(field, name, &request);
    EXPECT_NE(LastText(Reflect(request), 4), "") << name;
  }
  for (const auto& [field, name] :
       {std::pair<uint32_t, std::string>{3, "other.proto"},
        {4, "apiextensions.fn.proto.v2"},
        {6, "apiextensions.fn.proto.v1.State"},
        {4, ""}}) {
    std::string request;
    AppendText(field, name, &request);
    EXPECT_EQ(LastText(Reflect(request), 4), "") << name;
    EXPECT_EQ(LastText(LastText(Reflect(request), 7), 2), "not known");
  }
  EXPECT_EQ(LastText(LastText(Reflect("\xff\xff"), 7), 2), "not known");
}

}  // namespace
}  // namespace fncache::sdk::serve
