package handlers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/wire"
)

// maxAuditScan bounds the records that one call reads in search of those that match: each is decoded.
const maxAuditScan = 1000

// ReasonAuditBlocked is the reason of the error for a change whose intent could not be written.
const ReasonAuditBlocked = "AUDIT_BLOCKED"

// writeIntents writes the intents of the changes among commands, and those of grants, if that is required. After an
// error nothing was proposed. What ends or keeps an allocation needs no intent, so that a full disk neither keeps
// quota from others nor ends leases that are in use.
func (c Service) writeIntents(ctx context.Context, commands []quota.Command) error {
	if c.Intents == nil {
		return nil
	}
	var list []audit.Record
	for _, command := range commands {
		if intent, isGrant := cluster.AuditGrantIntent(identify.CallerOf(ctx), command); isGrant && c.GrantIntents {
			list = append(list, intent)
		} else if intent, isChange := cluster.AuditIntent(identify.CallerOf(ctx), command); isChange {
			list = append(list, intent)
		}
	}
	return c.requireIntents(ctx, list)
}

// requireIntents returns when intents are on disk, or the error for the caller.
func (c Service) requireIntents(ctx context.Context, list []audit.Record) error {
	if c.Intents == nil || len(list) == 0 {
		return nil
	}
	if err := c.Intents(ctx, list...); err != nil {
		return wire.WithRetryAfter(wire.NewProblem(connect.CodeUnavailable,
			fmt.Sprintf("this needs an audit record first (audit-required), and the audit file cannot be written: %v", err),
			&quoratev1.Problem{Reason: ReasonAuditBlocked, NotApplied: true}), time.Second)
	}
	return nil
}

// noteDataRead notes for the audit record of a call that its answer has user data of an owner, unless the caller is
// that owner. Front ends read data for the holders of their items, and callers without a name see what everyone sees.
func noteDataRead(ctx context.Context, owner string) {
	if caller := identify.CallerOf(ctx); caller != nil && caller.User != "" && caller.User != owner && caller.Via == "" {
		observe.CallOf(ctx).ReadsData = true
	}
}

// AuditService shows who changed what.
type AuditService struct {
	Service

	// Recent returns the newest records of this server.
	Recent func() []audit.Record
}

// ListRecords pages through audit records.
func (s AuditService) ListRecords(
	ctx context.Context, r *quoratev1.ListRecordsRequest,
) (*quoratev1.ListRecordsResponse, error) {
	if err := wire.CheckNode(r); err != nil {
		return nil, wire.ToError(err)
	}
	read, err := s.readState(ctx, r.GetRead(), func(v ledger.Reader) error {
		return s.Access.RequireClusterIn(ctx, v.Book(), access.AuditRead)
	})
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.ListRecordsResponse{Read: read}
	if r.GetSource() == quoratev1.AuditSource_AUDIT_SOURCE_SERVER {
		for _, record := range s.Recent() {
			if wire.MatchesAudit(r, &record) {
				answer.Records = append(answer.Records, wire.FromAuditRecord(&record))
			}
		}
		if r.GetNewestFirst() {
			slices.Reverse(answer.GetRecords())
		}
		return answer, nil
	}
	most := wire.PageSize(r.GetPageSize(), wire.DefaultAuditPage)
	entries, last := s.recordsToScan(r)
	for _, e := range entries {
		if len(answer.GetRecords()) == most {
			break
		}
		record, err := audit.Decode(e.Line)
		if err != nil {
			return nil, wire.ToError(fmt.Errorf("the audit record %d of the ledger is broken: %w", e.Number, err))
		}
		answer.Next = e.Number
		if wire.MatchesAudit(r, &record) {
			answer.Records = append(answer.Records, wire.FromAuditRecord(&record))
		}
	}
	if answer.GetNext() == last {
		answer.Next = 0
	}
	return answer, nil
}

// recordsToScan are the records of one page, in the requested order, and the number of the last record of the whole
// list; 0 if there may be others after the page.
func (s AuditService) recordsToScan(r *quoratev1.ListRecordsRequest) (list []audit.Entry, last uint64) {
	entries, head, _ := s.Node.AuditRecords(r.GetAfter(), maxAuditScan)
	if !r.GetNewestFirst() {
		return entries, head.Number
	}
	before := head.Number + 1
	if r.GetAfter() > 0 {
		before = min(before, r.GetAfter())
	}
	from := before - min(before, maxAuditScan+1)
	entries, _, _ = s.Node.AuditRecords(from, int(before-1-from))
	entries = slices.Clone(entries) // they are shared with the ledger
	slices.Reverse(entries)
	if n := len(entries); n > 0 && (from == 0 || entries[n-1].Number > from+1) {
		last = entries[n-1].Number // what is older is forgotten
	}
	return entries, last
}
