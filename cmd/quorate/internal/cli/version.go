package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/structpb"
)

// NewVersionCmd is "quorate version".
func NewVersionCmd(c *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this binary",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := c.Build
			built, err := structpb.NewStruct(map[string]any{
				"version": b.Version, "commit": b.Commit, "date": b.Date, "go": runtime.Version(), "platform": b.Platform(),
			})
			if err != nil {
				return fmt.Errorf("describe this binary: %w", err)
			}
			return c.Print(built, func(p *Page) error {
				p.Linef("%s", b)
				return nil
			})
		},
	}
}
