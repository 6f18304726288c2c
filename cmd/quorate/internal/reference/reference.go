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

// NewDocsCmd is "quorate docs", which no help lists: those who build packages call it.
func NewDocsCmd(c *cli.Env) *cobra.Command {
	group := cli.NewGroup("docs", "Write the help of all commands as files",
		newFormatCmd("man DIR", "Write a man page of each command into a folder",
			func(root *cobra.Command, dir string) error {
				header := doc.GenManHeader{
					Section: "1", Source: "Quorate " + c.Build.Version, Manual: "Quorate", Date: builtAt(c),
				}
				return doc.GenManTree(root, &header, dir)
			}),
		newFormatCmd("markdown DIR", "Write a Markdown page of each command into a folder", doc.GenMarkdownTree),
	)
	group.Hidden = true
	return group
}

func newFormatCmd(use, short string, write func(root *cobra.Command, dir string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // pages have no secrets
				return fmt.Errorf("write the help of all commands: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // a line with the day of generation
			return write(root, args[0])
		},
	}
}

// builtAt is the time of the commit: the same binary writes the same pages on all days.
func builtAt(c *cli.Env) *time.Time {
	at, err := time.Parse(time.RFC3339, c.Build.Date)
	if err != nil {
		at = time.Unix(0, 0).UTC()
	}
	return &at
}
