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
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

const year = 365 * 24 * time.Hour

// office is an authority in a folder.
type office struct {
	*Authority

	Folder
}

func newOffice(t *testing.T, cluster string) office {
	t.Helper()
	authority, own, err := NewAuthority(cluster, 10*year)
	if err != nil {
		t.Fatal(err)
	}
	folder := Folder(filepath.Join(t.TempDir(), "certs"))
	if err := folder.Init(own); err != nil {
		t.Fatal(err)
	}
	return office{authority, folder}
}

// issue makes a certificate under a name, in the place of the one that had it.
func (o office) issue(t *testing.T, name string, make func() (Pair, error)) Files {
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

func (o office) node(t *testing.T, id string, span time.Duration) Files {
	t.Helper()
	return o.issue(t, id, func() (Pair, error) { return o.Node(id, localHosts, span) })
}

func (o office) client(t *testing.T, name string) Files {
	t.Helper()
	return o.issue(t, name, func() (Pair, error) { return o.Client(name, year) })
}

var localHosts = []string{"localhost", "127.0.0.1"}

func open(t *testing.T, f Files, id string) *Store {
	t.Helper()
	s, err := Open(f, "blue", id, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// meet lets a client and a server meet on loopback, and answers what went wrong on either side.
func meet(t *testing.T, client, server *tls.Config) (clientErr, serverErr error) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ended := make(chan error, 1)
	go func() { ended <- answer(l) }()
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

// answer takes one connection; the handshake of TLS 1.3 ends with what comes after it.
func answer(l net.Listener) error {
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

// TestOnlyNodesOfTheClusterAreLetIn is the rule of raft and of the peer service.
func TestOnlyNodesOfTheClusterAreLetIn(t *testing.T) {
	t.Parallel()
	blue, foreign := newOffice(t, "blue"), newOffice(t, "blue")
	n1 := open(t, blue.node(t, "n1", year), "n1")
	if c, s := meet(t, open(t, blue.node(t, "n2", year), "n2").Dial(""), n1.Accept()); c != nil || s != nil {
		t.Errorf("two nodes: %v, %v", c, s)
	}
	if c, s := meet(t, open(t, foreign.node(t, "n2", year), "n2").Dial(""), n1.Accept()); c == nil || s == nil {
		t.Errorf("a node of a foreign authority: %v, %v", c, s)
	}
	callers := map[string]struct {
		files Files
		says  string
	}{
		"a client":                     {blue.client(t, "ops"), "client ops of cluster blue"},
		"a node of another authority":  {foreign.node(t, "n3", year), "unknown authority"},
		"nobody":                       {Files{CA: blue.CA()}, "provide a certificate"},
		"a node that has expired":      {blue.node(t, "n4", -time.Minute), "expired"},
		"a node of another cluster":    {blue.alien(t, "quorate://cluster/green/node/n1"), "node n1 of cluster green"},
		"one who does not say who":     {blue.alien(t), "no URI"},
		"one who says two things":      {blue.alien(t, "quorate://cluster/blue/node/n1", "quorate://cluster/blue/client/x"), "allowed is one"},
		"one who says it in a new way": {blue.alien(t, "quorate://cluster/blue/node/n1/more"), "is none of"},
		"one who was never named":      {blue.alien(t, "quorate://cluster/blue/node/"), "1 to 64"},
	}
	for name, caller := range callers {
		config, err := ClientConfig(caller.files, "localhost")
		if err != nil {
			t.Fatal(err)
		}
		config.InsecureSkipVerify = true // some of them trust another authority, and are not the point here
		_, err = meet(t, config, n1.Accept())
		if err == nil || !strings.Contains(err.Error(), caller.says) {
			t.Errorf("%s: got %v, want an error with %q", name, err, caller.says)
		}
	}
}

// alien is a certificate of the authority with any URIs.
func (o office) alien(t *testing.T, uris ...string) Files {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := draft("alien", year)
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
	return o.issue(t, name, func() (Pair, error) { return o.sign(template, key) })
}

// TestWhatCallersMustShow is tls-client-auth, and what the API knows of its callers by it.
func TestWhatCallersMustShow(t *testing.T) {
	t.Parallel()
	blue, foreign := newOffice(t, "blue"), newOffice(t, "blue")
	n1 := open(t, blue.node(t, "n1", year), "n1")
	ours, theirs, nobody := blue.client(t, "ops"), foreign.client(t, "ops"), Files{}
	ours.CA, theirs.CA, nobody.CA = blue.CA(), blue.CA(), blue.CA()
	for auth, wanted := range map[ClientAuth]string{AuthNone: "ours theirs nobody", AuthRequest: "ours nobody", AuthRequire: "ours"} {
		var served []string
		for _, caller := range []struct {
			name  string
			files Files
		}{{"ours", ours}, {"theirs", theirs}, {"nobody", nobody}} {
			config, err := ClientConfig(caller.files, "localhost")
			if err != nil {
				t.Fatal(err)
			}
			if c, s := meet(t, config, n1.API(auth)); c == nil && s == nil {
				served = append(served, caller.name)
			}
		}
		if got := strings.Join(served, " "); got != wanted {
			t.Errorf("%s serves %q, want %q", auth, got, wanted)
		}
	}
	leaf := func(f Files) *tls.ConnectionState {
		list, err := Inspect(f.Cert)
		if err != nil {
			t.Fatal(err)
		}
		return &tls.ConnectionState{PeerCertificates: list}
	}
	for range 2 { // the second time from memory
		if id, err := n1.NodeOf(leaf(blue.node(t, "n2", year))); err != nil || id != "n2" {
			t.Errorf("a node is %q, %v", id, err)
		}
	}
	for name, state := range map[string]*tls.ConnectionState{
		"plain text": nil, "nobody": {}, "a client": leaf(ours), "a foreign node": leaf(foreign.node(t, "n2", year)),
	} {
		if id, err := n1.NodeOf(state); err == nil {
			t.Errorf("%s passes as node %q", name, id)
		}
	}
}

// TestClientsAreVerifiedForEachCall: what a handshake has let in is refused once it would not be let in again.
func TestClientsAreVerifiedForEachCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		makeOffice := func(folder string) office {
			authority, own, err := NewAuthority("blue", 10*year)
			if err != nil {
				t.Fatal(err)
			}
			o := office{authority, Folder(filepath.Join(t.TempDir(), folder))}
			if err := o.Init(own); err != nil {
				t.Fatal(err)
			}
			return o
		}
		blue, later := makeOffice("blue"), makeOffice("later")
		n1 := open(t, blue.node(t, "n1", year), "n1")
		connection := func(f Files) *tls.ConnectionState {
			list, err := Inspect(f.Cert)
			if err != nil {
				t.Fatal(err)
			}
			return &tls.ConnectionState{PeerCertificates: list}
		}
		brief := connection(blue.issue(t, "brief", func() (Pair, error) { return blue.Client("brief", time.Hour) }))
		ops, node, nobody := connection(blue.client(t, "ops")), connection(blue.node(t, "n2", year)), &tls.ConnectionState{}
		unnamed, alien := connection(blue.alien(t)), connection(blue.alien(t, "quorate://cluster/green/client/ops"))
		foreign := connection(later.client(t, "ops"))
		check := n1.CheckClient(AuthRequire)
		for range 2 { // the second time from memory
			for name, c := range map[string]*tls.ConnectionState{"a client": ops, "a brief client": brief, "a node": node, "no role": unnamed} {
				if err := check(c); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for says, c := range map[string]*tls.ConnectionState{
				"there is none": nobody, "client ops of cluster green, and this is cluster blue": alien, "unknown authority": foreign,
			} {
				if err := check(c); err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("got %v, want %q", err, says)
				}
			}
		}
		if err := n1.CheckClient(AuthRequest)(nobody); err != nil || n1.CheckClient(AuthNone) != nil {
			t.Errorf("where none is required: %v", err)
		}
		time.Sleep(time.Hour + time.Second)
		if err := check(brief); err == nil || !strings.Contains(err.Error(), "expired") || check(ops) != nil {
			t.Errorf("after its end: %v; one that goes on: %v", err, check(ops))
		}
		files := later.node(t, "n1", year)
		for from, to := range map[string]string{files.CA: blue.CA(), files.Cert: blue.Cert("n1"), files.Key: blue.Key("n1")} {
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
		if err := n1.Reload(); err != nil {
			t.Fatal(err)
		}
		if err := check(ops); err == nil || check(foreign) != nil {
			t.Errorf("after another authority: a client of the earlier one: %v; one of the new one: %v", err, check(foreign))
		}
	})
}

// TestOpenRefusesWhatOthersWouldNotBelieve, before anything is started.
func TestOpenRefusesWhatOthersWouldNotBelieve(t *testing.T) {
	t.Parallel()
	blue, foreign := newOffice(t, "blue"), newOffice(t, "blue")
	good := blue.node(t, "n1", year)
	readable := blue.node(t, "n9", year)
	if err := os.Chmod(readable.Key, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		files Files
		says  string
	}{
		"another node's":       {blue.node(t, "n2", year), "that of node n2 of cluster blue, and this is node n1"},
		"a client's":           {blue.client(t, "ops"), "that of client ops"},
		"a foreign one":        {Files{CA: foreign.CA(), Cert: good.Cert, Key: good.Key}, "unknown authority"},
		"an expired one":       {blue.issue(t, "old", func() (Pair, error) { return blue.Node("n1", nil, -time.Minute) }), "expired"},
		"a key of another":     {Files{CA: good.CA, Cert: good.Cert, Key: blue.Key("ops")}, "private key does not match"},
		"a key for everybody":  {readable, "chmod 0600"},
		"no authority":         {Files{CA: good.Cert, Cert: good.Cert, Key: good.Key}, "no authority"},
		"an authority of gaps": {Files{CA: good.Key, Cert: good.Cert, Key: good.Key}, "BEGIN CERTIFICATE"},
		"a file that is gone":  {Files{CA: good.CA, Cert: good.Cert + "x", Key: good.Key}, "no such file"},
	} {
		if _, err := Open(tc.files, "blue", "n1", nil); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tc.says)
		}
	}
	open(t, good, "n1")
}

