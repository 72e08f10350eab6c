// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// loadTime is how long the tests that press the daemon do so: a minute where
// FNCACHE_INTEROP_LONG is set.
func loadTime() time.Duration {
	if os.Getenv("FNCACHE_INTEROP_LONG") != "" {
		return time.Minute
	}
	return 3 * time.Second
}

// underLoad is a context for calls of a test that goes on for loadTime.
func underLoad(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), loadTime()+patience)
	t.Cleanup(cancel)
	return ctx
}

func TestOneCallerAtFullRate(t *testing.T) {
	for _, test := range []struct {
		name   string
		atOnce int
	}{
		{"one at a time", 1},
		{"64 at once", 64},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := serve(t, new(echo).start(t), "--insecure")
			var opened dials
			conn := connect(t, d.listen, opened.count())
			ctx := underLoad(t)
			var calls atomic.Int64
			var callers sync.WaitGroup
			end := time.Now().Add(loadTime())
			for caller := range test.atOnce {
				callers.Go(func() {
					for i := 0; time.Now().Before(end); i++ {
						text := "what was asked before"
						if i%16 == 0 {
							text = fmt.Sprint("new-", caller, "-", i)
						}
						if err := runFunction.call(ctx, conn, text); err != nil {
							t.Errorf("call %d of caller %d: %v", i, caller, err)
							return
						}
						calls.Add(1)
					}
				})
			}
			callers.Wait()
			t.Logf("%d calls in %v", calls.Load(), loadTime())
			opened.wasOne(t)
		})
	}
}

// TestCancellationsLeaveTheConnectionAlone has a caller that gives up 500 calls
// a second while the function works on them, and another one on its connection.
func TestCancellationsLeaveTheConnectionAlone(t *testing.T) {
	const perSecond = 500
	var reached, running atomic.Int64
	fn := &echo{do: func(ctx context.Context, text string) error {
		if !strings.HasPrefix(text, "slow") {
			return nil
		}
		reached.Add(1)
		running.Add(1)
		defer running.Add(-1)
		<-ctx.Done()
		return ctx.Err()
	}}
	d := serve(t, fn.start(t), "--insecure")
	var opened dials
	conn := connect(t, d.listen, opened.count())
	ctx := underLoad(t)
	start := time.Now()
	end := start.Add(loadTime())

	var callers sync.WaitGroup
	callers.Go(func() {
		for i := 0; time.Now().Before(end); i++ {
			text := "what was asked before"
			if i%2 == 0 {
				text = fmt.Sprint("new-", i)
			}
			m := methods[i%len(methods)]
			if err := m.call(ctx, conn, text); err != nil {
				t.Errorf("%s %d beside: %v", m.name, i, err)
				return
			}
		}
	})
	var given int64
	for ; time.Now().Before(end) && !t.Failed(); given++ {
		time.Sleep(time.Until(start.Add(time.Duration(given) * time.Second / perSecond)))
		m := methods[given%int64(len(methods))]
		text := fmt.Sprint("slow-", given)
		age := time.Duration(20+20*(given%10)) * time.Millisecond
		callers.Go(func() {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(age, cancel)
			if err := m.call(ctx, conn, text); status.Code(err) != codes.Canceled {
				t.Errorf("a cancelled %s: %v", m.name, err)
			}
		})
	}
	callers.Wait()
	t.Logf("%d calls cancelled, %d of them in the function", given, reached.Load())
	if reached.Load() < given/2 {
		t.Error("most of the calls were over before the function had them")
	}
	eventually(t, "the function's calls end", func() bool { return running.Load() == 0 })
	if err := runFunction.call(ctx, conn, "afterwards"); err != nil {
		t.Error(err)
	}
	opened.wasOne(t)
}

// TestStatusOverTheMetadataLimitFailsAlone has a function that ends calls with
// statuses around the 64 KiB that the daemon takes.
func TestStatusOverTheMetadataLimitFailsAlone(t *testing.T) {
	for _, message := range []struct {
		name    string
		text    string
		arrives bool
	}{
		{"40 KB", strings.Repeat("x", 40_000), true},
		{"100 KB", strings.Repeat("x", 100_000), false},
		{"40 KB that are 120 KB when encoded", strings.Repeat("é", 20_000), false},
	} {
		for _, m := range methods {
			t.Run(message.name+" "+m.name, func(t *testing.T) {
				held := newGate()
				fn := &echo{do: func(ctx context.Context, text string) error {
					if text == "fail" {
						return status.Error(codes.FailedPrecondition, message.text)
					}
					return held.do(ctx, text)
				}}
				d := serve(t, fn.start(t), "--insecure")
				var opened dials
				conn := connect(t, d.listen, opened.count())
				held.beside(t, conn, func() {
					err := m.call(within(t), conn, "fail")
					got := status.Convert(err)
					if message.arrives && (got.Code() != codes.FailedPrecondition || got.Message() != message.text) {
						t.Errorf("%v: %.100s", got.Code(), got.Message())
					}
					if !message.arrives && (err == nil || got.Code() == codes.DeadlineExceeded) {
						t.Errorf("instead of an error at once: %v", err)
					}
					t.Logf("%v: %.100s", got.Code(), got.Message())
				})
				for _, later := range methods {
					if err := later.call(within(t), conn, "later"); err != nil {
						t.Errorf("%s afterwards: %v", later.name, err)
					}
				}
				opened.wasOne(t)
			})
		}
	}
}

