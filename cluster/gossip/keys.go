package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/memberlist"
)

// Keyring are the keys of gossip; they may change while it runs. It is safe for concurrent use.
type Keyring struct {
	ring *memberlist.Keyring
	mu   sync.Mutex // of Set

	// acceptsPlain and sendsPlain are for the time in which the nodes of a cluster get their first key one after the other.
	acceptsPlain, sendsPlain bool
}

// AllowPlain lets nodes that have no key yet take part: what is not encrypted is heard too, or is sent too. It must be called
// before the keys are used.
func (k *Keyring) AllowPlain(hear, send bool) { k.acceptsPlain, k.sendsPlain = hear, send }

// NewKeyring takes keys of 16, 24 or 32 bytes, at least one. The first one encrypts, all of them decrypt.
func NewKeyring(keys [][]byte) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("gossip is to be encrypted without a key")
	}
	ring, err := memberlist.NewKeyring(keys, keys[0])
	if err != nil {
		return nil, fmt.Errorf("the keys of gossip: %w", err)
	}
	return &Keyring{ring: ring}, nil
}

// Keys are those in use, the one that encrypts first.
func (k *Keyring) Keys() [][]byte { return slices.Clone(k.ring.GetKeys()) }

// Set makes these the keys from now on; with an error nothing has changed.
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
	// What is used moves to the front, so those that must go come last: the ring shares its list with those who decrypt,
	// and only the last one can be removed without moving the others below their eyes.
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
