package access

import (
	"cmp"
	"slices"
	"strings"
)

// Role is a named set of verbs.
type Role struct {
	Name        string
	Description string
	Verbs       Verbs
}

// Names of built-in roles that have rules of their own.
const (
	// RoleRoot has every verb and no ceiling.
	RoleRoot = "root"
	// RoleSecurityAdmin manages access.
	RoleSecurityAdmin = "security-admin"
)

// Verbs of the built-in roles, each with those of the roles that it includes.
const (
	viewerVerbs   = Verbs(UsageRead | ConfigRead)
	holderVerbs   = viewerVerbs | Verbs(Hold|LimitsRequest)
	brokerVerbs   = holderVerbs | Verbs(HoldAs)
	cleanerVerbs  = viewerVerbs | Verbs(ItemsClean|ItemsReset)
	operatorVerbs = brokerVerbs | cleanerVerbs | Verbs(HoldersRead|DataRead|HoldOperate|HoldForce)
	limitVerbs    = viewerVerbs | Verbs(HoldersRead|LimitsSet|LimitsRequest)
	nodeVerbs     = limitVerbs | Verbs(NodesManage|PolicySet|NodesCordon|BindingsGrant)
	auditorVerbs  = viewerVerbs | Verbs(AuditRead|HistoryRead|AccessRead)
	clusterVerbs  = Verbs(ClusterRead | ClusterOperate | ClusterDebug | MetricsRead | HistoryRead | SnapshotSave)
	securityVerbs = Verbs(AccessRead | AccessManage | AuditRead | HistoryRead | BindingsGrant)
)

// builtinRoles is the closed list of built-in roles. Their verbs are part of the rules of the ledger: another set needs
// a new feature level.
var builtinRoles = [...]Role{
	{"viewer", "reads usage and configuration", viewerVerbs},
	{"holder", "holds allocations and requests limits", holderVerbs},
	{"broker", "holds for other users, as schedulers do", brokerVerbs},
	{"cleaner", "cleans and resets items", cleanerVerbs},
	{"operator", "helps holders: sees, changes and forces allocations", operatorVerbs},
	{"limit-admin", "sets limits", limitVerbs},
	{"node-admin", "sets limits, policies and bindings, and manages nodes", nodeVerbs},
	{"auditor", "reads the audit records, the history and who has access", auditorVerbs},
	{"cluster-operator", "operates the members and makes backups", clusterVerbs},
	{RoleSecurityAdmin, "manages accounts, tokens, issuers and bindings", securityVerbs},
	{RoleRoot, "may do everything", AllVerbs},
}

// BuiltinRoles returns a copy of the closed list of built-in roles, in the order of the documentation.
func BuiltinRoles() []Role { return slices.Clone(builtinRoles[:]) }

// requiredVerbs lists which verbs are useless, or misleading, without another one.
var requiredVerbs = [...]struct{ verb, needs Verb }{
	{HoldersRead, UsageRead},
	{DataRead, HoldersRead},
	{HoldAs, Hold},
	{HoldForce, Hold},
	{ClusterOperate, ClusterRead},
	{ClusterDebug, ClusterRead},
	{AccessManage, AccessRead},
}

func (r Role) check() *Error {
	if !isShortName(r.Name) {
		return invalid("name", shortNameRule, "%q is not a name of a role", clip(r.Name))
	}
	for i := range builtinRoles {
		if builtinRoles[i].Name == r.Name {
			return invalid("name", "choose another name", "%s is a built-in role, which cannot be changed", r.Name)
		}
	}
	if unknown := r.Verbs &^ AllVerbs; unknown != 0 {
		return invalid("verbs", oneOf(verbNames[:]), "bits %#x are not verbs", uint64(unknown))
	}
	if r.Verbs == 0 {
		return invalid("verbs", "name at least one verb", "role %s has no verbs", r.Name)
	}
	for _, rule := range requiredVerbs {
		if r.Verbs.Has(rule.verb) && !r.Verbs.Has(rule.needs) {
			return invalid("verbs", "add "+rule.needs.String()+" or leave out "+rule.verb.String(),
				"role %s has %s without %s", r.Name, rule.verb, rule.needs)
		}
	}
	return checkText("description", r.Description)
}

// Roles finds roles by name: the built-in ones and the custom ones of a book. It is immutable; the zero value has the
// built-in ones.
type Roles struct {
	custom []Role // sorted by name
}

// NewRoles adds custom roles to the built-in ones. It refuses names that are given twice, contradictory roles, and
// more than MaxRoles.
func NewRoles(custom []Role) (Roles, *Error) {
	if len(custom) > MaxRoles {
		return Roles{}, refusal(Full, "roles", "at most 64 custom roles are allowed", "there are %d", len(custom))
	}
	for i, r := range custom {
		if err := r.check(); err != nil {
			return Roles{}, err.below(indexed("roles", i))
		}
	}
	sorted := cloneList(custom)
	slices.SortFunc(sorted, func(a, b Role) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].Name == sorted[i-1].Name {
			return Roles{}, invalid("roles", "name each role once", "role %s is given twice", sorted[i].Name)
		}
	}
	return Roles{custom: sorted}, nil
}

// Find returns the role of a name, and false if there is none.
func (r Roles) Find(name string) (Role, bool) {
	for i := range builtinRoles {
		if builtinRoles[i].Name == name {
			return builtinRoles[i], true
		}
	}
	i, found := slices.BinarySearchFunc(r.custom, name, func(r Role, name string) int { return cmp.Compare(r.Name, name) })
	if !found {
		return Role{}, false
	}
	return r.custom[i], true
}

// Custom returns the custom roles in the order of their names. The caller must not change them.
func (r Roles) Custom() []Role { return r.custom }

func (r Roles) names() []string {
	var names []string
	for _, role := range builtinRoles {
		names = append(names, role.Name)
	}
	for _, role := range r.custom {
		names = append(names, role.Name)
	}
	return names
}
