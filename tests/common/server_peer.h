// SPDX-License-Identifier: Apache-2.0
// ServerPeer: a server's end of a connection, libnghttp2's, driven by hand: the
// client's bytes are what it says that they must be, and it may do whatever
// HTTP/2 allows.
#ifndef FNCACHE_TESTS_COMMON_SERVER_PEER_H_
#define FNCACHE_TESTS_COMMON_SERVER_PEER_H_

#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace fncache::testing {

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct ReceivedRequest {
  Pairs headers;
  std::string body;
};

class ServerPeer {
 public:
  struct Options {
    std::vector<nghttp2_settings_entry> settings;
    size_t padding = 0;
    // More response headers.
    Pairs headers;
    // Frames as large as the client takes.
    bool large_frames = false;
    // It gives no window back.
    bool takes_nothing = false;
  };

  // Takes over `fd`, a socket that does not block.
  ServerPeer(int fd, Options options) : fd_(fd), options_(std::move(options)) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(
        callbacks,
        [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
           size_t name_size, const uint8_t* value, size_t value_size,
           uint8_t flags, void* self) {
          if ((flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0) {
            static_cast<ServerPeer*>(self)->never_indexed.emplace_back(
                reinterpret_cast<const char*>(name), name_size);
          }
          static_cast<ServerPeer*>(self)
              ->requests[frame->hd.stream_id]
              .headers.emplace_back(
                  std::string(reinterpret_cast<const char*>(name), name_size),
                  std::string(reinterpret_cast<const char*>(value),
                              value_size));
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks, [](nghttp2_session*, uint8_t, int32_t id,
                      const uint8_t* data, size_t size, void* self) {
          static_cast<ServerPeer*>(self)->requests[id].body.append(
              reinterpret_cast<const char*>(data), size);
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(
        callbacks,
        [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
          static_cast<ServerPeer*>(self)->OnFrame(*frame);
          return 0;
        });
    nghttp2_session_callbacks_set_select_padding_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, size_t max,
                      void* self) {
          return static_cast<ssize_t>(std::min(
              max, frame->hd.length +
                       static_cast<ServerPeer*>(self)->options_.padding));
        });
    if (options_.large_frames) {
      nghttp2_session_callbacks_set_data_source_read_length_callback(
          callbacks, [](nghttp2_session*, uint8_t, int32_t, int32_t, int32_t,
                        uint32_t max_frame_size, void*) {
            return static_cast<ssize_t>(max_frame_size);
          });
    }
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(
        callbacks,
        [](nghttp2_session*, const nghttp2_frame*, int code, void* self) {
          static_cast<ServerPeer*>(self)->complaints.emplace_back(
              nghttp2_strerror(code));
          return 0;
        });
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    nghttp2_option_set_no_auto_window_update(option, options_.takes_nothing);
    nghttp2_session_server_new2(&session, callbacks, this, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE,
                            options_.settings.data(), options_.settings.size());
  }
  ~ServerPeer() {
    nghttp2_session_del(session);
    close(fd_);
  }
  ServerPeer(const ServerPeer&) = delete;
  ServerPeer& operator=(const ServerPeer&) = delete;

  // Sends a header block that is not the answer yet: `status` is a 1xx.
  void Interim(int32_t id, const std::string& status, const Pairs& more) {
    std::vector<nghttp2_nv> headers = {Header(":status", status)};
    for (const auto& [name, value] : more) {
      headers.push_back(Header(name, value));
    }
    ASSERT_EQ(nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, id, nullptr,
                                     headers.data(), headers.size(), nullptr),
              0);
  }

  // Answers with headers, the body and trailers.
  void Answer(int32_t id, const std::string& body) {
    bodies_.push_back({body, 0});
    nghttp2_data_provider provider;
    provider.source.ptr = &bodies_.back();
    provider.read_callback = [](nghttp2_session* session, int32_t stream,
                                uint8_t* to, size_t size, uint32_t* flags,
                                nghttp2_data_source* source, void* self) {
      auto* const left =
          static_cast<std::pair<std::string, size_t>*>(source->ptr);
      const size_t n = std::min(size, left->first.size() - left->second);
      std::copy_n(left->first.data() + left->second, n, to);
      left->second += n;
      auto& largest = static_cast<ServerPeer*>(self)->largest_sent;
      largest = std::max(largest, n);
      if (left->second == left->first.size()) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_nv trailer = Header("grpc-status", "0");
        nghttp2_submit_trailer(session, stream, &trailer, 1);
      }
      return static_cast<ssize_t>(n);
    };
    std::vector<nghttp2_nv> headers = {
        Header(":status", "200"), Header("content-type", "application/grpc")};
    for (const auto& [name, value] : options_.headers) {
      headers.push_back(Header(name, value));
    }
    ASSERT_EQ(nghttp2_submit_response(session, id, headers.data(),
                                      headers.size(), &provider),
              0);
  }

  // Reads and writes what there is; whether anything moved.
  bool Turn() {
    bool moved = false;
    char buffer[65536];
    ssize_t size = 0;
    while ((size = read(fd_, buffer, sizeof(buffer))) > 0) {
      moved = true;
      const ssize_t taken = nghttp2_session_mem_recv(
          session, reinterpret_cast<const uint8_t*>(buffer), size);
      if (taken != size) {
        complaints.emplace_back("mem_recv");
        return false;
      }
    }
    while (true) {
      if (out_.empty()) {
        const uint8_t* data = nullptr;
        const ssize_t n = nghttp2_session_mem_send(session, &data);
        if (n <= 0) break;
        out_.assign(reinterpret_cast<const char*>(data), n);
      }
      const ssize_t written = send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
      if (written <= 0) break;
      out_.erase(0, written);
      moved = true;
    }
    return moved;
  }

  nghttp2_session* session = nullptr;
  std::map<int32_t, ReceivedRequest> requests;
  std::vector<int32_t> complete;  // streams whose request is complete
  std::vector<std::pair<int32_t, uint32_t>> resets;
  std::vector<std::string> complaints;
  std::vector<std::string> never_indexed;  // names of such fields
  int pings = 0;
  size_t largest_data = 0;  // of the frames that came
  size_t largest_sent = 0;
  // Called with every complete request; by default it is answered in kind.
  std::function<void(int32_t)> on_request = [this](int32_t id) {
    Answer(id, requests[id].body);
  };

 private:
  // Refers to both.
  static nghttp2_nv Header(absl::string_view name, absl::string_view value) {
    return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
            reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())),
            name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
  }

  void OnFrame(const nghttp2_frame& frame) {
    const bool ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame.hd.type == NGHTTP2_DATA) {
      largest_data = std::max(largest_data, frame.hd.length);
    }
    if ((frame.hd.type == NGHTTP2_DATA || frame.hd.type == NGHTTP2_HEADERS) &&
        ends) {
      complete.push_back(frame.hd.stream_id);
      on_request(frame.hd.stream_id);
    } else if (frame.hd.type == NGHTTP2_RST_STREAM) {
      resets.emplace_back(frame.hd.stream_id, frame.rst_stream.error_code);
    } else if (frame.hd.type == NGHTTP2_PING &&
               (frame.hd.flags & NGHTTP2_FLAG_ACK) != 0) {
      ++pings;
    }
  }

  const int fd_;
  const Options options_;
  std::deque<std::pair<std::string, size_t>> bodies_;
  std::string out_;
};

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_SERVER_PEER_H_
