// SPDX-License-Identifier: Apache-2.0

// Package interop drives the fncache binary with what others wrote: functions
// built on Crossplane's Go SDK, Go clients, and gRPC's own interoperability
// cases. Everything is on loopback, on free ports or Unix sockets.
package interop
