package request

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// Options say what is to be held, and by whom.
type Options struct {
	id            string
	Claims        Claims
	labels        []string
	user          string
	groups        []string
	application   string
	priority      int64
	kind          int64
	unpreemptable bool
	reserve       time.Duration
	Force         bool
}

func (o *Options) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.id, "id", "", "name of the allocation, 1 to 128 visible ASCII characters (default: a new UUID)")
	flags.Var(atFlag{&o.Claims}, "at", "where to hold the amounts that follow")
	flags.Var(amountFlag{&o.Claims}, "amount", "what to hold there, for example cores=25 or ram=1.5Gi")
	flags.Var(itemFlag{&o.Claims}, "item", "items to hold there, for example account, account=2, account@dirty or account:a,b")
	flags.StringArrayVar(&o.labels, "label", nil, "a `name=value` to find the allocation by")
	flags.StringVar(&o.user, "user", "", "who holds it, for limits of users")
	flags.StringArrayVar(&o.groups, "group", nil, "a `name` of a group that the user is in; may be repeated")
	flags.StringVar(&o.application, "application", "", "the application that it belongs to, for limits of applications")
	flags.Int64Var(&o.priority, "priority", 0, "any number; a higher one waits before a lower one, and may preempt it")
	flags.Int64Var(&o.kind, "type", 0, "any number; only allocations of one type preempt each other")
	flags.BoolVar(&o.unpreemptable, "unpreemptable", false, "may not be preempted")
	flags.BoolVar(&o.Force, "force", false, "hold it at the named nodes whatever the limits say")
}

// BuildMessage is the request that was typed; units come from the server, before the amounts can be read.
func (o *Options) BuildMessage(ctx context.Context, c *cli.Env, quorate *client.Client) (*quoratev1.AllocateRequest, error) {
	labels, err := labelPairs(o.labels)
	if err != nil {
		return nil, err
	}
	if err := c.LearnUnits(ctx, quorate); err != nil {
		return nil, err
	}
	wanted, err := o.Claims.buildMessages(c.Units)
	if err != nil {
		return nil, err
	}
	request := &quoratev1.AllocateRequest{
		Id: o.id, Claims: wanted, Labels: labels, Mode: o.allocateMode(), ReserveMs: o.reserve.Milliseconds(),
		Priority: o.priority, Type: o.kind, Unpreemptable: o.unpreemptable,
	}
	if o.user != "" || o.application != "" || len(o.groups) > 0 {
		request.Principal = &quoratev1.Principal{User: o.user, Groups: o.groups, Application: o.application}
	}
	if request.GetId() == "" {
		request.Id = uuid.NewString()
	}
	return request, nil
}

func (o *Options) allocateMode() quoratev1.Mode {
	switch {
	case o.Force:
		return quoratev1.Mode_MODE_FORCE
	case o.reserve > 0:
		return quoratev1.Mode_MODE_RESERVE
	}
	return quoratev1.Mode_MODE_REJECT
}

// CheckClaims says what a person forgot or mixed up, before any server is asked.
func (o *Options) CheckClaims() error {
	if o.user == "" && (o.application != "" || len(o.groups) > 0) {
		return cli.Usagef("--group and --application belong to a user: add --user")
	}
	return o.Claims.checkClaims()
}
