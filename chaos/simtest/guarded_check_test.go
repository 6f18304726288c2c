package simtest

import (
	"context"
	"slices"
	"strings"

	"github.com/quorate/quorate/audit"
	"github.com/quorate/quorate/cluster"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
)

// examinedAccess counts what a run has examined.
type examinedAccess struct{ grants, revocations, refusals, changes, bindings int }

// isVacuous is true if something was never examined.
func (e examinedAccess) isVacuous() bool {
	return e.grants == 0 || e.revocations == 0 || e.refusals == 0 || e.changes == 0 || e.bindings == 0
}

// moment is a point of the log. Times are those of the ledger, in milliseconds.
type moment struct{ index, time int64 }

func (m moment) indexAt() int64 { return m.index }
func (m moment) timeAt() int64  { return m.time }

// rightChange is a change of what an account may do.
type rightChange struct {
	moment

	may bool
}

// rightsHistory tells when an account could do something, in the order of the log.
type rightsHistory []rightChange

// allowedAt reports whether the account could do it at a point of the log. If it changed at that very point, both
// count: an entry has many commands.
func (h rightsHistory) allowedAt(of func(moment) int64, at int64) bool {
	may := false
	for _, c := range h {
		switch key := of(c.moment); {
		case key < at:
			may = c.may
		case key == at:
			may = may || c.may
		}
	}
	return may
}

// accessHistory is what the audit records tell.
type accessHistory struct {
	records []audit.Record
	revoked map[string]moment
	bound   [accountCount]rightsHistory
	enabled [accountCount]rightsHistory
}

// checkAccess compares the state with the audit records, after the cluster was healed.
func (g *guardedRun) checkAccess() examinedAccess {
	g.t.Helper()
	g.AwaitConverged()
	h := readHistory(g.equalRecords())
	g.checkRecorded(h)
	g.checkRevisions(h)
	g.checkActors(h)
	g.checkGrants(h)
	bindings := 0
	for i := range accountCount {
		bindings += len(h.bound[i]) - 1
	}
	return examinedAccess{len(g.grants), len(h.revoked), g.refusals, len(g.changes), bindings}
}

// equalRecords returns the audit records of the ledger, which must be the same chain on all nodes.
func (g *guardedRun) equalRecords() []audit.Record {
	g.t.Helper()
	var first []audit.Record
	for i, n := range g.Nodes() {
		records := g.recordsOf(n)
		if i == 0 {
			first = records
			continue
		}
		if len(records) != len(first) {
			g.t.Fatalf("%s has %d audit records, and another node %d", n.Status().ID, len(records), len(first))
		}
		for j, r := range records {
			if r.Hash != first[j].Hash {
				g.t.Fatalf("%s has another audit record %d: %+v, not %+v", n.Status().ID, j+1, r, first[j])
			}
		}
	}
	return first
}

// recordsOf returns the records of one node, whose chain must have no gap and no other hash.
func (g *guardedRun) recordsOf(n *cluster.Node) []audit.Record {
	g.t.Helper()
	var chain audit.Verifier
	var list []audit.Record
	entries, _, _ := n.AuditRecords(0, audit.MaxRecords)
	for _, e := range entries {
		r, err := chain.Add(e.Line)
		if err != nil {
			g.t.Fatalf("%s: %v", n.Status().ID, err)
		}
		list = append(list, r)
	}
	if chain.FirstLedger != 1 {
		g.t.Fatalf("the first audit record of %s has number %d", n.Status().ID, chain.FirstLedger)
	}
	return list
}

// readHistory reads from the records when which right held.
func readHistory(records []audit.Record) *accessHistory {
	h := &accessHistory{records: records, revoked: map[string]moment{}}
	for _, r := range records {
		at := moment{int64(r.Index), r.TimeMs}
		for _, c := range r.Changes {
			h.addChange(at, r.Action, c)
		}
	}
	return h
}

func (h *accessHistory) addChange(at moment, action string, c audit.Change) {
	if id, isToken := strings.CutPrefix(c.Field, "access token "); isToken && action == "RevokeToken" {
		h.revoked[id] = at
	}
	for i := range accountCount {
		switch {
		case c.Field == "access account "+accountName(i):
			h.enabled[i] = append(h.enabled[i], rightChange{at, strings.HasPrefix(c.After, "enabled")})
		case c.Tree == guardedTree && c.Node == accountName(i) && c.Field == "binding holder":
			h.bound[i] = append(h.bound[i], rightChange{at, c.After != ""})
		}
	}
}

