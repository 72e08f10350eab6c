// SPDX-License-Identifier: Apache-2.0
// The names in a certificate, as far as they can be trusted to be read the same
// way by everybody.
//
// A name with a NUL inside ends there for some and goes on for others; gRPC
// 1.51 aborts over an IP address that has neither 4 nor 16 bytes, and over text
// that is none. Go refuses to parse most of this. No authority in its senses
// issues it, so such certificates are refused, peers' and our own.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_CERTIFICATE_NAMES_H_
#define FNCACHE_COMMON_CERTIFICATE_NAMES_H_

#include <openssl/types.h>

#include <string>

namespace fncache {

// Says what is wrong with a name of the certificate's subject (its common
// names) or of its subjectAltName, such as "holds an IP address of 5 bytes".
// The result is empty if nothing is wrong.
std::string WhatIsWrongWithNames(const X509* certificate);

}  // namespace fncache

#endif  // FNCACHE_COMMON_CERTIFICATE_NAMES_H_
