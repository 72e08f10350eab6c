// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	function "github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// crossplane issues certificates as Crossplane's initializer does: authority
// and leaves share subject and serial number, and Go leaves out the authority
// key identifier of what has its issuer's subject.
type crossplane struct {
	certificate *x509.Certificate
	key         *rsa.PrivateKey
	pem         []byte
}

func crossplaneTemplate() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(2022),
		Subject: pkix.Name{
			CommonName: "Crossplane", Organization: []string{"Crossplane"}, Country: []string{"Earth"},
			Province: []string{"Earth"}, Locality: []string{"Earth"},
		},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		BasicConstraintsValid: true,
	}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func newCrossplane(t *testing.T) *crossplane {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c := crossplaneTemplate()
	c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	c.DNSNames = []string{"crossplane-root-ca"}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &crossplane{parsed, key, encode("CERTIFICATE", der)}
}

// leaf is what a certificate differs in from a good one.
type leaf struct {
	server    bool
	names     []string
	ecdsa     bool
	authority bool
	change    func(*x509.Certificate)
}

// issue writes tls.crt, tls.key and ca.crt (trusted, or the issuer's own where
// there is none) as Crossplane mounts them.
func (a *crossplane) issue(t *testing.T, l leaf, trusted ...*crossplane) string {
	t.Helper()
	c := crossplaneTemplate()
	c.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageDataEncipherment
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if l.server {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	c.DNSNames, c.IsCA = l.names, l.authority
	if l.change != nil {
		l.change(c)
	}
	var public, private any
	if l.ecdsa {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		public, private = key.Public(), key
	} else {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		public, private = key.Public(), key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.certificate, public, a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if len(trusted) == 0 {
		trusted = []*crossplane{a}
	}
	var ca []byte
	for _, one := range trusted {
		ca = append(ca, one.pem...)
	}
	dir := t.TempDir()
	for file, content := range map[string][]byte{
		"tls.crt": encode("CERTIFICATE", der), "tls.key": encode("PRIVATE KEY", keyDER), "ca.crt": ca,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// dialing is how Crossplane's runner dials: with its client certificate, and
// trusting ca.crt.
func dialing(t *testing.T, dir, server string) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("ca.crt holds no certificate")
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: server, NextProtos: []string{"h2"}}
}

// unparsed shows the certificate of dir as it is, which Go could not read.
func unparsed(t *testing.T, config *tls.Config, dir string) *tls.Config {
	t.Helper()
	read := func(file string) []byte {
		content, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(content)
		return block.Bytes
	}
	key, err := x509.ParsePKCS8PrivateKey(read("tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	odd := tls.Certificate{Certificate: [][]byte{read("tls.crt")}, PrivateKey: key}
	changed := config.Clone()
	changed.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &odd, nil }
	return changed
}

const (
	proxyName    = "fn.crossplane-system.svc"
	functionName = "fn-behind.crossplane-system.svc"
)

// crossplaneChain is runner, fncache and a function of Crossplane's SDK, which
// requires and verifies client certificates, all with certificates of a.
func crossplaneChain(t *testing.T, a *crossplane) (*daemon, *greeter) {
	t.Helper()
	fn := &greeter{ttl: time.Hour}
	target := sdkFunction(t, fn, function.MTLSCertificates(a.issue(t, leaf{server: true, names: []string{functionName}})))
	d := serve(t, target, "--tls-dir", a.issue(t, leaf{server: true, names: []string{proxyName}}),
		"--upstream-tls-dir", a.issue(t, leaf{names: []string{"crossplane"}}), "--upstream-server-name", functionName)
	return d, fn
}

func call(t *testing.T, d *daemon, config *tls.Config) error {
	t.Helper()
	client := fnv1.NewFunctionRunnerServiceClient(d.dial(t, credentials.NewTLS(config)))
	_, err := client.RunFunction(within(t), wide("tls", "t"))
	return err
}

func TestCrossplanesCertificates(t *testing.T) {
	a, other := newCrossplane(t), newCrossplane(t)
	d, fn := crossplaneChain(t, a)
	for name, l := range map[string]leaf{"RSA": {}, "ECDSA": {ecdsa: true}} {
		if err := call(t, d, dialing(t, a.issue(t, l), proxyName)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if runs := fn.runs.Load(); runs != 1 {
		t.Fatalf("%d runs", runs)
	}

	past := func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	}
	future := func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }
	for reason, dir := range map[string]string{
		"unknown_authority": other.issue(t, leaf{}, a),
		"expired":           a.issue(t, leaf{change: past}),
		"not_yet_valid":     a.issue(t, leaf{change: future}),
		"wrong_usage":       a.issue(t, leaf{server: true}),
	} {
		if err := call(t, d, dialing(t, dir, proxyName)); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", reason, err)
		}
		sample := fmt.Sprintf(`fncache_handshakes_failed_total{side="listener",reason=%q}`, reason)
		if count := d.metric(t, sample); count < 1 {
			t.Errorf("%s is %v", sample, count)
		}
	}
	before := d.metric(t, `fncache_handshakes_failed_total{side="listener",reason="wrong_usage"}`)
	marked := a.issue(t, leaf{authority: true, change: func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCertSign }})
	if err := call(t, d, dialing(t, marked, proxyName)); status.Code(err) != codes.Unavailable {
		t.Errorf("a leaf marked CA: %v", err)
	}
	if after := d.metric(t, `fncache_handshakes_failed_total{side="listener",reason="wrong_usage"}`); after <= before {
		t.Errorf("a leaf marked CA is counted elsewhere")
	}
	// The runner, in turn, takes no other name.
	if err := call(t, d, dialing(t, a.issue(t, leaf{}), "other.crossplane-system.svc")); status.Code(err) != codes.Unavailable {
		t.Errorf("wrong name: %v", err)
	}
}

// TestFunctionsOfCrossplanesShapeAreRefused has functions in Go that fncache
// must not talk to, and one that does not talk to fncache.
func TestFunctionsOfCrossplanesShapeAreRefused(t *testing.T) {
	a, other := newCrossplane(t), newCrossplane(t)
	names := []string{functionName}
	past := func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	}
	for _, c := range []struct{ name, reason, dir string }{
		{"another authority", "unknown_authority", other.issue(t, leaf{server: true, names: names}, a)},
		{"expired", "expired", a.issue(t, leaf{server: true, names: names, change: past})},
		{"a client's", "wrong_usage", a.issue(t, leaf{names: names})},
		{"another name", "wrong_name", a.issue(t, leaf{server: true, names: []string{"elsewhere"}})},
		{"trusts others", "refused_by_peer", a.issue(t, leaf{server: true, names: names}, other)},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			fn := &greeter{ttl: time.Hour}
			target := sdkFunction(t, fn, function.MTLSCertificates(c.dir))
			d := serve(t, target, "--insecure",
				"--upstream-tls-dir", a.issue(t, leaf{names: []string{"crossplane"}}), "--upstream-server-name", functionName)
			client := fnv1.NewFunctionRunnerServiceClient(d.dial(t, nil))
			ctx, cancel := context.WithCancel(within(t))
			ended := make(chan error, 1)
			go func() {
				_, err := client.RunFunction(ctx, wide("tls", "t"))
				ended <- err
			}()
			sample := fmt.Sprintf(`fncache_handshakes_failed_total{side="upstream",reason=%q}`, c.reason)
			for start := time.Now(); d.metric(t, sample) == 0; time.Sleep(10 * time.Millisecond) {
				if time.Since(start) > patience {
					t.Fatalf("%s stays zero", sample)
				}
			}
			cancel()
			<-ended
			if runs := fn.runs.Load(); runs != 0 {
				t.Errorf("%d runs", runs)
			}
		})
	}
}

