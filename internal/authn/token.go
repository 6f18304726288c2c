package authn

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/big"
)

// An API token is written as qrt_<id>_<secret>_<check>, 68 characters that a double click selects:
//
//	id      13 characters of base32 (a-z, 2-7): 8 random bytes
//	secret  43 characters of base62 (0-9, A-Z, a-z): 256 random bits
//	check    6 characters of base62: the CRC-32 (IEEE) of everything before the last "_"
//
// The check finds typing errors without a lookup. It adds no security.
const (
	tokenPrefix  = "qrt_" // scanners for leaked secrets know it
	idLength     = 13
	secretLength = 43
	checkLength  = 6

	secretStart = len(tokenPrefix) + idLength + 1
	checkStart  = secretStart + secretLength + 1
	tokenLength = checkStart + checkLength
)

const (
	base32Digits = "abcdefghijklmnopqrstuvwxyz234567"
	base62Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Token is an API token with its secret. It writes itself as its id only, in whatever way it is printed, logged or
// encoded; Reveal returns the whole text. The zero value is not a token.
type Token struct {
	id TokenID
	// text is a pointer because package fmt prints unexported fields of other structs without asking their methods: it
	// prints the address, and not the secret.
	text *string
}

// NewToken makes a token from 40 bytes of a source of randomness: crypto/rand.Reader, except in tests.
func NewToken(random io.Reader) (Token, error) {
	var bits [8 + 32]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return Token{}, fmt.Errorf("make a token: read random bytes: %w", err)
	}
	id := TokenID(bits[:8])
	text := tokenPrefix + id.String() + "_" + encodeSecret(bits[8:]) + "_"
	check := checkOf(text[:checkStart-1])
	text += string(check[:])
	return Token{id: id, text: &text}, nil
}

// encodeSecret writes 32 bytes as 43 digits of base62: 62^43 is just above 2^256.
func encodeSecret(secret []byte) string {
	digits := bytes.Repeat([]byte{base62Digits[0]}, secretLength)
	rest, base, digit := new(big.Int).SetBytes(secret), big.NewInt(int64(len(base62Digits))), new(big.Int)
	for i := secretLength - 1; i >= 0; i-- {
		rest.DivMod(rest, base, digit)
		digits[i] = base62Digits[digit.Int64()]
	}
	return string(digits)
}

// ParseToken parses the text of a token. The error is a *CredentialError with the reason TokenMalformed or
// TokenMistyped, and does not repeat the text.
func ParseToken(text string) (Token, error) {
	id, err := parseToken(text)
	if err != nil {
		return Token{}, err
	}
	return Token{id: id, text: &text}, nil
}

func parseToken(text string) (TokenID, error) {
	if len(text) != tokenLength || text[:len(tokenPrefix)] != tokenPrefix ||
		text[secretStart-1] != '_' || text[checkStart-1] != '_' {
		return TokenID{}, refuse(TokenMalformed, "the API token is malformed: it must be %s<id>_<secret>_<check>, "+
			"%d characters, and has %d", tokenPrefix, tokenLength, len(text))
	}
	id, valid := decodeID(text[len(tokenPrefix) : secretStart-1])
	if !valid {
		return TokenID{}, refuse(TokenMalformed, "the id of the API token is malformed: allowed are a-z and 2-7")
	}
	if !isBase62(text[secretStart:checkStart-1]) || !isBase62(text[checkStart:]) {
		return TokenID{}, refuse(TokenMalformed,
			"the secret or the check of the API token %s is malformed: allowed are letters and digits", id)
	}
	if check := checkOf(text[:checkStart-1]); string(check[:]) != text[checkStart:] {
		return TokenID{}, refuse(TokenMistyped, "the API token %s has a typing error: its check does not match", id)
	}
	return id, nil
}

// checkOf computes the CRC itself, because crc32.ChecksumIEEE takes a slice that it lets escape, and verification must
// not allocate.
func checkOf(text string) [checkLength]byte {
	sum := ^uint32(0)
	for i := range len(text) {
		sum = crc32.IEEETable[byte(sum)^text[i]] ^ sum>>8
	}
	sum = ^sum
	var check [checkLength]byte
	for i := checkLength - 1; i >= 0; i-- {
		check[i] = base62Digits[sum%62]
		sum /= 62
	}
	return check
}

func isBase62(text string) bool {
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// hashSecret needs the text of a token that was parsed.
func hashSecret(text string) [sha256.Size]byte {
	var secret [secretLength]byte // a conversion of the string would allocate
	copy(secret[:], text[secretStart:checkStart-1])
	return sha256.Sum256(secret[:])
}

// ID returns the id, which is not secret.
func (t Token) ID() TokenID { return t.id }

// Hash returns the SHA-256 of the secret, as written in the token. It is all that a server needs to keep.
func (t Token) Hash() [sha256.Size]byte {
	if t.text == nil {
		return [sha256.Size]byte{}
	}
	return hashSecret(*t.text)
}

// Reveal returns the whole text, with the secret; it is empty for the zero value.
func (t Token) Reveal() string {
	if t.text == nil {
		return ""
	}
	return *t.text
}

// String returns the token without its secret.
func (t Token) String() string { return tokenPrefix + t.id.String() + "_<secret>" }

// GoString returns the token without its secret.
func (t Token) GoString() string { return t.String() }

// Format writes the token without its secret for every verb. Without it, verbs such as %d would print the fields.
func (t Token) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, t.String()) }

// LogValue returns the token without its secret.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText returns the token without its secret, so that an encoder cannot leak it.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
