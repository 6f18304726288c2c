package rest

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
	"github.com/quorate/quorate/compat/keystone"
)

// Labels of the root of a tree, beside those that package keystone writes. All may be left out.
const (
	// ServiceNameLabel is the name of the service; otherwise that of the tree.
	ServiceNameLabel = "keystone/service-name"
	// ServiceTypeLabel is the type of the service, such as "image"; otherwise its name.
	ServiceTypeLabel = "keystone/service-type"
	// EndpointLabel is the id of the endpoint; otherwise the name of the tree.
	EndpointLabel = "keystone/endpoint"
	// RegionLabel is the region of resources that have none before a slash in their names; otherwise they have none.
	RegionLabel = "keystone/region"
	// UsageLabel says where the use of the service is counted: "ledger" if each use is an allocation.
	UsageLabel = "keystone/usage"
)

const usageInLedger = "ledger"

// directory maps ids of Keystone to trees, nodes and resources. It has the structure of all trees at one revision, no
// limits of nodes and no usage, and must not be changed. It is not for callers: what they see of it is asked of the API
// for each call.
type directory struct {
	revision, index uint64
	trees           []*treeEntry // by name
}

type treeEntry struct {
	name                                        string
	service, serviceName, serviceType, endpoint string
	region                                      string // of resources without one of their own; empty for none
	countsInLedger                              bool
	refusesUnknown                              bool
	resources                                   []resourceEntry
	defaults                                    map[string]*quoratev1.Limit // of the root
	unset                                       *quoratev1.Limit            // what the policy of the root makes of unset
	nodes                                       []*nodeEntry                // by path, without the root
	byPath                                      map[string]*nodeEntry
	byProject                                   map[string][]*nodeEntry
}

// resourceEntry is a resource under its names in Keystone. The region is empty for none.
type resourceEntry struct{ name, keystoneName, region string }

// nodeEntry is a node as a project.
type nodeEntry struct {
	path, project, projectName, parent string // parent is the project of the parent; empty below the root
	hasChildren                        bool
	// boundsSum is true if the limits of the children of each node above add up to at most that node's.
	boundsSum bool
}

func newDirectory(c *adminv1.GetConfigurationResponse) *directory {
	d := &directory{revision: c.GetRevision(), index: c.GetRead().GetIndex()}
	policies := policiesOf(c.GetPolicies())
	for _, tree := range c.GetTrees() {
		d.trees = append(d.trees, newTreeEntry(tree, policies))
	}
	slices.SortFunc(d.trees, func(a, b *treeEntry) int { return cmp.Compare(a.name, b.name) })
	return d
}

func newTreeEntry(tree *quoratev1.Tree, policies map[string]policyRules) *treeEntry {
	labels := tree.GetLabels()
	name := cmp.Or(labels[ServiceNameLabel], tree.GetName())
	t := &treeEntry{
		name: tree.GetName(), service: cmp.Or(labels[keystone.ServiceLabel], tree.GetName()), serviceName: name,
		serviceType: cmp.Or(labels[ServiceTypeLabel], name), endpoint: cmp.Or(labels[EndpointLabel], tree.GetName()),
		region: labels[RegionLabel], defaults: tree.GetDefaults(), countsInLedger: labels[UsageLabel] == usageInLedger,
		byPath: map[string]*nodeEntry{}, byProject: map[string][]*nodeEntry{},
	}
	for _, r := range tree.GetResources() {
		if region, name, ok := decodeResource(r.GetName()); ok {
			t.resources = append(t.resources, resourceEntry{r.GetName(), name, cmp.Or(region, labels[RegionLabel])})
		}
	}
	slices.SortFunc(t.resources, func(a, b resourceEntry) int {
		return cmp.Or(cmp.Compare(a.region, b.region), cmp.Compare(a.keystoneName, b.keystoneName))
	})
	t.addNodes(tree, policies)
	return t
}

