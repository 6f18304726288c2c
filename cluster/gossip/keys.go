package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/memberlist"
)

// Keyring has the gossip keys, which may change while gossip runs. It is safe for concurrent use.
type Keyring struct {
	ring *memberlist.Keyring
	mu   sync.Mutex // held by Set

	// acceptsPlain and sendsPlain are used while the nodes of a cluster get their first key one after the other.
	acceptsPlain, sendsPlain bool
}

// AllowPlain lets nodes without a key take part: it makes this node accept, or send, unencrypted messages. It must be
// called before the keys are used.
func (k *Keyring) AllowPlain(hear, send bool) { k.acceptsPlain, k.sendsPlain = hear, send }

// NewKeyring returns a keyring with these keys, at least one, of 16, 24 or 32 bytes each. The first one encrypts, all
// of them decrypt.
func NewKeyring(keys [][]byte) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("encrypted gossip needs at least one key")
	}
	ring, err := memberlist.NewKeyring(keys, keys[0])
	if err != nil {
		return nil, fmt.Errorf("the keys of gossip: %w", err)
	}
	return &Keyring{ring: ring}, nil
}

// Keys returns the keys in use, the one that encrypts first.
func (k *Keyring) Keys() [][]byte { return slices.Clone(k.ring.GetKeys()) }

// Set replaces the keys. If it returns an error of a key's format, nothing has changed.
func (k *Keyring) Set(keys [][]byte) error {
	if _, err := NewKeyring(keys); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var faults []error
	for _, key := range keys {
		faults = append(faults, k.ring.AddKey(key))
	}
	// UseKey moves a key to the front, so after this loop the keys to remove are last. The ring shares its slice with
	// concurrent decryption, and only the last key can be removed without moving the others.
	for _, key := range slices.Backward(keys) {
		faults = append(faults, k.ring.UseKey(key))
	}
	for _, key := range slices.Backward(k.Keys()) {
		if !slices.ContainsFunc(keys, func(kept []byte) bool { return bytes.Equal(kept, key) }) {
			faults = append(faults, k.ring.RemoveKey(key))
		}
	}
	return errors.Join(faults...)
}
