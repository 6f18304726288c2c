package ledger_test

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// principals pages by two, so that every scenario tries the pages.
func (p *player) principals(v ledger.Sandbox, kind quota.HolderKind, args []string) {
	name, after := strings.Join(args[1:], ""), ""
	for more := true; more; {
		var list []quota.PrincipalUsage
		var refused *quota.Error
		if list, more, refused = v.Principals(args[0], kind, name, after, 2); refused != nil {
			p.say("refused %s: %s", refused.Kind, refused.Error())
			return
		}
		for _, u := range list {
			p.principal(args[0], u)
			after = u.Name
		}
	}
}

func (p *player) principal(tree string, u quota.PrincipalUsage) {
	line := u.Name
	for _, g := range u.Groups {
		line += fmt.Sprintf(" %s:%s", g.Key, g.Value)
	}
	p.say("%s", line)
	for _, n := range u.Nodes {
		p.say("  %s%s%s%s", quota.Place(tree, n.Path), vectorWords(n.Used), runsWords(n.Applications), mostWords(n))
		for _, m := range n.Members {
			p.say("    %s%s%s", m.User, vectorWords(m.Used), runsWords(m.Applications))
		}
	}
}

func vectorWords(used quota.Vector) string {
	text := ""
	for _, c := range used {
		text += fmt.Sprintf(" %s=%d", c.Resource, c.Amount)
	}
	return text
}

func runsWords(applications []string) string {
	if len(applications) == 0 {
		return ""
	}
	return " runs " + strings.Join(applications, ",")
}

func mostWords(n quota.PrincipalNode) string {
	if len(n.Limits) == 0 && !n.MaxApplications.HasAmount() {
		return ""
	}
	text := ", at most"
	for _, c := range n.Limits {
		text += fmt.Sprintf(" %s=%d", c.Resource, c.Amount)
	}
	if n.MaxApplications.HasAmount() {
		text += fmt.Sprintf(" applications=%d", n.MaxApplications.Amount)
	}
	if n.Wildcard {
		text += " as everybody"
	}
	return text
}
