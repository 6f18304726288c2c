package access

import (
	"cmp"
	"strings"
)

// RefusedKind says what a refusal names. The numbers are part of the log format.
type RefusedKind uint8

// The closed list of kinds.
const (
	// RefusedToken is a token of an account, by its id.
	RefusedToken RefusedKind = iota + 1
	// RefusedUser is a user, ISSUER/NAME.
	RefusedUser
	// RefusedCertificate is a certificate, by the SHA-256 of its bytes in hexadecimal.
	RefusedCertificate
	// RefusedJTI is one signed token of an issuer, by its "jti".
	RefusedJTI
)

var refusedKinds = [...]string{"", "token", "user", "certificate", "jti"}

// String is the kind's name in texts.
func (k RefusedKind) String() string {
	if int(k) < len(refusedKinds) {
		return refusedKinds[k]
	}
	return "unknown"
}

// RefusedKey names what is refused.
type RefusedKey struct {
	Kind RefusedKind
	// Issuer is set for RefusedJTI only.
	Issuer string
	Name   string
}

// Refused is an entry of the list of refusals: credentials that do not count although they are otherwise valid.
type Refused struct {
	RefusedKey
	// IssuedBefore refuses only credentials of the user that are older, in milliseconds since 1970; 0 refuses all. It is
	// set for RefusedUser only.
	IssuedBefore int64
	// Until is the wall time at which the refusal ends. Each has one, at most MaxRefusalSpan away.
	Until int64
	// Reason is free text for people.
	Reason string
}

func (k RefusedKey) text() string {
	return string(rune('0'+k.Kind)) + k.Issuer + "\x00" + k.Name
}

// Compare orders keys by kind, issuer and name.
func (k RefusedKey) Compare(other RefusedKey) int {
	return cmp.Or(cmp.Compare(k.Kind, other.Kind), strings.Compare(k.Issuer, other.Issuer),
		strings.Compare(k.Name, other.Name))
}

func (k RefusedKey) check() *Error {
	if (k.Issuer != "") != (k.Kind == RefusedJTI) {
		return invalid("issuer", "name the issuer of a jti, and of nothing else", "a %s has the issuer %q", k.Kind,
			clip(k.Issuer))
	}
	switch k.Kind {
	case RefusedToken:
		_, err := ParseTokenID(k.Name)
		return err.below("name")
	case RefusedUser:
		if !isIssuedName(k.Name) {
			return invalid("name", subjectNameRule, "%q is not a user ISSUER/NAME", clip(k.Name))
		}
	case RefusedCertificate:
		if len(k.Name) != 64 || strings.Trim(k.Name, "0123456789abcdef") != "" {
			return invalid("name", "write its SHA-256 as 64 characters of 0-9 and a-f", "%q is not a certificate",
				clip(k.Name))
		}
	case RefusedJTI:
		if !isShortName(k.Issuer) {
			return invalid("issuer", shortNameRule, "%q is not a name of an issuer", clip(k.Issuer))
		}
		if !isVisible(k.Name, MaxClaim) {
			return invalid("name", "a jti has 1 to 256 visible ASCII characters", "%q is not a jti", clip(k.Name))
		}
	default:
		return invalid("kind", oneOf(refusedKinds[1:]), "%d is not a kind of refusal", uint8(k.Kind))
	}
	return nil
}

func (r Refused) check() *Error {
	if err := r.RefusedKey.check(); err != nil {
		return err
	}
	if r.IssuedBefore < 0 || r.IssuedBefore != 0 && r.Kind != RefusedUser {
		return invalid("issued-before", "give it for a user, in milliseconds since 1970", "%d is given for a %s",
			r.IssuedBefore, r.Kind)
	}
	return checkText("reason", r.Reason)
}
