package ledger

import (
	"strconv"

	"github.com/quorate/quorate/quota"
)

// policyText is the policy as configured; a new node that inherits is no change.
func policyText(s *quota.NodeSpec, there bool) string {
	if there && s.Policy == "" && s.Path == "" {
		return quota.DefaultPolicy
	}
	return s.Policy
}

func (d *differ) limits(path, kind string, before, after []quota.ResourceLimit) {
	merge(before, after, func(l quota.ResourceLimit) string { return l.Resource }, func(name string, was, is *quota.ResourceLimit) {
		d.add(path, kind+name, limitText(was), limitText(is))
	})
}

func limitText(l *quota.ResourceLimit) string {
	if l == nil {
		return ""
	}
	return l.Limit.String()
}

func (d *differ) labels(path string, before, after []quota.Label) {
	merge(before, after, func(l quota.Label) string { return l.Key }, func(key string, was, is *quota.Label) {
		d.add(path, "label "+key, labelText(was), labelText(is))
	})
}

// labelText quotes the value, so that an empty one is not taken for absent.
func labelText(l *quota.Label) string {
	if l == nil {
		return ""
	}
	return `"` + l.Value + `"`
}

// switchText is absent for what is off.
func switchText(on bool) string {
	if on {
		return "on"
	}
	return ""
}

// spanText is absent for what is not set.
func spanText(s quota.Span) string {
	if s == 0 {
		return ""
	}
	for _, u := range []struct {
		span quota.Span
		name string
	}{{60 * 60 * 1000, "h"}, {60 * 1000, "m"}, {1000, "s"}} {
		if s%u.span == 0 {
			return strconv.FormatInt(int64(s/u.span), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "ms"
}

// queueingText is absent for what is inherited.
func queueingText(q quota.Queueing) string {
	switch q {
	case quota.Strict:
		return "strict"
	case quota.BestEffort:
		return "best-effort"
	case quota.InheritQueueing:
	}
	return ""
}
