package configure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// draftPrincipals returns nil if there are none.
func draftPrincipals(f *state.Forest, t *state.Tree, spec *quota.NodeSpec, field string) (*state.Rules, *quota.Error) {
	if err := checkApplications(spec.Applications, field); err != nil {
		return nil, err
	}
	n := len(spec.Principals)
	if n > f.Bounds.Principals {
		return nil, quota.Errorf(quota.Invalid, field+".principals", "there are %d entries; at most %d are allowed", n,
			f.Bounds.Principals)
	}
	if n == 0 {
		return nil, nil
	}
	r := &state.Rules{Users: map[string]*state.Rule{}, Groups: map[string]*state.Rule{}}
	for i := range spec.Principals {
		at := fmt.Sprintf("%s.principals[%d]", field, i)
		if err := draftEntry(f, t, r, &spec.Principals[i], at); err != nil {
			return nil, err
		}
	}
	r.AnyUser = r.Users[quota.Wildcard]
	return r, nil
}

// checkApplications refuses limits of applications that are neither an amount nor unset.
func checkApplications(most quota.Limit, field string) *quota.Error {
	field += ".applications"
	switch {
	case most.Kind == quota.Unset && most.Amount == 0:
		return nil
	case most.Kind != quota.Limited:
		return quota.Errorf(quota.Invalid, field, "the limit of applications is a number, or absent for none, not %s", most)
	case most.Amount < 0 || most.Amount > quota.MaxAmount:
		return quota.Errorf(quota.Invalid, field, "%d applications are limited; 0 to %d are allowed", most.Amount,
			quota.MaxAmount)
	}
	return nil
}

func draftEntry(f *state.Forest, t *state.Tree, r *state.Rules, p *quota.PrincipalLimit, field string) *quota.Error {
	most := f.Bounds.Principals
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
	case len(p.Limits) == 0 && p.Applications.Kind == quota.Unset:
		return quota.Errorf(quota.Invalid, field, "the entry sets no limit; limit a resource or the applications")
	case len(p.Description) > quota.MaxLabelValue:
		return quota.Errorf(quota.Invalid, field+".description", "the description has %d bytes; at most %d are allowed",
			len(p.Description), quota.MaxLabelValue)
	}
	if err := checkApplications(p.Applications, field); err != nil {
		return err
	}
	limits, err := principalLimits(t, p.Limits, field)
	if err != nil {
		return err
	}
	entry := &state.Rule{PrincipalLimit: p, Most: limits}
	if err := nameOfRules(r.Users, p.Users, entry, field+".users"); err != nil {
		return err
	}
	if err := nameOfRules(r.Groups, p.Groups, entry, field+".groups"); err != nil {
		return err
	}
	if r.Groups[quota.Wildcard] != nil && len(r.Groups) == 1 {
		return quota.Errorf(quota.Invalid, field+".groups",
			"the group %q stands for those that are not named, but no group is named before it; name one, or "+
				"limit the user %q", quota.Wildcard, quota.Wildcard)
	}
	return nil
}

// nameOfRules checks that the wildcard is the last of its kind at a node.
func nameOfRules(known map[string]*state.Rule, names []string, entry *state.Rule, field string) *quota.Error {
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
		known[name] = &state.Rule{PrincipalLimit: entry.PrincipalLimit, Most: entry.Most, Order: len(known)}
	}
	return nil
}

func principalLimits(t *state.Tree, limits quota.Vector, field string) ([]quota.Amount, *quota.Error) {
	most := slices.Repeat([]quota.Amount{quota.MaxAmount}, len(t.Resources))
	for i, c := range limits {
		at := field + ".limits[" + quota.Clip(c.Resource) + "]"
		r := t.Resource(c.Resource)
		switch {
		case r == nil:
			return nil, quota.Errorf(quota.Invalid, at, "tree %s registers no resource %q; it has %s", t.Name,
				quota.Clip(c.Resource), t.ResourceNames())
		case c.Amount < 0 || c.Amount > quota.MaxAmount:
			return nil, quota.Errorf(quota.Invalid, at, "the limit of %s is %d; 0 to %d are allowed", c.Resource,
				c.Amount, quota.MaxAmount)
		case i > 0 && limits[i-1].Resource >= c.Resource:
			return nil, quota.Errorf(quota.Invalid, at, "resource %s is not in order, or limited twice", c.Resource)
		}
		most[r.Index] = c.Amount
	}
	return most, nil
}

func (d *Differ) principals(path string, before, after *quota.NodeSpec) {
	d.add(path, "applications", applicationsText(before.Applications), applicationsText(after.Applications))
	if slices.EqualFunc(before.Principals, after.Principals, samePrincipalLimit) {
		return
	}
	previous, updated := principalsText(d.was, before.Principals), principalsText(d.is, after.Principals)
	if previous == updated {
		updated += " (changed in what is left out here)"
	}
	d.add(path, "principals", previous, updated)
}

func countText(n quota.Amount) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// applicationsText is empty for no limit.
func applicationsText(most quota.Limit) string {
	if !most.HasAmount() {
		return ""
	}
	return strconv.FormatInt(int64(most.Amount), 10)
}

func principalsText(t *state.Tree, list []quota.PrincipalLimit) string {
	var text strings.Builder
	for i := range list {
		if i > 0 {
			text.WriteString("; ")
		}
		if text.Len() > quota.MaxReason {
			fmt.Fprintf(&text, "and %d more", len(list)-i)
			break
		}
		text.WriteString(principalLimitText(t, list[i]))
	}
	return text.String()
}

func samePrincipalLimit(p, other quota.PrincipalLimit) bool {
	return slices.Equal(p.Users, other.Users) && slices.Equal(p.Groups, other.Groups) &&
		slices.Equal(p.Limits, other.Limits) &&
		p.Applications == other.Applications && p.Description == other.Description
}

// principalLimitText says an entry for the history: "users sue, bob: memory 10Gi, 2 applications".
func principalLimitText(t *state.Tree, p quota.PrincipalLimit) string {
	var names, what []string
	if len(p.Users) > 0 {
		names = append(names, "users "+someOf(p.Users))
	}
	if len(p.Groups) > 0 {
		names = append(names, "groups "+someOf(p.Groups))
	}
	for _, c := range p.Limits {
		what = append(what, c.Resource+" "+quota.FormatAmount(c.Amount, t.UnitOf(c.Resource)))
	}
	if p.Applications.HasAmount() {
		what = append(what, fmt.Sprintf("%d applications", p.Applications.Amount))
	}
	return strings.Join(names, ", ") + ": " + strings.Join(what, ", ")
}

func someOf(names []string) string {
	text := strings.Join(names[:min(len(names), 10)], ", ")
	if len(names) > 10 {
		text += fmt.Sprintf(" and %d more", len(names)-10)
	}
	return text
}
