package fsm

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
)

// callersOf returns nil for commands without a caller.
func callersOf(e decoded) []*access.Caller {
	cursor := callerCursor{runs: e.callers}
	list := make([]*access.Caller, len(e.commands))
	for i := range list {
		list[i] = cursor.next()
	}
	return list
}

// randomCaller is a valid caller or nil; some are equal but for the id of the call.
func randomCaller() *rapid.Generator[*access.Caller] {
	return rapid.Custom(func(t *rapid.T) *access.Caller {
		caller := *rapid.SampledFrom([]*access.Caller{
			ciCaller,
			evaCaller,
			systemCaller,
			{Kind: access.Anonymous},
			{Kind: access.External, User: "github/1", Credential: [16]byte{15: 1}},
			{Kind: access.External, User: "corp/adam", Groups: manyGroups()},
		}).Draw(t, "caller")
		caller.Request = rapid.SampledFrom([]string{"", "r1", strings.Repeat("r", access.MaxRequest)}).Draw(t, "request")
		if rapid.IntRange(0, 3).Draw(t, "none") == 0 {
			return nil
		}
		return &caller
	})
}

func manyGroups() []string {
	var groups []string
	for i := range access.MaxGroups {
		name := "corp/" + string(rune('A'+i%10)) + string(rune('A'+i/10))
		groups = append(groups, name+strings.Repeat("g", access.MaxSubjectName-len(name)))
	}
	slices.Sort(groups)
	return groups
}

// TestCallersSurviveJoining: in an entry of any parts each command keeps its caller, in both decoders; equal callers
// behind each other are written once, and no entry is larger than its parts announce.
func TestCallersSurviveJoining(t *testing.T) {
	var scanner entryScanner
	quick := 0
	verify.Check(t, func(t *rapid.T) {
		var parts []Part
		var want []*access.Caller
		size := 64
		frequent := rapid.Bool().Draw(t, "frequent only")
		for range rapid.IntRange(1, 8).Draw(t, "parts") {
			if !frequent && rapid.IntRange(0, 4).Draw(t, "checkpoint") == 0 {
				parts = append(parts, Checkpoint())
				continue
			}
			caller, commands := randomCaller().Draw(t, "caller"), rapid.IntRange(1, 3).Draw(t, "commands")
			var command quota.Command = quota.DeleteTree{Tree: "t"}
			isRare := !frequent && rapid.Bool().Draw(t, "rare")
			if !isRare {
				command = quota.Release{ID: "i"}
			}
			part, err := EncodeCommands(caller, repeat(command, commands))
			if err != nil {
				t.Fatal(err)
			}
			if caller != nil && !isRare {
				caller.Request = "" // only records need it
			}
			for range commands {
				want = append(want, caller)
			}
			parts, size = append(parts, part), size+part.Size()
		}
		data, err := JoinEntry(quota.Stamp{At: 1 << 50, Wall: 1 << 50}, parts...)
		if err != nil || len(data) > size {
			t.Fatalf("%d bytes, announced were %d: %v", len(data), size, err)
		}
		got, err := ownFormats.decodeEntry(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, callersOf(got)); diff != "" && len(want) > 0 {
			t.Fatalf("(-before +after):\n%s", diff)
		}
		for i := 1; i < len(got.callers); i++ {
			if cmp.Equal(got.callers[i-1].caller, got.callers[i].caller) {
				t.Fatalf("the caller of run %d is written twice", i)
			}
		}
		if compareDecoders(t, &scanner, data) {
			quick++
		} else if frequent {
			t.Fatalf("%x is not read quickly", data)
		}
	})
	if quick == 0 {
		t.Error("no entry was read quickly")
	}
}

// TestCallersAreWrittenLikeMessages: the bytes are those of the standard encoder.
func TestCallersAreWrittenLikeMessages(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		caller := randomCaller().Filter(func(c *access.Caller) bool { return c != nil }).Draw(t, "caller")
		quick, err := encodeCaller(caller, true)
		if err != nil {
			t.Fatal(err)
		}
		standard, err := proto.MarshalOptions{Deterministic: true}.Marshal(&logv1.Caller{
			Kind: uint32(caller.Kind), User: caller.User, Groups: caller.Groups,
			Credential: encodeFixed(caller.Credential[:]), Via: caller.Via, Request: caller.Request,
		})
		if err != nil || !bytes.Equal(quick, standard) {
			t.Fatalf("%+v\nbecame   %x\nand was  %x, %v", caller, quick, standard, err)
		}
	})
}

// TestCallsOfRecordedCommandsAreWritten: exactly the commands that leave audit records carry the id of the call, so
// calls of one user with other commands share a run.
func TestCallsOfRecordedCommandsAreWritten(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		command := anyCommand().Draw(t, "command")
		_, isChange := changeRecord(command)
		if isRecorded(command) != isChange {
			t.Fatalf("a %T leaves a record: %v", command, isChange)
		}
	})
	for _, command := range []quota.Command{quota.Release{ID: "i"}, quota.DeleteTree{Tree: "t"}} {
		entry, err := ownFormats.decodeEntry(joined(t, partOf(t, ciCaller, command)))
		if err != nil {
			t.Fatal(err)
		}
		if hasRequest := entry.callers[0].caller.Request != ""; hasRequest != isRecorded(command) {
			t.Errorf("the caller of %T has the id of the call: %v", command, hasRequest)
		}
	}
}

