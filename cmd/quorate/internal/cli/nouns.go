package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Constructor makes a command whose name is a verb. It can be called several times: a short form is a second command.
type Constructor func(*Env) *cobra.Command

// Noun is a kind of thing that commands are about, in the singular.
type Noun struct {
	Name, Group, Short string
	// Long is the help of the noun; empty if Short says it all.
	Long string
}

// Nouns are the commands of the program: each is a noun and a verb. Packages add verbs to the nouns that the program
// has declared.
type Nouns struct {
	env      *Env
	declared []Noun
	verbs    map[string][]Constructor
}

// NewNouns begins with nouns without verbs.
func NewNouns(c *Env, declared []Noun) *Nouns {
	return &Nouns{env: c, declared: declared, verbs: map[string][]Constructor{}}
}

// Add adds verbs to a noun.
func (n *Nouns) Add(noun string, verbs ...Constructor) {
	if !slices.ContainsFunc(n.declared, func(d Noun) bool { return d.Name == noun }) {
		panic("the noun " + noun + " is not declared") // a mistake in this program
	}
	n.verbs[noun] = append(n.verbs[noun], verbs...)
}

// AddTo adds all nouns that have verbs, and the short forms, to the command of the program. Shorts has the long forms
// by the short ones, such as "manifest apply" by "apply"; those of verbs that this system lacks are left out.
func (n *Nouns) AddTo(root *cobra.Command, shortGroup string, shorts map[string]string) {
	shortOf := map[string]string{}
	for short, long := range shorts {
		shortOf[long] = short
	}
	for _, noun := range n.declared {
		if len(n.verbs[noun.Name]) == 0 {
			continue
		}
		group := &cobra.Command{Use: noun.Name, Short: noun.Short, Long: noun.Long, GroupID: noun.Group}
		makeGroup(group)
		for _, construct := range n.verbs[noun.Name] {
			verb := construct(n.env)
			long := noun.Name + " " + verb.Name()
			if short, has := shortOf[long]; has {
				root.AddCommand(newShortForm(construct(n.env), short, long, shortGroup))
				verb.Long = orText(verb.Long, verb.Short+".") + fmt.Sprintf("\n\nShort form: quorate %s", short)
			}
			verb.SuggestFor = formerWords[long]
			group.AddCommand(verb)
		}
		root.AddCommand(group)
	}
}

// longFormAnnotation has the noun and the verb that a short form stands for.
const longFormAnnotation = "long-form"

// newShortForm gives a command the name of a short form.
func newShortForm(cmd *cobra.Command, short, long, group string) *cobra.Command {
	verb := cmd.Name()
	cmd.Use = short + strings.ReplaceAll(strings.TrimPrefix(cmd.Use, verb), "| "+verb+" ", "| "+short+" ")
	cmd.Long = orText(cmd.Long, cmd.Short+".") + fmt.Sprintf("\n\nLong form: quorate %s", long)
	cmd.Annotations, cmd.GroupID = map[string]string{longFormAnnotation: long}, group
	return cmd
}

// LongForm is the noun and the verb that a short form stands for; empty for other commands.
func LongForm(cmd *cobra.Command) string { return cmd.Annotations[longFormAnnotation] }

func orText(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
