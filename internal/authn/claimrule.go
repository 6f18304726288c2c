package authn

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ClaimRule asks that a claim has one of some values. It is met if the claim is one of them, or is a list that contains
// one of them. A claim that is neither a string nor a list of strings fails every rule; so does a missing one.
type ClaimRule struct {
	// Claim is the path of the claim: names from the outside to the inside, joined with "/", such as
	// kubernetes.io/serviceaccount/name. In a name, "~1" stands for "/" and "~0" for "~", as in JSON Pointers
	// (RFC 6901): https:~1~1example.org~1team is the claim "https://example.org/team".
	Claim string
	// Values are compared whole and are case-sensitive.
	Values []string
}

const (
	maxPathLength = 256
	maxPathDepth  = 8
	maxValues     = 100
	maxValue      = 1024
)

// checkedClaims are claims that every token is checked for. A rule about them would only look like a restriction.
var checkedClaims = []string{"iss", "aud", "exp", "iat", "nbf"}

type claimPath struct {
	text  string
	names []string
}

type claimRule struct {
	path   claimPath
	values []string
}

func parsePath(text string) (claimPath, error) {
	if text == "" || len(text) > maxPathLength {
		return claimPath{}, fmt.Errorf("the path of a claim has 1 to %d characters", maxPathLength)
	}
	path := claimPath{text: text}
	for part := range strings.SplitSeq(text, "/") {
		name, err := unescapeName(part)
		if err != nil {
			return claimPath{}, fmt.Errorf("claim %q: %w", text, err)
		}
		path.names = append(path.names, name)
	}
	if len(path.names) > maxPathDepth {
		return claimPath{}, fmt.Errorf("claim %q: at most %d levels are allowed", text, maxPathDepth)
	}
	if slices.Contains(checkedClaims, path.names[0]) {
		return claimPath{}, fmt.Errorf("claim %q: %s are checked for every token; name another claim", text,
			strings.Join(checkedClaims, ", "))
	}
	return path, nil
}

func unescapeName(part string) (string, error) {
	if part == "" {
		return "", errors.New(`a name between "/" is empty; "~1" stands for a "/" in a name`)
	}
	rest := strings.ReplaceAll(strings.ReplaceAll(part, "~0", ""), "~1", "")
	if strings.Contains(rest, "~") {
		return "", errors.New(`"~" must be followed by 0 or 1`)
	}
	return strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~"), nil
}

func compileRule(rule ClaimRule) (claimRule, error) {
	path, err := parsePath(rule.Claim)
	if err != nil {
		return claimRule{}, err
	}
	if len(rule.Values) == 0 || len(rule.Values) > maxValues {
		return claimRule{}, fmt.Errorf("claim %q: 1 to %d values are needed", rule.Claim, maxValues)
	}
	for _, value := range rule.Values {
		if value == "" || len(value) > maxValue {
			return claimRule{}, fmt.Errorf("claim %q: a value has 1 to %d bytes", rule.Claim, maxValue)
		}
	}
	return claimRule{path: path, values: slices.Clone(rule.Values)}, nil
}

// errClaimMissing and others say why a rule fails without the value of the claim.
var (
	errClaimMissing = errors.New("the claim is missing")
	errClaimType    = errors.New("the claim is neither a string nor a list of strings")
	errClaimValue   = errors.New("the claim has none of the allowed values")
)

// check returns an error if the rule is not met by the claims of a token.
func (r claimRule) check(c claims) error {
	value, found := c.at(r.path)
	if !found {
		return errClaimMissing
	}
	values, valid := stringsOf(value)
	if !valid {
		return errClaimType
	}
	for _, v := range values {
		if slices.Contains(r.values, v) {
			return nil
		}
	}
	return errClaimValue
}

// firstFailure is nil if all are met.
func firstFailure(rules []claimRule, c claims) (failed claimRule, err error) {
	for _, rule := range rules {
		if err := rule.check(c); err != nil {
			return rule, err
		}
	}
	return claimRule{}, nil
}
