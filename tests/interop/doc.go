// SPDX-License-Identifier: Apache-2.0

// Package interop drives the fncache binary with what others wrote: functions
// built on Crossplane's Go SDK, Go clients, gRPC's own interoperability cases,
// and h2spec. Everything is on loopback, on free ports or Unix sockets. Tests that
// press the daemon for seconds do so for a minute where FNCACHE_INTEROP_LONG is
// set.
package interop
