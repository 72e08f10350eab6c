// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// These tests put a daemon with `tune: on` between a reconciler's requests and a
// function, and compare each answer with the function's own answer to that very
// request.
//
// A published function runs if a variable or $PATH names its program. Its
// stand-in runs always (standins_test.go).

const (
	resourceName = "gotemplating.fn.crossplane.io/composition-resource-name"
	// stateCalls is for how many calls the words and numbers of a request stay.
	stateCalls = 20
	// callsAfter is how many calls follow the daemon's verdict.
	callsAfter = 300
)

// moment is what a request shows of the cluster: drift moves with each tick, the
// rest with each state.
type moment struct{ tick, state int }

type tunedCase struct {
	function string
	name     string
	reads    bool // the function's answers follow times
	request  func(moment) *fnv1.RunFunctionRequest
	config   func(moment) *structpb.Struct // what the function requires
}

var tunedCases = []tunedCase{
	{"function-auto-ready", "CronJob", true, reconciled("XReport", cronJob, nil), nil},
	{"function-auto-ready", "Deployment", false, reconciled("XWeb", deployment, nil), nil},
	{"function-auto-ready", "ReplicaSet", false, reconciled("XSet", replicaSet, nil), nil},
	{"function-go-templating", "copies a time", true, reconciled("XBucket", bucket, goTemplate("lastTransitionTime")), nil},
	{"function-go-templating", "copies a status", false, reconciled("XBucket", bucket, goTemplate("status")), nil},
	{"function-environment-configs", "one object", false, reconciled("XApp", bucket, map[string]any{
		"apiVersion": "environmentconfigs.fn.crossplane.io/v1beta1", "kind": "Input",
		"spec": map[string]any{"environmentConfigs": []any{map[string]any{"type": "Reference", "ref": map[string]any{"name": "example"}}}},
	}), environmentConfig},
}

// ------------------------------------------------------------------- Requests

func stamp(seconds int) string {
	return time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second).Format(time.RFC3339)
}

// object is one as the API server has it: each tick is a write of its status.
func object(m moment, apiVersion, kind string, generation int, rest map[string]any) *structpb.Struct {
	fields := map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{
			"name": "example", "uid": "0c1e8ad9-" + kind, "generation": generation, "resourceVersion": fmt.Sprint(1041877 + 3*m.tick),
			"managedFields": []any{map[string]any{
				"manager": "controller", "operation": "Update", "subresource": "status", "apiVersion": apiVersion, "fieldsType": "FieldsV1",
				"time": stamp(10 * m.tick), "fieldsV1": map[string]any{"f:status": map[string]any{}},
			}},
		},
	}
	for key, value := range rest {
		fields[key] = value
	}
	made, err := structpb.NewStruct(fields)
	if err != nil {
		panic(err)
	}
	return made
}

// reconciled makes requests of a step with one composed resource.
func reconciled(kind string, composed func(moment) *structpb.Struct, input map[string]any) func(moment) *fnv1.RunFunctionRequest {
	return func(m moment) *fnv1.RunFunctionRequest {
		observed := composed(m)
		desired := proto.Clone(observed).(*structpb.Struct)
		delete(desired.Fields, "status")
		desired.Fields["metadata"] = structpb.NewStructValue(&structpb.Struct{})
		req := &fnv1.RunFunctionRequest{
			Meta: &fnv1.RequestMeta{Capabilities: []fnv1.Capability{fnv1.Capability_CAPABILITY_CAPABILITIES, fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES}},
			Observed: &fnv1.State{
				Composite: &fnv1.Resource{Resource: object(m, "example.org/v1", kind, 1, map[string]any{"spec": map[string]any{"region": "eu"}})},
				Resources: map[string]*fnv1.Resource{"it": {Resource: observed}},
			},
			Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{"it": {Resource: desired}}},
		}
		if input != nil {
			made, err := structpb.NewStruct(input)
			if err != nil {
				panic(err)
			}
			req.Input = made
			req.Desired = nil
		}
		return req
	}
}

