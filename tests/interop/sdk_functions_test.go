// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	fnv1beta1 "github.com/crossplane/function-sdk-go/proto/v1beta1"

	"fncache.dev/interop/sdk"
)

// These tests call functions of the C++ SDK: examples/sdk, built against the
// installed package (FNCACHE_SDK_EXAMPLES is their folder).

var sdkListening = regexp.MustCompile(`"msg":"listening","address":"([^"]+)"`)

// example starts examples/sdk/NAME and returns its address.
func example(t *testing.T, name string, args ...string) string {
	t.Helper()
	folder := os.Getenv("FNCACHE_SDK_EXAMPLES")
	if folder == "" {
		t.Fatal("FNCACHE_SDK_EXAMPLES does not name the folder of the examples")
	}
	args = append([]string{"--address", "127.0.0.1:0", "--metrics-address", ""}, args...)
	cmd := exec.Command(filepath.Join(folder, "example_"+name), args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			if m := sdkListening.FindStringSubmatch(lines.Text()); m != nil && len(address) == 0 {
				address <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-read
		if err := cmd.Wait(); err != nil {
			t.Errorf("example_%s: %v", name, err)
		}
	})
	return receive(t, "the address of "+name, address)
}

// withoutResults is the response without what only our SDK reports.
func withoutResults(rsp *fnv1.RunFunctionResponse) *fnv1.RunFunctionResponse {
	rest := proto.Clone(rsp).(*fnv1.RunFunctionResponse)
	rest.Results = nil
	return rest
}

func TestSdkHelloEqualsGos(t *testing.T) {
	conn := connect(t, example(t, "hello", "--insecure"))
	client := fnv1.NewFunctionRunnerServiceClient(conn)
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		req := sdk.Random(r)
		want, err := sdk.Hello{}.RunFunction(within(t), req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.RunFunction(within(t), req)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, got, want)
	}
}

// Responses differ in the results that only our SDK adds, and where a mistyped
// field is FATAL.
func TestSdkStorageEqualsGos(t *testing.T) {
	client := fnv1.NewFunctionRunnerServiceClient(connect(t, example(t, "storage", "--insecure")))
	r := rand.New(rand.NewPCG(3, 4))
	same := 0
	for range 500 {
		req := sdk.Random(r)
		want, err := sdk.Storage{}.RunFunction(within(t), req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.RunFunction(within(t), req)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.GetResults()) == 0 {
			same++
		}
		for _, result := range got.GetResults() {
			if result.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
				t.Fatalf("FATAL: %s\nof %v", result.GetMessage(), req)
			}
		}
		if !proto.Equal(withoutResults(got), want) {
			t.Fatalf("of %v\ngot  %v\nwant %v", req, got, want)
		}
	}
	if same < 100 {
		t.Errorf("only %d responses had no result of the SDK", same)
	}
}

func TestSdkFunctionServesBothVersionsHealthAndReflection(t *testing.T) {
	conn := connect(t, example(t, "hello", "--insecure"))
	req := sdk.RequestOf(4096)
	want, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(within(t), req)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	older := &fnv1beta1.RunFunctionRequest{}
	if err := proto.Unmarshal(bytes, older); err != nil {
		t.Fatal(err)
	}
	beta, err := fnv1beta1.NewFunctionRunnerServiceClient(conn).RunFunction(within(t), older)
	if err != nil {
		t.Fatal(err)
	}
	if beta.GetMeta().GetTag() != want.GetMeta().GetTag() || len(beta.GetResults()) != 1 {
		t.Errorf("v1beta1 answered %v", beta)
	}
	health, err := healthpb.NewHealthClient(conn).Check(within(t), &healthpb.HealthCheckRequest{})
	if err != nil || health.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", health, err)
	}
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	listed, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, service := range listed.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	for _, name := range []string{"apiextensions.fn.proto.v1.FunctionRunnerService", "apiextensions.fn.proto.v1beta1.FunctionRunnerService", "grpc.health.v1.Health"} {
		if !slices.Contains(names, name) {
			t.Errorf("reflection lists %v, not %s", names, name)
		}
		if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: name}}); err != nil {
			t.Fatal(err)
		}
		file, err := stream.Recv()
		if err != nil || len(file.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
			t.Errorf("reflection of %s: %v, %v", name, file, err)
		}
	}
}

func TestSdkFunctionSpeaksTlsAsCrossplaneMakesIt(t *testing.T) {
	ca := newCrossplane(t)
	address := example(t, "hello", "--tls-certs-dir", ca.issue(t, leaf{server: true, names: []string{functionName}}))
	config := dialing(t, ca.issue(t, leaf{names: []string{"crossplane"}}), functionName)
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	req := sdk.RequestOf(4096)
	rsp, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(within(t), req)
	if err != nil || rsp.GetMeta().GetTag() != req.GetMeta().GetTag() {
		t.Fatalf("%v, %v", rsp, err)
	}
	plain, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := fnv1.NewFunctionRunnerServiceClient(plain).RunFunction(within(t), req); status.Code(err) != codes.Unavailable {
		t.Errorf("a caller without TLS got %v", err)
	}
}

func TestSdkFunctionTakesTwentyMegabytes(t *testing.T) {
	conn := connect(t, example(t, "hello", "--insecure"), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	req := sdk.RequestOf(4096)
	req.Desired = &fnv1.State{Resources: map[string]*fnv1.Resource{"big": {Resource: &structpb.Struct{Fields: map[string]*structpb.Value{
		"text": structpb.NewStringValue(strings.Repeat("x", 20<<20))}}}}}
	rsp, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(within(t), req)
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(rsp.GetDesired(), req.GetDesired()) {
		t.Error("20 MB of desired state did not pass")
	}
}

func TestSdkFunctionHonoursDeadlineAndCancellation(t *testing.T) {
	client := fnv1.NewFunctionRunnerServiceClient(connect(t, example(t, "hello", "--insecure")))
	past, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := client.RunFunction(past, sdk.RequestOf(4096)); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a deadline that passed: %v", err)
	}
	for range 50 {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			_, err := client.RunFunction(ctx, sdk.RequestOf(130<<10))
			done <- err
		}()
		cancel()
		if err := receive(t, "the cancelled call", done); err != nil && status.Code(err) != codes.Canceled && !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled call: %v", err)
		}
	}
	if _, err := client.RunFunction(within(t), sdk.RequestOf(4096)); err != nil {
		t.Errorf("a call after them: %v", err)
	}
}
