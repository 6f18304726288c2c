package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/manifest"
)

type sourceOptions struct {
	formatOptions
	files []string
	prune bool
	at    subtreeFlag
}

func (o *sourceOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "file", "f", nil, "a `FILE`, a folder with manifests (*.yaml, *.yml, *.json), or - for standard input; may be repeated")
	o.formatOptions.addFlags(cmd, "convert the files from this format first: ")
	flags.BoolVar(&o.prune, "prune", false,
		"also delete all trees and policies that the files do not name; refused while they are used")
	flags.Var(&o.at, "at", "change this node and what is below it, and nothing else; FILE is what export --at prints")
}

// checkNoArguments refuses a file that is named without -f, with the command line that names it.
func (o *sourceOptions) checkNoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return cli.Usagef("%q is not expected here: name files with -f, as in %s -f %s", args[0], cmd.CommandPath(),
		cli.FlagWord(args[0]))
}

// readAll reads all files into one configuration. A malformed file is a usage error.
func (o *sourceOptions) readAll(c *cli.Env) (*manifest.Manifest, error) {
	if len(o.files) == 0 {
		return nil, cli.Usagef("name a manifest: -f FILE, or -f - for standard input")
	}
	files, err := expandFolders(o.files)
	if err != nil {
		return nil, err
	}
	all := &manifest.Manifest{}
	origin := map[string]string{}
	for _, file := range files {
		m, err := o.readFile(c, file)
		if err != nil {
			return nil, err
		}
		for _, name := range namesIn(m) {
			if first, again := origin[name]; again {
				return nil, cli.Usagef("%s is in %s and in %s: name it once", name, first, file)
			}
			origin[name] = file
		}
		if m.At != nil && len(files) > 1 {
			return nil, cli.Usagef("%s is the text of %s: apply it alone", file, subtreeText(m.At))
		}
		all.At = m.At
		if m.Access != nil {
			all.Access = m.Access
		}
		all.Policies, all.Trees = append(all.Policies, m.Policies...), append(all.Trees, m.Trees...)
	}
	return all, o.at.limitTo(all, o.prune)
}

// expandFolders replaces each folder by the manifests directly in it, in the order of their names.
func expandFolders(files []string) ([]string, error) {
	var all []string
	for _, file := range files {
		info, err := os.Stat(file)
		if file == "-" || err != nil || !info.IsDir() { // opening the file reports that it does not exist
			all = append(all, file)
			continue
		}
		entries, err := os.ReadDir(file)
		if err != nil {
			return nil, fmt.Errorf("read the configuration: %w", err)
		}
		before := len(all)
		for _, entry := range entries {
			if !entry.IsDir() && slices.Contains(manifestSuffixes, filepath.Ext(entry.Name())) {
				all = append(all, filepath.Join(file, entry.Name()))
			}
		}
		if len(all) == before {
			return nil, cli.Usagef("the folder %s has no manifests: files that end in %s", file,
				strings.Join(manifestSuffixes, ", "))
		}
	}
	return all, nil
}

// manifestSuffixes are the ends of the names of manifests in a folder.
var manifestSuffixes = []string{".yaml", ".yml", ".json"}

func namesIn(m *manifest.Manifest) []string {
	var names []string
	if m.Access != nil {
		names = append(names, "the access section")
	}
	for _, policy := range m.Policies {
		names = append(names, fmt.Sprintf("policy %q", policy.GetName()))
	}
	for _, tree := range m.Trees {
		names = append(names, fmt.Sprintf("tree %q", tree.GetName()))
	}
	return names
}

func (o *sourceOptions) readFile(c *cli.Env, file string) (*manifest.Manifest, error) {
	name, text, err := readText(c, file)
	if err != nil {
		return nil, err
	}
	if o.from == "" && len(o.counted) == 0 {
		m, warnings, err := manifest.ParseWithWarnings(name, text)
		if err != nil {
			return nil, cli.Usagef("%v", err)
		}
		for _, warning := range warnings {
			c.Messagef("%s", warning)
		}
		return m, nil
	}
	convert, err := o.converter()
	if err != nil {
		return nil, err
	}
	trees, notes, err := convert(text)
	if err != nil {
		return nil, cli.Usagef("%s", cli.PrefixLines(name, err))
	}
	c.PrintNotes(name, notes)
	return &manifest.Manifest{Trees: trees}, nil
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

// learnUnits takes the units from the trees, and from the server those of trees that the change affects without naming
// them: --prune may delete them, and they may use a policy. The text of a subtree has only some units of its tree.
func (o *sourceOptions) learnUnits(ctx context.Context, c *cli.Env, quorate *client.Client, m *manifest.Manifest) {
	c.Units = cli.Units{}
	if o.prune || len(m.Policies) > 0 || m.At != nil {
		c.LearnUnitsForTable(ctx, quorate)
	}
	for _, tree := range m.Trees {
		c.Units.AddTree(tree.GetName(), tree.GetResources())
	}
}

// keepResources adds to converted trees the resources that the server has registered in them. A configuration of
// YuniKorn does not say which types are counted, so one that it does not limit any more stays, free, as it does there.
func (o *sourceOptions) keepResources(ctx context.Context, quorate *client.Client, m *manifest.Manifest) error {
	if o.from != yunikornFormat {
		return nil
	}
	for _, tree := range m.Trees {
		answer, err := quorate.Trees.GetTree(ctx, &quoratev1.GetTreeRequest{Name: tree.GetName()})
		if connect.CodeOf(err) == connect.CodeNotFound {
			continue
		}
		if err != nil {
			return err
		}
		named := map[string]bool{}
		for _, r := range tree.GetResources() {
			named[r.GetName()] = true
		}
		for _, r := range answer.GetTree().GetResources() {
			if !named[r.GetName()] {
				tree.Resources = append(tree.Resources, r)
			}
		}
		slices.SortFunc(tree.GetResources(), func(a, b *quoratev1.Resource) int {
			return cmp.Compare(a.GetName(), b.GetName())
		})
	}
	return nil
}

// errNotConverted ends a conversion whose problems have been printed.
var errNotConverted = errors.New("the file cannot be converted")
