// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/codec.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace fncache::proxy::transport {
namespace {

constexpr int kMostCode = 16;  // UNAUTHENTICATED

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

size_t Count(const http2::Fields& fields, absl::string_view name) {
  size_t count = 0;
  for (const http2::Field field : fields) count += field.name == name ? 1 : 0;
  return count;
}

// The code of a grpc-status: its digits alone.
absl::optional<int> CodeOf(absl::string_view text) {
  int code = 0;
  // SimpleAtoi accepts spaces around the digits, and a sign.
  if (!std::all_of(text.begin(), text.end(), &absl::ascii_isdigit) ||
      !absl::SimpleAtoi(text, &code) || code > kMostCode) {
    return absl::nullopt;
  }
  return code;
}

absl::string_view Last(const http2::Fields& fields, absl::string_view name) {
  absl::string_view last;
  for (const http2::Field field : fields) {
    if (field.name == name) last = field.value;
  }
  return last;
}

// True if all binary values are base64, with or without padding. Several values
// of one name may be joined by commas.
bool CanDecodeAll(const http2::Fields& fields) {
  std::string decoded;
  for (const http2::Field field : fields) {
    if (!absl::EndsWith(field.name, "-bin")) continue;
    for (const absl::string_view value : absl::StrSplit(field.value, ',')) {
      if (!absl::Base64Unescape(value, &decoded)) return false;
    }
  }
  return true;
}

// zlib gets at most 4 KiB of input at a time, because input that makes no
// output may take long: a byte of empty blocks takes 55 ns, in which zlib makes
// 32 bytes of usual output.
constexpr size_t kInputATime = 4 << 10;
constexpr size_t kUsualRatio = 32;

}  // namespace

std::string EncodeStatusText(absl::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c >= 0x20 && c <= 0x7e && c != '%') {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(kHex[byte >> 4]);
    out.push_back(kHex[byte & 15]);
  }
  return out;
}

std::string DecodeStatusText(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(HexDigit(text[i + 1]) * 16 +
                                      HexDigit(text[i + 2])));
      i += 2;
      continue;
    }
    out.push_back(text[i]);
  }
  return out;
}

void AddStatus(const grpc::Status& status, http2::Fields* fields) {
  fields->Add("grpc-status",
              absl::StrCat(static_cast<int>(status.error_code())));
  if (!status.error_message().empty()) {
    fields->Add("grpc-message", EncodeStatusText(status.error_message()));
  }
  if (!status.error_details().empty()) {
    std::string details = absl::Base64Escape(status.error_details());
    // gRPC omits the padding.
    while (!details.empty() && details.back() == '=') details.pop_back();
    fields->Add("grpc-status-details-bin", details);
  }
}

grpc::StatusCode StatusOfHttp(absl::string_view http_status) {
  if (http_status == "400") return grpc::StatusCode::INTERNAL;
  if (http_status == "401") return grpc::StatusCode::UNAUTHENTICATED;
  if (http_status == "403") return grpc::StatusCode::PERMISSION_DENIED;
  if (http_status == "404") return grpc::StatusCode::UNIMPLEMENTED;
  if (http_status == "429" || http_status == "502" || http_status == "503" ||
      http_status == "504") {
    return grpc::StatusCode::UNAVAILABLE;
  }
  return grpc::StatusCode::UNKNOWN;
}

bool IsGrpc(absl::string_view content_type) {
  if (!absl::ConsumePrefix(&content_type, "application/grpc")) return false;
  return content_type.empty() || content_type[0] == '+' ||
         content_type[0] == ';';
}

bool IsGrpcProto(absl::string_view content_type) {
  if (!absl::ConsumePrefix(&content_type, "application/grpc")) return false;
  absl::ConsumePrefix(&content_type, "+proto");
  return content_type.empty() || content_type[0] == ';';
}

bool CanBeKeyed(const http2::Fields& request) {
  return Count(request, "content-type") == 1 &&
         IsGrpcProto(request.Find("content-type")) &&
         Count(request, "grpc-encoding") <= 1;
}

