package authn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// clockLeeway is how far iat and nbf may be in the future, for clocks that differ. The end of a token has none.
const clockLeeway = 60 * time.Second

type evaluation struct {
	token *parsedJWT
	now   time.Time
	// explaining is set if the checks continue after one that failed.
	explaining bool
}

// check is one rule of an issuer. Its test returns why the rule is not met, without any claim of the token; a
// *CredentialError replaces the reason. Its show returns the claims in question, for an operator who has the token.
type check struct {
	rule   string
	reason Reason
	test   func(context.Context, *evaluation) error
	show   func(*evaluation) string
}

// makeChecks returns the rules in the order in which they are checked. Those of the operator come after the signature,
// so that only holders of a genuine token learn them from errors.
func (i *issuer) makeChecks() []check {
	checks := []check{
		{"algorithm", JWTAlgorithm, i.testAlgorithm, showAlgorithm},
		{"audience", JWTAudience, i.testAudience, showClaim("aud")},
		{"exp", JWTExpired, testEnd, showClaim("exp")},
		{"iat", JWTNotYetValid, testIssued, showClaim("iat")},
		{"nbf", JWTNotYetValid, testNotBefore, showClaim("nbf")},
		{"max-age", JWTLifetime, i.testLifetime, showNothing},
		{"signature", JWTSignature, i.testSignature, showKey},
	}
	for _, rule := range i.require {
		checks = append(checks, check{
			"require " + rule.path.text, JWTRequiredClaim,
			func(_ context.Context, e *evaluation) error { return rule.check(e.token.claims) },
			showRule(rule),
		})
	}
	return append(checks, check{"user " + i.user.text, JWTUser, i.testUser, showPath(i.user)})
}

func (i *issuer) verify(ctx context.Context, token *parsedJWT, now func() time.Time) (Identity, error) {
	e := &evaluation{token: token, now: now()}
	for _, c := range i.checks {
		if err := c.test(ctx, e); err != nil {
			return Identity{}, i.refusal(c, err)
		}
	}
	user, _ := i.userOf(token.claims)
	ends, _ := token.claims.time("exp")
	if !now().Before(ends) { // the check of the signature may have waited for keys
		return Identity{}, i.refusal(check{rule: "exp", reason: JWTExpired}, errEnded)
	}
	issued, _ := token.claims.time("iat")
	id, _ := token.claims.text("jti")
	identity := Identity{Kind: IssuerKind, User: user, Ends: ends, Issued: issued, JWTID: id}
	for _, group := range i.groups {
		if _, err := firstFailure(group.when, token.claims); err == nil {
			identity.Groups = append(identity.Groups, group.name)
		}
	}
	return identity, nil
}

func (i *issuer) refusal(c check, err error) error {
	if refused := (*CredentialError)(nil); errors.As(err, &refused) {
		return &CredentialError{Reason: refused.Reason, Issuer: i.Name, Rule: c.rule, text: refused.text}
	}
	return &CredentialError{Reason: c.reason, Issuer: i.Name, Rule: c.rule, text: err.Error()}
}

func (i *issuer) testAlgorithm(_ context.Context, e *evaluation) error {
	if !slices.Contains(i.Algorithms, e.token.algorithm) {
		return fmt.Errorf("it must be signed with one of %s", strings.Join(i.Algorithms, ", "))
	}
	return nil
}

func (i *issuer) testAudience(_ context.Context, e *evaluation) error {
	audiences, valid := stringsOf(e.token.claims["aud"])
	if !valid || len(audiences) != 1 || audiences[0] != i.Audience {
		return fmt.Errorf("the only audience must be %q", i.Audience)
	}
	return nil
}

var errEnded = errors.New("the token has expired")

func testEnd(_ context.Context, e *evaluation) error {
	ends, err := e.token.claims.time("exp")
	if err != nil {
		return refuse(JWTTimes, "%v", err)
	}
	if !e.now.Before(ends) {
		return errEnded
	}
	return nil
}

