package yunikorn_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/quorate/quorate/compat/yunikorn"
)

func ExampleConvert() {
	conversion, err := yunikorn.Convert([]byte(`
partitions:
- name: default
  queues:
  - name: root
    queues:
    - name: Dev
      limits:
      - users: [sue]
        maxresources: {vcore: 500m}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	node := conversion.Trees[0].GetNodes()[0]
	entry := node.GetPrincipals()[0]
	fmt.Println(node.GetPath(), entry.GetUsers(), entry.GetLimits()["vcore"].GetAmount())
	fmt.Println(conversion.Notes[0])
	// Output:
	// dev [sue] 500
	// partitions[0].queues[0].queues[0].name (root.Dev): the queue is the node "dev"
}

// TestExample converts what docs/from-yunikorn.md begins with.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("../../examples/yunikorn/queues.yaml")
	if err != nil {
		t.Fatal(err)
	}
	conversion, err := yunikorn.Convert(text, yunikorn.Strict())
	if err != nil {
		t.Fatal(err)
	}
	applicable(t, conversion)
	if len(conversion.Notes) != 1 {
		t.Error("the only note is about the guarantee:", conversion.Notes)
	}
}
