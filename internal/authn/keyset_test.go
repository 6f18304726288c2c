package authn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/authn/authntest"
)

// reasonOf is empty for a good token.
func reasonOf(v *JWTVerifier, raw string) Reason {
	_, err := v.Verify(context.Background(), raw)
	reason, _ := ReasonOf(err)
	return reason
}

// TestUnknownKeysCauseOneRead sends many tokens at once that name keys which do not exist.
func TestUnknownKeysCauseOneRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := authntest.New(testURL)
		v := newTestVerifier(t, i)
		synctest.Wait()
		storm := func() {
			var calls sync.WaitGroup
			attacker := authntest.New(testURL).SigningKey()
			for n := range 1000 {
				raw := authntest.Sign(withID(attacker, fmt.Sprint("k", n)), goodClaims(i, nil), nil)
				calls.Go(func() {
					if reason := reasonOf(v, raw); reason != JWTKeyUnknown {
						t.Errorf("reason %q", reason)
					}
				})
			}
			calls.Wait()
		}
		i.ServeKeysWith(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Second) // long enough for all to wait for it
			_, _ = w.Write(i.KeySet())
		})
		for n, want := range []int{2, 2, 2} { // the first read was at the start
			storm()
			if got := i.Fetches(); got != want {
				t.Errorf("%d reads after storm %d, want %d", got, n+1, want)
			}
		}
		time.Sleep(earlyInterval)
		storm()
		if got := i.Fetches(); got != 3 {
			t.Errorf("%d reads after another 30 seconds, want 3", got)
		}
	})
}

// TestNewKeysAreFound: a token that is signed with a new key is accepted at once, and waits for the first read.
func TestNewKeysAreFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := authntest.New(testURL)
		i.ServeKeysWith(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Second)
			_, _ = w.Write(i.KeySet())
		})
		v := newTestVerifier(t, i)
		if reason := reasonOf(v, i.Sign(goodClaims(i, nil))); reason != "" {
			t.Errorf("a token during the first read: %q", reason)
		}
		i.AddKey("ES256")
		if reason := reasonOf(v, i.Sign(goodClaims(i, nil))); reason != "" {
			t.Errorf("a token of a new key: %q", reason)
		}
		i.ServeKeysWith(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		i.AddKey("ES256")
		time.Sleep(earlyInterval)
		begin := time.Now()
		if reason := reasonOf(v, i.Sign(goodClaims(i, nil))); reason != JWTKeyUnknown || time.Since(begin) > maxKeyWait {
			t.Errorf("while the keys cannot be read: %q after %s", reason, time.Since(begin))
		}
	})
}

