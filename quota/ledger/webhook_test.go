package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

func pagerHook() quota.SetWebhook {
	return quota.SetWebhook{
		WebhookSpec: quota.WebhookSpec{Name: "pager", URL: "https://pager.example/hook", Secret: "pager"},
		After:       quota.EventPosition{Index: 7, Number: 2},
	}
}

func report(version, index uint64, err string) quota.AdvanceWebhooks {
	return quota.AdvanceWebhooks{Reports: []quota.WebhookReport{{
		Name: "pager", Version: version, Cursor: quota.EventPosition{Index: index}, Delivered: 1, Error: err,
	}}}
}

func mustApply(t *testing.T, l *ledger.Ledger, at quota.Instant, c quota.Command) ledger.Outcome {
	t.Helper()
	out := l.Apply(quota.Stamp{At: at}, c)
	if out.Refused != nil {
		t.Fatalf("%+v: %v", c, out.Refused)
	}
	if err := l.Check(); err != nil {
		t.Fatalf("after %+v: %v", c, err)
	}
	return out
}

// TestWebhookDiesAndIsResumed: a webhook begins where it was made, goes forward only, is dead after its time, and then
// does nothing until it is resumed.
func TestWebhookDiesAndIsResumed(t *testing.T) {
	t.Parallel()
	l := ledger.New(quota.DefaultBounds())
	hook := func() quota.Webhook { return *l.Reader().Webhooks()[0] }
	mustApply(t, l, 1, pagerHook())
	if w := hook(); w.Cursor.Index != 7 || w.RetryFor != quota.DefaultWebhookRetry || w.State != quota.WebhookActive {
		t.Fatalf("a new webhook is %+v", w)
	}
	if out := mustApply(t, l, 1, pagerHook()); !out.Repeated {
		t.Error("the same webhook again changes something")
	}
	mustApply(t, l, 10, report(1, 9, ""))
	mustApply(t, l, 11, report(1, 8, ""))
	if w := hook(); w.Cursor.Index != 9 || w.Delivered != 1 {
		t.Errorf("after a report from behind: %+v", w)
	}
	mustApply(t, l, 100, report(1, 9, "no route"))
	if w := hook(); w.FailingSince.At != 100 || w.LastError != "no route" {
		t.Errorf("after a failure: %+v", w)
	}
	mustApply(t, l, 100+quota.Instant(quota.DefaultWebhookRetry)-1, report(1, 9, "no answer"))
	if w := hook(); w.State != quota.WebhookActive || w.FailingSince.At != 100 || w.LastError != "no answer" {
		t.Errorf("before its time is over: %+v", w)
	}
	mustApply(t, l, 100+quota.Instant(quota.DefaultWebhookRetry), report(1, 9, "no answer"))
	if w := hook(); w.State != quota.WebhookDead || w.Version != 2 {
		t.Errorf("after its time is over: %+v", w)
	}
	events := l.Reader().Events(quota.EventFilter{Kind: quota.EventWebhookDead, ID: "pager"}, 10).Events
	changes := l.TakeChanges()
	if len(events) != 1 || len(changes) != 1 || !strings.Contains(changes[0].After, "dead to") {
		t.Errorf("a dead webhook made the events %v and the changes %v", events, changes)
	}
	mustApply(t, l, 200+quota.Instant(quota.DefaultWebhookRetry), report(2, 20, ""))
	if w := hook(); w.Cursor.Index != 9 || w.State != quota.WebhookDead {
		t.Errorf("a dead webhook went on: %+v", w)
	}
	loaded, err := quotatest.Restore(l.Snapshot(), quota.DefaultBounds())
	if err != nil || quotatest.ImageText(loaded.Snapshot()) != quotatest.ImageText(l.Snapshot()) {
		t.Fatalf("a restored ledger differs: %v", err)
	}
	mustApply(t, l, 1, quota.ManageWebhook{Name: "pager", Action: quota.ResumeWebhook})
	if w := hook(); w.State != quota.WebhookActive || w.LastError != "" || w.Cursor.Index != 9 || w.Version != 3 {
		t.Errorf("a resumed webhook is %+v", w)
	}
	mustApply(t, l, 1, quota.ManageWebhook{Name: "pager", Action: quota.RemoveWebhook})
	if list := l.Reader().Webhooks(); len(list) != 0 {
		t.Errorf("after the removal there are %v", list)
	}
}

