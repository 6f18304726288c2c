package chaos

import (
	"sync"
	"time"
)

// Kind is what an operation asked for.
type Kind uint8

// The closed list of kinds.
const (
	Allocate Kind = iota + 1
	Release
	ReadOwn
)

// Verdict is what came back.
type Verdict uint8

// The closed list of verdicts. Unknown means that no answer told whether the operation took effect.
const (
	Unknown Verdict = iota
	Granted
	Denied
	Released
	Observed
)

// Operation is one finished call of a worker with everything that a checker needs.
type Operation struct {
	Worker           int
	Kind             Kind
	ID               string
	Amount           int64
	Called, Returned time.Time
	Verdict          Verdict
	// Fence and Index are those of the answer. Repeated says that it had taken effect before the answering attempt, at an
	// index that no answer told; it was after After, the highest index that the worker had seen when it called.
	Fence, Index, After uint64
	Repeated            bool
	// Seen is the usage that a ReadOwn saw, Expected what the worker held then.
	Seen, Expected int64
}

// History collects operations of concurrent workers.
type History struct {
	mu         sync.Mutex
	operations []Operation
}

func (h *History) add(o Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, o)
}

// Operations are all operations so far, in the order in which they ended.
func (h *History) Operations() []Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Operation(nil), h.operations...)
}
