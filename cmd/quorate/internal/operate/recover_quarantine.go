//go:build unix

package operate

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cluster/host"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type quarantineOptions struct {
	*cli.Env
	dataDir string
	digests []string
	discard bool
}

func newQuarantineLiftCmd(c *cli.Env) *cobra.Command {
	o := &quarantineOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "lift --data-dir FOLDER {--digests FILE... | --discard}",
		Short: "Let a stopped node in quarantine take part again, with a proof or without its state",
		Long: `Let a stopped node in quarantine take part again at its next start, in one of two ways.

With --digests, if the state in its data folder, computed again, equals that of more than half of the voters, itself
among them, at one index that is not before the checkpoint of the quarantine. Pass the states of the others as files of
quorate digest list --data-dir -o json. Nothing is changed without that proof.

With --discard its state is set aside. Its next start is like that with an empty data folder: it takes no part in
decisions until the leader has taken its vote away, and gets the state of the others. A majority of the others must be
healthy for that.`,
		Example: `  quorate quarantine lift --data-dir /var/lib/quorate --digests n1.json --digests n2.json
  quorate quarantine lift --data-dir /var/lib/quorate --discard`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch {
			case o.dataDir == "":
				return cli.Usagef("--data-dir is missing; see quorate quarantine lift --help")
			case o.discard == (len(o.digests) > 0):
				return cli.Usagef("name either a file of quorate digest list --data-dir -o json for each other member with " +
					"--digests, or --discard")
			case o.discard:
				return o.discardState()
			}
			return o.liftQuarantine()
		},
	}
	cmd.Flags().StringVar(&o.dataDir, "data-dir", "", dataDirHelp+" (required)")
	cmd.Flags().StringArrayVar(&o.digests, "digests", nil, "`FILE` with the digests of another member; may be repeated")
	cmd.Flags().BoolVar(&o.discard, "discard", false, "set its state aside; it gets that of the others")
	return cmd
}

// dataDirHelp is the help of a flag for the data folder of a node that does not run.
const dataDirHelp = "data `FOLDER` of the stopped node"

func (o *quarantineOptions) newLogger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Name: "recover", Level: hclog.Error, Output: o.ErrOut})
}

func (o *quarantineOptions) showDigests() error {
	found, err := host.ComputeDigests(o.dataDir, o.newLogger())
	if err != nil {
		return err
	}
	return o.PrintValue(found, func(p *cli.Page) error {
		rows := [][]string{{"INDEX", "DIGEST"}}
		for _, d := range found.Digests {
			rows = append(rows, []string{fmt.Sprint(d.Index), d.Digest})
		}
		p.Linef("node %s of cluster %s, voters %s", found.ID, found.Cluster, strings.Join(found.Voters, ", "))
		if found.Quarantine != "" {
			p.Linef("in quarantine: %s", found.Quarantine)
		}
		return p.Table(rows)
	})
}

func (o *quarantineOptions) liftQuarantine() error {
	var others []host.FolderDigests
	for _, path := range o.digests {
		text, err := os.ReadFile(path)
		if err != nil {
			return cli.Usagef("digests: %v", err)
		}
		var other host.FolderDigests
		if err := json.Unmarshal(text, &other); err != nil || other.ID == "" {
			return cli.Usagef("%s does not hold the digests of a member: %v", path,
				errors.Join(err, errors.New("make it with quorate digest list --data-dir -o json")))
		}
		others = append(others, other)
	}
	proof, err := host.LiftQuarantine(o.dataDir, others, o.newLogger())
	if err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return o.PrintValue(proof, func(p *cli.Page) error {
		p.Linef("Node %s may serve again: at index %d its state equals that of %s. Start this server as before.",
			proof.ID,
			proof.Index, strings.Join(proof.Members, ", "))
		return nil
	})
}

func (o *quarantineOptions) discardState() error {
	folder, err := host.StartOver(o.dataDir, o.newLogger())
	if err != nil {
		return err
	}
	return o.PrintValue(map[string]string{"set_aside": folder}, func(p *cli.Page) error {
		p.Linef("The state was moved to %s. Start this server as before: it receives the state of the others.", folder)
		return nil
	})
}
