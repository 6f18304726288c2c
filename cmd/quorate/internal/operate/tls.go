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
	cluster, client, out string
	nodes, hosts         []string
	days, authorityDays  int
	existsOK             bool
}

func newTLSCreateCmd(c *cli.Env) *cobra.Command {
	o := &makeOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "create DIR {--nodes ID[=HOST][,ID[=HOST]...] | --client NAME}",
		Short: "Create an authority with all that encryption needs, or more certificates of one",
		Long: `Create everything that encryption needs, in a folder that has no authority yet: an authority for one
cluster, a certificate for each node and for a client, a gossip key and a bootstrap secret. In a folder with an
authority, create certificates of it for further nodes, or for a client.

Any other authority works as well, if the certificates of nodes have the URI quorate://cluster/CLUSTER/node/ID among
their alternative names. Files are created readable by their owner only, and never overwritten.`,
		Example: `  quorate tls create certs --nodes n1,n2,n3
  quorate tls create certs --nodes n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3 --hosts quorate.example.org
  quorate tls create certs --nodes n4=10.0.0.4
  quorate tls create certs --client ci --days 90 --out ci`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.create(pki.Folder(args[0]), cmd.Flags().Changed)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.nodes, "nodes", nil, "ids of the nodes, each optionally with its host or address")
	flags.StringVar(&o.cluster, "cluster-name", "quorate", "name of the cluster, as in the settings of its servers")
	flags.StringVar(&o.client, "client", defaultClient, "`NAME` of the client")
	flags.IntVar(&o.authorityDays, "ca-days", authorityDays, "validity of a new authority in days")
	flags.BoolVar(&o.existsOK, "exists-ok", false, "succeed without a change if the folder has all of this already")
	flags.StringSliceVar(&o.hosts, "hosts", localHosts, "names and addresses at which clients reach a node")
	flags.IntVar(&o.days, "days", certificateDays, "validity of a certificate in days, at most that of the authority")
	flags.StringVar(&o.out, "out", "", "folder for further certificates (default: that of the authority)")
	return cmd
}

// defaultClient is the name of the client of a new authority.
const defaultClient = "client"

func (o *makeOptions) create(folder pki.Folder, isSet func(flag string) bool) error {
	if o.authorityDays <= 0 || o.days <= 0 {
		return cli.Usagef("--days and --ca-days must be more than 0")
	}
	if !folder.HasAuthority() {
		if o.out != "" {
			return cli.Usagef("--out is for further certificates: %s has no authority yet", string(folder))
		}
		return o.initAuthority(folder)
	}
	if o.existsOK {
		return o.keepAuthority(folder)
	}
	for _, flag := range []string{"cluster-name", "ca-days"} {
		if isSet(flag) {
			return cli.Usagef("--%s is for a new authority: %s has one already", flag, string(folder))
		}
	}
	if len(o.nodes) == 0 && !isSet("client") {
		return cli.Usagef("%s has an authority: name nodes with --nodes, or a client with --client", string(folder))
	}
	return o.issueCertificates(folder, isSet("client"))
}

// certificateOf makes a certificate of a node, named ID or ID=HOST.
func (o *makeOptions) certificateOf(authority *pki.Authority, node string) (id string, pair pki.Pair, err error) {
	id, host, with := strings.Cut(node, "=")
	hosts := slices.Clone(o.hosts)
	if with {
		hosts = append(hosts, host)
	}
	pair, err = authority.Node(id, hosts, o.validity())
	return id, pair, err
}

// initAuthority creates everything in memory before it writes files, so that an error leaves none.
func (o *makeOptions) initAuthority(folder pki.Folder) error {
	if len(o.nodes) == 0 {
		return cli.Usagef("--nodes is missing: name the ids of the nodes, such as --nodes n1,n2,n3")
	}
	authority, own, err := pki.NewAuthority(o.cluster, time.Duration(o.authorityDays)*day)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	var names []string
	pairs := map[string]pki.Pair{}
	for _, node := range o.nodes {
		id, pair, err := o.certificateOf(authority, node)
		if err != nil {
			return cli.Usagef("%v", err)
		}
		pairs[id], names = pair, append(names, id)
	}
	if pairs[o.client].Cert != nil {
		return cli.Usagef("--client %s: a node has that name", o.client)
	}
	if pairs[o.client], err = authority.Client(o.client, o.validity()); err != nil {
		return cli.Usagef("%v", err)
	}
	if err := folder.Init(own); err != nil {
		return err
	}
	o.Messagef("%s: the authority of cluster %s; keep %s off the servers", folder.CA(), o.cluster, folder.Key("ca"))
	for _, name := range append(names, o.client) {
		if err := o.writePair(folder, name, pairs[name]); err != nil {
			return err
		}
	}
	o.Messagef("%s: a gossip key for all nodes", folder.GossipKeys())
	o.Messagef("%s: the secret for the first token, for all nodes and one \"quorate token create\"",
		folder.BootstrapSecret())
	return nil
}

// keepAuthority checks that a folder has everything that initAuthority writes, because an earlier one may have been
// interrupted.
func (o *makeOptions) keepAuthority(folder pki.Folder) error {
	files := []string{folder.GossipKeys(), folder.BootstrapSecret()}
	for _, node := range append([]string{o.client}, o.nodes...) {
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

// issueCertificates makes further certificates of the authority in a folder, all of them before it writes files.
func (o *makeOptions) issueCertificates(folder pki.Folder, forClient bool) error {
	authority, err := folder.Authority()
	if err != nil {
		return err
	}
	var names []string
	pairs := map[string]pki.Pair{}
	for _, node := range o.nodes {
		id, pair, err := o.certificateOf(authority, node)
		if err != nil {
			return cli.Usagef("%v", err)
		}
		pairs[id], names = pair, append(names, id)
	}
	if forClient {
		if pairs[o.client], err = authority.Client(o.client, o.validity()); err != nil {
			return cli.Usagef("%v", err)
		}
		names = append(names, o.client)
	}
	if o.out != "" {
		folder = pki.Folder(o.out)
	}
	if err := folder.Make(); err != nil {
		return err
	}
	for _, name := range names {
		if err := o.writePair(folder, name, pairs[name]); err != nil {
			return err
		}
	}
	return nil
}
