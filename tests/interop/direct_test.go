// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// These tests make the same call twice, straight to the function and through
// the daemon, and compare what arrives.

// beside opens a connection to the function and one to a daemon in front of it.
func beside(t *testing.T, target string, options ...grpc.DialOption) (direct, proxied *grpc.ClientConn) {
	t.Helper()
	d := serve(t, target, "--insecure")
	return connect(t, target, options...), connect(t, d.listen, options...)
}

// without is md less one field.
func without(md metadata.MD, field string) metadata.MD {
	rest := maps.Clone(md)
	delete(rest, field)
	return rest
}

func TestContentSubtypeIsKept(t *testing.T) {
	var seen sight
	fn := &echo{do: func(ctx context.Context, _ string) error {
		seen.see(ctx)
		return nil
	}}
	direct, proxied := beside(t, fn.start(t))
	for _, test := range []struct {
		name    string
		want    string
		options []grpc.CallOption
	}{
		{"none", "application/grpc", nil},
		{"proto", "application/grpc+proto", []grpc.CallOption{grpc.CallContentSubtype("proto")}},
	} {
		for _, m := range methods {
			t.Run(test.name+" "+m.name, func(t *testing.T) {
				text := "of " + t.Name()
				var answered [2][]string
				for i, conn := range []*grpc.ClientConn{direct, proxied} {
					var header metadata.MD
					if err := m.call(within(t), conn, text, append(test.options, grpc.Header(&header))...); err != nil {
						t.Fatal(err)
					}
					if got := seen.take(t).Get("content-type"); !slices.Equal(got, []string{test.want}) {
						t.Errorf("connection %d: the function saw %q", i, got)
					}
					answered[i] = header.Get("content-type")
				}
				if !slices.Equal(answered[0], answered[1]) {
					t.Errorf("answered with %q, directly with %q", answered[1], answered[0])
				}
				if m.name != runFunction.name {
					return
				}
				var header metadata.MD
				if err := m.call(within(t), proxied, text, append(test.options, grpc.Header(&header))...); err != nil {
					t.Fatal(err)
				}
				if got := cacheStatus(header); !strings.HasPrefix(got, "fncache; hit") {
					t.Errorf("cache-status %q", got)
				}
				if got := header.Get("content-type"); len(got) != 1 || !strings.HasPrefix(got[0], "application/grpc") {
					t.Errorf("a hit with %q", got)
				}
			})
		}
	}
}

func TestStatusMessagesArriveAsDirect(t *testing.T) {
	messages := []string{
		"",
		"plain",
		"für 東京 🙂",
		"100 % of %41 and %zz, %",
		"two\nlines\r\nand a tab\t",
		"ends in a space ",
		" begins with one",
		" ",
		"\x00\x01\x7f",
		"not UTF-8: \xff\xc3",
		"\"quoted\", with; separators = \\",
	}
	// The text of a call is the message's number.
	numbers := map[string]string{}
	for i, message := range messages {
		numbers[fmt.Sprint(i)] = message
	}
	fn := &echo{do: func(_ context.Context, text string) error { return status.Error(codes.Aborted, numbers[text]) }}
	direct, proxied := beside(t, fn.start(t))
	for i, message := range messages {
		for _, m := range methods {
			t.Run(fmt.Sprintf("%q %s", message, m.name), func(t *testing.T) {
				want := status.Convert(m.call(within(t), direct, fmt.Sprint(i)))
				if want.Code() != codes.Aborted {
					t.Fatal(want)
				}
				// grpc-go sends blanks at the ends as they are, and a field must
				// not have them (RFC 9113, 8.2.1).
				stripped := want.Proto()
				stripped.Message = strings.Trim(stripped.Message, " ")
				equal(t, status.Convert(m.call(within(t), proxied, fmt.Sprint(i))).Proto(), stripped)
			})
		}
	}
}