// transcript can be read while somebody writes to it.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// TestRenewedCertificatesAreTaken by themselves, and bad ones are not.
func TestRenewedCertificatesAreTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said transcript
		authority, own, err := NewAuthority("blue", 10*year)
		if err != nil {
			t.Fatal(err)
		}
		o := office{authority, Folder(filepath.Join(t.TempDir(), "bubble"))}
		if err := o.Init(own); err != nil {
			t.Fatal(err)
		}
		s, err := Open(o.node(t, "n1", 14*24*time.Hour+2*time.Hour), "blue", "n1", hclog.New(&hclog.LoggerOptions{Output: &said}))
		if err != nil {
			t.Fatal(err)
		}
		go s.Run(t.Context())
		first, _ := s.Ends()
		time.Sleep(time.Hour + time.Second) // and never just when the files are looked at
		synctest.Wait()
		if said.String() != "" {
			t.Errorf("more than 14 days before the end it says %s", said.String())
		}
		time.Sleep(5 * time.Hour)
		synctest.Wait()
		if warnings := strings.Count(said.String(), "ends soon: renew it"); warnings != 1 {
			t.Errorf("in five hours %d warnings:\n%s", warnings, said.String())
		}
		if err := os.WriteFile(o.Cert("n1"), []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if ends, _ := s.Ends(); !ends.Equal(first) || strings.Count(said.String(), "[ERROR]") != 1 {
			t.Errorf("nonsense is used, or not complained of once:\n%s", said.String())
		}
		o.node(t, "n1", year)
		time.Sleep(time.Minute)
		synctest.Wait()
		ends, _ := s.Ends()
		if used, refused := s.Reloads(); !ends.After(first) || used == 0 || refused == 0 {
			t.Errorf("the new certificate is not used: it ends %v, %d used, %d refused", ends, used, refused)
		}
	})
}

