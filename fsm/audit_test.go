package fsm

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/quota"
)

// auditedEntries are changes of all kinds, with commands of holders between them.
func auditedEntries(t testing.TB) [][]byte {
	t.Helper()
	part := func(caller *access.Caller, c quota.Command) Part { return partOf(t, caller, c) }
	limits := func(amount quota.Amount) quota.SetLimits {
		return quota.SetLimits{
			Meta: quota.ChangeMeta{Actor: "ann", Reason: "growth", RequestID: fmt.Sprintf("r-%d", amount)}, Tree: "bound",
			Node: "a", Limits: []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(amount)}},
		}
	}
	samples := accessSamples()
	bootstrap := samples["bootstrap"].(access.Bootstrap)
	bootstrap.IsRecovery, bootstrap.Recoveries, bootstrap.Guard = false, 0, false
	token := samples["create-token"].(access.CreateToken)
	token.Token.ID = access.TokenID{5, 5}
	hold := quota.Allocate{
		ID: "corp/eva ci/1", Data: []quota.Label{{Key: "k", Value: "user-data"}}, TTL: 1000,
		Claims: []quota.Claim{{Tree: "bound", Node: "a", Amounts: quota.Vector{{Resource: "cores", Amount: 2}}}},
	}
	unowned := hold
	unowned.ID = "old"
	change := func(c access.Command) quota.ChangeAccess { return quota.ChangeAccess{Reason: "because", Change: c} }
	return [][]byte{
		joined(t, Checkpoint()),
		joined(t, part(evaCaller, boundTree), part(ciCaller, hold), part(nil, unowned)),
		joined(t, part(ciCaller, limits(5))), joined(t, part(ciCaller, limits(5))), // the same again
		joined(t, part(ciCaller, quota.Release{ID: "nothing"}), part(nil, limits(6)), part(evaCaller, limits(7))),
		joined(t, part(evaCaller, change(bootstrap))), joined(t, part(evaCaller, change(samples["create-account"]))),
		joined(t, part(evaCaller, change(token))), joined(t, part(evaCaller, change(samples["refuse"]))),
		joined(t, part(evaCaller, quota.SetLimits{Tree: "nowhere"})), // refused
		joined(t, part(evaCaller, quota.CordonNode{Tree: "bound"})),
		joined(t, part(evaCaller, quota.RollBack{Revision: 1})),
	}
}