// TestWindowsAndLargeMessages has callers and functions with their windows left
// to BDP pings, which is the default, and with windows of 1 MiB.
func TestWindowsAndLargeMessages(t *testing.T) {
	const size, messages = 5 << 20, 4
	const window = 1 << 20
	callerWindows := []grpc.DialOption{grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window)}
	functionWindows := []grpc.ServerOption{grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window)}
	for _, test := range []struct {
		name     string
		caller   []grpc.DialOption
		function []grpc.ServerOption
	}{
		{"defaults", nil, nil},
		{"caller", callerWindows, nil},
		{"function", nil, functionWindows},
		{"both", callerWindows, functionWindows},
	} {
		t.Run(test.name, func(t *testing.T) {
			fn := &echo{}
			d := serve(t, fn.start(t, test.function...), "--insecure")
			var opened dials
			conn := connect(t, d.listen, append(test.caller, opened.count(), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))...)
			text := strings.Repeat("0123456789abcdef", size/16)
			for i := range messages {
				for _, m := range methods {
					if err := m.call(within(t), conn, fmt.Sprint(i, text)); err != nil {
						t.Fatalf("%s: %v", m.name, err)
					}
				}
			}
			var header metadata.MD
			if err := runFunction.call(within(t), conn, fmt.Sprint(0, text), grpc.Header(&header)); err != nil {
				t.Fatal(err)
			}
			if got := cacheStatus(header); !strings.HasPrefix(got, "fncache; hit") {
				t.Errorf("cache-status %q", got)
			}
			streamBothWays(t, conn, messages, text)
			opened.wasOne(t)
		})
	}
}

// streamBothWays sends messages ahead of their answers on one stream.
func streamBothWays(t *testing.T, conn *grpc.ClientConn, messages int, text string) {
	t.Helper()
	stream, err := testgrpc.NewTestServiceClient(conn).FullDuplexCall(within(t))
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() {
		defer stream.CloseSend()
		for i := range messages {
			body := []byte(fmt.Sprint(i, text))
			if err := stream.Send(&testgrpc.StreamingOutputCallRequest{Payload: &testgrpc.Payload{Body: body}}); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for i := range messages {
		rsp, err := stream.Recv()
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if string(rsp.GetPayload().GetBody()) != fmt.Sprint(i, text) {
			t.Fatalf("answer %d is another one", i)
		}
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the answers: %v", err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// TestSmallWindowsAndManyMessages has those who take much, and say so by
// WINDOW_UPDATEs for each quarter of a small window and a PING for each message
// of a stream, keep their connections.
func TestSmallWindowsAndManyMessages(t *testing.T) {
	const window, size, messages = 64 << 10, 1 << 20, 200
	for _, windows := range []struct {
		name     string
		caller   []grpc.DialOption
		function []grpc.ServerOption
	}{
		{"defaults", nil, nil},
		{"windows of 64 KiB",
			[]grpc.DialOption{grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window)},
			[]grpc.ServerOption{grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window)}},
	} {
		for _, test := range []struct {
			name string
			call func(*testing.T, testgrpc.TestServiceClient)
		}{
			{"download", func(t *testing.T, client testgrpc.TestServiceClient) { download(t, client, messages, size) }},
			{"upload", func(t *testing.T, client testgrpc.TestServiceClient) { upload(t, client, messages, size) }},
			{"ping-pong", func(t *testing.T, client testgrpc.TestServiceClient) {
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() { pingPong(t, client, 3000) })
				}
				all.Wait()
			}},
		} {
			t.Run(windows.name+" "+test.name, func(t *testing.T) {
				d := serve(t, (&echo{}).start(t, windows.function...), "--insecure")
				var opened dials
				test.call(t, testgrpc.NewTestServiceClient(connect(t, d.listen, append(windows.caller, opened.count())...)))
				opened.wasOne(t)
			})
		}
	}
}

// download has the function send messages of a size.
func download(t *testing.T, client testgrpc.TestServiceClient, messages, size int) {
	t.Helper()
	ask := &testgrpc.StreamingOutputCallRequest{}
	for range messages {
		ask.ResponseParameters = append(ask.ResponseParameters, &testgrpc.ResponseParameters{Size: int32(size)})
	}
	stream, err := client.StreamingOutputCall(within(t), ask)
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		rsp, err := stream.Recv()
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if got := len(rsp.GetPayload().GetBody()); got != size {
			t.Fatalf("message %d has %d bytes", i, got)
		}
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the messages: %v", err)
	}
}

