package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/quota"
)

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
	return slices.Equal(p.Users, other.Users) && slices.Equal(p.Groups, other.Groups) && slices.Equal(p.Limits, other.Limits) &&
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