var errFuture = fmt.Errorf("the time is more than %s in the future", clockLeeway)

func testIssued(_ context.Context, e *evaluation) error {
	issued, err := e.token.claims.time("iat")
	if err != nil {
		return refuse(JWTTimes, "%v", err)
	}
	if issued.After(e.now.Add(clockLeeway)) {
		return errFuture
	}
	return nil
}

func testNotBefore(_ context.Context, e *evaluation) error {
	start, err := e.token.claims.time("nbf")
	if errors.Is(err, errNoTime) {
		return nil
	}
	if err != nil {
		return refuse(JWTTimes, "%v", err)
	}
	if start.After(e.now.Add(clockLeeway)) {
		return errFuture
	}
	return nil
}

func (i *issuer) testLifetime(_ context.Context, e *evaluation) error {
	ends, err := e.token.claims.time("exp")
	issued, err2 := e.token.claims.time("iat")
	if err := errors.Join(err, err2); err != nil {
		return refuse(JWTTimes, "exp and iat are needed")
	}
	if life := ends.Sub(issued); life <= 0 || life > i.MaxAge {
		return fmt.Errorf("the life from iat to exp must be positive and at most %s", i.MaxAge)
	}
	return nil
}

func (i *issuer) testUser(_ context.Context, e *evaluation) error {
	_, err := i.userOf(e.token.claims)
	return err
}

func (i *issuer) userOf(c claims) (string, error) {
	value, found := c.at(i.user)
	if !found {
		return "", errClaimMissing
	}
	name, isString := value.(string)
	user := i.Name + "/" + name
	if !isString || name == "" || !isName(user) {
		return "", fmt.Errorf("the claim is not a string of visible ASCII characters without '*', at most %d",
			MaxUserLength-len(i.Name)-1)
	}
	return user, nil
}

// testSignature verifies the token with go-oidc, which checks issuer, audience and end once more, and the signature by
// signatureCheck. Errors of go-oidc repeat claims, so their text is not used.
func (i *issuer) testSignature(ctx context.Context, e *evaluation) error {
	keys := &signatureCheck{issuer: i, token: e.token}
	verifier := oidc.NewVerifier(i.URL, keys, &oidc.Config{
		ClientID: i.Audience, SupportedSigningAlgs: i.Algorithms, Now: func() time.Time { return e.now },
	})
	_, err := verifier.Verify(ctx, e.token.raw)
	switch {
	case keys.err != nil:
		return keys.err
	case keys.verified && (err == nil || e.explaining):
		return nil
	case keys.verified:
		return refuse(JWTMalformed, "its claims are not those of an OIDC token: a registered claim, such as sub, "+
			"has a wrong type or occurs in two spellings")
	}
	return refuse(JWTMalformed, "its header cannot be parsed, or names an algorithm that is not allowed")
}

// signatureCheck is the key set that go-oidc verifies one token with. It keeps the error, because go-oidc turns errors
// into text.
type signatureCheck struct {
	issuer   *issuer
	token    *parsedJWT
	verified bool
	err      error
}

// VerifySignature verifies the signature and returns the payload.
func (s *signatureCheck) VerifySignature(ctx context.Context, raw string) ([]byte, error) {
	payload, err := s.verify(ctx, raw)
	s.verified, s.err = err == nil, err
	return payload, err
}

func (s *signatureCheck) verify(ctx context.Context, raw string) ([]byte, error) {
	signed, err := jose.ParseSignedCompact(raw, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(s.token.algorithm)})
	if err != nil || len(signed.Signatures) != 1 {
		return nil, refuse(JWTMalformed, "it must have exactly one signature")
	}
	keys, err := s.issuer.keys.find(ctx, s.token.keyID, s.token.algorithm)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if payload, err := signed.Verify(key.public); err == nil {
			return payload, nil
		}
	}
	return nil, errors.New("it was not signed with a key of the issuer")
}
