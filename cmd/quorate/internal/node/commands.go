// Package node has the commands that run servers: one as a process, several for trying things, and the demo.
package node

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// Commands are the commands that run servers.
func Commands(c *cli.Env) []*cobra.Command {
	return []*cobra.Command{
		newServerCmd(c),
		newDevCmd(c),
		newDemoCmd(c),
	}
}

// NewVersionCmd is "quorate version".
func NewVersionCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this binary",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			built, err := structpb.NewStruct(
				map[string]any{"version": c.Version, "go": runtime.Version(), "platform": platform})
			if err != nil {
				return fmt.Errorf("describe this binary: %w", err)
			}
			return c.Print(built, func(p *cli.Page) error {
				p.Linef("quorate %s %s %s", c.Version, runtime.Version(), platform)
				return nil
			})
		},
	}
}
