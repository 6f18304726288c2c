package authn

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// MaxIssuers bounds the issuers of a configuration.
	MaxIssuers = 16
	// DefaultMaxAge is the longest life of a JWT, from iat to exp, if the issuer does not set another one.
	DefaultMaxAge = time.Hour
	// LongestMaxAge is the longest MaxAge that an issuer may set.
	LongestMaxAge = 24 * time.Hour

	maxRules = 16
)

// algorithms are the signature algorithms that an issuer may use, and the default. Neither "none" nor algorithms with
// shared keys (HS256) are among them: a server that verifies those could sign too.
var algorithms = []string{"RS256", "PS256", "ES256", "EdDSA"}

// Issuer is the configuration of one issuer of JSON Web Tokens.
type Issuer struct {
	// Name begins the names of its users and groups: 1 to 63 characters of a-z, 0-9 and '-', beginning with a letter.
	Name string
	// URL is the claim iss of its tokens, compared whole. It is an https URL; http is allowed on loopback.
	URL string
	// KeysURL or KeysFile is where its key set (JWKS) is read. Without both, the URL is found by OIDC discovery, below
	// URL. KeysURL is an https URL; http is allowed on loopback.
	KeysURL, KeysFile string
	// Audience must be the only audience of a token, because a service that is another audience could use the token too.
	Audience string
	// User is the path of the claim that names the user (see ClaimRule.Claim). Choose one whose values are never given
	// to another user later, such as repository_id of GitHub.
	User string
	// Require are rules that must all be met. There must be one, because issuers such as GitHub sign tokens for everyone.
	Require []ClaimRule
	// Groups are the groups of a user by claims.
	Groups []GroupRule
	// Algorithms are the allowed ones of RS256, PS256, ES256 and EdDSA; empty allows all four.
	Algorithms []string
	// MaxAge is the longest life of a token, from iat to exp: zero means DefaultMaxAge, LongestMaxAge is the most.
	MaxAge time.Duration
}

// GroupRule puts users in a group.
type GroupRule struct {
	// Group is the name without the issuer.
	Group string
	// When are rules that must all be met; there must be one.
	When []ClaimRule
}

var issuerName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// reservedNames are sources of users that are not issuers.
var reservedNames = []string{"account", "cert", "frontend", "system", "anonymous"}

// Check returns an error that names every field that is not valid.
func (i Issuer) Check() error {
	_, err := compileIssuer(i)
	return err
}

// CheckIssuers returns an error that names every problem of a configuration.
func CheckIssuers(issuers []Issuer) error {
	_, err := compileIssuers(issuers)
	return err
}

func compileIssuers(issuers []Issuer) ([]issuerRules, error) {
	if len(issuers) > MaxIssuers {
		return nil, fmt.Errorf("there are %d issuers of tokens, %d are allowed", len(issuers), MaxIssuers)
	}
	var problems []error
	compiled := make([]issuerRules, 0, len(issuers))
	names, urls := map[string]bool{}, map[string]bool{}
	for _, i := range issuers {
		rules, err := compileIssuer(i)
		if names[i.Name] {
			err = errors.Join(err, fmt.Errorf("issuer %q: the name is used twice", i.Name))
		}
		if urls[i.URL] {
			err = errors.Join(err, fmt.Errorf("issuer %q: another issuer has the same url", i.Name))
		}
		names[i.Name], urls[i.URL] = true, true
		problems = append(problems, err)
		compiled = append(compiled, rules)
	}
	return compiled, errors.Join(problems...)
}

// issuerRules is an issuer whose configuration was checked, with its paths parsed.
type issuerRules struct {
	Issuer
	user    claimPath
	require []claimRule
	groups  []groupRule
}

type groupRule struct {
	name string // with the issuer
	when []claimRule
}

