// Package reference writes the help of all commands as man pages or Markdown, for packages and the site of the
// documentation.
package reference

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// formats are the values of --format.
var formats = map[string]func(c *cli.Env, root *cobra.Command, dir string) error{
	"man": func(c *cli.Env, root *cobra.Command, dir string) error {
		header := doc.GenManHeader{
			Section: "1", Source: "Quorate " + c.Build.Version, Manual: "Quorate", Date: builtAt(c),
		}
		return doc.GenManTree(root, &header, dir)
	},
	"markdown": func(_ *cli.Env, root *cobra.Command, dir string) error { return doc.GenMarkdownTree(root, dir) },
}

// NewDocsCmd is "quorate docs create", which no help lists: those who build packages call it.
func NewDocsCmd(c *cli.Env) *cobra.Command {
	format := ""
	cmd := &cobra.Command{
		Use: "create DIR --format FORMAT", Short: "Write a page of each command into a folder", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, known := formats[format]
			if !known {
				return cli.Usagef("--format is man or markdown, not %q", format)
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // pages have no secrets
				return fmt.Errorf("write the help of all commands: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // a line with the day of generation
			cli.DescribeFlags(root)
			return write(c, root, args[0])
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "`FORMAT` of the pages: "+cli.JoinNames(formats)+" (required)")
	group := cli.NewGroup("docs", "Write the help of all commands as files", cmd)
	group.Hidden = true
	return group
}

// builtAt is the time of the commit: the same binary writes the same pages on all days.
func builtAt(c *cli.Env) *time.Time {
	at, err := time.Parse(time.RFC3339, c.Build.Date)
	if err != nil {
		at = time.Unix(0, 0).UTC()
	}
	return &at
}
