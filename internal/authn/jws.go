package authn

import (
	"encoding/base64"
	"strings"
)

// MaxJWTLength bounds the text of a JWT, in bytes. It is checked before anything is parsed.
const MaxJWTLength = 8 << 10

// maxKeyID bounds the id of a key that a token names.
const maxKeyID = 256

// parsedJWT is a JWT whose form was checked and whose signature was not. Nothing in it may be believed.
type parsedJWT struct {
	raw       string
	algorithm string
	keyID     string
	claims    claims
	issuerURL string // the claim iss; empty if it is missing or not a string
}

// parseJWT parses a JWT without verifying it. Only the compact form with exactly one signature is a JWT here: the JSON
// form, which may have several, and encrypted tokens (JWE, five parts) are refused. The error is a *CredentialError.
func parseJWT(raw string) (*parsedJWT, error) {
	if len(raw) > MaxJWTLength {
		return nil, refuse(TooLarge, "the token has %d bytes, %d are allowed", len(raw), MaxJWTLength)
	}
	parts := strings.Split(raw, ".")
	if len(parts) != 3 || !isBase64URL(raw) {
		return nil, refuse(JWTMalformed, "the token is neither an API token nor a JWT with one signature: "+
			"it must be three parts of base64url, joined with dots")
	}
	header, err := decodePart(parts[0])
	if err != nil {
		return nil, refuse(JWTMalformed, "the header of the token: %v", err)
	}
	token := &parsedJWT{raw: raw}
	if err := token.readHeader(header); err != nil {
		return nil, err
	}
	if token.claims, err = decodePart(parts[1]); err != nil {
		return nil, refuse(JWTMalformed, "the claims of the token: %v", err)
	}
	if _, err := strictBase64.DecodeString(parts[2]); err != nil {
		return nil, refuse(JWTMalformed, "the signature of the token is not base64url")
	}
	token.issuerURL, _ = token.claims.text("iss")
	return token, nil
}

// readHeader takes the algorithm and the id of the key from the header. Keys and addresses of keys in the header (jwk,
// jku, x5c, x5u) are not read: a token cannot choose what it is verified with.
func (t *parsedJWT) readHeader(header claims) error {
	for _, name := range []string{"crit", "b64", "enc", "zip"} {
		if _, found := header[name]; found {
			return refuse(JWTMalformed, "the header of the token has %q, which is not supported", name)
		}
	}
	kind, isText := header.text("typ")
	if kind = strings.TrimPrefix(strings.ToLower(kind), "application/"); !isText ||
		kind != "" && kind != "jwt" && kind != "at+jwt" {
		return refuse(JWTMalformed, `the header of the token has another typ than "JWT" or "at+jwt"`)
	}
	if t.keyID, isText = header.text("kid"); !isText || len(t.keyID) > maxKeyID {
		return refuse(JWTMalformed, "the header of the token has a kid that is not a text of at most %d bytes", maxKeyID)
	}
	if t.algorithm, isText = header.text("alg"); !isText || t.algorithm == "" {
		return refuse(JWTMalformed, "the header of the token names no algorithm")
	}
	return nil
}

func isBase64URL(text string) bool {
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// strictBase64 accepts one text for each value, so that a token has one text.
var strictBase64 = base64.RawURLEncoding.Strict()

func decodePart(part string) (claims, error) {
	text, err := strictBase64.DecodeString(part)
	if err != nil {
		return nil, errNotObject
	}
	return parseClaims(text)
}