// compileIssuer checks an issuer, fills in defaults, and parses the paths of claims.
func compileIssuer(i Issuer) (issuerRules, error) {
	var problems []error
	report := func(err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("issuer %q: %w", i.Name, err))
		}
	}
	i.MaxAge = withDefault(i.MaxAge, DefaultMaxAge)
	if len(i.Algorithms) == 0 {
		i.Algorithms = algorithms
	}
	c := issuerRules{Issuer: i}
	report(i.checkIdentity())
	report(i.checkKeys())
	report(i.checkBounds())
	var err error
	c.user, err = parsePath(i.User)
	report(prefixed("user", err))
	for _, rule := range i.Require {
		compiled, err := compileRule(rule)
		report(prefixed("claim-rules", err))
		c.require = append(c.require, compiled)
	}
	for _, group := range i.Groups {
		compiled, err := compileGroup(i.Name, group)
		report(err)
		c.groups = append(c.groups, compiled)
	}
	return c, errors.Join(problems...)
}

func (i Issuer) checkIdentity() error {
	switch {
	case !issuerName.MatchString(i.Name):
		return errors.New("name: allowed are 1 to 63 characters of a-z, 0-9 and '-', beginning with a letter")
	case slices.Contains(reservedNames, i.Name):
		return fmt.Errorf("name: %s are reserved", strings.Join(reservedNames, ", "))
	case !isName(i.Audience):
		return fmt.Errorf("audience: 1 to %d visible ASCII characters without '*' are needed", MaxUserLength)
	}
	return prefixed("url", checkURL(i.URL))
}

func (i Issuer) checkKeys() error {
	if i.KeysURL != "" && i.KeysFile != "" {
		return errors.New("keys-url and keys-file: one of them is allowed")
	}
	if i.KeysURL != "" {
		return prefixed("keys-url", checkURL(i.KeysURL))
	}
	return nil
}

func (i Issuer) checkBounds() error {
	switch {
	case len(i.Require) == 0:
		return errors.New("claim-rules: a rule is needed, because otherwise every token of the issuer for this audience " +
			"passes")
	case len(i.Require) > maxRules:
		return fmt.Errorf("claim-rules: at most %d rules are allowed", maxRules)
	case len(i.Groups) > MaxGroups:
		return fmt.Errorf("groups: at most %d are allowed", MaxGroups)
	case i.MaxAge < time.Second || i.MaxAge > LongestMaxAge:
		return fmt.Errorf("max-age is %s: allowed are 1s to %s", i.MaxAge, LongestMaxAge)
	}
	for _, algorithm := range i.Algorithms {
		if !slices.Contains(algorithms, algorithm) {
			return fmt.Errorf("algorithm %q: allowed are %s", algorithm, strings.Join(algorithms, ", "))
		}
	}
	return nil
}

func compileGroup(issuer string, g GroupRule) (groupRule, error) {
	c := groupRule{name: issuer + "/" + g.Group}
	switch {
	case g.Group == "" || !isName(c.name):
		return c, fmt.Errorf("group %q: visible ASCII characters without '*' are allowed, %d with the issuer", g.Group,
			MaxUserLength)
	case len(g.When) == 0 || len(g.When) > maxRules:
		return c, fmt.Errorf("group %s: 1 to %d rules are needed", g.Group, maxRules)
	}
	for _, rule := range g.When {
		compiled, err := compileRule(rule)
		if err != nil {
			return c, fmt.Errorf("group %s: %w", g.Group, err)
		}
		c.when = append(c.when, compiled)
	}
	return c, nil
}

// checkURL checks the URL of an issuer or of its keys. Plain http is allowed on loopback only, because keys that
// anyone on the way can replace verify nothing.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Opaque != "":
		return fmt.Errorf("%q is not a URL https://host/path without user and fragment", text)
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%q must begin with https:// (http:// is allowed on loopback)", text)
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

func prefixed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

func withDefault[T comparable](value, unset T) T {
	var zero T
	if value == zero {
		return unset
	}
	return value
}