// TestMetadataOverTheLimitFailsAlone has callers with metadata around the 64 KiB
// that the daemon takes, of which it tells them when they connect.
func TestMetadataOverTheLimitFailsAlone(t *testing.T) {
	fields := func(count, size int) []string {
		var pairs []string
		for i := range count {
			pairs = append(pairs, fmt.Sprint("x-large-", i), strings.Repeat("v", size))
		}
		return pairs
	}
	for _, test := range []struct {
		name   string
		pairs  []string
		passes bool
	}{
		{"48 KiB", fields(1, 48<<10), true},
		{"48 fields of 1 KiB", fields(48, 1<<10), true},
		{"100 KiB", fields(1, 100<<10), false},
		{"100 fields of 1 KiB", fields(100, 1<<10), false},
	} {
		for _, m := range methods {
			t.Run(test.name+" "+m.name, func(t *testing.T) {
				held := newGate()
				var arrived sight
				fn := &echo{do: func(ctx context.Context, text string) error {
					if text == "large" {
						arrived.see(ctx)
					}
					return held.do(ctx, text)
				}}
				d := serve(t, fn.start(t), "--insecure")
				var opened dials
				conn := connect(t, d.listen, opened.count())
				held.beside(t, conn, func() {
					err := m.call(metadata.AppendToOutgoingContext(within(t), test.pairs...), conn, "large")
					if !test.passes {
						if err == nil || status.Code(err) == codes.DeadlineExceeded {
							t.Errorf("instead of an error at once: %v", err)
						}
						if arrived.last.Load() != nil {
							t.Error("it reached the function")
						}
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					md := arrived.take(t)
					for i := 0; i < len(test.pairs); i += 2 {
						if got := md.Get(test.pairs[i]); len(got) != 1 || got[0] != test.pairs[i+1] {
							t.Errorf("%s did not arrive", test.pairs[i])
						}
					}
				})
				if err := m.call(within(t), conn, "later"); err != nil {
					t.Errorf("afterwards: %v", err)
				}
				opened.wasOne(t)
			})
		}
	}
}

// TestCallersThatLeaveEndTheFunctionsCall has a function that would never answer.
func TestCallersThatLeaveEndTheFunctionsCall(t *testing.T) {
	type view struct {
		deadline time.Time
		bounded  bool
	}
	// hanging returns a connection over which one call was answered, and what
	// the function sees of the others.
	hanging := func(t *testing.T) (*grpc.ClientConn, chan view, chan struct{}) {
		views := make(chan view, 1)
		ended := make(chan struct{}, 1)
		fn := &echo{do: func(ctx context.Context, text string) error {
			if text == "connect" {
				return nil
			}
			at, bounded := ctx.Deadline()
			views <- view{at, bounded}
			<-ctx.Done()
			ended <- struct{}{}
			return ctx.Err()
		}}
		conn := serve(t, fn.start(t), "--insecure").dial(t, nil)
		if err := runFunction.call(within(t), conn, "connect"); err != nil {
			t.Fatal(err)
		}
		return conn, views, ended
	}
	for _, m := range methods {
		t.Run("deadline "+m.name, func(t *testing.T) {
			// attempt says what was late, as it may be on a busy machine.
			attempt := func(deadline time.Duration) string {
				conn, views, ended := hanging(t)
				start := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), deadline)
				defer cancel()
				err := m.call(ctx, conn, "hang until "+m.name)
				took := time.Since(start)
				if status.Code(err) != codes.DeadlineExceeded {
					t.Errorf("got %v", err)
				}
				if took > 2*deadline {
					return fmt.Sprintf("the caller waited %v", took)
				}
				var seen view
				select {
				case seen = <-views:
				case <-time.After(deadline):
					return "the call did not reach the function"
				}
				// The function's clock starts when the request arrives there.
				if early, late := start.Add(deadline/2), start.Add(2*deadline); !seen.bounded || seen.deadline.Before(early) || seen.deadline.After(late) {
					return fmt.Sprintf("the function saw a deadline of %v after the start", seen.deadline.Sub(start))
				}
				receive(t, "the end of the function's call", ended)
				return ""
			}
			for deadline := time.Second; ; deadline *= 2 {
				late := attempt(deadline)
				if late == "" {
					break
				}
				if deadline > 8*time.Second {
					t.Fatal(late)
				}
				t.Logf("within %v: %s", deadline, late)
			}
		})
		t.Run("cancelled "+m.name, func(t *testing.T) {
			conn, views, ended := hanging(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			failed := make(chan error, 1)
			go func() { failed <- m.call(ctx, conn, "hang until cancelled "+m.name) }()
			seen := receive(t, "the function's call", views)
			if seen.bounded {
				t.Errorf("the function saw a deadline in %v", time.Until(seen.deadline))
			}
			cancel()
			if err := receive(t, "the caller's end", failed); status.Code(err) != codes.Canceled {
				t.Errorf("got %v", err)
			}
			receive(t, "the end of the function's call", ended)
		})
	}
}

