package authn

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// rememberFor is how long a verified token is not verified again.
	rememberFor = 60 * time.Second
	// maxRemembered bounds the remembered tokens.
	maxRemembered = 10_000
)

// verifiedToken is a token that was verified, with the keys that were in use then.
type verifiedToken struct {
	identity Identity
	keys     *keySet
	digest   [sha256.Size]byte
	until    time.Time
}

// tokenMemory remembers verified tokens by the SHA-256 of their text. It has two maps and drops the older one when the
// newer one is full: so a full memory costs no search for entries to drop, and keeps the newer half.
type tokenMemory struct {
	mu           sync.RWMutex
	newer, older map[[sha256.Size]byte]verifiedToken
}

func newTokenMemory() *tokenMemory {
	return &tokenMemory{newer: map[[sha256.Size]byte]verifiedToken{}}
}

func (m *tokenMemory) get(hash [sha256.Size]byte, now time.Time) (Identity, bool) {
	m.mu.RLock()
	token, known := m.newer[hash]
	if !known {
		token, known = m.older[hash]
	}
	m.mu.RUnlock()
	if !known || !now.Before(token.until) || token.keys.digest() != token.digest {
		return Identity{}, false
	}
	return token.identity, true
}

func (m *tokenMemory) put(hash [sha256.Size]byte, token verifiedToken, now time.Time) {
	token.until = now.Add(rememberFor)
	if token.identity.Ends.Before(token.until) {
		token.until = token.identity.Ends
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.newer) >= maxRemembered/2 {
		m.older, m.newer = m.newer, map[[sha256.Size]byte]verifiedToken{}
	}
	m.newer[hash] = token
}
