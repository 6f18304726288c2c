package guarded_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/quorate/quorate/chaos/guarded"
	"github.com/quorate/quorate/chaos/history"
)

// record has a ledger time of ten times the index. Its hash is its number.
func record(number, index uint64, action string, changes ...guarded.FieldChange) guarded.Record {
	hash := func(n uint64) string { return fmt.Sprint("hash ", n) }
	return guarded.Record{
		Number: number, Index: index, Time: int64(10 * index), Action: action, Changes: changes,
		Previous: hash(number - 1), Hash: hash(number), Computed: hash(number),
	}
}

func binding(after string) guarded.FieldChange {
	return guarded.FieldChange{Tree: "guarded", Node: "w0", Field: "binding holder", After: after}
}

// story is a cluster of two members. The account w0 has a token until index 30, the binding from 5 to 40, and is
// disabled at 50; at 20 it has set a limit.
func story() *guarded.Evidence {
	limit := record(4, 20, "SetLimits", guarded.FieldChange{Tree: "guarded", Node: "w0/own", Field: "limit slots"})
	limit.User, limit.Credential, limit.RequestID, limit.Revision = "account/w0", "t1", "r1", 2
	bound, unbound := record(2, 5, "ApplyTrees", binding("w0")), record(6, 40, "ApplyTrees", binding(""))
	bound.Revision, unbound.Revision = 1, 3
	records := []guarded.Record{
		record(1, 2, "CreateAccount", guarded.FieldChange{Field: "access account w0", After: "enabled"}),
		bound,
		record(3, 10, "CreateToken", guarded.FieldChange{Field: "access token t1", After: "of w0"}),
		limit,
		record(5, 30, "RevokeToken", guarded.FieldChange{Field: "access token t1", After: "revoked"}),
		unbound,
		record(7, 50, "UpdateAccount", guarded.FieldChange{Field: "access account w0", After: "disabled"}),
	}
	e := &guarded.Evidence{
		Accounts: map[string]string{"t1": "w0", "t2": "w0"},
		Answers:  []guarded.Answer{answer("t1", "Allocate", 30), answer("t2", "Allocate", 40), answer("t2", "Release", 45)},
		Changes:  []guarded.Change{{Action: "SetLimits", Object: "r1"}, {Action: "RevokeToken", Object: "access token t1"}},
		Refusals: 1, Seen: append([]guarded.Record(nil), records[:2]...),
		Held: []guarded.Allocation{{ID: "t1.1", Granted: 300}},
	}
	for _, server := range []string{"n1", "n2"} {
		e.Members = append(e.Members, guarded.Member{
			Server: server, Records: append([]guarded.Record(nil), records...), Revisions: []uint64{1, 2, 3},
		})
	}
	return e
}

func answer(token, action string, index uint64) guarded.Answer {
	return guarded.Answer{Account: "w0", Token: token, Action: action, Index: index}
}

func TestViolationsOfAccessAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		change         func(e *guarded.Evidence)
		promise, words string
	}{
		"a grant behind the revocation of its token": {func(e *guarded.Evidence) {
			e.Answers = append(e.Answers, answer("t1", "Allocate", 31))
		}, guarded.Access, "Allocate was applied with it at 31"},
		"a release behind it": {func(e *guarded.Evidence) {
			e.Answers = append(e.Answers, answer("t1", "Release", 31))
		}, guarded.Access, "Release was applied with it at 31"},
		"a grant behind it without an answer": {func(e *guarded.Evidence) {
			e.Held = append(e.Held, guarded.Allocation{ID: "t1.2", Granted: 301})
		}, guarded.Access, "Allocate was applied with it at 301"},
		"a change behind it": {func(e *guarded.Evidence) {
			for _, m := range e.Members {
				m.Records[5].Credential = "t1"
			}
		}, guarded.Access, "ApplyTrees was applied with it at index 40"},
		"a grant without the binding": {func(e *guarded.Evidence) {
			e.Answers = append(e.Answers, answer("t2", "Allocate", 41))
		}, guarded.Access, "Allocate of w0 was applied at 41 without the binding"},
		"a grant before the binding": {func(e *guarded.Evidence) {
			e.Answers = append(e.Answers, answer("t2", "Allocate", 4))
		}, guarded.Access, "without the binding"},
		"a release of a disabled account": {func(e *guarded.Evidence) {
			e.Answers = append(e.Answers, answer("t2", "Release", 51))
		}, guarded.Access, "Release of the disabled account w0"},
		"a change by a disabled account": {func(e *guarded.Evidence) {
			for i := range e.Members {
				last := record(8, 60, "SetLimits")
				last.User = "account/w0"
				e.Members[i].Records = append(e.Members[i].Records, last)
			}
		}, guarded.Access, "SetLimits of the disabled account w0"},
		"a change without a record": {func(e *guarded.Evidence) {
			e.Changes = append(e.Changes, guarded.Change{Action: "SetLimits", Object: "r2"})
		}, guarded.Audit, "no audit record tells of SetLimits r2"},
		"a revision without a record": {func(e *guarded.Evidence) {
			e.Members[1].Revisions = append(e.Members[1].Revisions, 4)
		}, guarded.Audit, "n2: revision 4 has 0 audit records"},
		"a record that one member lacks at the end": {func(e *guarded.Evidence) {
			e.Members[1].Records = e.Members[1].Records[:6]
		}, guarded.Audit, "n2 has no audit record 7"},
		"a record that one member has skipped": {func(e *guarded.Evidence) {
			m := &e.Members[1]
			m.Records = append(m.Records[:3:3], record(4, 30, "RevokeToken"))
			m.Records[3].Hash, m.Records[3].Computed = "other", "other"
		}, guarded.Audit, "n2 has another audit record 4"},
		"a record that was seen earlier and is another one now": {func(e *guarded.Evidence) {
			e.Seen[1].Hash, e.Seen[1].Computed = "other", "other"
		}, guarded.Audit, "n1 has another audit record 2"},
		"a record with another content than its hash": {func(e *guarded.Evidence) {
			e.Members[0].Records[2].Computed = "other"
		}, guarded.Audit, "n1: audit record 3 has another hash"},
		"a record that does not follow the one before": {func(e *guarded.Evidence) {
			e.Members[0].Records[2].Previous = "other"
		}, guarded.Audit, "n1: audit record 3 does not follow record 2"},
	} {
		t.Run(name, func(t *testing.T) {
			e := story()
			c.change(e)
			v := guarded.Judge(*e, history.History{}).Of(c.promise)
			if v.Status() != "broken" || !strings.Contains(strings.Join(v.Messages, "\n"), c.words) {
				t.Errorf("%s is %s, want it broken by %q: %q %s", c.promise, v.Status(), c.words, v.Messages, v.Undecided)
			}
		})
	}
}

// TestAcknowledgedConfigurations: changes of other callers have records too.
func TestAcknowledgedConfigurations(t *testing.T) {
	op := history.Op{Kind: history.Configure, Outcome: history.OK, ID: "limits-1", Revision: 3}
	kept := guarded.Judge(*story(), history.History{Ops: []history.Op{op}})
	if err := kept.Err(); err != nil || kept.Of(guarded.Audit).Counts["configurations"] != 1 {
		t.Errorf("%v\n%s", err, kept)
	}
	op.Revision = 4
	if err := guarded.Judge(*story(), history.History{Ops: []history.Op{op}}).Err(); err == nil ||
		!strings.Contains(err.Error(), "revision 4, which limits-1 was told") {
		t.Errorf("a lost record: %v", err)
	}
}

// TestWhatACorrectClusterMayDo: an entry has many commands, so that a grant at the index of a revocation may have been
// before it; members forget old records; and without all records nothing is decided.
func TestWhatACorrectClusterMayDo(t *testing.T) {
	forgetful := story()
	for i := range forgetful.Members {
		forgetful.Members[i].Records = forgetful.Members[i].Records[2:]
	}
	for name, e := range map[string]*guarded.Evidence{"all is well": story(), "old records are forgotten": forgetful} {
		verdicts := guarded.Judge(*e, history.History{})
		if err := verdicts.Err(); err != nil || len(verdicts.Untried()) > 0 {
			t.Errorf("%s: %v\n%s", name, err, verdicts)
		}
	}
	gap := story()
	gap.Seen = nil
	for i := range gap.Members {
		gap.Members[i].Records = gap.Members[i].Records[2:]
	}
	unread := story()
	unread.Missing = "n2 does not answer"
	for words, e := range map[string]*guarded.Evidence{
		"records 1 to 2 were forgotten": gap, "n2 does not answer": unread,
	} {
		for _, v := range guarded.Judge(*e, history.History{}) {
			if v.Status() != "undecided" || !strings.Contains(v.Undecided, words) {
				t.Errorf("%s is %s: %s %q", v.Promise, v.Status(), v.Undecided, v.Messages)
			}
		}
	}
}

func TestEvidenceIsReadAgain(t *testing.T) {
	path := guarded.EvidenceBeside(filepath.Join(t.TempDir(), "history.jsonl"))
	if err := guarded.WriteEvidence(path, *story()); err != nil {
		t.Fatal(err)
	}
	if again, err := guarded.ReadEvidence(path); err != nil || !reflect.DeepEqual(again, *story()) {
		t.Errorf("%+v, %v", again, err)
	}
}
