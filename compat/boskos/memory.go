package boskos

import "sync"

// mostRemembered bounds how many grants a node remembers; the ledger has no more items.
const mostRemembered = 100_000

// memory remembers which allocation an owner got an item by, from the grant to the release, as far as both came to this
// node: then the release can do without a look at the item. What it says may be outdated, and is only tried.
type memory struct {
	mu  sync.Mutex
	ids map[holding]string
}

// holding is an item with an owner.
type holding struct{ name, owner string }

func newMemory() *memory { return &memory{ids: map[holding]string{}} }

func (m *memory) note(h holding, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ids) >= mostRemembered {
		clear(m.ids) // those who hold something for so long can wait for a look
	}
	m.ids[h] = id
}

// take answers the id once; empty if it is not known.
func (m *memory) take(h holding) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := m.ids[h]
	delete(m.ids, h)
	return id
}
