// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	function "github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/proto/v1beta1"
	"github.com/crossplane/function-sdk-go/resource"
	"github.com/crossplane/function-sdk-go/response"
)

// greeter is a function as people write them: it counts its runs, keeps what
// earlier steps want, and adds one resource made of its input.
type greeter struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
	runs  atomic.Int64
	ttl   time.Duration
	fail  func(*fnv1.RunFunctionRequest) error
	fatal bool
}

func (g *greeter) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	run := g.runs.Add(1)
	if g.fail != nil {
		if err := g.fail(req); err != nil {
			return nil, err
		}
	}
	rsp := response.To(req, g.ttl)
	if g.fatal {
		response.Fatal(rsp, fmt.Errorf("run %d", run))
		return rsp, nil
	}
	made, err := resource.AsStruct(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Greeting",
		"spec": map[string]any{"of": req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].AsInterface(), "run": float64(run)},
	}})
	if err != nil {
		return nil, err
	}
	if rsp.Desired == nil {
		rsp.Desired = &fnv1.State{}
	}
	if rsp.Desired.Resources == nil {
		rsp.Desired.Resources = map[string]*fnv1.Resource{}
	}
	rsp.Desired.Resources["greeting"] = &fnv1.Resource{Resource: made, Ready: fnv1.Ready_READY_TRUE}
	response.Normal(rsp, "greeted")
	return rsp, nil
}

// wide is a request with many maps of several entries each, so that two
// marshallings of it hardly ever agree.
func wide(name, tag string) *fnv1.RunFunctionRequest {
	resources := map[string]*fnv1.Resource{}
	for i := range 12 {
		s, _ := structpb.NewStruct(map[string]any{
			"apiVersion": "s3.example.org/v1", "kind": "Bucket",
			"metadata": map[string]any{"name": fmt.Sprint("bucket-", i), "labels": map[string]any{"a": "1", "b": "2", "c": "3"}},
			"status":   map[string]any{"ready": i%2 == 0, "size": float64(i) * 1.5, "none": nil, "list": []any{"x", 1.0, map[string]any{"k": "v", "l": "w"}}},
		})
		resources[fmt.Sprint("bucket-", i)] = &fnv1.Resource{Resource: s, ConnectionDetails: map[string][]byte{"user": []byte("u"), "host": []byte("h")}}
	}
	xr, _ := structpb.NewStruct(map[string]any{
		"apiVersion": "example.org/v1", "kind": "XBuckets", "metadata": map[string]any{"name": name, "uid": "u", "labels": map[string]any{"x": "1", "y": "2"}},
	})
	return &fnv1.RunFunctionRequest{
		Meta:     &fnv1.RequestMeta{Tag: tag, Capabilities: []fnv1.Capability{fnv1.Capability_CAPABILITY_CAPABILITIES, fnv1.Capability_CAPABILITY_CONDITIONS}},
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}, Resources: resources},
	}
}

func cacheStatus(header metadata.MD) string {
	return strings.Join(header.Get("cache-status"), ", ")
}

// untagged is a response without what a cache may change.
func untagged(rsp *fnv1.RunFunctionResponse) *fnv1.RunFunctionResponse {
	out := proto.Clone(rsp).(*fnv1.RunFunctionResponse)
	out.Meta = nil
	return out
}

func TestRandomMapOrdersHit(t *testing.T) {
	fn := &greeter{ttl: time.Hour}
	d := serve(t, sdkFunction(t, fn, function.Insecure(true)), "--insecure")
	client := fnv1.NewFunctionRunnerServiceClient(d.dial(t, nil))

	orders := map[string]bool{}
	var first *fnv1.RunFunctionResponse
	for i := range 200 {
		req := wide("random", fmt.Sprint("tag-", i))
		bytes, err := proto.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		orders[string(bytes)] = true
		var header metadata.MD
		rsp, err := client.RunFunction(within(t), req, grpc.Header(&header))
		if err != nil {
			t.Fatal(err)
		}
		if rsp.GetMeta().GetTag() != req.GetMeta().GetTag() {
			t.Fatalf("call %d came back with tag %q", i, rsp.GetMeta().GetTag())
		}
		if ttl := rsp.GetMeta().GetTtl().AsDuration(); ttl <= 0 || ttl > time.Hour {
			t.Fatalf("call %d came back with TTL %v", i, ttl)
		}
		if i == 0 {
			first = rsp
			if got := cacheStatus(header); got != "fncache; fwd=miss; stored; detail=new" {
				t.Fatalf("first call: cache-status %q", got)
			}
			continue
		}
		if got := cacheStatus(header); !strings.HasPrefix(got, "fncache; hit; ttl=") {
			t.Fatalf("call %d: cache-status %q", i, got)
		}
		equal(t, untagged(rsp), untagged(first))
	}
	if len(orders) < 150 {
		t.Fatalf("only %d different encodings: this test shows little", len(orders))
	}
	if runs := fn.runs.Load(); runs != 1 {
		t.Fatalf("the function ran %d times", runs)
	}
	if hits := d.metric(t, `function_run_function_response_cache_hits_total{function_name="function"}`); hits != 199 {
		t.Fatalf("metrics count %v hits", hits)
	}
	if misses := d.metric(t, `function_run_function_response_cache_misses_total{function_name="function"}`); misses != 1 {
		t.Fatalf("metrics count %v misses", misses)
	}
}

