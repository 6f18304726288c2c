package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/manifest"
)

// sourceOptions are common to the commands that read a configuration.
type sourceOptions struct {
	files []string
	from  string
	prune bool
}

func (o *sourceOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "file", "f", nil, "a `FILE`, or - for standard input; may be repeated")
	flags.StringVar(&o.from, "from", "", "convert the files from this format first: "+cli.JoinNames(converters))
	flags.BoolVar(&o.prune, "prune", false,
		"also delete all trees that the files do not name; refused while they have allocations")
	cli.CompleteFlag(cmd, "from", converterNames()...)
}

// readTrees reads the trees of all files. A malformed file is a usage error.
func (o *sourceOptions) readTrees(c *cli.Env) ([]*quoratev1.Tree, error) {
	if len(o.files) == 0 {
		return nil, cli.Usagef("name a manifest: -f FILE, or -f - for standard input")
	}
	var all []*quoratev1.Tree
	origin := map[string]string{}
	for _, file := range o.files {
		trees, err := o.readFile(c, file)
		if err != nil {
			return nil, err
		}
		for _, tree := range trees {
			if first, again := origin[tree.GetName()]; again {
				return nil, cli.Usagef("tree %q is in %s and in %s: name it once", tree.GetName(), first, file)
			}
			origin[tree.GetName()] = file
		}
		all = append(all, trees...)
	}
	return all, nil
}

func (o *sourceOptions) readFile(c *cli.Env, file string) ([]*quoratev1.Tree, error) {
	name, text, err := readText(c, file)
	if err != nil {
		return nil, err
	}
	if o.from == "" {
		trees, err := manifest.Parse(name, text)
		if err != nil {
			return nil, cli.Usagef("%v", err)
		}
		return trees, nil
	}
	convert, err := converterOf(o.from)
	if err != nil {
		return nil, err
	}
	trees, notes, err := convert(text)
	if err != nil {
		return nil, cli.Usagef("%s", cli.PrefixLines(name, err))
	}
	c.PrintNotes(name, notes)
	return trees, nil
}

// readText reads a file, or standard input if it is called -, and returns the name for messages. It reads one byte more
// than a manifest may have, so that the parser refuses a longer one.
func readText(c *cli.Env, file string) (name string, text []byte, err error) {
	name, in := "standard input", c.In
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return "", nil, fmt.Errorf("read the configuration: %w", err)
		}
		defer opened.Close() //nolint:errcheck // it was only read
		name, in = file, opened
	}
	if text, err = io.ReadAll(io.LimitReader(in, manifest.MaxSize+1)); err != nil {
		return "", nil, fmt.Errorf("read the configuration: %w", err)
	}
	return name, text, nil
}

// learnUnits takes the units from the trees, and from the server those of trees that --prune may delete.
func (o *sourceOptions) learnUnits(ctx context.Context, c *cli.Env, quorate *client.Client, trees []*quoratev1.Tree) {
	c.Units = cli.Units{}
	if o.prune {
		c.LearnUnitsForTable(ctx, quorate)
	}
	for _, tree := range trees {
		c.Units.AddTree(tree.GetName(), tree.GetResources())
	}
}

// errNotConverted ends a conversion whose problems have been printed.
var errNotConverted = errors.New("the file cannot be converted")
