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

// tlsError is a server that this client and its certificates do not get on with. Another attempt meets the same.
type tlsError struct {
	server string
	advice string
	cause  error
	// refused says that the server wants another certificate of the client, or one at all.
	refused bool
}

// Error says what is wrong and what to do.
func (e *tlsError) Error() string {
	if e.cause == nil {
		return e.advice
	}
	return e.advice + ": " + e.cause.Error()
}

// Is finds ErrCertificate.
func (e *tlsError) Is(target error) bool { return e.refused && target == ErrCertificate }

// Unwrap is the failure as the network has it.
func (e *tlsError) Unwrap() error { return e.cause }

// explainFailure is the failure of an exchange, said so that a person knows what to do if certificates are the matter.
func explainFailure(server *url.URL, response *http.Response, err error) error {
	if err != nil {
		if advice := tlsAdvice(err); advice != "" {
			if sent := (*url.Error)(nil); errors.As(err, &sent) {
				err = sent.Err // the server is named elsewhere
			}
			return connect.NewError(connect.CodeUnavailable, &tlsError{server: server.Host, advice: advice, cause: err, refused: alertAdvice(err) != ""})
		}
		return err
	}
	if server.Scheme != "http" || response.StatusCode != http.StatusBadRequest || response.ProtoMajor != 1 || response.ProtoMinor != 0 {
		return nil
	}
	// Go's servers answer plain text on a TLS port with this text.
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1024))
	if err != nil || !bytes.Contains(answer, []byte("HTTP request to an HTTPS server")) {
		response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(answer), response.Body))
		return nil //nolint:nilerr // reading the answer meets the error again
	}
	_ = response.Body.Close() // all of it was read
	return connect.NewError(connect.CodeUnavailable, &tlsError{server: server.Host, advice: "the server speaks TLS: use https://" + server.Host})
}

// alertConn tells who writes why the server has closed the connection. With TLS 1.3 a server judges the certificate
// of a client after the client may already write, so that its alert and the end of the connection are met by
// different goroutines.
type alertConn struct {
	net.Conn

	refusal atomic.Pointer[error]
}

// Read remembers the alert of a server that does not get on with this client.
func (c *alertConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && tlsAdvice(err) != "" {
		c.refusal.Store(&err)
	}
	return n, err
}

// Write fails with the server's alert, if there was one.
func (c *alertConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if refusal := c.refusal.Load(); err != nil && refusal != nil {
		err = *refusal
	}
	return n, err
}

// dialTLS connects as crypto/tls does, and listens to what the server says of it.
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

// alerts are what servers say to clients whose certificates they do not like, in the words of crypto/tls, and what to
// do.
var alerts = map[string]string{
	"tls: bad certificate":               "the server does not take this client's certificate",
	"tls: unsupported certificate":       "the server does not take this client's certificate",
	"tls: unknown certificate":           "the server does not take this client's certificate",
	"tls: expired certificate":           "the server does not take this client's certificate: it has expired, renew it",
	"tls: unknown certificate authority": "the server does not know the authority of this client's certificate",
	"tls: certificate required":          "the server wants a certificate of the client: give it one with its key (WithTLS, --tls-cert, --tls-key)",
}

// alertAdvice is what to do about the alert of a server that does not take this client's certificate; empty for all else.
func alertAdvice(err error) string {
	if alert := (*net.OpError)(nil); errors.As(err, &alert) && alert.Op == "remote error" {
		return alerts[alert.Err.Error()]
	}
	return ""
}

// tlsAdvice says what to do about a failure of TLS; empty for every other failure.
func tlsAdvice(err error) string {
	unknown, invalid, host := (x509.UnknownAuthorityError{}), (x509.CertificateInvalidError{}), (x509.HostnameError{})
	record := tls.RecordHeaderError{}
	switch {
	case errors.As(err, &unknown):
		return "the server's certificate is of an authority that is not trusted here: name the authority of the cluster (WithTLS, --tls-ca)"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate is not valid at this time: renew it, or look at the clocks"
	case errors.As(err, &host):
		return "the server's certificate is for other hosts: call it by one of them, or say which name to expect (--tls-server-name)"
	case alertAdvice(err) != "":
		return alertAdvice(err)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the server speaks plain text: use http://"
	case errors.As(err, &invalid):
		return "the server's certificate is not good"
	}
	return ""
}
