package fsm

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// Audit records are made here and not in the ledger, because they also tell of what happens to the ledger as a whole,
// and outlive its replacement. They follow from the log alone, so they are the same on every member. Changes of the
// membership are not among them: a recovery by force ("quorate cluster recover") rewrites the configuration of raft
// without applying its entries, so members would have different chains after it.

// recordCommand records a command that has changed the configuration or the access book. Commands of holders cost no
// more than the switch.
func (f *FSM) recordCommand(from ledger.Origin, c quota.Command, out ledger.Outcome) {
	r, isChange := changeRecord(c)
	if _, isExpiry := c.(quota.Expire); isExpiry { // of requests for limits that were not decided in time
		r, isChange = configurationRecord("ExpireRequests"), true
	}
	if _, isProgress := c.(quota.AdvanceWebhooks); isProgress { // of webhooks that could not deliver for too long
		r, isChange = configurationRecord("FailWebhook"), true
	}
	if !isChange {
		return
	}
	changes := f.ledger.TakeChanges()
	if len(changes) == 0 {
		return
	}
	r.Index, r.Outcome = from.Index, audit.Applied
	r.addCaller(from.Caller)
	if out.Configuration != nil {
		r.Revision = out.Configuration.Revision
	}
	r.Changes, r.ChangeCount = auditChanges(changes), uint64(len(changes))
	f.appendRecord(r.Record)
}

type changeDraft struct{ audit.Record }

func (r *changeDraft) addCaller(caller *access.Caller) {
	r.Actor = ActorOf(caller)
	if caller != nil {
		r.Call = caller.Request
	}
}

// AuditIntent is the record of a change before it is proposed; false if the command changes neither the configuration
// nor access.
func AuditIntent(caller *access.Caller, c quota.Command) (audit.Record, bool) {
	r, isChange := changeRecord(c)
	if !isChange {
		return audit.Record{}, false
	}
	r.addCaller(caller)
	r.Kind, r.Outcome = audit.Intent, audit.Asked
	return r.Record, true
}

// isRecorded reports whether a command that changes something leaves an audit record.
func isRecorded(c quota.Command) bool { return quota.FactsOf(c).Record != quota.NoRecord }

// AuditGrantIntent is the record of a request for quota, or of a change of what an allocation holds, before it is
// proposed; false for other commands. It has the amounts of each node, and none of the user data. A request that waits
// is granted later without another one.
func AuditGrantIntent(caller *access.Caller, c quota.Command) (audit.Record, bool) {
	facts := quota.FactsOf(c)
	if !facts.HoldsQuota {
		return audit.Record{}, false
	}
	r := changeDraft{audit.Record{Kind: audit.Intent, Action: facts.Name, Outcome: audit.Asked}}
	switch c := c.(type) {
	case quota.Allocate:
		r.Detail = "allocation " + c.ID
		for _, claims := range c.Lists() {
			for _, claim := range claims {
				r.addHolding(c.ID, claim.Tree, claim.Node, claimText(claim.Amounts, claim.Picks))
			}
		}
	case quota.Resize:
		r.Detail = "allocation " + c.ID
		for _, claim := range c.Claims {
			r.addHolding(c.ID, claim.Tree, claim.Node, claimText(claim.Amounts, nil))
		}
	case quota.Transfer:
		r.Detail = "allocation " + c.ID
		for _, move := range c.Moves {
			r.addHolding(c.ID, move.Tree, move.To, "what it holds at "+quota.Place(move.Tree, move.From))
		}
	case quota.Split:
		r.Detail = "allocation " + c.ID
		for _, part := range c.Parts {
			for _, claim := range part.Claims {
				r.addHolding(part.ID, claim.Tree, claim.To, claimText(claim.Amounts, nil))
			}
		}
	default:
	}
	r.addCaller(caller)
	return r.Record, true
}

func (r *changeDraft) addHolding(id, tree, node, text string) {
	if r.ChangeCount++; len(r.Changes) < audit.MaxChanges {
		r.Changes = append(r.Changes, audit.Change{Tree: tree, Node: node, Field: "allocation " + id, After: text})
	}
}

