package yunikorn

import (
	"fmt"
	"regexp"
	"strings"
)

// Labels that a converted node carries.
const (
	// LabelQueue is the name of a queue as the configuration spells it, where the node's name differs.
	LabelQueue = "yunikorn/queue"
	// LabelGuaranteed is what a queue is guaranteed, in base units: "memory=1000000000 vcore=500". Nothing enforces it.
	LabelGuaranteed = "yunikorn/guaranteed"
)

const maxName = 63 // of trees and nodes, in bytes

var (
	apiName      = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,62}$`)
	resourceName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]{0,62}$`)
)

// nodeName is the name of a queue as a node: in lower case, as YuniKorn runs it, and with + and two hex digits in place
// of : # and /, which no node's name has. A name may begin with a letter, a digit or _; others get _. put before, which
// cannot be mistaken for another queue, since no queue's name has a dot.
func nodeName(queue string) string { return escaped(strings.ToLower(queue)) }

// treeName is the name of a partition as a tree: as it is if it can be one, else escaped like a queue's.
func treeName(partition string) string {
	if apiName.MatchString(partition) {
		return partition
	}
	return escaped(partition)
}

func escaped(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if i == 0 && !isWord(c) {
			b.WriteString("_.")
		}
		if isWord(c) || c == '.' || c == '@' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "+%02x", c)
		}
	}
	return b.String()
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}
