package check

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/chaos/history"
)

// Item is one item and the allocation that holds it. Holder is empty if the item is free.
type Item struct {
	Tree   string `json:"tree"`
	Name   string `json:"name"` // "resource/name"
	Holder string `json:"holder,omitempty"`
	Fence  uint64 `json:"fence,omitempty"`
}

// State is everything that one node shows of its state at one index.
type State struct {
	Server   string           `json:"server"`
	Node     string           `json:"node"`
	Index    uint64           `json:"index"`
	Ledger   int64            `json:"ledger"`
	Revision uint64           `json:"revision"`
	Held     []history.Record `json:"held"`
	Waiting  []history.Record `json:"waiting"`
	Usage    []history.Usage  `json:"usage"`
	Limits   []history.Limit  `json:"limits"`
	Items    []Item           `json:"items"`
	// OnHold are the nodes on hold.
	OnHold []history.Limit `json:"on_hold,omitempty"`
	// Scheduled are the scheduled limits, Civil is civil time, and Wall is when they were read, by the clock of the
	// harness.
	Scheduled []history.ScheduledLimit `json:"scheduled,omitempty"`
	Civil     int64                    `json:"civil,omitempty"`
	Wall      int64                    `json:"wall,omitempty"`
}

// Finals are the states of all nodes at one index, read after everything was healed. It is empty if they could not be
// read.
type Finals struct {
	States []State `json:"states"`
	// Digests are those of all nodes, at an index after that of the states.
	Digests []Digest `json:"digests,omitempty"`
	// Missing says which node did not answer, or why the nodes did not reach one index. Then the cluster is not
	// healthy.
	Missing string `json:"missing,omitempty"`
	// OlderServers is true if servers ran an earlier version at first.
	OlderServers bool `json:"older_servers,omitempty"`
}

// WriteFinals writes the final states to a file.
func WriteFinals(path string, f Finals) error {
	text, err := json.MarshalIndent(f, "", " ")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the final states: %w", err)
	}
	return nil
}

// ReadFinals reads what WriteFinals wrote.
func ReadFinals(path string) (f Finals, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		return f, fmt.Errorf("read the final states: %w", err)
	}
	return f, nil
}

// FinalsBeside returns the path of the final states that belong to a history file: "history.jsonl" has
// "history.finals.json".
func FinalsBeside(path string) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + ".finals.json"
}
