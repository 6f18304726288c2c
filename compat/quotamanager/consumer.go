package quotamanager

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

// maxClaims is the most trees that a request may claim in, and the most resources of one claim.
const maxClaims = 32

var allocationID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[!-~]{1,128}$`) })

// Consumer is a request on one or more trees: a Consumer document.
type Consumer struct {
	// ID names the allocation.
	ID string
	// Trees are in the order of the document, each once.
	Trees []ConsumerTree
}

// ConsumerTree is what a consumer asks of one tree.
type ConsumerTree struct {
	// Tree is the name of the tree, Group that of the node, both as in the original's documents.
	Tree, Group string
	// Request is amounts by resource, none negative.
	Request map[string]int64
	// Priority is any number; the higher, the more important.
	Priority int64
	// Type restricts preemption to consumers of the same type.
	Type int64
	// Unpreemptable protects from preemption in this tree.
	Unpreemptable bool
}

type consumerDocument struct {
	Kind     string          `json:"kind"`
	Metadata json.RawMessage `json:"metadata"`
	Spec     struct {
		ID    string             `json:"id"`
		Trees []consumerTreeSpec `json:"trees"`
	} `json:"spec"`
}

type consumerTreeSpec struct {
	ID            string           `json:"id"`
	Tree          string           `json:"treeName"`
	Group         string           `json:"groupID"`
	Request       map[string]int64 `json:"request"`
	Priority      int64            `json:"priority"`
	Type          int64            `json:"type"`
	Unpreemptable bool             `json:"unPreemptable"`
}

// ParseConsumer reads one Consumer document. Where the original is silent and wrong, it is an error: negative amounts,
// two entries for one tree, and unknown keys, such as the "trees:" of the project's own example.
func ParseConsumer(data []byte) (*Consumer, error) {
	if err := compat.CheckSize(data); err != nil {
		return nil, err
	}
	documents, err := compat.Documents(data)
	if err != nil {
		return nil, err
	}
	if len(documents) != 1 {
		return nil, compat.Problems{fmt.Sprintf("found %d documents; a request must be exactly one", len(documents))}
	}
	var d consumerDocument
	decoder := json.NewDecoder(bytes.NewReader(documents[0]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return nil, compat.Problems{decodeFault(err)}
	}
	return checkConsumer(d)
}

func decodeFault(err error) string {
	text := compat.Unreadable(err)
	if strings.Contains(text, `"trees:"`) {
		return `the key "trees:" has a colon inside its quotes, so the request would name no tree: write "trees"`
	}
	return "cannot read the consumer: " + text
}

func checkConsumer(d consumerDocument) (*Consumer, error) {
	var problems compat.Problems
	if d.Kind != kindConsumer {
		problems.Add("consumer invalid kind %q: it must be %q", d.Kind, kindConsumer)
	}
	if !allocationID().MatchString(d.Spec.ID) {
		problems.Add("spec.id %q is not an id: 1 to 128 visible ASCII characters", d.Spec.ID)
	}
	if n := len(d.Spec.Trees); n == 0 || n > maxClaims {
		problems.Add("spec.trees has %d entries; a request names 1 to %d trees", n, maxClaims)
	}
	c := &Consumer{ID: d.Spec.ID}
	seen := map[string]bool{}
	for i, t := range d.Spec.Trees {
		what := fmt.Sprintf("spec.trees[%d]", i)
		if seen[t.Tree] {
			problems.Add("%s: tree %q is listed twice; merge the two requests, or use two consumers",
				what, t.Tree)
		}
		seen[t.Tree] = true
		for _, resource := range slices.Sorted(maps.Keys(t.Request)) {
			if amount := t.Request[resource]; amount < 0 || amount > compat.MaxAmount {
				problems.Add("%s: the amount of %q is %d; it must be from 0 to %d", what, resource, amount,
					compat.MaxAmount)
			}
		}
		c.Trees = append(c.Trees, ConsumerTree{
			Tree: t.Tree, Group: t.Group, Request: t.Request,
			Priority: t.Priority, Type: t.Type, Unpreemptable: t.Unpreemptable,
		})
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Request is the consumer as a request on converted trees, with a claim for each of its trees. Resources of a tree that
// it does not name are claimed with zero, as in the original: a node that is over in one of them takes nothing.
//
// All problems are reported: unknown trees and groups, and resources that a tree does not have, which the original
// ignores.
func (c *Consumer) Request(trees []*quoratev1.Tree) (*quoratev1.AllocateRequest, error) {
	var problems compat.Problems
	request := &quoratev1.AllocateRequest{Id: c.ID}
	for _, ct := range c.Trees {
		name, err := compat.Name(ct.Tree)
		i := slices.IndexFunc(trees, func(t *quoratev1.Tree) bool { return t.GetName() == name })
		if err != nil || i < 0 {
			problems.Add("consumer %q asks for tree %q, which is not known", c.ID, ct.Tree)
			continue
		}
		path, found := pathOf(trees[i], ct.Group)
		if !found {
			problems.Add("consumer %q asks for group %q, which is not a node of tree %q", c.ID, ct.Group, ct.Tree)
		}
		amounts, unknown := amountsOf(trees[i], ct.Request)
		for _, resource := range unknown {
			problems.Add("consumer %q requests %q, which is not a resource of tree %q", c.ID, resource, ct.Tree)
		}
		request.Claims = append(request.Claims, &quoratev1.Claim{
			Tree: name, Node: path, Amounts: amounts,
			Priority: &ct.Priority, PreemptionClass: &ct.Type, Unpreemptable: &ct.Unpreemptable,
		})
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return request, nil
}

// pathOf finds a node by its original name, which is unique in its tree.
func pathOf(t *quoratev1.Tree, group string) (string, bool) {
	if t.GetLabels()[RootLabel] == group {
		return "", true
	}
	name, err := compat.Name(group)
	if err != nil {
		return "", false
	}
	for _, n := range t.GetNodes() {
		if n.GetPath() == name || strings.HasSuffix(n.GetPath(), "/"+name) {
			return n.GetPath(), true
		}
	}
	return "", false
}

// amountsOf adds zeros for the resources that a request does not name, as many as a claim may have. Resources that the
// tree does not have are problems.
func amountsOf(t *quoratev1.Tree, request map[string]int64) (amounts map[string]int64, unknown []string) {
	amounts = map[string]int64{}
	for _, r := range t.GetResources() {
		if amount, named := request[r.GetName()]; named || len(t.GetResources()) <= maxClaims {
			amounts[r.GetName()] = amount
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(request)) {
		if _, found := amounts[resource]; !found {
			unknown = append(unknown, resource)
		}
	}
	return amounts, unknown
}
