package gossip

import (
	"testing"

	"github.com/hashicorp/memberlist"

	"github.com/quorate/quorate/cluster"
)

// FuzzDecode: no metadata panics, and accepted metadata keeps its meaning when it is encoded again.
func FuzzDecode(f *testing.F) {
	seed, err := encodeMeta("c", cluster.Peer{
		RaftAddr: "127.0.0.1:1", HTTPAddr: "127.0.0.1:2", Version: "v", FeatureLevel: 2, Expect: 3, HasState: true,
		Intent: "join",
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"c":"c","l":4294967296}`))
	f.Add([]byte(`{"c":"another"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		peer, err := decodeMeta("c", "n1", data)
		if err != nil || len(data) > memberlist.MetaMaxSize {
			return
		}
		again, err := encodeMeta("c", peer)
		if err != nil {
			return // escapes may make it longer
		}
		if decoded, err := decodeMeta("c", "n1", again); err != nil || decoded != peer {
			t.Fatalf("%q was read as %+v, and then as %+v, %v", data, peer, decoded, err)
		}
	})
}
