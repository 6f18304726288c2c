package operate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/pki"
)

const (
	day = 24 * time.Hour
	// authorityDays and certificateDays are the default validity.
	authorityDays   = 3650
	certificateDays = 365
)

// localHosts are the loopback names of a machine.
var localHosts = []string{"localhost", "127.0.0.1", "::1"}

type makeOptions struct {
	*cli.Env
	cluster, out string
	hosts        []string
	days         int
}

func newTLSCmd(c *cli.Env) *cobra.Command {
	group := cli.NewGroup("tls", "Create and inspect certificates and keys",
		newTLSInitCmd(c), newTLSNodeCmd(c), newTLSClientCmd(c), newTLSInspectCmd(c), newGossipKeyCmd(c))
	group.Long = `Create and inspect certificates and keys.

"init" creates an authority for one cluster and everything else that encryption needs. Any other authority works as
well, if the certificates of nodes have the URI quorate://cluster/CLUSTER/node/ID among their alternative names.
Files are created readable by their owner only, and never overwritten.`
	return group
}

func newTLSInitCmd(c *cli.Env) *cobra.Command {
	o := makeOptions{Env: c}
	var nodes []string
	client, authority, keep := "", 0, false
	cmd := &cobra.Command{
		Use:   "init DIR --nodes ID[=HOST][,ID[=HOST]...]",
		Short: "Create an authority, certificates for nodes and a client, a gossip key and a bootstrap secret",
		Example: "  quorate tls init certs --nodes n1,n2,n3\n" +
			"  quorate tls init certs --nodes n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3 --hosts quorate.example.org",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			folder := pki.Folder(args[0])
			if keep && folder.HasAuthority() {
				return o.keepAuthority(folder, nodes, client)
			}
			return o.initAuthority(folder, nodes, client, authority)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&nodes, "nodes", nil, "ids of the nodes, each optionally with its host or address (required)")
	flags.StringVar(&o.cluster, "cluster-name", "quorate", "name of the cluster, as in the settings of its servers")
	flags.StringVar(&client, "client", "client", "name of the client")
	flags.IntVar(&authority, "ca-days", authorityDays, "validity of the authority in days")
	flags.BoolVar(&keep, "keep", false, "succeed without a change if the folder has all of this already")
	o.addHosts(cmd)
	o.addDays(cmd)
	return cmd
}

func (o *makeOptions) addHosts(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&o.hosts, "hosts", localHosts, "names and addresses at which clients reach a node")
}

func (o *makeOptions) addDays(cmd *cobra.Command) {
	cmd.Flags().IntVar(&o.days, "days", certificateDays,
		"validity of a certificate in days, at most that of the authority")
}

// initAuthority creates everything in memory before it writes files, so that an error leaves none.
func (o *makeOptions) initAuthority(folder pki.Folder, nodes []string, client string, authorityDays int) error {
	if len(nodes) == 0 {
		return cli.Usagef("--nodes is missing: name the ids of the nodes, such as --nodes n1,n2,n3")
	}
	if authorityDays <= 0 || o.days <= 0 {
		return cli.Usagef("--days and --ca-days must be more than 0")
	}
	authority, own, err := pki.NewAuthority(o.cluster, time.Duration(authorityDays)*day)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	var names []string
	pairs := map[string]pki.Pair{}
	for _, node := range nodes {
		id, host, with := strings.Cut(node, "=")
		hosts := slices.Clone(o.hosts)
		if with {
			hosts = append(hosts, host)
		}
		if pairs[id], err = authority.Node(id, hosts, o.validity()); err != nil {
			return cli.Usagef("%v", err)
		}
		names = append(names, id)
	}
	if pairs[client].Cert != nil {
		return cli.Usagef("--client %s: a node has that name", client)
	}
	if pairs[client], err = authority.Client(client, o.validity()); err != nil {
		return cli.Usagef("%v", err)
	}
	if err := folder.Init(own); err != nil {
		return err
	}
	o.Messagef("%s: the authority of cluster %s; keep %s off the servers", folder.CA(), o.cluster, folder.Key("ca"))
	for _, name := range append(names, client) {
		if err := o.writePair(folder, name, pairs[name]); err != nil {
			return err
		}
	}
	o.Messagef("%s: a gossip key for all nodes", folder.GossipKeys())
	o.Messagef("%s: the secret for the first token, for all nodes and one \"quorate access bootstrap\"",
		folder.BootstrapSecret())
	return nil
}

// keepAuthority checks that a folder has everything that init writes, because an earlier one may have been interrupted.
func (o *makeOptions) keepAuthority(folder pki.Folder, nodes []string, client string) error {
	files := []string{folder.GossipKeys(), folder.BootstrapSecret()}
	for _, node := range append([]string{client}, nodes...) {
		id, _, _ := strings.Cut(node, "=")
		files = append(files, folder.Cert(id), folder.Key(id))
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%s has an authority, but not all that belongs to it: %w", string(folder), err)
		}
	}
	o.Messagef("%s: kept, with all that belongs to it", folder.CA())
	return nil
}

func (o *makeOptions) validity() time.Duration { return time.Duration(o.days) * day }

func (o *makeOptions) writePair(folder pki.Folder, name string, pair pki.Pair) error {
	if err := folder.Write(name, pair); err != nil {
		return err
	}
	o.Messagef("%s: with its key %s", folder.Cert(name), filepath.Base(folder.Key(name)))
	return nil
}

func newTLSNodeCmd(c *cli.Env) *cobra.Command {
	o := makeOptions{Env: c}
	id := ""
	cmd := &cobra.Command{
		Use:   "node DIR --id ID",
		Short: "Create a certificate for a node",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return o.issueCertificate(args[0], id, func(a *pki.Authority) (pki.Pair,
				error,
			) {
				return a.Node(id, o.hosts, o.validity())
			})
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "id of the node (required)")
	o.addHosts(cmd)
	o.addOut(cmd)
	return cmd
}

func newTLSClientCmd(c *cli.Env) *cobra.Command {
	o := makeOptions{Env: c}
	name := ""
	cmd := &cobra.Command{
		Use:   "client DIR --name NAME",
		Short: "Create a certificate for a client",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return o.issueCertificate(args[0], name,
				func(a *pki.Authority) (pki.Pair, error) { return a.Client(name, o.validity()) })
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the client (required)")
	o.addOut(cmd)
	return cmd
}

func (o *makeOptions) addOut(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.out, "out", "", "folder for the new files (default: the folder of the authority)")
	o.addDays(cmd)
}

func (o *makeOptions) issueCertificate(dir, name string, issue func(*pki.Authority) (pki.Pair, error)) error {
	if o.days <= 0 {
		return cli.Usagef("--days must be more than 0")
	}
	authority, err := pki.Folder(dir).Authority()
	if err != nil {
		return err
	}
	pair, err := issue(authority)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	out := pki.Folder(dir)
	if o.out != "" {
		out = pki.Folder(o.out)
	}
	if err := out.Make(); err != nil {
		return err
	}
	return o.writePair(out, name, pair)
}

func newGossipKeyCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "gossip-key",
		Short:   "Print a new gossip key, one line of the file that gossip-keys-file names",
		Example: "  (umask 077; quorate tls gossip-key > gossip.keys)",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return c.Write(fmt.Appendln(nil, pki.NewGossipKey())) },
	}
}
