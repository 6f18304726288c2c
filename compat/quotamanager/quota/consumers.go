package quota

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/quorate/quorate/compat/quotamanager"
)

// ConsumerInfo describes a consumer and its requests, at most one for each tree.
type ConsumerInfo struct {
	spec *quotamanager.Consumer
}

// NewConsumerInfo makes a description of a Consumer document.
func NewConsumerInfo(consumer JConsumer) (*ConsumerInfo, error) {
	text, err := json.Marshal(consumer)
	if err != nil {
		return nil, err
	}
	return NewConsumerInfoFromString(string(text))
}

// NewConsumerInfoFromFile reads a Consumer document from a file.
func NewConsumerInfoFromFile(file string) (*ConsumerInfo, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return NewConsumerInfoFromString(string(text))
}

// NewConsumerInfoFromString reads a Consumer document. What the library ignores is an error: keys that it does not
// know, two requests on one tree, and negative amounts.
func NewConsumerInfoFromString(text string) (*ConsumerInfo, error) {
	spec, err := quotamanager.ParseConsumer([]byte(text))
	if err != nil {
		return nil, err
	}
	return &ConsumerInfo{spec: spec}, nil
}

// GetID returns the id of the consumer.
func (c *ConsumerInfo) GetID() string { return c.spec.ID }

// String shows the description.
func (c *ConsumerInfo) String() string {
	return fmt.Sprintf("Consumer: ID=%s; Spec={%v}", c.spec.ID, c.spec.Trees)
}

func (c *ConsumerInfo) on(isWanted func(tree string) bool) *quotamanager.Consumer {
	part := &quotamanager.Consumer{ID: c.spec.ID}
	for _, t := range c.spec.Trees {
		if isWanted(t.Tree) {
			part.Trees = append(part.Trees, t)
		}
	}
	return part
}

// AddConsumer keeps the description of a consumer, in the memory of the Manager, for later calls that name it. It
// returns an error if one with that id is there.
func (m *Manager) AddConsumer(consumerInfo *ConsumerInfo) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := consumerInfo.GetID()
	if m.consumers[id] != nil {
		return false, fmt.Errorf("consumer %s already exists", id)
	}
	m.consumers[id] = consumerInfo
	return true, nil
}

// RemoveConsumer forgets the description of a consumer. What the consumer holds stays held, and can be deallocated.
func (m *Manager) RemoveConsumer(consumerID string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.consumers[consumerID] == nil {
		return false, fmt.Errorf("consumer %s does not exist", consumerID)
	}
	delete(m.consumers, consumerID)
	return true, nil
}

// GetAllConsumerIDs returns the ids of all consumers that were added, sorted.
func (m *Manager) GetAllConsumerIDs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.consumers))
}