// cronJob runs every third tick. After four runs that succeed, two fail.
func cronJob(m moment) *structpb.Struct {
	const every = 300
	run := m.tick / 3
	success := stamp(run*every + run%6*10) // the first of four is as late as its schedule
	if run%6 >= 4 {
		success = stamp((run-run%6+3)*every + 30)
	}
	return object(m, "batch/v1", "CronJob", 1, map[string]any{
		"spec":   map[string]any{"schedule": "*/5 * * * *", "suspend": false},
		"status": map[string]any{"lastScheduleTime": stamp(run * every), "lastSuccessfulTime": success},
	})
}

// deployment scales between 3 and 5: it is settled, then the new generation is
// not yet observed, then one replica is missing or too many.
func deployment(m moment) *structpb.Struct {
	scaled := (m.state + 2) / 3
	want, before := 3+2*(scaled%2), 3+2*((scaled+1)%2)
	observed, updated, available := scaled+1, want, want
	switch m.state % 3 {
	case 1:
		observed, updated, available = scaled, before, before
	case 2:
		available = 4
	}
	return object(m, "apps/v1", "Deployment", scaled+1, map[string]any{
		"spec": map[string]any{"replicas": want},
		"status": map[string]any{
			"observedGeneration": observed, "replicas": updated, "updatedReplicas": updated, "availableReplicas": available,
			"conditions": []any{map[string]any{"type": "Available", "status": "True", "lastUpdateTime": stamp(10 * m.tick), "lastTransitionTime": stamp(0)}},
		},
	})
}

// replicaSet is one generation behind in each second state.
func replicaSet(m moment) *structpb.Struct {
	return object(m, "apps/v1", "ReplicaSet", 2+m.state/2, map[string]any{
		"spec":   map[string]any{"replicas": 3},
		"status": map[string]any{"observedGeneration": 1 + (m.state+1)/2, "replicas": 3, "availableReplicas": 3, "lastChecked": stamp(10 * m.tick)},
	})
}

// bucket changes its readiness with each state, and flaps in between: then only
// the time of its condition changes.
func bucket(m moment) *structpb.Struct {
	return object(m, "s3.example.org/v1", "Bucket", 1, map[string]any{
		"spec": map[string]any{"region": "eu"},
		"status": map[string]any{
			"atProvider": map[string]any{"lastChecked": stamp(10 * m.tick)},
			"conditions": []any{map[string]any{"type": "Ready", "status": []string{"True", "False"}[m.state%2], "lastTransitionTime": stamp(m.tick / 7 * 70)}},
		},
	})
}

func environmentConfig(m moment) *structpb.Struct {
	return object(m, "apiextensions.crossplane.io/v1beta1", "EnvironmentConfig", 1, map[string]any{"data": map[string]any{"color": fmt.Sprint("blue-", m.state)}})
}

// goTemplate copies a field of the bucket's condition. Its output is JSON, which
// is YAML, too.
func goTemplate(field string) map[string]any {
	return map[string]any{
		"apiVersion": "gotemplating.fn.crossplane.io/v1beta1", "kind": "GoTemplate", "source": "Inline",
		"inline": map[string]any{"template": `{"apiVersion": "s3.example.org/v1", "kind": "Bucket",
 "metadata": {"annotations": {"` + resourceName + `": "it", "example.org/copy": "{{ (index .observed.resources.it.resource.status.conditions 0).` + field + ` }}"}},
 "spec": {"region": "{{ .observed.composite.resource.spec.region }}"}}`},
	}
}

// ------------------------------------------------------------------ Functions

// publishedFunction is the program of a function: its variable's, or that in
// $PATH; "" if there is neither.
func publishedFunction(t *testing.T, name string) string {
	t.Helper()
	variable := "FNCACHE_" + strings.ReplaceAll(strings.ToUpper(name), "-", "_")
	if program := os.Getenv(variable); program != "" {
		return program
	}
	program, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("skipped: %s is neither in $PATH nor named by %s", name, variable)
	}
	return program
}

// startFunction runs a program with the flags that functions take.
func startFunction(t *testing.T, program string, environment ...string) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "fn.sock")
	cmd := exec.Command(program, "--insecure", "--network", "unix", "--address", socket)
	cmd.Env = append(os.Environ(), environment...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for start := time.Now(); time.Since(start) < patience; time.Sleep(time.Millisecond) {
		if conn, err := net.Dial("unix", socket); err == nil {
			conn.Close()
			return "unix:" + socket
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s: %v:\n%s", program, err, said.String())
		default:
		}
	}
	t.Fatalf("%s does not listen", program)
	return ""
}

