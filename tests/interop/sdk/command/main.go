// SPDX-License-Identifier: Apache-2.0

// Command command serves a function of the Go SDK, or loads a function: for
// bench/sdk.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"fncache.dev/interop/sdk"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	function := flag.String("function", "", "hello or storage: serves it, and says where on stderr")
	target := flag.String("load", "", "HOST:PORT of a function to call")
	size := flag.Int("bytes", 4096, "of a request")
	calls := flag.Int("calls", 1000, "in all")
	atOnce := flag.Int("at-once", 16, "calls, on one connection")
	flag.Parse()
	if *function != "" {
		return serve(*function)
	}
	return load(*target, *size, *calls, *atOnce)
}

// serve listens as function.Serve does, on a free port.
func serve(name string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	switch name {
	case "hello":
		fnv1.RegisterFunctionRunnerServiceServer(server, sdk.Hello{})
	case "storage":
		fnv1.RegisterFunctionRunnerServiceServer(server, sdk.Storage{})
	default:
		return fmt.Errorf("-function is %q; accepted: hello, storage", name)
	}
	fmt.Fprintln(os.Stderr, "listening on", listener.Addr())
	return server.Serve(listener)
}

// raw passes bytes as they are, so that the load's own encoding costs little.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (raw) Name() string { return "proto" }

func load(target string, size, calls, atOnce int) error {
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		return err
	}
	defer conn.Close()
	request, err := proto.Marshal(sdk.RequestOf(size))
	if err != nil {
		return err
	}
	var started, bytes atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	begin := time.Now()
	for range atOnce {
		all.Go(func() {
			for started.Add(1) <= int64(calls) && failed.Load() == nil {
				var response []byte
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				err := conn.Invoke(ctx, "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction", &request, &response)
				cancel()
				if err != nil {
					failed.Store(&err)
				}
				bytes.Add(int64(len(response)))
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	fmt.Printf("%d calls of %d bytes, responses of %d, %.3f s\n", calls, len(request), bytes.Load()/int64(calls), time.Since(begin).Seconds())
	return nil
}
