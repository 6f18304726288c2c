package quota

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// policyText is the policy as configured; a new node that inherits is no change.
func policyText(s *NodeSpec, there bool) string {
	if there && s.Policy == "" && s.Path == "" {
		return DefaultPolicy
	}
	return s.Policy
}

func (d *differ) limits(path, kind string, before, after []ResourceLimit) {
	merge(before, after, func(l ResourceLimit) string { return l.Resource }, func(name string, was, is *ResourceLimit) {
		d.add(path, kind+name, limitText(was), limitText(is))
	})
}

func limitText(l *ResourceLimit) string {
	if l == nil {
		return ""
	}
	return l.Limit.String()
}

func (d *differ) labels(path string, before, after []Label) {
	merge(before, after, func(l Label) string { return l.Key }, func(key string, was, is *Label) {
		d.add(path, "label "+key, labelText(was), labelText(is))
	})
}

// labelText quotes the value, so that an empty one is not taken for absent.
func labelText(l *Label) string {
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

func applicationsText(s *NodeSpec) string {
	if s.Applications == 0 {
		return ""
	}
	return strconv.FormatInt(int64(s.Applications), 10)
}

// principals notes that the lists differ; the texts say only how long they are and how they begin, which may be the same.
func (d *differ) principals(path string, before, after []PrincipalLimit) {
	if slices.EqualFunc(before, after, PrincipalLimit.is) {
		return
	}
	kind := Changed
	switch {
	case len(before) == 0:
		kind = Added
	case len(after) == 0:
		kind = Removed
	}
	d.changes = append(d.changes, Change{
		Kind: kind, Tree: d.tree, Node: path, Field: "principals", Before: principalsText(before), After: principalsText(after),
	})
}

func (p PrincipalLimit) is(other PrincipalLimit) bool {
	return slices.Equal(p.Users, other.Users) && slices.Equal(p.Groups, other.Groups) && slices.Equal(p.Limits, other.Limits) &&
		p.Applications == other.Applications && p.Description == other.Description
}

// maxPrincipalsText bounds the text of a list that may be a thousand entries of a thousand names.
const maxPrincipalsText = 512

func principalsText(list []PrincipalLimit) string {
	var b strings.Builder
	for i, p := range list {
		if b.Len() > maxPrincipalsText {
			fmt.Fprintf(&b, "; and %d more", len(list)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(p.text())
	}
	return b.String()
}

// text is the entry in words, its lists of names shortened.
func (p PrincipalLimit) text() string {
	var words []string
	for _, names := range []struct {
		what string
		list []string
	}{{"users ", p.Users}, {"groups ", p.Groups}} {
		if n := len(names.list); n > maxNamesText {
			words = append(words, fmt.Sprintf("%s%s and %d more", names.what, strings.Join(names.list[:maxNamesText], ","), n-maxNamesText))
		} else if n > 0 {
			words = append(words, names.what+strings.Join(names.list, ","))
		}
	}
	for _, l := range p.Limits {
		words = append(words, fmt.Sprintf("%s=%d", l.Resource, l.Amount))
	}
	if p.Applications > 0 {
		words = append(words, fmt.Sprintf("applications=%d", p.Applications))
	}
	return strings.Join(words, " ")
}

// maxNamesText is how many users or groups of an entry are named.
const maxNamesText = 3
