package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/quota"
)

// draftPrincipals checks the principal limits of a node and makes its rules; nil if there are none.
func (f *forest) draftPrincipals(t *tree, spec *quota.NodeSpec, field string) (*rules, *quota.Error) {
	if spec.Applications < 0 || spec.Applications > quota.MaxAmount {
		return nil, quota.Errorf(quota.Invalid, field+".applications",
			"%d applications are limited; 1 to %d are allowed, and 0 for no limit", spec.Applications, quota.MaxAmount)
	}
	n := len(spec.Principals)
	if n > f.bounds.Principals {
		return nil, quota.Errorf(quota.Invalid, field+".principals", "there are %d entries; at most %d are allowed", n,
			f.bounds.Principals)
	}
	if n == 0 {
		return nil, nil
	}
	r := &rules{users: map[string]*rule{}, groups: map[string]*rule{}}
	for i := range spec.Principals {
		at := fmt.Sprintf("%s.principals[%d]", field, i)
		if err := f.draftEntry(t, r, &spec.Principals[i], at); err != nil {
			return nil, err
		}
	}
	r.anyUser = r.users[quota.Wildcard]
	return r, nil
}

// draftEntry adds the rule of one entry.
func (f *forest) draftEntry(t *tree, r *rules, p *quota.PrincipalLimit, field string) *quota.Error {
	most := f.bounds.Principals
	switch {
	case len(p.Users)+len(p.Groups) == 0:
		return quota.Errorf(quota.Invalid, field,
			"the entry limits no user or group; name users or groups, or %q for all others", quota.Wildcard)
	case len(p.Users) > most:
		return quota.Errorf(quota.Invalid, field+".users", "the entry names %d users; at most %d are allowed",
			len(p.Users), most)
	case len(p.Groups) > most:
		return quota.Errorf(quota.Invalid, field+".groups", "the entry names %d groups; at most %d are allowed",
			len(p.Groups), most)
	case p.Applications < 0 || p.Applications > quota.MaxAmount:
		return quota.Errorf(quota.Invalid, field+".applications",
			"%d applications are limited; 1 to %d are allowed, and 0 for no limit", p.Applications, quota.MaxAmount)
	case len(p.Limits) == 0 && p.Applications == 0:
		return quota.Errorf(quota.Invalid, field, "the entry sets no limit; limit a resource or the applications")
	case len(p.Description) > quota.MaxLabelValue:
		return quota.Errorf(quota.Invalid, field+".description", "the description has %d bytes; at most %d are allowed",
			len(p.Description), quota.MaxLabelValue)
	}
	limits, err := t.principalLimits(p.Limits, field)
	if err != nil {
		return err
	}
	entry := &rule{PrincipalLimit: p, most: limits}
	if err := r.name(r.users, p.Users, entry, field+".users"); err != nil {
		return err
	}
	if err := r.name(r.groups, p.Groups, entry, field+".groups"); err != nil {
		return err
	}
	if r.groups[quota.Wildcard] != nil && len(r.groups) == 1 {
		return quota.Errorf(quota.Invalid, field+".groups",
			"the group %q stands for those that are not named, but no group is named before it; name one, or "+
				"limit the user %q", quota.Wildcard, quota.Wildcard)
	}
	return nil
}

// name puts an entry under its names. The wildcard is the last of its kind at a node.
func (r *rules) name(known map[string]*rule, names []string, entry *rule, field string) *quota.Error {
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case name == "" || len(name) > quota.MaxPrincipal:
			return quota.Errorf(quota.Invalid, at, "the name has %d bytes; 1 to %d are allowed", len(name),
				quota.MaxPrincipal)
		case known[name] != nil:
			return quota.Errorf(quota.Invalid, at,
				"%q is limited twice at this node; join the limits in one entry", name)
		case known[quota.Wildcard] != nil:
			return quota.Errorf(quota.Invalid, at, "%q comes after %q, which must be the last; name it before",
				name, quota.Wildcard)
		}
		known[name] = &rule{PrincipalLimit: entry.PrincipalLimit, most: entry.most, order: len(known)}
	}
	return nil
}

// principalLimits spreads the limits of an entry over the resources of the tree.
func (t *tree) principalLimits(limits quota.Vector, field string) ([]quota.Amount, *quota.Error) {
	most := slices.Repeat([]quota.Amount{quota.MaxAmount}, len(t.resources))
	for i, c := range limits {
		at := field + ".limits[" + quota.Clip(c.Resource) + "]"
		r := t.resource(c.Resource)
		switch {
		case r == nil:
			return nil, quota.Errorf(quota.Invalid, at, "tree %s registers no resource %q; it has %s", t.name,
				quota.Clip(c.Resource), t.resourceNames())
		case c.Amount < 0 || c.Amount > quota.MaxAmount:
			return nil, quota.Errorf(quota.Invalid, at, "the limit of %s is %d; 0 to %d are allowed", c.Resource,
				c.Amount, quota.MaxAmount)
		case i > 0 && limits[i-1].Resource >= c.Resource:
			return nil, quota.Errorf(quota.Invalid, at, "resource %s is not in order, or limited twice", c.Resource)
		}
		most[r.index] = c.Amount
	}
	return most, nil
}

// principals notes what has changed in the limits of users, groups and applications.
func (d *differ) principals(path string, before, after *quota.NodeSpec) {
	d.add(path, "applications", countText(before.Applications), countText(after.Applications))
	if slices.EqualFunc(before.Principals, after.Principals, samePrincipalLimit) {
		return
	}
	was, is := principalsText(before.Principals), principalsText(after.Principals)
	if was == is {
		is += " (changed in what is left out here)"
	}
	d.add(path, "principals", was, is)
}

func countText(n quota.Amount) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// principalsText says all entries, as far as there is room.
func principalsText(list []quota.PrincipalLimit) string {
	var text strings.Builder
	for i := range list {
		if i > 0 {
			text.WriteString("; ")
		}
		if text.Len() > quota.MaxReason {
			fmt.Fprintf(&text, "and %d more", len(list)-i)
			break
		}
		text.WriteString(principalLimitText(list[i]))
	}
	return text.String()
}

func samePrincipalLimit(p, other quota.PrincipalLimit) bool {
	return slices.Equal(p.Users, other.Users) && slices.Equal(p.Groups, other.Groups) &&
		slices.Equal(p.Limits, other.Limits) &&
		p.Applications == other.Applications && p.Description == other.Description
}

// principalLimitText says an entry for the history: "users sue, bob: memory 10, 2 applications".
func principalLimitText(p quota.PrincipalLimit) string {
	var who, what []string
	if len(p.Users) > 0 {
		who = append(who, "users "+someOf(p.Users))
	}
	if len(p.Groups) > 0 {
		who = append(who, "groups "+someOf(p.Groups))
	}
	for _, c := range p.Limits {
		what = append(what, fmt.Sprintf("%s %d", c.Resource, c.Amount))
	}
	if p.Applications > 0 {
		what = append(what, fmt.Sprintf("%d applications", p.Applications))
	}
	return strings.Join(who, ", ") + ": " + strings.Join(what, ", ")
}

// someOf lists the first ten names.
func someOf(names []string) string {
	text := strings.Join(names[:min(len(names), 10)], ", ")
	if len(names) > 10 {
		text += fmt.Sprintf(" and %d more", len(names)-10)
	}
	return text
}
