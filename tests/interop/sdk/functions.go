// SPDX-License-Identifier: Apache-2.0

// Package sdk compares functions of our C++ SDK with the same functions written
// with Crossplane's Go SDK, and makes the requests for both.
package sdk

import (
	"context"
	"math/rand/v2"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// Hello answers with what passes through and one result.
type Hello struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

// RunFunction is the function.
func (Hello) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := response.To(req, response.DefaultTTL)
	response.Normal(rsp, "hello")
	return rsp, nil
}

// Storage desires a bucket, and an ACL for it once the bucket has its external
// name. An ACL that exists keeps its bucket while that name is lost.
type Storage struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

// at is the value at a path; nil where there is none.
func at(object *structpb.Struct, path ...string) *structpb.Value {
	for i, name := range path {
		value, ok := object.GetFields()[name]
		if !ok {
			return nil
		}
		if i == len(path)-1 {
			return value
		}
		object = value.GetStructValue()
	}
	return nil
}

// set puts a value at a path and makes the objects above it. A nil value
// changes nothing.
func set(object *structpb.Struct, value *structpb.Value, path ...string) {
	if value == nil {
		return
	}
	for _, name := range path[:len(path)-1] {
		if object.Fields == nil {
			object.Fields = map[string]*structpb.Value{}
		}
		below := object.Fields[name].GetStructValue()
		if below == nil {
			below = &structpb.Struct{Fields: map[string]*structpb.Value{}}
			object.Fields[name] = structpb.NewStructValue(below)
		}
		object = below
	}
	if object.Fields == nil {
		object.Fields = map[string]*structpb.Value{}
	}
	object.Fields[path[len(path)-1]] = value
}

// desired is the desired resource of a name, with its kind filled in.
func desired(rsp *fnv1.RunFunctionResponse, name, apiVersion, kind string) *fnv1.Resource {
	if rsp.Desired.Resources == nil {
		rsp.Desired.Resources = map[string]*fnv1.Resource{}
	}
	resource := rsp.Desired.Resources[name]
	if resource == nil {
		resource = &fnv1.Resource{}
		rsp.Desired.Resources[name] = resource
	}
	if resource.Resource == nil {
		resource.Resource = &structpb.Struct{}
	}
	set(resource.Resource, structpb.NewStringValue(apiVersion), "apiVersion")
	set(resource.Resource, structpb.NewStringValue(kind), "kind")
	return resource
}

const externalName = "crossplane.io/external-name"

// RunFunction is the function.
func (Storage) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := response.To(req, response.DefaultTTL)
	if rsp.Desired == nil {
		rsp.Desired = &fnv1.State{}
	}
	observed := req.GetObserved()
	wanted := func(field string) *structpb.Value {
		return at(observed.GetComposite().GetResource(), "spec", "parameters", field)
	}
	bucket := desired(rsp, "bucket", "storage.gcp.upbound.io/v1beta1", "Bucket").Resource
	set(bucket, wanted("location"), "spec", "forProvider", "location")
	item := &structpb.Struct{}
	set(item, wanted("versioning"), "enabled")
	set(bucket, structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(item)}}),
		"spec", "forProvider", "versioning")
	if at(bucket, "spec", "forProvider", "location").GetStringValue() == "US" {
		set(bucket, structpb.NewStringValue("STANDARD"), "spec", "forProvider", "storageClass")
	}

	name := at(observed.GetResources()["bucket"].GetResource(), "metadata", "annotations", externalName)
	exists := observed.GetResources()["acl"] != nil
	if name == nil && !exists {
		delete(rsp.Desired.Resources, "acl")
		if rsp.Desired.Composite == nil {
			rsp.Desired.Composite = &fnv1.Resource{}
		}
		rsp.Desired.Composite.Ready = fnv1.Ready_READY_FALSE
	} else {
		acl := desired(rsp, "acl", "storage.gcp.upbound.io/v1beta1", "BucketACL").Resource
		kept := name
		if kept == nil {
			kept = at(observed.GetResources()["acl"].GetResource(), "spec", "forProvider", "bucket")
			delete(at(acl, "spec", "forProvider").GetStructValue().GetFields(), "bucket")
		}
		set(acl, kept, "spec", "forProvider", "bucket")
		set(acl, wanted("acl"), "spec", "forProvider", "predefinedAcl")
	}
	status := name
	if status == nil {
		status = at(observed.GetComposite().GetResource(), "status", "bucketName")
		delete(at(rsp.Desired.GetComposite().GetResource(), "status").GetStructValue().GetFields(), "bucketName")
	}
	if status != nil {
		if rsp.Desired.Composite == nil {
			rsp.Desired.Composite = &fnv1.Resource{}
		}
		composite := rsp.Desired.Composite
		if composite.Resource == nil {
			composite.Resource = &structpb.Struct{}
		}
		set(composite.Resource, status, "status", "bucketName")
		set(composite.Resource, at(observed.GetComposite().GetResource(), "apiVersion"), "apiVersion")
		set(composite.Resource, at(observed.GetComposite().GetResource(), "kind"), "kind")
	}
	return rsp, nil
}

