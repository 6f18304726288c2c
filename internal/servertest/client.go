package servertest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// Client is a caller of servers. The zero value calls none; it runs commands that need no server.
type Client struct {
	// URLs are the servers.
	URLs []string
	// Token is the token to present; empty for none.
	Token string
	// CA, Cert and Key are files: the certificate authority of the servers, empty if they are not encrypted, and the
	// certificate to present with its key, empty for none.
	CA, Cert, Key string
	// Patience is the timeout of a command or a wait; a minute if 0.
	Patience time.Duration
}

func (c *Client) patience() time.Duration { return cmp.Or(c.Patience, time.Minute) }

// Environment returns the variables of commands that call the servers.
func (c *Client) Environment() []string {
	variables := Environment()
	for _, v := range []struct{ name, value string }{
		{"QUORATE_SERVER", strings.Join(c.URLs, ",")},
		{"QUORATE_TOKEN", c.Token},
		{"QUORATE_TLS_CA", c.CA},
		{"QUORATE_TLS_CERT", c.Cert},
		{"QUORATE_TLS_KEY", c.Key},
	} {
		if v.value != "" {
			variables = append(variables, v.name+"="+v.value)
		}
	}
	return variables
}

// Run runs a command of Quorate, which must succeed, and returns its standard output.
func (c *Client) Run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.Try(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Try runs a command of Quorate and returns its standard output. The error of a failed one has all of its output, and
// wraps an exec.ExitError.
func (c *Client) Try(t testing.TB, args ...string) (string, error) {
	t.Helper()
	return c.runFile(Quorate.Path(t), args)
}

// runFile has a context of its own, because the one of a test is over when its cleanups run commands.
func (c *Client) runFile(file string, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.patience())
	defer cancel()
	command := newCommand(ctx, file, args)
	command.Env = c.Environment()
	command.WaitDelay = pipeDelay
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("still ran after %v: %w", c.patience(), err)
	}
	if err != nil {
		err = fmt.Errorf("quorate %s: %w\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), err
}

// TLS returns the settings of connections to the servers, and nil if they are not encrypted.
func (c *Client) TLS(t testing.TB) *tls.Config {
	t.Helper()
	if c.CA == "" {
		return nil
	}
	text, err := os.ReadFile(c.CA)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	if !config.RootCAs.AppendCertsFromPEM(text) {
		t.Fatalf("%s has no certificate", c.CA)
	}
	if c.Cert == "" {
		return config
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		t.Fatal(err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config
}

// httpClient returns a client without idle connections, because tests restart servers. Its timeout is short, because a
// paused server accepts connections and does not answer.
func (c *Client) httpClient(t testing.TB) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: c.TLS(t), DisableKeepAlives: true}
	return &http.Client{Transport: transport, Timeout: 5 * time.Second}
}
