package fsm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io"

	"github.com/quorate/quorate/quota/ledger"
)

// extendChain adds an entry and a summary of its outcomes to the chain. Replicas that applied different entries, or the
// same entries with different outcomes, have different chains from then on.
func (f *FSM) extendChain(entry []byte, outcomes Outcomes, news []WatchEvent) {
	numbers := f.chainNumbers[:0]
	for _, o := range outcomes {
		var fence, revision uint64
		verdict := uint64(1)
		switch {
		case o.Refused != nil:
			verdict = 2 + uint64(o.Refused.Kind)
		case o.Decision != nil && !o.Decision.Granted:
			verdict = 0
		}
		if o.Allocation != nil {
			fence = o.Allocation.Fence()
		}
		if o.Configuration != nil {
			revision = o.Configuration.Revision
		}
		numbers = appendNumbers(numbers, verdict, fence, revision)
		if more := rareNumbers(o); more != [3]uint64{} {
			numbers = appendNumbers(numbers, more[:]...)
		}
	}
	for _, n := range news { // one command may affect many allocations
		numbers = appendNumbers(numbers, uint64(n.Kind), n.digestNumber())
	}
	numbers = appendNumbers(numbers, f.ledger.Reader().Book().Revision())
	h := sha256.New()
	h.Write(f.chain[:])
	h.Write(entry)
	h.Write(numbers)
	h.Sum(f.chain[:0])
	f.chainNumbers = numbers // at most some 40 bytes for each command and event of an entry
}

func (n *WatchEvent) digestNumber() uint64 {
	switch {
	case n.Crossing != nil:
		return uint64(n.Crossing.Used)
	case n.Revision != nil:
		return n.Revision.Number
	case n.Event != nil:
		return n.Event.Number
	}
	return n.Allocation.Fence()
}

// rareNumbers are effects that few commands have. They are hashed only if one of them is not zero.
func rareNumbers(o ledger.Outcome) [3]uint64 {
	preempted := 0
	if o.Decision != nil {
		preempted = len(o.Decision.Preempted)
	}
	return [3]uint64{uint64(o.Expired), uint64(len(o.Restored)), uint64(preempted)}
}

func appendNumbers(to []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		to = binary.BigEndian.AppendUint64(to, n)
	}
	return to
}

// Checkpointed is the state at a checkpoint. All replicas capture it at the same index.
type Checkpointed struct{ snapshot *snapshot }

// Index is the log index of the checkpoint.
func (c *Checkpointed) Index() uint64 { return c.snapshot.header.GetIndex() }

// Digest hashes a complete snapshot of the state, including the chain. It takes as long as writing a snapshot to
// memory, is safe to call during Apply, and fails when ctx ends.
func (c *Checkpointed) Digest(ctx context.Context) ([sha256.Size]byte, error) {
	h := sha256.New()
	err := c.snapshot.write(&contextWriter{ctx, h})
	return [sha256.Size]byte(h.Sum(nil)), err
}

type contextWriter struct {
	ctx context.Context //nolint:containedctx // bounds one write
	out io.Writer
}

func (u *contextWriter) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.out.Write(p)
}
