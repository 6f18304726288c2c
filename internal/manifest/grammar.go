package manifest

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota/policy"
)

// mapKind names the maps of a manifest whose keys are fixed. The keys of all other maps are names that people choose.
type mapKind int

const (
	manifestMap mapKind = iota
	treeMap
	nodeMap
	subtreeMap
	resourceMap
	itemsMap
	turnMap
	leasesMap
	thresholdsMap
	autoApproveMap
	principalMap
	policyMap
	accessMap
	roleMap
	issuerMap
	certificateMap
	bindingMap
)

// insteadOfKeys says what to write instead of keys that a reader of other systems may expect, and that no map has.
var insteadOfKeys = map[string]string{
	"admins":  "bindings say who may set limits; write bindings: [{role: limit-admin, subjects: [user corp/ann]}]",
	"setters": "bindings say who may set limits below their node",
}

// mapKeys has the keys of each of them, in the order in which errors list them. The reader accepts no others, so these
// are all words of the grammar that stand before a colon; wordsOfValues are those that stand behind one.
var mapKeys = func() map[mapKind][]string {
	keys := map[mapKind][]string{
		manifestMap: strings.Fields("access policies trees version"),
		treeMap: strings.Fields("applications approvals auto-approve bindings defaults forest labels leases " +
			"limits moves nodes overtake policy principals queueing require-principal require-reason resources " +
			"tenants-see thresholds"),
		nodeMap: strings.Fields("applications auto-approve bindings borrow defaults hard labels lend limits " +
			"nodes policy principals queueing thresholds"),
		resourceMap: strings.Fields("items unit"),
		itemsMap: strings.Fields("expired lifespan max min names queueing released removed retired state ttl " +
			"turns"),
		turnMap:        strings.Fields("after new-state state"),
		leasesMap:      strings.Fields("default-ttl grace max-ttl"),
		thresholdsMap:  strings.Fields("margin percents"),
		autoApproveMap: strings.Fields("at-most every within-headroom"),
		principalMap:   strings.Fields("applications description groups limits users"),
		policyMap:      {"base"},
		accessMap:      strings.Fields("bindings certificates issuers roles token-life"),
		roleMap:        strings.Fields("description verbs"),
		issuerMap:      strings.Fields("algorithms audience claim-rules groups keys-file keys-url max-age url user"),
		certificateMap: strings.Fields("dns name user"),
		bindingMap:     strings.Fields("ends hold-as max-priority role subjects unpreemptable"),
	}
	for _, s := range policy.Switches() {
		keys[policyMap] = append(keys[policyMap], s.Name)
	}
	// The text of a subtree has the keys of its node, and what a node takes from its tree.
	keys[subtreeMap] = slices.Sorted(slices.Values(append(strings.Fields("at moves units version"), keys[nodeMap]...)))
	return keys
}()
