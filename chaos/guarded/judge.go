package guarded

import (
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/history"
)

// Promises that Judge checks, beside P1 to P12.
const (
	Access = "access"
	Audit  = "audit"
)

// Actions of commands.
const (
	actionAllocate = "Allocate"
	actionRelease  = "Release"
	actionRevoke   = "RevokeToken"
)

// Judge returns the verdicts of Access and Audit. The history is that of other callers, whose changes of the
// configuration have records too. Nothing is reported that a correct cluster may do.
func Judge(e Evidence, h history.History) check.Verdicts {
	access := &check.Verdict{
		Promise: Access, Title: "nothing is applied behind the revocation of its token or rights", Counts: map[string]int{},
	}
	recorded := &check.Verdict{
		Promise: Audit, Title: "every change has its record on every member", Counts: map[string]int{},
	}
	chain := joinRecords(&e, recorded)
	if chain.gap != "" {
		access.Undecided, recorded.Undecided = chain.gap, chain.gap
		return check.Verdicts{access, recorded}
	}
	j := &judge{&e, chain.records, historyOf(chain.records)}
	j.checkChanges(recorded)
	j.checkRevisions(recorded, h)
	j.checkActors(access)
	j.checkAnswers(access)
	j.checkHeld(access)
	return check.Verdicts{access, recorded}
}

// Examined are kinds of cases of both verdicts that a run should have examined: without any of one kind it proves
// little.
func Examined() []string {
	return []string{"grants", "releases", "revocations", "refusals", "binding changes", "account changes", "changes"}
}

// judge compares what callers were told with the complete records.
type judge struct {
	*Evidence

	records []Record
	access  *accessHistory
}

// checkChanges: each change that a caller was told to be applied has its record.
func (j *judge) checkChanges(v *check.Verdict) {
	fields, requests := map[Change]bool{}, map[Change]bool{}
	for _, r := range j.records {
		requests[Change{r.Action, r.RequestID}] = true
		for _, c := range r.Changes {
			fields[Change{r.Action, c.Field}] = true
		}
	}
	for _, change := range j.Changes {
		v.Count("changes", 1)
		if !fields[change] && !requests[change] {
			v.AddViolation("no audit record tells of %s %s, which was applied", change.Action, change.Object)
		}
	}
}

// checkRevisions: each revision of the configuration has one record, also if no caller was told of it.
func (j *judge) checkRevisions(v *check.Verdict, h history.History) {
	recorded := map[uint64]int{}
	for _, r := range j.records {
		if r.Revision > 0 {
			recorded[r.Revision]++
		}
	}
	for _, m := range j.Members {
		for _, revision := range m.Revisions {
			v.Count("revisions", 1)
			if n := recorded[revision]; n != 1 {
				v.AddViolation("%s: revision %d has %d audit records", m.Server, revision, n)
			}
		}
	}
	for _, o := range h.Ops {
		if o.Kind != history.Configure || o.Outcome != history.OK || o.Revision == 0 {
			continue
		}
		v.Count("configurations", 1)
		if n := recorded[o.Revision]; n != 1 {
			v.AddViolation("revision %d, which %s was told, has %d audit records", o.Revision, o.ID, n)
		}
	}
}

// checkActors: no change was made with a token that was revoked, or by an account that was disabled.
func (j *judge) checkActors(v *check.Verdict) {
	v.Count("revocations", len(j.access.revoked))
	v.Count("refusals", j.Refusals)
	for _, name := range slices.Sorted(maps.Keys(j.access.enabled)) {
		v.Count("account changes", max(0, len(j.access.enabled[name])-1))
		v.Count("binding changes", max(0, len(j.access.bound[name])-1))
	}
	for _, r := range j.records {
		at := int64(r.Index)
		if end, revoked := j.access.revoked[r.Credential]; revoked && at > end.index {
			v.AddViolation("token %s was revoked at index %d, and %s was applied with it at index %d", r.Credential,
				end.index, r.Action, r.Index)
		}
		name, isAccount := strings.CutPrefix(r.User, "account/")
		if enabled, known := j.access.enabled[name]; isAccount && known &&
			!enabled.allowedAt(moment.indexAt, at) {
			v.AddViolation("%s of the disabled account %s was applied at index %d", r.Action, name, r.Index)
		}
	}
}

// checkAnswers: nothing that an account was told was applied with a revoked token, for a disabled account, or without
// the binding, at the index of the answer.
func (j *judge) checkAnswers(v *check.Verdict) {
	kinds := map[string]string{actionAllocate: "grants", actionRelease: "releases"}
	for _, a := range j.Answers {
		v.Count(kinds[a.Action], 1)
		j.checkCommand(v, a, moment.indexAt, int64(a.Index))
	}
}

// checkHeld is checkAnswers for what was granted without an answer: it is in the state, with its time.
func (j *judge) checkHeld(v *check.Verdict) {
	for _, a := range j.Held {
		token, _, _ := strings.Cut(a.ID, ".")
		v.Count("held", 1)
		j.checkCommand(v, Answer{Account: j.Accounts[token], Token: token, Action: actionAllocate}, moment.timeAt, a.Granted)
	}
}

// checkCommand checks a command at a point of the log. A release needs no binding: the owner may always release.
func (j *judge) checkCommand(v *check.Verdict, a Answer, indexOf func(moment) int64, at int64) {
	if end, revoked := j.access.revoked[a.Token]; revoked && at > indexOf(end) {
		v.AddViolation("token %s was revoked at %+v, and %s was applied with it at %d", a.Token, end, a.Action, at)
	}
	if !j.access.enabled[a.Account].allowedAt(indexOf, at) {
		v.AddViolation("%s of the disabled account %s was applied at %d: %v", a.Action, a.Account, at,
			j.access.enabled[a.Account])
	}
	if a.Action == actionAllocate && !j.access.bound[a.Account].allowedAt(indexOf, at) {
		v.AddViolation("%s of %s was applied at %d without the binding: %v", a.Action, a.Account, at,
			j.access.bound[a.Account])
	}
}
