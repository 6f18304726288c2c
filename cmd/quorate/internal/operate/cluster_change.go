package operate

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type memberOptions struct {
	*cli.Env

	role        string
	force, self bool
	missingOK   bool
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

func newMemberCreateCmd(c *cli.Env) *cobra.Command {
	o, id := &memberOptions{Env: c}, ""
	cmd := &cobra.Command{
		Use:   "create {ADDRESS | --id ID}",
		Short: "Make a new node a member: find it at a gossip address, or add one that waits",
		Long: `Contact a new node at a gossip address, if it was started without --join. A node without data and with
the right cluster name is then added automatically: as a non-voter that receives the log, and as a voter once it has
been healthy for stabilization-time.

If the servers have auto-join=false, --id adds a waiting node, and "quorate member set --role voter" gives it a vote.`,
		Example: "  quorate member create 10.0.0.4:7301\n  quorate member create --id n4",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (id != "") {
				return cli.Usagef("name either a gossip address or --id")
			}
			if id != "" {
				return o.changeMember(cmd.Context(), id+" is a member without a vote", id+" is a member already",
					func(ctx context.Context, quorate *client.Client) (memberChange, error) {
						return quorate.Cluster.JoinMember(ctx,
							&adminv1.JoinMemberRequest{Whom: &adminv1.JoinMemberRequest_Id{Id: id}})
					})
			}
			return o.changeMember(cmd.Context(), "found a node at "+args[0], "the node at "+args[0]+" is known",
				func(ctx context.Context, quorate *client.Client) (memberChange, error) {
					address := &adminv1.JoinMemberRequest_GossipAddress{GossipAddress: args[0]}
					return quorate.Cluster.JoinMember(ctx, &adminv1.JoinMemberRequest{Whom: address})
				})
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "add this waiting node")
	return cmd
}

// Roles that a member can be given.
const (
	voterRole    = "voter"
	nonVoterRole = "non-voter"
	leaderRole   = "leader"
)

func newMemberSetCmd(c *cli.Env) *cobra.Command {
	o := &memberOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "set [MEMBER] --role ROLE",
		Short: "Make a member a voter, a non-voter, or the leader",
		Long: `Give a member another role:

  voter      it votes. Refused for a member that is not healthy or has not caught up, because decisions could have to
             wait for it. New nodes become voters by themselves once they are stable, unless auto-join is off.
  non-voter  it still receives the log and answers reads, and becomes a voter again only by this command. A leader hands
             over the leadership first.
  leader     it takes over the leadership, for example before maintenance of the leader's machine. Without a name it is
             the voter with the most complete log. Calls that arrive meanwhile wait for a moment.

--force makes a member a voter although it is not healthy, and a voter a non-voter although fewer voters than min-quorum
remain or no majority of them is healthy.`,
		Example: `  quorate member set n4 --role voter
  quorate member set n4 --role non-voter
  quorate member set --role leader`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeMembers(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.setRole(cmd.Context(), append(args, "")[0])
		},
	}
	cmd.Flags().StringVar(&o.role, "role", "", "the new `ROLE`: voter, non-voter or leader (required)")
	cmd.Flags().BoolVar(&o.force, "force", false, "also if the cluster would be less safe afterwards")
	cli.CompleteFlag(cmd, "role", voterRole, nonVoterRole, leaderRole)
	return cmd
}

func (o *memberOptions) setRole(ctx context.Context, id string) error {
	switch {
	case o.role == leaderRole && o.force:
		return cli.Usagef("--force does not apply to the leadership")
	case o.role == leaderRole:
		return transferLeader(ctx, o.Env, id)
	case o.role != voterRole && o.role != nonVoterRole:
		return cli.Usagef("--role is voter, non-voter or leader, not %q", o.role)
	case id == "":
		return cli.Usagef("MEMBER is missing")
	case o.role == voterRole:
		return o.changeMember(ctx, id+" is a voter", id+" is a voter already",
			func(ctx context.Context, quorate *client.Client) (memberChange, error) {
				return quorate.Cluster.PromoteMember(ctx, &adminv1.PromoteMemberRequest{Id: id, Force: o.force})
			})
	}
	return o.changeMember(ctx, id+" is no longer a voter", id+" is not a voter",
		func(ctx context.Context, quorate *client.Client) (memberChange, error) {
			return quorate.Cluster.DemoteMember(ctx, &adminv1.DemoteMemberRequest{Id: id, Force: o.force})
		})
}

func newMemberDeleteCmd(c *cli.Env) *cobra.Command {
	o := &memberOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "delete {MEMBER | --self}",
		Short: "Remove a member from the cluster, alive or dead",
		Long: `Remove a member from the cluster, alive or dead. The leader hands over the leadership first. A name that no
member has is an error, unless --missing-ok is given for scripts that repeat a removal. The removed process keeps
running and reports at /readyz that it was removed; stop it when convenient. It cannot rejoin while its data folder
holds old state. A server that is only stopped remains a member and returns at its next start.

It is refused if fewer than min-quorum voters would remain, or if no majority of the remaining voters is healthy;
--force tries it nevertheless. The last voter cannot be removed.

--self removes the server that is asked; name exactly one with --server.`,
		Example: `  quorate member delete n4
  quorate member delete n3 --force
  quorate member delete --self --server http://10.0.0.4:7101`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeMembers(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case (len(args) == 1) == o.self:
				return cli.Usagef("name a member, or the server that is asked with --self")
			case o.self:
				return o.removeSelf(cmd.Context())
			}
			return o.removeMember(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVar(&o.self, "self", false, "remove the server that is asked")
	cmd.Flags().BoolVar(&o.force, "force", false, "also if the cluster would be less safe afterwards")
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
	before, err := quorate.Cluster.ListMembers(ctx, &adminv1.ListMembersRequest{})
	if err != nil {
		return err
	}
	answer, err := quorate.Cluster.RemoveMember(ctx, &adminv1.RemoveMemberRequest{Id: id, Force: o.force})
	if err != nil {
		return err
	}
	removed := !answer.GetWrite().GetRepetition() || isMember(before, id)
	if !removed && !o.missingOK {
		return fmt.Errorf("%s is not a member: quorate member list lists them; --missing-ok accepts it", id)
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
func isMember(list *adminv1.ListMembersResponse, id string) bool {
	return slices.ContainsFunc(list.GetMembers(), func(m *adminv1.Member) bool {
		return m.GetId() == id &&
			(m.GetSeat() == adminv1.Seat_SEAT_VOTER || m.GetSeat() == adminv1.Seat_SEAT_NON_VOTER)
	})
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
	answer, err := quorate.Cluster.GetStatus(asking, &adminv1.GetStatusRequest{})
	if err != nil {
		return err
	}
	return o.removeMember(ctx, answer.GetServedBy())
}

func transferLeader(ctx context.Context, c *cli.Env, id string) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Cluster.TransferLeader(ctx, &adminv1.TransferLeaderRequest{Id: id})
	if err != nil {
		return err
	}
	return c.Print(answer, func(p *cli.Page) error {
		switch {
		case answer.GetWrite().GetRepetition():
			p.Linef("unchanged: %s leads", id)
		case answer.GetLeaderId() == "":
			p.Linef("the leadership was handed over; see quorate member list")
		default:
			p.Linef("%s leads", answer.GetLeaderId())
		}
		return nil
	})
}