// object is a Struct of a map that JSON could have made.
func object(fields map[string]any) *structpb.Struct {
	s, err := structpb.NewStruct(fields)
	if err != nil {
		panic(err)
	}
	return s
}

// managed is an observed resource as a provider writes it, 1.4 KB of protobuf.
func managed(kind, name string) map[string]any {
	condition := func(kind, reason string) any {
		return map[string]any{"type": kind, "status": "True", "reason": reason, "lastTransitionTime": "2026-08-01T10:00:00Z", "observedGeneration": 3.0}
	}
	field := func(manager string) any {
		return map[string]any{"manager": manager, "operation": "Update", "apiVersion": "storage.gcp.upbound.io/v1beta1",
			"time": "2026-08-01T10:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:status": map[string]any{
				"f:atProvider": map[string]any{"f:id": map[string]any{}, "f:selfLink": map[string]any{}, "f:url": map[string]any{}}}}}
	}
	return map[string]any{
		"apiVersion": "storage.gcp.upbound.io/v1beta1", "kind": kind,
		"metadata": map[string]any{
			"name": name, "generateName": "xr-", "resourceVersion": "123456", "uid": "5f1d7a20-6a4f-4d67-8f0c-" + name, "generation": 3.0,
			"creationTimestamp": "2026-08-01T09:00:00Z",
			"annotations": map[string]any{externalName: "ext-" + name, "crossplane.io/composition-resource-name": name,
				"crossplane.io/external-create-succeeded": "2026-08-01T09:00:05Z"},
			"labels":        map[string]any{"crossplane.io/composite": "xr", "team": "storage"},
			"managedFields": []any{field("provider"), field("crossplane")},
		},
		"spec": map[string]any{"deletionPolicy": "Delete", "managementPolicies": []any{"*"},
			"forProvider":       map[string]any{"location": "EU", "storageClass": "STANDARD", "versioning": []any{map[string]any{"enabled": true}}, "bucket": "ext-bucket"},
			"providerConfigRef": map[string]any{"name": "default"}},
		"status": map[string]any{"atProvider": map[string]any{"id": "ext-" + name, "selfLink": "https://storage.example.org/b/ext-" + name,
			"url": "gs://ext-" + name, "projectNumber": 1234567.0},
			"conditions": []any{condition("Ready", "Available"), condition("Synced", "ReconcileSuccess")}},
	}
}

