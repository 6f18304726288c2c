package fsm

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quorate/quorate/quota"
)

// An entry of frequent commands is read without the messages of entry.proto in between. scanEntry accepts only what
// append.go writes, byte for byte; for everything else, valid or not, it reports false, and decode.go decides. So there
// is one place that says what an entry means, and a difference between the two can only cost time. FuzzScanEntry
// compares them on arbitrary bytes.

// entryScanner reads entries. It is not safe for concurrent use.
type entryScanner struct {
	formats *Formats
	names   nameCache
	// claims and the like are room to collect lists in, which are copied in their exact size.
	claims  []quota.Claim
	amounts quota.Vector
	labels  []quota.Label
	numbers []uint64
	runs    []callerRun
	callers callerCache
}

// decodeEntry decodes the data of a log entry. After any error the node must halt.
func (s *entryScanner) decodeEntry(data []byte) (decoded, error) {
	if d, ok := s.scanEntry(data); ok {
		return d, nil
	}
	return s.formats.decodeEntry(data)
}

func (s *entryScanner) scanEntry(data []byte) (decoded, bool) {
	body, err := entryBody(data)
	r := fieldReader{data: body}
	format := r.readNumber(1)
	if err != nil || format < uint64(quota.FirstFormat) || format > uint64(s.formats.Newest()) {
		return decoded{}, false
	}
	d := decoded{format: uint32(format)}
	d.stamp = quota.Stamp{At: quota.Instant(r.readNumber(2)), Wall: int64(r.readNumber(3))}
	d.commands = make([]quota.Command, 0, min(r.countMessages(4), MaxEntryCommands))
	for r.hasField(4) {
		rest := r.enterMessage()
		if command := s.scanCommand(&r); command != nil {
			d.commands = append(d.commands, command)
		}
		r.leaveMessage(rest) // fails if the command is not known
	}
	d.callers = s.scanRuns(&r, len(d.commands))
	return d, r.isDone() && len(d.commands) > 0
}

// scanCommand returns nil for a command that it does not know.
func (s *entryScanner) scanCommand(r *fieldReader) (c quota.Command) {
	switch {
	case r.hasField(1):
		rest := r.enterMessage()
		c = s.scanAllocate(r)
		r.leaveMessage(rest)
	case r.hasField(2):
		rest := r.enterMessage()
		c = s.scanRelease(r)
		r.leaveMessage(rest)
	case r.hasField(12):
		rest := r.enterMessage()
		c = s.scanRenew(r)
		r.leaveMessage(rest)
	default:
		r.failed = true
	}
	return c
}

func (s *entryScanner) scanAllocate(r *fieldReader) quota.Allocate {
	c := quota.Allocate{ID: string(r.readText(1))}
	c.Claims = s.scanClaims(r, 2)
	c.Labels = s.scanLabels(r, 3)
	if r.hasField(4) {
		rest := r.enterMessage()
		c.Principal.User = s.names.find(r.readText(1))
		for r.hasField(2) {
			c.Principal.Groups = append(c.Principal.Groups, s.names.find(r.readElement()))
		}
		c.Principal.Application = s.names.find(r.readText(3))
		r.failIf(isNobody(c.Principal)) // the encoder leaves it out
		r.leaveMessage(rest)
	}
	mode := r.readNumber(5)
	r.failIf(mode > math.MaxUint8)
	c.Mode = quota.Mode(mode)
	c.ReserveFor, c.TTL = quota.Span(r.readNumber(6)), quota.Span(r.readNumber(7))
	c.WaitFor, c.Keep = quota.Span(r.readNumber(8)), quota.Span(r.readNumber(9))
	c.Priority = protowire.DecodeZigZag(r.readNumber(10))
	c.Data = s.scanLabels(r, 11)
	c.For = quota.Span(r.readNumber(70))
	for r.hasField(90) {
		rest := r.enterMessage()
		c.AnyOf = append(c.AnyOf, s.scanClaims(r, 1))
		r.leaveMessage(rest)
	}
	return c
}