// TestTheLogSaysThatACertificateHasEnded, at once and then from time to time, until there is another one.
func TestTheLogSaysThatACertificateHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said transcript
		authority, own, err := NewAuthority("blue", 10*year)
		if err != nil {
			t.Fatal(err)
		}
		o := office{authority, Folder(filepath.Join(t.TempDir(), "bubble"))}
		if err := o.Init(own); err != nil {
			t.Fatal(err)
		}
		s, err := Open(o.node(t, "n1", time.Hour), "blue", "n1", hclog.New(&hclog.LoggerOptions{Output: &said}))
		if err != nil {
			t.Fatal(err)
		}
		go s.Run(t.Context())
		for _, step := range []struct {
			wait time.Duration
			want int
		}{{59*time.Minute + time.Second, 0}, {2 * time.Minute, 1}, {4 * time.Minute, 1}, {10 * time.Minute, 2}} {
			time.Sleep(step.wait)
			synctest.Wait()
			if got := strings.Count(said.String(), "[ERROR]"); got != step.want {
				t.Errorf("%v later the log says %d times that the certificate has ended, want %d:\n%s", step.wait, got, step.want, said.String())
			}
		}
		o.node(t, "n1", year)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := strings.Count(said.String(), "[ERROR]"); got > 3 { // files that are being replaced may be complained of once
			t.Errorf("after the renewal it goes on:\n%s", said.String())
		}
	})
}

// TestTwoAuthoritiesWhileOneReplacesTheOther: nodes of both meet, and later only those of the new one.
func TestTwoAuthoritiesWhileOneReplacesTheOther(t *testing.T) {
	t.Parallel()
	before, after := newOffice(t, "blue"), newOffice(t, "blue")
	both := filepath.Join(t.TempDir(), "both.crt")
	join := func(paths ...string) {
		t.Helper()
		var text []byte
		for _, path := range paths {
			part, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, part...)
		}
		if err := os.WriteFile(both, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	join(before.CA(), after.CA())
	early, late := before.node(t, "n1", year), after.node(t, "n2", year)
	early.CA, late.CA = both, both
	n1, n2 := open(t, early, "n1"), open(t, late, "n2")
	if c, s := meet(t, n1.Dial(""), n2.Accept()); c != nil || s != nil {
		t.Errorf("while both are trusted: %v, %v", c, s)
	}
	join(after.CA())
	known := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{n1.present.Load().own.Leaf}}
	if id, err := n2.Identify(*known); err != nil || id != "n1" {
		t.Errorf("while both are trusted, a connection of the earlier authority is refused: %v", err)
	}
	for range 2 {
		if err := n2.Reload(); err != nil {
			t.Fatal(err)
		}
		if v := n2.Version(); v != 1 {
			t.Errorf("one change makes version %d", v)
		}
	}
	if _, err := n2.Identify(*known); !errors.As(err, new(*PeerError)) {
		t.Error("a connection that was made under the earlier authority is still believed")
	}
	if _, s := meet(t, n1.Dial(""), n2.Accept()); s == nil {
		t.Error("the old authority is still trusted")
	}
	if err := n1.Reload(); err == nil {
		t.Error("n1 drops the only authority that signed its certificate")
	}
}

func TestWhatIsThereIsNotOverwritten(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "blue")
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
