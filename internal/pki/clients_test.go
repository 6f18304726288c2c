package pki

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhatCallersMustShow checks each setting of tls-client-auth, and the identity of callers that the API gets from
// it.
func TestWhatCallersMustShow(t *testing.T) {
	t.Parallel()
	blue, foreign := newTestAuthority(t, "blue"), newTestAuthority(t, "blue")
	n1 := openStore(t, blue.node(t, "n1", year), "n1")
	ours, theirs, none := blue.client(t, "ops"), foreign.client(t, "ops"), Files{}
	ours.CA, theirs.CA, none.CA = blue.CA(), blue.CA(), blue.CA()
	for auth, wanted := range map[ClientAuth]string{
		AuthNone: "ours theirs none", AuthRequest: "ours none",
		AuthRequire: "ours",
	} {
		var served []string
		for _, caller := range []struct {
			name  string
			files Files
		}{{"ours", ours}, {"theirs", theirs}, {"none", none}} {
			config, err := ClientConfig(caller.files, "localhost")
			if err != nil {
				t.Fatal(err)
			}
			if c, s := handshake(t, config, n1.API(auth)); c == nil && s == nil {
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
		"plain text": nil, "no certificate": {}, "a client": leaf(ours),
		"a foreign node": leaf(foreign.node(t, "n2", year)),
	} {
		if id, err := n1.NodeOf(state); err == nil {
			t.Errorf("%s passes as node %q", name, id)
		}
	}
}

// TestClientsAreVerifiedForEachCall: calls on an open connection are refused once its certificate would no longer be
// accepted.
func TestClientsAreVerifiedForEachCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		makeOffice := func(folder string) testAuthority {
			authority, own, err := NewAuthority("blue", 10*year)
			if err != nil {
				t.Fatal(err)
			}
			o := testAuthority{authority, Folder(filepath.Join(t.TempDir(), folder))}
			if err := o.Init(own); err != nil {
				t.Fatal(err)
			}
			return o
		}
		blue, later := makeOffice("blue"), makeOffice("later")
		n1 := openStore(t, blue.node(t, "n1", year), "n1")
		connection := func(f Files) *tls.ConnectionState {
			list, err := Inspect(f.Cert)
			if err != nil {
				t.Fatal(err)
			}
			return &tls.ConnectionState{PeerCertificates: list}
		}
		brief := connection(blue.issue(t, "brief", func() (Pair, error) { return blue.Client("brief", time.Hour) }))
		ops, node, none := connection(blue.client(t, "ops")), connection(blue.node(t, "n2", year)),
			&tls.ConnectionState{}
		unnamed, alien := connection(blue.alien(t)), connection(blue.alien(t, "quorate://cluster/green/client/ops"))
		foreign := connection(later.client(t, "ops"))
		check := n1.CheckClient(AuthRequire)
		for range 2 { // the second time from memory
			for name, c := range map[string]*tls.ConnectionState{
				"a client": ops, "a brief client": brief,
				"a node": node, "no role": unnamed,
			} {
				if err := check(c); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for says, c := range map[string]*tls.ConnectionState{
				"there is none": none, "client ops of cluster green, and this is cluster blue": alien,
				"unknown authority": foreign,
			} {
				if err := check(c); err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("got %v, want %q", err, says)
				}
			}
		}
		if err := n1.CheckClient(AuthRequest)(none); err != nil || n1.CheckClient(AuthNone) != nil {
			t.Errorf("where none is required: %v", err)
		}
		time.Sleep(time.Hour + time.Second)
		if err := check(brief); err == nil || !strings.Contains(err.Error(), "expired") || check(ops) != nil {
			t.Errorf("after its end: %v; one that goes on: %v", err, check(ops))
		}
		files := later.node(t, "n1", year)
		for from, to := range map[string]string{
			files.CA: blue.CA(), files.Cert: blue.Cert("n1"),
			files.Key: blue.Key("n1"),
		} {
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
		if err := n1.Reload(); err != nil {
			t.Fatal(err)
		}
		if err := check(ops); err == nil || check(foreign) != nil {
			t.Errorf("after another authority: a client of the earlier one: %v; one of the new one: %v",
				err, check(foreign))
		}
	})
}

