package backup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
)

func sample(t testing.TB) (*fsm.FSM, []byte) {
	t.Helper()
	machine := fsm.New(fsm.Options{})
	limit := []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(9)}}
	for i, c := range []quota.Command{
		quota.ApplyTrees{Trees: []quota.TreeSpec{{
			Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{{Limits: limit}, {Path: "a"}},
		}}},
		quota.Allocate{ID: "held", Claims: []quota.Claim{
			{Tree: "t", Amounts: quota.Vector{{Resource: "cores", Amount: 2}}},
		}},
		quota.Allocate{ID: "gone", Claims: []quota.Claim{
			{Tree: "t", Amounts: quota.Vector{{Resource: "cores", Amount: 3}}},
		}},
		quota.Release{ID: "gone"},
	} {
		data, err := fsm.EncodeEntry(quota.Stamp{At: 1000, Wall: 2000}, []quota.Command{c})
		if err != nil {
			t.Fatal(err)
		}
		machine.Apply(&raft.Log{Index: uint64(i + 1), Type: raft.LogCommand, Data: data})
	}
	return machine, write(t, machine)
}

func write(t testing.TB, machine *fsm.FSM) []byte {
	t.Helper()
	state, err := machine.TakeSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	sum, err := Write(&file, Manifest{Cluster: "prod", Node: "n1", Version: "v1", Term: 3, TakenMs: 4}, state)
	if err != nil || sum.Size >= int64(file.Len()) {
		t.Fatal(sum, err)
	}
	return file.Bytes()
}

func TestAFileSaysWhatIsInIt(t *testing.T) {
	machine, file := sample(t)
	var state bytes.Buffer
	got, err := Read(iotest.OneByteReader(bytes.NewReader(file)), fsm.Options{}, &state)
	if err != nil {
		t.Fatal(err)
	}
	want := fsm.Counts{Trees: 1, Nodes: 2, Revisions: 1, Held: 1, Ended: 1}
	if got.Cluster != "prod" || got.Node != "n1" || got.Term != 3 || got.Index != 4 || got.Revision != 1 ||
		got.Fence != 2 || got.LedgerTimeMs != 1000 || got.Counts != want {
		t.Errorf("it says %+v", got)
	}
	again := fsm.New(fsm.Options{})
	if err := again.Restore(io.NopCloser(&state)); err != nil || int64(state.Len()) != 0 {
		t.Fatal(err)
	}
	if !bytes.Equal(write(t, again), file) || !bytes.Equal(write(t, machine), file) {
		t.Error("the same state gives another file")
	}
}

// TestEveryDamageIsFound changes each byte of a file, cuts it at each place and appends bytes; each damage must be
// found.
func TestEveryDamageIsFound(t *testing.T) {
	_, file := sample(t)
	check := func(what string, at int, bad []byte) {
		t.Helper()
		if _, err := Read(bytes.NewReader(bad), fsm.Options{}, nil); err == nil || err.Error() == "" {
			t.Errorf("%s at %d was not noticed", what, at)
		}
	}
	for at := range file {
		for _, bit := range []byte{1, 0x20, 0x80} {
			bad := bytes.Clone(file)
			bad[at] ^= bit
			check("a changed bit", at, bad)
		}
		check("an end", at, file[:at])
	}
	check("more", len(file), append(bytes.Clone(file), 0))
}

func withFormat(file []byte, format uint32) []byte {
	start := len(firstLine) + 4 // behind the length of the manifest
	end := start + int(binary.BigEndian.Uint32(file[len(firstLine):]))
	manifest := bytes.Replace(file[start:end], []byte(`"format":1`), fmt.Appendf(nil, `"format":%d`, format), 1)
	length := binary.BigEndian.AppendUint32(nil, uint32(len(manifest)))
	return slices.Concat([]byte(firstLine), length, manifest, file[end:])
}

func TestErrorsOfFilesSayWhatIsWrong(t *testing.T) {
	_, file := sample(t)
	state := bytes.LastIndex(file, []byte("held")) // the id of an allocation
	changed := func(at int, to byte) []byte {
		bad := bytes.Clone(file)
		bad[at] = to
		return bad
	}
	for says, bad := range map[string][]byte{
		"ends too early":                 file[:len(file)-1],
		"this is not a backup":           []byte("PK\x03\x04 and what follows in an archive"),
		"another format than 1":          changed(len(magic), '2'),
		"SHA-256":                        changed(state, 'H'),
		"something follows the end":      append(bytes.Clone(file), 'x'),
		"the manifest has":               changed(len(firstLine), 9),
		"run version v1 or a newer":      withFormat(file, fsm.NewestFormat()+1),
		"a development build of Quorate": append([]byte(formerMagic+"1\n"), file[len(firstLine):]...),
		"does not say what is in":        bytes.Replace(file, []byte(`"held":1`), []byte(`"held":2`), 1),
		"is not what a server writes":    bytes.Replace(file, []byte(`"held":1`), []byte(`"hold":1`), 1),
	} {
		if _, err := Read(bytes.NewReader(bad), fsm.Options{}, nil); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v; want %q in it", err, says)
		}
	}
	broken := errors.New("the disk is broken")
	if _, err := Read(io.MultiReader(bytes.NewReader(file[:100]), iotest.ErrReader(broken)), fsm.Options{},
		nil); !errors.Is(err, broken) {
		t.Errorf("an error while reading became %v", err)
	}
}

func TestAWriterThatFails(t *testing.T) {
	machine, file := sample(t)
	state, err := machine.TakeSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	for room := range len(file) {
		if _, err := Write(&full{room}, Manifest{}, state); !errors.Is(err, errFull) && room < len(file)-100 {
			t.Fatalf("with room for %d bytes: %v", room, err)
		}
	}
}

var errFull = errors.New("no space left")

type full struct{ room int }

func (f *full) Write(data []byte) (int, error) {
	if f.room -= len(data); f.room < 0 {
		return 0, errFull
	}
	return len(data), nil
}

// FuzzRead: arbitrary bytes must not make the reader panic or allocate without bound, and a file that it accepts must
// equal the one that Write produces from the result.
func FuzzRead(f *testing.F) {
	_, file := sample(f)
	f.Add(file)
	f.Add(file[:len(file)/2])
	f.Add([]byte(firstLine))
	f.Add(binary.BigEndian.AppendUint32([]byte(firstLine), 1<<31))
	f.Fuzz(func(t *testing.T, data []byte) {
		var state bytes.Buffer
		contents, err := Read(bytes.NewReader(data), fsm.Options{}, &state)
		if err != nil {
			return
		}
		machine := fsm.New(fsm.Options{})
		if err := machine.Restore(io.NopCloser(&state)); err != nil {
			t.Fatalf("a good file has a state that cannot be restored: %v", err)
		}
		frozen, err := machine.TakeSnapshot()
		if err != nil || frozen.Info() != contents.Info {
			t.Fatalf("it says %+v and is %+v, %v", contents.Info, frozen.Info(), err)
		}
	})
}
