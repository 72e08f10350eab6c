// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	text "text/template"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	function "github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
)

// Stand-ins for published functions, whose modules the Go module proxy may
// refuse. Each compares or copies the fields that the published function does,
// for the requests of tuning_test.go only. They show nothing about the published
// functions' code.

// standInVariable names the stand-in that this test program serves instead of
// running tests.
const standInVariable = "FNCACHE_INTEROP_STAND_IN"

var standIns = map[string]func(*fnv1.RunFunctionRequest, *fnv1.RunFunctionResponse) error{
	"function-auto-ready":          autoReady,
	"function-go-templating":       goTemplating,
	"function-environment-configs": environmentConfigs,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(standInVariable); name != "" {
		fmt.Fprintln(os.Stderr, serveStandIn(name))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

type standIn struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
	run func(*fnv1.RunFunctionRequest, *fnv1.RunFunctionResponse) error
}

func (s *standIn) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := response.To(req, time.Minute)
	if err := s.run(req, rsp); err != nil {
		response.Fatal(rsp, err)
	}
	return rsp, nil
}

// serveStandIn takes the flags that published functions take. It returns only
// with an error.
func serveStandIn(name string) error {
	run, known := standIns[name]
	if !known {
		return fmt.Errorf("no stand-in for %s", name)
	}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	insecure := flags.Bool("insecure", false, "")
	network := flags.String("network", "tcp", "")
	address := flags.String("address", ":9443", "")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	return function.Serve(&standIn{run: run}, function.Listen(*network, *address), function.Insecure(*insecure), function.WithMetricsServer(""))
}

// at is the value at a path of map keys, null if there is none.
func at(object *structpb.Struct, path ...string) *structpb.Value {
	value := structpb.NewStructValue(object)
	for _, key := range path {
		value = value.GetStructValue().GetFields()[key]
	}
	return value
}

func isTrue(object *structpb.Struct, condition string) bool {
	for _, c := range at(object, "status", "conditions").GetListValue().GetValues() {
		if at(c.GetStructValue(), "type").GetStringValue() == condition {
			return at(c.GetStructValue(), "status").GetStringValue() == "True"
		}
	}
	return false
}

func autoReady(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) error {
	for name, desired := range rsp.GetDesired().GetResources() {
		object := req.GetObserved().GetResources()[name].GetResource()
		number := func(path ...string) float64 { return at(object, path...).GetNumberValue() }
		instant := func(path ...string) time.Time {
			parsed, _ := time.Parse(time.RFC3339, at(object, path...).GetStringValue())
			return parsed
		}
		ready := false
		switch kind := at(object, "kind").GetStringValue(); kind {
		case "CronJob":
			schedule := instant("status", "lastScheduleTime")
			ready = !schedule.IsZero() && !instant("status", "lastSuccessfulTime").Before(schedule)
		case "Deployment":
			want := number("spec", "replicas")
			ready = number("status", "updatedReplicas") == want && number("status", "availableReplicas") == want && isTrue(object, "Available")
		case "ReplicaSet":
			ready = number("status", "observedGeneration") >= number("metadata", "generation") && number("status", "availableReplicas") >= number("spec", "replicas")
		default:
			return fmt.Errorf("no rule for the kind %q", kind)
		}
		if ready {
			desired.Ready = fnv1.Ready_READY_TRUE
		}
	}
	return nil
}

// goTemplating takes templates whose output is one JSON object.
func goTemplating(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) error {
	encoded, err := protojson.Marshal(req)
	if err != nil {
		return err
	}
	var data map[string]any
	if err := json.Unmarshal(encoded, &data); err != nil {
		return err
	}
	parsed, err := text.New("inline").Option("missingkey=error").Parse(at(req.GetInput(), "inline", "template").GetStringValue())
	if err != nil {
		return err
	}
	var out strings.Builder
	if err := parsed.Execute(&out, data); err != nil {
		return err
	}
	object := &structpb.Struct{}
	if err := protojson.Unmarshal([]byte(out.String()), object); err != nil {
		return err
	}
	annotations := at(object, "metadata", "annotations").GetStructValue().GetFields()
	name := annotations[resourceName].GetStringValue()
	if name == "" {
		return fmt.Errorf("no annotation %s", resourceName)
	}
	delete(annotations, resourceName)
	rsp.Desired = &fnv1.State{Resources: map[string]*fnv1.Resource{name: {Resource: object}}}
	return nil
}

func environmentConfigs(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) error {
	const requirement = "environment-config-0"
	first := at(req.GetInput(), "spec", "environmentConfigs").GetListValue().GetValues()
	if len(first) != 1 {
		return fmt.Errorf("%d configurations", len(first))
	}
	rsp.Requirements = &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{requirement: {
		ApiVersion: "apiextensions.crossplane.io/v1beta1", Kind: "EnvironmentConfig",
		Match: &fnv1.ResourceSelector_MatchName{MatchName: at(first[0].GetStructValue(), "ref", "name").GetStringValue()},
	}}}
	configs, there := req.GetRequiredResources()[requirement]
	if !there {
		return nil
	}
	if len(configs.GetItems()) != 1 {
		return fmt.Errorf("%d objects", len(configs.GetItems()))
	}
	merged := map[string]*structpb.Value{"apiVersion": structpb.NewStringValue("internal.crossplane.io/v1alpha1"), "kind": structpb.NewStringValue("Environment")}
	for key, value := range at(configs.GetItems()[0].GetResource(), "data").GetStructValue().GetFields() {
		merged[key] = value
	}
	rsp.Context = &structpb.Struct{Fields: map[string]*structpb.Value{
		"apiextensions.crossplane.io/environment": structpb.NewStructValue(&structpb.Struct{Fields: merged}),
	}}
	return nil
}
