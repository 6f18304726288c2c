package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func member(key string, state MemberState, cores int64) Member {
	return Member{Key: key, State: state, Claims: []Claim{{"lab", "team", map[string]int64{"cores": cores}}}}
}

func grant(id string, state GrantState, cores int64) Grant {
	_, attempt, _ := parseID("p", id)
	return Grant{
		ID: id, State: state, attempt: attempt, Until: time.Unix(9, 0),
		Claims: []Claim{{"lab", "team", map[string]int64{"cores": cores}}},
	}
}

func TestDecide(t *testing.T) {
	one := func(state MemberState) Work { return Work{Key: "w", Members: []Member{member("a", state, 2)}} }
	group := func(wanted int, states ...MemberState) Work {
		w := Work{Key: "w", Wanted: wanted}
		for i, state := range states {
			w.Members = append(w.Members, member(string(rune('a'+i)), state, 2))
		}
		return w
	}
	broken := one(Closed)
	broken.Problem = "no node"
	for name, test := range map[string]struct {
		work   Work
		grants []Grant
		want   string
	}{
		"new work asks":                    {one(Closed), nil, "request"},
		"a problem is told":                {broken, nil, "tell no node"},
		"a problem gives up the place":     {broken, []Grant{grant("p/w", Waiting, 2)}, "release p/w, tell no node"},
		"a waiting request is repeated":    {one(Closed), []Grant{grant("p/w", Waiting, 2)}, "request p/w"},
		"a grant opens":                    {one(Closed), []Grant{grant("p/w", Held, 2)}, "keep p/w, open a"},
		"less than needed opens nothing":   {one(Closed), []Grant{grant("p/w", Held, 1)}, "keep p/w, tell the allocation"},
		"revoked before it opened":         {one(Closed), []Grant{grant("p/w", Revoked, 2)}, "release p/w"},
		"what runs is kept":                {one(Open), []Grant{grant("p/w", Held, 2)}, "keep p/w"},
		"what runs and is revoked ends":    {one(Open), []Grant{grant("p/w", Revoked, 2)}, "evict a"},
		"it is told once":                  {one(Stopping), []Grant{grant("p/w", Revoked, 2)}, ""},
		"stopping still counts":            {one(Stopping), []Grant{grant("p/w", Held, 2)}, "keep p/w"},
		"running without an allocation":    {one(Open), nil, "readmit"},
		"stopping without an allocation":   {one(Stopping), nil, ""},
		"opened by others while it waited": {one(Open), []Grant{grant("p/w", Waiting, 2)}, "release p/w"},
		"shrunk below what runs":           {one(Open), []Grant{grant("p/w", Held, 1)}, "keep p/w, evict a"},
		"ended":                            {one(Ended), []Grant{grant("p/w", Held, 2)}, "release p/w"},
		"ended while it waited":            {one(Ended), []Grant{grant("p/w", Waiting, 2)}, "release p/w"},
		"ended and released":               {one(Ended), nil, ""},
		"a second allocation is released": {
			one(Closed),
			[]Grant{grant("p/w", Waiting, 2), grant("p/w/2", Held, 2)},
			"release p/w, keep p/w/2, open a",
		},
		"the first of two in the queue stays": {
			one(Closed), []Grant{grant("p/w/2", Waiting, 2), grant("p/w", Waiting, 2)}, "release p/w/2, request p/w",
		},
		"a group that is not complete":   {group(3, Closed, Closed), nil, "tell 2 of 3"},
		"a complete group asks":          {group(2, Closed, Closed), nil, "request"},
		"ended members count as arrived": {group(2, Closed, Ended), nil, "request"},
		"a group opens as a whole": {
			group(2, Closed, Closed), []Grant{grant("p/w", Held, 4)}, "keep p/w, open a, open b",
		},
		"a group that lost a member while it waited": {
			group(3, Closed, Closed), []Grant{grant("p/w", Held, 6)}, "release p/w, tell 2 of 3",
		},
		"a group that was opened in part": {
			group(3, Open, Closed, Closed), []Grant{grant("p/w", Held, 6)}, "keep p/w, open b, open c",
		},
		"one more than was granted": {
			group(2, Open, Open, Closed), []Grant{grant("p/w", Held, 4)}, "keep p/w, tell the allocation",
		},
		"a replacement takes the place of one that ended": {
			group(2, Ended, Open, Closed), []Grant{grant("p/w", Held, 4)}, "keep p/w, open c",
		},
		"a replacement waits for one that stops": {
			group(2, Stopping, Open, Closed), []Grant{grant("p/w", Held, 4)}, "keep p/w, tell the allocation",
		},
		"a revoked group ends, and opens nothing": {
			group(2, Open, Closed), []Grant{grant("p/w", Revoked, 4)}, "evict a",
		},
		"of more than was granted the last ends": {
			group(2, Open, Open), []Grant{grant("p/w", Held, 2)}, "keep p/w, evict b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := describe(Decide(test.work, test.grants))
			if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func describe(actions []Action) string {
	var words []string
	for _, a := range actions {
		switch a.Kind {
		case Request:
			words = append(words, strings.TrimSpace("request "+a.Grant.ID))
		case Readmit:
			words = append(words, "readmit")
		case OpenMember:
			words = append(words, "open "+a.Member.Key)
		case EvictMember:
			words = append(words, "evict "+a.Member.Key)
		case ReleaseGrant:
			words = append(words, "release "+a.Grant.ID)
		case Keep:
			words = append(words, "keep "+a.Grant.ID)
		case Tell:
			words = append(words, "tell "+a.Text)
		default:
			words = append(words, fmt.Sprint("unknown ", a.Kind))
		}
	}
	return strings.Join(words, ", ")
}

func TestEvictionsHaveTheEndOfTheGrant(t *testing.T) {
	w := Work{Key: "w", Members: []Member{member("a", Open, 2)}}
	actions := Decide(w, []Grant{grant("p/w", Revoked, 2)})
	if len(actions) != 1 || !actions[0].Grant.Until.Equal(time.Unix(9, 0)) {
		t.Errorf("got %+v", actions)
	}
}

func TestAMovedAllocationStillCovers(t *testing.T) {
	g := grant("p/w", Held, 2)
	g.Claims[0].Node = "elsewhere"
	if got := describe(Decide(Work{Key: "w", Members: []Member{member("a", Open, 2)}}, []Grant{g})); got != "keep p/w" {
		t.Error(got)
	}
}

func TestIDs(t *testing.T) {
	for id, want := range map[string]string{
		"p/w": "w 1 true", "p/w/2": "w 2 true", "p/w/1": " 0 false", "p/w/x": " 0 false", "q/w": " 0 false",
		"p/": " 1 false", "pw": " 0 false",
	} {
		key, attempt, ours := parseID("p", id)
		if got := fmt.Sprint(key, " ", attempt, " ", ours); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
		if ours && makeID("p", key, attempt) != id {
			t.Errorf("%s does not come back", id)
		}
	}
}
