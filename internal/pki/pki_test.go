package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const year = 365 * 24 * time.Hour

type testAuthority struct {
	*Authority

	Folder
}

func newTestAuthority(t *testing.T, cluster string) testAuthority {
	t.Helper()
	authority, own, err := NewAuthority(cluster, 10*year)
	if err != nil {
		t.Fatal(err)
	}
	folder := Folder(filepath.Join(t.TempDir(), "certs"))
	if err := folder.Init(own); err != nil {
		t.Fatal(err)
	}
	return testAuthority{authority, folder}
}

// issue replaces the certificate that had the name.
func (o testAuthority) issue(t *testing.T, name string, make func() (Pair, error)) Files {
	t.Helper()
	pair, err := make()
	if err != nil {
		t.Fatal(err)
	}
	_ = errors.Join(os.Remove(o.Cert(name)), os.Remove(o.Key(name))) // there may be none
	if err := o.Write(name, pair); err != nil {
		t.Fatal(err)
	}
	return o.Files(name)
}

func (o testAuthority) node(t *testing.T, id string, span time.Duration) Files {
	t.Helper()
	return o.issue(t, id, func() (Pair, error) { return o.Node(id, localHosts, span) })
}

func (o testAuthority) client(t *testing.T, name string) Files {
	t.Helper()
	return o.issue(t, name, func() (Pair, error) { return o.Client(name, year) })
}

var localHosts = []string{"localhost", "127.0.0.1"}

func openStore(t *testing.T, f Files, id string) *Store {
	t.Helper()
	s, err := Open(f, "blue", id, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func handshake(t *testing.T, client, server *tls.Config) (clientErr, serverErr error) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ended := make(chan error, 1)
	go func() { ended <- serveOne(l) }()
	c, clientErr := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", l.Addr().String(), client)
	if clientErr != nil {
		return clientErr, <-ended
	}
	defer func() { _ = c.Close() }()
	_, clientErr = c.Write([]byte("ping"))
	if _, err := io.ReadFull(c, make([]byte, 4)); clientErr == nil {
		clientErr = err
	}
	return clientErr, <-ended
}

// serveOne accepts one connection; the handshake of TLS 1.3 ends with what comes after it.
func serveOne(l net.Listener) error {
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
		return err
	}
	_, err = c.Write([]byte("pong"))
	return err
}

// TestOnlyNodesOfTheClusterAreAccepted checks the rule of raft and of the peer service.
func TestOnlyNodesOfTheClusterAreAccepted(t *testing.T) {
	t.Parallel()
	blue, foreign := newTestAuthority(t, "blue"), newTestAuthority(t, "blue")
	n1 := openStore(t, blue.node(t, "n1", year), "n1")
	if c, s := handshake(t, openStore(t, blue.node(t, "n2", year), "n2").Dial(""), n1.Accept()); c != nil || s != nil {
		t.Errorf("two nodes: %v, %v", c, s)
	}
	if c, s := handshake(t, openStore(t, foreign.node(t, "n2", year), "n2").Dial(""), n1.Accept()); c == nil ||
		s == nil {
		t.Errorf("a node of a foreign authority: %v, %v", c, s)
	}
	callers := map[string]struct {
		files Files
		says  string
	}{
		"a client":                    {blue.client(t, "ops"), "client ops of cluster blue"},
		"a node of another authority": {foreign.node(t, "n3", year), "unknown authority"},
		"no certificate":              {Files{CA: blue.CA()}, "provide a certificate"},
		"a node that has expired":     {blue.node(t, "n4", -time.Minute), "expired"},
		"a node of another cluster":   {blue.alien(t, "quorate://cluster/green/node/n1"), "node n1 of cluster green"},
		"one who does not say who":    {blue.alien(t), "no URI"},
		"one who says two things": {
			blue.alien(t, "quorate://cluster/blue/node/n1", "quorate://cluster/blue/client/x"),
			"it has two roles",
		},
		"one who says it in a new way": {blue.alien(t, "quorate://cluster/blue/node/n1/more"), "is not of the form"},
		"one who was never named":      {blue.alien(t, "quorate://cluster/blue/node/"), "1 to 64"},
	}
	for name, caller := range callers {
		config, err := ClientConfig(caller.files, "localhost")
		if err != nil {
			t.Fatal(err)
		}
		config.InsecureSkipVerify = true // some of them trust another authority, and are not the point here
		_, err = handshake(t, config, n1.Accept())
		if err == nil || !strings.Contains(err.Error(), caller.says) {
			t.Errorf("%s: got %v, want an error with %q", name, err, caller.says)
		}
	}
}

func (o testAuthority) alien(t *testing.T, uris ...string) Files {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := newTemplate("alien", year)
	template.SerialNumber = big.NewInt(1)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, text := range uris {
		uri, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, uri)
	}
	name := "alien" + rand.Text()
	return o.issue(t, name, func() (Pair, error) { return o.signPair(template, key) })
}

func TestWhatIsThereIsNotOverwritten(t *testing.T) {
	t.Parallel()
	o := newTestAuthority(t, "blue")
	o.node(t, "n1", year)
	before, err := os.ReadFile(o.Key("n1"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := o.Node("n1", nil, year)
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(o.Key("n1"))
	if refused := o.Write("n1", pair); refused == nil || err != nil || !bytes.Equal(before, after) {
		t.Errorf("a second certificate of n1: %v", refused)
	}
	for _, file := range []string{o.Key("n1"), o.Cert("n1"), o.Key("ca"), o.GossipKeys()} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	again, err := o.Folder.Authority()
	if err != nil || again.Cluster != "blue" {
		t.Errorf("the authority comes back as %+v, %v", again, err)
	}
	for _, host := range []string{"", "a:1", "a/b", "a b"} {
		if _, err := o.Node("n1", []string{host}, year); err == nil {
			t.Errorf("host %q is taken", host)
		}
	}
	if _, err := o.Node("n/1", nil, year); err == nil {
		t.Error("an id with a slash is taken")
	}
	if block, _ := pem.Decode(pair.Key); block == nil || block.Type != pemKey {
		t.Errorf("the key is %v", block)
	}
}
