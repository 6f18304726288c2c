package quotamanager

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

const (
	kindSubtree = "QuotaSubtree"
	// treeLabel is the label of a QuotaSubtree with the name of its tree.
	treeLabel = "tree"
	cpu       = "cpu"
	memory    = "memory"
)

// subtreeDocument is a QuotaSubtree, the object of Kubernetes in which the dispatcher finds a part of a tree, or a list
// of them.
type subtreeDocument struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Parent   string
		Children []struct {
			Name   string
			Quotas struct {
				Disabled  bool
				HardLimit bool `yaml:"hardLimit"`
				Requests  map[string]string
			}
		}
	}
	Items []subtreeDocument
}

// readSubtrees adds the trees that the QuotaSubtree objects of a text make together; false if there are none in it. The
// text is YAML or JSON, as kubectl prints it.
func (c *converter) readSubtrees(data []byte) bool {
	if !bytes.Contains(data, []byte(kindSubtree)) {
		return false
	}
	var subtrees []subtreeDocument
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var document subtreeDocument
		if err := decoder.Decode(&document); err != nil {
			break // the end, or a text of another kind, which the reader of JSON refuses
		}
		for _, s := range append(document.Items, document) {
			if s.Kind == kindSubtree {
				subtrees = append(subtrees, s)
			}
		}
	}
	trees := map[string]*treeSpec{}
	for _, s := range subtrees {
		c.addSubtree(trees, s)
	}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		c.readSingle(trees[name].document(name))
	}
	for _, tree := range c.conversion.Trees {
		setUnits(tree)
	}
	if len(trees) > 1 {
		c.conversion.Note("the dispatcher has all trees in one forest: give them the same forest if each request must " +
			"have a place in all of them")
	}
	return len(subtrees) > 0
}

type treeSpec struct {
	resources map[string]bool
	nodes     map[string]map[string]any
	objects   map[string]string // in which object a node is
}

func (t *treeSpec) document(name string) json.RawMessage {
	text, _ := json.Marshal(map[string]any{ // maps of texts can be encoded
		"kind": kindTree, "metadata": map[string]string{"name": name},
		"spec": map[string]any{"resourceNames": slices.Sorted(maps.Keys(t.resources)), "nodes": t.nodes},
	})
	return text
}

func (c *converter) addSubtree(trees map[string]*treeSpec, s subtreeDocument) {
	what := fmt.Sprintf("%s %q", kindSubtree, s.Metadata.Name)
	name := s.Metadata.Labels[treeLabel]
	if name == "" {
		c.addFault("it is ignored", "%s has no label %q, which names its tree", what, treeLabel)
		return
	}
	tree := trees[name]
	if tree == nil {
		tree = &treeSpec{map[string]bool{}, map[string]map[string]any{}, map[string]string{}}
		trees[name] = tree
	}
	for _, child := range s.Spec.Children {
		node := fmt.Sprintf("%s: node %q", what, child.Name)
		if other, again := tree.objects[child.Name]; again {
			c.problems.Add("%s is in %s too: name it once", node, other)
			continue
		}
		tree.objects[child.Name] = what
		if child.Quotas.Disabled {
			c.conversion.Note("%s: disabled is ignored, as the dispatcher does", node)
		}
		quota := map[string]string{}
		for _, resource := range slices.Sorted(maps.Keys(child.Quotas.Requests)) {
			tree.resources[resource] = true
			amount, err := baseUnits(resource, child.Quotas.Requests[resource])
			if err != nil {
				c.addFault("it is ignored", "%s: %v", node, err)
				continue
			}
			quota[resource] = amount
		}
		tree.nodes[child.Name] = map[string]any{
			"parent": s.Spec.Parent, "hard": strconv.FormatBool(child.Quotas.HardLimit), "quota": quota,
		}
	}
}

// setUnits gives a tree the units in which the dispatcher counts: thousandths of a core, bytes, and numbers.
func setUnits(tree *quoratev1.Tree) {
	for _, r := range tree.GetResources() {
		switch r.GetName() {
		case cpu:
			r.Unit = quoratev1.Unit_UNIT_MILLI
		case memory:
			r.Unit = quoratev1.Unit_UNIT_BYTES
		}
	}
}

// quantity is a number of Kubernetes: digits, and a suffix or an exponent.
var quantity = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([+-]?[0-9]*\.?[0-9]+\.?)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,2}))?$`)
})

// exponents are the powers of ten of the decimal suffixes, and of 1024 of the binary ones.
var (
	exponents = map[string]int64{"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
	binary    = "KMGTPE"
)

// baseUnits reads a quantity of Kubernetes as the dispatcher counts it. Fractions of a base unit of cpu and memory are
// rounded up, as Kubernetes does; of other resources they are errors.
func baseUnits(resource, text string) (string, error) {
	wrong := func(why string) (string, error) {
		return "", fmt.Errorf("the quota of %s is %.40q, %s", resource, text, why)
	}
	parts := quantity().FindStringSubmatch(text)
	if parts == nil {
		return wrong("which is not a quantity of Kubernetes")
	}
	amount, valid := new(big.Rat).SetString(strings.TrimSuffix(parts[1], "."))
	if !valid {
		return wrong("which is not a quantity of Kubernetes")
	}
	exponent := exponents[parts[2]]
	if parts[3] != "" {
		exponent, _ = strconv.ParseInt(parts[3], 10, 64) // two digits at most
	}
	if resource == cpu {
		exponent += 3
	}
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(max(exponent, -exponent)), nil))
	if exponent < 0 {
		power.Inv(power)
	}
	if len(parts[2]) == 2 {
		power.Mul(power, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1),
			uint(10*(1+strings.IndexByte(binary, parts[2][0]))))))
	}
	amount.Mul(amount, power)
	whole, rest := new(big.Int).QuoRem(amount.Num(), amount.Denom(), new(big.Int))
	switch {
	case rest.Sign() > 0 && resource != cpu && resource != memory:
		return wrong("which is not a whole number")
	case rest.Sign() > 0:
		whole.Add(whole, big.NewInt(1))
	}
	if whole.Cmp(big.NewInt(compat.MaxAmount)) > 0 {
		return wrong(fmt.Sprintf("which is more than %d base units", compat.MaxAmount))
	}
	return whole.String(), nil
}
