package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// placeholders are what help shows for the values of flags, by the names of the flags. A flag whose text has a word in
// back quotes shows that word.
var placeholders = map[string]string{
	"action":          "NAME",
	"actor":           "USER",
	"application":     "NAME",
	"asker":           "USER",
	"audit-classes":   "CLASS[,CLASS...]",
	"audit-required":  "WORD",
	"borrowing":       "WORD",
	"boskos-type":     "TYPE",
	"by":              "USER",
	"cluster-name":    "NAME",
	"config":          "FILE",
	"cors-origin":     "URL[,URL...]",
	"description":     "TEXT",
	"digest":          "DIGEST",
	"format":          "FORMAT",
	"from":            "FORMAT",
	"front-ends":      "NAME[,NAME...]",
	"group":           "GROUP",
	"hosts":           "HOST[,HOST...]",
	"id":              "ID",
	"issued-before":   "TIME",
	"issuer":          "ISSUER",
	"join":            "HOST:PORT[,...]",
	"kind":            "KIND",
	"log-level":       "LEVEL",
	"log-store":       "NAME",
	"metrics-nodes":   "NODE[,NODE...]",
	"name":            "NAME",
	"name-contains":   "TEXT",
	"new-state":       "STATE",
	"nodes":           "NODE[=HOST][,...]",
	"otlp-endpoint":   "URL",
	"out":             "FOLDER",
	"output":          "FORMAT",
	"owner":           "USER",
	"prefix":          "TEXT",
	"reads":           "KIND[,KIND...]",
	"reason":          "TEXT",
	"resource":        "RESOURCE",
	"secret":          "NAME",
	"since":           "TIME",
	"source":          PlacePlaceholder,
	"state":           "STATE",
	"time-zones":      "FOLDER",
	"tls-ca":          "FILE",
	"tls-cert":        "FILE",
	"tls-client-auth": "WORD",
	"tls-client-ca":   "FILE",
	"tls-key":         "FILE",
	"ui":              "WORD",
	"until":           "TIME",
	"user":            "USER",
	"webhook-hosts":   "HOST[:PORT][,...]",
	"workload":        "NAME",
}

// placeholderEndings are those of flags whose names end so.
var placeholderEndings = []struct{ end, word string }{
	{"-addr", "HOST:PORT"}, {"-dir", "FOLDER"}, {"-file", "FILE"},
}

// placeholderTypes are those of flags of these types.
var placeholderTypes = map[string]string{
	"duration": "SPAN", "float64": "NUMBER", "int": "N", "int32": "N", "int64": "N", "intSlice": "N[,N...]",
	"uint64": "N",
}

// PlaceholderOf is what help shows for the value of a flag; empty for a flag without a value. Words of a type in small
// letters, such as string, say nothing of what to write.
func PlaceholderOf(f *pflag.Flag) string {
	shown, _ := pflag.UnquoteUsage(f)
	if shown == "" || shown != strings.ToLower(shown) || strings.Contains(f.Usage, "`") {
		return shown
	}
	if word := placeholders[f.Name]; word != "" {
		return word
	}
	for _, ending := range placeholderEndings {
		if strings.HasSuffix(f.Name, ending.end) {
			return ending.word
		}
	}
	if word := placeholderTypes[f.Value.Type()]; word != "" {
		return word
	}
	return shown
}

// describedValue is the value of a flag as help shows it: its type is the placeholder.
type describedValue struct {
	pflag.Value
	word string
}

// Type is shown in help texts.
func (v describedValue) Type() string { return v.word }

// describeFlag makes help show the placeholder of a flag, which parses nothing any more.
func describeFlag(f *pflag.Flag) {
	word := PlaceholderOf(f)
	if word == "" {
		return
	}
	f.Value = describedValue{f.Value, word}
	if f.DefValue == "[]" || f.DefValue == "0s" { // zero values, which help leaves out
		f.DefValue = ""
	}
}

// flagUsages is the text about flags in help, with placeholders.
func flagUsages(flags *pflag.FlagSet) string {
	described := pflag.NewFlagSet("", pflag.ContinueOnError)
	described.SortFlags = flags.SortFlags
	flags.VisitAll(func(f *pflag.Flag) {
		copied := *f
		describeFlag(&copied)
		described.AddFlag(&copied)
	})
	return described.FlagUsages()
}

// DescribeFlags puts placeholders into all flags for a generator of pages. The program parses no command line after it.
func DescribeFlags(root *cobra.Command) {
	for _, cmd := range append(allCommands(root), root) {
		cmd.InitDefaultHelpFlag()
		for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				if _, isDescribed := f.Value.(describedValue); !isDescribed {
					describeFlag(f)
				}
			})
		}
	}
}
