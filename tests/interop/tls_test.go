// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	function "github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// authority is a certificate authority of the test's own.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := template("authority")
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{parsed, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue writes tls.crt, tls.key and ca.crt as Crossplane mounts them.
func (a *authority) issue(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := template(name)
	c.DNSNames = []string{name}
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, c, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for file, bytes := range map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		"ca.crt":  a.pem,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), bytes, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// client is what a runner dials with.
func (a *authority) client(t *testing.T, dir, server string) credentials.TransportCredentials {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	config := &tls.Config{RootCAs: roots, ServerName: server}
	if dir != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(config)
}

func TestMutualTLSOnBothSides(t *testing.T) {
	ca := newAuthority(t)
	fn := &greeter{ttl: time.Hour}
	target := sdkFunction(t, fn, function.MTLSCertificates(ca.issue(t, "fn.example.org")))
	d := serve(t, target, "--tls-dir", ca.issue(t, "proxy.example.org"),
		"--upstream-tls-dir", ca.issue(t, "client.example.org"), "--upstream-server-name", "fn.example.org")

	client := fnv1.NewFunctionRunnerServiceClient(d.dial(t, ca.client(t, ca.issue(t, "runner"), "proxy.example.org")))
	for range 3 {
		if _, err := client.RunFunction(within(t), wide("tls", "t")); err != nil {
			t.Fatal(err)
		}
	}
	if runs := fn.runs.Load(); runs != 1 {
		t.Fatalf("%d runs", runs)
	}

	nobody := fnv1.NewFunctionRunnerServiceClient(d.dial(t, ca.client(t, "", "proxy.example.org")))
	if _, err := nobody.RunFunction(within(t), wide("tls", "t")); status.Code(err) != codes.Unavailable {
		t.Fatalf("a caller without a certificate: %v", err)
	}
	other := newAuthority(t)
	stranger := fnv1.NewFunctionRunnerServiceClient(d.dial(t, ca.client(t, other.issue(t, "runner"), "proxy.example.org")))
	if _, err := stranger.RunFunction(within(t), wide("tls", "t")); status.Code(err) != codes.Unavailable {
		t.Fatalf("a caller with another authority's certificate: %v", err)
	}
}