// -------------------------------------------------------------------- Traffic

// tuned is one case between a daemon and a function.
type tuned struct {
	tunedCase
	d       *daemon
	direct  fnv1.FunctionRunnerServiceClient
	proxied fnv1.FunctionRunnerServiceClient
	first   *fnv1.RunFunctionResponse // to a request without what it requires

	calls, hits, wrong int
	answers            map[string]bool
	example            string // of a wrong answer
}

func newTuned(t *testing.T, c tunedCase, target string, settings ...string) *tuned {
	t.Helper()
	d := serve(t, target, append([]string{"--insecure", "--ttl-min", "24h", "--requeue-ttl", "original"}, settings...)...)
	u := &tuned{tunedCase: c, d: d, answers: map[string]bool{}}
	u.direct = fnv1.NewFunctionRunnerServiceClient(connect(t, target))
	u.proxied = fnv1.NewFunctionRunnerServiceClient(d.dial(t, nil))
	first, err := u.direct.RunFunction(within(t), c.request(moment{}))
	if err != nil {
		t.Fatal(err)
	}
	if required := len(first.GetRequirements().GetResources()) + len(first.GetRequirements().GetExtraResources()); (required > 0) != (c.config != nil) {
		t.Fatalf("the function requires %d resources", required)
	}
	u.first = first
	return u
}

func (u *tuned) call(t *testing.T, m moment) {
	t.Helper()
	req := u.request(m)
	supplied := func(names []string) map[string]*fnv1.Resources {
		resources := map[string]*fnv1.Resources{}
		for _, name := range names {
			resources[name] = &fnv1.Resources{Items: []*fnv1.Resource{{Resource: u.config(m)}}}
		}
		return resources
	}
	req.RequiredResources = supplied(keys(u.first.GetRequirements().GetResources()))
	req.ExtraResources = supplied(keys(u.first.GetRequirements().GetExtraResources()))
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	req.Meta.Tag = fmt.Sprintf("%x", sha256.Sum256(encoded))

	var header metadata.MD
	got, err := u.proxied.RunFunction(within(t), req, grpc.Header(&header))
	if err != nil {
		t.Fatal(err)
	}
	want, err := u.direct.RunFunction(within(t), req)
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range want.GetResults() {
		if result.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			t.Fatalf("the function refuses the request: %s", result.GetMessage())
		}
	}
	u.calls++
	if hit := cacheStatus(header); strings.HasPrefix(hit, "fncache; hit") && strings.HasSuffix(hit, "; detail=drift") {
		u.hits++
	}
	// With `requeue_ttl: original` the whole answer is the function's.
	if !proto.Equal(got, want) {
		u.wrong++
		u.example = fmt.Sprintf("call %d, %s:\ngot  %v\nwant %v", u.calls, cacheStatus(header), got, want)
	}
	answer, err := proto.MarshalOptions{Deterministic: true}.Marshal(untagged(want))
	if err != nil {
		t.Fatal(err)
	}
	u.answers[string(answer)] = true
}

func keys(selectors map[string]*fnv1.ResourceSelector) []string {
	var names []string
	for name := range selectors {
		names = append(names, name)
	}
	return names
}

func (u *tuned) tune(t *testing.T, name, label string) float64 {
	t.Helper()
	if label != "" {
		label = "," + label
	}
	return u.d.metric(t, "fncache_tune_"+name+`{function_name="function"`+label+"}")
}

// run calls until the daemon has its verdict, then through more states.
func (u *tuned) run(t *testing.T, verdict func() bool) {
	t.Helper()
	tick := 0
	for start := time.Now(); !verdict(); tick++ {
		if time.Since(start) > patience {
			t.Fatalf("no verdict after %d calls, %d of them wrong", u.calls, u.wrong)
		}
		u.call(t, moment{tick, 0})
	}
	for more := range callsAfter {
		u.call(t, moment{tick + more, more / stateCalls})
	}
	if len(u.answers) < 2 {
		t.Error("all answers are the same: this traffic shows little")
	}
}

