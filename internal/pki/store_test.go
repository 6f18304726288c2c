package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// TestOpenRefusesInvalidCertificates checks that Open rejects what other nodes would reject.
func TestOpenRefusesInvalidCertificates(t *testing.T) {
	t.Parallel()
	blue, foreign := newTestAuthority(t, "blue"), newTestAuthority(t, "blue")
	good := blue.node(t, "n1", year)
	readable := blue.node(t, "n9", year)
	if err := os.Chmod(readable.Key, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		files Files
		says  string
	}{
		"another node's": {blue.node(t, "n2", year), "that of node n2 of cluster blue, and this is node n1"},
		"a client's":     {blue.client(t, "ops"), "that of client ops"},
		"a foreign one":  {Files{CA: foreign.CA(), Cert: good.Cert, Key: good.Key}, "unknown authority"},
		"an expired one": {
			blue.issue(t, "old", func() (Pair, error) { return blue.Node("n1", nil, -time.Minute) }), "expired",
		},
		"a key of another": {
			Files{CA: good.CA, Cert: good.Cert, Key: blue.Key("ops")},
			"private key does not match",
		},
		"a world-readable key": {readable, "chmod 0600"},
		"no authority":         {Files{CA: good.Cert, Cert: good.Cert, Key: good.Key}, "not an authority"},
		"an authority of gaps": {Files{CA: good.Key, Cert: good.Cert, Key: good.Key}, "BEGIN CERTIFICATE"},
		"a file that is gone":  {Files{CA: good.CA, Cert: good.Cert + "x", Key: good.Key}, "no such file"},
	} {
		if _, err := Open(tc.files, "blue", "n1", nil); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tc.says)
		}
	}
	openStore(t, good, "n1")
}

// transcript is a buffer that can be read while the log writes to it.
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

func runStore(t *testing.T, files Files) (*Store, *transcript) {
	t.Helper()
	said := new(transcript)
	s, err := Open(files, "blue", "n1", hclog.New(&hclog.LoggerOptions{Output: said}))
	if err != nil {
		t.Fatal(err)
	}
	go s.Run(t.Context())
	return s, said
}

// TestRenewedCertificatesAreTaken checks that renewed files are used without a call, and that bad ones are not.
func TestRenewedCertificatesAreTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newTestAuthority(t, "blue")
		s, said := runStore(t, o.node(t, "n1", 14*24*time.Hour+2*time.Hour))
		first, _ := s.Ends()
		time.Sleep(time.Hour + time.Second) // at a time other than that of the poll
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

// TestTheLogSaysThatACertificateHasEnded checks that the log says so at once and every ten minutes, until the
// certificate is renewed.
func TestTheLogSaysThatACertificateHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newTestAuthority(t, "blue")
		_, said := runStore(t, o.node(t, "n1", time.Hour))
		for _, step := range []struct {
			wait time.Duration
			want int
		}{{59*time.Minute + time.Second, 0}, {2 * time.Minute, 1}, {4 * time.Minute, 1}, {10 * time.Minute, 2}} {
			time.Sleep(step.wait)
			synctest.Wait()
			if got := strings.Count(said.String(), "[ERROR]"); got != step.want {
				t.Errorf(
					"%v later the log says %d times that the certificate has ended, want %d:\n%s",
					step.wait,
					got,
					step.want,
					said.String(),
				)
			}
		}
		o.node(t, "n1", year)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := strings.Count(
			said.String(),
			"[ERROR]",
		); got > 3 { // files that are being replaced may cause one error
			t.Errorf("after the renewal it goes on:\n%s", said.String())
		}
	})
}

// TestTwoAuthoritiesWhileOneReplacesTheOther: first nodes of both authorities accept each other, later only those of
// the new one.
func TestTwoAuthoritiesWhileOneReplacesTheOther(t *testing.T) {
	t.Parallel()
	before, after := newTestAuthority(t, "blue"), newTestAuthority(t, "blue")
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
	n1, n2 := openStore(t, early, "n1"), openStore(t, late, "n2")
	if c, s := handshake(t, n1.Dial(""), n2.Accept()); c != nil || s != nil {
		t.Errorf("while both are trusted: %v, %v", c, s)
	}
	join(after.CA())
	known := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{n1.current.Load().own.Leaf}}
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
	if _, s := handshake(t, n1.Dial(""), n2.Accept()); s == nil {
		t.Error("the old authority is still trusted")
	}
	if err := n1.Reload(); err == nil {
		t.Error("n1 drops the only authority that signed its certificate")
	}
}
