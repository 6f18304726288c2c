package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"connectrpc.com/connect"
)

// anyServer is the host in requests until the sender replaces it by the address of a server.
const anyServer = "http://quorate.invalid"

// streamType begins the content types of streams.
const streamType = "application/connect+"

type servers struct {
	urls    []*url.URL
	current atomic.Uint32 // index into urls
}

func parseServers(addresses []string, secure bool) (*servers, error) {
	if len(addresses) == 0 {
		return nil, errors.New("client: no server given: name at least one, such as http://127.0.0.1:7101")
	}
	known := &servers{}
	for _, address := range addresses {
		u, err := ParseServer(address, secure)
		if err != nil {
			return nil, err
		}
		known.urls = append(known.urls, u)
	}
	return known, nil
}

// ParseServer returns the URL of an address as [New] takes it; secure is whether one without a scheme means https.
func ParseServer(address string, secure bool) (*url.URL, error) {
	text, scheme := address, "http://"
	if secure {
		scheme = "https://"
	}
	if !strings.Contains(text, "://") {
		text = scheme + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf(
			"client: server %q is not an address: write host:port or http://host:port: %w", address, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf(
			"client: server %q is not an address: write host:port, http://host:port or https://host:port",
			address,
		)
	}
	if text != address && u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), defaultPort)
	}
	return u, nil
}

// defaultPort is the port of addresses that have neither a scheme nor a port. It is that of the servers' http-addr.
const defaultPort = "7101"

func (s *servers) currentIndex() uint32 {
	return s.current.Load()
}

// advanceFrom selects the server after one that failed, unless another call has done so already.
func (s *servers) advanceFrom(failed uint32) {
	s.current.CompareAndSwap(failed, (failed+1)%uint32(len(s.urls)))
}

type serverKey struct{}

func withServer(ctx context.Context, index uint32) context.Context {
	return context.WithValue(ctx, serverKey{}, index)
}

type sender struct {
	http    connect.HTTPClient
	servers *servers
	tokens  *tokens
}

// Do reads the whole answer before it returns, so that a connection that breaks during an answer fails like one that
// cannot be made, and the call is retried. A stream is returned unread; its reader handles such failures.
func (s *sender) Do(request *http.Request) (*http.Response, error) {
	index, named := request.Context().Value(serverKey{}).(uint32)
	if !named {
		index = s.servers.currentIndex()
	}
	// A copy, because connect uses the same headers for the next attempt while this one may still be on its way out.
	sent := request.Clone(request.Context())
	server := s.servers.urls[index]
	sent.URL.Scheme, sent.URL.Host, sent.Host = server.Scheme, server.Host, server.Host
	sent.URL.User = server.User
	sent.URL.Path = strings.TrimSuffix(server.Path, "/") + request.URL.Path

	if err := s.tokens.authorize(sent); err != nil {
		return nil, err
	}
	response, err := s.http.Do(sent)
	if err = explainFailure(server, response, err); err != nil {
		return nil, err
	}
	if err := checkRedirect(server, response); err != nil {
		return nil, err
	}
	if err := gatewayFailure(response); err != nil {
		return nil, err
	}
	if strings.HasPrefix(request.Header.Get("Content-Type"), streamType) {
		return response, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if closed := response.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("the answer of %s broke off: %w", server.Host, err)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
