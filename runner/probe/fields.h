// SPDX-License-Identifier: Apache-2.0
// RequestFields: the fields of a few requests that a mask may hide, and the
// requests with some of them left out or altered.
//
// A field is a value, an object or a list that one mask can spell without names
// of our own. The elements of a list are one field, since a mask has no
// indices. So a list of three conditions makes the fields `conditions` (the
// list, its count), `conditions.*` and `conditions.*.type`.
//
// Fields that no request has are included where additions.h names them; they
// are added. So are likely values of fields that are there.
//
// Immutable; thread-safe.
#ifndef FNCACHE_RUNNER_PROBE_FIELDS_H_
#define FNCACHE_RUNNER_PROBE_FIELDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/function_v1_fwd.h"
#include "runner/probe/additions.h"

namespace fncache::runner::probe {

struct Field {
  std::string mask;  // as masks spell it: `*` for the elements of lists
  // One place where it is, as insight/request spells paths: `[0]`.
  std::string path;
  int parent = -1;  // index of the object or list that it is in; -1 none
  // The fields below it are those behind it up to this one.
  int end = 0;
  // An object or list somewhere, so that something may be added to it.
  bool container = false;
  // A text, number or boolean somewhere.
  bool scalar = false;
  bool boolean = false;  // a boolean somewhere
  // One of the requests has it; one of those that are not made up has it.
  bool held = false;
  bool real = false;
  // How many values there are to set it to.
  int likely = 0;
  // Not held, and guessed only because the input has its name.
  bool guessed = false;
  // The average size of its values in a request that has it, without the fields
  // below it.
  uint64_t bytes = 0;
};

// The change of a field.
enum class Change : uint8_t {
  kKeep,
  // Another value of its type. A text becomes another text, of the same form if
  // it is a number or a time. A number becomes another one, a boolean the
  // opposite. An object gets one more key, a list some more elements.
  kAlter,
  // As a mask removes it, with all that is in it; an element of a list becomes
  // null.
  kRemove,
  // One of its likely values, with the objects that it is in; no change if a
  // list or another value is on its path.
  kSet,
};

class RequestFields {
 public:
  using Request = apiextensions::fn::proto::v1::RunFunctionRequest;

  // Every field of any request is listed once, and so is every added one. The
  // last `made_up` requests were never sent.
  explicit RequestFields(std::vector<Request> requests,
                         const std::vector<Addition>& additions = {},
                         size_t made_up = 0);
  ~RequestFields();

  // Parents before what is in them, names in the order of their bytes.
  const std::vector<Field>& fields() const { return fields_; }

  size_t requests() const;
  const Request& request(size_t index) const;

  // That request with each field changed as `changes` says, which has one for
  // each of fields(). New values follow from `seed` and the path alone. A
  // likely value is the one of the number `seed`, modulo their count. A removed
  // field loses all fields below it, whatever `changes` says of them.
  Request Changed(size_t request, const std::vector<Change>& changes,
                  uint64_t seed) const {
    return Changed(requests_[request], changes, seed);
  }
  // The same for another request.
  Request Changed(Request request, const std::vector<Change>& changes,
                  uint64_t seed) const;
  // Whether it has any of the fields that are to be changed, or an object in
  // which one is to be set.
  bool HasAny(size_t request, const std::vector<Change>& changes) const;

 private:
  struct Node;
  struct Walk;
  void AddTo(Node* object, const Addition& addition);
  void Number(Node* node, int parent);

  std::vector<Request> requests_;
  const std::unique_ptr<Node> root_;
  std::vector<Field> fields_;
  std::vector<std::vector<bool>> has_;  // of each request, each field
  // Likewise whether it has the object that the field is in.
  std::vector<std::vector<bool>> has_object_;
};

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_FIELDS_H_