// TestInvalidCallersAreNotEncoded: what no reader would accept is not written.
func TestInvalidCallersAreNotEncoded(t *testing.T) {
	for _, caller := range []*access.Caller{
		{},
		{Kind: access.System, User: "corp/eva"},
		{Kind: access.External, User: "eva"},
		{Kind: access.Anonymous, Request: strings.Repeat("r", access.MaxRequest+1)},
		{Kind: access.External, User: "corp/eva", Groups: []string{"corp/b", "corp/a"}},
	} {
		if _, err := EncodeCommands(caller, []quota.Command{quota.Release{ID: "i"}}); err == nil {
			t.Errorf("%+v was encoded", caller)
		}
	}
}

// TestMalformedRunsHalt: an entry whose callers do not divide its commands, or are none, is not applied.
func TestMalformedRunsHalt(t *testing.T) {
	eva := &logv1.Caller{Kind: uint32(access.External), User: "corp/eva"}
	run := func(commands uint32, caller *logv1.Caller) *logv1.CallerRun {
		return &logv1.CallerRun{Commands: commands, Caller: caller}
	}
	with := func(change func(*logv1.Caller)) []*logv1.CallerRun {
		caller := proto.Clone(eva).(*logv1.Caller)
		change(caller)
		return []*logv1.CallerRun{run(2, caller)}
	}
	for name, c := range map[string]struct {
		runs []*logv1.CallerRun
		fine bool
	}{
		"none":                  {nil, true},
		"all commands":          {[]*logv1.CallerRun{run(2, eva)}, true},
		"in two runs":           {[]*logv1.CallerRun{run(1, eva), run(1, eva)}, true},
		"nobody":                {[]*logv1.CallerRun{run(1, nil), run(1, eva)}, true},
		"too few commands":      {[]*logv1.CallerRun{run(1, eva)}, false},
		"too many commands":     {[]*logv1.CallerRun{run(3, eva)}, false},
		"too many runs":         {[]*logv1.CallerRun{run(2, eva), run(1, nil)}, false},
		"a run of no command":   {[]*logv1.CallerRun{run(0, eva), run(2, eva)}, false},
		"overflow":              {[]*logv1.CallerRun{run(1<<32-1, eva), run(3, eva)}, false},
		"no kind":               {with(func(c *logv1.Caller) { c.Kind = 0 }), false},
		"an unknown kind":       {with(func(c *logv1.Caller) { c.Kind = 256 + uint32(access.External) }), false},
		"a short credential":    {with(func(c *logv1.Caller) { c.Credential = make([]byte, 15) }), false},
		"a zero credential":     {with(func(c *logv1.Caller) { c.Credential = make([]byte, 16) }), true},
		"no user":               {with(func(c *logv1.Caller) { c.User = "" }), false},
		"groups of another":     {with(func(c *logv1.Caller) { c.Groups = []string{"other/g"} }), false},
		"an id that is no text": {with(func(c *logv1.Caller) { c.Request = "\n" }), false},
	} {
		entry := &logv1.Entry{Format: quota.FirstFormat, TimeMs: 5, Callers: c.runs}
		for range 2 {
			entry.Commands = append(entry.Commands, encodeCommand(quota.Release{ID: "i"}))
		}
		data := mustMarshal(t, entry)
		f := New(Options{})
		applyData(f, 1, data)
		if fine := f.Halted() == nil; fine != c.fine || !fine && !errors.Is(f.Halted(), ErrHalted) {
			t.Errorf("%s: %v", name, f.Halted())
		}
		var scanner entryScanner
		for range 2 { // the second time from the cache
			if accepted := compareDecoders(t, &scanner, data); accepted && !c.fine {
				t.Errorf("%s: read quickly", name)
			}
		}
	}
	alone := &logv1.Entry{Format: 7, Checkpoint: true, Callers: []*logv1.CallerRun{run(1, eva)}}
	if _, err := ownFormats.decodeEntry(mustMarshal(t, alone)); err == nil {
		t.Error("callers without commands were accepted")
	}
}

// TestCallersAreDecodedOnce: commands of one user share what is decoded, and the cache stays within its bound.
func TestCallersAreDecodedOnce(t *testing.T) {
	var scanner entryScanner
	var entries [][]byte
	for _, request := range []string{"", "r1", "r2"} {
		caller := *evaCaller
		caller.Request = request
		entries = append(entries, joined(t, partOf(t, &caller, quota.Release{ID: "i"})))
	}
	var callers []*access.Caller
	for _, data := range entries {
		entry, ok := scanner.scanEntry(data)
		if !ok {
			t.Fatal("not read quickly")
		}
		callers = append(callers, entry.callers[0].caller)
	}
	if callers[0] != callers[1] || callers[0] != callers[2] {
		t.Errorf("%+v, %+v and %+v are decoded apart", callers[0], callers[1], callers[2])
	}
	for i := range 10 * cachedCallers {
		caller := access.Caller{Kind: access.External, User: "corp/eva", Credential: [16]byte{byte(i), byte(i >> 8), 1}}
		if i%2 == 0 {
			caller.Groups = manyGroups()
		}
		entry, ok := scanner.scanEntry(joined(t, partOf(t, &caller, quota.Release{ID: "i"})))
		if diff := cmp.Diff(&caller, entry.callers[0].caller); !ok || diff != "" {
			t.Fatal(diff)
		}
	}
	held := 0
	for _, slot := range scanner.callers.slots {
		held += len(slot.encoded)
	}
	if held == 0 || held > cachedCallers*cachedCaller || len(scanner.callers.slots) != cachedCallers {
		t.Errorf("the cache has %d bytes in %d places", held, len(scanner.callers.slots))
	}
}
