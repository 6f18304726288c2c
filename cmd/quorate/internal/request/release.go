package request

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

type releaseOptions struct {
	*cli.Env
	items []string
	state string
}

func newReleaseCmd(c *cli.Env) *cobra.Command {
	o := &releaseOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "release ID",
		Short: "End an allocation and free everything it held",
		Long: `End an allocation and free everything it held, or take a request out of the queue. Repeating it is
safe: an allocation that has already ended is shown again.

With --item only these items are released; the allocation keeps the rest, and ends with its last item.`,
		Example: `  quorate release job-1
  quorate release job-4 --state dirty
  quorate release job-4 --item ci:aws-account:account-1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.runRelease(cmd.Context(), args[0]) },
	}
	cmd.Flags().StringArrayVar(&o.items, "item", nil, "release only the item `TREE:RESOURCE:NAME`; may be repeated")
	cmd.Flags().StringVar(&o.state, "state", "", "new state of its items (default: the setting of the resource)")
	return cmd
}

func (o *releaseOptions) runRelease(ctx context.Context, id string) error {
	request := &quoratev1.ReleaseRequest{Id: id, ItemState: o.state}
	for _, text := range o.items {
		item, err := ParseItem(text)
		if err != nil {
			return err
		}
		request.Items = append(request.Items, item)
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.Release(ctx, request)
	if err != nil {
		return err
	}
	o.Messagef("released")
	o.LearnUnitsForTable(ctx, quorate)
	return o.Print(answer, func(p *cli.Page) error { return o.Units.DrawAllocation(p, answer.GetAllocation(), 0) })
}

// ParseItem parses TREE:RESOURCE:NAME.
func ParseItem(text string) (*quoratev1.ItemName, error) {
	parts := strings.Split(text, ":")
	for _, part := range parts {
		if part == "" || len(parts) != 3 {
			return nil, cli.Usagef(
				"%q is not an item: write TREE:RESOURCE:NAME, for example ci:aws-account:account-1", text)
		}
	}
	return &quoratev1.ItemName{Tree: parts[0], Resource: parts[1], Name: parts[2]}, nil
}

// ItemText writes an item as ParseItem takes it.
func ItemText(item *quoratev1.ItemName) string {
	return item.GetTree() + ":" + item.GetResource() + ":" + item.GetName()
}
