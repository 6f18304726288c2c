package access

import (
	"encoding/binary"
	"slices"
	"strings"
)

// Account is a robot or a person without an issuer: the owner of tokens. Its user is account/NAME.
type Account struct {
	Name        string
	Description string
	// Groups are sorted and unique. They have no slash: groups with one belong to issuers.
	Groups []string
	// Disabled accounts keep everything and cannot log in.
	Disabled bool
}

// User is the user of callers that have shown a token of the account.
func (a Account) User() string { return accountPrefix + a.Name }

func (a Account) check() *Error {
	if !isShortName(a.Name) {
		return invalid("name", shortNameRule, "%q is not a name of an account", clip(a.Name))
	}
	if len(a.Groups) > MaxGroups {
		return invalid("groups", "at most 64 are allowed", "account %s has %d groups", a.Name, len(a.Groups))
	}
	for i, group := range a.Groups {
		if !isShortName(group) {
			return invalid(indexed("groups", i), shortNameRule+"; groups with a slash belong to issuers",
				"%q is not a group of accounts", clip(group))
		}
	}
	return checkText("description", a.Description)
}

// equal compares accounts in canonical form.
func (a Account) equal(b Account) bool {
	return a.Name == b.Name && a.Description == b.Description && a.Disabled == b.Disabled &&
		slices.Equal(a.Groups, b.Groups)
}

// TokenID names a token. It is drawn at random by the server that makes the token and is not a secret.
type TokenID [8]byte

// idAlphabet is that of base32 in lower case, which the token itself has too.
const idAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

// idLength is the length of the text of an id: 12 characters of five bits, and one of four bits and a zero.
const idLength = 13

// idRule says what ParseTokenID reads.
const idRule = "an id has 13 characters of a-z and 2-7, as it stands in the token"

// String is the text of the id, as it stands in the token.
func (id TokenID) String() string {
	var text [idLength]byte
	bits := id.number()
	text[idLength-1] = idAlphabet[bits<<1&31]
	bits >>= 4
	for i := idLength - 2; i >= 0; i-- {
		text[i] = idAlphabet[bits&31]
		bits >>= 5
	}
	return string(text[:])
}

// ParseTokenID reads the text of an id. Only the text that String writes is valid.
func ParseTokenID(text string) (TokenID, *Error) {
	var id TokenID
	if len(text) != idLength {
		return id, invalid("", idRule, "%q is not an id of a token", clip(text))
	}
	var bits uint64
	for i := range len(text) {
		digit := strings.IndexByte(idAlphabet, text[i])
		last := i == idLength-1
		if digit < 0 || last && digit&1 != 0 {
			return id, invalid("", idRule, "%q is not an id of a token", clip(text))
		}
		if last {
			bits = bits<<4 | uint64(digit>>1)
		} else {
			bits = bits<<5 | uint64(digit)
		}
	}
	binary.BigEndian.PutUint64(id[:], bits)
	return id, nil
}

// number orders ids like their bytes.
func (id TokenID) number() uint64 { return binary.BigEndian.Uint64(id[:]) }

// Token is the record of a token. The token itself is shown once and never stored.
type Token struct {
	ID      TokenID
	Account string
	// Hash is the SHA-256 of the secret.
	Hash [32]byte
	// Created and Ends are wall times in milliseconds since 1970. A token ends at Ends.
	Created, Ends int64
	Description   string
	// Ceiling bounds the verbs of callers with the token; AllVerbs is no bound.
	Ceiling Verbs
	// Revoked is the index of the log entry that revoked the token; 0 if it has not been revoked.
	Revoked uint64
}

// IsLive reports whether the token has neither been revoked nor ended.
func (t *Token) IsLive(wall int64) bool { return t.Revoked == 0 && wall < t.Ends }

// Life is how long the token lives from when it was made to its end, in milliseconds.
func (t *Token) Life() int64 { return t.Ends - t.Created }

// Credential is the credential of callers that have shown the token.
func (t *Token) Credential() [16]byte {
	var c [16]byte
	copy(c[:], t.ID[:])
	return c
}
