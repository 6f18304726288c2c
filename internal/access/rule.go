package access

// Field is a kind of difference between two configurations. The list is closed; every difference of trees that a
// change makes is one of them.
type Field uint8

// Differences of a node.
const (
	// LimitField is a limit of a resource.
	LimitField Field = iota + 1
	// HardField, BorrowField and LendField say how a subtree borrows.
	HardField
	BorrowField
	LendField
	// ApplicationsField is the largest number of applications.
	ApplicationsField
	// NodeAdded and NodeRemoved are the node itself.
	NodeAdded
	NodeRemoved
	// PathField is a move or a new name. It is asked at the old path and at the new one.
	PathField
	// PolicyField, DefaultField, PrincipalsField and QueueingField are rules for everything below the node.
	PolicyField
	DefaultField
	PrincipalsField
	QueueingField
	// AutoApproveField is the rule that approves requests for limits of the children.
	AutoApproveField
	// LabelsField is what describes the node.
	LabelsField
	// ThresholdsField are the thresholds of the limits of the node and below.
	ThresholdsField
	// HoldField is whether a node is on hold.
	HoldField
	// BindingsField are bindings of roles without configuring verbs.
	BindingsField
	// ConfiguringField are bindings of roles with configuring verbs.
	ConfiguringField
)

// Differences of a tree, and beside all trees.
const (
	// ResourcesField and ItemsField are what is registered.
	ResourcesField Field = iota + 19
	ItemsField
	// LeasesField, OvertakeField, ForestField, RequireReasonField, ApprovalsField, TenantsSeeField and
	// RequirePrincipalField are settings.
	LeasesField
	OvertakeField
	ForestField
	RequireReasonField
	ApprovalsField
	TenantsSeeField
	RequirePrincipalField
	// TreeAdded and TreeRemoved are the tree itself.
	TreeAdded
	TreeRemoved
	// AccessField is the access section.
	AccessField

	lastField = AccessField
)

var fieldNames = [lastField + 1]string{
	"", "limit", "hard", "borrow", "lend", "applications", "node added", "node removed", "path", "policy", "default",
	"principals", "queueing", "auto-approve", "labels", "thresholds", "hold", "bindings", "configuring bindings",
	"resources", "items", "leases", "overtake", "forest", "require-reason", "approvals", "tenants-see",
	"require-principal", "tree added",
	"tree removed", "access",
}

// String names the field for messages.
func (f Field) String() string {
	if f <= lastField {
		return fieldNames[f]
	}
	return "unknown"
}

// Place says where a verb is asked, seen from the changed node. The list is closed.
type Place uint8

// The closed list of places. A binding on the cluster counts at each of them.
const (
	// AtNode asks at the node: a binding there or at any ancestor counts.
	AtNode Place = iota + 1
	// AtAncestor asks at the parent: a binding there or at any ancestor of it counts.
	AtAncestor
	// AtRoot asks at the root of the tree: only a binding there counts.
	AtRoot
	// AtCluster asks on the cluster.
	AtCluster
)

// String names the place for messages.
func (p Place) String() string {
	names := [...]string{"", "the node", "an ancestor", "the root", "the cluster"}
	if int(p) < len(names) {
		return names[p]
	}
	return "unknown"
}

// Ask is one verb that a change needs at one place.
type Ask struct {
	Verb  Verb
	Place Place
}

// FieldChange is one difference, as far as the rules look at it.
type FieldChange struct {
	Field Field
	// IsRoot is true if the changed node is the root of its tree. It does not matter for fields of trees.
	IsRoot bool
	// IsNewTree is true if the tree is added or removed by the same change. Nothing can be bound in it, or will be.
	IsNewTree bool
}

// rule is one row of the table: the verbs that are all needed to change a field.
type rule struct {
	// node is asked for a node below the root.
	node []Ask
	// root is asked for the root of a tree and for fields of trees, newTree for trees that are added or removed.
	root, newTree []Ask
}

// Lists of verbs that several rows share.
var (
	createTree   = []Ask{{TreeCreate, AtCluster}}
	grantNewTree = []Ask{{TreeCreate, AtCluster}, {BindingsGrant, AtCluster}}

	limitRule = rule{
		node: []Ask{{LimitsSet, AtAncestor}}, root: []Ask{{NodesManage, AtRoot}}, newTree: createTree,
	}
	nodeRule = rule{
		node: []Ask{{NodesManage, AtAncestor}}, root: []Ask{{NodesManage, AtRoot}}, newTree: createTree,
	}
	policyRule = rule{node: []Ask{{PolicySet, AtNode}}, root: []Ask{{PolicySet, AtRoot}}, newTree: createTree}
	treeRule   = rule{root: []Ask{{NodesManage, AtRoot}}, newTree: createTree}
)

