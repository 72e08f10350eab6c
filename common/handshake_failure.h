// SPDX-License-Identifier: Apache-2.0
// TLS handshakes that failed: reports why to the observers that count them, and
// logs at most one line a second for each side.
//
// TLS reports next to nothing to a refused caller ("broken pipe"). So the side
// that refuses must log its reason.
//
// Thread-safe.
#ifndef FNCACHE_COMMON_HANDSHAKE_FAILURE_H_
#define FNCACHE_COMMON_HANDSHAKE_FAILURE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/tls_side.h"

namespace fncache {

enum class HandshakeFault {
  kUnknownAuthority,  // the peer's certificate comes from no trusted authority
  kExpired,           // it, or what signed it, has ended
  kNotYetValid,       // it, or what signed it, has not begun
  kWrongUsage,        // it is made for the other side, or for something else
  kWrongName,         // it is not for the name that was called
  kBadCertificate,    // it is unfit in another way
  kNoCertificate,     // the peer shows none, and must
  kRefusedByPeer,     // the peer ended it: our certificate does not please it
  kPlaintext,         // the peer does not speak TLS
  kProtocol,          // no version, cipher or record in common
};
inline constexpr size_t kHandshakeFaults = 10;
// Its name in metrics and logs: "unknown_authority"...
const char* HandshakeFaultName(HandshakeFault fault);

struct HandshakeFailure {
  TlsSide side = TlsSide::kServer;
  HandshakeFault fault = HandshakeFault::kProtocol;
  // Says in words what is wrong.
  std::string words;
  // The subject of the certificate that the peer showed; empty if none was
  // seen. A peer's own text.
  std::string certificate;
};

// Counts, and logs, a failure. May be called from any thread, within calls of
// OpenSSL.
void ReportHandshakeFailure(const HandshakeFailure& failure);

// Reports that the function's certificate is not for `called`, the name that
// `setting` says (empty if none does), but `certificate`. Returns what is
// wrong.
std::string ReportWrongName(absl::string_view called, absl::string_view setting,
                            std::string certificate);
// Formats the subject of a certificate, as `certificate` above.
std::string CertificateText(absl::string_view common_name,
                            const std::vector<std::string>& names);

// Gets every failure during its lifetime, on the thread that met it; for
// metrics. There may be several.
class HandshakeObserver {
 public:
  using Callback = std::function<void(const HandshakeFailure&)>;

  explicit HandshakeObserver(Callback callback);
  // Returns once `callback` is not being called and will not be again.
  ~HandshakeObserver();
  HandshakeObserver(const HandshakeObserver&) = delete;
  HandshakeObserver& operator=(const HandshakeObserver&) = delete;

 private:
  friend void ReportHandshakeFailure(const HandshakeFailure& failure);
  const Callback callback_;
};

}  // namespace fncache

#endif  // FNCACHE_COMMON_HANDSHAKE_FAILURE_H_
