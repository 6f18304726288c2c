package yunikorn

import (
	"strings"

	"github.com/quorate/quorate/compat"
)

// Labels that converted trees and nodes carry.
const (
	// LabelPartition is the name of a partition as the configuration spells it, where the tree's name differs; cut to 256
	// bytes.
	LabelPartition = "yunikorn/partition"
	// LabelQueue is the name of a queue as the configuration spells it, where the node's name differs.
	LabelQueue = "yunikorn/queue"
	// LabelGuaranteed is what a queue is guaranteed, in base units: "memory=1000000000 vcore=500". Nothing enforces it.
	LabelGuaranteed = "yunikorn/guaranteed"
)

// nodeName is the name of a queue as a node: in lower case, as YuniKorn runs it, and as [compat.Name] writes it. A
// queue's name is never empty.
func nodeName(queue string) string { return treeName(strings.ToLower(queue)) }

// treeName is the name of a partition, which is never empty, as a tree.
func treeName(partition string) string {
	name, _ := compat.Name(partition) // only the empty text has none
	return name
}
