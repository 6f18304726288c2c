package cli

import (
	"crypto/tls"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/quorate/quorate/internal/pki"
)

// tlsOptions are the certificates that a command presents to servers and the authority that it trusts.
type tlsOptions struct {
	files      pki.Files
	serverName string
}

// AddFlags adds the flags, with the environment as default. A server has settings of the same names, and variables of
// its own.
func (o *tlsOptions) AddFlags(flags *pflag.FlagSet) {
	for _, f := range []struct {
		to         *string
		name, help string
	}{
		{&o.files.CA, "tls-ca", "trust servers with certificates of the authority in this `FILE`, instead of those " +
			"that the system trusts"},
		{&o.files.Cert, "tls-cert", "present the certificate in this `FILE` to servers"},
		{&o.files.Key, "tls-key", "`FILE` with the key of --tls-cert"},
		{&o.serverName, "tls-server-name", "`NAME` that the certificates of servers must have, instead of the host of " +
			"--server"},
	} {
		variable := ClientPrefix + strings.ToUpper(strings.ReplaceAll(f.name, "-", "_"))
		flags.StringVar(f.to, f.name, os.Getenv(variable), f.help+" (environment: "+variable+")")
		flags.Lookup(f.name).DefValue = "" // help is the same in every shell
	}
}

func (o *tlsOptions) isSet() bool { return *o != (tlsOptions{}) }

// clientConfig is nil if no flag is set.
func (o *tlsOptions) clientConfig() (*tls.Config, error) {
	if !o.isSet() {
		return nil, nil //nolint:nilnil // nothing was asked for
	}
	if (o.files.Cert == "") != (o.files.Key == "") {
		return nil, Usagef("--tls-cert and --tls-key belong together: name both, or none")
	}
	return pki.ClientConfig(o.files, o.serverName)
}
