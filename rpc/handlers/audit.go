package handlers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
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

	// Recent returns the newest records of this server, oldest first, and the sequence number of the last of them.
	Recent func() (records []audit.Record, newest uint64)
}

// ListRecords pages through audit records.
func (s AuditService) ListRecords(
	ctx context.Context, r *adminv1.ListRecordsRequest,
) (*adminv1.ListRecordsResponse, error) {
	if err := wire.CheckNode(r); err != nil {
		return nil, wire.ToError(err)
	}
	read, err := s.readState(ctx, r.GetRead(), func(v ledger.Reader) error {
		return s.Access.RequireClusterIn(ctx, v.Book(), access.AuditRead)
	})
	if err != nil {
		return nil, err
	}
	answer := &adminv1.ListRecordsResponse{}
	if r.GetSource() == adminv1.AuditSource_AUDIT_SOURCE_SERVER {
		err = s.listOwnRecords(r, answer)
	} else {
		err = s.listSharedRecords(r, answer)
	}
	if err != nil {
		return nil, err
	}
	if r.GetPageToken() == "" && len(answer.GetRecords()) == 0 && answer.GetNextPageToken() == "" {
		_, err = s.readState(ctx, r.GetRead(), func(v ledger.Reader) error {
			return refusalOrNil(v.RequirePlace(r.GetTree(), r.GetNode()))
		})
		if err != nil {
			return nil, err
		}
	}
	answer.Read = read
	return answer, nil
}

// listOwnRecords lists what this server recorded of its calls. A page token is of this server alone.
func (s AuditService) listOwnRecords(r *adminv1.ListRecordsRequest, answer *adminv1.ListRecordsResponse) error {
	page, err := wire.OpenPage(r, wire.DefaultAuditPage, s.ID)
	if err != nil {
		return wire.ToError(err)
	}
	records, newest := s.Recent()
	oldest := newest + 1 - uint64(len(records))
	var numbers []uint64
	for i := range records {
		if wire.MatchesAudit(r, &records[i]) {
			numbers = append(numbers, oldest+uint64(i))
		}
	}
	key := wire.NumberKey
	if r.GetNewestFirst() {
		slices.Reverse(numbers)
		key = func(number uint64) string { return wire.NumberKey(^number) }
	}
	numbers, answer.NextPageToken = wire.CutPage(page, slices.Values(numbers), key)
	for _, number := range numbers {
		answer.Records = append(answer.Records, wire.FromAuditRecord(&records[number-oldest]))
	}
	return nil
}

// listSharedRecords lists what the ledger has.
func (s AuditService) listSharedRecords(r *adminv1.ListRecordsRequest, answer *adminv1.ListRecordsResponse) error {
	page, position, err := openNumbered(r, wire.DefaultAuditPage)
	if err != nil {
		return err
	}
	entries, last := s.recordsToScan(r, position)
	scanned := uint64(0)
	for _, e := range entries {
		if len(answer.GetRecords()) == page.Max {
			break
		}
		record, err := audit.Decode(e.Line)
		if err != nil {
			return wire.ToError(fmt.Errorf("the audit record %d of the ledger is broken: %w", e.Number, err))
		}
		scanned = e.Number
		if wire.MatchesAudit(r, &record) {
			answer.Records = append(answer.Records, wire.FromAuditRecord(&record))
		}
	}
	if scanned != last {
		answer.NextPageToken = page.TokenAfterNumber(scanned)
	}
	return nil
}

// recordsToScan are the records of the page after a position, 0 for the first one, in the requested order, and the
// number of the last record of the whole list; 0 if there may be others after the page.
func (s AuditService) recordsToScan(
	r *adminv1.ListRecordsRequest, position uint64,
) (list []audit.Entry, last uint64) {
	oldest := r.GetAfterRecord()
	entries, head, _ := s.Node.AuditRecords(max(oldest, position), maxAuditScan)
	if !r.GetNewestFirst() {
		return entries, head.Number
	}
	newest := head.Number
	if position > 0 {
		newest = min(newest, position-1)
	}
	if newest <= oldest {
		return nil, 0
	}
	after := max(oldest, newest-min(newest, maxAuditScan))
	entries, _, _ = s.Node.AuditRecords(after, int(newest-after))
	entries = slices.Clone(entries) // they are shared with the ledger
	slices.Reverse(entries)
	if n := len(entries); n > 0 && (after == oldest || entries[n-1].Number > after+1) {
		last = entries[n-1].Number // what is older is forgotten, or not asked for
	}
	return entries, last
}
