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
}

func newRecoverDigestsCmd(c *cli.Env) *cobra.Command {
	o := &quarantineOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "digests",
		Short: "Compute the state digests of a stopped node",
		Long: `Compute the state of a stopped node from its snapshot and its log, and show its digests at the last
checkpoints and at the end. The output of -o json is the proof that quorate recover lift reads on another member.`,
		Example: `  quorate recover digests --data-dir /var/lib/quorate -o json > n2.json`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return o.showDigests() },
	}
	o.addDataDir(cmd)
	return cmd
}

func newRecoverLiftCmd(c *cli.Env) *cobra.Command {
	o := &quarantineOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "lift",
		Short: "Lift the quarantine of a stopped node whose state is proved correct",
		Long: `Lift the quarantine of a stopped node, if the state in its data folder, computed again, equals that of
more than half of the voters, itself among them, at one index that is not before the checkpoint of the quarantine.
Pass the states of the others as files of quorate recover digests -o json. Nothing is changed without that proof.`,
		Example: `  quorate recover lift --data-dir /var/lib/quorate --digests n1.json --digests n2.json`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return o.liftQuarantine() },
	}
	o.addDataDir(cmd)
	cmd.Flags().StringArrayVar(&o.digests, "digests", nil,
		"`FILE` with the digests of another member; may be repeated (required)")
	return cmd
}

func newRecoverStartOverCmd(c *cli.Env) *cobra.Command {
	o := &quarantineOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "start-over",
		Short: "Set aside the state of a stopped node in quarantine",
		Long: `Set aside the state of a stopped node in quarantine. Its next start is like that with an empty data
folder: it takes no part in decisions until the leader has taken its vote away, and gets the state of the others. A
majority of the others must be healthy for that.`,
		Example: `  quorate recover start-over --data-dir /var/lib/quorate`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return o.startOver() },
	}
	o.addDataDir(cmd)
	return cmd
}

func (o *quarantineOptions) addDataDir(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.dataDir, "data-dir", "", "data `FOLDER` of the stopped node (required)")
}

func (o *quarantineOptions) newLogger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Name: "recover", Level: hclog.Error, Output: o.ErrOut})
}

func (o *quarantineOptions) needDataDir() error {
	if o.dataDir == "" {
		return cli.Usagef("--data-dir is missing; see quorate recover --help")
	}
	return nil
}

func (o *quarantineOptions) showDigests() error {
	if err := o.needDataDir(); err != nil {
		return err
	}
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
	if err := o.needDataDir(); err != nil {
		return err
	}
	if len(o.digests) == 0 {
		return cli.Usagef("--digests is missing: name a file of quorate recover digests -o json for each other member")
	}
	var others []host.FolderDigests
	for _, path := range o.digests {
		text, err := os.ReadFile(path)
		if err != nil {
			return cli.Usagef("digests: %v", err)
		}
		var other host.FolderDigests
		if err := json.Unmarshal(text, &other); err != nil || other.ID == "" {
			return cli.Usagef("%s does not hold the digests of a member: %v", path,
				errors.Join(err, errors.New("make it with quorate recover digests -o json")))
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

func (o *quarantineOptions) startOver() error {
	if err := o.needDataDir(); err != nil {
		return err
	}
	folder, err := host.StartOver(o.dataDir, o.newLogger())
	if err != nil {
		return err
	}
	return o.PrintValue(map[string]string{"set_aside": folder}, func(p *cli.Page) error {
		p.Linef("The state was moved to %s. Start this server as before: it receives the state of the others.", folder)
		return nil
	})
}
