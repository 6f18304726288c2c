package authn

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// JWTOptions are the settings of a JWTVerifier that do not change while it runs.
type JWTOptions struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Transport reads keys; nil means one with its own connections, proxies from the environment, and Roots.
	Transport http.RoundTripper
	// Roots are the authorities of servers that keys are read from; nil means those of the system.
	Roots *x509.CertPool
	// OnKeysRead is called after each read of a key set, with the file or URL of the issuer's keys; err is nil if the
	// read succeeded. It must return quickly and not call the verifier. It may be nil.
	OnKeysRead func(source string, err error)
}

// JWTVerifier verifies JSON Web Tokens of configured issuers. It reads their keys in the background: each ten minutes,
// and at most once in 30 seconds when a token names an unknown key. It is safe for concurrent use.
type JWTVerifier struct {
	options JWTOptions
	client  *http.Client
	config  atomic.Pointer[jwtConfig]

	mu     sync.Mutex // held by Configure and Close
	sets   map[keySource]*keySet
	closed bool
}

// jwtConfig is one configuration of issuers, with the tokens that were verified under it. It is replaced as a whole, so
// that a verification that began before cannot be remembered after.
type jwtConfig struct {
	byURL    map[string]*issuer
	byName   map[string]*issuer
	verified *tokenMemory
}

type issuer struct {
	issuerRules
	keys   *keySet
	checks []check
}

// NewJWTVerifier returns a verifier without issuers, which refuses every token. Close it in the end.
func NewJWTVerifier(options JWTOptions) *JWTVerifier {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.OnKeysRead == nil {
		options.OnKeysRead = func(string, error) {}
	}
	v := &JWTVerifier{
		options: options, client: newFetchClient(options.Transport, options.Roots), sets: map[keySource]*keySet{},
	}
	v.config.Store(&jwtConfig{verified: newTokenMemory()})
	return v
}

// Configure replaces the issuers and forgets verified tokens. It does not wait for keys: it begins to read those of new
// issuers and keeps those of issuers whose keys stay where they are. If an issuer is not valid, it returns an error
// that names every problem, and the issuers in use stay.
func (v *JWTVerifier) Configure(issuers []Issuer) error {
	compiled, err := compileIssuers(issuers)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return errors.New("the verifier of tokens is closed")
	}
	next := &jwtConfig{byURL: map[string]*issuer{}, byName: map[string]*issuer{}, verified: newTokenMemory()}
	unused := maps.Clone(v.sets)
	for _, rules := range compiled {
		source := rules.keySource()
		i := &issuer{issuerRules: rules, keys: v.keysOf(source)}
		i.checks = i.makeChecks()
		next.byURL[i.URL], next.byName[i.Name] = i, i
		delete(unused, source)
	}
	v.config.Store(next)
	for source, set := range unused {
		delete(v.sets, source)
		set.close()
	}
	return nil
}

func (v *JWTVerifier) keysOf(source keySource) *keySet {
	if set, known := v.sets[source]; known {
		return set
	}
	set := startKeySet(
		func(ctx context.Context) ([]byte, error) { return source.read(ctx, v.client) },
		func(err error) { v.options.OnKeysRead(source.file+source.url+source.discover, err) }, // one of them is set
		v.options.Now,
	)
	v.sets[source] = set
	return set
}

// Close ends the reading of keys and waits for its end. Afterwards, keys become stale.
func (v *JWTVerifier) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	for source, set := range v.sets {
		delete(v.sets, source)
		set.close()
	}
}

// Verify returns the identity that a JWT proves now. The error is a *CredentialError that names the first rule that
// fails. A token that was verified within the last 60 seconds is not verified again, unless the keys of its issuer or
// the configuration changed. The call may wait up to 3 seconds for a key that was not seen before.
func (v *JWTVerifier) Verify(ctx context.Context, raw string) (Identity, error) {
	if len(raw) > MaxJWTLength {
		return Identity{}, refuse(TooLarge, "the token has %d bytes, %d are allowed", len(raw), MaxJWTLength)
	}
	config, hash := v.config.Load(), hashJWT(raw)
	if identity, known := config.verified.get(hash, v.options.Now()); known {
		return identity, nil
	}
	token, err := parseJWT(raw)
	if err != nil {
		return Identity{}, err
	}
	i, known := config.byURL[token.issuerURL]
	if !known {
		return Identity{}, refuse(JWTIssuer, "the token comes from an issuer that is not configured")
	}
	digest := i.keys.digest() // before the verification, because the keys may change during it
	identity, err := i.verify(ctx, token, v.options.Now)
	if err != nil {
		return Identity{}, err
	}
	copy(identity.CredentialID[:], hash[:])
	config.verified.put(hash, verifiedToken{identity: identity, keys: i.keys, digest: digest}, v.options.Now())
	return identity, nil
}

// hashJWT does not allocate for tokens of the usual length.
func hashJWT(raw string) [sha256.Size]byte {
	var buffer [2048]byte
	if len(raw) > len(buffer) {
		return sha256.Sum256([]byte(raw))
	}
	return sha256.Sum256(buffer[:copy(buffer[:], raw)])
}

// Keys returns how current the keys of the issuers are, by the names of the issuers.
func (v *JWTVerifier) Keys() []KeyStatus {
	var list []KeyStatus
	for name, i := range v.config.Load().byName {
		list = append(list, i.keys.status(name))
	}
	slices.SortFunc(list, func(a, b KeyStatus) int { return strings.Compare(a.Issuer, b.Issuer) })
	return list
}
