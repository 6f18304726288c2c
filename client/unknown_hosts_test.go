package client_test

import (
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

type hostlessClient struct{ calls int }

func (c *hostlessClient) Do(r *http.Request) (*http.Response, error) {
	c.calls++
	return nil, &net.OpError{Op: "dial", Err: &net.DNSError{
		Err: "no such host", Name: r.URL.Hostname(), IsNotFound: true,
	}}
}

// TestUnknownHostsEndTheCall: each server is tried once, and the error names the host.
func TestUnknownHostsEndTheCall(t *testing.T) {
	hosts := &hostlessClient{}
	c, err := client.New([]string{"here.invalid", "there.invalid"}, client.WithHTTPClient(hosts),
		client.WithoutUnknownHosts())
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Trees.ListTrees(t.Context(), &quoratev1.ListTreesRequest{})
	if missing := (*net.DNSError)(nil); !errors.As(err, &missing) || hosts.calls != 2 {
		t.Errorf("%d calls: %v", hosts.calls, err)
	}
}