// TestWebhookRefusals: what is not the form of a webhook, more than there may be, and who may not.
func TestWebhookRefusals(t *testing.T) {
	t.Parallel()
	l := ledger.New(quota.DefaultBounds())
	for text, change := range map[string]func(*quota.SetWebhook){
		"name: ":         func(c *quota.SetWebhook) { c.Name = "a b" },
		"url: ":          func(c *quota.SetWebhook) { c.URL = "ftp://x" },
		"secret: ":       func(c *quota.SetWebhook) { c.Secret = "../x" },
		"types[1]: ":     func(c *quota.SetWebhook) { c.Types = []string{"b", "a"} },
		"types: ":        func(c *quota.SetWebhook) { c.Types = make([]string, quota.MaxWebhookTypes+1) },
		"node: ":         func(c *quota.SetWebhook) { c.Node = "a" },
		"tree: ":         func(c *quota.SetWebhook) { c.Tree = "a/b" },
		"retry_for_ms: ": func(c *quota.SetWebhook) { c.RetryFor = quota.MaxWebhookRetry + 1 },
		"reason: ":       func(c *quota.SetWebhook) { c.Reason = strings.Repeat("x", quota.MaxReason+1) },
	} {
		c := pagerHook()
		change(&c)
		if out := l.Apply(quota.Stamp{}, c); out.Refused == nil || !strings.HasPrefix(out.Refused.Error(), text) {
			t.Errorf("%s is answered by %v", text, out.Refused)
		}
	}
	for i := range quota.MaxWebhooks + 1 {
		c := pagerHook()
		c.Name = fmt.Sprintf("hook%d", i)
		if out := l.Apply(quota.Stamp{}, c); (out.Refused != nil) != (i == quota.MaxWebhooks) {
			t.Errorf("webhook %d: %v", i, out.Refused)
		}
	}
	for _, c := range []quota.ManageWebhook{{Name: "other", Action: quota.RemoveWebhook}, {Name: "hook1"}} {
		if out := l.Apply(quota.Stamp{}, c); out.Refused == nil {
			t.Errorf("%+v is not refused", c)
		}
	}
	g := newGuarded(t, cernTree(), "anna")
	g.refused("anna", pagerHook(), quota.Forbidden, "lacks the right access.manage")
	g.refused("anna", quota.ManageWebhook{Name: "pager", Action: quota.RemoveWebhook}, quota.NotFound,
		`there is no webhook "pager", or account/anna may not see it`)
	g.refused("anna", report(1, 9, ""), quota.Forbidden, "only the cluster itself")
}

// hookModel is what one webhook must be, from the sentences of its commands.
type hookModel struct {
	spec      quota.WebhookSpec
	version   uint64
	cursor    quota.EventPosition
	dead      bool
	failing   []quota.Instant // times of failed reports since the last success
	delivered uint64
}

// TestWebhooksAgainstModel compares random commands with a model that keeps all failures instead of the first.
func TestWebhooksAgainstModel(t *testing.T) {
	t.Parallel()
	verify.Check(t, func(t *rapid.T) {
		l, now, version := ledger.New(quota.DefaultBounds()), quota.Instant(0), uint64(0)
		model := map[string]*hookModel{}
		for range 60 {
			now += quota.Instant(quotatest.Die(t, 700, "tick"))
			c := quotatest.WebhookCommands().Draw(t, "command")
			out := l.Apply(quota.Stamp{At: now}, c)
			if err := l.Check(); err != nil {
				t.Fatalf("after %+v: %v", c, err)
			}
			if out.Refused == nil {
				version = follow(model, version, now, c)
			}
			compareHooks(t, model, l.Reader().Webhooks())
		}
	})
}

func follow(model map[string]*hookModel, version uint64, now quota.Instant, c quota.Command) uint64 {
	switch c := c.(type) {
	case quota.SetWebhook:
		spec := c.WebhookSpec
		if spec.RetryFor == 0 {
			spec.RetryFor = quota.DefaultWebhookRetry
		}
		m := model[c.Name]
		if m == nil {
			m = &hookModel{cursor: c.After}
			model[c.Name] = m
		}
		if !cmp.Equal(m.spec, spec, cmpopts.EquateEmpty()) {
			version++
			m.spec, m.version = spec, version
		}
	case quota.ManageWebhook:
		m := model[c.Name]
		moves := c.After != nil && *c.After != m.cursor
		switch {
		case c.Action == quota.RemoveWebhook:
			version++
			delete(model, c.Name)
		case m.dead || moves:
			version++
			m.dead, m.failing, m.version = false, nil, version
			if moves {
				m.cursor = *c.After
			}
		}
	case quota.AdvanceWebhooks:
		for _, r := range c.Reports {
			if m := model[r.Name]; m != nil && m.version == r.Version && !m.dead {
				version = m.follow(version, now, r)
			}
		}
	}
	return version
}

func (m *hookModel) follow(version uint64, now quota.Instant, r quota.WebhookReport) uint64 {
	ahead := r.Cursor.Index > m.cursor.Index || r.Cursor.Index == m.cursor.Index && r.Cursor.Number > m.cursor.Number
	if ahead {
		m.cursor, m.failing = r.Cursor, nil
		m.delivered += r.Delivered
	}
	if r.Error == "" {
		return version
	}
	m.failing = append(m.failing, now)
	if now-slices.Min(m.failing) >= quota.Instant(m.spec.RetryFor) {
		m.dead, m.version = true, version+1
		return version + 1
	}
	return version
}

func compareHooks(t *rapid.T, model map[string]*hookModel, list []*quota.Webhook) {
	if len(list) != len(model) {
		t.Fatalf("there are %d webhooks, and should be %d", len(list), len(model))
	}
	for _, w := range list {
		m := model[w.Name]
		if m == nil || !cmp.Equal(m.spec, w.WebhookSpec, cmpopts.EquateEmpty()) || m.version != w.Version ||
			m.cursor != w.Cursor || m.dead != (w.State == quota.WebhookDead) || m.delivered != w.Delivered ||
			(len(m.failing) == 0) != (w.LastError == "") {
			t.Fatalf("webhook %+v should be %+v", *w, m)
		}
	}
}
