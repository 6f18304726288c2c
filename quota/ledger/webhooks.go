package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quorate/quorate/quota"
)

// webhooks are where the cluster delivers its events, and how far it is. There are few, so lists are searched. The
// ledger only keeps them: the leader delivers and reports its progress by AdvanceWebhooks, so that the next leader
// continues where the last one was.
type webhooks struct {
	*environment
	journal *journal
	// version is that of the last change.
	version uint64
	// all are sorted by name.
	all []*quota.Webhook
}

func (s *webhooks) place(name string) (int, bool) {
	return slices.BinarySearchFunc(s.all, name,
		func(w *quota.Webhook, name string) int { return cmp.Compare(w.Name, name) })
}

// find is the webhook of a name; nil if there is none.
func (s *webhooks) find(name string) *quota.Webhook {
	if i, known := s.place(name); known {
		return s.all[i]
	}
	return nil
}

// store adds a webhook or replaces the one of the same name. The list is copied, because snapshots share it.
func (s *webhooks) store(w *quota.Webhook) {
	i, known := s.place(w.Name)
	s.all = slices.Clone(s.all)
	if !known {
		s.all = slices.Insert(s.all, i, w)
	}
	s.all[i] = w
}

func (s *webhooks) remove(name string) {
	if i, known := s.place(name); known {
		s.all = slices.Delete(slices.Clone(s.all), i, i+1)
	}
}

// set carries out a SetWebhook. The owner is empty for a caller who manages the cluster.
func (s *webhooks) set(c quota.SetWebhook, owner string, m mode) Outcome {
	was := s.find(c.Name)
	if was != nil && owner == "" {
		owner = was.Owner // otherwise its receiver would get more than its owner may see
	}
	if err := s.checkSpec(c, owner); err != nil {
		return Outcome{Refused: err}
	}
	spec := c.WebhookSpec
	spec.Types = slices.Clone(spec.Types)
	if spec.RetryFor == 0 {
		spec.RetryFor = quota.DefaultWebhookRetry
	}
	is := &quota.Webhook{
		WebhookSpec: spec, Owner: owner, Version: s.version + 1, Cursor: c.After, State: quota.WebhookActive,
	}
	if was != nil {
		if was.Owner == owner && equalSpecs(was.WebhookSpec, spec) {
			return Outcome{Webhook: was, Repeated: true}
		}
		changed := *was
		changed.WebhookSpec, changed.Owner, changed.Version = spec, owner, s.version+1
		is = &changed
	}
	if err := s.checkRoom(was, owner); err != nil {
		return Outcome{Refused: err}
	}
	if m == carryOut {
		s.change(was, is)
	}
	return Outcome{Webhook: is}
}

// checkRoom refuses one webhook too many. was is the one that is changed; nil if it is a new one.
func (s *webhooks) checkRoom(was *quota.Webhook, owner string) *quota.Error {
	if was == nil && len(s.all) >= quota.MaxWebhooks {
		return quota.Errorf(quota.Full, "name", "the cluster has %d webhooks, which is the most; remove one first",
			len(s.all))
	}
	if owner == "" || was != nil && was.Owner == owner {
		return nil
	}
	owned, own := 0, 0
	for _, w := range s.all {
		if w == was || w.Owner == "" {
			continue
		}
		owned++
		if w.Owner == owner {
			own++
		}
	}
	switch {
	case own >= quota.MaxWebhooksOfOwner:
		return quota.Errorf(quota.Full, "name", "%s owns %d webhooks, which is the most; remove one first", owner, own)
	case owned >= quota.MaxOwnedWebhooks:
		return quota.Errorf(quota.Full, "name", "the cluster has %d webhooks of nodes, which is the most; ask an "+
			"administrator of the cluster", owned)
	}
	return nil
}

func equalSpecs(a, b quota.WebhookSpec) bool {
	return a.Name == b.Name && a.URL == b.URL && a.Secret == b.Secret && a.Tree == b.Tree && a.Node == b.Node &&
		a.RetryFor == b.RetryFor && slices.Equal(a.Types, b.Types)
}