func (t *treeEntry) addNodes(tree *quoratev1.Tree, policies map[string]policyRules) {
	rootPolicy := cmp.Or(tree.GetPolicy(), "open")
	t.refusesUnknown, t.unset = policies[rootPolicy].refusesUnknown, compat.AtMost(0)
	if !policies[rootPolicy].unsetIsZero {
		t.unset = compat.NoLimit()
	}
	inForce, bounds := map[string]string{"": rootPolicy}, map[string]bool{"": true}
	nodes := slices.SortedFunc(slices.Values(tree.GetNodes()), func(a, b *quoratev1.Node) int {
		return cmp.Compare(a.GetPath(), b.GetPath()) // a parent's path is the beginning of its children's
	})
	for _, node := range nodes {
		above, last := splitPath(node.GetPath())
		n := &nodeEntry{
			path: node.GetPath(), project: cmp.Or(node.GetLabels()[keystone.IDLabel], last),
			boundsSum: bounds[above] && policies[inForce[above]].boundsSum,
		}
		n.projectName = cmp.Or(node.GetLabels()[keystone.NameLabel], n.project)
		inForce[n.path], bounds[n.path] = cmp.Or(node.GetPolicy(), inForce[above]), n.boundsSum
		if parent := t.byPath[above]; parent != nil {
			parent.hasChildren, n.parent = true, parent.project
		}
		t.nodes, t.byPath[n.path] = append(t.nodes, n), n
		t.byProject[n.project] = append(t.byProject[n.project], n)
	}
}

func splitPath(path string) (parent, name string) {
	at := strings.LastIndexByte(path, '/')
	return path[:max(at, 0)], path[at+1:]
}

// policyRules are the switches of a policy that matter here.
type policyRules struct{ boundsSum, refusesUnknown, unsetIsZero bool }

// builtIn are those of the built-in policies, as in docs/policies.md; a test compares them.
var builtIn = map[string]policyRules{
	"open": {}, "strict": {true, true, true}, "nested": {true, true, true}, "capped": {false, true, false}, "project": {},
	"borrowing": {false, true, true}, "cohort": {false, true, true},
}

// policiesOf are the built-in policies and those that a configuration defines.
func policiesOf(defined []*quoratev1.Policy) map[string]policyRules {
	all := maps.Clone(builtIn)
	for _, p := range defined {
		rules := builtIn[p.GetBase()]
		if sum := p.GetSum(); sum != quoratev1.SumRule_SUM_RULE_UNSPECIFIED {
			rules.boundsSum = sum != quoratev1.SumRule_SUM_RULE_UNCHECKED
		}
		if unknown := p.GetUnknownNodes(); unknown != quoratev1.UnknownNodesRule_UNKNOWN_NODES_RULE_UNSPECIFIED {
			rules.refusesUnknown = unknown == quoratev1.UnknownNodesRule_UNKNOWN_NODES_RULE_REFUSE
		}
		if unset := p.GetUnset(); unset != quoratev1.UnsetRule_UNSET_RULE_UNSPECIFIED {
			rules.unsetIsZero = unset == quoratev1.UnsetRule_UNSET_RULE_ZERO
		}
		all[p.GetName()] = rules
	}
	return all
}

// regions are those of a tree's resources, or of the tree if it has no resources with others; "" stands for none.
func (t *treeEntry) regions() []string {
	var all []string
	for _, r := range t.resources {
		if !slices.Contains(all, r.region) {
			all = append(all, r.region)
		}
	}
	return all
}

func (t *treeEntry) resource(name string) (resourceEntry, bool) {
	for _, r := range t.resources {
		if r.name == name {
			return r, true
		}
	}
	return resourceEntry{}, false
}

func (t *treeEntry) findResource(region, keystoneName string) (resourceEntry, bool) {
	for _, r := range t.resources {
		if r.region == region && r.keystoneName == keystoneName {
			return r, true
		}
	}
	return resourceEntry{}, false
}

// findProject finds the node of a project; nil if there is none. It is an error if several nodes are one project, since
// none of them has all that the project uses.
func (t *treeEntry) findProject(id string) (*nodeEntry, error) {
	switch found := t.byProject[id]; len(found) {
	case 0:
		return nil, nil //nolint:nilnil // there is none
	case 1:
		return found[0], nil
	default:
		return nil, newFailure(http.StatusConflict, "Multiple matches found for project %.128s in tree %s: nodes %s and %s. "+
			"Give them different labels %s.", id, t.name, found[0].path, found[1].path, keystone.IDLabel)
	}
}
