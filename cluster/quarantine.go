package cluster

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// Quarantine is why the node of a stable store must not serve, as it was found before it stopped; empty if it may.
func Quarantine(stable raft.StableStore) (string, error) {
	text, err := stable.Get(divergedKey)
	switch {
	case err != nil && err.Error() == "not found": // as raft tells it
		return "", nil
	case err != nil:
		return "", fmt.Errorf("look whether this node may serve: %w", err)
	}
	return string(text), nil
}

// LiftQuarantine lets the node of a stable store serve again. The caller has proved that its state is that of a majority.
func LiftQuarantine(stable raft.StableStore) error {
	if err := stable.Set(divergedKey, nil); err != nil {
		return fmt.Errorf("lift the quarantine: %w", err)
	}
	return nil
}
