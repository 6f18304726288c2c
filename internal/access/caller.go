package access

import (
	"slices"
	"strings"
)

// CallerKind says where the identity of a caller comes from. The zero value is not valid, so that a caller that was
// forgotten is never taken for the system. The numbers are part of the log format.
type CallerKind uint8

// The closed list of kinds.
const (
	// System is the cluster itself: expiry, membership, checkpoints.
	System CallerKind = iota + 1
	// AccountCaller has shown a token of an account.
	AccountCaller
	// External has shown a certificate, or a token of an issuer, or comes from a front end that is open.
	External
	// Anonymous has shown nothing.
	Anonymous
)

var callerKinds = [...]string{"", "system", "account", "external", "anonymous"}

// String is the kind's stable name.
func (k CallerKind) String() string {
	if int(k) < len(callerKinds) {
		return callerKinds[k]
	}
	return "unknown"
}

// Issuers of users that no configured issuer may be called.
const (
	AccountIssuer     = "account"
	CertificateIssuer = "cert"
	FrontEndIssuer    = "frontend"
	systemIssuer      = "system"

	accountPrefix = AccountIssuer + "/"
)

// Caller says who asks. The server that authenticated the caller fills it in, and each log entry carries it.
type Caller struct {
	Kind CallerKind
	// User is ISSUER/NAME; empty for the system and for anonymous callers.
	User string
	// Groups are sorted and unique. Those of an issuer begin with its name and a slash; those of accounts have no slash.
	Groups []string
	// Credential tells credentials of one user apart: the id of a token in the first 8 bytes, or the first 16 bytes of the
	// SHA-256 of another credential. It is not a secret.
	Credential [16]byte
	// Via is the front end that the call came through; empty for the API itself.
	Via string
	// Request is the id of the call, for logs and audit records; may be empty.
	Request string
}

// SystemCaller is the caller of the system's own commands. It may do everything.
func SystemCaller() Caller { return Caller{Kind: System} }

// IsUser reports whether the caller is a user, who has shown who it is: not the system, and not anonymous.
func (c *Caller) IsUser() bool { return c.Kind == AccountCaller || c.Kind == External }

// callerOf is a user without a credential and, unless it is an account, without groups.
func callerOf(user string) Caller {
	kind := External
	if strings.HasPrefix(user, accountPrefix) {
		kind = AccountCaller
	}
	return Caller{Kind: kind, User: user}
}

// IsUser reports whether a text is a user, ISSUER/NAME.
func IsUser(user string) bool {
	c := callerOf(user)
	return c.Check() == nil
}

// Token is the id of the caller's token, and false if the caller has not shown one.
func (c *Caller) Token() (TokenID, bool) {
	return TokenID(c.Credential[:len(TokenID{})]), c.Kind == AccountCaller
}

// Issuer is the part of the user in front of the slash.
func (c *Caller) Issuer() string {
	issuer, _, _ := strings.Cut(c.User, "/")
	return issuer
}

// Check refuses a caller that no server makes: fields that contradict the kind, names that break the rules, groups of
// another issuer, and lists that are too long or not in canonical form.
func (c *Caller) Check() *Error {
	if c.Via != "" && !isShortName(c.Via) {
		return invalid("via", shortNameRule, "%q is not a name of a front end", clip(c.Via))
	}
	if c.Request != "" && !isVisible(c.Request, MaxRequest) {
		return invalid("request", "an id has at most 128 visible ASCII characters", "%q is not an id", clip(c.Request))
	}
	switch c.Kind {
	case System, Anonymous:
		if c.User != "" || len(c.Groups) > 0 || c.Credential != ([16]byte{}) {
			return invalid("user", "leave user, groups and credential empty", "a caller of kind %s has an identity", c.Kind)
		}
		return nil
	case AccountCaller:
		name, found := strings.CutPrefix(c.User, accountPrefix)
		if !found || !isShortName(name) {
			return invalid("user", "the user is account/NAME", "%q is not the user of an account", clip(c.User))
		}
	case External:
		switch issuer := c.Issuer(); {
		case !isIssuedName(c.User):
			return invalid("user", "the user is ISSUER/NAME; "+subjectNameRule, "%q is not a user", clip(c.User))
		case issuer == AccountIssuer || issuer == systemIssuer:
			return invalid("user", "name another issuer", "an external caller has the user %q", clip(c.User))
		}
	default:
		return invalid("kind", oneOf(callerKinds[1:]), "%d is not a kind of caller", uint8(c.Kind))
	}
	return c.checkGroups()
}

// checkGroups refuses groups that another issuer could have given, so that no issuer can name the groups of another.
func (c *Caller) checkGroups() *Error {
	if len(c.Groups) > MaxGroups {
		return invalid("groups", "at most 64 are allowed", "the caller has %d groups", len(c.Groups))
	}
	for i, group := range c.Groups {
		if c.Kind == AccountCaller && !isShortName(group) {
			return invalid(indexed("groups", i), shortNameRule, "%q is not a group of accounts", clip(group))
		}
		if c.Kind == External && (!isIssuedName(group) || !c.hasIssued(group)) {
			return invalid(indexed("groups", i), "groups of this caller begin with "+c.Issuer()+"/",
				"%q is a group of another issuer", clip(group))
		}
		if i > 0 && c.Groups[i-1] >= group {
			return invalid(indexed("groups", i), "sort groups and name each once", "%q is not behind %q", clip(group),
				clip(c.Groups[i-1]))
		}
	}
	return nil
}

// hasIssued reports whether the issuer of the caller gave a group. It makes no text: each entry's callers are checked.
func (c *Caller) hasIssued(group string) bool {
	issuer := c.Issuer()
	return len(group) > len(issuer) && group[len(issuer)] == '/' && group[:len(issuer)] == issuer
}

func canonicalNames(names []string) []string {
	sorted := cloneList(names)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}
