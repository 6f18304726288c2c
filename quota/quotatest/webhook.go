package quotatest

import (
	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// WebhookCommands add, change, remove and resume webhooks, and report their progress, for a few names and versions that
// often fit.
func WebhookCommands() *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		name := pick(t, []string{"hook", "pager"}, "name")
		switch Die(t, 6, "action") {
		case 0, 1:
			return quota.SetWebhook{
				WebhookSpec: quota.WebhookSpec{
					Name: name, URL: pick(t, []string{"https://a.example/x", "http://b", "ftp://c"}, "url"), Secret: "s",
					Types: subset(t, []string{"allocation.ended", "allocation.granted"}, 2, false, "types"),
					Tree:  pick(t, []string{"", "t"}, "tree"), Node: pick(t, []string{"", "", "a"}, "node"),
					RetryFor: pick(t, []quota.Span{0, 1000, 999}, "retry"),
				},
				After: position(t),
			}
		case 2:
			c := quota.ManageWebhook{Name: name, Action: quota.WebhookAction(Die(t, 4, "kind"))}
			if oneIn(t, 2, "moved") {
				after := position(t)
				c.After = &after
			}
			return c
		}
		var c quota.AdvanceWebhooks
		for range 1 + Die(t, 2, "reports") {
			c.Reports = append(c.Reports, quota.WebhookReport{
				Name: name, Version: uint64(Die(t, 6, "version")), Cursor: position(t),
				Delivered: uint64(Die(t, 3, "delivered")), Gaps: uint64(Die(t, 2, "gaps")),
				Error: pick(t, []string{"", "", "no route"}, "error"),
			})
		}
		return c
	})
}

func position(t *rapid.T) quota.EventPosition {
	return quota.EventPosition{Index: uint64(Die(t, 30, "index")), Number: uint32(Die(t, 3, "number"))}
}
