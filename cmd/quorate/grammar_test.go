package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// mostCommands bounds the commands, so that a new one is weighed against a flag of another.
const mostCommands = 100

// declaredVerbs are all verbs, each with its one meaning.
var declaredVerbs = map[string]string{
	"apply":    "make the configuration as a text says",
	"approve":  "agree to a request",
	"bench":    "measure",
	"check":    "ask whether something holds",
	"confirm":  "keep a reservation",
	"convert":  "write in another format",
	"cordon":   "admit nothing new",
	"create":   "add a thing",
	"delete":   "remove a thing",
	"dev":      "run for experiments",
	"drain":    "cordon, and revoke leases",
	"dump":     "collect what helps to find a fault",
	"end":      "end what hold began",
	"explain":  "say what decides a request",
	"export":   "write for use elsewhere",
	"hold":     "keep a lease in the background",
	"lift":     "end a quarantine",
	"list":     "show several things in a table",
	"move":     "give a node another path",
	"plan":     "show what apply would do",
	"probe":    "ask a server on this machine whether it works",
	"raise":    "raise to what all members support",
	"recover":  "find a way back after a loss",
	"reject":   "refuse a request",
	"release":  "end an allocation and free what it holds",
	"renew":    "extend the time of a lease or a waiting request",
	"reset":    "take items from holders",
	"resize":   "change the amounts of an allocation",
	"restore":  "replace the state by a backup",
	"resume":   "go on with what stopped",
	"rollback": "restore an earlier revision as a new one",
	"rotate":   "replace a secret by a new one",
	"run":      "run a program until it ends",
	"set":      "change what is named, and keep the rest",
	"show":     "show one thing with all that belongs to it",
	"split":    "move a part to a new allocation",
	"status":   "show the state as a whole",
	"top":      "follow the state on a screen",
	"transfer": "move a claim to another node",
	"uncordon": "end a cordon or a drain",
	"use":      "make the current one",
	"verify":   "check that nothing was changed",
	"wait":     "wait for a condition",
	"watch":    "stream changes",
	"whoami":   "show the caller",
}

// aboutTheProgram are the commands without a noun.
var aboutTheProgram = []string{"completion", "help", "version"}

// TestGrammar: each command is a noun and a verb, or a declared short form of one, and their number is bounded.
func TestGrammar(t *testing.T) {
	root := newRootCmd(&cli.Env{})
	used, shorts, count := map[string]bool{}, map[string]bool{}, 0
	nouns := map[string]bool{}
	for _, noun := range declaredNouns {
		nouns[noun.Name] = true
	}
	for _, noun := range root.Commands() {
		long := cli.LongForm(noun)
		switch {
		case long != "":
			if shortForms[noun.Name()] != long {
				t.Errorf("%s is not declared as the short form of %s", noun.Name(), long)
			}
			shorts[noun.Name()] = true
			continue
		case !noun.IsAvailableCommand() || slices.Contains(aboutTheProgram, noun.Name()):
			continue
		case !nouns[noun.Name()]:
			t.Errorf("%s is neither a declared noun nor a short form", noun.Name())
		}
		for _, verb := range noun.Commands() {
			count++
			used[verb.Name()] = true
			if declaredVerbs[verb.Name()] == "" {
				t.Errorf("%s: the verb is not declared", verb.CommandPath())
			}
			if verb.HasSubCommands() || len(verb.Aliases) > 0 {
				t.Errorf("%s has subcommands or aliases", verb.CommandPath())
			}
		}
	}
	for verb := range declaredVerbs {
		if !used[verb] {
			t.Errorf("no command has the verb %s", verb)
		}
	}
	if count > mostCommands {
		t.Errorf("there are %d commands, at most %d are allowed: is one a flag of another?", count, mostCommands)
	}
	checkShortForms(t, root, shorts)
}

// checkShortForms: a short form has the flags of the long one, and the help of each names the other.
func checkShortForms(t *testing.T, root *cobra.Command, found map[string]bool) {
	t.Helper()
	for name, long := range shortForms {
		short, _, err := root.Find([]string{name})
		if !found[name] || err != nil {
			t.Errorf("there is no short form %s", name)
			continue
		}
		full, rest, err := root.Find(strings.Fields(long))
		if err != nil || len(rest) > 0 {
			t.Errorf("%s stands for %s, which does not exist", name, long)
			continue
		}
		if short.Flags().FlagUsages() != full.Flags().FlagUsages() || short.Short != full.Short {
			t.Errorf("%s and %s differ", name, long)
		}
		if !strings.Contains(short.Long, "quorate "+long) || !strings.Contains(full.Long, "quorate "+name) {
			t.Errorf("the help of %s and %s does not name the other", name, long)
		}
	}
}

