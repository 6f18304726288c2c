package authn

import (
	"crypto/sha256"
	"crypto/subtle"
	"time"
)

// TokenRecord is what a server keeps of an API token and the account that it belongs to.
type TokenRecord struct {
	// Hash is Token.Hash.
	Hash [sha256.Size]byte
	// User is the account as the name of a user, for example "account/ci". Groups are those of the account.
	User   string
	Groups []string
	// Ends is when the token ends; the zero time means never.
	Ends time.Time
	// Revoked is set for a token that was revoked and is still listed, Disabled if the account is disabled.
	Revoked, Disabled bool
}

// TokenLookup returns the record of the token with an id. It must be safe for concurrent use and return quickly, as it
// is called for each call of the API.
type TokenLookup func(TokenID) (TokenRecord, bool)

// VerifyToken returns the identity that an API token proves now. It does not allocate if the token is valid. The error
// is a *CredentialError.
//
// An unknown id is compared too, with a hash that no secret has, so that the time does not tell which ids exist. Only a
// caller who has the secret learns whether a token has ended, was revoked, or belongs to a disabled account.
func VerifyToken(text string, lookup TokenLookup, now time.Time) (Identity, error) {
	id, err := parseToken(text)
	if err != nil {
		return Identity{}, err
	}
	record, known := lookup(id)
	if !known {
		record = TokenRecord{} // its hash of zeros is the dummy
	}
	hash := hashSecret(text)
	matches := subtle.ConstantTimeCompare(hash[:], record.Hash[:]) == 1
	switch {
	case !known:
		return Identity{}, refuse(TokenUnknown, notKnown, id)
	case !matches:
		return Identity{}, refuse(TokenMismatched, notKnown, id)
	case record.Revoked:
		return Identity{}, refuse(TokenRevoked, "the API token %s was revoked", id)
	case !record.Ends.IsZero() && !now.Before(record.Ends):
		return Identity{}, refuse(TokenExpired, "the API token %s expired at %s", id, inUTC(record.Ends))
	case record.Disabled:
		return Identity{}, refuse(AccountDisabled, "the account of the API token %s is disabled", id)
	}
	identity := Identity{Kind: AccountKind, User: record.User, Groups: record.Groups, Ends: record.Ends}
	copy(identity.CredentialID[:], id[:])
	return identity, nil
}

// notKnown is the text for an unknown id and for a wrong secret: the difference would tell which ids exist.
const notKnown = "the API token %s is not known"

func inUTC(t time.Time) string { return t.UTC().Format(time.RFC3339) }
