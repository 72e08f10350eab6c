// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"encoding/xml"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
)

// deviations are the cases of h2spec that the daemon is known to fail, each with
// the reason. A case is its section and its title.
var deviations = map[string]string{
	"http2/5.1.1: Sends stream identifier that is numerically smaller than previous": "nghttp2 takes HEADERS of a lower stream for late ones of a stream that was closed, and ignores them",
	"http2/5.3.1: Sends PRIORITY frame that depend on itself":                        "priorities of RFC 7540 are switched off (RFC 9218, 2.1), and nghttp2 does not read them",
}

// h2specReport is what h2spec -j writes.
type h2specReport struct {
	Suites []struct {
		Cases []h2specCase `xml:"testcase"`
	} `xml:"testsuite"`
}

type h2specCase struct {
	Section string    `xml:"package,attr"`
	Title   string    `xml:"classname,attr"`
	Failure *string   `xml:"failure"`
	Error   *string   `xml:"error"`
	Skipped *struct{} `xml:"skipped"`
}

// failed says what the case wants and what happened, if it failed. The report
// has what happened on the last line.
func (c *h2specCase) failed() (string, bool) {
	for _, text := range []*string{c.Failure, c.Error} {
		if text != nil {
			lines := strings.Split(strings.TrimSpace(*text), "\n")
			last := len(lines) - 1
			return strings.Join(lines[:last], " or ") + " expected, not " + lines[last], true
		}
	}
	return "", false
}

// h2spec runs all cases against an address.
func h2spec(t *testing.T, binary, address string, args ...string) []h2specCase {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.xml")
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	defer cancel()
	args = append([]string{"--strict", "-h", host, "-p", port, "--path", "/x", "-j", file}, args...)
	// It ends with 1 where a case failed, too: the report decides.
	said, failed := exec.CommandContext(ctx, binary, args...).CombinedOutput()
	bytes, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: %v:\n%s", err, failed, said)
	}
	var report h2specReport
	if err := xml.Unmarshal(bytes, &report); err != nil {
		t.Fatal(err)
	}
	var cases []h2specCase
	for _, suite := range report.Suites {
		cases = append(cases, suite.Cases...)
	}
	return cases
}

// TestH2spec runs the cases of github.com/summerwind/h2spec, which go.mod pins.
func TestH2spec(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "h2spec")
	if said, err := exec.Command("go", "build", "-o", binary, "github.com/summerwind/h2spec/cmd/h2spec").CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, said)
	}
	ca := newAuthority(t)
	certificate := ca.issue(t, "proxy.example.org")
	// With ca.crt callers would need certificates, and h2spec has none.
	if err := os.Remove(filepath.Join(certificate, "ca.crt")); err != nil {
		t.Fatal(err)
	}

	var mu sync.Mutex
	deviated := map[string]bool{}
	t.Run("over", func(t *testing.T) {
		for _, test := range []struct {
			name   string
			daemon []string
			h2spec []string
			creds  credentials.TransportCredentials
		}{
			{"plaintext", []string{"--insecure"}, nil, nil},
			{"TLS", []string{"--tls-dir", certificate}, []string{"-t", "-k"}, ca.client(t, "", "proxy.example.org")},
		} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				d := serve(t, new(echo).start(t), test.daemon...)
				start := time.Now()
				cases := h2spec(t, binary, d.listen, test.h2spec...)
				failures, skipped := 0, 0
				for _, c := range cases {
					name := c.Section + ": " + c.Title
					if c.Skipped != nil {
						skipped++
						t.Logf("skipped by h2spec: %s", name)
					}
					instead, failed := c.failed()
					if !failed {
						continue
					}
					failures++
					if reason, known := deviations[name]; known {
						t.Logf("known: %s (%s)", name, reason)
						mu.Lock()
						deviated[name] = true
						mu.Unlock()
						continue
					}
					t.Errorf("%s: %s", name, instead)
				}
				t.Logf("%d cases, %d failed, %d skipped, in %v", len(cases), failures, skipped, time.Since(start).Round(time.Second))
				if len(cases) < 140 {
					t.Error("h2spec has more cases than these")
				}
				if err := runFunction.call(within(t), d.dial(t, test.creds), "afterwards"); err != nil {
					t.Errorf("a call afterwards: %v", err)
				}
			})
		}
	})
	for name := range deviations {
		if !deviated[name] {
			t.Errorf("%s passes: take it off the list", name)
		}
	}
}
