package check

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
)

// Digest is the checksum of a node's whole state at one index. It covers what no call shows, such as the ids of ended
// allocations.
type Digest struct {
	Node   string `json:"node"`
	Index  uint64 `json:"index"`
	Digest string `json:"digest"`
}

// collectDigests makes all nodes compute their digests at one index.
func collectDigests(ctx context.Context, servers []string, client connect.HTTPClient) ([]Digest, error) {
	for {
		digests, err := digestsOnce(ctx, adminv1connect.NewClusterServiceClient(client, servers[0]), len(servers))
		if err == nil {
			return digests, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(collectInterval):
		}
	}
}

// digestsOnce waits a while until the server knows the digests of all nodes.
func digestsOnce(ctx context.Context, server adminv1connect.ClusterServiceClient, nodes int) ([]Digest, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	made, err := server.Checkpoint(ctx, &adminv1.CheckpointRequest{})
	if err != nil {
		return nil, err
	}
	for {
		heard, err := server.ListMembers(ctx, &adminv1.ListMembersRequest{})
		if err != nil {
			return nil, err
		}
		var digests []Digest
		for _, m := range heard.GetMembers() {
			if m.GetCheckpointIndex() == made.GetWrite().GetIndex() {
				digests = append(digests, Digest{m.GetId(), m.GetCheckpointIndex(), m.GetDigest()})
			}
		}
		if len(digests) == nodes {
			return digests, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("only %d of %d nodes have reported a digest for checkpoint %d", len(digests), nodes,
				made.GetWrite().GetIndex())
		case <-time.After(collectInterval):
		}
	}
}

func (f *Finals) checkDigests(v *Verdict) {
	for _, d := range f.Digests {
		v.Count("digests", 1)
		if first := f.Digests[0]; d.Index == first.Index && d.Digest != first.Digest {
			v.AddViolation("%s has digest %s at index %d, and %s has %s", d.Node, d.Digest, d.Index, first.Node,
				first.Digest)
		}
	}
}
