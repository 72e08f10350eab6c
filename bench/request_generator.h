// SPDX-License-Identifier: Apache-2.0
// RequestGenerator: the benchmark's requests and answers, made from a seed.
//
// A request looks as a runner's does in the middle of a pipeline: a composite
// with the references of its composed resources, observed resources with
// metadata, owners, conditions and the provider's status, and the same
// resources as desired. Shapes are of four sizes (and a tiny one). Within a
// shape, requests differ in every name, number, time and state and in the
// lengths of some strings and lists, so that neither a cache nor a branch
// predictor learns one message. request_encoding.h makes their bytes.
//
// One request makes many different ones without a new encoding. It has two
// slots of 16 hex digits, the end of `meta.tag` and the end of
// `observed.composite.resource.metadata.uid`, that a counter overwrites
// (request_encoding.h has their offsets). A request with another counter has
// another key, under `key: content` as under `key: tag`.
//
// Drift needs no new encoding either. A shape with observed resources has two
// drift slots: one resource's `metadata.resourceVersion`, and one time in that
// resource's status. A request with another drift has another key without
// `tune: on`, and the same key with it.
//
// Pure functions of their arguments, thread-safe. The same seed makes the same
// messages on every machine.
#ifndef FNCACHE_BENCH_REQUEST_GENERATOR_H_
#define FNCACHE_BENCH_REQUEST_GENERATOR_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/function_v1_fwd.h"

namespace fncache::bench {

// The size of a request when encoded: about 300 bytes, 4 KB (a composite with
// 40 references), 17 KB, 130 KB and 1 MB (the same with 8, 77 and 625
// resources, observed and desired).
enum class Shape { kSmall, k4K, k17K, k130K, k1M };

// "small", "4k", "17k", "130k", "1m".
const char* ShapeName(Shape shape);
absl::optional<Shape> ShapeOf(absl::string_view name);
// The shape has observed resources, and so drift slots: 17 KB and above.
bool HasDrift(Shape shape);

// The size of an answer when encoded: 300 bytes, or 13 KB (40 desired
// resources).
enum class AnswerShape { kSmall, k13K };

// "small", "13k".
const char* AnswerShapeName(AnswerShape shape);
absl::optional<AnswerShape> AnswerShapeOf(absl::string_view name);

// How many hex digits a slot has.
inline constexpr size_t kSlotDigits = 16;
// The sizes of the drift slots: a version's digits, and a time as text.
inline constexpr size_t kVersionDigits = 4;
inline constexpr size_t kTimeBytes = 20;

// The message type that all of the benchmark uses; v1beta1's are the same.
using Request = ::apiextensions::fn::proto::v1::RunFunctionRequest;
using Answer = ::apiextensions::fn::proto::v1::RunFunctionResponse;

// Request number `number` of a shape. Different numbers (or seeds) make
// different messages of nearly the same size and make.
Request MakeRequest(Shape shape, uint64_t seed, uint64_t number);

// An answer whose tag is 64 zeros; no TTL at all where `ttl` is absent.
Answer MakeAnswer(AnswerShape shape, uint64_t seed,
                  absl::optional<absl::Duration> ttl = absl::Hours(1));

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_REQUEST_GENERATOR_H_
