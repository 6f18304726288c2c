package request

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// Options are the flags that describe a request: claims, labels, principal and priority.
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

// AddFlags adds the flags.
func (o *Options) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(idFlag{&o.id}, "id", "name of the allocation, 1 to 128 visible ASCII characters (default: a new UUID)")
	flags.Var(atFlag{&o.Claims}, "at", "node for the amounts and items that follow")
	flags.Var(amountFlag{&o.Claims}, "amount",
		"amount to allocate there, for example cores=25, ram=1.5Gi, or the range gpus=4..16/4")
	flags.Var(scaleFlag{&o.Claims}, "scale",
		"multiply all amounts by the most of this range that fits, for example 4..16")
	flags.Var(itemFlag{&o.Claims}, "item", "items to allocate there, for example account, account=2, account@dirty "+
		"or account:a,b")
	flags.Var(orFlag{&o.Claims}, "or", "allocate what follows if what is before it does not fit; may be repeated")
	flags.Lookup("or").NoOptDefVal = "true"
	flags.StringArrayVar(&o.labels, "label", nil, "label `NAME=VALUE` to find the allocation by; may be repeated")
	cli.NameVar(flags, &o.user, "user", "user that the allocation belongs to, for user limits")
	flags.StringArrayVar(&o.groups, "group", nil, "a `GROUP` of the user; may be repeated")
	cli.NameVar(flags, &o.application, "application",
		"application that the allocation belongs to, for application limits")
	flags.Int64Var(&o.priority, "priority", 0,
		"any number; higher priorities are served first and may preempt lower ones")
	flags.Int64Var(&o.kind, "type", 0, "any number; allocations preempt only others of the same type")
	flags.BoolVar(&o.unpreemptable, "unpreemptable", false, "never preempt it")
	flags.BoolVar(&o.Force, "force", false, "allocate at the named nodes regardless of limits")
}

// BuildMessage makes the request. It asks the server for units first, because amounts are parsed in them.
func (o *Options) BuildMessage(
	ctx context.Context, c *cli.Env, quorate *client.Client,
) (*quoratev1.AllocateRequest, error) {
	labels, err := labelPairs(o.labels)
	if err != nil {
		return nil, err
	}
	if err := c.LearnUnits(ctx, quorate); err != nil {
		return nil, err
	}
	request := &quoratev1.AllocateRequest{
		Id: o.id, Labels: labels, Mode: o.allocateMode(), ReserveMs: o.reserve.Milliseconds(),
		Priority: o.priority, PreemptionClass: o.kind, Unpreemptable: o.unpreemptable,
	}
	if err := o.Claims.addTo(request, c.Units); err != nil {
		return nil, err
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

// CheckClaims checks the flags before a server is asked.
func (o *Options) CheckClaims() error {
	if o.user == "" && (o.application != "" || len(o.groups) > 0) {
		return cli.Usagef("--group and --application need --user")
	}
	return o.Claims.checkClaims()
}

// longestID is the longest id of an allocation.
const longestID = 128

// idFlag is --id. An empty one is refused: with an unset variable of a shell, each repetition of the command would be
// granted again under a new id.
type idFlag struct{ to *string }

// Set takes an id.
func (f idFlag) Set(text string) error {
	isHidden := func(r rune) bool { return r < '!' || r > '~' }
	switch {
	case text == "":
		return cli.Usagef("it is empty: name an id, or leave --id out for a new UUID")
	case len(text) > longestID || strings.ContainsFunc(text, isHidden):
		return cli.Usagef("an id has 1 to %d visible ASCII characters", longestID)
	}
	*f.to = text
	return nil
}

// String is the id.
func (f idFlag) String() string {
	if f.to == nil {
		return ""
	}
	return *f.to
}

// Type is shown in help texts.
func (f idFlag) Type() string { return "string" }