// flagMeanings has the flags that several commands describe in other words, with the one meaning of all.
var flagMeanings = map[string]string{
	"after":        "begin after this position of the log",
	"amount":       "an amount of a resource",
	"application":  "an application, of what is asked for or shown",
	"async":        "do not wait for the grant",
	"at":           "a node, or what is at it and below it",
	"front-ends":   "which protocols of other systems are served",
	"certain-by":   "predict the latest instant of a grant",
	"cluster-name": "the name of the cluster",
	"config":       "the file with the settings of a server",
	"data":         "data of a lease or an item",
	"data-dir":     "the data folder of a server",
	"dry-run":      "only report what would happen",
	"env-file":     "the file with the variables of a held lease",
	"for":          "for how long at most",
	"force":        "although something speaks against it, which the help names",
	"from":         "convert the file from this format",
	"group":        "a group, of an account, of what is asked for, or whose limits are set",
	"http-addr":    "the address of the API",
	"id":           "the name of the one thing that the command is about",
	"insecure":     "serve other machines in plain text",
	"issuer":       "an issuer of tokens",
	"label":        "a label, of what is asked for or shown",
	"limit":        "show at most so many",
	"local":        "only the server that is asked",
	"log-store":    "how a node stores its log",
	"members":      "a number of members",
	"new-state":    "the state of items afterwards",
	"out":          "where a new secret or certificate is written",
	"owner":        "who owns what is shown",
	"reason":       "the reason, which is recorded; some commands need it",
	"resource":     "a resource, of what is asked for or shown",
	"state":        "the state of what is shown",
	"ttl":          "the time without a renewal after which a lease ends",
	"until":        "when it ends",
	"user":         "a user, of what is asked for or shown, or whose limits are set",
	"wait":         "wait in the queue for so long",
	"yes":          "do not ask at a terminal",
}

// TestFlags: a flag has one type and one meaning in all commands. The same text describes it, unless flagMeanings has
// it.
func TestFlags(t *testing.T) {
	type description struct{ kind, usage string }
	described := map[string]map[description][]string{}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			d := description{strings.TrimPrefix(elementType(f), "*"), f.Usage}
			if described[f.Name] == nil {
				described[f.Name] = map[description][]string{}
			}
			described[f.Name][d] = append(described[f.Name][d], cmd.CommandPath())
			if f.Hidden || f.Deprecated != "" {
				t.Errorf("%s --%s is hidden or deprecated", cmd.CommandPath(), f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRootCmd(&cli.Env{}))
	for _, name := range slices.Sorted(maps.Keys(described)) {
		kinds := map[string]bool{}
		for d := range described[name] {
			kinds[d.kind] = true
		}
		text := fmt.Sprintf("%q", described[name])
		switch {
		case len(kinds) > 1:
			t.Errorf("--%s has several types: %s", name, text)
		case len(described[name]) > 1 && flagMeanings[name] == "":
			t.Errorf("--%s is described in several ways: %s", name, text)
		case len(described[name]) == 1 && flagMeanings[name] != "":
			t.Errorf("flagMeanings need not have --%s", name)
		}
	}
	for name := range flagMeanings {
		if described[name] == nil {
			t.Errorf("no command has --%s", name)
		}
	}
}

// TestPlaceholders: help says what to write for each flag, in capitals and not by a type; a place is called the same
// everywhere and has one flag, --at; each time takes days.
func TestPlaceholders(t *testing.T) {
	root := newRootCmd(&cli.Env{})
	visit := func(f *pflag.Flag, of string) {
		word := cli.PlaceholderOf(f)
		switch {
		case word != strings.ToUpper(word) && word != cli.PlacePlaceholder && word != "NODE[=HOST][,...]":
			t.Errorf("%s --%s shows %s for its value", of, f.Name, word)
		case f.Name == "at" && word != cli.PlacePlaceholder:
			t.Errorf("%s --at shows %s", of, word)
		case slices.Contains([]string{"node", "tree", "place"}, f.Name):
			t.Errorf("%s --%s: a place is --at", of, f.Name)
		case f.Value.Type() == "duration" && f.Value.Set("1d12h") != nil:
			t.Errorf("%s --%s takes no days", of, f.Name)
		}
	}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { visit(f, "quorate") })
	for _, noun := range root.Commands() {
		for _, cmd := range append(noun.Commands(), noun) {
			cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { visit(f, cmd.CommandPath()) })
			if strings.Contains(cmd.Use, "TREE:node/path") {
				t.Errorf("%s: a place is written %s", cmd.CommandPath(), cli.PlacePlaceholder)
			}
			if text := cmd.UsageString(); strings.Contains(text, " string ") {
				t.Errorf("the help of %s shows a type:\n%s", cmd.CommandPath(), text)
			}
		}
	}
}

// elementType is the type of a flag, of one that may be repeated that of each value.
func elementType(f *pflag.Flag) string {
	switch kind := f.Value.Type(); kind {
	case "stringArray", "stringSlice":
		return "string"
	case "intSlice":
		return "int"
	case "int32", "int64":
		return "int"
	default:
		return kind
	}
}
