package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/structpb"
)

func newVersionCmd(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show what this binary was built from",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			built, err := structpb.NewStruct(map[string]any{"version": c.version, "go": runtime.Version(), "platform": platform})
			if err != nil {
				return fmt.Errorf("describe this binary: %w", err)
			}
			return c.print(built, func(p *page) error {
				p.line("quorate %s %s %s", c.version, runtime.Version(), platform)
				return nil
			})
		},
	}
}
