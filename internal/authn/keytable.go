package authn

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

const (
	maxKeys = 100
	// RSA keys outside of these sizes are not used: smaller ones are weak, larger ones make verification slow.
	minRSABits, maxRSABits = 2048, 8192
)

type keyTable struct {
	keys []verifyKey
	// digest is that of the key set's text: tokens that were verified with other keys are verified again.
	digest [sha256.Size]byte
	// skipped counts keys that cannot be used here.
	skipped int
}

type verifyKey struct {
	id        string
	algorithm string // the only one that the key may be used for; empty if the key set does not say
	public    any    // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

// parseKeySet parses a JSON Web Key Set. Keys that cannot be used, such as shared or private ones, those for
// encryption and those of unknown types, are skipped. A set without keys is valid: all were withdrawn.
func parseKeySet(text []byte) (*keyTable, error) {
	var set struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil {
		return nil, errors.New("it is not a JSON Web Key Set")
	}
	if len(*set.Keys) > maxKeys {
		return nil, fmt.Errorf("it has %d keys, %d are allowed", len(*set.Keys), maxKeys)
	}
	table := &keyTable{digest: sha256.Sum256(text)}
	for _, raw := range *set.Keys {
		if key, usable := parseKey(raw); usable {
			table.keys = append(table.keys, key)
		}
	}
	table.skipped = len(*set.Keys) - len(table.keys)
	return table, nil
}

func parseKey(raw json.RawMessage) (key verifyKey, usable bool) {
	var parsed jose.JSONWebKey
	if err := parsed.UnmarshalJSON(raw); err != nil || !parsed.Valid() {
		return verifyKey{}, false
	}
	if parsed.Use != "" && parsed.Use != "sig" {
		return verifyKey{}, false
	}
	key = verifyKey{id: parsed.KeyID, algorithm: parsed.Algorithm, public: parsed.Key}
	for _, algorithm := range algorithms {
		usable = usable || key.fits(algorithm)
	}
	return key, usable
}

// fits reports whether the key may verify signatures of an algorithm. The type of the key decides, so that a public key
// is never used as a shared one, and a private or shared key of a key set fits nothing.
func (k verifyKey) fits(algorithm string) bool {
	if k.algorithm != "" && k.algorithm != algorithm {
		return false
	}
	switch public := k.public.(type) {
	case *rsa.PublicKey:
		bits := public.N.BitLen()
		return (algorithm == "RS256" || algorithm == "PS256") && minRSABits <= bits && bits <= maxRSABits
	case *ecdsa.PublicKey:
		return algorithm == "ES256" && public.Curve == elliptic.P256()
	case ed25519.PublicKey:
		return algorithm == "EdDSA"
	}
	return false
}

// find returns the keys that a token may have been signed with. A token that names no key may only be verified where
// one key fits, so that a token does not cost as many verifications as there are keys.
func (t *keyTable) find(id, algorithm string) []verifyKey {
	var found []verifyKey
	for _, key := range t.keys {
		if (id == "" || key.id == id) && key.fits(algorithm) {
			found = append(found, key)
		}
	}
	if id == "" && len(found) > 1 {
		return nil
	}
	return found
}