// checkSpec checks the form only: the tree may be made later, and what types of events there are depends on the version
// of the server, which must not decide what a command does. The secret of an owned webhook is one of its tree, so that
// no user can have messages signed by the secret of another receiver.
func (s *webhooks) checkSpec(c quota.SetWebhook, owner string) *quota.Error {
	switch {
	case owner != "" && !strings.HasPrefix(c.Secret, c.Tree+"."):
		return quota.Errorf(quota.Invalid, "secret", "a webhook of a node is signed by a secret of its tree, whose name "+
			"begins with %q; %q is not one", c.Tree+".", quota.Clip(c.Secret))
	case !quota.IsName(c.Name):
		return quota.Errorf(quota.Invalid, "name", "%q is not a name: 1 to %d letters, digits and %s are allowed, "+
			"beginning with a letter, digit or _", quota.Clip(c.Name), quota.MaxName, quota.NodeNameExtra)
	case !isWebhookURL(c.URL):
		return quota.Errorf(quota.Invalid, "url", "%q is not the address of a receiver: write https://HOST/PATH, at most %d "+
			"visible ASCII characters", quota.Clip(c.URL), quota.MaxWebhookURL)
	case !quota.IsName(c.Secret):
		return quota.Errorf(quota.Invalid, "secret", "%q is not the name of a secret: write the name of a file in the "+
			"webhook-secrets-dir of the servers", quota.Clip(c.Secret))
	case c.RetryFor != 0 && (c.RetryFor < quota.MinWebhookRetry || c.RetryFor > quota.MaxWebhookRetry):
		return quota.Errorf(quota.Invalid, "retry_for_ms", "a delivery may be tried for %d to %d ms, not %d; 0 means %d",
			quota.MinWebhookRetry, quota.MaxWebhookRetry, c.RetryFor, quota.DefaultWebhookRetry)
	case c.Node != "" && c.Tree == "":
		return quota.Errorf(quota.Invalid, "node", "a node needs its tree too")
	case c.Tree != "" && !quota.IsName(c.Tree):
		return quota.Errorf(quota.Invalid, "tree", "%q is not the name of a tree", quota.Clip(c.Tree))
	}
	if err := checkWebhookTypes(c.Types); err != nil {
		return err
	}
	if err := checkWebhookReason(c.Reason); err != nil {
		return err
	}
	return quota.CheckPath(c.Node, "node", s.bounds.Depth)
}