// checkRecorded: each change that a caller was told to be applied has its record.
func (g *guardedRun) checkRecorded(h *accessHistory) {
	g.t.Helper()
	for _, change := range g.changes {
		if !slices.ContainsFunc(h.records, func(r audit.Record) bool {
			return r.Action == change.action && (r.RequestID == change.object ||
				slices.ContainsFunc(r.Changes, func(c audit.Change) bool { return c.Field == change.object }))
		}) {
			g.t.Errorf("no audit record tells of %s %s, which was applied", change.action, change.object)
		}
	}
}

// checkRevisions: each revision of the configuration has one record, whoever was told of it.
func (g *guardedRun) checkRevisions(h *accessHistory) {
	g.t.Helper()
	recorded := map[uint64]int{}
	for _, r := range h.records {
		if r.Revision > 0 {
			recorded[r.Revision]++
		}
	}
	for _, url := range g.nodeURLs(apiPort) {
		ctx, cancel := within(context.Background())
		answer, err := quoratev1connect.NewTreeServiceClient(g.as(g.admin), url).ListRevisions(ctx,
			&quoratev1.ListRevisionsRequest{
				PageSize: 1000,
				Read:     &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE},
			})
		cancel()
		if err != nil {
			g.t.Error(err)
		}
		for _, r := range answer.GetRevisions() {
			if recorded[r.GetRevision()] != 1 {
				g.t.Errorf("%s: revision %d has %d audit records", url, r.GetRevision(), recorded[r.GetRevision()])
			}
		}
	}
}

// checkActors: no change was made with a token that was revoked, or by an account that was disabled.
func (g *guardedRun) checkActors(h *accessHistory) {
	g.t.Helper()
	for _, r := range h.records {
		if at, revoked := h.revoked[r.Actor.Credential]; revoked && int64(r.Index) > at.index {
			g.t.Errorf("token %s was revoked at index %d, and %s was applied with it at index %d", r.Actor.Credential,
				at.index, r.Action, r.Index)
		}
		for i := range accountCount {
			if r.Actor.User == "account/"+accountName(i) &&
				!h.enabled[i].allowedAt(moment.indexAt, int64(r.Index)) {
				g.t.Errorf("%s of the disabled account %s was applied at index %d", r.Action, accountName(i), r.Index)
			}
		}
	}
}

// checkGrants: nothing was granted with a revoked token, to a disabled account, or without the binding. Answers tell
// the index of a grant; what was granted without an answer is in the state, with its time.
func (g *guardedRun) checkGrants(h *accessHistory) {
	g.t.Helper()
	for _, a := range g.grants {
		g.checkGrant(h, a.account, a.token, moment.indexAt, int64(a.index))
	}
	api := quoratev1connect.NewAllocationServiceClient(g.as(g.admin), g.nodeURLs(apiPort)[0])
	for page := ""; ; {
		ctx, cancel := within(context.Background())
		answer, err := api.ListAllocations(ctx, &quoratev1.ListAllocationsRequest{
			Tree: guardedTree, PageSize: 1000, PageToken: page,
		})
		cancel()
		if err != nil {
			g.t.Fatal(err)
		}
		for _, a := range answer.GetAllocations() {
			token, _, _ := strings.Cut(a.GetId(), ".")
			account := slices.IndexFunc(g.tokens[:], func(list []string) bool {
				return slices.ContainsFunc(list, func(t string) bool { return tokenID(t) == token })
			})
			g.checkGrant(h, account, token, moment.timeAt, a.GetGrantedLedgerMs())
		}
		if page = answer.GetNextPageToken(); page == "" {
			return
		}
	}
}

func (g *guardedRun) checkGrant(h *accessHistory, account int, token string, of func(moment) int64, at int64) {
	g.t.Helper()
	if end, revoked := h.revoked[token]; revoked && at > of(end) {
		g.t.Errorf("token %s was revoked at %+v, and something was granted with it at %d", token, end, at)
	}
	if !h.bound[account].allowedAt(of, at) {
		g.t.Errorf("account %s was granted something at %d without the binding: %v", accountName(account), at,
			h.bound[account])
	}
	if !h.enabled[account].allowedAt(of, at) {
		g.t.Errorf("the disabled account %s was granted something at %d: %v", accountName(account), at,
			h.enabled[account])
	}
}
