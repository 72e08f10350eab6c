// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

// grpcServer runs a server on a free port and returns its target.
func grpcServer(t *testing.T, server *grpc.Server) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// TestGRPCInteroperability runs gRPC's own cases, their client against their
// server, with fncache in between. A case that fails ends the process.
func TestGRPCInteroperability(t *testing.T) {
	server := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(server, interop.NewTestServer())
	d := serve(t, grpcServer(t, server), "--insecure")
	conn := d.dial(t, nil)
	tc := testgrpc.NewTestServiceClient(conn)

	for _, test := range []struct {
		name string
		run  func(context.Context)
	}{
		{"empty_unary", func(ctx context.Context) { interop.DoEmptyUnaryCall(ctx, tc) }},
		{"large_unary", func(ctx context.Context) { interop.DoLargeUnaryCall(ctx, tc) }},
		{"client_streaming", func(ctx context.Context) { interop.DoClientStreaming(ctx, tc) }},
		{"server_streaming", func(ctx context.Context) { interop.DoServerStreaming(ctx, tc) }},
		{"ping_pong", func(ctx context.Context) { interop.DoPingPong(ctx, tc) }},
		{"empty_stream", func(ctx context.Context) { interop.DoEmptyStream(ctx, tc) }},
		{"timeout_on_sleeping_server", func(ctx context.Context) { interop.DoTimeoutOnSleepingServer(ctx, tc) }},
		{"cancel_after_begin", func(ctx context.Context) { interop.DoCancelAfterBegin(ctx, tc) }},
		{"cancel_after_first_response", func(ctx context.Context) { interop.DoCancelAfterFirstResponse(ctx, tc) }},
		{"status_code_and_message", func(ctx context.Context) { interop.DoStatusCodeAndMessage(ctx, tc) }},
		{"special_status_message", func(ctx context.Context) { interop.DoSpecialStatusMessage(ctx, tc) }},
		{"custom_metadata", func(ctx context.Context) { interop.DoCustomMetadata(ctx, tc) }},
		{"unimplemented_method", func(ctx context.Context) { interop.DoUnimplementedMethod(ctx, conn) }},
		{"unimplemented_service", func(ctx context.Context) {
			interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(conn))
		}},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(within(t)) })
	}
}