// TestBothAuthoritiesDuringARotation has ca.crt with the old and the new
// authority of one subject, in both orders.
func TestBothAuthoritiesDuringARotation(t *testing.T) {
	old, fresh := newCrossplane(t), newCrossplane(t)
	for _, trusted := range [][]*crossplane{{old, fresh}, {fresh, old}} {
		for _, issuer := range trusted {
			fn := &greeter{ttl: time.Hour}
			target := sdkFunction(t, fn, function.MTLSCertificates(issuer.issue(t, leaf{server: true, names: []string{functionName}}, trusted...)))
			d := serve(t, target, "--tls-dir", issuer.issue(t, leaf{server: true, names: []string{proxyName}}, trusted...),
				"--upstream-tls-dir", issuer.issue(t, leaf{names: []string{"x"}}, trusted...), "--upstream-server-name", functionName)
			for _, caller := range trusted {
				if err := call(t, d, dialing(t, caller.issue(t, leaf{}, trusted...), proxyName)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestNoSessionIsResumed: a resumed session's certificate would not be looked
// at again.
func TestNoSessionIsResumed(t *testing.T) {
	a := newCrossplane(t)
	d, _ := crossplaneChain(t, a)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := dialing(t, a.issue(t, leaf{}), proxyName)
		config.MinVersion, config.MaxVersion = version, version
		config.ClientSessionCache = tls.NewLRUClientSessionCache(8)
		for range 3 {
			conn, err := tls.Dial("tcp", d.listen, config)
			if err != nil {
				t.Fatal(err)
			}
			// Its first frame comes after any ticket.
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.ReadFull(conn, make([]byte, 9)); err != nil {
				t.Fatal(err)
			}
			if conn.ConnectionState().DidResume {
				t.Errorf("%s was resumed", tls.VersionName(version))
			}
			conn.Close()
		}
	}
}

// TestOddCertificatesEndNoDaemon: names that a library might not survive, of a
// trusted authority, and a certificate without its key.
func TestOddCertificatesEndNoDaemon(t *testing.T) {
	a := newCrossplane(t)
	d, fn := crossplaneChain(t, a)
	sample := `fncache_handshakes_failed_total{side="listener",reason="bad_certificate"}`
	refused := func(name string, config *tls.Config) {
		t.Helper()
		before := d.metric(t, sample)
		if err := call(t, d, config); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
		// The daemon counts it after the alert.
		eventually(t, name+" is counted", func() bool { return d.metric(t, sample) > before })
	}
	for name, san := range map[string][]byte{
		"address of 0 bytes":  {0x30, 2, 0x87, 0},
		"address of 5 bytes":  {0x30, 7, 0x87, 5, 1, 2, 3, 4, 5},
		"name with NUL":       {0x30, 7, 0x82, 5, 'a', 'b', 0, 'c', 'd'},
		"extension not ASN.1": {0x30, 9, 0x82, 5},
	} {
		refused(name, unparsed(t, dialing(t, a.issue(t, leaf{}), proxyName), a.issue(t, leaf{change: func(c *x509.Certificate) {
			c.DNSNames = nil
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: san}}
		}})))
	}
	stolen := dialing(t, a.issue(t, leaf{}), proxyName)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	stolen.Certificates[0].PrivateKey = key
	refused("stolen certificate", stolen)

	// The daemon is still there.
	if err := call(t, d, dialing(t, a.issue(t, leaf{}), proxyName)); err != nil {
		t.Fatal(err)
	}
	if runs := fn.runs.Load(); runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

// TestCallerWithoutHTTP2 is one that uses TLS and does not offer h2.
func TestCallerWithoutHTTP2(t *testing.T) {
	a := newCrossplane(t)
	d, _ := crossplaneChain(t, a)
	config := dialing(t, a.issue(t, leaf{}), proxyName)
	config.NextProtos = nil
	conn, err := tls.Dial("tcp", d.listen, config)
	if err == nil {
		_, _ = io.Copy(io.Discard, conn)
		conn.Close()
	}
	eventually(t, "counted once", func() bool {
		return d.metric(t, `fncache_handshakes_failed_total{side="listener",reason="protocol"}`) == 1
	})
}

// TestPlaintextOnATLSPort is what a caller without certificates looks like.
func TestPlaintextOnATLSPort(t *testing.T) {
	d, _ := crossplaneChain(t, newCrossplane(t))
	conn, err := net.Dial("tcp", d.listen)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, conn)
	eventually(t, "counted once", func() bool {
		return d.metric(t, `fncache_handshakes_failed_total{side="listener",reason="plaintext"}`) == 1
	})
}
