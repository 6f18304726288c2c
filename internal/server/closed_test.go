package server

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/internal/server/recovery"
)

// TestWhichServersServeAnOpenCluster is the table of docs/access.md.
func TestWhichServersServeAnOpenCluster(t *testing.T) {
	const reachable = "10.0.0.1:7101"
	for name, c := range map[string]struct {
		settings      Settings
		folderClosed  bool
		closed, warns bool
	}{
		"on loopback":                    {Settings{HTTPAddr: "127.0.0.1:7101"}, true, false, false},
		"on loopback, an old folder":     {Settings{HTTPAddr: "[::1]:7101"}, false, false, false},
		"reachable":                      {Settings{HTTPAddr: reachable}, true, true, false},
		"on all addresses":               {Settings{HTTPAddr: ":7101"}, true, true, false},
		"reachable, an old folder":       {Settings{HTTPAddr: reachable}, false, false, true},
		"reachable and insecure-open":    {Settings{HTTPAddr: reachable, InsecureOpen: true}, true, false, false},
		"old and insecure-open":          {Settings{HTTPAddr: reachable, InsecureOpen: true}, false, false, false},
		"reachable and insecure":         {Settings{HTTPAddr: reachable, Insecure: true}, true, false, false},
		"reachable with certificates":    {Settings{HTTPAddr: reachable, TLSClientAuth: "require"}, true, true, false},
		"Boskos alone is reachable":      {Settings{HTTPAddr: "127.0.0.1:1", FrontEnds: []string{"boskos=" + reachable}}, true, true, false},
		"Boskos and API are on loopback": {Settings{HTTPAddr: "127.0.0.1:1", FrontEnds: []string{"boskos=localhost:2"}}, true, false, false},
	} {
		var log bytes.Buffer
		logger := hclog.New(&hclog.LoggerOptions{Output: &log})
		closed := decideClosed(c.settings, recovery.Note{Closed: c.folderClosed}, logger)
		if closed != c.closed || strings.Contains(log.String(), "[WARN]") != c.warns {
			t.Errorf("%s: closed %v, log %q", name, closed, log.String())
		}
	}
}
