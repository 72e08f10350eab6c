// SPDX-License-Identifier: Apache-2.0
// Held sends: what one thread sends on TCP connections within a turn of work
// leaves together at the turn's end.
//
// gRPC writes to a connection at the end of every operation. Where one thread
// serves many calls, each answer and each call to the function would be a
// system call that goes down the whole network stack and wakes the peer for
// some KB, which is dearer than everything else that is done for the call. Held
// back, they only join the connection's buffer; one more call then sends all of
// it, and the peer wakes once. gRPC has no setting for this, so that the
// process has a sendmsg of its own, before the C library's.
//
// Nothing is held for longer than the thread works: a thread that holds must
// call SendHeld before it waits for anything. Full segments do not wait for
// that, and sends of other threads, to the same connection too, are not held.
//
// Thread-safe: each function is about the thread that calls it.
#ifndef FNCACHE_PROXY_TRANSPORT_HELD_SENDS_H_
#define FNCACHE_PROXY_TRANSPORT_HELD_SENDS_H_

namespace fncache::proxy::transport {

// From now on what this thread sends is held, or not. What is held already
// stays so.
void HoldSends(bool hold);

// Whether something was sent while holding, and has not been let go since.
bool HasHeldSends();

// Lets everything go that is held.
void SendHeld();

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_HELD_SENDS_H_
