package operate

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
)

var checkedAt = time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)

// soundFacts are those of three members of v1.2.0 and a program of v1.3.0, without anything to complain of.
func soundFacts() clusterFacts {
	list := &adminv1.ListMembersResponse{Voters: 3, HealthyVoters: 3, FailureTolerance: 1}
	for _, id := range []string{"n1", "n2", "n3"} {
		list.Members = append(list.Members, &adminv1.Member{
			Id: id, Seat: adminv1.Seat_SEAT_VOTER, Healthy: true, Reachable: true, Version: "v1.2.0",
			Finding: adminv1.Finding_FINDING_AGREES, LastBackupAt: timestamppb.New(checkedAt.Add(-time.Hour)),
			CertificateEndsAt: timestamppb.New(checkedAt.Add(90 * 24 * time.Hour)),
		})
	}
	return clusterFacts{
		version: "v1.3.0", newest: 2, list: list, level: &adminv1.GetLevelResponse{Level: 2, Possible: 2}, now: checkedAt,
	}
}

func TestWhatAnUpgradeNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		change               func(*clusterFacts, *adminv1.Member)
		check, result, shows string
	}{
		"sound": {func(*clusterFacts, *adminv1.Member) {}, "step", resultOK, "from v1.2.0 to v1.3.0"},
		"a member is ill": {
			func(_ *clusterFacts, m *adminv1.Member) { m.Healthy, m.Problem = false, "n1 has a full disk" },
			"members", resultObstacle, "n1 has a full disk",
		},
		"a healthy member has a problem": {
			func(_ *clusterFacts, m *adminv1.Member) { m.Problem = "the clock of n1 is wrong" },
			"members", resultObstacle, "the clock of n1 is wrong",
		},
		"who was removed does not count": {
			func(_ *clusterFacts, m *adminv1.Member) { m.Seat, m.Healthy = adminv1.Seat_SEAT_NONE, false },
			"members", resultOK, "2 of 2 are healthy",
		},
		"no loss is left": {
			func(f *clusterFacts, _ *adminv1.Member) { f.list.FailureTolerance = 0 },
			"majority", resultObstacle, "no further loss",
		},
		"one voter": {
			func(f *clusterFacts, _ *adminv1.Member) { f.list.FailureTolerance, f.list.Voters = 0, 1 },
			"majority", resultWarning, "a majority of 1 needs all of them",
		},
		"states differ": {
			func(_ *clusterFacts, m *adminv1.Member) { m.Finding = adminv1.Finding_FINDING_DIFFERS },
			"states", resultObstacle, "the states differ at n1",
		},
		"three versions": {
			func(_ *clusterFacts, m *adminv1.Member) { m.Version = "v1.1.0" },
			"versions", resultObstacle, "the members run v1.1.0, v1.2.0",
		},
		"the upgrade is under way": {
			func(_ *clusterFacts, m *adminv1.Member) { m.Version = "v1.3.0" },
			"versions", resultOK, "the upgrade to v1.3.0 is under way: also v1.2.0",
		},
		"a step back": {
			func(f *clusterFacts, _ *adminv1.Member) { f.version = "v1.1.9" },
			"step", resultObstacle, "from v1.2.0 to v1.1.9 is a step back",
		},
		"the next major version": {
			func(f *clusterFacts, _ *adminv1.Member) { f.version = "v2.0.0" }, "step", resultOK, "from v1.2.0 to v2.0.0",
		},
		"a major version is skipped": {
			func(f *clusterFacts, _ *adminv1.Member) { f.version = "v3.0.0" },
			"step", resultObstacle, "skips a major version",
		},
		"a development build": {
			func(f *clusterFacts, _ *adminv1.Member) { f.version = "devel" }, "step", resultWarning, "no release",
		},
		"the level is newer": {
			func(f *clusterFacts, _ *adminv1.Member) { f.newest = 1 },
			"level", resultObstacle, "the cluster has level 2, and this version understands 1",
		},
		"the level is not raised": {
			func(f *clusterFacts, _ *adminv1.Member) { f.level.Level = 1 },
			"level", resultWarning, "the cluster has level 1, and all members understand 2",
		},
		"no backup": {
			func(f *clusterFacts, _ *adminv1.Member) {
				for _, m := range f.list.GetMembers() {
					m.LastBackupAt = nil
				}
			}, "backups", resultWarning, "no member has made a periodic one",
		},
		"a certificate ends": {
			func(_ *clusterFacts, m *adminv1.Member) {
				m.CertificateEndsAt = timestamppb.New(checkedAt.Add(13 * 24 * time.Hour))
			}, "certificates", resultWarning, "that of n1 ends at 2027-03-14T00:00:00Z",
		},
		"an authority ends": {
			func(_ *clusterFacts, m *adminv1.Member) { m.AuthorityEndsAt = timestamppb.New(checkedAt) },
			"certificates", resultWarning, "that of n1 ends at 2027-03-01T00:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := soundFacts()
			c.change(&facts, facts.list.GetMembers()[0])
			for _, f := range facts.check() {
				wanted := resultOK
				if f.Check == c.check {
					wanted = c.result
					if !strings.Contains(f.Detail, c.shows) {
						t.Errorf("%s says %q, want %q", f.Check, f.Detail, c.shows)
					}
				}
				if f.Result != wanted || (f.Remedy == "") != (f.Result == resultOK) {
					t.Errorf("%+v, want %s", f, wanted)
				}
			}
		})
	}
}
