package rpc

import (
	"crypto/sha256"
	"testing"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// TestAClosedServerServesNoOpenCluster: it refuses what a guarded cluster would not let everyone do, until bootstrap
// guards the cluster.
func TestAClosedServerServesNoOpenCluster(t *testing.T) {
	c := newFakeCluster()
	c.bootstrapSecret, c.wall, c.closed = sha256.Sum256([]byte(testSecret)), time.Now().UnixMilli(), true
	d := openServer(t, c, "n1")
	c.lead("n1")
	ctx := t.Context()
	_, err := quoratev1connect.NewTreeServiceClient(as(""), d.url).ListTrees(ctx, &quoratev1.ListTreesRequest{})
	wantRefused(t, err, connect.CodeFailedPrecondition, "", "quorate token create")
	_, err = quoratev1connect.NewAllocationServiceClient(as(""), d.url).Release(ctx, &quoratev1.ReleaseRequest{Id: "x"})
	wantRefused(t, err, connect.CodeFailedPrecondition, "", "insecure-open")
	_, err = d.accessAs("").SetAccessMode(ctx, &adminv1.SetAccessModeRequest{
		Mode: quoratev1.AccessMode_ACCESS_MODE_WATCHING,
	})
	wantRefused(t, err, connect.CodeFailedPrecondition, "", "does not serve an open cluster")
	if status := send(t, "GET", d.url+"/metrics", "").status; status == 200 {
		t.Error("a closed server shows its metrics")
	}
	if status := send(t, "GET", d.url+"/livez", "").status; status != 200 {
		t.Errorf("livez answers %d", status)
	}
	if identity, err := d.accessAs("").WhoAmI(ctx, &quoratev1.WhoAmIRequest{}); err != nil ||
		identity.GetMode() != quoratev1.AccessMode_ACCESS_MODE_OPEN {
		t.Errorf("whoami answers %v, %v", identity, err)
	}
	if status, err := d.clusterAs("").GetStatus(ctx, &adminv1.GetStatusRequest{}); err != nil || status.GetTerm() != 0 {
		t.Errorf("the status is %v, %v", status, err)
	}
	made, err := d.accessAs("").Bootstrap(ctx, &adminv1.BootstrapRequest{Secret: testSecret})
	if err != nil {
		t.Fatal(err)
	}
	if mode := d.node.Book().Mode(); mode != access.Guarded {
		t.Errorf("after bootstrap the cluster is %s", mode)
	}
	trees := quoratev1connect.NewTreeServiceClient(as(made.GetSecret()), d.url)
	if _, err = trees.ListTrees(ctx, &quoratev1.ListTreesRequest{}); err != nil {
		t.Errorf("the administrator is refused: %v", err)
	}
	if status, err := d.clusterAs(as(made.GetSecret())).GetStatus(ctx, &adminv1.GetStatusRequest{}); err != nil ||
		status.GetTerm() == 0 {
		t.Errorf("the status is %v, %v", status, err)
	}
}

// TestAClosedServerServesAWatchingCluster: someone has chosen that mode.
func TestAClosedServerServesAWatchingCluster(t *testing.T) {
	c := newFakeCluster()
	c.closed = true
	d := openServer(t, c, "n1")
	c.lead("n1")
	c.apply(quota.ChangeAccess{Change: access.SetMode{Mode: access.Watching}})
	_, err := quoratev1connect.NewTreeServiceClient(as(""), d.url).ListTrees(t.Context(), &quoratev1.ListTreesRequest{})
	if err != nil {
		t.Error(err)
	}
}

// TestAServerThatIsBehindTheGuard: it knows that the cluster was guarded, and its state does not say so yet. It answers
// no call by that state, in any mode, until it has caught up.
func TestAServerThatIsBehindTheGuard(t *testing.T) {
	for _, mode := range []access.Mode{access.Open, access.Watching, access.Guarded} {
		c := newFakeCluster()
		c.wasGuarded = true
		d := openServer(t, c, "n1")
		c.lead("n1")
		d.node.bookWith(t, mode)
		trees := quoratev1connect.NewTreeServiceClient(admin, d.url)
		_, err := trees.ListTrees(t.Context(), &quoratev1.ListTreesRequest{})
		if mode == access.Guarded {
			if err != nil {
				t.Errorf("the administrator is refused: %v", err)
			}
			continue
		}
		wantRefused(t, err, connect.CodeUnavailable, "", "has not caught up")
		_, err = d.trees().ListTrees(t.Context(), &quoratev1.ListTreesRequest{})
		wantRefused(t, err, connect.CodeUnavailable, "", "has not caught up")
		status, err := d.clusterAs("").GetStatus(t.Context(), &adminv1.GetStatusRequest{})
		if err != nil || status.GetTerm() != 0 {
			t.Errorf("the status is %v, %v", status, err)
		}
		if status := send(t, "GET", d.url+"/metrics", "").status; status == 200 {
			t.Errorf("a server that is behind shows its metrics while %s", mode)
		}
	}
}
