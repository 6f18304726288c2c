package guarded

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Evidence is what the accounts were told, and what the members show after the cluster was healed.
type Evidence struct {
	// Accounts has the account of each token by the id of the token.
	Accounts map[string]string `json:"accounts"`
	Answers  []Answer          `json:"answers"`
	Changes  []Change          `json:"changes"`
	// Refusals counts calls that were refused for their credential or rights.
	Refusals int `json:"refusals"`
	// Seen are audit records that were read while the accounts worked, by number, each from any member. They reach
	// further back than those of the members, which forget old ones.
	Seen    []Record `json:"seen"`
	Members []Member `json:"members"`
	// Held are the allocations of the accounts in the end.
	Held []Allocation `json:"held"`
	// Missing says why the members could not be read at one index; empty if they were.
	Missing string `json:"missing,omitempty"`
}

// Answer is a success that an account was told, and the log index of its command.
type Answer struct {
	Account string `json:"account"`
	Token   string `json:"token"`
	Action  string `json:"action"`
	Index   uint64 `json:"index"`
}

// Change is a change that a caller was told to be applied. Action is the command, and Object what its record must tell
// of: the field of a change, or an id of the request.
type Change struct {
	Action string `json:"action"`
	Object string `json:"object"`
}

// Allocation is held by an account. Granted is a ledger time in milliseconds.
type Allocation struct {
	ID      string `json:"id"`
	Granted int64  `json:"granted"`
}

// Member is what one member shows: its audit records of the ledger, and the revisions of the configuration that it
// remembers.
type Member struct {
	Server    string   `json:"server"`
	Records   []Record `json:"records"`
	Revisions []uint64 `json:"revisions"`
}

// Record is an audit record of the ledger, as far as it is examined.
type Record struct {
	Number uint64 `json:"n"`
	Index  uint64 `json:"index"`
	// Time is a ledger time in milliseconds.
	Time       int64         `json:"time"`
	Action     string        `json:"action"`
	User       string        `json:"user,omitempty"`
	Credential string        `json:"credential,omitempty"`
	RequestID  string        `json:"request,omitempty"`
	Revision   uint64        `json:"revision,omitempty"`
	Changes    []FieldChange `json:"changes,omitempty"`
	// Previous and Hash are those that the member showed, and Computed is the hash that the content has.
	Previous string `json:"previous"`
	Hash     string `json:"hash"`
	Computed string `json:"computed"`
}

// FieldChange is one difference that a record tells of. After is empty if the field does not exist any more.
type FieldChange struct {
	Tree  string `json:"tree,omitempty"`
	Node  string `json:"node,omitempty"`
	Field string `json:"field"`
	After string `json:"after,omitempty"`
}

// EvidenceBeside returns the path of the evidence that belongs to a history file.
func EvidenceBeside(path string) string { return filepath.Join(filepath.Dir(path), "access.json") }

// WriteEvidence writes evidence to a file.
func WriteEvidence(path string, e Evidence) error {
	text, err := json.Marshal(e)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write what the accounts were told: %w", err)
	}
	return nil
}

// ReadEvidence reads what WriteEvidence wrote.
func ReadEvidence(path string) (e Evidence, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		return e, fmt.Errorf("read what the accounts were told: %w", err)
	}
	return e, nil
}
