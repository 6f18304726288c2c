package operate

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type memberOptions struct {
	*cli.Env

	force     bool
	missingOK bool
}

type memberChange interface {
	proto.Message
	GetWrite() *quoratev1.WriteInfo
}

// changeMember prints done, or already if nothing had to change.
func (o *memberOptions) changeMember(
	ctx context.Context, done, already string, call func(context.Context, *client.Client) (memberChange, error),
) error {
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := call(ctx, quorate)
	if err != nil {
		return err
	}
	return o.Print(answer, func(p *cli.Page) error {
		if !answer.GetWrite().GetRepetition() {
			p.Linef("%s", done)
		} else {
			p.Linef("unchanged: %s", already)
		}
		return nil
	})
}

func newClusterJoinCmd(c *cli.Env) *cobra.Command {
	o, id := &memberOptions{Env: c}, ""
	cmd := &cobra.Command{
		Use:   "join [ADDRESS]",
		Short: "Contact a new node at a gossip address, or add a waiting node",
		Long: `Contact a new node at a gossip address, if it was started without --join. A node without data and with
the right cluster name is then added automatically: as a non-voter that receives the log, and as a voter once it has
been healthy for stabilization-time.

If the servers have auto-join=false, --id adds a waiting node, and "quorate cluster promote" makes it a voter.`,
		Example: "  quorate cluster join 10.0.0.4:7301\n  quorate cluster join --id n4",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (id != "") {
				return cli.Usagef("name either a gossip address or --id")
			}
			if id != "" {
				return o.changeMember(cmd.Context(), id+" is a member without a vote", id+" is a member already",
					func(ctx context.Context, quorate *client.Client) (memberChange, error) {
						return quorate.Cluster.JoinMember(ctx,
							&quoratev1.JoinMemberRequest{Whom: &quoratev1.JoinMemberRequest_Id{Id: id}})
					})
			}
			return o.changeMember(cmd.Context(), "found a node at "+args[0], "the node at "+args[0]+" is known",
				func(ctx context.Context, quorate *client.Client) (memberChange, error) {
					address := &quoratev1.JoinMemberRequest_GossipAddress{GossipAddress: args[0]}
					return quorate.Cluster.JoinMember(ctx, &quoratev1.JoinMemberRequest{Whom: address})
				})
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "add this waiting node")
	return cmd
}

func newClusterPromoteCmd(c *cli.Env) *cobra.Command {
	o := &memberOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "promote MEMBER",
		Short: "Make a member a voter",
		Long: `Make a member a voter. It is refused for a member that is not healthy or has not caught up, because
decisions could have to wait for it. New nodes are promoted automatically once they are stable, unless auto-join is
off.`,
		Example:           "  quorate cluster promote n4",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeMembers(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.changeMember(cmd.Context(), args[0]+" is a voter", args[0]+" is a voter already",
				func(ctx context.Context, quorate *client.Client) (memberChange, error) {
					return quorate.Cluster.PromoteMember(ctx,
						&quoratev1.PromoteMemberRequest{Id: args[0], Force: o.force})
				})
		},
	}
	cmd.Flags().BoolVar(&o.force, "force", false, "also if it is not healthy or has not caught up")
	return cmd
}

const forceHelp = "also if fewer voters than min-quorum remain, or no majority of them is healthy"

func newClusterDemoteCmd(c *cli.Env) *cobra.Command {
	o := &memberOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "demote MEMBER",
		Short: "Make a voter a non-voting member",
		Long: `Make a voter a non-voting member. It still receives the log and answers reads, and becomes a voter
again only by "quorate cluster promote". A leader hands over the leadership first.`,
		Example:           "  quorate cluster demote n4",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeMembers(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.changeMember(cmd.Context(), args[0]+" is no longer a voter", args[0]+" is not a voter",
				func(ctx context.Context, quorate *client.Client) (memberChange, error) {
					return quorate.Cluster.DemoteMember(ctx,
						&quoratev1.DemoteMemberRequest{Id: args[0], Force: o.force})
				})
		},
	}
	cmd.Flags().BoolVar(&o.force, "force", false, forceHelp)
	return cmd
}

