package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"

	"connectrpc.com/connect"
)

// mostTokenBytes is the most bytes of a token, which is what servers accept.
const mostTokenBytes = 8 << 10

// WithTokenSource sends a token in the Authorization header of every call. The source is asked at each attempt, so it
// must be quick and safe for concurrent use: keep the token and replace it before it ends. A source that fails, or has
// no token, fails the call with the code unauthenticated, and nothing was sent. If a server refuses a token that the
// source has replaced meanwhile, the call is repeated once with the new one, unless retries are off.
//
// The token never leaves in plain text: New refuses http addresses of other machines, see WithInsecureToken. No
// redirect is followed. A call that has an Authorization header already keeps it.
func WithTokenSource(source func(ctx context.Context) (string, error)) Option {
	return func(s *settings) { s.tokenSource = source }
}

// WithTokenFile is WithTokenSource for a token in a file, alone on one line. The file is looked at once a second at
// most, when calls are made, and read again if it is another one or was written. A file that cannot be read then leaves
// the last token in use. New returns an error if it cannot be read at first.
func WithTokenFile(path string) Option {
	return func(s *settings) { s.tokenFile = path }
}

// WithInsecureToken also sends the token over http to other machines, where the network can read it. It is for networks
// that encrypt by themselves.
func WithInsecureToken() Option {
	return func(s *settings) { s.insecureToken = true }
}

// newTokens returns nil if the options name no source of tokens.
func newTokens(s *settings, known *servers) (*tokens, error) {
	switch {
	case s.tokenSource != nil && s.tokenFile != "":
		return nil, errors.New("client: WithTokenSource and WithTokenFile exclude each other: use one")
	case s.tokenFile != "":
		file, err := openTokenFile(s.tokenFile)
		if err != nil {
			return nil, err
		}
		s.tokenSource = file.current
	case s.tokenSource == nil:
		return nil, nil //nolint:nilnil // calls without a token
	}
	for _, server := range known.urls {
		if err := checkTokenServer(server, s.insecureToken); err != nil {
			return nil, err
		}
	}
	return &tokens{source: s.tokenSource, once: s.once}, nil
}

// checkTokenServer refuses servers that a token must not be sent to.
func checkTokenServer(server *url.URL, insecure bool) error {
	if server.User != nil {
		return fmt.Errorf("client: server %s: the address has a user name, but a call carries one credential: write "+
			"the address without it, or use no token", server.Host)
	}
	if server.Scheme == "http" && !insecure && !isLoopback(server.Hostname()) {
		return fmt.Errorf("client: server %s: a token is not sent in plain text to another machine: write https://%s, "+
			"or allow it (WithInsecureToken, --insecure-token)", server.Host, server.Host)
	}
	return nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// tokens adds tokens to requests. It does not keep them, so that printing a client cannot show one.
type tokens struct {
	source func(context.Context) (string, error)
	once   bool // refused calls are not repeated
}

type sentToken struct {
	token atomic.Pointer[string]
}

type sentTokenKey struct{}

func withSentToken(ctx context.Context) (context.Context, *sentToken) {
	sent := &sentToken{}
	return context.WithValue(ctx, sentTokenKey{}, sent), sent
}

// authorize leaves a request that has a credential of its own as it is.
func (t *tokens) authorize(request *http.Request) error {
	if t == nil || request.Header.Get("Authorization") != "" {
		return nil
	}
	ctx := request.Context()
	token, err := t.source(ctx)
	if err == nil {
		err = checkToken(token)
	}
	if err != nil {
		if ctx.Err() != nil {
			return notSentError(ctx)
		}
		return connect.NewError(connect.CodeUnauthenticated, fmt.Errorf("no token for the call: %w", err))
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if sent, ok := ctx.Value(sentTokenKey{}).(*sentToken); ok {
		sent.token.Store(&token)
	}
	return nil
}

// checkToken refuses texts that a header cannot carry. Its errors do not repeat the text.
func checkToken(token string) error {
	switch {
	case token == "":
		return errors.New("the token is empty")
	case len(token) > mostTokenBytes:
		return fmt.Errorf("the token has %d bytes, more than %d", len(token), mostTokenBytes)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("the token has blanks or characters that are not ASCII: it must be alone on one line")
	}
	return nil
}

// call makes an attempt, and a second one if the server refused a token that its source has replaced meanwhile. A call
// that was refused for its token was not carried out, so this is safe for every method.
func (t *tokens) call(
	ctx context.Context, next connect.UnaryFunc, request connect.AnyRequest,
) (connect.AnyResponse, error) {
	if t == nil {
		return next(ctx, request)
	}
	ctx, sent := withSentToken(ctx)
	response, err := next(ctx, request)
	if t.isReplaced(ctx, sent, err) {
		return next(ctx, request)
	}
	return response, err
}

// isReplaced reports whether a server refused the token of a call and the source has another one by now.
func (t *tokens) isReplaced(ctx context.Context, sent *sentToken, err error) bool {
	used := sent.token.Load()
	if t == nil || t.once || used == nil || !isRefusedCredential(err) {
		return false
	}
	token, err := t.source(ctx)
	return err == nil && token != *used
}

func isRefusedCredential(err error) bool {
	return connect.IsWireError(err) && connect.CodeOf(err) == connect.CodeUnauthenticated
}

// withoutRedirects returns the HTTP client changed so that it follows no redirect: a redirect would take the token and
// the call to a host that the caller did not name.
func withoutRedirects(c connect.HTTPClient) connect.HTTPClient {
	plain, ok := c.(*http.Client)
	if !ok {
		return c
	}
	changed := *plain
	changed.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &changed
}

// checkRedirect is the error of an answer that names another address. It was not carried out, and no other attempt at
// this address will be.
func checkRedirect(server *url.URL, response *http.Response) error {
	if response.StatusCode < http.StatusMultipleChoices || response.StatusCode >= http.StatusBadRequest {
		return nil
	}
	_ = response.Body.Close() // it is not read
	target := "another address"
	if location, err := response.Location(); err == nil {
		target = location.Scheme + "://" + location.Host
	}
	return connect.NewError(connect.CodeUnimplemented, fmt.Errorf("%s redirects to %s, and redirects are not followed: "+
		"name the address of a server itself", server.Host, target))
}