func isWebhookURL(url string) bool {
	return (strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")) &&
		quota.IsVisible(url, quota.MaxWebhookURL)
}

func checkWebhookTypes(types []string) *quota.Error {
	if len(types) > quota.MaxWebhookTypes {
		return quota.Errorf(quota.Invalid, "types", "the webhook names %d types of events; at most %d are allowed",
			len(types), quota.MaxWebhookTypes)
	}
	for i, name := range types {
		if !quota.IsName(name) || i > 0 && types[i-1] >= name {
			return quota.Errorf(quota.Invalid, fmt.Sprintf("types[%d]", i),
				"%q is not a type of events, or not in order: name each type once, sorted", quota.Clip(name))
		}
	}
	return nil
}

func checkWebhookReason(reason string) *quota.Error {
	if len(reason) > quota.MaxReason {
		return quota.Errorf(quota.Invalid, "reason", "the reason has %d bytes; at most %d are allowed", len(reason),
			quota.MaxReason)
	}
	return nil
}

// manage carries out a ManageWebhook.
func (s *webhooks) manage(c quota.ManageWebhook, m mode) Outcome {
	if err := checkWebhookReason(c.Reason); err != nil {
		return Outcome{Refused: err}
	}
	was := s.find(c.Name)
	if was == nil {
		return Outcome{Refused: quota.Errorf(quota.NotFound, "name", "there is no webhook %q", quota.Clip(c.Name))}
	}
	switch c.Action {
	case quota.RemoveWebhook:
		if m == carryOut {
			s.change(was, nil)
		}
		return Outcome{Webhook: was}
	case quota.ResumeWebhook:
		return s.resume(was, c.After, m)
	}
	return Outcome{Refused: quota.Errorf(quota.Invalid, "action", "%d is not an action: 1 removes a webhook, 2 resumes it",
		c.Action)}
}

func (s *webhooks) resume(was *quota.Webhook, after *quota.EventPosition, m mode) Outcome {
	if was.State == quota.WebhookActive && (after == nil || *after == was.Cursor) {
		return Outcome{Webhook: was, Repeated: true}
	}
	is := *was
	is.State, is.FailingSince, is.LastError, is.Version = quota.WebhookActive, quota.Stamp{}, "", s.version+1
	if after != nil {
		is.Cursor = *after
	}
	if m == carryOut {
		s.change(was, &is)
	}
	return Outcome{Webhook: &is}
}

// change stores a new version of a webhook and notes it for the audit records. was is nil for a new one, is for one
// that is removed.
func (s *webhooks) change(was, is *quota.Webhook) {
	s.version++
	if is == nil {
		s.remove(was.Name)
	} else {
		s.store(is)
	}
	s.journal.changes = append(s.journal.changes, webhookChange(was, is))
}

// advance carries out an AdvanceWebhooks.
func (s *webhooks) advance(c quota.AdvanceWebhooks, m mode) Outcome {
	if n := len(c.Reports); n < 1 || n > quota.MaxWebhooks {
		return Outcome{Refused: quota.Errorf(quota.Invalid, "reports", "the command has %d reports; 1 to %d are allowed", n,
			quota.MaxWebhooks)}
	}
	if m == dryRun {
		return Outcome{}
	}
	for _, r := range c.Reports {
		was := s.find(r.Name)
		if was == nil || was.Version != r.Version || was.State != quota.WebhookActive {
			continue
		}
		is := s.advanced(was, r)
		if is.State == quota.WebhookDead {
			s.change(was, is)
			s.journal.noteEvent(quota.Event{Kind: quota.EventWebhookDead, ID: is.Name})
			continue
		}
		s.store(is)
	}
	return Outcome{}
}

// advanced is a webhook after a report. It is dead once the attempts for one event have failed for RetryFor.
func (s *webhooks) advanced(was *quota.Webhook, r quota.WebhookReport) *quota.Webhook {
	is := *was
	if r.Cursor.Compare(is.Cursor) > 0 {
		is.Cursor = r.Cursor
		is.Delivered += r.Delivered
		is.Gaps += r.Gaps
		is.FailingSince, is.LastError = quota.Stamp{}, ""
	}
	if r.Error == "" {
		return &is
	}
	if is.LastError == "" {
		is.FailingSince = s.now
	}
	is.LastError = clipText(r.Error, quota.MaxWebhookError)
	if s.now.At-is.FailingSince.At >= quota.Instant(is.RetryFor) {
		is.State, is.Version = quota.WebhookDead, s.version+1
	}
	return &is
}

// clipText cuts a text to at most max bytes, at the end of a character.
func clipText(text string, max int) string {
	if len(text) <= max {
		return text
	}
	for max > 0 && !utf8.RuneStart(text[max]) {
		max--
	}
	return text[:max]
}

// restart makes all webhooks deliver from the beginning of what is remembered: positions of another log mean nothing.
// What is not remembered becomes a gap that receivers are told of.
func (s *webhooks) restart() {
	for i, was := range s.all {
		is := *was
		s.version++
		is.Cursor, is.Version = quota.EventPosition{}, s.version
		s.all[i] = &is
	}
}

// webhookChange is the change of a webhook in audit records.
func webhookChange(was, is *quota.Webhook) quota.Change {
	switch {
	case was == nil:
		return quota.Change{Kind: quota.Added, Field: "webhook " + is.Name, After: webhookText(is)}
	case is == nil:
		return quota.Change{Kind: quota.Removed, Field: "webhook " + was.Name, Before: webhookText(was)}
	}
	return quota.Change{Kind: quota.Changed, Field: "webhook " + is.Name, Before: webhookText(was), After: webhookText(is)}
}

// webhookText is a webhook in audit records, without its query, which may be secret.
func webhookText(w *quota.Webhook) string {
	url, _, _ := strings.Cut(w.URL, "?")
	text := fmt.Sprintf("%s to %s, signed by %s, after %d.%d", w.State, url, w.Secret, w.Cursor.Index, w.Cursor.Number)
	if w.Owner != "" {
		text += ", owned by " + w.Owner
	}
	if w.Tree != "" {
		text += ", of " + quota.Place(w.Tree, w.Node)
	}
	if len(w.Types) > 0 {
		text += ", only " + strings.Join(w.Types, " ")
	}
	if w.LastError != "" {
		text += "; " + w.LastError
	}
	return text
}