// upload sends it messages of a size.
func upload(t *testing.T, client testgrpc.TestServiceClient, messages, size int) {
	t.Helper()
	stream, err := client.StreamingInputCall(within(t))
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, size)
	for range messages {
		if stream.Send(&testgrpc.StreamingInputCallRequest{Payload: &testgrpc.Payload{Body: body}}) != nil {
			break // the status says why
		}
	}
	rsp, err := stream.CloseAndRecv()
	if err != nil {
		t.Fatal(err)
	}
	if got := int(rsp.GetAggregatedPayloadSize()); got != messages*size {
		t.Errorf("%d bytes arrived", got)
	}
}

// pingPong sends messages of a byte, each when the one before is answered.
func pingPong(t *testing.T, client testgrpc.TestServiceClient, rounds int) {
	stream, err := client.FullDuplexCall(within(t))
	if err != nil {
		t.Error(err)
		return
	}
	for i := range rounds {
		err := stream.Send(&testgrpc.StreamingOutputCallRequest{Payload: &testgrpc.Payload{Body: []byte{1}}})
		if err == nil {
			_, err = stream.Recv()
		}
		if err != nil {
			t.Errorf("round %d: %v", i, err)
			return
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
}

// packing says how the last message arrived at one end.
type packing struct {
	mu       sync.Mutex
	encoding string
	packed   bool
}

func (p *packing) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (p *packing) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (p *packing) HandleConn(context.Context, stats.ConnStats)                       {}

func (p *packing) HandleRPC(_ context.Context, event stats.RPCStats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *stats.InHeader:
		p.encoding = e.Compression
	case *stats.InPayload:
		p.packed = e.CompressedLength < e.Length
	}
}

func (p *packing) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.packed {
		return "packed as " + p.encoding
	}
	return "plain"
}

// TestCompressedMessagesPassAsTheyAre packs requests, answers, both and neither.
func TestCompressedMessagesPassAsTheyAre(t *testing.T) {
	const plain, packed = "plain", "packed as gzip"
	encodings := map[string]string{plain: "identity", packed: gzip.Name}
	var atFunction, atCaller packing
	fn := &echo{do: func(ctx context.Context, text string) error {
		answer, _, _ := strings.Cut(text, ":")
		return grpc.SetSendCompressor(ctx, encodings[answer])
	}}
	direct, proxied := beside(t, fn.start(t, grpc.StatsHandler(&atFunction)), grpc.WithStatsHandler(&atCaller))
	for _, request := range []string{plain, packed} {
		for _, answer := range []string{plain, packed} {
			for _, m := range methods {
				t.Run(fmt.Sprintf("request %s answer %s %s", request, answer, m.name), func(t *testing.T) {
					text := answer + ": for a request " + request + strings.Repeat(" and so on", 10_000)
					for _, conn := range []*grpc.ClientConn{direct, proxied} {
						if err := m.call(within(t), conn, text, grpc.UseCompressor(encodings[request])); err != nil {
							t.Fatal(err)
						}
						if got := atFunction.String(); got != request {
							t.Errorf("the request arrived %s", got)
						}
						if got := atCaller.String(); got != answer {
							t.Errorf("the answer arrived %s", got)
						}
					}
				})
			}
		}
	}
}

func TestCompressionIsNoPartOfTheKey(t *testing.T) {
	for _, test := range []struct{ first, second string }{
		{"identity", gzip.Name},
		{gzip.Name, "identity"},
		{gzip.Name, gzip.Name},
	} {
		t.Run(test.first+" then "+test.second, func(t *testing.T) {
			fn := &echo{}
			conn := serve(t, fn.start(t), "--insecure").dial(t, nil)
			text := strings.Repeat("and so on ", 10_000)
			for i, encoding := range []string{test.first, test.second} {
				var header metadata.MD
				if err := runFunction.call(within(t), conn, text, grpc.UseCompressor(encoding), grpc.Header(&header)); err != nil {
					t.Fatal(err)
				}
				want := []string{"fncache; fwd=miss; stored", "fncache; hit"}[i]
				if got := cacheStatus(header); !strings.HasPrefix(got, want) {
					t.Errorf("call %d: cache-status %q", i, got)
				}
			}
			if runs := fn.runs.Load(); runs != 1 {
				t.Errorf("%d runs", runs)
			}
		})
	}
}