// holdActions are the words for what happens to an allocation. The end has that of the state behind it.
var holdActions = map[ledger.FactKind]string{
	ledger.FactWaiting: "waiting", ledger.FactGranted: "granted", ledger.FactConfirmed: "confirmed",
	ledger.FactRevoked: "revoked", ledger.FactRestored: "restored", ledger.FactShrunk: "shrunk",
	ledger.FactResized: "resized", ledger.FactResizeWaits: "resize-waiting", ledger.FactResizeDropped: "resize-dropped",
}

// endActions are the words for the ends.
var endActions = map[quota.State]string{
	quota.Released: "released", quota.Expired: "expired", quota.WasPreempted: "preempted", quota.Cancelled: "cancelled",
	quota.TimedOut: "timed-out", quota.Abandoned: "abandoned",
}

// AuditHold is the record of what has happened to an allocation; the event must be about one. It has the amounts of
// each node, and none of the user data. The system is the actor where time has caused it, and the caller who has taken
// the place of a lease where a preemption has.
func AuditHold(e WatchEvent) audit.Record {
	a := e.Allocation.Info()
	r := changeDraft{audit.Record{
		Kind: audit.Hold, Index: e.Index, TimeMs: int64(e.At), Action: holdActions[e.Kind], Outcome: audit.Applied,
		Detail: "allocation " + a.ID,
	}}
	switch e.Kind {
	case ledger.FactEnded:
		r.Action, r.WallMs = endActions[a.State], a.EndedWall
	case ledger.FactGranted:
		r.WallMs = a.GrantedWall
	case ledger.FactWaiting, ledger.FactConfirmed, ledger.FactRevoked, ledger.FactRestored, ledger.FactShrunk,
		ledger.FactResized, ledger.FactResizeWaits, ledger.FactResizeDropped, ledger.FactCrossed, ledger.FactCleared,
		ledger.FactConfigured, ledger.FactNode:
	}
	if e.Kind == ledger.FactResizeWaits {
		a.Claims = a.Resize.Claims // what it waits for
	}
	r.ChangeCount = uint64(len(a.Claims))
	if a.Owner != "" {
		r.Detail += " of " + a.Owner
	}
	r.addCaller(e.By)
	for _, claim := range a.Claims[:min(len(a.Claims), audit.MaxChanges)] {
		change := audit.Change{Tree: claim.Tree, Node: claim.Node, Field: "allocation " + a.ID}
		if text := claimText(claim.Amounts, claim.Picks); e.Kind == ledger.FactEnded {
			change.Before = text
		} else {
			change.After = text
		}
		r.Changes = append(r.Changes, change)
	}
	return r.Record
}

func claimText(amounts quota.Vector, picks []quota.Pick) string {
	parts := make([]string, 0, len(amounts)+len(picks))
	for _, a := range amounts {
		parts = append(parts, fmt.Sprintf("%s=%d", a.Resource, a.Amount))
	}
	for _, p := range picks {
		parts = append(parts, fmt.Sprintf("%s=%d items", p.Resource, p.Count))
	}
	return strings.Join(parts, " ")
}