// RequestOf is a request of a settled composite of about `bytes` bytes: many
// observed buckets, the bucket and its ACL among them.
func RequestOf(bytes int) *fnv1.RunFunctionRequest {
	req := &fnv1.RunFunctionRequest{
		Meta: &fnv1.RequestMeta{Tag: "8d1c4f7f0b0c1f2b3a4d5e6f", Capabilities: []fnv1.Capability{fnv1.Capability_CAPABILITY_CAPABILITIES,
			fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES, fnv1.Capability_CAPABILITY_CREDENTIALS, fnv1.Capability_CAPABILITY_CONDITIONS, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS}},
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: object(map[string]any{
			"apiVersion": "platform.example.com/v1alpha1", "kind": "XStorageBucket",
			"metadata": map[string]any{"name": "xr", "resourceVersion": "4711", "generation": 2.0, "uid": "0b7e7a60"},
			"spec":     map[string]any{"parameters": map[string]any{"location": "EU", "versioning": true, "acl": "private"}},
		})}, Resources: map[string]*fnv1.Resource{}},
		Desired: &fnv1.State{},
	}
	for i := 0; ; i++ {
		name, kind := "bucket-"+string(rune('a'+i%26))+string(rune('a'+i/26)), "Bucket"
		switch i {
		case 0:
			name = "bucket"
		case 1:
			name, kind = "acl", "BucketACL"
		}
		if i > 1 && proto.Size(req) >= bytes-700 {
			return req
		}
		req.Observed.Resources[name] = &fnv1.Resource{Resource: object(managed(kind, name))}
	}
}

// Random is a request with random observed and desired state around what Storage
// reads.
func Random(r *rand.Rand) *fnv1.RunFunctionRequest {
	some := func(p float64) bool { return r.Float64() < p }
	parameters := map[string]any{}
	if some(0.8) {
		parameters["location"] = []string{"US", "EU", ""}[r.IntN(3)]
	}
	if some(0.7) {
		parameters["versioning"] = some(0.5)
	}
	if some(0.6) {
		parameters["acl"] = "private"
	}
	xr := map[string]any{"apiVersion": "platform.example.com/v1alpha1", "kind": "XStorageBucket",
		"metadata": map[string]any{"name": "xr"}, "spec": map[string]any{"parameters": parameters}}
	if some(0.3) {
		xr["status"] = map[string]any{"bucketName": "old", "other": 1.0}
	}
	req := &fnv1.RunFunctionRequest{Meta: &fnv1.RequestMeta{Tag: "t"}, Observed: &fnv1.State{
		Composite: &fnv1.Resource{Resource: object(xr)}, Resources: map[string]*fnv1.Resource{}}}
	for _, name := range []string{"bucket", "acl", "other"} {
		if some(0.5) {
			resource := managed(map[string]string{"bucket": "Bucket", "acl": "BucketACL", "other": "Bucket"}[name], name)
			if some(0.4) {
				delete(resource["metadata"].(map[string]any)["annotations"].(map[string]any), externalName)
			}
			if some(0.3) {
				delete(resource["spec"].(map[string]any)["forProvider"].(map[string]any), "bucket")
			}
			req.Observed.Resources[name] = &fnv1.Resource{Resource: object(resource)}
		}
	}
	if some(0.7) {
		req.Desired = &fnv1.State{Resources: map[string]*fnv1.Resource{}}
		for _, name := range []string{"bucket", "acl", "earlier"} {
			if some(0.4) {
				kind := map[string]string{"bucket": "Bucket", "acl": "BucketACL", "earlier": "Thing"}[name]
				req.Desired.Resources[name] = &fnv1.Resource{Ready: fnv1.Ready(r.IntN(3)), Resource: object(map[string]any{
					"apiVersion": "storage.gcp.upbound.io/v1beta1", "kind": kind, "metadata": map[string]any{"labels": map[string]any{"a": "b"}},
					"spec": map[string]any{"forProvider": map[string]any{"bucket": "earlier", "labels": map[string]any{"x": "y"},
						"location": []any{"US", "ASIA"}[r.IntN(2)]}, "other": nil}})}
			}
		}
		if some(0.4) {
			req.Desired.Composite = &fnv1.Resource{Resource: object(map[string]any{"apiVersion": "platform.example.com/v1alpha1",
				"kind": "XStorageBucket", "status": map[string]any{"bucketName": "earlier", "more": true}})}
		}
	}
	if some(0.3) {
		req.Context = object(map[string]any{"example.org/key": map[string]any{"deep": []any{1.0, nil, "x"}}})
	}
	return req
}
