package server

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestProbeAddress: a probe asks where the server listens, and loopback where it listens on all addresses.
func TestProbeAddress(t *testing.T) {
	for listens, want := range map[string]string{
		"":               "http://127.0.0.1:7101",
		"10.0.0.1:7101":  "http://10.0.0.1:7101",
		":7105":          "http://127.0.0.1:7105",
		"0.0.0.0:7105":   "http://127.0.0.1:7105",
		"[::]:7105":      "http://[::1]:7105",
		"localhost:7105": "http://localhost:7105",
	} {
		var environ []string
		if listens != "" {
			environ = append(environ, "QUORATE_SERVER_HTTP_ADDR="+listens)
		}
		probe, err := loadProbe(environ...)
		if err != nil || probe.URL != want || probe.TLS != nil {
			t.Errorf("%q: %+v, %v, want %s", listens, probe, err, want)
		}
	}
}

// TestProbeFaults: what makes a server's address or certificate unusable is named.
func TestProbeFaults(t *testing.T) {
	for says, environ := range map[string][]string{
		`http-addr is "7101"`:       {"QUORATE_SERVER_HTTP_ADDR=7101"},
		"tls-ca":                    {"QUORATE_SERVER_TLS_CERT=a.crt"},
		"tls-cert: ":                {"QUORATE_SERVER_TLS_CA=a", "QUORATE_SERVER_TLS_CERT=b", "QUORATE_SERVER_TLS_KEY=c"},
		"reading the configuration": {"QUORATE_SERVER_CONFIG=/nonexistent/quorate.yaml"},
	} {
		if _, err := loadProbe(environ...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want an error that says %q", environ, err, says)
		}
	}
}

func loadProbe(environ ...string) (Probe, error) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(flags)
	return LoadProbe(flags, environ)
}
