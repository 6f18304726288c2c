package host

import (
	"strings"
	"testing"
)

func TestAQuarantineIsLiftedOnlyWhenAMajorityHoldsTheSame(t *testing.T) {
	digests := func(id, cluster string, points ...IndexDigest) FolderDigests {
		return FolderDigests{ID: id, Cluster: cluster, Digests: points}
	}
	a30, b30, a20, a40 := IndexDigest{30, "a"}, IndexDigest{30, "b"}, IndexDigest{20, "a"}, IndexDigest{40, "a"}
	for name, c := range map[string]struct {
		others []FolderDigests
		at     uint64 // where it is proved; 0 if it is not
		says   string
	}{
		"one of three agrees": {others: []FolderDigests{digests("n1", "blue", a30)}, at: 30},
		"both agree": {others: []FolderDigests{
			digests("n1", "blue", a30),
			digests("n3", "blue", a30),
		}, at: 30},
		"only itself is known": {says: "the same state is confirmed only by n2"},
		"another one differs": {
			others: []FolderDigests{digests("n1", "blue", b30)},
			says:   "n1 holds another state at index 30",
		},
		"one agrees and one differs": {others: []FolderDigests{
			digests("n1", "blue", b30),
			digests("n3", "blue", a30),
		}, at: 30},
		"one that is not a voter agrees": {
			others: []FolderDigests{digests("n9", "blue", a30)},
			says:   "is not proved",
		},
		"itself again": {others: []FolderDigests{digests("n2", "blue", a30)}, says: "is not proved"},
		"another cluster agrees": {
			others: []FolderDigests{digests("n1", "green", a30)},
			says:   "is not proved",
		},
		"they agree before the quarantine only": {
			others: []FolderDigests{digests("n1", "blue", a20)},
			says:   "is not proved",
		},
		"there is no common index": {
			others: []FolderDigests{digests("n1", "blue", IndexDigest{35, "a"})},
			says:   "is not proved",
		},
		"they agree at the end": {others: []FolderDigests{digests("n1", "blue", b30, a40)}, at: 40},
	} {
		own := digests("n2", "blue", a20, a30, a40)
		own.Voters = []string{"n1", "n2", "n3"}
		own.Quarantine = "node n2 holds another state than the majority: at checkpoint 25 its digest is 1 " +
			"and theirs is 2"
		proof, err := findAgreement(own, c.others)
		if c.at == 0 && (err == nil || !strings.Contains(err.Error(), c.says)) || c.at > 0 &&
			(err != nil || proof.Index != c.at) {
			t.Errorf("%s: %+v, %v; want index %d, %q", name, proof, err, c.at, c.says)
		}
	}
}
