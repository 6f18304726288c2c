package config

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/manifest"
	"github.com/quorate/quorate/quota"
)

type limitsSetOptions struct {
	changeOptions
	at                        string
	limits                    []string
	user, group, applications string
	schedule                  scheduleFlags
}

func newLimitSetCmd(c *cli.Env) *cobra.Command {
	o := &limitsSetOptions{changeOptions: changeOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "set TREE[:node/path] [RESOURCE=LIMIT...]",
		Short: "Set limits of one node, or of a user or group there, without changing anything else",
		Long: `Set limits of one node, or with --user or --group those of one user or group in its subtree, without
changing anything else. A limit is an amount, the word unlimited, or the word unset, which removes the limit: the policy
of the node applies then, and to a user or group without any limit of its own those of "*", if the node has some.
--applications sets how many applications may run in the subtree.

An advisory limit of a node, such as cores=advisory:120, denies nothing: it stands for unlimited in every decision, and
what is held beyond it is shown as over.

The user * is every user that the node does not name, and the group * is one common limit for all groups that it does
not name. A user or group that the node does not name yet starts with the limits of *, because they do not apply to it
any more. A new group is looked up after those that the node names already.

With --until, and --begin unless it is to begin at once, the limits are scheduled: they are in force over the configured
ones for that time, and the configuration stays as it is. Then cores=200 sets a limit, cores=+50 and cores=-50 add to
it, and cores=cap:50 bounds it. What the policies say of limits is checked for every instant in advance. "quorate
schedule list" shows what is scheduled. Times are those of RFC 3339, or 2026-11-27T18:00 in the time zone of this
machine.

With --every they recur, between --begin and --until if these are given. The rule is DAYS HH:MM-[DAY ]HH:MM [ZONE]:

  DAYS   on which a window begins: daily, weekdays, weekends, days such as mon,wed,fri or mon-thu, or monthly with
         days of the month, such as monthly 1,15
  HH:MM  when it begins and ends, 00:00 to 24:00; an end that is not later is on the next day, or on the next DAY
  ZONE   of the IANA database, such as Europe/Zurich; UTC by default

A time that the clock skips is the instant of the change; of a time that occurs twice the first counts.

A limit may be set below current usage: nothing is evicted, but usage cannot grow until it is below the limit.

Limits of users, groups and applications need the rights policy.set at the node for users and
groups, and limits.set above it for applications.`,
		Example: `  quorate limit set cern:atlas/physics cores=25 --reason "a new rack"
  quorate limit set tenants:tenant-1 servers=unlimited ram=16Gi cores=unset
  quorate limit set tenants:tenant-2 servers=advisory:10
  quorate limit set queues:ci/build vcore=20 --user ada --applications 5
  quorate limit set queues memory=600G --group dev --reason "more builds"
  quorate limit set queues --applications 120
  quorate limit set cern:atlas cores=200 --begin 2026-11-27T18:00:00Z --until 2026-11-30T08:00:00Z --reason weekend
  quorate limit set cern:cms cores=+50 ram=cap:64Gi --until 2026-11-30T08:00:00Z --id cms-help
  quorate limit set cern:atlas cores=200 --every "weekdays 18:00-08:00 Europe/Zurich" --reason nights
  quorate limit set cern:atlas cores=+500 --every "fri 18:00-mon 08:00 Europe/Zurich" --until 2027-01-31T00:00:00Z`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.at, o.limits = args[0], args[1:]
			return o.runLimitsSet(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.user, "user", "", "set limits of this user in the subtree of the node; * for all others")
	flags.StringVar(&o.group, "group", "", "set limits of this group in the subtree of the node; * for all others")
	flags.StringVar(&o.applications, "applications", "",
		"set how many applications may run (`N`, or unset for no limit)")
	flags.StringVar(&o.schedule.begin, "begin", "", "schedule the limits: the `TIME` at which they begin (default: now)")
	flags.StringVar(&o.schedule.until, "until", "", "schedule the limits: the `TIME` at which they end")
	flags.StringVar(&o.schedule.every, "every", "", "schedule the limits: the `RULE` by which they recur")
	flags.StringVar(&o.schedule.id, "id", "", "the `ID` of the scheduled limits, for repetitions (default: random)")
	o.addFlags(cmd)
	return cmd
}

func (o *limitsSetOptions) runLimitsSet(ctx context.Context) error {
	at, err := cli.ParsePlace(o.at)
	if err != nil {
		return err
	}
	if o.schedule != (scheduleFlags{}) {
		return o.runSchedule(ctx, at)
	}
	edit, err := o.newEdit()
	if err != nil {
		return err
	}
	return o.runChange(ctx, o.LearnUnits, func(ctx context.Context, quorate *client.Client) (changeAnswer, error) {
		if edit.limits, err = parseLimits(o.Units, at, o.limits); err != nil {
			return nil, err
		}
		if err := edit.checkAdvisory(); err != nil {
			return nil, err
		}
		if edit.needsText() {
			return o.setByText(ctx, quorate, at, edit)
		}
		return quorate.Trees.SetLimits(ctx, &quoratev1.SetLimitsRequest{
			Tree: at.Tree, Node: at.Node, Limits: edit.limits,
			DryRun: o.dryRun, ExpectedRevision: o.expected.value, Actor: o.actor, Reason: o.reason,
		})
	})
}

func (o *limitsSetOptions) newEdit() (*limitEdit, error) {
	edit := &limitEdit{}
	switch {
	case o.user != "" && o.group != "":
		return nil, cli.Usagef("--user and --group exclude each other: set one after the other")
	case len(o.limits) == 0 && o.applications == "":
		return nil, cli.Usagef("name at least one limit: RESOURCE=LIMIT, or --applications N")
	case o.user != "":
		edit.holder = holderName{kind: userHolder, name: o.user}
	case o.group != "":
		edit.holder = holderName{kind: groupHolder, name: o.group}
	}
	var err error
	edit.applications, err = parseMostApplications(o.applications)
	return edit, err
}

// checkAdvisory refuses advisory limits of users and groups.
func (e *limitEdit) checkAdvisory() error {
	for resource, limit := range e.limits {
		if _, isAdvisory := limit.GetValue().(*quoratev1.Limit_Advisory); isAdvisory && e.holder != (holderName{}) {
			return cli.Usagef("limit of %q: only limits of nodes can be advisory; write a quantity, %s or unset", resource,
				unlimitedText)
		}
	}
	return nil
}

// parseMostApplications returns nil for no text.
func parseMostApplications(text string) (*quoratev1.Limit, error) {
	if text == "" {
		return nil, nil
	}
	limit, err := manifest.ParseLimit(text, quoratev1.Unit_UNIT_COUNT)
	if err != nil || strings.HasPrefix(text, quota.AdvisoryWord) {
		return nil, cli.Usagef("--applications: %q is not a number from 0 to %d; write unset for no limit", text,
			quota.MaxAmount)
	}
	return limit, nil
}

func parseLimits(units cli.Units, at cli.Place, pairs []string) (map[string]*quoratev1.Limit, error) {
	limits := map[string]*quoratev1.Limit{}
	for _, text := range pairs {
		resource, value, err := cli.SplitPair(text)
		if err != nil {
			return nil, err
		}
		if limits[resource] != nil {
			return nil, cli.Usagef("the limit of %q is given twice", resource)
		}
		unit, err := units.UnitOf(at.Tree, resource)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		if limits[resource], err = manifest.ParseLimit(value, unit); err != nil {
			return nil, cli.Usagef("limit of %q: %v or unset", resource, err)
		}
	}
	return limits, nil
}