func newClusterRemoveCmd(c *cli.Env) *cobra.Command {
	o := &memberOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "remove MEMBER",
		Short: "Remove a member, alive or dead",
		Long: `Remove a member, alive or dead. The leader hands over the leadership first. A name that no member has is an
error, unless --missing-ok is given for scripts that repeat a removal. The removed process keeps running and reports at
/readyz that it was removed; stop it when convenient. It cannot rejoin while its data folder holds old state.

It is refused if fewer than min-quorum voters would remain, or if no majority of the remaining voters is healthy;
--force tries it nevertheless. The last voter cannot be removed.`,
		Example:           "  quorate cluster remove n4\n  quorate cluster remove n3 --force",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeMembers(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.removeMember(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVar(&o.force, "force", false, forceHelp)
	cmd.Flags().BoolVar(&o.missingOK, "missing-ok", false, "succeed if there is no such member")
	return cmd
}

// removeMember removes a member. A name that no member has may be misspelled, so it is an error without --missing-ok.
// The leader may have gone with the answer of a first attempt, so that a later one finds nothing to do: what was a
// member before was removed.
func (o *memberOptions) removeMember(ctx context.Context, id string) error {
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	before, err := quorate.Cluster.ListMembers(ctx, &quoratev1.ListMembersRequest{})
	if err != nil {
		return err
	}
	answer, err := quorate.Cluster.RemoveMember(ctx, &quoratev1.RemoveMemberRequest{Id: id, Force: o.force})
	if err != nil {
		return err
	}
	removed := !answer.GetWrite().GetRepetition() || isMember(before, id)
	if !removed && !o.missingOK {
		return fmt.Errorf("%s is not a member: quorate cluster members lists them; --missing-ok accepts it", id)
	}
	return o.Print(answer, func(p *cli.Page) error {
		if removed {
			p.Linef("%s was removed", id)
		} else {
			p.Linef("unchanged: %s is not a member", id)
		}
		return nil
	})
}

// isMember reports whether a node is in the list. The list is empty for a caller without the right to read it.
func isMember(list *quoratev1.ListMembersResponse, id string) bool {
	return slices.ContainsFunc(list.GetMembers(), func(m *quoratev1.MemberHealth) bool {
		return m.GetId() == id &&
			(m.GetSeat() == quoratev1.Seat_SEAT_VOTER || m.GetSeat() == quoratev1.Seat_SEAT_NON_VOTER)
	})
}

func newClusterLeaveCmd(c *cli.Env) *cobra.Command {
	o := &memberOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Remove the server that is asked from the cluster",
		Long: `Remove the server that is asked from the cluster, by the rules of "quorate cluster remove". A server
that is only stopped remains a member and returns at its next start. Name exactly one server.`,
		Example: "  quorate cluster leave --server http://10.0.0.4:7101",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.removeSelf(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&o.force, "force", false, forceHelp)
	return cmd
}

func (o *memberOptions) removeSelf(ctx context.Context) error {
	if len(o.Servers) != 1 {
		return cli.Usagef("name exactly one server, the one to remove: --server URL")
	}
	quorate, asking, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Cluster.GetStatus(asking, &quoratev1.GetStatusRequest{Local: true})
	if err != nil {
		return err
	}
	return o.removeMember(ctx, answer.GetServedBy())
}

func newClusterTransferLeaderCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "transfer-leader [MEMBER]",
		Short: "Hand the leadership to another voter",
		Long: `Hand the leadership to a voter, or without a name to the voter with the most complete log, for example
before maintenance of the leader's machine. Calls that arrive meanwhile wait for a moment.`,
		Example:           "  quorate cluster transfer-leader n2\n  quorate cluster transfer-leader",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeMembers(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			return transferLeader(cmd.Context(), c, append(args, "")[0])
		},
	}
}

func transferLeader(ctx context.Context, c *cli.Env, id string) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Cluster.TransferLeader(ctx, &quoratev1.TransferLeaderRequest{Id: id})
	if err != nil {
		return err
	}
	return c.Print(answer, func(p *cli.Page) error {
		switch {
		case answer.GetWrite().GetRepetition():
			p.Linef("unchanged: %s leads", id)
		case answer.GetLeaderId() == "":
			p.Linef("the leadership was handed over; see quorate cluster members")
		default:
			p.Linef("%s leads", answer.GetLeaderId())
		}
		return nil
	})
}
