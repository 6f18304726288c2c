package guarded

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/audit"
)

const (
	// pageSize is the largest page of every list.
	pageSize = 1000
	// collectInterval is the pause between two attempts to read all members at one index.
	collectInterval = 200 * time.Millisecond
	// collectTimeout bounds one attempt.
	collectTimeout = 30 * time.Second
)

// Collect reads the audit records, the revisions and the allocations of every member, once all of them show the same
// log index. If ctx ends before, Evidence.Missing says why they did not, and Judge decides nothing. No client may write
// meanwhile.
func (w *Workload) Collect(ctx context.Context) Evidence {
	w.mu.Lock()
	e := w.evidence
	w.mu.Unlock()
	for {
		err := w.collectOnce(ctx, &e)
		if err == nil {
			return e
		}
		if ctx.Err() != nil {
			e.Missing = err.Error()
			return e
		}
		pauseFor(ctx, collectInterval)
	}
}

// collectOnce reads the first member linearizably, and the others once they have reached its index.
func (w *Workload) collectOnce(ctx context.Context, e *Evidence) (err error) {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	e.Members, e.Held = nil, nil
	read := &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_LINEARIZABLE}
	for _, url := range w.config.Servers {
		m, index, err := w.readMember(ctx, url, read)
		if err != nil {
			return fmt.Errorf("%s shows no audit records: %w", url, err)
		}
		if least := read.GetMinIndex(); least > 0 && index != least {
			return fmt.Errorf("%s is at index %d and %s at %d", w.config.Servers[0], least, url, index)
		}
		read = &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE, MinIndex: index}
		e.Members = append(e.Members, m)
	}
	e.Held, err = w.readHeld(ctx)
	return err
}

// readMember returns what one member shows, and the log index at which it has shown all of it.
func (w *Workload) readMember(ctx context.Context, url string, read *quoratev1.ReadOptions) (Member, uint64, error) {
	m := Member{Server: url}
	revisions, err := adminv1connect.NewConfigurationServiceClient(w.as(w.admin), url).ListRevisions(ctx,
		&adminv1.ListRevisionsRequest{PageSize: pageSize, Read: read})
	if err != nil {
		return m, 0, err
	}
	for _, r := range revisions.GetRevisions() {
		m.Revisions = append(m.Revisions, r.GetRevision())
	}
	records, index, err := w.readRecords(ctx, url, 0, read)
	m.Records = records
	if err == nil && index != revisions.GetRead().GetIndex() {
		err = fmt.Errorf("it went on from index %d to %d meanwhile", revisions.GetRead().GetIndex(), index)
	}
	return m, index, err
}

func (w *Workload) readRecords(ctx context.Context, url string, after uint64, read *quoratev1.ReadOptions,
) (list []Record, index uint64, err error) {
	api := adminv1connect.NewAuditServiceClient(w.as(w.admin), url)
	request := &adminv1.ListRecordsRequest{AfterRecord: after, PageSize: pageSize, Read: read}
	for page, err := range client.Pages(ctx, api.ListRecords, request) {
		if err != nil {
			return nil, 0, err
		}
		for _, r := range page.GetRecords() {
			list = append(list, toRecord(r))
		}
		index = page.GetRead().GetIndex()
	}
	return list, index, nil
}

func (w *Workload) readHeld(ctx context.Context) (list []Allocation, err error) {
	api := w.allocationAPI(w.admin, w.config.Servers[0])
	for page := ""; ; {
		answer, err := api.ListAllocations(ctx, &quoratev1.ListAllocationsRequest{
			Tree: guardedTree, PageSize: pageSize, PageToken: page,
		})
		if err != nil {
			return nil, err
		}
		for _, a := range answer.GetAllocations() {
			list = append(list, Allocation{a.GetId(), a.GetGrantedLedgerMs()})
		}
		if page = answer.GetNextPageToken(); page == "" {
			return list, nil
		}
	}
}

// followRecords reads new audit records from any member until ctx ends. In a long run the members forget the first ones
// before the end.
func (c *caller) followRecords(ctx context.Context) {
	last := uint64(0)
	stale := &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE}
	for ; ctx.Err() == nil; c.pauseAbout(ctx, 10*c.config.Pause) {
		attempt, cancel := c.within(ctx)
		list, _, err := c.readRecords(attempt, c.randomURL(), last, stale)
		cancel()
		if err != nil || len(list) == 0 {
			continue
		}
		last = list[len(list)-1].Number
		c.mu.Lock()
		c.evidence.Seen = append(c.evidence.Seen, list...)
		c.mu.Unlock()
	}
}

// toRecord computes the hash from the content.
func toRecord(shown *adminv1.AuditRecord) Record {
	full := audit.Record{
		Chain: audit.ChainName(shown.GetChain()), Number: shown.GetNumber(), Index: shown.GetIndex(),
		TimeMs: shown.GetRecordedLedgerMs(), WallMs: shown.GetRecordedAt().AsTime().UnixMilli(), Server: shown.GetServer(),
		Kind: audit.Kind(shown.GetKind()), Action: shown.GetAction(), Actor: audit.Actor{
			Kind: shown.GetActor().GetKind(), User: shown.GetActor().GetUser(),
			Credential: shown.GetActor().GetCredential(), Via: shown.GetActor().GetVia(),
		},
		Address: shown.GetAddress(), Outcome: audit.Outcome(shown.GetOutcome()), Detail: shown.GetDetail(),
		Reason: shown.GetReason(), Call: shown.GetCall(), RequestID: shown.GetRequestId(),
		Revision: shown.GetRevision(), ChangeCount: shown.GetChangeCount(), Count: shown.GetCount(),
		From: shown.GetFirst(), To: shown.GetLast(),
	}
	r := Record{
		Number: full.Number, Index: full.Index, Time: full.TimeMs, Action: full.Action, User: full.Actor.User,
		Credential: full.Actor.Credential, RequestID: full.RequestID, Revision: full.Revision,
		Previous: shown.GetPrevious(), Hash: shown.GetHash(),
	}
	for _, c := range shown.GetChanges() {
		tree, node := c.GetTree(), c.GetNode()
		full.Changes = append(full.Changes, audit.Change{
			Tree: tree, Node: node, Field: c.GetField(), Before: c.GetBefore(), After: c.GetAfter(),
		})
		r.Changes = append(r.Changes, FieldChange{tree, node, c.GetField(), c.GetAfter()})
	}
	// A hash that cannot be read is not that of the content either.
	previous, _ := audit.ParseHash(shown.GetPrevious())
	full, _ = audit.Encode(full, previous)
	r.Computed = full.Hash.String()
	return r
}
