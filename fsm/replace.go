package fsm

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/hashicorp/raft"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

const (
	// MaxReplacementBytes bounds a snapshot that replaces the state through the log: every member keeps it in memory.
	MaxReplacementBytes = 1 << 30
	// MaxReplacementPart bounds the bytes of one step.
	MaxReplacementPart = 1 << 20
	// maxFence is the largest fence in a snapshot that may replace the state; later grants need fences above it.
	maxFence = 1 << 62
)

// FenceGap is how far fences jump when the state is replaced from elsewhere. Grants that the new state does not contain
// therefore have smaller fences than all later ones.
const FenceGap uint64 = 1 << 40

var errReplacing = errors.New("the state is being replaced; a snapshot can be taken when that is over")

// replacement is a state in transfer through the log.
type replacement struct {
	id         string
	size, have uint64
	parts      [][]byte
	digest     hash.Hash
}

// Replaced is raft's response for a step of a replacement.
type Replaced struct {
	// Refused is the reason for which a step had no effect; the replacement has then ended.
	Refused error
	// Done is true for the last step, which replaced the state.
	Done bool
	// Header is the header of the new state.
	Header ledger.Header
	// level is the feature level that the new state needs.
	level uint32
}

// BeginReplacement encodes the first step of a replacement by a snapshot of size bytes. The step raises the cluster to
// the feature level that the snapshot needs.
func BeginReplacement(id string, size uint64, level uint32) ([]byte, error) {
	return marshalEntry([]byte{entryMark}, &logv1.Entry{
		Format: quota.FirstFormat, RaiseLevel: level,
		Replacement: &logv1.Replacement{Id: id, Step: &logv1.Replacement_Size{Size: size}},
	})
}

// ReplacementPart encodes the step with the next bytes, at most MaxReplacementPart.
func ReplacementPart(id string, part []byte) ([]byte, error) {
	return encodeReplacement(&logv1.Replacement{Id: id, Step: &logv1.Replacement_Part{Part: part}})
}

// EndReplacement encodes the last step, with the SHA-256 of the snapshot. Applying it replaces the state.
func EndReplacement(id string, digest []byte) ([]byte, error) {
	return encodeReplacement(
		&logv1.Replacement{Id: id, Step: &logv1.Replacement_Digest{Digest: digest}, FenceGap: FenceGap})
}

// AbandonReplacement encodes the step that ends a replacement without effect.
func AbandonReplacement(id string) ([]byte, error) {
	return encodeReplacement(&logv1.Replacement{Id: id, Step: &logv1.Replacement_Abandoned{Abandoned: true}})
}

func encodeReplacement(step *logv1.Replacement) ([]byte, error) {
	return marshalEntry([]byte{entryMark}, &logv1.Entry{Format: quota.FirstFormat, Replacement: step})
}

func decodeReplacement(entry *logv1.Entry) (decoded, error) {
	switch step := entry.GetReplacement(); {
	case len(entry.GetCommands())+len(entry.GetCallers()) > 0:
		return decoded{}, errors.New("it carries commands or callers beside a step of a replacement")
	case step.GetStep() == nil:
		return decoded{}, errors.New("this version does not know this step of a replacement; run a newer version")
	}
	return decoded{
		format: entry.GetFormat(), stamp: stampOf(entry), level: entry.GetRaiseLevel(),
		replacement: entry.GetReplacement(),
	}, nil
}

// Replacing is the id of the replacement in progress; empty if there is none.
func (f *FSM) Replacing() string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.replacement == nil {
		return ""
	}
	return f.replacement.id
}

// applyReplacement carries out one step. All replicas apply the same steps, so they replace the state at the same
// index.
func (f *FSM) applyReplacement(entry *raft.Log, e decoded) any {
	answer, err := f.applyStep(entry.Index, e)
	if err != nil {
		// The leader loaded the same bytes before it wrote the first step. If they cannot be loaded here, this node differs
		// from the others.
		f.halted = fmt.Errorf(
			"%w: log entry %d: the state that takes the place of the present one cannot be loaded here: %w", ErrHalted,
			entry.Index, err)
		return f.halted
	}
	if answer.Refused != nil || answer.Done {
		f.replacement = nil
	}
	f.applied = entry.Index
	f.setFormat(max(f.format, e.format, e.level, answer.level))
	f.extendChainByStep(entry.Data, answer)
	return answer
}

