package lease

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

type watchOptions struct {
	*cli.Env
	tree, node, after string
	ids               []string
	limit             int
}

func newWatchCmd(c *cli.Env) *cobra.Command {
	o := &watchOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Stream changes of allocations until interrupted",
		Long: `Stream changes of allocations: requests that wait, grants, revocations, and allocations that shrink or
end, one line per change, or with -o json one line of JSON. The first column is the position: after an interruption,
--after continues from it, at any server. The servers keep the last 65,536 changes.`,
		Example: `  quorate watch --tree ci
  quorate watch --after 4711.2 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runWatch(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.tree, "tree", "", "only allocations with a claim in this tree")
	flags.StringVar(&o.node, "node", "", "only those with a claim at this node of the tree or below it")
	flags.StringArrayVar(&o.ids, "id", nil, "only the allocation of this `ID`; may be repeated")
	flags.StringVar(&o.after, "after", "", "begin after this `POSITION`, or after the index of an answer (default: now)")
	flags.IntVar(&o.limit, "limit", 0, "stop after this many changes (default: never)")
	return cmd
}

// errEnough ends a watch after --limit changes.
var errEnough = errors.New("enough")

func (o *watchOptions) runWatch(ctx context.Context) error {
	request := &quoratev1.WatchAllocationsRequest{Tree: o.tree, Node: o.node, Ids: o.ids}
	switch {
	case o.node != "" && o.tree == "":
		return cli.Usagef("--node needs --tree")
	case o.limit < 0:
		return cli.Usagef("--limit must not be negative")
	case o.Output == cli.OutputYAML:
		return cli.Usagef("watch cannot print YAML: use -o json for one line of JSON per change")
	}
	if err := parsePosition(o.after, request); err != nil {
		return err
	}
	o.Patient = true
	quorate, limited, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	o.LearnUnitsForTable(limited, quorate)
	seen := 0
	err = quorate.Watch(ctx, request, func(m *quoratev1.WatchAllocationsResponse) error {
		if err := o.printEvents(m); err != nil {
			return err
		}
		if seen++; seen == o.limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) || ctx.Err() != nil && !errors.Is(err, client.ErrUnavailable) {
		return nil // --limit is reached, or the command was interrupted
	}
	return err
}

// parsePosition parses INDEX or INDEX.NUMBER; an empty text means now.
func parsePosition(text string, request *quoratev1.WatchAllocationsRequest) error {
	if text == "" {
		return nil
	}
	index, number, numbered := strings.Cut(text, ".")
	var err error
	if request.AfterIndex, err = strconv.ParseUint(index, 10, 64); err != nil || request.GetAfterIndex() == 0 {
		return cli.Usagef("--after %q is not a position: use one from the first column, such as 4711.2, or the index "+
			"of an answer", text)
	}
	if numbered {
		part, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return cli.Usagef("--after %q is not a position: use one from the first column, such as 4711.2", text)
		}
		request.AfterNumber = uint32(part)
	}
	return nil
}

// printEvents prints one change on one line.
func (o *watchOptions) printEvents(m *quoratev1.WatchAllocationsResponse) error {
	if o.Output == cli.OutputJSON {
		text, err := compactJSON(m)
		if err != nil {
			return err
		}
		return o.Write(text)
	}
	a := m.GetAllocation()
	words := []string{
		fmt.Sprintf("%-8s", fmt.Sprintf("%d.%d", m.GetIndex(), m.GetNumber())),
		fmt.Sprintf("%-9s", strings.ToLower(strings.TrimPrefix(m.GetChange().String(), "ALLOCATION_CHANGE_"))),
		a.GetId(), o.Units.ClaimsText(a),
	}
	for _, more := range []string{changeText(m), cli.WaitingText(a)} {
		if more != "" {
			words = append(words, "("+more+")")
		}
	}
	return o.Write([]byte(cli.Printable(strings.Join(words, "  ")) + "\n"))
}

// changeText describes how an allocation ended, or why it will end.
func changeText(m *quoratev1.WatchAllocationsResponse) string {
	a := m.GetAllocation()
	switch m.GetChange() {
	case quoratev1.AllocationChange_ALLOCATION_CHANGE_ENDED:
		text := cli.StateText(a)
		if by := a.GetPreemptedBy(); by != "" {
			text += " by " + by
		}
		return text
	case quoratev1.AllocationChange_ALLOCATION_CHANGE_REVOKED:
		return cli.LeaseText(a, m.GetLedgerTimeMs())
	case quoratev1.AllocationChange_ALLOCATION_CHANGE_UNSPECIFIED, quoratev1.AllocationChange_ALLOCATION_CHANGE_WAITING,
		quoratev1.AllocationChange_ALLOCATION_CHANGE_GRANTED, quoratev1.AllocationChange_ALLOCATION_CHANGE_CONFIRMED,
		quoratev1.AllocationChange_ALLOCATION_CHANGE_RESTORED, quoratev1.AllocationChange_ALLOCATION_CHANGE_SHRUNK,
		quoratev1.AllocationChange_ALLOCATION_CHANGE_RESIZED:
	}
	return ""
}

// compactJSON writes a message on one line, identically on every run.
func compactJSON(m *quoratev1.WatchAllocationsResponse) ([]byte, error) {
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer // protojson deliberately varies its spacing between builds
	if err := json.Compact(&line, text); err != nil {
		return nil, err
	}
	line.WriteByte('\n')
	return line.Bytes(), nil
}