// rules is the closed table: one row for each field. A root has no parent, so what is asked at the parent of another
// node is asked there as nodes.manage: limits of a root are the size of the tree.
var rules = [lastField + 1]rule{
	LimitField:        limitRule,
	HardField:         limitRule,
	BorrowField:       limitRule,
	LendField:         limitRule,
	ApplicationsField: limitRule,
	NodeAdded:         nodeRule,
	NodeRemoved:       nodeRule,
	PathField:         nodeRule,
	PolicyField:       policyRule,
	DefaultField:      policyRule,
	PrincipalsField:   policyRule,
	QueueingField:     policyRule,
	AutoApproveField: {
		node: []Ask{{LimitsSet, AtNode}}, root: []Ask{{LimitsSet, AtRoot}}, newTree: createTree,
	},
	LabelsField: {
		node: []Ask{{NodesManage, AtNode}}, root: []Ask{{NodesManage, AtRoot}}, newTree: createTree,
	},
	ThresholdsField: {
		node: []Ask{{NodesManage, AtNode}}, root: []Ask{{NodesManage, AtRoot}}, newTree: createTree,
	},
	HoldField: {
		node: []Ask{{NodesCordon, AtAncestor}}, root: []Ask{{NodesCordon, AtRoot}}, newTree: createTree,
	},
	BindingsField: {
		node: []Ask{{BindingsGrant, AtNode}}, root: []Ask{{BindingsGrant, AtRoot}}, newTree: grantNewTree,
	},
	ConfiguringField: {
		node: []Ask{{BindingsGrant, AtAncestor}},
		root: []Ask{{BindingsGrant, AtRoot}, {AccessManage, AtCluster}}, newTree: grantNewTree,
	},
	ResourcesField:        treeRule,
	ItemsField:            treeRule,
	LeasesField:           treeRule,
	OvertakeField:         treeRule,
	ForestField:           treeRule,
	RequireReasonField:    treeRule,
	RequirePrincipalField: treeRule,
	ApprovalsField:        treeRule,
	TenantsSeeField:       treeRule,
	TreeAdded:             {newTree: createTree},
	TreeRemoved:           {newTree: createTree},
	AccessField:           {root: []Ask{{AccessManage, AtCluster}}},
}

func (f Field) isOfNode() bool { return f <= ConfiguringField }

// Asks returns what is asked for a difference; all of it is needed. It returns nil for an unknown field, which no
// caller may change. The caller must not change the result.
//
// Rights are those before the change. A node that is added has the rights of its nearest ancestor that exists, so its
// path begins there.
func (c FieldChange) Asks() []Ask {
	if c.Field == 0 || c.Field > lastField {
		return nil
	}
	r := &rules[c.Field]
	switch {
	case c.Field == TreeAdded || c.Field == TreeRemoved || c.IsNewTree && c.Field != AccessField:
		return r.newTree
	case c.IsRoot || !c.Field.isOfNode():
		return r.root
	}
	return r.node
}

// IsConfiguring reports whether bindings of a role are asked for as ConfiguringField.
func (r Role) IsConfiguring() bool { return r.Verbs&ConfiguringVerbs != 0 }

// IsGranted reports whether the caller has what is asked. The path is that of the changed node; for a tree that is
// added or removed, and for the access section, it is the cluster alone.
func (a Ask) IsGranted(id *Identity, wall int64, path Path) bool {
	cluster := len(path) - 1
	switch a.Place {
	case AtNode:
		return Allows(id, a.Verb, wall, path)
	case AtAncestor:
		return Allows(id, a.Verb, wall, path[min(1, cluster):])
	case AtRoot:
		return Allows(id, a.Verb, wall, path[max(0, cluster-1):])
	case AtCluster:
		return Allows(id, a.Verb, wall, path[cluster:])
	}
	return false
}

// FirstDenied returns the first of what is asked for a difference that the caller does not have, and false if it has
// all of it. An unknown field is always denied, with the zero Ask.
func (c FieldChange) FirstDenied(id *Identity, wall int64, path Path) (Ask, bool) {
	asks := c.Asks()
	if asks == nil {
		return Ask{}, true
	}
	for _, ask := range asks {
		if !ask.IsGranted(id, wall, path) {
			return ask, true
		}
	}
	return Ask{}, false
}
