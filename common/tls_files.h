// SPDX-License-Identifier: Apache-2.0
// The certificates of a directory, as Crossplane mounts them: tls.crt (a
// certificate and its chain), tls.key (its key) and ca.crt (whom to trust).
//
// A TLS server with missing files starts and its handshakes hang, so the daemon
// reads and checks them here first: at start, and whenever they are replaced.
//
// Pure functions over files, thread-safe.
#ifndef FNCACHE_COMMON_TLS_FILES_H_
#define FNCACHE_COMMON_TLS_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/tls_side.h"

namespace fncache {

struct TlsFiles {
  std::string certificate;  // PEM of tls.crt; empty = none (client side)
  std::string key;          // PEM of tls.key; a secret: never log it
  std::string ca;           // PEM of ca.crt; empty = none (server side)

  // When the first of all certificates in the files ends.
  absl::Time earliest_expiry = absl::InfiniteFuture();
  // A line each, naming the file: certificates that have ended or not begun.
  // They do not fail the read: a restarting daemon that refused an expired pair
  // could not take up its replacement either.
  std::vector<std::string> warnings;

  bool operator==(const TlsFiles& other) const {
    return certificate == other.certificate && key == other.key &&
           ca == other.ca;
  }
  bool operator!=(const TlsFiles& other) const { return !(*this == other); }
};

// Reads and checks the files of a server (tls.crt and tls.key are needed;
// ca.crt, if present, is what callers' certificates must come from) or of a
// client (ca.crt is needed; tls.crt and tls.key are both there or both absent):
// regular, readable, at most 1 MiB, every PEM block parses, and the key belongs
// to the first certificate of tls.crt, which TLS accepts (strength, names). An
// existing ca.crt without a certificate is an error, never "no ca.crt": callers
// would no longer be asked for one. The codes are ReadSmallFile's
// (common/file.h), InvalidArgument for bad content; the message names the file.
absl::StatusOr<TlsFiles> ReadTlsFiles(const std::string& dir, TlsSide side,
                                      absl::Time now);

}  // namespace fncache

#endif  // FNCACHE_COMMON_TLS_FILES_H_
