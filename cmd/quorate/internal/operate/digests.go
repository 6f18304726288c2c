package operate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// digestsPause is the time between two queries for new digests.
const digestsPause = 200 * time.Millisecond

type digestsOptions struct {
	*cli.Env
	now     bool
	dataDir string // that of a stopped node; empty for the digests of the members
}

func newDigestListCmd(c *cli.Env) *cobra.Command {
	o := &digestsOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show whether all members hold the same state",
		Long: `Show the digest of each member's state at its last checkpoint, and the result of the comparison: the
member agrees with the majority, it differs (and has stopped serving), or the states are disputed because none has a
majority.

The leader makes the members compare their states periodically (setting checkpoint-every). --now compares them now, and
waits for all members that are alive. Exit code 1 means that states differ.

--data-dir computes the state of a stopped node from its snapshot and its log, and shows its digests at the last
checkpoints and at the end. With -o json that is the proof that "quorate quarantine lift" reads on another member.`,
		Example: `  quorate digest list --now
  quorate digest list --data-dir /var/lib/quorate -o json > n2.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.dataDir != "" && o.now:
				return cli.Usagef("--now asks servers, and --data-dir is about a stopped node: use only one of them")
			case o.dataDir != "":
				return o.showStopped()
			}
			return o.runDigests(cmd.Context())
		},
	}
	o.addStoppedNode(cmd)
	cmd.Flags().BoolVar(&o.now, "now", false, "compare the states of all members now")
	return cmd
}

func (o *digestsOptions) runDigests(ctx context.Context) error {
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := o.fetchDigests(ctx, quorate)
	if err != nil {
		return err
	}
	err = o.Print(answer, func(p *cli.Page) error { return p.Table(digestRows(answer.GetMembers())) })
	return errors.Join(err, checkDigests(answer.GetMembers()))
}

func (o *digestsOptions) fetchDigests(
	ctx context.Context, quorate *client.Client,
) (*adminv1.ListMembersResponse, error) {
	if !o.now {
		return quorate.Cluster.ListMembers(ctx, &adminv1.ListMembersRequest{})
	}
	point, err := quorate.Cluster.Checkpoint(ctx, &adminv1.CheckpointRequest{})
	if err != nil {
		return nil, err
	}
	return o.awaitDigests(ctx, quorate, point.GetWrite().GetIndex())
}

// awaitDigests asks until all members that are alive have computed their states at an index. When the time is over it
// returns the last answer.
func (o *digestsOptions) awaitDigests(
	ctx context.Context, quorate *client.Client, index uint64,
) (*adminv1.ListMembersResponse, error) {
	var last *adminv1.ListMembersResponse
	for {
		answer, err := quorate.Cluster.ListMembers(ctx, &adminv1.ListMembersRequest{})
		switch {
		case err != nil && last != nil:
			return last, nil
		case err != nil:
			return nil, err
		case allComputed(answer.GetMembers(), index):
			return answer, nil
		}
		last = answer
		select {
		case <-time.After(digestsPause):
		case <-ctx.Done():
			o.Messagef("not all members have computed their states at checkpoint %d yet", index)
			return last, nil
		}
	}
}

func allComputed(members []*adminv1.Member, index uint64) bool {
	for _, m := range members {
		stopped := m.GetFinding() == adminv1.Finding_FINDING_DIFFERS // it computes no more digests
		reached := stopped || m.GetCheckpointIndex() >= index && m.GetFinding() != adminv1.Finding_FINDING_PENDING
		if m.GetAlive() && inConfiguration(m) && !reached {
			return false
		}
	}
	return true
}

func findingText(f adminv1.Finding) string {
	if f == adminv1.Finding_FINDING_PENDING {
		return "-"
	}
	return strings.ToLower(strings.TrimPrefix(f.String(), "FINDING_"))
}

func digestRows(members []*adminv1.Member) [][]string {
	rows := [][]string{{"MEMBER", "CHECKPOINT", "DIGEST", "FINDING"}}
	for _, m := range members {
		if !inConfiguration(m) {
			continue
		}
		index, digest := strconv.FormatUint(m.GetCheckpointIndex(), 10), m.GetDigest()
		if digest == "" {
			index, digest = "-", "-"
		}
		rows = append(rows, []string{m.GetId(), index, digest, findingText(m.GetFinding())})
	}
	return rows
}

// checkDigests names the members whose states are not that of a majority.
func checkDigests(members []*adminv1.Member) error {
	var wrong []string
	for _, m := range members {
		if f := m.GetFinding(); f == adminv1.Finding_FINDING_DIFFERS || f == adminv1.Finding_FINDING_DISPUTED {
			wrong = append(wrong, m.GetId())
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("the states of %s differ from that of a majority; see docs/operations.md, Divergence",
		strings.Join(wrong, ", "))
}