// changeRecord is false if the command changes neither the configuration nor access.
func changeRecord(c quota.Command) (changeDraft, bool) {
	facts := quota.FactsOf(c)
	if facts.Record == quota.NoRecord {
		return changeDraft{}, false
	}
	r := configurationRecord(facts.Name)
	if facts.Record == quota.AccessRecord {
		r.Kind = audit.Access
	}
	switch c := c.(type) {
	case quota.ApplyTrees:
		r.addMeta(c.Meta, "")
	case quota.SetLimits:
		r.addMeta(c.Meta, quota.Place(c.Tree, c.Node))
	case quota.MoveNode:
		r.addMeta(c.Meta, quota.Place(c.Tree, c.From)+" to "+c.To)
	case quota.CordonNode:
		r.addMeta(c.Meta, quota.Place(c.Tree, c.Node))
	case quota.UncordonNode:
		r.addMeta(c.Meta, quota.Place(c.Tree, c.Node))
	case quota.RollBack:
		r.addMeta(c.Meta, fmt.Sprintf("to revision %d", c.Revision))
	case quota.DeleteTree:
		r.addMeta(c.Meta, c.Tree)
	case quota.ScheduleLimits:
		r.addMeta(quota.ChangeMeta{Actor: c.Actor, Reason: c.Reason}, quota.Place(c.Tree, c.Node)+": "+c.ID)
	case quota.CancelScheduledLimit:
		r.addMeta(quota.ChangeMeta{Actor: c.Actor, Reason: c.Reason}, c.ID)
	case quota.ChangeAccess:
		r.Action, r.Reason = accessAction(c.Change), c.Reason
	case quota.RequestLimits:
		base := func(string) quota.Unit { return quota.Count } // the units are those of the tree, if there is one
		r.Reason, r.Detail = c.Reason, quota.Place(c.Tree, c.Node)+": "+quota.FormatLimits(c.Limits, base)
	case quota.ApproveRequest:
		r.Detail = fmt.Sprintf("request %d", c.Number)
	case quota.RejectRequest:
		r.Reason, r.Detail = c.Reason, fmt.Sprintf("request %d", c.Number)
	case quota.WithdrawRequest:
		r.Detail = fmt.Sprintf("request %d", c.Number)
	case quota.SetWebhook:
		r.Reason, r.Detail = c.Reason, "webhook "+c.Name
	case quota.ManageWebhook:
		r.Action, r.Reason, r.Detail = webhookActions[c.Action], c.Reason, "webhook "+c.Name
	case quota.Allocate, quota.Release, quota.Resize, quota.Transfer, quota.Split, quota.Renew, quota.Confirm,
		quota.Cancel, quota.Expire, quota.SetCivilOffset, quota.ExtendSchedule, quota.UpdateItems, quota.ResetItems,
		quota.AdvanceWebhooks: // NoRecord
	}
	return r, true
}

// webhookActions are the words for what a ManageWebhook does.
var webhookActions = map[quota.WebhookAction]string{
	quota.RemoveWebhook: "RemoveWebhook", quota.ResumeWebhook: "ResumeWebhook",
}

// addMeta keeps the actor of the request, who is the caller's word, apart from who the caller is.
func (r *changeDraft) addMeta(meta quota.ChangeMeta, detail string) {
	if meta.Actor != "" {
		detail = strings.TrimSpace("actor " + meta.Actor + " " + detail)
	}
	r.Reason, r.RequestID, r.Detail = meta.Reason, meta.RequestID, detail
}

func configurationRecord(action string) changeDraft {
	return changeDraft{audit.Record{Kind: audit.Configuration, Action: action}}
}

func accessAction(c access.Command) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", c), "access.")
}

// ActorOf is a caller in audit records.
func ActorOf(caller *access.Caller) audit.Actor {
	if caller == nil {
		return audit.Actor{}
	}
	actor := audit.Actor{Kind: caller.Kind.String(), User: caller.User, Via: caller.Via}
	if token, isToken := caller.Token(); isToken {
		actor.Credential = token.String()
	} else if caller.Credential != ([16]byte{}) {
		actor.Credential = hex.EncodeToString(caller.Credential[:])
	}
	return actor
}

func auditChanges(changes []quota.Change) []audit.Change {
	kept := make([]audit.Change, min(len(changes), audit.MaxChanges))
	for i := range kept {
		c := &changes[i]
		kept[i] = audit.Change{Tree: c.Tree, Node: c.Node, Field: c.Field, Before: c.Before, After: c.After}
	}
	return kept
}

// recordRestore records that a backup took the place of the state. The log does not say who asked for it; the server
// that was asked has a record of the call.
func (f *FSM) recordRestore(index, backup uint64) {
	f.appendRecord(audit.Record{
		Kind: audit.Restore, Action: "Restore", Index: index, Outcome: audit.Applied,
		Detail: fmt.Sprintf("a backup of log index %d", backup),
	})
}

func (f *FSM) appendRecord(r audit.Record) {
	now := f.ledger.Header().Now
	r.TimeMs, r.WallMs = int64(now.At), now.Wall
	f.records.Append(r)
}

// notifyRecords expects that the lock is held.
func (f *FSM) notifyRecords(before audit.Head) {
	if f.records.Head() != before {
		close(f.recordsChanged)
		f.recordsChanged = make(chan struct{})
	}
}

// AuditRecords returns at most limit audit records of the ledger with numbers above a number, oldest first, the newest
// record, and a channel that is closed when there are others. Records beyond the bounds of [audit.Ring] are forgotten.
func (f *FSM) AuditRecords(after uint64, limit int) ([]audit.Entry, audit.Head, <-chan struct{}) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.records.After(after, limit), f.records.Head(), f.recordsChanged
}