// together makes calls at once, none of which may fail.
func together(t *testing.T, calls int, call func(i int) error) {
	t.Helper()
	failed := make(chan error, calls)
	start := make(chan struct{})
	var callers sync.WaitGroup
	for i := range calls {
		callers.Go(func() {
			<-start
			if err := call(i); err != nil {
				failed <- err
			}
		})
	}
	close(start)
	callers.Wait()
	if len(failed) != 0 {
		t.Errorf("%d of %d calls failed, the first with: %v", len(failed), calls, <-failed)
	}
}

// TestMoreCallsThanStreams has more calls at once than the daemon allows on a
// connection. grpc-go makes them wait.
func TestMoreCallsThanStreams(t *testing.T) {
	const calls = 3000
	for _, m := range methods {
		t.Run(m.name, func(t *testing.T) {
			fn := &echo{}
			d := serve(t, fn.start(t), "--insecure")
			var opened dials
			conn := connect(t, d.listen, opened.count())
			ctx := within(t)
			together(t, calls, func(i int) error { return m.call(ctx, conn, fmt.Sprint("one-", i)) })
			if runs := fn.runs.Load(); runs != calls {
				t.Errorf("%d runs", runs)
			}
			opened.wasOne(t)
		})
	}
}

// TestFunctionWithFewStreams has one that takes ten calls on a connection and
// answers none before all of them are there.
func TestFunctionWithFewStreams(t *testing.T) {
	const calls = 100
	for _, m := range methods {
		t.Run(m.name, func(t *testing.T) {
			var here atomic.Int64
			all := make(chan struct{})
			fn := &echo{do: func(ctx context.Context, _ string) error {
				if here.Add(1) == calls {
					close(all)
				}
				select {
				case <-all:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}}
			d := serve(t, fn.start(t, grpc.MaxConcurrentStreams(10)), "--insecure")
			conn := d.dial(t, nil)
			ctx, cancel := context.WithTimeout(context.Background(), patience/3)
			defer cancel()
			together(t, calls, func(i int) error { return m.call(ctx, conn, fmt.Sprint("one-", i)) })
			if ran := here.Load(); ran != calls {
				t.Errorf("the function had %d calls at once", ran)
			}
		})
	}
}

// TestFunctionThatRestartsLosesNoCall stops the function as an upgrade does,
// which lets its calls end, and starts it again on its port.
func TestFunctionThatRestartsLosesNoCall(t *testing.T) {
	const restarts, callersEach = 5, 4
	fn := &echo{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	server := fn.server()
	go server.Serve(listener)
	t.Cleanup(func() { server.Stop() })
	d := serve(t, address, "--insecure")
	var opened dials
	conn := connect(t, d.listen, opened.count())

	var callers sync.WaitGroup
	t.Cleanup(callers.Wait)
	ctx, stop := within(t), make(chan struct{})
	for _, m := range methods {
		for caller := range callersEach {
			callers.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					if err := m.call(ctx, conn, fmt.Sprint("one-", caller, "-", i)); err != nil {
						t.Errorf("call %d of %s: %v", i, m.name, err)
						return
					}
				}
			})
		}
	}
	for range restarts {
		before := fn.runs.Load()
		eventually(t, "calls go on", func() bool { return t.Failed() || fn.runs.Load() > before+100 })
		server.GracefulStop()
		if listener, err = net.Listen("tcp", address); err != nil {
			t.Error(err)
			break
		}
		server = fn.server()
		go server.Serve(listener)
	}
	before := fn.runs.Load()
	eventually(t, "calls go on", func() bool { return t.Failed() || fn.runs.Load() > before+100 })
	close(stop)
	callers.Wait()
	opened.wasOne(t)
}