func (s *entryScanner) scanClaims(r *fieldReader, number protowire.Number) []quota.Claim {
	s.claims = s.claims[:0]
	for r.hasField(number) {
		rest := r.enterMessage()
		s.claims = append(s.claims, s.scanClaim(r))
		r.leaveMessage(rest)
	}
	return exactCopy(s.claims)
}

func (s *entryScanner) scanClaim(r *fieldReader) quota.Claim {
	c := quota.Claim{Tree: s.names.find(r.readText(1)), Node: s.names.find(r.readText(2))}
	s.amounts = s.amounts[:0]
	for r.hasField(3) {
		rest := r.enterMessage()
		resource := s.names.find(r.readText(1))
		s.amounts = append(s.amounts, quota.Component{Resource: resource, Amount: quota.Amount(r.readNumber(2))})
		r.leaveMessage(rest)
	}
	c.Amounts = exactCopy(s.amounts)
	c.Priority, c.Type = protowire.DecodeZigZag(r.readNumber(4)), protowire.DecodeZigZag(r.readNumber(5))
	unpreemptable := r.readNumber(6)
	r.failIf(unpreemptable > 1)
	c.Unpreemptable = unpreemptable == 1
	for r.hasField(7) {
		rest := r.enterMessage()
		c.Picks = append(c.Picks, s.scanPick(r))
		r.leaveMessage(rest)
	}
	for r.hasField(40) {
		rest := r.enterMessage()
		c.Ranges = append(c.Ranges, quota.AmountRange{
			Resource: s.names.find(r.readText(1)), Most: quota.Amount(r.readNumber(2)), Step: quota.Amount(r.readNumber(3)),
		})
		r.leaveMessage(rest)
	}
	return c
}

func (s *entryScanner) scanPick(r *fieldReader) quota.Pick {
	p := quota.Pick{Resource: s.names.find(r.readText(1)), Count: int(int64(r.readNumber(2)))}
	p.State = s.names.find(r.readText(3))
	for r.hasField(4) {
		p.Names = append(p.Names, string(r.readElement()))
	}
	p.HeldState = s.names.find(r.readText(5))
	return p
}

func (s *entryScanner) scanRelease(r *fieldReader) quota.Release {
	c := quota.Release{ID: string(r.readText(1))}
	for r.hasField(2) {
		c.Items = append(c.Items, s.scanItemName(r))
	}
	c.ItemState, c.Fence = s.names.find(r.readText(3)), r.readNumber(4)
	return c
}

func (s *entryScanner) scanRenew(r *fieldReader) quota.Renew {
	c := quota.Renew{ID: string(r.readText(1)), Fence: r.readNumber(2), TTL: quota.Span(r.readNumber(3))}
	c.Data = s.scanLabels(r, 4)
	for r.hasField(5) {
		rest := r.enterMessage()
		r.failIf(!r.hasField(1)) // the encoder always names the item
		update := quota.ItemUpdate{Item: s.scanItemName(r)}
		update.State = s.names.find(r.readText(2))
		update.Data = s.scanLabels(r, 3)
		c.Items = append(c.Items, update)
		r.leaveMessage(rest)
	}
	return c
}

func (s *entryScanner) scanItemName(r *fieldReader) quota.ItemName {
	rest := r.enterMessage()
	n := quota.ItemName{Tree: s.names.find(r.readText(1)), Resource: s.names.find(r.readText(2))}
	n.Name = string(r.readText(3))
	r.leaveMessage(rest)
	return n
}

func (s *entryScanner) scanLabels(r *fieldReader, number protowire.Number) []quota.Label {
	s.labels = s.labels[:0]
	for r.hasField(number) {
		rest := r.enterMessage()
		key := s.names.find(r.readText(1))
		s.labels = append(s.labels, quota.Label{Key: key, Value: string(r.readText(2))})
		r.leaveMessage(rest)
	}
	return exactCopy(s.labels)
}

// exactCopy copies a list without spare capacity, because the ledger keeps it for as long as the allocation lives. An
// empty list becomes nil.
func exactCopy[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	exact := make([]T, len(list))
	copy(exact, list)
	return exact
}
