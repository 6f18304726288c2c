package fsm

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/quota"
)

// benchTree has a leaf four levels deep with limits on every level.
func benchTree() quota.ApplyTrees {
	spec := quota.TreeSpec{Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Milli}, {Name: "memory", Unit: quota.Bytes}}}
	for _, path := range []string{"", "org", "org/team", "org/team/project"} {
		spec.Nodes = append(spec.Nodes, quota.NodeSpec{Path: path, Limits: []quota.ResourceLimit{
			{Resource: "cpu", Limit: quota.AtMost(quota.MaxAmount)}, {Resource: "memory", Limit: quota.AtMost(quota.MaxAmount)},
		}})
	}
	return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
}

func benchAllocate(i int) quota.Allocate {
	return quota.Allocate{ID: fmt.Sprintf("job-%012d", i), Claims: []quota.Claim{{
		Tree: "t", Node: "org/team/project", Amounts: quota.Vector{{Resource: "cpu", Amount: 1}, {Resource: "memory", Amount: 1}},
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

// BenchmarkApply decodes and applies entries of allocations, and then of their releases; one op is one command.
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

// BenchmarkDecodeEntry is the part of BenchmarkApply that reads the entry.
func BenchmarkDecodeEntry(b *testing.B) {
	var commands []quota.Command
	for i := range 64 {
		commands = append(commands, benchAllocate(i))
	}
	data := mustEncode(b, commands...)
	b.ReportAllocs()
	for range b.N / 64 {
		if _, err := decodeEntry(data); err != nil {
			b.Fatal(err)
		}
	}
}

// fill makes a state machine with live allocations, and answers how many bytes of memory one costs.
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

// heap is what lives in memory.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// sink is a snapshot sink in memory.
type sink struct {
	bytes.Buffer
	cancelled bool
}

func (s *sink) ID() string    { return "sink" }
func (s *sink) Close() error  { return nil }
func (s *sink) Cancel() error { s.cancelled = true; return nil }

// BenchmarkSnapshot freezes, writes and restores a million allocations.
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