// TestClientsHaveAnAuthorityOfTheirOwn: with a client authority, clients of the cluster's authority are refused and
// nodes of it are not; nodes of the client authority are not nodes.
func TestClientsHaveAnAuthorityOfTheirOwn(t *testing.T) {
	t.Parallel()
	blue, people := newTestAuthority(t, "blue"), newTestAuthority(t, "blue")
	files := blue.node(t, "n1", year)
	files.ClientCA = people.CA()
	n1 := openStore(t, files, "n1")
	connection := func(f Files) *tls.ConnectionState {
		list, err := Inspect(f.Cert)
		if err != nil {
			t.Fatal(err)
		}
		return &tls.ConnectionState{PeerCertificates: list}
	}
	check := n1.CheckClient(AuthRequire)
	for name, c := range map[string]struct {
		files  Files
		passes bool
	}{
		"a client":                    {people.client(t, "ops"), true},
		"a client of the nodes":       {blue.client(t, "ops"), false},
		"a node":                      {blue.node(t, "n2", year), true},
		"a node of the clients":       {people.node(t, "n2", year), true}, // it is not a client of the API
		"a client of another cluster": {newTestAuthority(t, "green").client(t, "ops"), false},
	} {
		for range 2 { // the second time from memory
			if err := check(connection(c.files)); (err == nil) != c.passes {
				t.Errorf("%s: %v", name, err)
			}
		}
		c.files.CA = blue.CA()
		config, err := ClientConfig(c.files, "localhost")
		if err != nil {
			t.Fatal(err)
		}
		_, refused := handshake(t, config, n1.API(AuthRequire))
		if known := !strings.Contains(name, "another"); (refused == nil) != known {
			t.Errorf("the handshake of %s: %v", name, refused)
		}
	}
	if id, err := n1.NodeOf(connection(people.node(t, "n2", year))); err == nil {
		t.Errorf("a certificate of the client authority is that of node %s", id)
	}
	if _, err := n1.Identify(*connection(people.node(t, "n2", year))); err == nil {
		t.Error("raft takes a certificate of the client authority")
	}
}

// TestAuthoritiesOfClients: the pool stays the same one until the authorities change.
func TestAuthoritiesOfClients(t *testing.T) {
	t.Parallel()
	blue, people := newTestAuthority(t, "blue"), newTestAuthority(t, "blue")
	files := blue.node(t, "n1", year)
	files.ClientCA = filepath.Join(t.TempDir(), "clients.pem")
	use := func(from string) {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files.ClientCA, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	use(blue.CA())
	n1 := openStore(t, files, "n1")
	before, version := n1.ClientRoots(), n1.Version()
	if err := n1.Reload(); err != nil || n1.ClientRoots() != before || n1.Version() != version {
		t.Errorf("the same authorities: %v, version %d", err, n1.Version())
	}
	use(people.CA())
	if err := n1.Reload(); err != nil || n1.ClientRoots() == before || n1.Version() == version {
		t.Errorf("other authorities: %v, version %d", err, n1.Version())
	}
	if openStore(t, blue.node(t, "n2", year), "n2").ClientRoots() == nil {
		t.Error("without a file of their own, clients have no authority")
	}
}

// TestProvedChain: the certificates of clients identify them where they are asked for.
func TestProvedChain(t *testing.T) {
	t.Parallel()
	blue := newTestAuthority(t, "blue")
	n1 := openStore(t, blue.node(t, "n1", year), "n1")
	list, err := Inspect(blue.client(t, "ops").Cert)
	if err != nil {
		t.Fatal(err)
	}
	if n1.ProvedChain(AuthNone) != nil {
		t.Error("a certificate identifies a client where certificates are ignored")
	}
	for _, auth := range []ClientAuth{AuthRequest, AuthRequire} {
		chain := n1.ProvedChain(auth)
		if got := chain(&tls.ConnectionState{PeerCertificates: list}); len(got) != len(list) || got[0] != list[0] {
			t.Errorf("%s: %d certificates", auth, len(got))
		}
		if got := chain(nil); got != nil {
			t.Errorf("%s, plain text: %d certificates", auth, len(got))
		}
	}
}