// outcome is all that a caller learns of a call.
type outcome struct {
	header, trailer metadata.MD
	status          *status.Status
}

func outcomeOf(t *testing.T, m method, conn *grpc.ClientConn, text string, pairs []string) outcome {
	t.Helper()
	var o outcome
	ctx := metadata.AppendToOutgoingContext(within(t), pairs...)
	o.status = status.Convert(m.call(ctx, conn, text, grpc.Header(&o.header), grpc.Trailer(&o.trailer)))
	return o
}

func TestMetadataArrivesAsDirect(t *testing.T) {
	sent := []string{
		"x-plain", "value",
		"x-twice", "first", "x-between", "", "x-twice", "second", "x-twice", "first",
		"x-commas", "a, b,c", "x-commas", "d",
		"x-odd", "~!@#$^&*()_+{}|:\"<>?`-=[]\\;',./%20", "x-spaces", "ends in one ",
		"x-raw-bin", "\x00\x01,\xff ", "x-raw-bin", "", "x-raw-bin", "\xfe",
		"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	failed, err := status.New(codes.ResourceExhausted, "later").WithDetails(&errdetails.ErrorInfo{Reason: "QUOTA", Domain: "example.org"})
	if err != nil {
		t.Fatal(err)
	}
	answered := []string{"x-answer", "one", "x-answer", "two", "x-answer-bin", "\x00\xff", "x-answer-bin", "", "server", "fn/1.0"}
	header := metadata.Pairs(append([]string{"x-where", "header"}, answered...)...)
	trailer := metadata.Pairs(append([]string{"x-where", "trailer"}, answered...)...)
	for _, test := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"nothing of the function's own", func(context.Context) error { return nil }},
		{"header and trailer", func(ctx context.Context) error {
			return errors.Join(grpc.SetHeader(ctx, header), grpc.SetTrailer(ctx, trailer))
		}},
		{"status with details", func(context.Context) error { return failed.Err() }},
		{"status and trailer", func(ctx context.Context) error {
			return errors.Join(grpc.SetTrailer(ctx, trailer), failed.Err())
		}},
		{"header sent, then a status", func(ctx context.Context) error {
			if err := errors.Join(grpc.SendHeader(ctx, header), grpc.SetTrailer(ctx, trailer)); err != nil {
				return err
			}
			return failed.Err()
		}},
	} {
		for _, m := range methods {
			t.Run(test.name+" "+m.name, func(t *testing.T) {
				var seen sight
				fn := &echo{do: func(ctx context.Context, _ string) error {
					seen.see(ctx)
					return test.do(ctx)
				}}
				direct, proxied := beside(t, fn.start(t), grpc.WithUserAgent("runner/1.2.3 (of a test)"), grpc.WithAuthority("fn.example.org"))

				want := outcomeOf(t, m, direct, "same", sent)
				wantSeen := seen.take(t)
				got := outcomeOf(t, m, proxied, "same", sent)
				gotSeen := seen.take(t)

				for _, field := range []string{":authority", "content-type", "grpc-accept-encoding", "user-agent"} {
					if len(wantSeen.Get(field)) == 0 {
						t.Errorf("no %s in a direct call", field)
					}
				}
				if loop := gotSeen.Get("cdn-loop"); len(loop) != 1 || !strings.HasPrefix(loop[0], "fncache-") {
					t.Errorf("cdn-loop %q", loop)
				}
				if spaces := wantSeen.Get("x-spaces"); !slices.Equal(spaces, []string{"ends in one "}) {
					t.Errorf("x-spaces arrives directly as %q", spaces)
				}
				wantSeen.Set("x-spaces", "ends in one")
				same(t, "the function's metadata", without(gotSeen, "cdn-loop"), wantSeen)

				cached := 0
				if m.name == runFunction.name {
					cached = 1
				}
				if in := len(got.header.Get("cache-status")) + len(got.trailer.Get("cache-status")); in != cached {
					t.Errorf("%d cache-status fields", in)
				}
				same(t, "header", without(got.header, "cache-status"), want.header)
				same(t, "trailer", without(got.trailer, "cache-status"), want.trailer)
				equal(t, got.status.Proto(), want.status.Proto())
			})
		}
	}
}

