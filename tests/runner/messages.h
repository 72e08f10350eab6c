// SPDX-License-Identifier: Apache-2.0
// Messages for tests, written as JSON.
#ifndef FNCACHE_TESTS_RUNNER_MESSAGES_H_
#define FNCACHE_TESTS_RUNNER_MESSAGES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace fncache::runner {

template <typename Message>
Message FromJson(absl::string_view json) {
  Message message;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &message);
  EXPECT_TRUE(status.ok()) << status << "\n" << json;
  return message;
}

template <typename Message>
std::string ToJson(const Message& message) {
  std::string json;
  EXPECT_TRUE(google::protobuf::util::MessageToJsonString(message, &json).ok());
  return json;
}

template <typename Message>
void ExpectJson(const Message& message, absl::string_view json) {
  const Message wanted = FromJson<Message>(json);
  EXPECT_TRUE(
      google::protobuf::util::MessageDifferencer::Equals(message, wanted))
      << "is:     " << ToJson(message) << "\nwanted: " << ToJson(wanted);
}

}  // namespace fncache::runner

#endif  // FNCACHE_TESTS_RUNNER_MESSAGES_H_
