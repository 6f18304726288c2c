//go:build unix

package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/server"
)

// probeTimeout is how long a health check takes at most unless --timeout is given. It is shorter than the intervals of
// the systems that run health checks.
const probeTimeout = 3 * time.Second

// mostHealthText bounds how much of an answer is read.
const mostHealthText = 4 << 10

type healthcheckOptions struct {
	*cli.Env

	config string
	live   bool
}

func newProbeCmd(c *cli.Env) *cobra.Command {
	o := &healthcheckOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Ask the server on this machine whether it is ready",
		Long: `Ask the server on this machine once whether it is ready: it knows a leader and has caught up. With --live,
ask only whether its process works.

The address and the certificates are those of the server: they come from the file of --config and from the same
QUORATE_SERVER_… variables as for "quorate server run", so that a container needs no settings for its health check.
The certificate of the node is presented, and no other server is accepted. With --server or --tls-… flags, or
QUORATE_SERVER, that server is asked, as by any other command, but only once.

The exit code is 0 if the server is ready and 1 for every other answer and for none, with the reason in one line.`,
		Example: `  quorate server probe --config /etc/quorate/quorate.yaml
  quorate server probe --server https://10.0.0.1:7101 --tls-ca ca.crt --live`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.runHealthcheck(cmd.Context(), cmd.Flags()); err != nil {
				return &cli.FixedError{Err: err, Code: cli.ExitFailure}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&o.config, server.ConfigFlag, "",
		"configuration `FILE` of the server (environment: "+server.EnvironmentVariable(server.ConfigFlag)+")")
	cmd.Flags().BoolVar(&o.live, "live", false, "ask whether the process works, also while it is not ready")
	return cmd
}

func (o *healthcheckOptions) runHealthcheck(ctx context.Context, flags *pflag.FlagSet) error {
	if !flags.Changed("timeout") {
		o.Timeout = probeTimeout
	}
	if o.Timeout <= 0 {
		return cli.Usagef("--timeout must be positive")
	}
	probe, err := o.probe(flags)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	health, err := o.askHealth(ctx, probe)
	if err != nil {
		return err
	}
	return o.PrintValue(health, func(p *cli.Page) error {
		p.Linef("%s is %s%s", health.Server, health.State, health.warningText())
		return nil
	})
}

func (o *healthcheckOptions) probe(flags *pflag.FlagSet) (server.Probe, error) {
	if !isServerNamed(flags) {
		settings := pflag.NewFlagSet("", pflag.ContinueOnError)
		server.AddFlags(settings)
		if err := settings.Set(server.ConfigFlag, o.config); err != nil {
			return server.Probe{}, fmt.Errorf("set --%s: %w", server.ConfigFlag, err)
		}
		return server.LoadProbe(settings, os.Environ())
	}
	if o.config != "" {
		return server.Probe{}, cli.Usagef("name either --config or a server, not both")
	}
	return o.namedProbe()
}

func isServerNamed(flags *pflag.FlagSet) bool {
	named := []string{"server", "context", "tls-ca", "tls-cert", "tls-key", "tls-server-name"}
	return slices.ContainsFunc(named, flags.Changed) || os.Getenv(cli.ServerVariable) != "" ||
		os.Getenv(cli.ContextVariable) != ""
}

func (o *healthcheckOptions) namedProbe() (server.Probe, error) {
	address, secure, err := o.OnlyServer()
	return server.Probe{URL: address, TLS: secure}, err
}

type health struct {
	Server  string `json:"server"`
	State   string `json:"state"`
	Warning string `json:"warning,omitempty"`
}

func (h health) warningText() string {
	if h.Warning == "" {
		return ""
	}
	return "; warning: " + h.Warning
}

// askHealth asks once. A redirection is an answer that is not 200: the server itself is asked, and nothing else.
func (o *healthcheckOptions) askHealth(ctx context.Context, probe server.Probe) (health, error) {
	path, state := "/readyz", "ready"
	if o.live {
		path, state = "/livez", "live"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, probe.URL+path, nil)
	if err != nil {
		return health{}, fmt.Errorf("ask %s: %w", probe.URL, err)
	}
	answer, err := directClient(probe.TLS).Do(request)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = failed.Err // without the address, which the message names
	}
	if err != nil {
		return health{}, fmt.Errorf("%s does not answer: %w", probe.URL, err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostHealthText))
	if err != nil {
		return health{}, fmt.Errorf("%s does not answer completely: %w", probe.URL, err)
	}
	said := strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "; ")
	if answer.StatusCode != http.StatusOK {
		return health{}, fmt.Errorf("%s is not %s: %s (%s)", probe.URL, state, said, answer.Status)
	}
	_, warning, _ := strings.Cut(said, "warning: ")
	return health{Server: probe.URL, State: state, Warning: warning}, nil
}

// directClient ignores the proxies of the environment.
func directClient(secure *tls.Config) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