// same names every field that differs.
func same(t *testing.T, what string, got, want metadata.MD) {
	t.Helper()
	all := metadata.Join(got, want)
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if !reflect.DeepEqual(got[field], want[field]) {
			t.Errorf("%s: %s is %q, directly %q", what, field, got[field], want[field])
		}
	}
}

func TestLoopsAreFound(t *testing.T) {
	var seen sight
	fn := &echo{do: func(ctx context.Context, _ string) error {
		seen.see(ctx)
		return nil
	}}
	conn := serve(t, fn.start(t), "--insecure").dial(t, nil)
	const known = "known"
	if err := runFunction.call(within(t), conn, known); err != nil {
		t.Fatal(err)
	}
	first := seen.take(t).Get("cdn-loop")
	if len(first) != 1 || !strings.HasPrefix(first[0], "fncache-") {
		t.Fatalf("the function saw cdn-loop %q", first)
	}
	own := first[0]

	for _, test := range []struct {
		name   string
		values []string
		passes bool
	}{
		{"ours", []string{own}, false},
		{"ours behind another's", []string{"cdn.example.org, " + own}, false},
		{"ours before another's, with a parameter", []string{own + "; hops=1, cdn.example.org"}, false},
		{"ours in a second field", []string{"cdn.example.org", own}, false},
		{"another's", []string{"cdn.example.org; v=\"1.0\""}, true},
		{"another daemon's", []string{"fncache-0123456789abcdef"}, true},
		{"two others'", []string{"cdn.example.org", "fncache-0123456789abcdef, other"}, true},
		{"one that begins as ours", []string{own + "0"}, true},
	} {
		for _, m := range methods {
			t.Run(test.name+" "+m.name, func(t *testing.T) {
				ctx := within(t)
				for _, value := range test.values {
					ctx = metadata.AppendToOutgoingContext(ctx, "cdn-loop", value)
				}
				before := fn.runs.Load()
				err := m.call(ctx, conn, t.Name())
				if !test.passes {
					if status.Code(err) != codes.FailedPrecondition {
						t.Errorf("got %v", err)
					}
					if fn.runs.Load() != before {
						t.Error("the function ran")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				got := strings.Join(seen.take(t).Get("cdn-loop"), ", ")
				if want := strings.Join(append(test.values, own), ", "); got != want {
					t.Errorf("the function saw %q, not %q", got, want)
				}
			})
		}
	}
	t.Run("ours and in the cache", func(t *testing.T) {
		ctx := metadata.AppendToOutgoingContext(within(t), "cdn-loop", own)
		if err := runFunction.call(ctx, conn, known); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("got %v", err)
		}
	})
}

func TestDaemonsInARowAreNoLoop(t *testing.T) {
	var seen sight
	fn := &echo{do: func(ctx context.Context, _ string) error {
		seen.see(ctx)
		return nil
	}}
	near := serve(t, fn.start(t), "--insecure")
	conn := serve(t, near.listen, "--insecure").dial(t, nil)
	for _, m := range methods {
		if err := m.call(within(t), conn, "through both"); err != nil {
			t.Fatalf("%s: %v", m.name, err)
		}
		loop := strings.Split(strings.Join(seen.take(t).Get("cdn-loop"), ","), ",")
		if len(loop) != 2 || strings.TrimSpace(loop[0]) == strings.TrimSpace(loop[1]) {
			t.Errorf("%s: the function saw cdn-loop %q", m.name, loop)
		}
	}
}
