// Package authntest has an issuer of JSON Web Tokens for tests.
package authntest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// KeysPath is where an issuer serves its key set, below its URL.
const KeysPath = "/keys"

// Issuer signs tokens and serves its keys, with discovery. It is safe for concurrent use.
type Issuer struct {
	// URL is the claim iss.
	URL string
	// Now is the clock of Claims.
	Now func() time.Time

	fetches atomic.Int64

	mu   sync.Mutex
	keys []jose.JSONWebKey
	// replace answers requests for keys in place of the issuer, if it is set.
	replace http.HandlerFunc
}

// New returns an issuer with an ES256 key that is not served. Its Transport answers in the place of its URL.
func New(url string) *Issuer {
	i := &Issuer{URL: url, Now: time.Now}
	i.AddKey("ES256")
	return i
}

// Start returns an issuer that is served on loopback until the test ends.
func Start(t testing.TB) *Issuer {
	t.Helper()
	i := New("")
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.URL = server.URL
	return i
}

// AddKey adds a key for RS256, PS256, ES256 or EdDSA, which signs from now on, and returns its id.
func (i *Issuer) AddKey(algorithm string) (id string) {
	key := jose.JSONWebKey{Key: newKey(algorithm), Algorithm: algorithm, Use: "sig"}
	i.mu.Lock()
	defer i.mu.Unlock()
	key.KeyID = fmt.Sprintf("key-%d-%s", len(i.keys)+1, algorithm)
	i.keys = append(i.keys, key)
	return key.KeyID
}

// rsaKey is shared, because making one takes long.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newKey(algorithm string) crypto.Signer {
	switch algorithm {
	case "RS256", "PS256":
		return rsaKey()
	case "EdDSA":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			panic(err)
		}
		return key
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

// WithdrawKeys removes all keys but the newest one.
func (i *Issuer) WithdrawKeys() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = i.keys[len(i.keys)-1:]
}

// ServeKeysWith answers requests for keys with a function; nil restores the keys of the issuer.
func (i *Issuer) ServeKeysWith(answer http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.replace = answer
}

// Fetches counts the requests for keys.
func (i *Issuer) Fetches() int { return int(i.fetches.Load()) }

// SigningKey returns the newest key, with its private part.
func (i *Issuer) SigningKey() jose.JSONWebKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[len(i.keys)-1]
}

// KeySet returns the public keys as a JSON Web Key Set.
func (i *Issuer) KeySet() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	var set jose.JSONWebKeySet
	for _, key := range i.keys {
		set.Keys = append(set.Keys, key.Public())
	}
	text, err := json.Marshal(set)
	if err != nil {
		panic(err)
	}
	return text
}

// ServeHTTP serves discovery and keys.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + KeysPath})
	case KeysPath:
		i.fetches.Add(1)
		i.mu.Lock()
		answer := i.replace
		i.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		_, _ = w.Write(i.KeySet())
	default:
		http.NotFound(w, r)
	}
}

// Transport returns a transport that gives every request to the issuer without a connection, so that tests can use
// virtual time.
func (i *Issuer) Transport() http.RoundTripper { return transport{i} }

type transport struct{ handler http.Handler }

// RoundTrip returns the answer of the handler.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	recorder := httptest.NewRecorder()
	t.handler.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

// Claims returns the claims of a token for an audience that begins now and lasts ten minutes, with more claims that may
// replace them. A nil value removes a claim.
func (i *Issuer) Claims(audience string, more map[string]any) map[string]any {
	now := i.Now().Unix()
	claims := map[string]any{"iss": i.URL, "aud": audience, "sub": "someone", "iat": now, "exp": now + 600}
	maps.Copy(claims, more)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

// Sign signs claims with the newest key.
func (i *Issuer) Sign(claims map[string]any) string {
	return Sign(i.SigningKey(), claims, nil)
}

// Sign signs claims with a key for its algorithm, with more header parameters.
func Sign(key jose.JSONWebKey, claims map[string]any, header map[jose.HeaderKey]any) string {
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return SignText(key, payload, header)
}

// SignText signs a payload with a key for its algorithm, with more header parameters.
func SignText(key jose.JSONWebKey, payload []byte, header map[jose.HeaderKey]any) string {
	options := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{jose.HeaderType: "JWT"}}
	maps.Copy(options.ExtraHeaders, header)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, options)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return text
}