// TestWithdrawnKeys: tokens of a withdrawn key are refused after the next read, also those that were verified before.
func TestWithdrawnKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := authntest.New(testURL)
		v := newTestVerifier(t, i)
		synctest.Wait()
		time.Sleep(refreshInterval - time.Second)
		old := i.Sign(goodClaims(i, nil))
		if reason := reasonOf(v, old); reason != "" {
			t.Fatal(reason)
		}
		i.AddKey("ES256")
		i.WithdrawKeys()
		if reason := reasonOf(v, old); reason != "" {
			t.Errorf("before the next read: %q", reason)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if reason := reasonOf(v, old); reason != JWTKeyUnknown {
			t.Errorf("after the next read: %q", reason)
		}
		if reason := reasonOf(v, i.Sign(goodClaims(i, nil))); reason != "" {
			t.Errorf("the new key: %q", reason)
		}
		i.ServeKeysWith(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"keys":[]}`) })
		time.Sleep(refreshInterval)
		synctest.Wait()
		if reason := reasonOf(v, i.Sign(goodClaims(i, nil))); reason != JWTKeyUnknown {
			t.Errorf("after all keys were withdrawn: %q", reason)
		}
	})
}

// TestStaleKeys: keys that cannot be read again are believed for 24 hours.
func TestStaleKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := authntest.New(testURL)
		var failures atomic.Int64
		v := NewJWTVerifier(JWTOptions{Transport: i.Transport(), OnKeysRead: func(source string, err error) {
			if err != nil && source == testURL {
				failures.Add(1)
			}
		}})
		t.Cleanup(v.Close)
		if err := v.Configure([]Issuer{testIssuer(i)}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		i.ServeKeysWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
		time.Sleep(maxStale - time.Second)
		if reason := reasonOf(v, i.Sign(goodClaims(i, nil))); reason != "" {
			t.Errorf("before 24 hours: %q", reason)
		}
		if status := v.Keys()[0]; status.Err == nil || status.Keys != 1 || time.Since(status.ReadAt) < 23*time.Hour {
			t.Errorf("status %+v", status)
		}
		time.Sleep(2 * time.Second)
		if reason := reasonOf(v, i.Sign(goodClaims(i, map[string]any{"jti": "8"}))); reason != KeysUnavailable {
			t.Errorf("after 24 hours: %q", reason)
		}
		if n := failures.Load(); n < 1000 {
			t.Errorf("%d failures were reported", n)
		}
		i.ServeKeysWith(nil)
		time.Sleep(retryInterval)
		synctest.Wait()
		if reason := reasonOf(v, i.Sign(goodClaims(i, map[string]any{"jti": "9"}))); reason != "" {
			t.Errorf("after the issuer is back: %q", reason)
		}
	})
}

// TestBadKeySets: answers that must not be used leave the keys as they were.
func TestBadKeySets(t *testing.T) {
	t.Parallel()
	i := authntest.Start(t)
	elsewhere := authntest.Start(t)
	elsewhere.AddKey("ES256")
	answers := map[string]http.HandlerFunc{
		"more than 100 keys|101 keys": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"keys":[`+strings.Repeat(`{},`, 100)+`{}]}`)
		},
		"a redirect|answers 302": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+authntest.KeysPath, http.StatusFound)
		},
		"a set of 2 MiB|more than 1048576 bytes": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"keys":[],"x":"`+strings.Repeat("x", 2<<20)+`"}`)
		},
		"many keys|more than 1048576 bytes": func(w http.ResponseWriter, _ *http.Request) {
			key := strings.TrimSuffix(strings.TrimPrefix(string(i.KeySet()), `{"keys":[`), `]}`)
			_, _ = io.WriteString(w, `{"keys":[`+strings.Repeat(key+",", 10_000)+key+`]}`)
		},
		"a page|not a JSON Web Key Set": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<html>")
		},
		"no keys|not a JSON Web Key Set": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") },
	}
	for name, answer := range answers {
		name, says, _ := strings.Cut(name, "|")
		i.ServeKeysWith(nil)
		v := NewJWTVerifier(JWTOptions{})
		t.Cleanup(v.Close)
		if err := v.Configure([]Issuer{testIssuer(i)}); err != nil {
			t.Fatal(err)
		}
		if reason := reasonOf(v, i.Sign(goodClaims(i, nil))); reason != "" {
			t.Fatalf("%s: before: %q", name, reason)
		}
		i.ServeKeysWith(answer)
		foreign := authntest.Sign(elsewhere.SigningKey(), goodClaims(i, nil), nil) // causes an early read
		if reason := reasonOf(v, foreign); reason != JWTKeyUnknown {
			t.Errorf("%s: %q", name, reason)
		}
		status := v.Keys()[0]
		if status.Err == nil || !strings.Contains(status.Err.Error(), says) || status.Keys != 1 {
			t.Errorf("%s: status %+v", name, status)
		}
	}
	if elsewhere.Fetches() > 0 {
		t.Error("a redirect was followed")
	}
}

// TestUnusableKeys: keys that nothing may be verified with are skipped, and the others are used.
func TestUnusableKeys(t *testing.T) {
	t.Parallel()
	i := authntest.New(testURL)
	private, err := i.SigningKey().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	public := strings.TrimSuffix(strings.TrimPrefix(string(i.KeySet()), `{"keys":[`), `]}`)
	for text, wantKeys := range map[string]int{
		`{"kty":"oct","k":"AAAA","kid":"a"},` + public: 1,
		string(private): 0,
		strings.Replace(public, `"sig"`, `"enc"`, 1):                      0,
		strings.Replace(public, `"ES256"`, `"HS256"`, 1):                  0,
		strings.Replace(public, `"ES256"`, `"RS256"`, 1):                  0,
		`{"kty":"new","kid":"a"},5,"x",null,` + public:                    1,
		`{"kty":"RSA","n":"` + strings.Repeat("_", 170) + `","e":"AQAB"}`: 0, // 1,020 bits
		public + "," + public:                                             2,
	} {
		table, err := parseKeySet([]byte(`{"keys":[` + text + `]}`))
		if err != nil || len(table.keys) != wantKeys {
			t.Errorf("%s: %+v, %v", text, table, err)
		}
	}
	key := i.SigningKey()
	two := &keyTable{keys: []verifyKey{{id: "a", public: key.Public().Key}, {id: "b", public: key.Public().Key}}}
	one := &keyTable{keys: two.keys[:1]}
	if len(two.find("", "ES256")) != 0 || len(one.find("", "ES256")) != 1 || len(one.find("a", "EdDSA")) != 0 ||
		len(one.find("c", "ES256")) != 0 {
		t.Error("tokens without a kid are verified with more than one key, or the type of a key is not looked at")
	}
}

// TestKeySources reads keys from files and from discovery documents.
func TestKeySources(t *testing.T) {
	t.Parallel()
	i := authntest.New(testURL)
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, i.KeySet(), 0o600); err != nil {
		t.Fatal(err)
	}
	config := testIssuer(i)
	config.KeysFile = file
	if reason := reasonOf(newTestVerifier(t, i, config), i.Sign(goodClaims(i, nil))); reason != "" || i.Fetches() > 0 {
		t.Errorf("keys of a file: %q, %d reads", reason, i.Fetches())
	}
	client := &http.Client{Transport: i.Transport()}
	for name, source := range map[string]keySource{
		"missing file": {file: file + "x"}, "folder": {file: t.TempDir()}, "missing page": {url: testURL + "/x"},
		"another issuer's document": {discover: testURL + "/"},
	} {
		if _, err := source.read(t.Context(), client); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	bad := authntest.New(testURL)
	i.URL = "http://far.example.org" // its document names keys in plain text
	if _, err := (keySource{discover: i.URL}).read(t.Context(), client); err == nil || bad.Fetches() > 0 {
		t.Errorf("keys in plain text: %v", err)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, maxKeySetSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (keySource{file: large}).read(t.Context(), client); err == nil {
		t.Error("a file beyond 1 MiB is read")
	}
}

// TestCloseEndsGoroutines: synctest fails if a goroutine of the verifier is left, or hangs if Close does.
func TestCloseEndsGoroutines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := authntest.New(testURL)
		i.ServeKeysWith(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		v := NewJWTVerifier(JWTOptions{Transport: i.Transport()})
		if err := v.Configure([]Issuer{testIssuer(i)}); err != nil {
			t.Fatal(err)
		}
		waiting := make(chan Reason)
		go func() { waiting <- reasonOf(v, i.Sign(goodClaims(i, nil))) }()
		synctest.Wait()
		moved := testIssuer(i)
		moved.KeysURL = testURL + "/moved"
		if err := v.Configure([]Issuer{moved}); err != nil { // ends the read that is under way
			t.Fatal(err)
		}
		if reason := <-waiting; reason != KeysUnavailable {
			t.Errorf("the token that waited: %q", reason)
		}
		v.Close()
		v.Close()
		if reason := reasonOf(v, i.Sign(goodClaims(i, nil))); reason != KeysUnavailable {
			t.Errorf("after Close: %q", reason)
		}
		if err := v.Configure(nil); err == nil {
			t.Error("a closed verifier was configured")
		}
	})
}

// TestKeysSurviveConfigure: a change of rules does not read the keys of an issuer again.
func TestKeysSurviveConfigure(t *testing.T) {
	t.Parallel()
	i := authntest.New(testURL)
	v := newTestVerifier(t, i)
	for range 5 {
		if reason := reasonOf(v, i.Sign(goodClaims(i, nil))); reason != "" {
			t.Fatal(reason)
		}
		if err := v.Configure([]Issuer{testIssuer(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Configure([]Issuer{{Name: "x"}}); err == nil || i.Fetches() != 1 {
		t.Errorf("%v; %d reads, want 1", err, i.Fetches())
	}
	if reason := reasonOf(v, i.Sign(goodClaims(i, nil))); reason != "" {
		t.Errorf("after a configuration that was refused: %q", reason)
	}
	if err := v.Configure(nil); err != nil {
		t.Fatal(err)
	}
	if reason := reasonOf(v, i.Sign(goodClaims(i, nil))); reason != JWTIssuer {
		t.Errorf("after the issuer was removed: %q", reason)
	}
}

var errTest = errors.New("test")

// TestReadAfterCloseIsReportedOnce checks that failures because of Close are not reported.
func TestReadAfterCloseIsReportedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reports := 0
		s := startKeySet(func(ctx context.Context) ([]byte, error) {
			<-ctx.Done()
			return nil, errTest
		}, func(error) { reports++ }, time.Now)
		synctest.Wait()
		s.close()
		if reports != 0 {
			t.Errorf("%d reports", reports)
		}
	})
}
