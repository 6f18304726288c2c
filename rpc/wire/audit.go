package wire

import (
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/internal/audit"
)

// MatchesAudit reports whether a record passes the filters of a request.
func MatchesAudit(r *adminv1.ListRecordsRequest, record *audit.Record) bool {
	switch {
	case r.GetUser() != "" && record.Actor.User != r.GetUser(),
		r.GetAction() != "" && record.Action != r.GetAction(),
		r.GetRefused() && record.Outcome != audit.Refused,
		r.GetBeginsAt() != nil && record.WallMs < r.GetBeginsAt().AsTime().UnixMilli(),
		r.GetTree() != "" && !record.IsAt(r.GetTree(), r.GetNode()):
		return false
	}
	return true
}

// FromAuditRecord shows a record.
func FromAuditRecord(r *audit.Record) *adminv1.AuditRecord {
	shown := &adminv1.AuditRecord{
		Chain: string(r.Chain), Number: r.Number, Index: r.Index, RecordedLedgerMs: r.TimeMs,
		RecordedAt: fromMillis(r.WallMs),
		Server:     r.Server, Kind: string(r.Kind), Action: r.Action,
		Actor: &adminv1.AuditActor{
			Kind: r.Actor.Kind, User: r.Actor.User, Credential: r.Actor.Credential, Via: r.Actor.Via,
		},
		Address: r.Address, Outcome: string(r.Outcome), Detail: r.Detail, Reason: r.Reason, Call: r.Call,
		RequestId: r.RequestID, Revision: r.Revision, ChangeCount: r.ChangeCount, Count: r.Count, First: r.From, Last: r.To,
	}
	if r.Hash != (audit.Hash{}) {
		shown.Previous, shown.Hash = r.Previous.String(), r.Hash.String()
	}
	for _, c := range r.Changes {
		shown.Changes = append(shown.Changes, &adminv1.AuditChange{
			Tree: c.Tree, Node: c.Node, Field: c.Field, Before: c.Before, After: c.After,
		})
	}
	return shown
}
