package fsm

import (
	"math"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
)

// Webhooks in commands and in snapshots, both ways.

func encodeWebhookCommand(c quota.Command) *logv1.Command {
	switch c := c.(type) {
	case quota.SetWebhook:
		return &logv1.Command{Command: &logv1.Command_SetWebhook{SetWebhook: &logv1.SetWebhook{
			Webhook: encodeWebhookSpec(c.WebhookSpec), After: encodePosition(c.After), Reason: c.Reason,
		}}}
	case quota.ManageWebhook:
		m := &logv1.ManageWebhook{Name: c.Name, Action: uint32(c.Action), Reason: c.Reason}
		if c.After != nil {
			m.After = &logv1.EventPosition{Index: c.After.Index, Number: c.After.Number}
		}
		return &logv1.Command{Command: &logv1.Command_ManageWebhook{ManageWebhook: m}}
	case quota.AdvanceWebhooks:
		return &logv1.Command{Command: &logv1.Command_AdvanceWebhooks{AdvanceWebhooks: &logv1.AdvanceWebhooks{
			Reports: each(c.Reports, func(r quota.WebhookReport) *logv1.WebhookReport {
				return &logv1.WebhookReport{
					Name: r.Name, Version: r.Version, Cursor: encodePosition(r.Cursor), Delivered: r.Delivered, Gaps: r.Gaps,
					Error: r.Error,
				}
			}),
		}}}
	}
	panic("fsm: a command outside the closed list")
}

// decodeWebhookCommand returns nil if it is another command.
func decodeWebhookCommand(c *logv1.Command) quota.Command {
	switch c := c.GetCommand().(type) {
	case *logv1.Command_SetWebhook:
		w := c.SetWebhook
		return quota.SetWebhook{
			WebhookSpec: decodeWebhookSpec(w.GetWebhook()), After: decodePosition(w.GetAfter()), Reason: w.GetReason(),
		}
	case *logv1.Command_ManageWebhook:
		w := c.ManageWebhook
		m := quota.ManageWebhook{
			Name: w.GetName(), Action: quota.WebhookAction(min(w.GetAction(), math.MaxUint8)), Reason: w.GetReason(),
		}
		if w.GetAfter() != nil {
			after := decodePosition(w.GetAfter())
			m.After = &after
		}
		return m
	case *logv1.Command_AdvanceWebhooks:
		return quota.AdvanceWebhooks{
			Reports: each(c.AdvanceWebhooks.GetReports(), func(r *logv1.WebhookReport) quota.WebhookReport {
				return quota.WebhookReport{
					Name: r.GetName(), Version: r.GetVersion(), Cursor: decodePosition(r.GetCursor()), Delivered: r.GetDelivered(),
					Gaps: r.GetGaps(), Error: r.GetError(),
				}
			}),
		}
	}
	return nil
}

func encodeWebhookSpec(s quota.WebhookSpec) *logv1.Webhook {
	return &logv1.Webhook{
		Name: s.Name, Url: s.URL, Secret: s.Secret, Types: s.Types, Tree: s.Tree, Node: s.Node,
		RetryForMs: int64(s.RetryFor),
	}
}

func decodeWebhookSpec(w *logv1.Webhook) quota.WebhookSpec {
	return quota.WebhookSpec{
		Name: w.GetName(), URL: w.GetUrl(), Secret: w.GetSecret(), Types: w.GetTypes(), Tree: w.GetTree(),
		Node: w.GetNode(), RetryFor: quota.Span(w.GetRetryForMs()),
	}
}

func encodePosition(p quota.EventPosition) *logv1.EventPosition {
	if p == (quota.EventPosition{}) {
		return nil
	}
	return &logv1.EventPosition{Index: p.Index, Number: p.Number}
}

func decodePosition(p *logv1.EventPosition) quota.EventPosition {
	return quota.EventPosition{Index: p.GetIndex(), Number: p.GetNumber()}
}

func encodeWebhook(w *quota.Webhook) *logv1.WebhookRecord {
	return &logv1.WebhookRecord{
		Webhook: encodeWebhookSpec(w.WebhookSpec), Version: w.Version, Cursor: encodePosition(w.Cursor),
		State: uint32(w.State), Delivered: w.Delivered, Gaps: w.Gaps, FailingSinceMs: int64(w.FailingSince.At),
		FailingSinceWallMs: w.FailingSince.Wall, LastError: w.LastError, Owner: w.Owner,
	}
}

func decodeWebhook(r *logv1.WebhookRecord) *quota.Webhook {
	return &quota.Webhook{
		WebhookSpec: decodeWebhookSpec(r.GetWebhook()), Owner: r.GetOwner(), Version: r.GetVersion(),
		Cursor: decodePosition(r.GetCursor()),
		State:  quota.WebhookState(min(r.GetState(), math.MaxUint8)), Delivered: r.GetDelivered(), Gaps: r.GetGaps(),
		FailingSince: quota.Stamp{At: quota.Instant(r.GetFailingSinceMs()), Wall: r.GetFailingSinceWallMs()},
		LastError:    r.GetLastError(),
	}
}
