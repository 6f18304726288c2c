package podgate

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/quorate/quorate/adapters/gate"
)

// MaxResources bounds the resources of a mapping.
const MaxResources = 32

// Mapping says which requests of pods are counted, and as which resource of a tree.
type Mapping []MappedResource

// MappedResource is one resource.
type MappedResource struct {
	// Kubernetes is its name in pods, such as "cpu" or "nvidia.com/gpu"; "pods" counts the pods themselves.
	Kubernetes corev1.ResourceName
	// Tree is its name in trees.
	Tree string
	// Milli is true if the tree counts thousandths (unit: milli).
	Milli bool
}

// DefaultMapping is that of trees with the resources vcore and memory.
func DefaultMapping() []string { return []string{"cpu=vcore:milli", "memory=memory"} }

// ParseMapping reads "KUBERNETES=TREE" or "KUBERNETES=TREE:milli", as in "cpu=vcore:milli" or "nvidia.com/gpu=gpu". Of
// resources with the units count and bytes, parts are rounded up.
func ParseMapping(texts []string) (Mapping, error) {
	if len(texts) == 0 || len(texts) > MaxResources {
		return nil, fmt.Errorf("resource: %d resources are mapped; 1 to %d are allowed", len(texts), MaxResources)
	}
	var mapping Mapping
	seen := map[string]bool{}
	for _, text := range texts {
		from, to, ok := strings.Cut(text, "=")
		tree, unit, _ := strings.Cut(to, ":")
		if !ok || from == "" || tree == "" || len(tree) > 63 || unit != "" && unit != "milli" {
			return nil, fmt.Errorf("resource: %q is not KUBERNETES=TREE or KUBERNETES=TREE:milli", text)
		}
		if seen[from] || seen["="+tree] {
			return nil, fmt.Errorf("resource: %q maps a resource that is mapped already", text)
		}
		seen[from], seen["="+tree] = true, true
		mapping = append(mapping, MappedResource{corev1.ResourceName(from), tree, unit == "milli"})
	}
	return mapping, nil
}

// Amounts returns what a pod needs in base units: what the scheduler looks for on a node. That is the sum of its
// containers and sidecars or, if more, an init container together with the sidecars that are listed before it; requests
// of the pod itself in place of these, for the resources that they name; and its overhead. ResourceClaims do not count.
// Resources that it does not request are left out.
func (m Mapping) Amounts(pod *corev1.Pod) map[string]int64 {
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	amounts := map[string]int64{}
	for _, r := range m {
		quantity, requested := requests[r.Kubernetes]
		amount := int64(1)
		switch {
		case r.Kubernetes == corev1.ResourcePods:
			requested = true
		case r.Milli && quantity.Value() > math.MaxInt64/1000:
			amount = math.MaxInt64 // more than any limit
		case r.Milli:
			amount = quantity.MilliValue()
		default:
			amount = quantity.Value()
		}
		if requested && amount > 0 {
			amounts[r.Tree] = amount
		}
	}
	return amounts
}

func (m Mapping) claims(pod *corev1.Pod, tree, node string) []gate.Claim {
	return []gate.Claim{{Tree: tree, Node: node, Amounts: m.Amounts(pod)}}
}

func (m Mapping) names() string {
	var names []string
	for _, r := range m {
		names = append(names, string(r.Kubernetes))
	}
	return strings.Join(names, ", ")
}
