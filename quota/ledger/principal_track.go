package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// track is where claims of one principal with one home are counted: it knows the way through the accounts.
type track struct {
	trackKey
	claims int
	held   []placedAmount // what the claims add up to, without zeros, in any order
	// userRun and groupRun are those at the home while claims are counted; groupRun is nil if no group is counted.
	userRun, groupRun *run
}

type trackKey struct {
	user, application, group string
	home                     *node
}

// memberKey is an application in a tree: the same name under two users is two applications.
type memberKey struct{ user, application string }

// membership is a group with the tracks of one application that are counted in it.
type membership struct {
	group  string // empty for none
	tracks int
}

// track finds a track, or makes one that nothing is counted on yet.
func (acc *accounts) track(key trackKey) *track {
	if t := acc.tracks[key]; t != nil {
		return t
	}
	return &track{trackKey: key}
}

// follow ties a claim to the track of its principal and group.
func (c *placedClaim) follow(p quota.Principal) {
	if p.User != "" {
		home := c.home()
		c.particulars().track = home.tree.accounts.track(trackKey{p.User, p.Application, c.group(), home})
	}
}

// particulars are made when they are needed.
func (c *placedClaim) particulars() *claimParticulars {
	if c.more == nil {
		c.more = &claimParticulars{}
	}
	return c.more
}

func (c *placedClaim) group() string {
	if c.more == nil {
		return ""
	}
	return c.more.group
}

// add counts a claim, or with -1 gives it back. A track on which nothing is counted may have a successor by now, and the
// claim another home: then it is counted there.
func (t *track) add(c *placedClaim, sign quota.Amount) {
	if home := c.home(); t.claims == 0 || t.home != home {
		key := t.trackKey
		key.home = home
		t = home.tree.accounts.track(key)
		c.more.track = t
	}
	if t.claims == 0 {
		t.enter()
	}
	t.claims += int(sign)
	for _, p := range c.amounts {
		t.hold(p.resource, sign*p.amount)
	}
	t.count(c.amounts, 1, sign)
	if t.claims == 0 {
		t.leave()
	}
}

// sameTrack ties the claim to the track of another record of it, on which it may have been taken out and counted again
// since: then the track that it knows has been left for a successor.
func (c *placedClaim) sameTrack(later *placedClaim) {
	if later.more.track != nil {
		c.more.track = later.more.track
	}
}

func (t *track) count(amounts []placedAmount, claims int, sign quota.Amount) {
	t.userRun.add(amounts, claims, sign)
	t.groupRun.add(amounts, claims, sign)
}

// hold keeps the sum of what is held.
func (t *track) hold(r *resource, amount quota.Amount) {
	i := slices.IndexFunc(t.held, func(p placedAmount) bool { return p.resource == r })
	switch {
	case amount == 0:
	case i < 0:
		t.held = append(t.held, placedAmount{r, amount})
	case t.held[i].amount+amount == 0:
		t.held = slices.Delete(t.held, i, i+1)
	default:
		t.held[i].amount += amount
	}
}

// enter makes the runs that the track counts on.
func (t *track) enter() {
	acc := &t.home.tree.accounts
	t.userRun, t.groupRun = acc.run(quota.Holder{Kind: quota.AUser, Name: t.user}, t.home, t.application), nil
	if t.group != "" {
		t.groupRun = acc.run(quota.Holder{Kind: quota.AGroup, Name: t.group}, t.home, t.application)
	}
	if acc.tracks == nil {
		acc.tracks = map[trackKey]*track{}
	}
	acc.tracks[t.trackKey] = t
	acc.join(t, 1)
}

// leave forgets the track; its runs have ended with the last claim.
func (t *track) leave() {
	acc := &t.home.tree.accounts
	delete(acc.tracks, t.trackKey)
	acc.join(t, -1)
	t.userRun, t.groupRun = nil, nil
}

// join counts a track of an application in its group, or with -1 takes it off.
func (acc *accounts) join(t *track, tracks int) {
	if t.application == "" {
		return
	}
	key := memberKey{t.user, t.application}
	list := acc.members[key]
	i, known := slices.BinarySearchFunc(list, t.group, func(m membership, group string) int { return strings.Compare(m.group, group) })
	if !known {
		list = slices.Insert(list, i, membership{group: t.group})
	}
	if list[i].tracks += tracks; list[i].tracks == 0 {
		list = slices.Delete(list, i, i+1)
	}
	if acc.members == nil {
		acc.members = map[memberKey][]membership{}
	}
	if acc.members[key] = list; len(list) == 0 {
		delete(acc.members, key)
	}
}

// member answers the group that an application is counted in while it holds anything in the tree. If it is counted in
// several, because an ended allocation of another group holds again, it is the first by name.
func (acc *accounts) member(p quota.Principal) (string, bool) {
	if p.Application == "" {
		return "", false
	}
	if list := acc.members[memberKey{p.User, p.Application}]; len(list) > 0 {
		return list[0].group, true
	}
	return "", false
}
