package authn

import (
	"fmt"
	"time"
)

// Kind says which kind of credential an identity was proved with.
type Kind uint8

// The kinds of identities. The zero value is not an identity.
const (
	// AccountKind is an account of the cluster, proved with an API token.
	AccountKind Kind = iota + 1
	// IssuerKind is a user of a JWT issuer.
	IssuerKind
	// CertificateKind is the holder of a client certificate.
	CertificateKind
)

// String returns "account", "issuer" or "certificate".
func (k Kind) String() string {
	switch k {
	case AccountKind:
		return "account"
	case IssuerKind:
		return "issuer"
	case CertificateKind:
		return "certificate"
	}
	return fmt.Sprintf("kind %d", k)
}

// Identity says who made a call. Its slices are shared: callers must not change them.
type Identity struct {
	Kind Kind
	// User is the name with its source, such as "github/456789": 3 to 256 visible ASCII characters without '*'.
	User string
	// Groups are names with their source, at most MaxGroups, in the order of the configuration.
	Groups []string
	// CredentialID identifies the credential and does not reveal it: the 8 bytes of the id of an API token and zeros, or
	// the first 16 bytes of the SHA-256 of a JWT or of a certificate (its fingerprint).
	CredentialID [16]byte
	// Ends is when the credential ends; the zero time means never. A call that lasts longer must be ended then.
	Ends time.Time
	// Issued is when a JWT was made, and JWTID its claim jti (empty if there is none), so that callers can refuse tokens
	// that they withdrew. Both are zero for other kinds.
	Issued time.Time
	JWTID  string
}

const (
	// MaxUserLength bounds the name of a user or a group, with its source.
	MaxUserLength = 256
	// MaxGroups bounds the groups of one identity.
	MaxGroups = 64
)

// isName reports whether a name with its source may be that of a user or a group. The character '*' is not allowed, so
// that no name can be mistaken for a pattern.
func isName(name string) bool {
	if name == "" || len(name) > MaxUserLength {
		return false
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' || c == '*' {
			return false
		}
	}
	return true
}
