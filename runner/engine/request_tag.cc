#include "runner/engine/request_tag.h"

#include "common/sha256.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "runner/engine/pipeline.h"

namespace fncache::runner::engine {

namespace fn = apiextensions::fn::proto::v1;

std::string DeterministicBytes(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&out);
  out.Trim();
  return bytes;
}

// `observed` is the first field of a request without `meta`, and fields are
// encoded in the order of their numbers: its bytes begin what is hashed.
RequestTagger::RequestTagger(const fn::RunFunctionRequest& observed)
    : observed_(std::make_unique<Sha256>()) {
  observed_->Add(DeterministicBytes(observed));
}

RequestTagger::~RequestTagger() = default;

std::string RequestTagger::Tag(fn::RunFunctionRequest* request) const {
  Sha256 hash = *observed_;
  std::unique_ptr<fn::State> observed(request->release_observed());
  hash.Add(DeterministicBytes(*request));
  request->set_allocated_observed(observed.release());
  return hash.Hex();
}

std::string RequestTag(const fn::RunFunctionRequest& request) {
  Sha256 hash;
  if (request.has_meta()) {
    fn::RunFunctionRequest untagged = request;
    untagged.clear_meta();
    hash.Add(DeterministicBytes(untagged));
  } else {
    hash.Add(DeterministicBytes(request));
  }
  return hash.Hex();
}

}  // namespace fncache::runner::engine
