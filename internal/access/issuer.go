package access

import (
	"slices"
	"strings"
)

// Issuer is a service whose signed tokens identify callers. Package access keeps it as data; servers verify the tokens.
type Issuer struct {
	// Name is the first part of the names of its users and groups.
	Name string
	// URL is the "iss" of its tokens: https, or http on loopback.
	URL string
	// KeysURL or KeysFile say where its keys are; both empty means that the URL tells.
	KeysURL, KeysFile string
	// Audience is the "aud" that tokens must have.
	Audience string
	// User is the claim that names the user.
	User string
	// Require has at least one rule; a token must fulfil all of them. The audience alone would let in everyone whom the
	// issuer serves.
	Require []ClaimRule
	// Groups are given to tokens that fulfil all rules of the group.
	Groups []GroupRule
	// Algorithms are the allowed signatures; empty means all of SignatureAlgorithms.
	Algorithms []string
	// MaxAge is the longest life of its tokens, in milliseconds; 0 is DefaultMaxAge.
	MaxAge int64
}

// ClaimRule demands that a claim has one of the values, compared whole.
type ClaimRule struct {
	Claim string
	// Values are sorted and unique in canonical form.
	Values []string
}

// GroupRule gives a group to tokens that fulfil all rules.
type GroupRule struct {
	// Group is the name behind the issuer's: the group is ISSUER/GROUP.
	Group string
	Match []ClaimRule
}

// CertificateRule gives a user to client certificates. Name or DNS is set.
type CertificateRule struct {
	// Name is the name of a client in the role URI of this cluster.
	Name string
	// DNS is a name of a certificate of another authority, compared whole.
	DNS string
	// User is the name behind "cert/".
	User string
}

// SignatureAlgorithms is the closed list of algorithms that issuers may use.
func SignatureAlgorithms() []string { return []string{"ES256", "EdDSA", "PS256", "RS256"} }

// check also refuses an issuer that would let in more than it names.
func (i *Issuer) check() *Error {
	switch {
	case !isShortName(i.Name):
		return invalid("name", shortNameRule, "%q is not a name of an issuer", clip(i.Name))
	case slices.Contains([]string{AccountIssuer, CertificateIssuer, FrontEndIssuer, systemIssuer}, i.Name):
		return invalid("name", "choose another name", "%q is reserved", i.Name)
	case !isURL(i.URL):
		return invalid("url", urlRule, "%q is not the URL of an issuer", clip(i.URL))
	case i.KeysURL != "" && !isURL(i.KeysURL):
		return invalid("keys-url", urlRule, "%q is not a URL of keys", clip(i.KeysURL))
	case i.KeysURL != "" && i.KeysFile != "":
		return invalid("keys-file", "name one of them", "the issuer has keys-url and keys-file")
	case i.KeysFile != "" && !isVisible(i.KeysFile, MaxURL):
		return invalid("keys-file", "a path has at most 1024 visible ASCII characters", "%q is not a path", clip(i.KeysFile))
	case !isVisible(i.Audience, MaxClaim):
		return invalid("audience", "an audience has 1 to 256 visible ASCII characters", "%q is not an audience",
			clip(i.Audience))
	case !isVisible(i.User, MaxClaim):
		return invalid("user", "name the claim that has the user", "%q is not a claim", clip(i.User))
	case i.MaxAge < 0 || i.MaxAge > LongestMaxAge:
		return invalid("max-age", "at most 24 hours are allowed", "%d ms is not an age", i.MaxAge)
	case len(i.Require) == 0:
		return invalid("claim-rules", "name a claim beside the audience, and its values",
			"issuer %s lets in everyone whom it serves", i.Name)
	}
	if err := checkClaims("claim-rules", i.Require); err != nil {
		return err
	}
	return i.checkLists()
}

func (i *Issuer) checkLists() *Error {
	for n, algorithm := range i.Algorithms {
		if !slices.Contains(SignatureAlgorithms(), algorithm) {
			return invalid(indexed("algorithms", n), oneOf(SignatureAlgorithms()), "%q is not allowed", clip(algorithm))
		}
	}
	if len(i.Groups) > MaxGroupRules {
		return invalid("groups", "at most 64 are allowed", "issuer %s has %d groups", i.Name, len(i.Groups))
	}
	for n, group := range i.Groups {
		field := indexed("groups", n)
		switch {
		case !isIssuedName(i.Name + "/" + group.Group):
			return invalid(field, subjectNameRule, "%q is not a name of a group", clip(group.Group))
		case slices.ContainsFunc(i.Groups[:n], func(g GroupRule) bool { return g.Group == group.Group }):
			return invalid(field, "name each group once", "group %s is given twice", group.Group)
		case len(group.Match) == 0:
			return invalid(field, "name a claim and its values", "group %s has no rule", group.Group)
		}
		if err := checkClaims(field, group.Match); err != nil {
			return err
		}
	}
	return nil
}

// checkClaims refuses rules that no token, or every token, would fulfil.
func checkClaims(field string, rules []ClaimRule) *Error {
	if len(rules) > MaxClaimRules {
		return invalid(field, "at most 16 are allowed", "there are %d rules", len(rules))
	}
	for n, r := range rules {
		at := field + "." + clip(r.Claim)
		switch {
		case !isVisible(r.Claim, MaxClaim) || r.Claim == "aud":
			return invalid(indexed(field, n), "name a claim other than aud", "%q is not a claim", clip(r.Claim))
		case slices.ContainsFunc(rules[:n], func(c ClaimRule) bool { return c.Claim == r.Claim }):
			return invalid(at, "name each claim once", "the claim is given twice")
		case len(r.Values) == 0 || len(r.Values) > MaxClaimValues:
			return invalid(at, "1 to 64 are allowed", "the claim has %d values", len(r.Values))
		}
		for _, value := range r.Values {
			if !isVisible(value, MaxClaim) || strings.Contains(value, "*") {
				return invalid(at, "values have 1 to 256 visible ASCII characters without *; they are compared whole",
					"%q is not a value", clip(value))
			}
		}
	}
	return nil
}

const urlRule = "write https://HOST/PATH; http is allowed for localhost, 127.0.0.1 and [::1]"

// isURL reports whether s is an absolute URL that may be trusted: https, or http on loopback. It has no user, query or
// fragment.
func isURL(s string) bool {
	if !isVisible(s, MaxURL) || strings.ContainsAny(s, "@?#\\") {
		return false
	}
	if rest, found := strings.CutPrefix(s, "https://"); found {
		return rest != "" && rest[0] != '/' && rest[0] != ':'
	}
	rest, found := strings.CutPrefix(s, "http://")
	host, _, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	return found && slices.Contains([]string{"localhost", "127.0.0.1", "[::1]"}, host)
}

func (c CertificateRule) check() *Error {
	switch {
	case (c.Name == "") == (c.DNS == ""):
		return invalid("name", "write one of them", "a certificate is chosen by name or by dns")
	case c.Name != "" && !isShortName(c.Name):
		return invalid("name", shortNameRule, "%q is not a name of a client", clip(c.Name))
	case c.DNS != "" && (!isVisible(c.DNS, 253) || strings.Contains(c.DNS, "*")):
		return invalid("dns", "write the whole name", "%q is not a DNS name", clip(c.DNS))
	case !isShortName(c.User):
		return invalid("user", shortNameRule, "%q is not a name of a user", clip(c.User))
	}
	return nil
}