func TestRequestsThatDifferInAnythingButTheTagMiss(t *testing.T) {
	fn := &greeter{ttl: time.Hour}
	d := serve(t, sdkFunction(t, fn, function.Insecure(true)), "--insecure")
	client := fnv1.NewFunctionRunnerServiceClient(d.dial(t, nil))

	changes := []func(*fnv1.RunFunctionRequest){
		func(*fnv1.RunFunctionRequest) {},
		func(r *fnv1.RunFunctionRequest) { r.Meta.Capabilities = r.Meta.Capabilities[:1] },
		func(r *fnv1.RunFunctionRequest) { r.Desired = &fnv1.State{} },
		func(r *fnv1.RunFunctionRequest) { r.Input = &structpb.Struct{} },
		func(r *fnv1.RunFunctionRequest) { r.Context = &structpb.Struct{} },
		func(r *fnv1.RunFunctionRequest) { r.RequiredResources = map[string]*fnv1.Resources{"a": {}} },
		func(r *fnv1.RunFunctionRequest) { r.ExtraResources = map[string]*fnv1.Resources{"a": {}} },
		func(r *fnv1.RunFunctionRequest) { r.RequiredSchemas = map[string]*fnv1.Schema{"a": {}} },
		func(r *fnv1.RunFunctionRequest) { r.Credentials = map[string]*fnv1.Credentials{"a": {}} },
		func(r *fnv1.RunFunctionRequest) {
			r.Observed.Resources["bucket-3"].ConnectionDetails["user"] = []byte("v")
		},
		func(r *fnv1.RunFunctionRequest) { r.Observed.Resources["bucket-3"].Ready = fnv1.Ready_READY_FALSE },
		func(r *fnv1.RunFunctionRequest) { delete(r.Observed.Resources, "bucket-11") },
	}
	for round := range 2 {
		for i, change := range changes {
			req := wide("differ", "same-tag")
			change(req)
			var header metadata.MD
			if _, err := client.RunFunction(within(t), req, grpc.Header(&header)); err != nil {
				t.Fatal(err)
			}
			if hit := strings.Contains(cacheStatus(header), "; hit"); hit != (round == 1) {
				t.Fatalf("round %d, change %d: cache-status %q", round, i, cacheStatus(header))
			}
		}
	}
	if runs := fn.runs.Load(); runs != int64(len(changes)) {
		t.Fatalf("%d requests made %d runs", len(changes), runs)
	}
}

func TestV1Beta1HitsUnderItsOwnKeys(t *testing.T) {
	fn := &greeter{ttl: time.Hour}
	d := serve(t, sdkFunction(t, fn, function.Insecure(true)), "--insecure")
	conn := d.dial(t, nil)
	req := wide("beta", "t1")
	if _, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(within(t), req); err != nil {
		t.Fatal(err)
	}
	bytes, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		beta := &v1beta1.RunFunctionRequest{}
		if err := proto.Unmarshal(bytes, beta); err != nil {
			t.Fatal(err)
		}
		beta.Meta.Tag = fmt.Sprint("beta-", i)
		rsp, err := v1beta1.NewFunctionRunnerServiceClient(conn).RunFunction(within(t), beta)
		if err != nil {
			t.Fatal(err)
		}
		if rsp.GetMeta().GetTag() != beta.GetMeta().GetTag() {
			t.Fatalf("tag %q came back for %q", rsp.GetMeta().GetTag(), beta.GetMeta().GetTag())
		}
	}
	if runs := fn.runs.Load(); runs != 2 {
		t.Fatalf("one request by two methods made %d runs", runs)
	}
}

func TestRunnerFallsBackToV1Beta1(t *testing.T) {
	// A function that knows v1beta1 only, as old ones do.
	server := grpc.NewServer()
	fn := &greeter{ttl: time.Hour}
	v1beta1.RegisterFunctionRunnerServiceServer(server, function.ServeBeta(fn))
	d := serve(t, grpcServer(t, server), "--insecure")
	conn := d.dial(t, nil)
	req := wide("beta", "t1")
	bytes, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	beta := &v1beta1.RunFunctionRequest{}
	if err := proto.Unmarshal(bytes, beta); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(within(t), req)
		if status.Code(err) != codes.Unimplemented {
			t.Fatalf("v1: %v", err)
		}
		if _, err := v1beta1.NewFunctionRunnerServiceClient(conn).RunFunction(within(t), beta); err != nil {
			t.Fatal(err)
		}
	}
	if runs := fn.runs.Load(); runs != 1 {
		t.Fatalf("%d runs", runs)
	}
	if misses := d.metric(t, `function_run_function_response_cache_misses_total{function_name="function"}`); misses != 1 {
		t.Fatalf("metrics count %v misses; those answered UNIMPLEMENTED are none", misses)
	}
}

