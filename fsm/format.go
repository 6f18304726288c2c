package fsm

import (
	"errors"

	"github.com/quorate/quorate/quota"
)

// Formats are the formats of log entries and snapshots that a version understands: the first one, and the newer ones of
// its table. The newest is the node's feature level. A nil *Formats is that of this version; tests of upgrades make
// others.
type Formats struct {
	table  []Requirement
	newest uint32
}

// Requirement is a row of the table: something that needs a newer format than the first.
type Requirement struct {
	// Format is the format that introduced it.
	Format uint32
	// IsUsed is true for commands that use it: of a new kind, or with a field or value that earlier versions do not know
	// or carry out otherwise.
	IsUsed func(quota.Command) bool
}

// ownFormats is the table of this version. A change that a member of the version before could not apply gets a row:
// then the cluster refuses it until all members understand it and the feature level is raised, and a member that does
// not understand it halts instead of diverging (docs/adr/0009, 0046). A rule of the ledger that changes without a new
// command asks for the format of the ledger; its row has an IsUsed that is always false.
var ownFormats = NewFormats()

// NewFormats returns the formats with a table.
func NewFormats(table ...Requirement) *Formats {
	f := &Formats{table: table, newest: quota.FirstFormat}
	for _, r := range table {
		f.newest = max(f.newest, r.Format)
	}
	return f
}

// NewestFormat is the newest format that this version reads and writes: the node's feature level.
func NewestFormat() uint32 { return ownFormats.newest }

// Newest is the newest of the formats.
func (f *Formats) Newest() uint32 { return f.known().newest }

func (f *Formats) known() *Formats {
	if f == nil {
		return ownFormats
	}
	return f
}

// neededBy is the oldest format that can express a command. Entries use the oldest possible format, so that a cluster
// can keep writing in the middle of an upgrade.
func (f *Formats) neededBy(c quota.Command) uint32 {
	format := quota.FirstFormat
	for _, r := range f.known().table {
		if r.Format > format && r.IsUsed(c) {
			format = r.Format
		}
	}
	return format
}

// Development builds, before the first release, wrote formats with the numbers 1 to 10. What this version writes begins
// differently, so that neither takes the data of the other for its own (docs/adr/0134).
const (
	// entryMark is the first byte of an entry. No message begins with it: its tag would be that of field 0.
	entryMark = 0x00
	// formerEntryMark is the first byte of the entries of development builds, the tag of field 1.
	formerEntryMark = 0x08
	// snapshotMark is how a snapshot begins.
	snapshotMark = "quorate-snapshot 1\n"
	// formerHeaderTag is the second byte of the snapshots of development builds, behind the length of the header.
	formerHeaderTag = 0x0a
)

// ErrDevelopmentBuild is the reason for which data of a development build is refused.
var ErrDevelopmentBuild = errors.New("a development build of Quorate from before the first release wrote it, in a " +
	"format that no release reads: with that build, save the configuration with quorate export, and apply it to a new " +
	"cluster with empty data folders; what is held has to be requested again")

// entryBody returns the message in the data of an entry.
func entryBody(data []byte) ([]byte, error) {
	switch {
	case len(data) > 0 && data[0] == entryMark:
		return data[1:], nil
	case len(data) > 0 && data[0] == formerEntryMark:
		return nil, ErrDevelopmentBuild
	}
	return nil, errors.New("it does not begin like a log entry: it was damaged, or another program wrote it")
}
