package authn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	// maxKeySetSize bounds a key set and a discovery document, in bytes.
	maxKeySetSize = 1 << 20
	fetchTimeout  = 10 * time.Second
	discoveryPath = "/.well-known/openid-configuration"
)

// keySource is where the keys of an issuer are read. It is comparable: issuers with equal sources share their keys.
type keySource struct {
	file, url string
	// discover is the URL of an issuer whose discovery document names the URL of the keys.
	discover string
}

func (i Issuer) keySource() keySource {
	switch {
	case i.KeysFile != "":
		return keySource{file: i.KeysFile}
	case i.KeysURL != "":
		return keySource{url: i.KeysURL}
	}
	return keySource{discover: i.URL}
}

func (s keySource) read(ctx context.Context, client *http.Client) ([]byte, error) {
	switch {
	case s.file != "":
		return readKeyFile(s.file)
	case s.url != "":
		return fetch(ctx, client, s.url)
	}
	text, err := fetch(ctx, client, strings.TrimSuffix(s.discover, "/")+discoveryPath)
	if err != nil {
		return nil, err
	}
	var document struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("the discovery document of %s is not a JSON object", s.discover)
	}
	if document.Issuer != s.discover {
		return nil, fmt.Errorf("the discovery document of %s is that of issuer %.200q", s.discover, document.Issuer)
	}
	if err := checkURL(document.Keys); err != nil {
		return nil, fmt.Errorf("jwks_uri in the discovery document of %s: %w", s.discover, err)
	}
	return fetch(ctx, client, document.Keys)
}

func readKeyFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // reading a pipe might never end
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return readBounded(file, path)
}

func readBounded(from io.Reader, name string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxKeySetSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > maxKeySetSize {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxKeySetSize)
	}
	return text, nil
}

func fetch(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %d, 200 is needed; redirects are not followed", url, response.StatusCode)
	}
	return readBounded(response.Body, url)
}

// newFetchClient returns a client that follows no redirect: the operator named a URL, and no other one may answer in
// its place. Without a transport it uses one that keeps no connection, because keys are fetched every ten minutes.
func newFetchClient(transport http.RoundTripper, roots *x509.CertPool) *http.Client {
	if transport == nil {
		transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: 64 << 10,
		}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

var errNeverRead = errors.New("the keys were not read yet")
