package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"connectrpc.com/connect"
)

// tlsError is a failure of TLS between this client and a server. Another attempt would fail in the same way.
type tlsError struct {
	server string
	advice string
	cause  error
	// refused is true if the server requires a certificate of the client, or another one.
	refused bool
}

// Error returns the advice and the failure.
func (e *tlsError) Error() string {
	if e.cause == nil {
		return e.advice
	}
	return e.advice + ": " + e.cause.Error()
}

// Is reports whether target is ErrCertificate and the server rejected the client.
func (e *tlsError) Is(target error) bool { return e.refused && target == ErrCertificate }

// Unwrap returns the failure of the network.
func (e *tlsError) Unwrap() error { return e.cause }

// explainFailure adds advice if TLS or certificates are the reason.
func explainFailure(server *url.URL, response *http.Response, err error) error {
	if err != nil {
		if advice := tlsAdvice(err); advice != "" {
			if sent := (*url.Error)(nil); errors.As(err, &sent) {
				err = sent.Err // the server is named elsewhere
			}
			return connect.NewError(
				connect.CodeUnavailable,
				&tlsError{server: server.Host, advice: advice, cause: err, refused: alertAdvice(err) != ""},
			)
		}
		return err
	}
	if server.Scheme != "http" || response.StatusCode != http.StatusBadRequest || response.ProtoMajor != 1 ||
		response.ProtoMinor != 0 {
		return nil
	}
	// Go's servers answer plain text on a TLS port with this text.
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1024))
	if err != nil || !bytes.Contains(answer, []byte("HTTP request to an HTTPS server")) {
		response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(answer), response.Body))
		return nil //nolint:nilerr // reading the answer meets the error again
	}
	_ = response.Body.Close() // all of it was read
	return connect.NewError(
		connect.CodeUnavailable,
		&tlsError{server: server.Host, advice: "the server uses TLS: use https://" + server.Host},
	)
}

// alertConn makes Write fail with the server's TLS alert. With TLS 1.3 a server verifies the certificate of a client
// when the client may already write, so that one goroutine reads the alert and another one meets the closed
// connection.
type alertConn struct {
	net.Conn

	refusal atomic.Pointer[error]
}

// Read keeps the alert of a server that rejects this client.
func (c *alertConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && tlsAdvice(err) != "" {
		c.refusal.Store(&err)
	}
	return n, err
}

// Write returns the server's alert, if there was one, in place of its own error.
func (c *alertConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if refusal := c.refusal.Load(); err != nil && refusal != nil {
		err = *refusal
	}
	return n, err
}

// dialTLS connects as crypto/tls does, with an alertConn.
func dialTLS(secure *tls.Config) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &tls.Dialer{NetDialer: newDialer(), Config: secure}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, handshakePatience)
		defer cancel()
		c, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &alertConn{Conn: c}, nil
	}
}

// alerts maps the alerts of servers that reject a client certificate, in the words of crypto/tls, to advice.
var alerts = map[string]string{
	"tls: bad certificate":               "the server rejects this client's certificate",
	"tls: unsupported certificate":       "the server rejects this client's certificate",
	"tls: unknown certificate":           "the server rejects this client's certificate",
	"tls: expired certificate":           "the server rejects this client's certificate: it has expired, renew it",
	"tls: unknown certificate authority": "the server does not know the authority of this client's certificate",
	"tls: certificate required": "the server requires a client certificate: name one with its key (WithTLS, " +
		"--tls-cert, --tls-key)",
}

// alertAdvice is for the alert of a server that rejects this client's certificate; empty for other errors.
func alertAdvice(err error) string {
	if alert := (*net.OpError)(nil); errors.As(err, &alert) && alert.Op == "remote error" {
		return alerts[alert.Err.Error()]
	}
	return ""
}

func tlsAdvice(err error) string {
	unknown, invalid, host := (x509.UnknownAuthorityError{}), (x509.CertificateInvalidError{}), (x509.HostnameError{})
	record := tls.RecordHeaderError{}
	switch {
	case errors.As(err, &unknown):
		return "the server's certificate is from an authority that is not trusted here: name the authority of the " +
			"cluster (WithTLS, --tls-ca)"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate is not valid at this time: renew it, or check the clocks"
	case errors.As(err, &host):
		return "the server's certificate is for other hosts: use one of them, or name the host to expect " +
			"(--tls-server-name)"
	case alertAdvice(err) != "":
		return alertAdvice(err)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the server does not use TLS: use http://"
	case errors.As(err, &invalid):
		return "the server's certificate is invalid"
	}
	return ""
}
