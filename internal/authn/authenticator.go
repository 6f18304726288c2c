package authn

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Options are the settings of an Authenticator that do not change while it runs.
type Options struct {
	// Cluster is the name of the cluster, which the roles of client certificates must have.
	Cluster string
	// Tokens finds API tokens; nil means that there are none.
	Tokens TokenLookup
	// CatchUp is called once for an API token with an unknown id, before it is looked up again: a node that follows may
	// not know a new token yet. Each address may make the node catch up in vain as often as it may fail. It may be nil.
	CatchUp func(context.Context) error
	// ClientRoots returns the authorities of client certificates; see NewCertificateVerifier.
	ClientRoots func() *x509.CertPool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// KeyTransport, KeyRoots and OnKeysRead are those of JWTOptions.
	KeyTransport http.RoundTripper
	KeyRoots     *x509.CertPool
	OnKeysRead   func(source string, err error)
}

// Config is what an Authenticator believes, and may change while it runs.
type Config struct {
	Issuers      []Issuer
	Certificates []CertificateRule
}

// Check returns an error that names every problem.
func (c Config) Check() error {
	return errors.Join(CheckIssuers(c.Issuers), CheckCertificateRules(c.Certificates))
}

// Credentials are what a call shows of its caller.
type Credentials struct {
	// Authorization are the values of all Authorization headers of the call.
	Authorization []string
	// Chain are the certificates of the connection, the leaf first, if the handshake proved its key. Leave it empty if
	// certificates do not identify callers here, for example because all use the same one to reach the server.
	Chain []*x509.Certificate
	// Address is where the call came from. It must not be taken from a header.
	Address netip.Addr
}

// Authenticator finds out who made a call. It is safe for concurrent use.
type Authenticator struct {
	options      Options
	tokens       *JWTVerifier
	certificates *CertificateVerifier
	failures     *failureLimiter
	// catchUps bounds by address how often unknown tokens make the node catch up in vain.
	catchUps *failureLimiter
}

// New returns an authenticator without issuers and rules. Close it in the end.
func New(options Options) *Authenticator {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Tokens == nil {
		options.Tokens = func(TokenID) (TokenRecord, bool) { return TokenRecord{}, false }
	}
	return &Authenticator{
		options: options,
		tokens: NewJWTVerifier(JWTOptions{
			Now: options.Now, Transport: options.KeyTransport, Roots: options.KeyRoots, OnKeysRead: options.OnKeysRead,
		}),
		certificates: NewCertificateVerifier(options.Cluster, options.ClientRoots, options.Now),
		failures:     newFailureLimiter(), catchUps: newFailureLimiter(),
	}
}

// Configure replaces issuers and rules, and forgets verified tokens. It does not wait for keys of issuers. If
// something is not valid, it returns an error, and everything stays as it was.
func (a *Authenticator) Configure(c Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	return errors.Join(a.certificates.Configure(c.Certificates), a.tokens.Configure(c.Issuers))
}

// JWT returns the verifier of JSON Web Tokens, for Explain and Keys.
func (a *Authenticator) JWT() *JWTVerifier { return a.tokens }

// Close ends the reading of keys and waits for its end.
func (a *Authenticator) Close() { a.tokens.Close() }

// Authenticate returns the identity that the credential of a call proves now. The error is a *CredentialError; its
// reason is NoCredential if there is none, and SeveralCredentials if there are more than one.
//
// Each address may fail 10 times, and then once a second; failures beyond that have the reason Throttled and wrap the
// failure itself. A valid credential is accepted whatever its address failed before. One that this node cannot know yet
// does not count as a failure: its reason is TokenUnverifiable.
func (a *Authenticator) Authenticate(ctx context.Context, c Credentials) (Identity, error) {
	identity, err := a.identify(ctx, c)
	if err == nil {
		return identity, nil
	}
	return Identity{}, a.countFailure(c.Address, err)
}

func (a *Authenticator) identify(ctx context.Context, c Credentials) (Identity, error) {
	switch {
	case len(c.Authorization) == 0 && len(c.Chain) == 0:
		return Identity{}, refuse(NoCredential, "the call has no credential: send an API token or a JWT as "+
			"\"Authorization: Bearer <token>\", or use a client certificate")
	case len(c.Authorization) == 0:
		return a.certificates.Verify(c.Chain)
	case len(c.Chain) > 0:
		return Identity{}, refuse(SeveralCredentials, "the call has an Authorization header and a client certificate: "+
			"one of them is allowed")
	}
	bearer, err := bearerOf(c.Authorization)
	if err != nil {
		return Identity{}, err
	}
	if strings.HasPrefix(bearer, tokenPrefix) {
		return a.verifyToken(ctx, bearer, c.Address)
	}
	return a.tokens.Verify(ctx, bearer)
}

func (a *Authenticator) verifyToken(ctx context.Context, text string, from netip.Addr) (Identity, error) {
	identity, err := VerifyToken(text, a.options.Tokens, a.options.Now())
	if err == nil || a.options.CatchUp == nil {
		return identity, err
	}
	if reason, _ := ReasonOf(err); reason != TokenUnknown {
		return identity, err
	}
	if !a.catchUps.mayFail(from, a.options.Now()) {
		return Identity{}, refuse(TokenUnverifiable, "the API token is not known to this node, which has asked the "+
			"leader too often for tokens from this address; if the token is new, try again in a second")
	}
	if a.options.CatchUp(ctx) != nil {
		a.catchUps.count(from, a.options.Now())
		return Identity{}, refuse(TokenUnverifiable, "the API token is not known to this node, which cannot ask the "+
			"leader now; try again later")
	}
	identity, err = VerifyToken(text, a.options.Tokens, a.options.Now())
	if reason, _ := ReasonOf(err); reason == TokenUnknown {
		a.catchUps.count(from, a.options.Now()) // many calls of one new token may catch up
	}
	return identity, err
}

// countFailure counts the failure of an address and returns the error for it. Failures that are not the caller's are
// not counted.
func (a *Authenticator) countFailure(address netip.Addr, err error) error {
	if reason, _ := ReasonOf(err); reason == NoCredential || reason == KeysUnavailable || reason == TokenUnverifiable {
		return err
	}
	wait := a.failures.count(address, a.options.Now())
	if wait == 0 {
		return err
	}
	return &CredentialError{
		Reason: Throttled, RetryAfter: wait, cause: err,
		text: "too many credentials from this address were refused; the last one: " + err.Error(),
	}
}
