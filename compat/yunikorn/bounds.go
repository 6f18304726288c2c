package yunikorn

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/internal/yamldoc"
)

// Bounds of a configuration. They are ours; the original has none, and no file that people write comes near them.
const (
	// MaxSize is the most bytes of a configuration.
	MaxSize = 1 << 20

	maxKeys       = 256     // of one map: the library compares all pairs of them
	maxValues     = 200_000 // maps, lists and scalars, those behind an alias counted wherever it stands
	maxQueueDepth = 64      // levels of queues below root
	maxNesting    = 1000    // maps and lists inside each other
)

// readNodes reads the first document of a text, nil if it is empty, and refuses one that would cost far more than its
// size to decode.
func readNodes(text []byte) (*yaml.Node, *Problem) {
	document, err := yamldoc.Read(text, yamldoc.Rules{
		Bytes: MaxSize, Depth: maxNesting, Keys: maxKeys, Values: maxValues, FirstDocument: true,
	})
	if err == nil {
		return document.Root, nil
	}
	problem := &Problem{Rule: ruleYAML, Text: err.Error()}
	if at := (*yamldoc.Error)(nil); errors.As(err, &at) {
		problem.Text = at.Message
		if at.Line > 0 {
			problem.Path = fmt.Sprintf("line %d", at.Line)
		}
		if at.Bound {
			problem.Rule = ruleBounds
			problem.Text += ": split the configuration by partitions"
		}
	}
	return nil, problem
}
