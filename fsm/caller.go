package fsm

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/access"
)

// Callers in entries. Parts carry one caller each; JoinEntry writes runs behind all commands, one for equal callers
// behind each other.

// Fields of an entry and a run that this file writes and reads.
const (
	callersField protowire.Number = 7
	runCommands  protowire.Number = 1
	runCaller    protowire.Number = 2
)

// runOverhead bounds the bytes of a run beside its caller: two tags and lengths, and the number of commands.
const runOverhead = 16

// callerRun has a nil caller for commands without one.
type callerRun struct {
	commands int
	caller   *access.Caller
}

type callerCursor struct {
	runs []callerRun
	used int // commands of the first run
}

// next returns nil for a command without a caller, and without runs always.
func (c *callerCursor) next() *access.Caller {
	if len(c.runs) == 0 {
		return nil
	}
	caller := c.runs[0].caller
	if c.used++; c.used == c.runs[0].commands {
		c.runs, c.used = c.runs[1:], 0
	}
	return caller
}

// encodeCaller returns nil for no caller. It writes the same bytes as the standard encoder.
//
// The id of the call is written for commands that leave an audit record, which has it. For all others it would be half
// of what a caller adds to the log, and no two calls of one user could share a run.
func encodeCaller(caller *access.Caller, withRequest bool) ([]byte, error) {
	if caller == nil {
		return nil, nil
	}
	if err := caller.Check(); err != nil {
		return nil, fmt.Errorf("encode the caller: %w", err)
	}
	w := fieldWriter{data: make([]byte, 0, typicalCommand)}
	w.writeNumber(1, uint64(caller.Kind))
	w.writeText(2, caller.User)
	w.writeTexts(3, caller.Groups)
	if caller.Credential != ([16]byte{}) {
		w.data = protowire.AppendBytes(protowire.AppendTag(w.data, 4, protowire.BytesType), caller.Credential[:])
	}
	w.writeText(5, caller.Via)
	if withRequest {
		w.writeText(6, caller.Request)
	}
	return w.data, nil
}

// appendRuns appends the callers of the parts of an entry as its last fields; nothing if no part has a caller.
func appendRuns(to []byte, parts []Part) []byte {
	if !slices.ContainsFunc(parts, func(p Part) bool { return p.caller != nil }) {
		return to
	}
	w := fieldWriter{data: to}
	for i := 0; i < len(parts); {
		commands, caller := parts[i].commands, parts[i].caller
		for i++; i < len(parts) && (parts[i].commands == 0 || bytes.Equal(parts[i].caller, caller)); i++ {
			commands += parts[i].commands
		}
		if commands == 0 {
			continue // a part that raises the level or asks for a checkpoint
		}
		run := w.beginMessage(callersField)
		w.writeNumber(runCommands, uint64(commands))
		if caller != nil {
			w.data = protowire.AppendBytes(protowire.AppendTag(w.data, runCaller, protowire.BytesType), caller)
		}
		w.endMessage(run)
	}
	return w.data
}

// decodeCallers reads the runs of an entry, which has none or divides all commands.
func decodeCallers(entry *logv1.Entry) ([]callerRun, error) {
	runs := make([]callerRun, 0, len(entry.GetCallers()))
	left := uint64(len(entry.GetCommands()))
	for i, r := range entry.GetCallers() {
		commands := uint64(r.GetCommands())
		if commands == 0 || commands > left {
			return nil, fmt.Errorf("run %d of its callers has %d of the last %d commands", i, commands, left)
		}
		left -= commands
		caller, err := decodeCaller(r.GetCaller())
		if err != nil {
			return nil, fmt.Errorf("run %d of its callers: %w", i, err)
		}
		runs = append(runs, callerRun{int(commands), caller})
	}
	switch {
	case len(runs) == 0:
		return nil, nil
	case left > 0:
		return nil, fmt.Errorf("its callers leave out the last %d commands", left)
	}
	return runs, nil
}

func decodeCaller(c *logv1.Caller) (*access.Caller, error) {
	if c == nil {
		return nil, nil
	}
	caller := &access.Caller{
		Kind: access.CallerKind(min(c.GetKind(), math.MaxUint8)), User: c.GetUser(), Groups: c.GetGroups(),
		Via: c.GetVia(), Request: c.GetRequest(),
	}
	if err := decodeFixed(caller.Credential[:], c.GetCredential(), "the credential"); err != nil {
		return nil, err
	}
	if err := caller.Check(); err != nil {
		return nil, err
	}
	return caller, nil
}

// scanRuns reads the runs of an entry of commands; like decodeCallers, but it only fails.
func (s *entryScanner) scanRuns(r *fieldReader, commands int) []callerRun {
	if !r.hasField(callersField) {
		return nil
	}
	s.runs = s.runs[:0]
	for r.hasField(callersField) {
		rest := r.enterMessage()
		count := r.readNumber(runCommands)
		r.failIf(count == 0 || count > uint64(commands))
		run := callerRun{commands: int(min(count, MaxEntryCommands))}
		commands -= run.commands
		if r.hasField(runCaller) {
			run.caller = s.callers.scan(r, r.readContent(), &s.names)
		}
		r.leaveMessage(rest)
		s.runs = append(s.runs, run)
	}
	r.failIf(commands != 0)
	return exactCopy(s.runs)
}

const (
	// cachedCallers is how many callers a callerCache keeps, cachedCaller their longest encoding, and hashedTail how many
	// of its last bytes choose the place.
	cachedCallers = 256
	cachedCaller  = 2048
	hashedTail    = 24
)

// callerCache keeps decoded callers by their bytes: one user asks for many commands. It is bounded, and has no
// influence on what is decoded.
type callerCache struct {
	slots []cachedEntry // nil before the first caller
}

type cachedEntry struct {
	encoded []byte
	caller  *access.Caller
}

// scan reads a caller of frequent commands. It makes r fail for bytes that encodeCaller does not write for those, with
// the id of a call for example.
func (c *callerCache) scan(r *fieldReader, encoded []byte, names *nameCache) *access.Caller {
	switch {
	case r.failed:
		return nil
	case len(encoded) > cachedCaller:
		return scanCaller(r, encoded, names)
	}
	if c.slots == nil {
		c.slots = make([]cachedEntry, cachedCallers)
	}
	// The credential is at the end, so a few bytes tell most callers apart.
	slot := &c.slots[hashBytes(encoded[max(0, len(encoded)-hashedTail):])%cachedCallers]
	if slot.caller != nil && bytes.Equal(slot.encoded, encoded) {
		return slot.caller
	}
	caller := scanCaller(r, encoded, names)
	if caller != nil {
		slot.encoded, slot.caller = bytes.Clone(encoded), caller
	}
	return caller
}

func scanCaller(r *fieldReader, encoded []byte, names *nameCache) *access.Caller {
	one := fieldReader{data: encoded}
	kind := one.readNumber(1)
	one.failIf(kind > math.MaxUint8)
	caller := &access.Caller{Kind: access.CallerKind(kind), User: names.find(one.readText(2))}
	for one.hasField(3) {
		caller.Groups = append(caller.Groups, names.find(one.readElement()))
	}
	if one.hasField(4) {
		credential := one.readContent()
		one.failIf(len(credential) != len(caller.Credential) || encodeFixed(credential) == nil)
		copy(caller.Credential[:], credential)
	}
	caller.Via = names.find(one.readText(5))
	if !one.isDone() || caller.Check() != nil {
		r.failIf(true)
		return nil
	}
	return caller
}
