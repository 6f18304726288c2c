package cli

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/quorate/quorate/client"
)

// Variables of the environment that name the credential of the caller.
const (
	tokenFileVariable = "QUORATE_TOKEN_FILE" //nolint:gosec // names of variables, not credentials
	tokenVariable     = "QUORATE_TOKEN"      //nolint:gosec // see above
)

// tokenOptions are the token that a command presents to servers. No flag takes a token itself, because every user of a
// machine can read the arguments of its processes.
type tokenOptions struct {
	file     string
	fileFlag *pflag.Flag
	insecure bool
	// Unused is true for commands that no token belongs to.
	Unused bool
}

// AddFlags adds the flags, with the environment as default.
func (o *tokenOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.file, "token-file", os.Getenv(tokenFileVariable), "`FILE` with the token that identifies you; it "+
		"is read again when it changes (environment: "+tokenFileVariable+", or the token itself in "+tokenVariable+")")
	o.fileFlag = flags.Lookup("token-file")
	o.fileFlag.DefValue = "" // help is the same in every shell
	flags.BoolVar(&o.insecure, "insecure-token", false,
		"send secrets over http to other machines too, where the network can read them")
}

func (o *tokenOptions) clientOptions() ([]client.Option, error) {
	token := o.fromEnvironment()
	var options []client.Option
	switch {
	case o.Unused:
		return nil, nil
	case o.file != "" && token != "":
		return nil, errors.New(tokenVariable + " is set beside " + tokenFileVariable + ": a call carries one token; to use " +
			"the file, unset " + tokenVariable + " or name the file with --token-file; to use the token itself, unset " +
			tokenFileVariable)
	case o.file != "":
		options = append(options, client.WithTokenFile(o.file))
	case token != "":
		token = strings.TrimSpace(token)
		options = append(options, client.WithTokenSource(func(context.Context) (string, error) { return token, nil }))
	}
	if o.insecure {
		options = append(options, client.WithInsecureToken())
	}
	return options, nil
}

// fromEnvironment is the token itself in the environment; empty if there is none, or if a flag names a file: flags come
// before the environment.
func (o *tokenOptions) fromEnvironment() string {
	if o.file != "" && o.fileFlag != nil && o.fileFlag.Changed {
		return ""
	}
	return os.Getenv(tokenVariable)
}

func (o *tokenOptions) isSet() bool {
	return !o.Unused && (o.file != "" || os.Getenv(tokenVariable) != "")
}

func (o *tokenOptions) origin() string {
	if o.file != "" {
		return o.file
	}
	return "$" + tokenVariable
}

// CheckSecretsAreEncrypted refuses servers that a command would send a secret to, or get one from, in plain text over
// the network. The client does that for tokens; this is for secrets in messages.
func (c *Env) CheckSecretsAreEncrypted() error {
	if c.Token.insecure {
		return nil
	}
	for _, server := range c.Servers {
		if !strings.Contains(server, "://") {
			scheme := "http://"
			if c.TLS.isSet() {
				scheme = "https://"
			}
			server = scheme + server
		}
		u, err := url.Parse(server)
		if err != nil || u.Scheme != "http" || isLoopback(u.Hostname()) {
			continue // the client reports what is malformed
		}
		return Usagef("--server %s: a secret is not sent in plain text to another machine: write https://%s, run the "+
			"command on a server's machine, or allow it with --insecure-token", u.Host, u.Host)
	}
	return nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}
