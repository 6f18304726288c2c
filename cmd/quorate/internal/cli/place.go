package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/pflag"
)

// Place is a node of a tree, written TREE:node/path, or TREE for the root.
type Place struct {
	Tree, Node string
}

// PlacePlaceholder is how help writes a place.
const PlacePlaceholder = "TREE[:node/path]"

// PlaceOf is a node of a tree.
func PlaceOf(tree, node string) Place { return Place{Tree: tree, Node: node} }

// ParsePlace reads what [Place.String] writes.
func ParsePlace(text string) (Place, error) {
	tree, node, _ := strings.Cut(text, ":")
	if tree == "" {
		return Place{}, Usagef("%q is not a node: write TREE for the root of a tree, or TREE:node/path", text)
	}
	if !strings.Contains(text, ":") && strings.Contains(tree, "/") { // the name of a tree has no slash
		tree, node, _ = strings.Cut(strings.Trim(text, "/"), "/")
		return Place{}, Usagef("%q is not a node: a colon follows the tree; did you mean %s?", text, Place{tree, node})
	}
	if strings.HasPrefix(node, "/") || strings.HasSuffix(node, "/") {
		return Place{}, Usagef("%q is not a node: a path has no slash at its start or end", text)
	}
	return Place{tree, node}, nil
}

// PlaceVar adds --at, which limits a command to a node. What says what is limited, such as "only changes".
func PlaceVar(flags *pflag.FlagSet, at *Place, what string) {
	flags.Var(at, "at", what+" at this node or below it")
}

// AddReasonFlag adds --reason, which says for people why something is done.
func AddReasonFlag(flags *pflag.FlagSet, reason *string) {
	flags.StringVar(reason, "reason", "", "the reason, which is recorded")
}

// AddRequiredReasonFlag is AddReasonFlag where there must be one.
func AddRequiredReasonFlag(flags *pflag.FlagSet, reason *string) {
	flags.StringVar(reason, "reason", "", "the reason, which is recorded (required)")
}

// Set parses the value of a flag.
func (p *Place) Set(text string) (err error) {
	*p, err = ParsePlace(text)
	return err
}

// Type names the value of a flag.
func (p *Place) Type() string { return PlacePlaceholder }

// String writes the place as it is parsed.
func (p Place) String() string {
	if p.Node == "" {
		return p.Tree
	}
	return p.Tree + ":" + p.Node
}

// SplitPair splits name=value.
func SplitPair(text string) (name, value string, err error) {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return "", "", Usagef("%q is not a name=value pair", text)
	}
	return name, value, nil
}

// plainWord matches words that no shell interprets.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_.,:/@%+=][A-Za-z0-9_.,:/@%+=-]*$`)

// ShellWord quotes a text for a command line if that is necessary: an id may contain any visible characters, also those
// that a shell interprets.
func ShellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	if strings.HasPrefix(text, "-") {
		return "-- " + QuoteWord(text)
	}
	return QuoteWord(text)
}

// FlagWord quotes a text as the value after the = of a flag if that is necessary.
func FlagWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return QuoteWord(text)
}

// QuoteWord quotes a text as one word of a shell, also after the = of a flag.
func QuoteWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
