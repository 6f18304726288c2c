package cli

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
)

// maxStanding bounds the lines of [Env.ReportStanding].
const maxStanding = 50

// ReportStanding prints what users have set in motion and what does not end when they lose their rights: scheduled
// limits, holds, and open requests for limits, each with the command that ends it. A caller who may not see all of that
// is told only of what it may see.
func (c *Env) ReportStanding(ctx context.Context, quorate *client.Client, users ...string) {
	if len(users) == 0 {
		return
	}
	lines, err := standingOf(ctx, quorate, users)
	if err != nil {
		c.Messagef("scheduled limits, holds and requests for limits of %s may still stand; they could not be read: %s",
			strings.Join(users, ", "), ErrorText(err))
	}
	for i, line := range lines {
		if i == maxStanding {
			c.Messagef("and %d more: quorate schedule list; quorate node list --cordoned; quorate request list", len(lines)-i)
			return
		}
		c.Messagef("%s", line)
	}
}

// boundUser finds the users and accounts in the text of bindings.
var boundUser = regexp.MustCompile(`(?:^|, |; | to )(account|user) ([^ ,;]+)`)

// UsersWithout are the users and accounts that lose the binding of a role at a place by the changes.
func UsersWithout(changes []*quoratev1.Change) []string {
	type roleAt struct{ tree, node, role string }
	before, after := map[roleAt][]string{}, map[roleAt][]string{}
	for _, change := range changes {
		role, isBinding := strings.CutPrefix(strings.TrimPrefix(change.GetField(), "access "), "binding")
		if !isBinding {
			continue
		}
		note := func(users map[roleAt][]string, text string) {
			named, _, _ := strings.Cut(text, " to ") // the access section has the role in the text
			if role != "" {
				named = role
			}
			at := roleAt{change.GetTree(), change.GetNode(), named}
			users[at] = append(users[at], usersIn(text)...)
		}
		note(before, change.GetBefore())
		note(after, change.GetAfter())
	}
	var users []string
	for at, list := range before {
		for _, user := range list {
			if !slices.Contains(after[at], user) {
				users = append(users, user)
			}
		}
	}
	slices.Sort(users)
	return slices.Compact(users)
}

func usersIn(bindings string) []string {
	var users []string
	for _, found := range boundUser.FindAllStringSubmatch(bindings, -1) {
		user := found[2]
		if found[1] == "account" {
			user = "account/" + user
		}
		users = append(users, user)
	}
	return users
}

// standingOf are the lines about what users have made. Those that were read before an error are there too.
func standingOf(ctx context.Context, quorate *client.Client, users []string) (lines []string, err error) {
	limits, err := quorate.Trees.ListScheduledLimits(ctx, &quoratev1.ListScheduledLimitsRequest{})
	if err != nil {
		return nil, err
	}
	for _, s := range limits.GetLimits() {
		if slices.Contains(users, s.GetActor()) {
			lines = append(lines, fmt.Sprintf("the limit %s of %s, scheduled by %s, stays; to end it: "+
				"quorate schedule delete %s", s.GetId(), PlaceOf(s.GetTree(), s.GetNode()), s.GetActor(), s.GetId()))
		}
	}
	holds, err := quorate.Cordons.ListCordons(ctx, &adminv1.ListCordonsRequest{})
	if err != nil {
		return lines, err
	}
	for _, h := range holds.GetCordons() {
		if slices.Contains(users, h.GetActor()) {
			at := PlaceOf(h.GetTree(), h.GetNode())
			lines = append(lines, fmt.Sprintf("the hold of %s, made by %s, stays; to end it: quorate node uncordon %s", at,
				h.GetActor(), at))
		}
	}
	requests, err := openRequestsOf(ctx, quorate, users)
	return append(lines, requests...), err
}

func openRequestsOf(ctx context.Context, quorate *client.Client, users []string) (lines []string, err error) {
	request := &quoratev1beta1.ListRequestsRequest{
		State: quoratev1beta1.LimitRequestState_LIMIT_REQUEST_STATE_OPEN, PageSize: 1000,
	}
	for page, err := range client.Pages(ctx, quorate.Requests.ListRequests, request) {
		if err != nil {
			return lines, err
		}
		for _, r := range page.GetRequests() {
			if slices.Contains(users, r.GetAsker()) {
				lines = append(lines, fmt.Sprintf("request %d of %s for limits of %s is open; to end it: "+
					"quorate request reject %d --reason TEXT", r.GetId(), r.GetAsker(),
					PlaceOf(r.GetTree(), r.GetNode()), r.GetId()))
			}
		}
	}
	return lines, nil
}