// row checks a case and returns its line of the table.
func (u *tuned) row(t *testing.T, version string) string {
	t.Helper()
	questions := u.tune(t, "questions_total", `answer="same"`) + u.tune(t, "questions_total", `answer="differs"`) + u.tune(t, "questions_total", `answer="none"`)
	steps := u.tune(t, "steps", `state="reads"`)
	verdict := map[bool]string{true: "reads times", false: "proven"}[steps > 0]
	if u.wrong > 0 {
		t.Errorf("%d wrong answers, the last of %s", u.wrong, u.example)
	}
	if counted := u.tune(t, "hits_total", ""); counted != float64(u.hits) {
		t.Errorf("%d hits across drift, and metrics count %v", u.hits, counted)
	}
	if revoked := u.tune(t, "revoked_hits_total", ""); revoked > 0 {
		t.Errorf("%v hits were revoked", revoked)
	}
	proven, read := u.tune(t, "proofs_total", `result="proven"`), u.tune(t, "proofs_total", `result="read"`)
	said := strings.Contains(u.d.said(), "tune: the function reads drift") && strings.Contains(u.d.said(), "reads=times")
	if u.reads && (steps != 1 || read == 0 || u.hits > 0 || !said) {
		t.Errorf("%v steps read drift, %v proofs found it, %d hits across drift; the log says so: %v", steps, read, u.hits, said)
	}
	if !u.reads && (steps > 0 || read > 0 || u.hits == 0 || proven == 0) {
		t.Errorf("%v steps read drift, %v proofs found it, %v proofs, %d hits across drift", steps, read, proven, u.hits)
	}
	return fmt.Sprintf("%-29s %-16s %-14s calls=%d hits_across_drift=%d questions=%v verdict=%q wrong=%d", u.function, u.name, version, u.calls, u.hits, questions, verdict, u.wrong)
}

// TestTuning prints a line for each case, to the file that
// FNCACHE_INTEROP_TABLE names, too.
func TestTuning(t *testing.T) {
	var rows []string
	add := func(t *testing.T, row string) {
		t.Log(row)
		rows = append(rows, row)
	}
	checked := 0
	check := func(t *testing.T, c tunedCase, version, target string) {
		t.Helper()
		u := newTuned(t, c, target, "--tune", "on")
		u.run(t, func() bool {
			if c.reads {
				return u.tune(t, "steps", `state="reads"`) > 0
			}
			return u.hits > 0
		})
		add(t, u.row(t, version))
	}
	for _, c := range tunedCases {
		t.Run(c.function+" "+c.name+" stand-in", func(t *testing.T) {
			check(t, c, "stand-in", startFunction(t, os.Args[0], standInVariable+"="+c.function))
			checked++
		})
		t.Run(c.function+" "+c.name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Skipped() {
					add(t, fmt.Sprintf("%-29s %-16s skipped: it is neither in $PATH nor named by a variable", c.function, c.name))
				}
			})
			program := publishedFunction(t, c.function)
			version := "unknown"
			if info, err := buildinfo.ReadFile(program); err == nil {
				version = info.Main.Version
			}
			check(t, c, version, startFunction(t, program))
		})
	}
	if checked != 6 {
		t.Errorf("%d of 6 cases were checked with stand-ins", checked)
	}
	if file := os.Getenv("FNCACHE_INTEROP_TABLE"); file != "" {
		if err := os.WriteFile(file, []byte(strings.Join(rows, "\n")+"\n"), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// TestTuningTrafficShowsWrongHits promises falsely, by masks, that what a function
// reads is not read. The comparison must find that.
func TestTuningTrafficShowsWrongHits(t *testing.T) {
	for name, mask := range map[string]string{
		"CronJob":         "observed.resources.*.resource.status",
		"Deployment":      "observed.resources.*.resource.status",
		"ReplicaSet":      "observed.resources.*.resource.status.observedGeneration",
		"copies a time":   "observed.resources.*.resource.status.conditions",
		"copies a status": "observed.resources.*.resource.status.conditions",
		"one object":      "required_resources.*.items.*.resource.data",
	} {
		for _, c := range tunedCases {
			if c.name != name {
				continue
			}
			t.Run(name, func(t *testing.T) {
				u := newTuned(t, c, startFunction(t, os.Args[0], standInVariable+"="+c.function), "--tune", "on", "--mask", mask)
				u.run(t, func() bool { return u.calls > 100 })
				if u.wrong == 0 {
					t.Errorf("none of %d answers was wrong, %d hits across drift", u.calls, u.hits)
				}
			})
		}
	}
}
