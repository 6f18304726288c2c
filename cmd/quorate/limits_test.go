package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// contested is a server whose configuration others change between a read and the next write, a number of times.
type contested struct {
	*fake
	conflicts, applied int
}

func (c *contested) ApplyTrees(
	ctx context.Context, r *quoratev1.ApplyTreesRequest,
) (*quoratev1.ApplyTreesResponse, error) {
	if c.applied++; c.applied <= c.conflicts {
		return nil, withDetail(connectError(connect.CodeAborted, "expected_revision: revision 8 changed cern:atlas"),
			&quoratev1.Problem{Reason: "REVISION_MISMATCH", NotApplied: true})
	}
	return c.fake.ApplyTrees(ctx, r)
}

// TestLimitsOfUsersAreSetAgain: a change of a user's limit that met another change is tried again, unless the caller
// wanted a certain revision, and not forever.
func TestLimitsOfUsersAreSetAgain(t *testing.T) {
	for line, test := range map[string]struct {
		conflicts, code, applied int
		says                     string
	}{
		"limit set cern:atlas cores=1 --user ada":                       {3, cli.ExitOK, 4, "applied"},
		"limit set cern:atlas cores=1 --group ops":                      {9, cli.ExitConflict, 5, "during each of 5 attempts"},
		"limit set cern:atlas cores=1 --user ada --expected-revision 7": {9, cli.ExitConflict, 1, "revision 8 changed"},
	} {
		f, _ := startFake(t)
		c := &contested{fake: f, conflicts: test.conflicts}
		mux := http.NewServeMux()
		mux.Handle(quoratev1connect.NewTreeServiceHandler(c))
		mux.Handle(adminv1connect.NewConfigurationServiceHandler(c))
		server := httptest.NewServer(mux)
		code, _, stderr := runQuorate(server.URL, "", strings.Fields(line)...)
		server.Close()
		if code != test.code || c.applied != test.applied || !strings.Contains(stderr, test.says) {
			t.Errorf("%s: exit code %d after %d attempts, want %d after %d: %s", line, code, c.applied, test.code,
				test.applied, stderr)
		}
	}
}
