// Package contexts has the commands that name clusters with the credentials for them.
package contexts

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// AddCommands adds the commands about contexts.
func AddCommands(to *cli.Nouns) { to.Add("context", newSetCmd, newUseCmd, newListCmd, newDeleteCmd) }

func newSetCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "set NAME",
		Short: "Make or change a context from --server, --tls-... and --token-file",
		Long: `Make a context, or change what the flags of this command line name and keep the rest. An empty value removes
something. The first context becomes the current one.`,
		Example: `  quorate context set lab --server 10.0.0.1,10.0.0.2,10.0.0.3 --token-file ~/.quorate/lab.token
  quorate context set lab --tls-ca ca.crt`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			return change(func(all *cli.Contexts) error {
				context, err := all.Add(args[0])
				if err != nil {
					return err
				}
				if err := context.Take(c, cmd.Flags()); err != nil {
					return err
				}
				c.Messagef("context %s: %s", args[0], strings.Join(context.Servers, ", "))
				return nil
			})
		},
	}
}

func newUseCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Short:             "Make a context the current one",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			return change(func(all *cli.Contexts) error {
				if all.Find(args[0]) == nil {
					return all.MissingContext(args[0])
				}
				all.Current = args[0]
				c.Messagef("commands use context %s", args[0])
				return nil
			})
		},
	}
}

func newDeleteCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME",
		Short:             "Delete a context; its token file and keys stay",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			return change(func(all *cli.Contexts) error {
				if err := all.Delete(args[0]); err != nil {
					return err
				}
				c.Messagef("deleted context %s", args[0])
				return nil
			})
		},
	}
}

// change does not save the contexts if edit returns an error.
func change(edit func(*cli.Contexts) error) error {
	all, err := cli.LoadContexts()
	if err != nil {
		return err
	}
	if err := edit(all); err != nil {
		return err
	}
	return all.Save()
}

func newListCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the contexts; the current one is marked",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all, err := cli.LoadContexts()
			if err != nil {
				return err
			}
			names := []string{}
			rows := [][]string{{"CURRENT", "NAME", "SERVERS", "TOKEN FILE", "AUTHORITY", "CERTIFICATE"}}
			for _, x := range all.Contexts {
				mark := ""
				if x.Name == all.Current {
					mark = "*"
				}
				names = append(names, x.Name)
				rows = append(rows, []string{mark, x.Name, strings.Join(x.Servers, ","), x.TokenFile, x.TLSCA, x.TLSCert})
			}
			return c.PrintNames(all, names, func(p *cli.Page) error { return p.Table(rows) })
		},
	}
}

func completeContexts(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	all, err := cli.LoadContexts()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, x := range all.Contexts {
		names = append(names, cobra.CompletionWithDesc(x.Name, strings.Join(x.Servers, ",")))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
