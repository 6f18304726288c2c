package config

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/manifest"
)

// longestAnswer bounds the line that a person types.
const longestAnswer = 64 << 10

// createOptions are the answers to the five questions.
type createOptions struct {
	*cli.Env
	shares    []string
	teams     []string
	borrowing string
	waiting   bool
	renewing  bool
}

func newManifestCreateCmd(c *cli.Env) *cobra.Command {
	o := &createOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "create TREE",
		Short: "Ask five questions, and print a manifest with comments to begin with",
		Long: `Print a manifest of one tree, with comments that say what its parts are for. It asks no server and changes nothing:
look at it, change it, see what it would do with "quorate plan", and apply it.

At a terminal it asks what the flags do not say: what you share, who shares it, whether a team may use more than its
part, whether jobs wait, and whether holders renew. Elsewhere --share and --team must be given.

What is shared is NAME=AMOUNT. An amount with a suffix, such as 512Gi, counts bytes, one with a point or m thousandths,
and other ones count things; NAME=AMOUNT:UNIT says so, where UNIT is count, milli, bytes, or items: things with a name
of their own, such as accounts, which are leased one by one. Every team gets an equal part, to begin with.

  --borrowing none     the parts are fixed (policy strict)
  --borrowing unused   a team also uses what others leave unused, until it releases it (policy cohort)
  --borrowing reclaim  the same, and owners get their part back at once: borrowers are preempted (policy borrowing)`,
		Example: `  quorate manifest create farm > farm.yaml
  quorate manifest create farm --share account=40:items --share gpu=3 --team web --team data > farm.yaml
  quorate manifest create lab --share cores=400 --share memory=2Ti --team atlas --team cms --borrowing reclaim |
    quorate plan -f -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.runCreate(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.shares, "share", nil, "what is shared: `NAME=AMOUNT[:UNIT]`; may be repeated")
	flags.StringArrayVar(&o.teams, "team", nil, "the `NAME` of one who shares it; may be repeated")
	flags.StringVar(&o.borrowing, "borrowing", "none",
		"whether a team may use more than its part: none, unused or reclaim")
	flags.BoolVar(&o.waiting, "waiting", true, "jobs wait when nothing is free")
	flags.BoolVar(&o.renewing, "renewing", true, "holders renew, and what a dead one holds comes back")
	cli.CompleteFlag(cmd, "borrowing", "none", "unused", "reclaim")
	return cmd
}

func (o *createOptions) runCreate(cmd *cobra.Command, tree string) error {
	draft := draftManifest{tree: tree, waiting: o.waiting, renewing: o.renewing}
	err := errors.Join(draft.setShares(o.shares), draft.setTeams(o.teams), draft.setBorrowing(o.borrowing))
	if err != nil {
		return cli.Usagef("%s", err)
	}
	canAsk := cli.IsTerminal(o.In) && cli.IsTerminal(o.ErrOut)
	switch {
	case canAsk:
		if err := o.askMissing(cmd, &draft); err != nil {
			return err
		}
	case len(draft.shares) == 0:
		return cli.Usagef("what is shared? --share NAME=AMOUNT, such as --share cores=100 or --share account=40:items")
	case len(draft.teams) == 0:
		return cli.Usagef("who shares it? --team NAME, as often as there are teams")
	}
	text := []byte(draft.text())
	if _, err := manifest.Parse("the manifest", text); err != nil {
		return cli.Usagef("%s", err)
	}
	return o.Write(text)
}

// askMissing asks a person for what no flag says. A wrong answer is asked for again.
func (o *createOptions) askMissing(cmd *cobra.Command, draft *draftManifest) error {
	lines := bufio.NewReader(io.LimitReader(o.In, longestAnswer))
	questions := []struct {
		flag, text string
		take       func(answer string) error
	}{
		{
			"share", "1. What do you share? NAME=AMOUNT, such as: cores=400 memory=2Ti account=40:items\n> ",
			func(answer string) error { return draft.setShares(strings.Fields(answer)) },
		},
		{
			"team", "2. Who shares it? Names, such as: web mobile data\n> ",
			func(answer string) error { return draft.setTeams(strings.Fields(answer)) },
		},
		{
			"borrowing", "3. May a team use more than its part? none; unused: what others leave; " +
				"reclaim: until they want it back [none]\n> ",
			func(answer string) error { return draft.setBorrowing(cmp.Or(answer, "none")) },
		},
		{
			"waiting", "4. Do jobs wait when nothing is free? [Y/n]\n> ",
			func(answer string) (err error) { draft.waiting, err = isYes(answer); return err },
		},
		{
			"renewing", "5. Do holders renew, so that what a dead one holds comes back? [Y/n]\n> ",
			func(answer string) (err error) { draft.renewing, err = isYes(answer); return err },
		},
	}
	for _, q := range questions {
		if cmd.Flags().Changed(q.flag) {
			continue
		}
		for isAnswered := false; !isAnswered; {
			if _, err := fmt.Fprint(o.ErrOut, q.text); err != nil {
				return fmt.Errorf("ask: %w", err)
			}
			line, err := lines.ReadString('\n')
			if err != nil {
				return cli.Usagef("the questions were not answered; --%s answers this one", q.flag)
			}
			err = q.take(strings.TrimSpace(line))
			if isAnswered = err == nil; !isAnswered {
				o.Messagef("%s", err)
			}
		}
	}
	if len(draft.shares) == 0 || len(draft.teams) == 0 {
		return cli.Usagef("--share and --team must not be empty")
	}
	return nil
}

// isYes reads an answer, of which an empty one means yes.
func isYes(answer string) (bool, error) {
	switch strings.ToLower(answer) {
	case "", "y", "yes":
		return true, nil
	case "n", "no":
		return false, nil
	}
	return false, errors.New("answer y or n")
}
