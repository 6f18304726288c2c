package authn

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Finding says whether a token meets one rule of an issuer.
type Finding struct {
	// Rule is the rule as in CredentialError.Rule, or "group <name>".
	Rule  string
	Holds bool
	// Detail says why the rule is not met, and what the token has. It contains claims of the token.
	Detail string
}

// maxShown bounds what is shown of a claim, in bytes.
const maxShown = 200

// Explain checks a token against every rule of an issuer, and does not stop at the first one that fails. It is for
// operators who have the token, because it shows claims: do not answer it to other callers, and do not log it. The
// groups come last; a group whose rule is not met is not a failure. The error says that no such issuer is configured.
func (v *JWTVerifier) Explain(ctx context.Context, issuerName, raw string) ([]Finding, error) {
	i, known := v.config.Load().byName[issuerName]
	if !known {
		return nil, fmt.Errorf("no issuer %q is configured", issuerName)
	}
	token, malformed := parseJWT(raw)
	if malformed != nil {
		return []Finding{{Rule: "format", Detail: malformed.Error()}}, nil //nolint:nilerr // it is the answer
	}
	format := Finding{Rule: "format", Holds: true, Detail: "a JWT with one signature"}
	from := Finding{Rule: "issuer", Holds: token.issuerURL == i.URL, Detail: shown(token.issuerURL)}
	if !from.Holds {
		from.Detail = fmt.Sprintf("iss must be %q; the token has %s", i.URL, from.Detail)
	}
	findings := []Finding{format, from}
	for _, c := range i.checks {
		e := &evaluation{token: token, now: v.options.Now(), explaining: true}
		err := c.test(ctx, e)
		findings = append(findings, Finding{Rule: c.rule, Holds: err == nil, Detail: joinDetail(err, c.show(e))})
	}
	return append(findings, i.explainGroups(token)...), nil
}

func (i *issuer) explainGroups(token *parsedJWT) []Finding {
	var findings []Finding
	for _, group := range i.groups {
		finding := Finding{Rule: "group " + group.name, Holds: true}
		if failed, err := firstFailure(group.when, token.claims); err != nil {
			show := showRule(failed)(&evaluation{token: token})
			finding.Holds, finding.Detail = false, failed.path.text+": "+joinDetail(err, show)
		}
		findings = append(findings, finding)
	}
	return findings
}

func joinDetail(err error, show string) string {
	switch {
	case err == nil:
		return show
	case show == "":
		return err.Error()
	}
	return err.Error() + "; the token has " + show
}

func showNothing(*evaluation) string { return "" }

func showAlgorithm(e *evaluation) string { return "alg " + shown(e.token.algorithm) }

func showKey(e *evaluation) string {
	if e.token.keyID == "" {
		return "no kid"
	}
	return "kid " + shown(e.token.keyID)
}

// showClaim shows a claim that every token has; a time is shown as such too.
func showClaim(name string) func(*evaluation) string {
	return func(e *evaluation) string {
		value, found := e.token.claims[name]
		if !found {
			return "no " + name
		}
		text := name + " " + shown(value)
		if t, err := e.token.claims.time(name); err == nil {
			text += " (" + t.UTC().Format(time.RFC3339) + ")"
		}
		return text
	}
}

func showPath(path claimPath) func(*evaluation) string {
	return func(e *evaluation) string {
		value, found := e.token.claims.at(path)
		if !found {
			return ""
		}
		return shown(value)
	}
}

func showRule(rule claimRule) func(*evaluation) string {
	return func(e *evaluation) string {
		text := showPath(rule.path)(e)
		if rule.check(e.token.claims) != nil {
			text = strings.TrimPrefix(text+", allowed is "+shown(rule.values), ", ")
		}
		return text
	}
}

// shown writes a value as JSON in one line, cut where it is long.
func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "a value that cannot be shown"
	}
	if len(text) > maxShown {
		return strings.ToValidUTF8(string(text[:maxShown]), "") + "…"
	}
	return string(text)
}
