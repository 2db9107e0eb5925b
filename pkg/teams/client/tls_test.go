package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cadre/internal/server"
	"cadre/internal/server/auth"
	"cadre/pkg/teams"
)

// TestTLS checks a client of a server with a certificate, calls and streams, and that it trusts no
// other certificate than its configuration says.
func TestTLS(t *testing.T) {
	l := newLab(t)
	l.listen = "127.0.0.1:0"
	trusted := l.certify()
	l.serve()
	made, err := server.TokensOf(l.home, nil).Create("phone", auth.Admin)
	ok(t, err)
	ctx := within(t)
	c := l.open(Options{Address: "https://" + l.address, TokenFile: made.File, TLS: &tls.Config{RootCAs: trusted}})
	_, err = c.CreateTeam(ctx, TeamSpec{Name: "demo"})
	ok(t, err)
	first(t, c.Events(ctx, "demo", 0), func(e teams.Event) bool { return e.Seq == 1 })

	_, err = l.open(Options{Address: "https://" + l.address, TokenFile: made.File}).Health(ctx)
	if _, is := errors.AsType[*tls.CertificateVerificationError](err); !is {
		t.Errorf("with an unknown certificate: %v", err)
	}
	_, err = l.open(Options{Address: "http://" + l.address, TokenFile: made.File}).Health(ctx)
	if p, is := errors.AsType[*ProblemError](err); !is || p.Status != http.StatusBadRequest || p.Code != "" {
		t.Errorf("without TLS: %v", err)
	}
}

// certify makes a certificate for the lab's server, and returns who trusts it.
func (l *lab) certify() *x509.CertPool {
	l.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(l.t, err)
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	ok(l.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ok(l.t, err)
	dir := l.t.TempDir()
	l.certificate, l.key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	ok(l.t, os.WriteFile(l.certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	ok(l.t, os.WriteFile(l.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	is, err := x509.ParseCertificate(der)
	ok(l.t, err)
	pool := x509.NewCertPool()
	pool.AddCert(is)
	return pool
}
