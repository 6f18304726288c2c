package yunikorn

import (
	"fmt"
	"regexp"
)

// everybody is the wildcard, of users and of groups.
const everybody = "*"

var (
	queueName = regexp.MustCompile(`^[a-zA-Z0-9_:#/@-]{1,64}$`)
	userName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9:#/_.@-]*\$?$`)
	groupName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9:_.-]*$`)
)

// kind is users or groups, which differ in their names and are otherwise treated alike.
type kind struct {
	word    string // begins the names of the rules
	key     string // in the file
	names   *regexp.Regexp
	allowed string
}

var (
	users = kind{
		"user", "users", userName,
		"a letter or _, then letters, digits and : # / _ . @ -, and perhaps one $ at the end",
	}
	groups = kind{"group", "groups", groupName, "a letter or _, then letters, digits and : _ . -"}
)

// limits checks the entries of one queue in order. Names are remembered over all of them, users and groups apart.
func (v *validator) limits(n *node) {
	seenUsers, seenGroups := map[string]bool{}, map[string]bool{}
	for _, e := range n.entries {
		if len(e.Users) == 0 && len(e.Groups) == 0 {
			v.fail(e.path, n.name, ruleLimitNobody, "the limit %q is for nobody: name users or groups", clip(e.Limit))
		}
		v.names(n, e, users, e.Users, seenUsers)
		alone := !seenGroups[everybody]
		v.names(n, e, groups, e.Groups, seenGroups)
		if alone && seenGroups[everybody] && len(seenGroups) == 1 {
			v.fail(e.path+".groups", n.name, ruleGroupWildcardAlone,
				"the group * is the only one so far, so it would limit the "+
					"queue: set the queue's max instead, or name a group before it")
		}
		v.values(n, e)
	}
}

func (v *validator) names(n *node, e *entry, k kind, names []string, seen map[string]bool) {
	for i, name := range names {
		path := fmt.Sprintf("%s.%s[%d]", e.path, k.key, i)
		switch {
		case name != everybody && !k.names.MatchString(name):
			v.fail(path, n.name, k.word+"-name", "%q is no name of a %s: %s", clip(name), k.word, k.allowed)
		case seen[name]:
			v.fail(path, n.name, k.word+"-duplicate", "the %s %q is limited twice on this queue", k.word, clip(name))
		case seen[everybody]:
			v.fail(path, n.name, k.word+"-after-wildcard", "the %s %q comes after *, which ends the list of the queue's %s",
				k.word, clip(name), k.key)
		}
		seen[name] = true
	}
}

func (v *validator) values(n *node, e *entry) {
	understood := v.understood(e.resources)
	if understood && len(e.MaxResources) > 0 && e.resources.amounts.isZero() {
		v.fail(e.path+".maxresources", n.name, ruleLimitZeroResources,
			"every resource is 0: leave those out that are not limited, at least one must be above 0")
	}
	if e.MaxApplications == 0 && len(e.MaxResources) == 0 {
		v.fail(e.path, n.name, ruleLimitNothing,
			"the limit %q limits nothing: set maxresources or maxapplications", clip(e.Limit))
	}
	if n.MaxApplications != 0 && n.MaxApplications < e.MaxApplications {
		v.fail(e.path+".maxapplications", n.name, ruleLimitAppsOverQueue,
			"%d applications are more than the queue's own maximum of %d", e.MaxApplications, n.MaxApplications)
	}
	if n.isRoot() || !v.understood(n.max) {
		return
	}
	if which, more := over(n.max.amounts, e.resources.amounts); more {
		v.fail(e.path+".maxresources."+clip(which), n.name, ruleLimitResOverQueue,
			"%d %s is more than the queue's own maximum of %d",
			e.resources.amounts[which], clip(which), n.max.amounts[which])
	}
}