func TestAnswersThatMustNotBeStored(t *testing.T) {
	detailed, err := status.New(codes.ResourceExhausted, "quota of größe 0 %\n").WithDetails(&errdetails.RetryInfo{}, &errdetails.ErrorInfo{Reason: "R", Domain: "d"})
	if err != nil {
		t.Fatal(err)
	}
	why := map[string]string{"fatal": "fatal", "no time": "no-ttl", "with status": "error"}
	for name, fn := range map[string]*greeter{
		"fatal":       {ttl: time.Hour, fatal: true},
		"no time":     {ttl: 0},
		"with status": {ttl: time.Hour, fail: func(*fnv1.RunFunctionRequest) error { return detailed.Err() }},
	} {
		t.Run(name, func(t *testing.T) {
			d := serve(t, sdkFunction(t, fn, function.Insecure(true)), "--insecure")
			client := fnv1.NewFunctionRunnerServiceClient(d.dial(t, nil))
			for call := range 3 {
				var header, trailer metadata.MD
				_, err := client.RunFunction(within(t), wide("no", "t"), grpc.Header(&header), grpc.Trailer(&trailer))
				if fn.fail != nil {
					equal(t, status.Convert(err).Proto(), detailed.Proto())
				} else if err != nil {
					t.Fatal(err)
				}
				got := cacheStatus(header) + cacheStatus(trailer)
				want := "fncache; fwd=miss; detail=new"
				if call > 0 {
					want = fmt.Sprintf("fncache; fwd=miss; detail=\"not-stored: %s\"", why[name])
				}
				if got != want {
					t.Fatalf("cache-status %q, want %q", got, want)
				}
			}
			if runs := fn.runs.Load(); runs != 3 {
				t.Fatalf("%d runs", runs)
			}
		})
	}
}

func TestSDKLimitOnMessagesPasses(t *testing.T) {
	fn := &greeter{ttl: time.Hour}
	d := serve(t, sdkFunction(t, fn, function.Insecure(true)), "--insecure")
	client := fnv1.NewFunctionRunnerServiceClient(d.dial(t, nil))
	req := wide("large", "t")
	req.Observed.Resources["bucket-0"].ConnectionDetails["blob"] = make([]byte, 5<<20)
	_, err := client.RunFunction(within(t), req)
	if status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("5 MiB to a function that takes 4: %v", err)
	}
	if _, err := client.RunFunction(within(t), wide("small", "t")); err != nil {
		t.Fatalf("the call after: %v", err)
	}
}

func TestLargeMessagesHit(t *testing.T) {
	fn := &greeter{ttl: time.Hour}
	d := serve(t, sdkFunction(t, fn, function.Insecure(true), function.MaxRecvMessageSize(64<<20)), "--insecure")
	client := fnv1.NewFunctionRunnerServiceClient(d.dial(t, nil))
	for range 3 {
		req := wide("large", "t")
		req.Observed.Resources["bucket-0"].ConnectionDetails["blob"] = make([]byte, 20<<20)
		if _, err := client.RunFunction(within(t), req); err != nil {
			t.Fatal(err)
		}
	}
	if runs := fn.runs.Load(); runs != 1 {
		t.Fatalf("%d runs", runs)
	}
}

func TestHealthAndReflectionPass(t *testing.T) {
	d := serve(t, sdkFunction(t, &greeter{}, function.Insecure(true)), "--insecure")
	conn := d.dial(t, nil)
	answer, err := healthpb.NewHealthClient(conn).Check(within(t), &healthpb.HealthCheckRequest{Service: "fn"})
	if err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("health: %v, %v", answer, err)
	}
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	services, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, s := range services.GetListServicesResponse().GetService() {
		names += s.GetName() + " "
	}
	if !strings.Contains(names, "apiextensions.fn.proto.v1.FunctionRunnerService") {
		t.Fatalf("reflection lists %q", names)
	}
}

func TestManyRunnersAtOnceShareRuns(t *testing.T) {
	fn := &greeter{ttl: time.Hour}
	d := serve(t, sdkFunction(t, fn, function.Insecure(true)), "--insecure")
	const runners, requests, rounds = 8, 20, 10
	var wait sync.WaitGroup
	for r := range runners {
		conn := d.dial(t, nil)
		wait.Go(func() {
			client := fnv1.NewFunctionRunnerServiceClient(conn)
			for range rounds {
				for _, i := range rand.Perm(requests) {
					tag := fmt.Sprint(r, "/", i)
					rsp, err := client.RunFunction(within(t), wide(fmt.Sprint("shared-", i), tag))
					if err != nil {
						t.Error(err)
						return
					}
					of := rsp.GetDesired().GetResources()["greeting"].GetResource().GetFields()["spec"].GetStructValue().GetFields()["of"].GetStructValue().GetFields()["name"].GetStringValue()
					if rsp.GetMeta().GetTag() != tag || of != fmt.Sprint("shared-", i) {
						t.Errorf("asked for %s, got %s of %s", tag, rsp.GetMeta().GetTag(), of)
						return
					}
				}
			}
		})
	}
	wait.Wait()
	if runs := fn.runs.Load(); runs != requests {
		t.Fatalf("%d requests made %d runs", requests, runs)
	}
}
