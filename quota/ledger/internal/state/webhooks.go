package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quorate/quorate/quota"
)

// Webhooks are where the cluster delivers its events, and how far it is. There are few, so lists are searched. The
// ledger only keeps them: the leader delivers and reports its progress by AdvanceWebhooks, so that the next leader
// continues where the last one was.
type Webhooks struct {
	*Environment
	journal *Journal
	// Version is that of the last change.
	Version uint64
	// All are sorted by name.
	All []*quota.Webhook
}

func (s *Webhooks) place(name string) (int, bool) {
	return slices.BinarySearchFunc(s.All, name,
		func(w *quota.Webhook, name string) int { return cmp.Compare(w.Name, name) })
}

// Find is the webhook of a name; nil if there is none.
func (s *Webhooks) Find(name string) *quota.Webhook {
	if i, known := s.place(name); known {
		return s.All[i]
	}
	return nil
}

// store copies the list, because snapshots share it.
func (s *Webhooks) store(w *quota.Webhook) {
	i, known := s.place(w.Name)
	s.All = slices.Clone(s.All)
	if !known {
		s.All = slices.Insert(s.All, i, w)
	}
	s.All[i] = w
}

func (s *Webhooks) remove(name string) {
	if i, known := s.place(name); known {
		s.All = slices.Delete(slices.Clone(s.All), i, i+1)
	}
}

// Set carries out a SetWebhook. The owner is empty for a caller who manages the cluster.
func (s *Webhooks) Set(c quota.SetWebhook, owner string, m Mode) Outcome {
	previous := s.Find(c.Name)
	if previous != nil && owner == "" {
		owner = previous.Owner // otherwise its receiver would get more than its owner may see
	}
	if err := s.CheckSpec(c, owner); err != nil {
		return Outcome{Refused: err}
	}
	spec := c.WebhookSpec
	spec.Types = slices.Clone(spec.Types)
	if spec.RetryFor == 0 {
		spec.RetryFor = quota.DefaultWebhookRetry
	}
	updated := &quota.Webhook{
		WebhookSpec: spec, Owner: owner, Version: s.Version + 1, Cursor: c.After, State: quota.WebhookActive,
	}
	if previous != nil {
		if previous.Owner == owner && equalSpecs(previous.WebhookSpec, spec) {
			return Outcome{Webhook: previous, Repeated: true}
		}
		changed := *previous
		changed.WebhookSpec, changed.Owner, changed.Version = spec, owner, s.Version+1
		updated = &changed
	}
	if err := s.checkRoom(previous, owner); err != nil {
		return Outcome{Refused: err}
	}
	if m == CarryOut {
		s.change(previous, updated)
	}
	return Outcome{Webhook: updated}
}