func (f *FSM) applyStep(index uint64, e decoded) (Replaced, error) {
	r := e.replacement
	if begun, isFirst := r.GetStep().(*logv1.Replacement_Size); isFirst {
		return f.beginReplacement(r.GetId(), begun.Size), nil
	}
	if f.replacement == nil || f.replacement.id != r.GetId() {
		return Replaced{Refused: errors.New("the replacement was given up, or another one began")}, nil
	}
	switch step := r.GetStep().(type) {
	case *logv1.Replacement_Part:
		return Replaced{Refused: f.replacement.addPart(step.Part)}, nil
	case *logv1.Replacement_Digest:
		return f.finishReplacement(index, step.Digest, r.GetFenceGap())
	}
	return Replaced{Refused: errors.New("the replacement was given up")}, nil
}

func (f *FSM) beginReplacement(id string, size uint64) Replaced {
	if size == 0 || size > MaxReplacementBytes {
		return Replaced{Refused: fmt.Errorf(
			"a snapshot of %d bytes cannot take the place of the state: at most %d are allowed", size,
			MaxReplacementBytes)}
	}
	f.replacement = &replacement{id: id, size: size, digest: sha256.New()}
	return Replaced{}
}

func (r *replacement) addPart(part []byte) error {
	if r.have += uint64(len(part)); r.have > r.size {
		return fmt.Errorf("more than the %d bytes came that were announced", r.size)
	}
	r.parts = append(r.parts, part)
	r.digest.Write(part)
	return nil
}

// finishReplacement replaces the ledger but for the access book, see bookAfterReplacement. Bindings of nodes are a part
// of the configuration and come from the backup. An error means that this node cannot do what the other replicas do.
func (f *FSM) finishReplacement(index uint64, digest []byte, gap uint64) (Replaced, error) {
	r := f.replacement
	if r.have != r.size || !bytes.Equal(r.digest.Sum(nil), digest) {
		return Replaced{Refused: errors.New("not all parts came, or not those that were announced")}, nil
	}
	readers := make([]io.Reader, len(r.parts))
	for i, part := range r.parts {
		readers[i] = bytes.NewReader(part)
	}
	loaded, header, err := loadSnapshot(io.MultiReader(readers...), f.options, f.bookAfterReplacement)
	if err != nil {
		return Replaced{}, err
	}
	ledger := loaded.ledger
	ledger.Supersede(f.ledger.Header(), gap)
	ledger.BeginChanges(index)
	f.ledger = ledger // the audit records stay: no backup brings back a state in which something was not recorded
	f.recordRestore(index, header.GetIndex())
	// Watchers must read the whole state again, as after any snapshot.
	clear(f.newEvents)
	f.newEvents = f.newEvents[:0]
	f.lastEvent = index // so that readers learn of the gap
	f.feed.restart(index, index, ledger.Reader().Now())
	return Replaced{Done: true, Header: ledger.Header(), level: header.GetFormat()}, nil
}

// bookAfterReplacement is the present book, so that no backup brings back an account, a token, a right or a mode that
// was taken away after it. If access was never changed here, it is the book of the backup without its tokens, because
// it is not known which of them have been revoked since.
func (f *FSM) bookAfterReplacement(backup access.State) access.State {
	if book := f.ledger.Reader().Book(); book.Revision() > 0 {
		return book.State()
	}
	backup.Tokens = nil
	return backup
}

func (f *FSM) extendChainByStep(entry []byte, answer Replaced) {
	h := sha256.New()
	h.Write(f.chain[:])
	h.Write(entry)
	verdict := uint64(1)
	switch {
	case answer.Refused != nil:
		verdict = 0
	case answer.Done:
		verdict = 2
	}
	h.Write(appendNumbers(nil, verdict, answer.Header.Fence, answer.Header.Revision))
	h.Sum(f.chain[:0])
}
