//go:build unix

package operate

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cluster/host"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/server"
)

type recoverOptions struct {
	*cli.Env
	dataDir, peers string
	dry            bool
}

func newRecoverCmd(c *cli.Env) *cobra.Command {
	o := &recoverOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Recover from the permanent loss of the majority with one stopped node",
		Long: `Give the stopped node of a data folder a new set of members, after the majority of the old set was
lost permanently. Every entry in its log counts from then on, also entries that no majority had; entries that only
the lost members had are lost.

Recover one node only: of the remaining ones the node with the highest index, which --dry-run shows. Remove the others
with their data folders and let them join as new nodes. The file with the peers, YAML or JSON, lists the members of the
cluster from now on, this node among them:

  peers:
    - {id: n1, address: 10.0.0.1:7201}
    - {id: n4, address: 10.0.0.4:7201, voter: true}

A node in quarantine is refused: its state was found to differ from that of the majority. quorate
quarantine lift lets it serve if its state is proved to be equal, or begin again from the state of the others.`,
		Example: `  quorate cluster recover --data-dir /var/lib/quorate --peers peers.yaml --dry-run
  quorate cluster recover --data-dir /var/lib/quorate --peers peers.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.runRecover() },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.dataDir, "data-dir", "", dataDirHelp+" (required)")
	flags.StringVar(&o.peers, "peers", "", "`FILE` with the new members, YAML or JSON (required)")
	flags.BoolVar(&o.dry, "dry-run", false, "only report what was found and what would be done")
	return cmd
}

func (o *recoverOptions) runRecover() error {
	for _, must := range []struct{ flag, value string }{{"data-dir", o.dataDir}, {"peers", o.peers}} {
		if must.value == "" {
			return cli.Usagef("--%s is missing; see quorate cluster recover --help", must.flag)
		}
	}
	peers, err := server.ReadPeers(o.peers)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	logger := hclog.New(&hclog.LoggerOptions{Name: "recover", Level: hclog.Warn, Output: o.ErrOut})
	done, err := host.Recover(o.dataDir, peers, o.dry, logger)
	if err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return o.PrintValue(done, func(p *cli.Page) error { return recoveryPage(p, done) })
}

func recoveryPage(p *cli.Page, r host.Recovery) error {
	rows := [][]string{
		{"node", r.ID + " of cluster " + r.Cluster},
		{"last entry", fmt.Sprintf("%d of term %d", r.Index, r.Term)},
		{"state", fmt.Sprintf("revision %d, %d trees, %d allocations held, %d waiting", r.State.Revision,
			r.State.Counts.Trees, r.State.Counts.Held, r.State.Counts.Waiting)},
		{"members before", peersText(r.Before)},
		{"members after", peersText(r.After)},
	}
	if err := p.Table(rows); err != nil {
		return err
	}
	p.Linef("")
	if !r.Done {
		p.Linef("Nothing was changed. Recover the node with the highest term and, among those, the highest " +
			"last entry: run")
		p.Linef("the command there without --dry-run.")
		return nil
	}
	p.Linef("Done. Start this server as before. Other members of the new configuration start with empty " +
		"data folders and")
	p.Linef("--bootstrap-expect 0; never with a data folder of the old cluster, whose log may end differently.")
	return nil
}

func peersText(peers []host.Peer) string {
	var texts []string
	for _, peer := range peers {
		text := peer.ID + " " + peer.Address
		if !peer.IsVoter() {
			text += " (non-voter)"
		}
		texts = append(texts, text)
	}
	return cmp.Or(strings.Join(texts, ", "), "0")
}
