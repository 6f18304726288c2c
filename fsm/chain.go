package fsm

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"

	"github.com/quorate/quorate/quota/ledger"
)

// link extends the chain by an entry and a summary of what it did. Two replicas that applied different entries, or the
// same entries with different effect, have different chains from then on.
func (f *FSM) link(entry []byte, outcomes Outcomes, news []News) {
	h := sha256.New()
	h.Write(f.chain[:])
	h.Write(entry)
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
		writeNumbers(h, verdict, fence, revision)
		if more := secondNumbers(o); slices.Max(more) > 0 {
			writeNumbers(h, more...)
		}
	}
	if f.format >= thirdFormat { // from then on a command may do something to many
		for _, n := range news {
			writeNumbers(h, uint64(n.Kind), n.Allocation.Fence())
		}
	}
	h.Sum(f.chain[:0])
}

// secondNumbers are what only commands of the second format do; the chains of the first do not know them.
func secondNumbers(o ledger.Outcome) []uint64 {
	preempted := 0
	if o.Decision != nil {
		preempted = len(o.Decision.Preempted)
	}
	return []uint64{uint64(o.Expired), uint64(len(o.Restored)), uint64(preempted)}
}

func writeNumbers(h hash.Hash, numbers ...uint64) {
	var buffer [8]byte
	for _, n := range numbers {
		binary.BigEndian.PutUint64(buffer[:], n)
		h.Write(buffer[:])
	}
}
