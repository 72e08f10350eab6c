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
// Nothing is held for longer than the thread works: who holds must release
// before the thread waits for anything. Full segments do not wait for that, and
// sends of other threads, to the same connection too, are not held.
//
// Thread-safe: all of it is about the calling thread.
#ifndef FNCACHE_PROXY_TRANSPORT_HELD_SENDS_H_
#define FNCACHE_PROXY_TRANSPORT_HELD_SENDS_H_

namespace fncache::proxy::transport {

// From now on sends are held, or not. What is held already stays so.
void HoldSends(bool hold);

// Something was sent while holding, and not released.
bool HasHeldSends();

void ReleaseHeldSends();

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_HELD_SENDS_H_
