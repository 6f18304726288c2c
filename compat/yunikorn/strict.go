package yunikorn

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// inheritedMax holds limits against the maxima of the queues above too, not only against the queue's own.
func (v *validator) inheritedMax(n *node, most *scoped[int64]) {
	for _, e := range n.entries {
		if which, more := over(most.values, e.resources.amounts); more {
			v.fail(e.path+".maxresources."+clip(which), n.name, ruleStrictInheritedMax,
				"%d %s is more than the maximum of %d of a queue above", e.resources.amounts[which], clip(which), most.values[which])
		}
	}
	mark := most.mark()
	lower(most, n.max.amounts)
	for _, child := range n.children {
		v.inheritedMax(child, most)
	}
	most.back(mark)
}

// counts refuses counts with a fraction or an exponent, which the YAML library cuts off silently: -1.5 becomes the
// largest count there is.
func (v *validator) counts(n *yaml.Node) {
	for i, child := range n.Content {
		isValue := n.Kind == yaml.MappingNode && i%2 == 1
		if isValue && n.Content[i-1].Value == "maxapplications" && child.ShortTag() == "!!float" {
			v.fail(fmt.Sprintf("line %d", child.Line), "", ruleStrictCount, "%s is no whole number in digits", clip(child.Value))
		}
		v.counts(child)
	}
}
