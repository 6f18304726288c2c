package pki

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

const (
	// gossipKeyBytes is the size of new keys: AES-256.
	gossipKeyBytes = 32
	// mostGossipKeys is the most keys in a file. Two are enough for a rotation.
	mostGossipKeys = 16
)

// NewGossipKey makes a gossip key, in the form of a line of the file.
func NewGossipKey() string {
	key := make([]byte, gossipKeyBytes)
	_, _ = rand.Read(key) // it never fails
	return base64.StdEncoding.EncodeToString(key)
}

// LoadGossipKeys reads a file of keys, which must not be world-readable.
func LoadGossipKeys(path string) ([][]byte, error) {
	if err := checkPrivate(path); err != nil {
		return nil, fmt.Errorf("the keys of gossip: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the keys of gossip: %w", err)
	}
	keys, err := ParseGossipKeys(text)
	if err != nil {
		return nil, fmt.Errorf("the keys of gossip in %s: %w", path, err)
	}
	return keys, nil
}

// ParseGossipKeys reads one key a line, base64 of 16, 24 or 32 bytes. The first one encrypts, all of them decrypt.
// Blank lines and lines that begin with # are skipped. Errors name the line, and never its content.
func ParseGossipKeys(text []byte) ([][]byte, error) {
	var keys [][]byte
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(line)
		switch {
		case err != nil || strings.ContainsAny(line, "\r\n"):
			return nil, fmt.Errorf("line %d is not base64; \"head -c 32 /dev/urandom | base64\" makes a key", number)
		case len(key) != 16 && len(key) != 24 && len(key) != gossipKeyBytes:
			return nil, fmt.Errorf("line %d has %d bytes: allowed are 16, 24 and 32", number, len(key))
		case slices.ContainsFunc(keys, func(other []byte) bool { return bytes.Equal(key, other) }):
			return nil, fmt.Errorf("line %d is the same key as one before", number)
		case len(keys) == mostGossipKeys:
			return nil, fmt.Errorf("line %d is one key more than %d: remove old ones", number, mostGossipKeys)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is none; \"head -c 32 /dev/urandom | base64\" makes one")
	}
	return keys, nil
}
