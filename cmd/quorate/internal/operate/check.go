package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/fsm"
)

func newCheckCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check whether the cluster can be upgraded to the version of this program",
		Long: `Check whether the cluster is well enough to lose one member at a time, and what an upgrade of its servers to the
version of this program needs first. Run it with the program that is to be installed; it changes nothing.

A finding is ok, a warning, or an obstacle; with an obstacle the exit code is 1. "quorate server run --check", also with
the new program, checks the settings of a server on its machine.`,
		Example: "  quorate cluster check\n  quorate cluster check -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return checkCluster(cmd.Context(), c) },
	}
}

// finding is the result of one check. Remedy says what to do; it is empty if all is well.
type finding struct {
	Check  string `json:"check"`
	Result string `json:"result"` // ok, warning or obstacle
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

const (
	resultOK       = "ok"
	resultWarning  = "warning"
	resultObstacle = "obstacle"
)

func warning(check, detail, remedy string) finding {
	return finding{check, resultWarning, detail, remedy}
}

func obstacle(check, detail, remedy string) finding {
	return finding{check, resultObstacle, detail, remedy}
}

// clusterFacts are what the checks look at.
type clusterFacts struct {
	// version and newest are those of this program.
	version string
	newest  uint32
	list    *adminv1.ListMembersResponse
	level   *adminv1.GetLevelResponse
	now     time.Time
}

func checkCluster(ctx context.Context, c *cli.Env) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	facts, err := readFacts(ctx, quorate)
	if err != nil {
		return err
	}
	if len(facts.list.GetMembers()) == 0 {
		return fmt.Errorf("the server shows no members: this needs the right cluster.read on the cluster")
	}
	facts.version, facts.newest, facts.now = c.Build.Version, fsm.NewestFormat(), time.Now()
	findings := facts.check()
	err = c.PrintValue(findings, func(p *cli.Page) error { return p.Table(findingRows(findings)) })
	if err == nil && slices.ContainsFunc(findings, func(f finding) bool { return f.Result == resultObstacle }) {
		return &cli.ExitError{Code: cli.ExitFailure, Ours: true}
	}
	return err
}

func readFacts(ctx context.Context, quorate *client.Client) (f clusterFacts, err error) {
	if f.list, err = quorate.Cluster.ListMembers(ctx, &adminv1.ListMembersRequest{}); err != nil {
		return f, err
	}
	f.level, err = quorate.Cluster.GetLevel(ctx, &adminv1.GetLevelRequest{})
	return f, err
}

func findingRows(findings []finding) [][]string {
	rows := [][]string{{"CHECK", "RESULT", "DETAIL", "REMEDY"}}
	for _, f := range findings {
		rows = append(rows, []string{f.Check, f.Result, f.Detail, f.Remedy})
	}
	return rows
}

// check has one finding of each check, in the order in which the obstacles are best removed.
func (f clusterFacts) check() []finding {
	return []finding{
		f.checkHealth(), f.checkMajority(), f.checkStates(), f.checkVersions(), f.checkStep(), f.checkLevel(),
		f.checkBackups(), f.checkCertificates(),
	}
}

// checkHealth is about the members only: who waits or was removed takes no part in an upgrade.
func (f clusterFacts) checkHealth() finding {
	const name = "members"
	var ill []string
	for _, m := range f.members() {
		if !m.GetHealthy() || m.GetProblem() != "" {
			ill = append(ill, cmp.Or(m.GetProblem(), m.GetId()+" is not healthy"))
		}
	}
	if len(ill) > 0 {
		return obstacle(name, strings.Join(ill, "; "), "mend it first: one more member is away during each restart")
	}
	return finding{name, resultOK, fmt.Sprintf("%d of %d are healthy", len(f.members()), len(f.members())), ""}
}

func (f clusterFacts) members() []*adminv1.Member {
	return slices.DeleteFunc(slices.Clone(f.list.GetMembers()), func(m *adminv1.Member) bool {
		return !inConfiguration(m)
	})
}

func (f clusterFacts) checkMajority() finding {
	const name = "majority"
	switch {
	case f.list.GetFailureTolerance() > 0:
		return finding{name, resultOK, fmt.Sprintf("survives the loss of %d", f.list.GetFailureTolerance()), ""}
	case f.list.GetVoters() < 3:
		return warning(name, fmt.Sprintf("a majority of %d needs all of them", f.list.GetVoters()),
			"nothing is served while one restarts; three voters survive it")
	}
	return obstacle(name, "the cluster survives no further loss", "bring the missing voters back first")
}

