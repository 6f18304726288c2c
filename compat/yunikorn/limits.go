package yunikorn

import (
	"fmt"
	"regexp"
	"sync"
)

// anyName is the wildcard, of users and of groups.
const anyName = "*"

var (
	queueName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_:#/@-]{1,64}$`) })
	userName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9:#/_.@-]*\$?$`)
	groupName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9:_.-]*$`)
)

// kind is users or groups. They differ in their names only.
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

// checkLimits checks the entries of one queue in order. Names are remembered over all of them, users and groups apart.
func (v *validator) checkLimits(n *node) {
	seenUsers, seenGroups := map[string]bool{}, map[string]bool{}
	for _, e := range n.entries {
		if len(e.Users) == 0 && len(e.Groups) == 0 {
			v.addProblem(e.path, n.name, ruleLimitUnnamed, "the limit %q names no users or groups", clipText(e.Limit))
		}
		v.checkNames(n, e, users, e.Users, seenUsers)
		alone := !seenGroups[anyName]
		v.checkNames(n, e, groups, e.Groups, seenGroups)
		if alone && seenGroups[anyName] && len(seenGroups) == 1 {
			v.addProblem(e.path+".groups", n.name, ruleGroupWildcardAlone,
				"no group is named before *, so * would limit the whole queue: "+
					"set the queue's max instead, or name a group first")
		}
		v.checkValues(n, e)
	}
}

func (v *validator) checkNames(n *node, e *entry, k kind, names []string, seen map[string]bool) {
	for i, name := range names {
		path := fmt.Sprintf("%s.%s[%d]", e.path, k.key, i)
		switch {
		case name != anyName && !k.names.MatchString(name):
			v.addProblem(path, n.name, k.word+"-name", "%q is not a name of a %s: %s", clipText(name),
				k.word, k.allowed)
		case seen[name]:
			v.addProblem(path, n.name, k.word+"-duplicate", "the %s %q is limited twice on this queue",
				k.word, clipText(name))
		case seen[anyName]:
			v.addProblem(
				path,
				n.name,
				k.word+"-after-wildcard",
				"the %s %q comes after *, which ends the list of the queue's %s",
				k.word,
				clipText(name),
				k.key,
			)
		}
		seen[name] = true
	}
}

func (v *validator) checkValues(n *node, e *entry) {
	understood := v.reportUnread(e.resources)
	if understood && len(e.MaxResources) > 0 && e.resources.amounts.isZero() {
		v.addProblem(e.path+".maxresources", n.name, ruleLimitZeroResources,
			"every resource is 0: at least one must be above 0; leave out resources without a limit")
	}
	if e.MaxApplications == 0 && len(e.MaxResources) == 0 {
		v.addProblem(e.path, n.name, ruleLimitNothing,
			"the limit %q limits nothing: set maxresources or maxapplications", clipText(e.Limit))
	}
	if n.MaxApplications != 0 && n.MaxApplications < e.MaxApplications {
		v.addProblem(e.path+".maxapplications", n.name, ruleLimitAppsOverQueue,
			"%d applications are more than the queue's own maximum of %d", e.MaxApplications, n.MaxApplications)
	}
	if n.isRoot() || !v.reportUnread(n.max) {
		return
	}
	if kind, more := exceedsAny(n.max.amounts, e.resources.amounts); more {
		v.addProblem(e.path+".maxresources."+clipText(kind), n.name, ruleLimitResOverQueue,
			"%d %s is more than the queue's own maximum of %d",
			e.resources.amounts[kind], clipText(kind), n.max.amounts[kind])
	}
}
