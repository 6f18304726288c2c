// Package cli is what all commands share: the connection to a cluster, output, exit codes, and how amounts, places and
// allocations are written. Start reading at [Env].
package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Env is what all commands share: the streams, the global flags, and units that were read from a server.
type Env struct {
	In          io.Reader
	Out, ErrOut io.Writer
	Build       Build
	// Args are the arguments of this process.
	Args []string

	Servers []string
	// Context is the context that --context or the environment names; empty for the current one.
	Context string
	// Namespace is that of the ids in the command line and of what lists show; empty for that of the caller, and for all.
	Namespace string
	Timeout   time.Duration
	Output    string
	// JQ is the expression of --jq; empty for none.
	JQ    string
	Stale bool
	TLS   tlsOptions
	Token tokenOptions
	// MinIndex is a log index that a stale answer must reflect; 0 for none.
	MinIndex uint64

	Patient bool  // the command may take longer than its timeout
	Started bool  // the command line was parsed; later failures are not usage errors
	Units   Units // of resources known so far, for output and errors

	columns      []string // those that a table shows; empty for all
	query        *query   // that of JQ; nil for none
	contextError error    // why the context cannot be used

	following bool // the answer is shown again and again, see Following
}

// Connect returns a client and a context that is bounded by --timeout.
func (c *Env) Connect(ctx context.Context) (*client.Client, context.Context, context.CancelFunc, error) {
	if c.Timeout <= 0 {
		return nil, nil, nil, Usagef("--timeout must be positive")
	}
	quorate, err := c.NewClient()
	if err != nil {
		return nil, nil, nil, err
	}
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	return quorate, limited, cancel, nil
}

// NewClient returns a client for the servers and certificates of the command line.
func (c *Env) NewClient(more ...client.Option) (*client.Client, error) {
	if c.contextError != nil {
		return nil, c.contextError
	}
	options := append([]client.Option{
		client.WithNotice(c.reportRetries()), client.WithPatience(c.Timeout), client.WithoutUnknownHosts(),
		client.WithNamespace(c.Namespace),
	}, more...)
	secure, err := c.TLS.clientConfig()
	if err != nil {
		return nil, Usagef("%v", err)
	}
	if secure != nil {
		options = append(options, client.WithTLS(secure))
	}
	token, err := c.Token.clientOptions()
	if err != nil {
		return nil, Usagef("%v", err)
	}
	options = append(options, token...)
	quorate, err := client.New(c.Servers, append(options, more...)...)
	if err != nil {
		return nil, Usagef("%v", err)
	}
	return quorate, nil
}

// OnlyServer returns the URL of the one server that is named, without a slash at its end, and the TLS configuration for
// it, which is nil if no certificates are named.
func (c *Env) OnlyServer() (string, *tls.Config, error) {
	if c.contextError != nil {
		return "", nil, c.contextError
	}
	if len(c.Servers) != 1 {
		return "", nil, Usagef("name exactly one server, the one to ask: --server URL")
	}
	secure, err := c.TLS.clientConfig()
	if err != nil {
		return "", nil, Usagef("%v", err)
	}
	address, err := client.ParseServer(c.Servers[0], secure != nil)
	if err != nil {
		return "", nil, Usagef("%v", err)
	}
	return strings.TrimSuffix(address.String(), "/"), secure, nil
}

// reportRetries reports only the failed attempt after which every server has been tried: while another server may
// answer at once, there is nothing to wait for.
func (c *Env) reportRetries() func(error) {
	var failures atomic.Int64
	return func(err error) {
		span := ""
		if !c.Patient {
			span = fmt.Sprintf(" for up to %v", c.Timeout)
		}
		if failures.Add(1) == int64(len(c.Servers)) {
			c.Messagef("no answer yet, trying again%s: %s", span, ErrorText(err))
		}
	}
}

// ReadOptions is the consistency that --stale and --min-index ask for; nil for linearizable reads.
func (c *Env) ReadOptions() *quoratev1.ReadOptions {
	if c.Stale || c.MinIndex > 0 {
		return &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE, MinIndex: c.MinIndex}
	}
	return nil
}

// Messagef prints a line on standard error, which is for people; programs read standard output.
func (c *Env) Messagef(format string, args ...any) {
	_, _ = fmt.Fprintf(c.ErrOut, format+"\n", printableArgs(args, printableText)...) // a failure cannot be reported
}

// ReportAge prints how old a stale answer may be.
func (c *Env) ReportAge(read *quoratev1.ReadInfo) {
	if read.GetConsistency() == quoratev1.Consistency_CONSISTENCY_STALE && !c.following {
		age := time.Duration(read.GetAgeMs()) * time.Millisecond
		c.Messagef("stale: answered by %s at index %d; it heard from the leader %v ago",
			read.GetServedBy(), read.GetIndex(), age)
	}
}

// ReportFiltered prints that a table has only what the caller may see. In the other forms of output a field tells it.
func (c *Env) ReportFiltered(answer interface{ GetFiltered() bool }) {
	if answer.GetFiltered() && c.IsTable() {
		c.Messagef("filtered: these are the parts that you may see; quorate access whoami shows who you are")
	}
}

// LearnUnitsForTable fetches the units if the output is a table. A failure is only reported: amounts are then shown
// in base units.
func (c *Env) LearnUnitsForTable(ctx context.Context, quorate *client.Client) {
	if !c.IsTable() {
		return
	}
	if err := c.LearnUnits(ctx, quorate); err != nil {
		c.Messagef("amounts are in base units, because their units could not be read: %s", ErrorText(err))
	}
}

// LearnUnits fetches the units of all resources of all trees.
func (c *Env) LearnUnits(ctx context.Context, quorate *client.Client) error {
	answer, err := quorate.Trees.ListTrees(ctx, &quoratev1.ListTreesRequest{Read: c.ReadOptions()})
	if err != nil {
		return err
	}
	c.Units = Units{}
	for _, tree := range answer.GetTrees() {
		c.Units.AddTree(tree.GetName(), tree.GetResources())
	}
	return nil
}
