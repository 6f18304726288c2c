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
