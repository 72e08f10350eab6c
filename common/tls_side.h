// SPDX-License-Identifier: Apache-2.0
// TlsSide says which side of a TLS connection this process is.
#ifndef FNCACHE_COMMON_TLS_SIDE_H_
#define FNCACHE_COMMON_TLS_SIDE_H_

namespace fncache {

enum class TlsSide { kServer, kClient };

}  // namespace fncache

#endif  // FNCACHE_COMMON_TLS_SIDE_H_
