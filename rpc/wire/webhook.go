package wire

import (
	"math"
	"slices"

	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/quota"
)

var webhookStates = map[quota.WebhookState]quoratev1beta1.WebhookState{
	quota.WebhookActive: quoratev1beta1.WebhookState_WEBHOOK_STATE_ACTIVE,
	quota.WebhookDead:   quoratev1beta1.WebhookState_WEBHOOK_STATE_DEAD,
}

// ToWebhookSpec converts the settings of a webhook. Types are sorted.
func ToWebhookSpec(s *quoratev1beta1.WebhookSpec) quota.WebhookSpec {
	types := slices.Clone(s.GetTypes())
	slices.Sort(types)
	return quota.WebhookSpec{
		Name: s.GetName(), URL: s.GetUrl(), Secret: s.GetSecret(), Types: slices.Compact(types), Tree: s.GetTree(),
		Node: s.GetNode(), RetryFor: quota.Span(s.GetRetryForMs()),
	}
}

// FromWebhook shows a webhook, without what the node knows of the events behind it.
func FromWebhook(w *quota.Webhook) *quoratev1beta1.Webhook {
	shown := &quoratev1beta1.Webhook{
		Spec: &quoratev1beta1.WebhookSpec{
			Name: w.Name, Url: w.URL, Secret: w.Secret, Types: w.Types, Tree: w.Tree, Node: w.Node,
			RetryForMs: int64(w.RetryFor),
		},
		State: webhookStates[w.State], Cursor: &quoratev1beta1.EventPosition{Index: w.Cursor.Index, Number: w.Cursor.Number},
		Delivered: w.Delivered, Gaps: w.Gaps, LastError: w.LastError, Owner: w.Owner,
	}
	if w.Cursor.Number == math.MaxUint32 { // all events of the index
		shown.Cursor.Number = 0
	}
	if w.LastError != "" {
		shown.FailingSinceAt = FromWall(w.FailingSince.Wall)
	}
	return shown
}