// checkRoom takes nil as previous if the webhook is new.
func (s *Webhooks) checkRoom(previous *quota.Webhook, owner string) *quota.Error {
	if previous == nil && len(s.All) >= quota.MaxWebhooks {
		return quota.Errorf(quota.Full, "name", "the cluster has %d webhooks, which is the most; remove one first",
			len(s.All))
	}
	if owner == "" || previous != nil && previous.Owner == owner {
		return nil
	}
	owned, own := 0, 0
	for _, w := range s.All {
		if w == previous || w.Owner == "" {
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

// CheckSpec checks the form only: the tree may be made later, and what types of events there are depends on the version
// of the server, which must not decide what a command does. The secret of an owned webhook is one of its tree, so that
// no user can have messages signed by the secret of another receiver.
func (s *Webhooks) CheckSpec(c quota.SetWebhook, owner string) *quota.Error {
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
	return quota.CheckPath(c.Node, "node", s.Bounds.Depth)
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

// Manage carries out a ManageWebhook.
func (s *Webhooks) Manage(c quota.ManageWebhook, m Mode) Outcome {
	if err := checkWebhookReason(c.Reason); err != nil {
		return Outcome{Refused: err}
	}
	previous := s.Find(c.Name)
	if previous == nil {
		return Outcome{Refused: quota.Errorf(quota.NotFound, "name", "there is no webhook %q", quota.Clip(c.Name))}
	}
	switch c.Action {
	case quota.RemoveWebhook:
		if m == CarryOut {
			s.change(previous, nil)
		}
		return Outcome{Webhook: previous}
	case quota.ResumeWebhook:
		return s.resume(previous, c.After, m)
	}
	return Outcome{Refused: quota.Errorf(quota.Invalid, "action", "%d is not an action: 1 removes a webhook, 2 resumes it",
		c.Action)}
}

func (s *Webhooks) resume(previous *quota.Webhook, after *quota.EventPosition, m Mode) Outcome {
	if previous.State == quota.WebhookActive && (after == nil || *after == previous.Cursor) {
		return Outcome{Webhook: previous, Repeated: true}
	}
	updated := *previous
	updated.State, updated.FailingSince, updated.LastError = quota.WebhookActive, quota.Stamp{}, ""
	updated.Version = s.Version + 1
	if after != nil {
		updated.Cursor = *after
	}
	if m == CarryOut {
		s.change(previous, &updated)
	}
	return Outcome{Webhook: &updated}
}

// change takes nil as previous for a new webhook, as updated for one that is removed. It notes the change for the audit
// records.
func (s *Webhooks) change(previous, updated *quota.Webhook) {
	s.Version++
	if updated == nil {
		s.remove(previous.Name)
	} else {
		s.store(updated)
	}
	s.journal.Changes = append(s.journal.Changes, webhookChange(previous, updated))
}

// Advance carries out an AdvanceWebhooks.
func (s *Webhooks) Advance(c quota.AdvanceWebhooks, m Mode) Outcome {
	if n := len(c.Reports); n < 1 || n > quota.MaxWebhooks {
		return Outcome{Refused: quota.Errorf(quota.Invalid, "reports", "the command has %d reports; 1 to %d are allowed", n,
			quota.MaxWebhooks)}
	}
	if m == DryRun {
		return Outcome{}
	}
	for _, r := range c.Reports {
		previous := s.Find(r.Name)
		if previous == nil || previous.Version != r.Version || previous.State != quota.WebhookActive {
			continue
		}
		updated := s.advanced(previous, r)
		if updated.State == quota.WebhookDead {
			s.change(previous, updated)
			s.journal.NoteEvent(quota.Event{Kind: quota.EventWebhookDead, ID: updated.Name})
			continue
		}
		s.store(updated)
	}
	return Outcome{}
}

// advanced is a webhook after a report. It is dead once the attempts for one event have failed for RetryFor.
func (s *Webhooks) advanced(previous *quota.Webhook, r quota.WebhookReport) *quota.Webhook {
	updated := *previous
	if r.Cursor.Compare(updated.Cursor) > 0 {
		updated.Cursor = r.Cursor
		updated.Delivered += r.Delivered
		updated.Gaps += r.Gaps
		updated.FailingSince, updated.LastError = quota.Stamp{}, ""
	}
	if r.Error == "" {
		return &updated
	}
	if updated.LastError == "" {
		updated.FailingSince = s.Now
	}
	updated.LastError = clipText(r.Error, quota.MaxWebhookError)
	if s.Now.At-updated.FailingSince.At >= quota.Instant(updated.RetryFor) {
		updated.State, updated.Version = quota.WebhookDead, s.Version+1
	}
	return &updated
}

// clipText cuts at the end of a character.
func clipText(text string, max int) string {
	if len(text) <= max {
		return text
	}
	for max > 0 && !utf8.RuneStart(text[max]) {
		max--
	}
	return text[:max]
}

// Restart makes all webhooks deliver from the beginning of what is remembered: positions of another log mean nothing.
// What is not remembered becomes a gap that receivers are told of.
func (s *Webhooks) Restart() {
	for i, previous := range s.All {
		updated := *previous
		s.Version++
		updated.Cursor, updated.Version = quota.EventPosition{}, s.Version
		s.All[i] = &updated
	}
}

func webhookChange(previous, updated *quota.Webhook) quota.Change {
	switch {
	case previous == nil:
		return quota.Change{Kind: quota.Added, Field: "webhook " + updated.Name, After: webhookText(updated)}
	case updated == nil:
		return quota.Change{Kind: quota.Removed, Field: "webhook " + previous.Name, Before: webhookText(previous)}
	}
	return quota.Change{
		Kind: quota.Changed, Field: "webhook " + updated.Name,
		Before: webhookText(previous), After: webhookText(updated),
	}
}

// webhookText is for audit records. It leaves out the query, which may be secret.
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