func recordsIn(t testing.TB, f *FSM) []audit.Record {
	t.Helper()
	var list []audit.Record
	entries, _, _ := f.AuditRecords(0, audit.MaxRecords)
	for _, e := range entries {
		r, err := audit.Decode(e.Line)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// TestAppliedChangesAreRecorded: each change once, with its caller, and nothing for what changes nothing.
func TestAppliedChangesAreRecorded(t *testing.T) {
	f := New(Options{})
	for i, data := range auditedEntries(t) {
		applyData(f, uint64(i+1), data)
	}
	got := ""
	for _, r := range recordsIn(t, f) {
		got += fmt.Sprintf("%d %d %s %s by %s %s: %s revision %d", r.Number, r.Index, r.Kind, r.Action, r.Actor.Kind,
			r.Actor.User, r.Reason, r.Revision)
		for _, c := range r.Changes {
			if r.Action == "ApplyTrees" {
				break
			}
			got += fmt.Sprintf("; %s:%s %s %q > %q", c.Tree, c.Node, c.Field, c.Before, c.After)
		}
		got += "\n"
	}
	want := `1 2 configuration ApplyTrees by external corp/eva:  revision 1
2 3 configuration SetLimits by account account/ci: growth revision 2; bound:a limit cores "" > "5"
3 5 configuration SetLimits by  : growth revision 3; bound:a limit cores "5" > "6"
4 5 configuration SetLimits by external corp/eva: growth revision 4; bound:a limit cores "6" > "7"
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, part := range []string{
		"access Bootstrap by external corp/eva: because", "access account admin", "access CreateAccount",
		"access CreateToken", "access token aucqaaaaaaaaa", "access Refuse", "CordonNode", "RollBack",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("nothing has %q in\n%s", part, got)
		}
	}
	if n := len(recordsIn(t, f)); n != 10 {
		t.Errorf("%d records are made:\n%s", n, got)
	}
}

// TestRecordsHaveNoSecrets: neither hashes of tokens nor user data.
func TestRecordsHaveNoSecrets(t *testing.T) {
	f := New(Options{})
	for i, data := range auditedEntries(t) {
		applyData(f, uint64(i+1), data)
	}
	entries, _, _ := f.AuditRecords(0, audit.MaxRecords)
	samples := accessSamples()
	hash := samples["create-token"].(access.CreateToken).Token.Hash
	shown := samples["bootstrap"].(access.Bootstrap).Secret
	for _, secret := range []string{
		"user-data", hex.EncodeToString(hash[:]), hex.EncodeToString(shown[:]), string(hash[:3]),
		base64.RawStdEncoding.EncodeToString(hash[:3]),
	} {
		for _, e := range entries {
			if line, _, _ := strings.Cut(string(e.Line), `,"previous"`); strings.Contains(line, secret) {
				t.Errorf("%q is in %s", secret, line)
			}
		}
	}
}

// TestReplicasRecordEqually: the records are the same however the log is divided into batches, and with snapshots and
// restores between them.
func TestReplicasRecordEqually(t *testing.T) {
	entries := auditedEntries(t)
	one := New(Options{})
	for i, data := range entries {
		applyData(one, uint64(i+1), data)
	}
	want := snapshotOf(t, one)
	rapid.Check(t, func(rt *rapid.T) {
		other := New(Options{})
		var batch []*raft.Log
		for i, data := range entries {
			batch = append(batch, &raft.Log{Index: uint64(i + 1), Type: raft.LogCommand, Data: data})
			if i+1 < len(entries) && rapid.Bool().Draw(rt, "more") {
				continue
			}
			other.ApplyBatch(batch)
			batch = nil
			if rapid.Bool().Draw(rt, "restart") {
				other = restored(t, snapshotOf(t, other))
			}
		}
		if got := snapshotOf(t, other); !bytes.Equal(got, want) {
			rt.Fatalf("got the records\n%s\nwant\n%s", describeRecords(other.records.Entries()),
				describeRecords(one.records.Entries()))
		}
	})
}

// TestARestoreKeepsTheRecords: those of now continue behind it, and those of the backup do not come back.
func TestARestoreKeepsTheRecords(t *testing.T) {
	f := New(Options{})
	entries := auditedEntries(t)
	for i, data := range entries[:3] {
		applyData(f, uint64(i+1), data)
	}
	backup := snapshotOf(t, f)
	for i, data := range entries[3:] {
		applyData(f, uint64(i+4), data)
	}
	before := f.records.Entries()
	_, _, changed := f.AuditRecords(0, 1)
	if done := applySteps(t, f, steps(t, "r", backup)...); !done.Done {
		t.Fatalf("%+v", done)
	}
	select {
	case <-changed:
	default:
		t.Error("readers are not woken")
	}
	after := recordsIn(t, f)
	if len(after) != len(before)+1 || after[len(before)-1].Hash != before[len(before)-1].Hash {
		t.Fatalf("%d records of %d are left", len(after), len(before))
	}
	last := after[len(before)]
	follows := last.Previous == after[len(before)-1].Hash
	if last.Kind != audit.Restore || !follows || !strings.Contains(last.Detail, "index 3") {
		t.Errorf("got %+v", last)
	}
	if again := restored(t, snapshotOf(t, f)); again.records.Head() != f.records.Head() {
		t.Error("a snapshot loses the records")
	}
}

// TestSnapshotsWithBrokenChainsAreRefused: a record that was changed, removed or moved.
func TestSnapshotsWithBrokenChainsAreRefused(t *testing.T) {
	f := New(Options{})
	for i, data := range auditedEntries(t) {
		applyData(f, uint64(i+1), data)
	}
	list := newRecords(t, snapshotOf(t, f))
	first := len(list) - len(f.records.Entries())
	if err := CheckSnapshot(bytes.NewReader(written(t, f, list))); err != nil {
		t.Fatal(err)
	}
	if err := CheckSnapshot(bytes.NewReader(written(t, f, without(list, first+1)))); err == nil {
		t.Error("a record is missing")
	}
	list = newRecords(t, snapshotOf(t, f))
	line := list[first].GetAudit().GetLine()
	line[20] ^= 1
	if err := f.Restore(io.NopCloser(bytes.NewReader(written(t, f, list)))); err == nil {
		t.Error("a record was changed")
	}
}

// BenchmarkApplyLimits measures changes of limits with their records.
func BenchmarkApplyLimits(b *testing.B) {
	var entries [][]byte
	for amount := range quota.Amount(2) {
		entries = append(entries, mustEncode(b, quota.SetLimits{
			Tree: "t", Node: "org", Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(amount)}},
		}))
	}
	f := New(Options{})
	applyData(f, 2, mustEncode(b, benchTree()))
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		applyData(f, uint64(i+3), entries[i%2])
	}
}
