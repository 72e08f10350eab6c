// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	function "github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// patience bounds every wait for something that must happen.
const patience = 60 * time.Second

// daemon is one running `fncache serve`.
type daemon struct {
	listen string
	admin  string
	said   func() string // its log so far
	cmd    *exec.Cmd
}

var listening = regexp.MustCompile(`listening on (\S+:\d+)`)

// serve starts the binary with one function behind it and waits until it listens.
func serve(t *testing.T, upstream string, args ...string) *daemon {
	t.Helper()
	binary := os.Getenv("FNCACHE_BINARY")
	if binary == "" {
		t.Fatal("FNCACHE_BINARY does not name the binary to test")
	}
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--admin-socket", "", "--upstream", upstream}, args...)
	d := &daemon{cmd: exec.Command(binary, args...)}
	stderr, err := d.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	var mu sync.Mutex
	var log strings.Builder
	d.said = func() string {
		mu.Lock()
		defer mu.Unlock()
		return log.String()
	}
	go func() {
		lines := bufio.NewScanner(stderr)
		open := true
		for lines.Scan() {
			mu.Lock()
			log.WriteString(lines.Text() + "\n")
			mu.Unlock()
			m := listening.FindStringSubmatch(lines.Text())
			if m == nil || !open {
				continue
			}
			if strings.Contains(lines.Text(), "admin") {
				d.admin = m[1]
			} else {
				d.listen = m[1]
			}
			if d.admin != "" && d.listen != "" {
				open = false
				close(ready)
			}
		}
		io.Copy(io.Discard, stderr)
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		if err := d.cmd.Wait(); err != nil {
			t.Errorf("fncache serve: %v", err)
		}
		if t.Failed() {
			t.Logf("fncache said:\n%s", d.said())
		}
	})
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatal("fncache serve does not listen")
	}
	return d
}

// metric reads one sample's value off the daemon's /metrics; name as exposed,
// labels included.
func (d *daemon) metric(t *testing.T, name string) float64 {
	t.Helper()
	answer, err := http.Get("http://" + d.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	t.Fatalf("no sample %q in /metrics", name)
	return 0
}

// connect opens one connection to a target, in plaintext unless options say
// otherwise.
func connect(t *testing.T, target string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options = append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// dial opens one connection to the daemon.
func (d *daemon) dial(t *testing.T, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	if creds == nil {
		return connect(t, d.listen)
	}
	return connect(t, d.listen, grpc.WithTransportCredentials(creds))
}

// dials counts the connections that a caller opens.
type dials struct{ atomic.Int64 }

func (n *dials) count() grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		n.Add(1)
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	})
}

// wasOne fails the test if the caller lost its connection.
func (n *dials) wasOne(t *testing.T) {
	t.Helper()
	if opened := n.Load(); opened != 1 {
		t.Errorf("the caller opened %d connections", opened)
	}
}

// sdkFunction serves fn as the SDK's own main does, and returns its gRPC target.
func sdkFunction(t *testing.T, fn fnv1.FunctionRunnerServiceServer, options ...function.ServeOption) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "fn.sock")
	options = append([]function.ServeOption{
		function.Listen("unix", socket),
		function.WithMetricsServer(""),
		function.WithHealthServer(healthServer()),
	}, options...)
	failed := make(chan error, 1)
	go func() { failed <- function.Serve(fn, options...) }()
	for start := time.Now(); time.Since(start) < patience; time.Sleep(time.Millisecond) {
		if conn, err := net.Dial("unix", socket); err == nil {
			conn.Close()
			return "unix:" + socket
		}
		select {
		case err := <-failed:
			t.Fatal(err)
		default:
		}
	}
	t.Fatal("the function does not listen")
	return ""
}

func healthServer() healthpb.HealthServer {
	s := health.NewServer()
	s.SetServingStatus("fn", healthpb.HealthCheckResponse_SERVING)
	return s
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for something that must happen.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for start := time.Now(); !happened(); time.Sleep(time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// receive waits for what must come out of a channel.
func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: not within %v", what, patience)
		panic("unreachable")
	}
}

func equal(t *testing.T, got, want proto.Message) {
	t.Helper()
	if !proto.Equal(got, want) {
		t.Fatalf("got  %v\nwant %v", got, want)
	}
}
