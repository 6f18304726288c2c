package servertest

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Settings describe a cluster. The zero value is three servers in plain text.
type Settings struct {
	// Size is the number of servers, n1, n2 and so on; 3 if 0.
	Size int
	// Args are arguments of every server after those that it needs.
	Args []string
	// Each, if it is not nil, may change a server, such as its arguments, before it is started. The first one is 0.
	Each func(i int, s *Server)
	// Certificates is a folder that "quorate tls create" made for the servers; they are encrypted unless it is empty.
	Certificates string
	// ClientAuth requires certificates of callers, and lets the clients of the cluster present one.
	ClientAuth bool
	// Patience is that of the clients of the cluster.
	Patience time.Duration
}

// Cluster is a set of servers. As a Client it calls all of them.
type Cluster struct {
	Client

	Servers []*Server
}

// StartCluster starts servers and waits until all of them are ready.
func StartCluster(t testing.TB, settings Settings) *Cluster {
	t.Helper()
	c := newCluster(t, settings)
	for _, s := range c.Servers {
		s.Start(t)
	}
	for _, s := range c.Servers {
		s.AwaitReady(t)
	}
	return c
}

func newCluster(t testing.TB, settings Settings) *Cluster {
	t.Helper()
	size := cmp.Or(settings.Size, 3)
	scheme, client := "http://", Client{Patience: settings.Patience}
	if settings.Certificates != "" {
		scheme, client.CA = "https://", filepath.Join(settings.Certificates, "ca.crt")
	}
	if settings.ClientAuth {
		client.Cert = filepath.Join(settings.Certificates, "client.crt")
		client.Key = filepath.Join(settings.Certificates, "client.key")
	}
	dir, free, c := t.TempDir(), FreePorts(t, 3*size), &Cluster{Client: client}
	peers := strings.Join(free[2*size:], ",")
	for i := range size {
		id := fmt.Sprintf("n%d", i+1)
		s := &Server{
			Client: client, ID: id, HTTP: free[i], Raft: free[size+i], Gossip: free[2*size+i], Data: filepath.Join(dir, id),
		}
		s.URLs = []string{scheme + s.HTTP}
		s.ReadyURL = s.URL() + "/readyz"
		s.Args = slices.Concat([]string{
			"server", "run", "--id", id, "--data-dir", s.Data, "--http-addr", s.HTTP, "--raft-addr", s.Raft,
			"--gossip-addr", s.Gossip, "--bootstrap-expect", fmt.Sprint(size), "--join", peers, "--log-level", "warn",
		}, settings.tlsArgs(id), settings.Args)
		if settings.Each != nil {
			settings.Each(i, s)
		}
		c.Servers, c.URLs = append(c.Servers, s), append(c.URLs, s.URL())
	}
	return c
}

func (s *Settings) tlsArgs(id string) []string {
	if s.Certificates == "" {
		return nil
	}
	in := func(name string) string { return filepath.Join(s.Certificates, name) }
	args := []string{
		"--tls-ca", in("ca.crt"), "--tls-cert", in(id + ".crt"), "--tls-key", in(id + ".key"),
		"--gossip-keys-file", in("gossip.keys"),
	}
	if s.ClientAuth {
		args = append(args, "--tls-client-auth", "require")
	}
	return args
}

// Leader waits until a server that runs leads, and returns it and the others, of which some may not run.
func (c *Cluster) Leader(t testing.TB) (leader *Server, others []*Server) {
	t.Helper()
	client := c.httpClient(t)
	Await(t, c.patience(), "a server leads", func() bool {
		leader, others = nil, nil
		for _, s := range c.Servers {
			if leader == nil && s.Running() && s.leads(client) {
				leader = s
			} else {
				others = append(others, s)
			}
		}
		return leader != nil
	})
	return leader, others
}
