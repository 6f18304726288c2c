// Package manifest parses and formats manifests, the YAML files in which people keep trees.
//
// A manifest is one YAML document of maps, lists and single-line values. Anchors, tags and further documents are
// errors. Every value is a text as written. It is the same for every other YAML tool, too: no word of the grammar is a
// boolean, a number or a date, and a text that people choose is in quotes if such a tool would change it, as "no" is
// (docs/adr/0143). An example:
//
//	version: 1
//	trees:
//	  cern:
//	    policy: strict
//	    resources:
//	      cores: {unit: count} # or milli, or bytes
//	      account: {items: {names: [one, two], ttl: 30m}}
//	    limits: {cores: unlimited}
//	    nodes:
//	      atlas:
//	        limits: {cores: 100}
//	        nodes:
//	          physics: {limits: {cores: 20}}
//	        principals:
//	          - users: [ann, bob] # each of them
//	            limits: {cores: 5}
//
// All keys of a tree: policy, forest, require-reason, require-principal, labels, leases, queueing, overtake, approvals,
// resources, limits, defaults, applications, auto-approve, bindings, principals, moves and nodes; all keys of a
// node: policy, hard, labels, queueing, limits, defaults, borrow, lend, applications, auto-approve, bindings,
// principals and nodes. A resource has a unit, or items: their names, or how many are made on demand (min, max,
// lifespan, retired, removed), and state, released, expired, ttl, turns and queueing. The messages Tree, Node and
// ItemSpec of the API document them. Times are written as 90s, 30m, 1h30m or 30d.
//
// Beside trees a manifest may have policies, which define what trees can name:
//
//	policies:
//	  lab: {base: strict, sum: unchecked}
//
// The keys of a policy are base, the name of a built-in one, and the switches of package policy.
//
// Bindings give roles at a tree or a node and everything below it. The access section has those on the cluster, custom
// roles, and who may log in; without it the section of the server stays as it is:
//
//	access:
//	  token-life: 2160h
//	  roles:
//	    night-shift: [usage.read, holders.read, hold.operate] # or {description: text, verbs: [hold]}
//	  issuers:
//	    github:
//	      url: https://token.actions.githubusercontent.com
//	      audience: quorate.example.org
//	      user: repository_id
//	      claim-rules: {repository_owner_id: ["123456"]}
//	      groups: {deploy: {ref: [refs/heads/main]}}
//	  certificates: [{name: zuul, user: zuul}] # or {dns: ci.example.org, user: ci}
//	  bindings:
//	    - {role: cluster-operator, subjects: [group corp/sre]}
//
// The other keys of an issuer are keys-url, keys-file, algorithms and max-age; the other keys of a binding are
// max-priority, unpreemptable, hold-as (any, or a list of names) and ends, a time such as "2027-01-01T00:00:00Z".
//
// The text of a subtree is that of its node, with at, which names it, and units, which has the unit of each resource
// that the text names (count, milli, bytes or items). It may have moves within the subtree, with whole paths:
//
//	version: 1
//	at: cern:atlas
//	units: {cores: count}
//	limits: {cores: 100}
//	nodes:
//	  physics: {limits: {cores: 20}}
//
// A limit is a quantity, or the word unlimited. A resource that is not listed is unset; the policy of the node defines
// what that means. A key with nothing after it is an error, because a truncated file ends with one.
package manifest

import (
	"errors"
	"fmt"
	"regexp"
	"sync"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Bounds of a manifest. Those of single values are the same as the API's.
const (
	// MaxSize is the most bytes that Parse accepts.
	MaxSize = 4 << 20
	// MaxTrees is the most trees in one manifest, because they are applied together; MaxPolicies is the most policies.
	MaxTrees    = 100
	MaxPolicies = 100

	maxNodes          = 20_000
	maxDepth          = 16
	maxResources      = 512
	maxLabels         = 32
	maxLabelKey       = 63
	maxText           = 256  // bytes of a label, a description, or the name of a principal
	maxWord           = 63   // bytes of the name of a policy or a forest
	maxPrincipals     = 1000 // at one node
	maxPrincipalNames = 1000 // users, and as many groups, of one entry
	maxMoves          = 1000
	maxItems          = 10_000 // of one resource
	maxItemName       = 253
	maxTurns          = 16 // of one resource
)

// reportedProblems is the most problems that an error of Parse names; the rest are counted.
const reportedProblems = 10

var (
	nodeName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,62}$`)
	})
	resourceName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]{0,62}$`)
	})
	itemName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,252}$`)
	})
)

// Error is a problem in a manifest with its position.
type Error struct {
	// File is the name that was passed to Parse.
	File string
	// Line and Column count from 1, columns in characters.
	Line, Column int
	// Message describes the mistake and what is allowed.
	Message string
}

// Error returns the position and the message in the format of compilers, so that editors can jump to it.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// joinProblems returns an error with the first problems, one a line, and the number of the others.
func joinProblems(problems []error) error {
	if more := len(problems) - reportedProblems; more > 0 {
		problems = append(problems[:reportedProblems:reportedProblems], fmt.Errorf("and %d more", more))
	}
	return errors.Join(problems...)
}

// Problems returns the problems in an error of Parse, in the order of the text. One that concerns the text as a whole
// has the line 0.
func Problems(err error) []Error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []Error
		for _, one := range joined.Unwrap() {
			all = append(all, Problems(one)...)
		}
		return all
	}
	var at *Error
	if errors.As(err, &at) {
		return []Error{*at}
	}
	return []Error{{Message: err.Error()}}
}

// ApplyRequest returns the request that applies the manifest. It shares the messages of the manifest.
func (m *Manifest) ApplyRequest() *quoratev1.ApplyTreesRequest {
	r := &quoratev1.ApplyTreesRequest{Access: m.Access, Policies: m.Policies, Trees: m.Trees}
	if m.At != nil && len(m.Trees) == 1 {
		r.Subtree = &quoratev1.SubtreeText{Tree: m.At.Tree, Node: m.At.Node, Text: m.Trees[0]}
		r.Trees = nil
	}
	return r
}