func (f clusterFacts) checkStates() finding {
	const name = "states"
	var differing []string
	for _, m := range f.members() {
		if m.GetFinding() == adminv1.Finding_FINDING_DIFFERS || m.GetFinding() == adminv1.Finding_FINDING_DISPUTED {
			differing = append(differing, m.GetId())
		}
	}
	if len(differing) > 0 {
		return obstacle(name, "the states differ at "+strings.Join(differing, ", "), "see quorate digest list")
	}
	return finding{name, resultOK, "no difference is known", ""}
}

// checkVersions finds an upgrade that was not finished. Three versions at once are more than mixed clusters are made
// for.
func (f clusterFacts) checkVersions() finding {
	const name = "versions"
	var versions []string
	for _, m := range f.members() {
		if v := m.GetVersion(); v != "" && !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	slices.Sort(versions)
	switch others := slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return v == f.version }); {
	case len(others) > 1:
		return obstacle(name, "the members run "+strings.Join(versions, ", "), "finish the upgrade that was begun first")
	case len(versions) > 1:
		return finding{name, resultOK, "the upgrade to " + f.version + " is under way: also " + others[0], ""}
	}
	return finding{name, resultOK, "all members run " + strings.Join(versions, ", "), ""}
}

// checkStep compares this version with the oldest of the members: within a major version any step up is supported, and
// between two major versions only that from the last minor version (docs/stability.md).
func (f clusterFacts) checkStep() finding {
	const name = "step"
	oldest := ""
	for _, m := range f.members() {
		v := m.GetVersion()
		if semver.IsValid(v) && (oldest == "" || semver.Compare(v, oldest) < 0) {
			oldest = v
		}
	}
	step := fmt.Sprintf("from %s to %s", oldest, f.version)
	switch {
	case oldest == "" || !semver.IsValid(f.version):
		return warning(name, "this program or the members are no release", "nothing is promised for development builds")
	case semver.Compare(f.version, oldest) < 0:
		return obstacle(name, step+" is a step back", "a member that is older than the feature level does not start")
	case majorOf(f.version) > majorOf(oldest)+1:
		return obstacle(name, step+" skips a major version",
			fmt.Sprintf("upgrade to v%d first", majorOf(oldest)+1))
	}
	return finding{name, resultOK, step, ""}
}

// majorOf is 0 for what is no version.
func majorOf(version string) int {
	major := 0
	_, _ = fmt.Sscanf(semver.Major(version), "v%d", &major)
	return major
}

func (f clusterFacts) checkLevel() finding {
	const name = "level"
	level, possible := f.level.GetLevel(), f.level.GetPossible()
	switch {
	case f.newest < level:
		return obstacle(name, fmt.Sprintf("the cluster has level %d, and this version understands %d", level, f.newest),
			"take a newer version")
	case possible > level:
		return warning(name, fmt.Sprintf("the cluster has level %d, and all members understand %d", level, possible),
			"quorate level raise")
	}
	return finding{name, resultOK, fmt.Sprintf("%d; this version understands %d", level, f.newest), ""}
}

func (f clusterFacts) checkBackups() finding {
	const name = "backups"
	var last time.Time
	for _, m := range f.members() {
		if at := m.GetLastBackupAt(); at != nil && at.AsTime().After(last) {
			last = at.AsTime()
		}
	}
	if last.IsZero() {
		return warning(name, "no member has made a periodic one since its start",
			"set backup-dir, or save one now: quorate snapshot create before-upgrade.quorate")
	}
	return finding{name, resultOK, "the last one is of " + last.UTC().Format(time.RFC3339), ""}
}

// certificateMargin is before whose end a certificate should be renewed rather than carried through an upgrade.
const certificateMargin = 14 * 24 * time.Hour

func (f clusterFacts) checkCertificates() finding {
	const name = "certificates"
	var ending []string
	for _, m := range f.members() {
		ends := m.GetCertificateEndsAt()
		if authority := m.GetAuthorityEndsAt(); ends != nil && authority != nil && authority.AsTime().Before(ends.AsTime()) {
			ends = authority
		}
		if ends != nil && ends.AsTime().Before(f.now.Add(certificateMargin)) {
			ending = append(ending, fmt.Sprintf("that of %s ends at %s", m.GetId(), ends.AsTime().UTC().Format(time.RFC3339)))
		}
	}
	if len(ending) > 0 {
		return warning(name, strings.Join(ending, "; "), "renew them first: a restart reads what is there")
	}
	return finding{name, resultOK, "none ends within 14 days", ""}
}
