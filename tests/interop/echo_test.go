// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
)

// maxMessage is what echo and those who call it with large messages accept.
const maxMessage = 64 << 20

// echo is a function that answers with the text that it was sent, on the one
// method that fncache caches and on two that it passes through; on two more it
// sends or reads the requested amount.
type echo struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
	testgrpc.UnimplementedTestServiceServer

	// do, where it is set, comes before each answer, and an error of it is the
	// answer.
	do   func(ctx context.Context, text string) error
	runs atomic.Int64
}

func (e *echo) run(ctx context.Context, text string) error {
	e.runs.Add(1)
	if e.do == nil {
		return nil
	}
	return e.do(ctx, text)
}

func (e *echo) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	text := req.GetInput().GetFields()["text"].GetStringValue()
	if err := e.run(ctx, text); err != nil {
		return nil, err
	}
	rsp := response.To(req, time.Hour)
	response.Normal(rsp, text)
	return rsp, nil
}

func (e *echo) UnaryCall(ctx context.Context, req *testgrpc.SimpleRequest) (*testgrpc.SimpleResponse, error) {
	if err := e.run(ctx, string(req.GetPayload().GetBody())); err != nil {
		return nil, err
	}
	return &testgrpc.SimpleResponse{Payload: req.GetPayload()}, nil
}

func (e *echo) StreamingOutputCall(req *testgrpc.StreamingOutputCallRequest, stream testgrpc.TestService_StreamingOutputCallServer) error {
	for _, one := range req.GetResponseParameters() {
		body := make([]byte, one.GetSize())
		if err := stream.Send(&testgrpc.StreamingOutputCallResponse{Payload: &testgrpc.Payload{Body: body}}); err != nil {
			return err
		}
	}
	return nil
}

func (e *echo) StreamingInputCall(stream testgrpc.TestService_StreamingInputCallServer) error {
	sum := 0
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&testgrpc.StreamingInputCallResponse{AggregatedPayloadSize: int32(sum)})
		}
		if err != nil {
			return err
		}
		sum += len(req.GetPayload().GetBody())
	}
}

func (e *echo) FullDuplexCall(stream testgrpc.TestService_FullDuplexCallServer) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := e.run(stream.Context(), string(req.GetPayload().GetBody())); err != nil {
			return err
		}
		if err := stream.Send(&testgrpc.StreamingOutputCallResponse{Payload: req.GetPayload()}); err != nil {
			return err
		}
	}
}

func (e *echo) server(options ...grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(append([]grpc.ServerOption{grpc.MaxRecvMsgSize(maxMessage)}, options...)...)
	fnv1.RegisterFunctionRunnerServiceServer(server, e)
	testgrpc.RegisterTestServiceServer(server, e)
	return server
}

// start serves the function and returns its target.
func (e *echo) start(t *testing.T, options ...grpc.ServerOption) string {
	t.Helper()
	return grpcServer(t, e.server(options...))
}

// method is one way to have a text echoed. An answer with another text is an
// error.
type method struct {
	name string
	call func(ctx context.Context, conn *grpc.ClientConn, text string, options ...grpc.CallOption) error
}

var (
	runFunction    = method{"RunFunction", callRunFunction}
	unaryCall      = method{"UnaryCall", callUnary}
	fullDuplexCall = method{"FullDuplexCall", callFullDuplex}
	methods        = []method{runFunction, unaryCall, fullDuplexCall}
)

func callRunFunction(ctx context.Context, conn *grpc.ClientConn, text string, options ...grpc.CallOption) error {
	input := &structpb.Struct{Fields: map[string]*structpb.Value{"text": structpb.NewStringValue(text)}}
	rsp, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(ctx, &fnv1.RunFunctionRequest{
		Input:    input,
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: &structpb.Struct{}}},
	}, options...)
	if err != nil {
		return err
	}
	if results := rsp.GetResults(); len(results) != 1 || results[0].GetMessage() != text {
		return fmt.Errorf("not the answer to %.40q", text)
	}
	return nil
}

func callUnary(ctx context.Context, conn *grpc.ClientConn, text string, options ...grpc.CallOption) error {
	req := &testgrpc.SimpleRequest{Payload: &testgrpc.Payload{Body: []byte(text)}}
	rsp, err := testgrpc.NewTestServiceClient(conn).UnaryCall(ctx, req, options...)
	if err != nil {
		return err
	}
	if string(rsp.GetPayload().GetBody()) != text {
		return fmt.Errorf("not the answer to %.40q", text)
	}
	return nil
}

func callFullDuplex(ctx context.Context, conn *grpc.ClientConn, text string, options ...grpc.CallOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := testgrpc.NewTestServiceClient(conn).FullDuplexCall(ctx, options...)
	if err != nil {
		return err
	}
	// A failure to send is io.EOF here; Recv says why.
	_ = stream.Send(&testgrpc.StreamingOutputCallRequest{Payload: &testgrpc.Payload{Body: []byte(text)}})
	_ = stream.CloseSend()
	rsp, err := stream.Recv()
	if err != nil {
		return err
	}
	if string(rsp.GetPayload().GetBody()) != text {
		return fmt.Errorf("not the answer to %.40q", text)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("after the answer: %w", err)
	}
	return nil
}

// gate holds calls whose text begins with "held" until it is opened.
type gate struct {
	entered chan struct{}
	opened  chan struct{}
}

func newGate() *gate {
	return &gate{entered: make(chan struct{}, 100), opened: make(chan struct{})}
}

func (g *gate) do(ctx context.Context, text string) error {
	if !strings.HasPrefix(text, "held") {
		return nil
	}
	g.entered <- struct{}{}
	select {
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// beside runs something while calls of every method are in flight on the same
// connection, which must all succeed afterwards.
func (g *gate) beside(t *testing.T, conn *grpc.ClientConn, something func()) {
	t.Helper()
	const each = 4
	ctx := within(t)
	ended := make(chan error, each*len(methods))
	for _, m := range methods {
		for i := range each {
			go func() { ended <- m.call(ctx, conn, fmt.Sprint("held-", m.name, i)) }()
		}
	}
	for range cap(ended) {
		select {
		case <-g.entered:
		case err := <-ended:
			t.Fatalf("a call that the function holds ended: %v", err)
		case <-ctx.Done():
			t.Fatal("the function does not see the calls")
		}
	}
	something()
	close(g.opened)
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Errorf("a call beside: %v", err)
		}
	}
}

// sight keeps the metadata of the function's last call.
type sight struct{ last atomic.Pointer[metadata.MD] }

func (s *sight) see(ctx context.Context) {
	md, _ := metadata.FromIncomingContext(ctx)
	s.last.Store(&md)
}

// take returns what was seen since it was last taken.
func (s *sight) take(t *testing.T) metadata.MD {
	t.Helper()
	md := s.last.Swap(nil)
	if md == nil {
		t.Fatal("the function was not called")
	}
	return *md
}
