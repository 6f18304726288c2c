package fsm

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

func benchTree() quota.ApplyTrees {
	spec := quota.TreeSpec{
		Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Milli}, {Name: "memory", Unit: quota.Bytes}},
	}
	for _, path := range []string{"", "org", "org/team", "org/team/project"} {
		spec.Nodes = append(spec.Nodes, quota.NodeSpec{Path: path, Limits: []quota.ResourceLimit{
			{Resource: "cpu", Limit: quota.AtMost(quota.MaxAmount)},
			{Resource: "memory", Limit: quota.AtMost(quota.MaxAmount)},
		}})
	}
	return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
}

func benchAllocate(i int) quota.Allocate {
	return quota.Allocate{ID: fmt.Sprintf("job-%012d", i), Claims: []quota.Claim{{
		Tree: "t", Node: "org/team/project", Amounts: quota.Vector{
			{Resource: "cpu", Amount: 1},
			{Resource: "memory", Amount: 1},
		},
	}}}
}

func mustEncode(tb testing.TB, commands ...quota.Command) []byte {
	tb.Helper()
	data, err := EncodeEntry(quota.Stamp{At: 1, Wall: 1}, commands)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func applyData(f *FSM, index uint64, data []byte) any {
	return f.Apply(&raft.Log{Index: index, Type: raft.LogCommand, Data: data})
}

// BenchmarkApply decodes and applies entries of allocations and of their releases; one op is one command.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("commands=%d", size), func(b *testing.B) {
			var allocates, releases []quota.Command
			for i := range size {
				allocates = append(allocates, benchAllocate(i))
				releases = append(releases, quota.Release{ID: benchAllocate(i).ID})
			}
			entries := [][]byte{mustEncode(b, allocates...), mustEncode(b, releases...)}
			bounds := quota.DefaultBounds()
			bounds.TombstoneSpan = 0 // the same ids again
			f := New(Options{Bounds: bounds})
			applyData(f, 1, mustEncode(b, benchTree()))
			b.ReportAllocs()
			b.ResetTimer()
			for i, done := 0, 0; done < b.N; i, done = i+1, done+size {
				outcomes := applyData(f, uint64(i+2), entries[i%2]).(Outcomes)
				if outcomes[0].Refused != nil {
					b.Fatal(outcomes[0].Refused)
				}
			}
		})
	}
}

// BenchmarkDecodeEntry measures the decoding part of BenchmarkApply, and the decoder for all other entries beside it.
func BenchmarkDecodeEntry(b *testing.B) {
	var scanner entryScanner
	for name, decode := range map[string]func([]byte) (decoded, error){
		"quick": scanner.decodeEntry, "standard": ownFormats.decodeEntry, "callers": scanner.decodeEntry,
	} {
		data := mustEncode(b, benchCommands()...)
		if name == "callers" { // each command of another call, of two users
			var parts []Part
			for i, c := range benchCommands() {
				parts = append(parts, partOf(b, []*access.Caller{ciCaller, evaCaller}[i%2], c))
			}
			data = joined(b, parts...)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N / 64 {
				if _, err := decode(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEncodeCommands measures what a proposal does before it is assigned to an entry; one op is one command.
func BenchmarkEncodeCommands(b *testing.B) {
	commands := benchCommands()
	for name, encode := range map[string]func() error{
		"quick": func() error { _, err := EncodeCommands(nil, commands); return err },
		"callers": func() error { // for each command
			for i := range commands {
				if _, err := EncodeCommands(evaCaller, commands[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		},
		"single": func() error {
			for i := range commands {
				if _, err := EncodeCommands(nil, commands[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		},
		"standard": func() error {
			_, err := marshalEntry(nil, &logv1.Entry{Commands: each(commands, encodeCommand)})
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N / 64 {
				if err := encode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchCommands() []quota.Command {
	var commands []quota.Command
	for i := range 64 {
		commands = append(commands, benchAllocate(i))
	}
	return commands
}

// fill also returns the bytes of memory for each allocation.
func fill(b *testing.B, live int) (*FSM, float64) {
	b.Helper()
	f := New(Options{})
	applyData(f, 1, mustEncode(b, benchTree()))
	before := heap()
	for i := 0; i < live; i += MaxEntryCommands {
		var commands []quota.Command
		for j := i; j < min(i+MaxEntryCommands, live); j++ {
			commands = append(commands, benchAllocate(j))
		}
		applyData(f, uint64(i+2), mustEncode(b, commands...))
	}
	return f, float64(heap()-before) / float64(live)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

type sink struct {
	bytes.Buffer
	cancelled bool
}

func (s *sink) ID() string    { return "sink" }
func (s *sink) Close() error  { return nil }
func (s *sink) Cancel() error { s.cancelled = true; return nil }

// BenchmarkSnapshot takes, writes and restores a snapshot of a million allocations.
func BenchmarkSnapshot(b *testing.B) {
	const live = 1_000_000
	f, perAllocation := fill(b, live)
	var out sink
	b.Run("freeze", func(b *testing.B) {
		longest := time.Duration(0)
		for i := range b.N {
			applyData(f, uint64(2*live+i), mustEncode(b, quota.Release{ID: "nobody"}))
			begin := time.Now()
			if _, err := f.Snapshot(); err != nil {
				b.Fatal(err)
			}
			longest = max(longest, time.Since(begin))
		}
		b.ReportMetric(float64(longest.Microseconds()), "µs-longest")
		b.ReportMetric(perAllocation, "bytes/allocation")
	})
	b.Run("write", func(b *testing.B) {
		for range b.N {
			out.Reset()
			s, err := f.Snapshot()
			if err == nil {
				err = s.Persist(&out)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(out.Len()))
	})
	b.Run("restore", func(b *testing.B) {
		grown := 0.0
		for range b.N {
			b.StopTimer()
			restored, before := New(Options{}), heap()
			b.StartTimer()
			if err := restored.Restore(io.NopCloser(bytes.NewReader(out.Bytes()))); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			grown = float64(heap()-before) / live
			runtime.KeepAlive(restored)
			b.StartTimer()
		}
		b.ReportMetric(grown, "bytes/allocation")
	})
}

// BenchmarkRestoreTombstones restores a snapshot in which a hundred thousand allocations have ended.
func BenchmarkRestoreTombstones(b *testing.B) {
	const ended = 100_000
	f, _ := fill(b, ended)
	for i := range ended {
		applyData(f, uint64(2*ended+i), mustEncode(b, quota.Release{ID: benchAllocate(i).ID}))
	}
	data := snapshotOf(b, f)
	grown := 0.0
	for b.Loop() {
		before := heap()
		restored := New(Options{})
		if err := restored.Restore(io.NopCloser(bytes.NewReader(data))); err != nil {
			b.Fatal(err)
		}
		grown = float64(heap()-before) / ended
		runtime.KeepAlive(restored)
	}
	b.ReportMetric(grown, "bytes/tombstone")
}
