package quota

import "cmp"

// WebhookSpec says which events the cluster delivers to which HTTP receiver.
type WebhookSpec struct {
	// Name identifies the webhook; it is like the name of a tree.
	Name string
	// URL is where events are posted: http:// or https://, at most MaxWebhookURL visible ASCII characters. Servers deliver
	// only to hosts that their settings allow.
	URL string
	// Secret is the name of the secret that signs deliveries. Each server has the secret itself in a file.
	Secret string
	// Types are the types of events to deliver, such as "allocation.granted", sorted, at most MaxWebhookTypes; empty for
	// all.
	Types []string
	// Tree and Node select the allocations with a claim at the node or below it; empty for all.
	Tree, Node string
	// RetryFor is how long the delivery of one event is tried before the webhook is dead, MinWebhookRetry to
	// MaxWebhookRetry; 0 means DefaultWebhookRetry.
	RetryFor Span
}

// Webhook is a webhook with how far its deliveries are. A webhook inside a ledger is never changed in place.
type Webhook struct {
	WebhookSpec
	// Owner is the user whose rights decide what is delivered, as ISSUER/NAME; empty for a webhook of the cluster, which
	// delivers all that it selects.
	Owner string
	// Version is another number after each change but deliveries. A report about another version has no effect.
	Version uint64
	// Cursor is the position up to which every event was delivered, or is not selected.
	Cursor EventPosition
	State  WebhookState
	// Delivered counts acknowledged deliveries, Gaps those that told that events were lost before they could be delivered.
	Delivered, Gaps uint64
	// FailingSince is when the first attempt to deliver the next event failed; zero if none has.
	FailingSince Stamp
	// LastError is the reason of the last failed attempt, at most MaxWebhookError bytes; empty once one succeeds.
	LastError string
}

// EventPosition is a place in the events of the cluster: directly after one event of a log entry.
type EventPosition struct {
	Index uint64
	// Number counts the events of an entry from 1; the largest number stands for all of them.
	Number uint32
}

// Compare is negative if p comes before other, positive if it comes after.
func (p EventPosition) Compare(other EventPosition) int {
	return cmp.Or(cmp.Compare(p.Index, other.Index), cmp.Compare(p.Number, other.Number))
}

// WebhookState is the state of a webhook. The numbers are part of the snapshot format.
type WebhookState uint8

// The closed list of states.
const (
	// WebhookActive: events are delivered.
	WebhookActive WebhookState = 1
	// WebhookDead: one event could not be delivered for as long as the webhook allows; nothing is delivered until the
	// webhook is resumed.
	WebhookDead WebhookState = 2
)

// String is the state as a word.
func (s WebhookState) String() string {
	switch s {
	case WebhookActive:
		return "active"
	case WebhookDead:
		return "dead"
	}
	return "unknown"
}

// Bounds of webhooks.
const (
	MaxWebhooks = 32
	// MaxOwnedWebhooks are those of users together, MaxWebhooksOfOwner those of one: the others stay for the cluster.
	MaxOwnedWebhooks   = 16
	MaxWebhooksOfOwner = 4

	MaxWebhookURL   = 1024
	MaxWebhookTypes = 32
	MaxWebhookError = 256

	MinWebhookRetry     Span = 1000
	DefaultWebhookRetry Span = 24 * 60 * 60 * 1000
	MaxWebhookRetry     Span = 7 * 24 * 60 * 60 * 1000
)

// SetWebhook adds a webhook, or changes one. What has not been delivered yet follows the change. It is idempotent.
type SetWebhook struct {
	WebhookSpec
	// After is where a new webhook begins: it gets the events behind this position. The receiving node fills in its
	// present position, so that the effect does not depend on how commands are divided into entries.
	After EventPosition
	// Reason is for records; at most MaxReason bytes.
	Reason string
}

// ManageWebhook removes or resumes a webhook.
type ManageWebhook struct {
	Name   string
	Action WebhookAction
	// After, if not nil, is where a resumed webhook continues: events up to it are not delivered, and events behind it are
	// delivered again.
	After *EventPosition
	// Reason is for records; at most MaxReason bytes.
	Reason string
}

// WebhookAction is what a ManageWebhook does. The numbers are part of the log format.
type WebhookAction uint8

// The closed list of actions.
const (
	// RemoveWebhook removes the webhook; what was not delivered is not delivered any more.
	RemoveWebhook WebhookAction = 1
	// ResumeWebhook makes a dead webhook active again. Without a position it changes nothing at an active one.
	ResumeWebhook WebhookAction = 2
)

// AdvanceWebhooks reports what the leader has delivered. Only the cluster itself proposes it. Reports about webhooks
// that do not exist, that are dead, or that were changed meanwhile have no effect.
type AdvanceWebhooks struct {
	// Reports are 1 to MaxWebhooks.
	Reports []WebhookReport
}

// WebhookReport is the progress of one webhook.
type WebhookReport struct {
	Name    string
	Version uint64
	// Cursor is the new position; one that is not behind the present position is ignored.
	Cursor EventPosition
	// Delivered and Gaps are added to those of the webhook.
	Delivered, Gaps uint64
	// Error is why the last attempt to deliver the event behind Cursor failed; empty if it has not. Longer texts than
	// MaxWebhookError are cut.
	Error string
}