absl::string_view DoubtOfOk(const http2::Fields& headers,
                            const http2::Fields& trailers) {
  if (headers.Find(":status") != "200") return "its HTTP status is not 200";
  if (Count(headers, "content-type") != 1 ||
      !IsGrpcProto(headers.Find("content-type"))) {
    return "its content-type is not gRPC's for protobuf";
  }
  if (Count(headers, "grpc-encoding") > 1) return "it has two encodings";
  if (headers.Has("grpc-status")) return "its headers have a status";
  if (Count(trailers, "grpc-status") != 1) return "it has not one status";
  if (trailers.Find("grpc-status") != "0") return "its status is not 0";
  if (trailers.Has("grpc-status-details-bin")) {
    return "its status has the details of an error";
  }
  if (!CanDecodeAll(headers) || !CanDecodeAll(trailers)) {
    return "a binary field is not base64";
  }
  return "";
}

bool SaysOneStatus(const http2::Fields& trailers) {
  return Count(trailers, "grpc-status") == 1 &&
         CodeOf(trailers.Find("grpc-status")).has_value();
}

grpc::Status ReadStatus(const http2::Fields& fields,
                        absl::string_view http_status) {
  const absl::string_view text = Last(fields, "grpc-status");
  if (text.empty()) {
    return grpc::Status(
        StatusOfHttp(http_status),
        http_status == "200" || http_status.empty()
            ? "the function's answer ended without a status"
            : absl::StrCat("the function answered with HTTP status ",
                           http_status));
  }
  const int code =
      CodeOf(text).value_or(static_cast<int>(grpc::StatusCode::UNKNOWN));
  std::string details;
  const absl::string_view packed = Last(fields, "grpc-status-details-bin");
  if (!packed.empty() && !absl::Base64Unescape(packed, &details)) {
    details.clear();
  }
  return grpc::Status(static_cast<grpc::StatusCode>(code),
                      DecodeStatusText(Last(fields, "grpc-message")), details);
}

struct Unpacker::Stream {
  ~Stream() { inflateEnd(&z); }
  z_stream z = {};
};

absl::StatusOr<std::unique_ptr<Unpacker>> Unpacker::Create(
    absl::string_view encoding, absl::string_view bytes) {
  // zlib's manual, windowBits: 15, plus 16 for gzip.
  int window = 0;
  if (encoding == "gzip") {
    window = 15 + 16;
  } else if (encoding == "deflate") {
    window = 15;
  } else {
    return absl::UnimplementedError(
        absl::StrCat("messages cannot be decompressed from ", encoding));
  }
  auto stream = std::make_unique<Stream>();
  if (inflateInit2(&stream->z, window) != Z_OK) {
    return absl::UnavailableError("no memory to decompress a message");
  }
  return std::unique_ptr<Unpacker>(new Unpacker(std::move(stream), bytes));
}

Unpacker::Unpacker(std::unique_ptr<Stream> stream, absl::string_view bytes)
    : stream_(std::move(stream)), rest_(bytes) {}

Unpacker::~Unpacker() = default;

void Unpacker::StopKeeping() {
  keeps_ = false;
  out_.Clear();
}

absl::Status Unpacker::Step(size_t step, size_t limit) {
  std::array<char, 16 << 10> piece;
  const size_t before = worked_;
  while (worked_ - before < step && !done_) {
    z_stream& z = stream_->z;
    if (z.avail_in == 0) {
      // zlib only reads the input; its interface is older than const.
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
      z.avail_in = static_cast<uInt>(std::min(rest_.size(), kInputATime));
      rest_.remove_prefix(z.avail_in);
    }
    const size_t input = z.avail_in;
    z.next_out = reinterpret_cast<Bytef*>(piece.data());
    z.avail_out = piece.size();
    const int result = inflate(&z, Z_NO_FLUSH);
    const size_t now = piece.size() - z.avail_out;
    worked_ += std::max(now, kUsualRatio * (input - z.avail_in));
    if (result != Z_OK && result != Z_STREAM_END) {
      return absl::DataLossError("a message cannot be decompressed");
    }
    if (now > limit - size_) {
      return absl::ResourceExhaustedError(
          "a decompressed message is too large");
    }
    size_ += now;
    if (keeps_) out_.Append({piece.data(), now});
    if (result != Z_STREAM_END) continue;
    done_ = true;
    if (z.avail_in > 0 || !rest_.empty()) {
      return absl::DataLossError("data follows a compressed message");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<http2::Slice> Unpack(absl::string_view encoding,
                                    absl::string_view bytes, size_t limit) {
  auto unpacker = Unpacker::Create(encoding, bytes);
  if (!unpacker.ok()) return unpacker.status();
  absl::Status status = (*unpacker)->Step(SIZE_MAX, limit);
  if (!status.ok()) return status;
  return (*unpacker)->Release();
}

}  // namespace fncache::proxy::transport
