package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// leasesAndItems is a manifest with every key of leases, items and waiting, as Format writes it.
const leasesAndItems = `version: 1
trees:
  ci:
    leases: {default-ttl: 30m, max-ttl: 24h, grace: 30s}
    queueing: strict
    overtake: 1h30m
    resources:
      aws-account:
        items:
          names: [a, b]
          state: dirty
          released: dirty
          expired: stale
          ttl: 1.5s
          turns:
            - state: dirty
              new-state: free
              after: 5m
            - state: stale
              new-state: dirty
              after: 1m30s
          queueing: best-effort
      cluster: {items: {min: 1, max: 3, lifespan: 48h, retired: toBeDeleted, removed: tombstone}}
      cores: {unit: count}
      project: {items: {max: 5}}
    limits: {aws-account: 2, cluster: unlimited}
    nodes:
      team: {queueing: best-effort, limits: {aws-account: 1}}
`

func TestLeasesAndItems(t *testing.T) {
	got, err := parseTrees("f", []byte(leasesAndItems))
	if err != nil {
		t.Fatal(err)
	}
	items := quoratev1.Unit_UNIT_ITEMS
	want := []*quoratev1.Tree{{
		Name:     "ci",
		Leases:   &quoratev1.LeaseSettings{DefaultTtlMs: 1_800_000, MaxTtlMs: 86_400_000, GraceMs: 30_000},
		Queueing: quoratev1.Queueing_QUEUEING_STRICT, OvertakeMs: 5_400_000,
		Resources: []*quoratev1.Resource{
			{Name: "aws-account", Unit: items, Items: &quoratev1.ItemSpec{
				Names: []string{"a", "b"}, State: "dirty", Released: "dirty", Expired: "stale", TtlMs: 1500,
				Turns: []*quoratev1.ItemTurn{
					{State: "dirty", NewState: "free", AfterMs: 300_000}, {State: "stale", NewState: "dirty", AfterMs: 90_000},
				},
				Queueing: quoratev1.Queueing_QUEUEING_BEST_EFFORT,
			}},
			{Name: "cluster", Unit: items, Items: &quoratev1.ItemSpec{
				Min: 1, Max: 3, LifespanMs: 172_800_000, Retired: "toBeDeleted", Removed: "tombstone",
			}},
			{Name: "cores", Unit: count},
			{Name: "project", Unit: items, Items: &quoratev1.ItemSpec{Max: 5}},
		},
		Limits: map[string]*quoratev1.Limit{"aws-account": amount(2), "cluster": unlimited()},
		Nodes: []*quoratev1.Node{{
			Path: "team", Queueing: quoratev1.Queueing_QUEUEING_BEST_EFFORT,
			Limits: map[string]*quoratev1.Limit{"aws-account": amount(1)},
		}},
	}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	text, err := formatTrees(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(leasesAndItems, string(text)); diff != "" {
		t.Errorf("want (-), formatted (+):\n%s", diff)
	}
}

func itemized(items string) string { return "trees: {t: {resources: {r: {items: " + items + "}}}}" }

func settings(keys string) string { return "trees: {t: {resources: {c: {unit: count}}, " + keys + "}}" }

func TestLeasesAndItemsSayWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		itemized("[a]"):                               `items of "r" is a map of expired, lifespan, max, min, names, queueing, released, removed, retired, state, ttl, turns, not a list`,
		itemized("{name: [a]}"):                       `items of "r" has no key "name"; allowed are expired`,
		itemized("{}"):                                `f:1:36: items of "r": say which there are, names: [a, b], or how many are made on demand, max: 3`,
		itemized("{min: 1}"):                          `f:1:36: items of "r": say which there are`,
		itemized("{names: []}"):                       `f:1:44: items of "r": the list of names is empty`,
		itemized("{names: a}"):                        `f:1:44: names is a list, not "a"`,
		itemized("{names: [a, a]}"):                   `f:1:48: names of items of "r": "a" is given twice; the first is in line 1`,
		itemized("{names: [a/b]}"):                    `f:1:45: items of "r": "a/b" is not a valid item name: use 1 to 253 letters, digits and _ . @ + -`,
		itemized("{names: [{a: b}]}"):                 `names of items of "r": a name has 1 to 256 bytes`,
		itemized("{names: [a], max: 3}"):              `f:1:54: items of "r" are named, so they are not made on demand: leave max out, or the names`,
		itemized("{names: [a], lifespan: 1h}"):        `leave lifespan out, or the names`,
		itemized("{names: [a], retired: old}"):        `leave retired out, or the names`,
		itemized("{max: 3, retired: old}"):            `f:1:36: items of "r": retired, the state of items that are too many or too old, and removed`,
		itemized("{max: 3, removed: old}"):            `come together: write both`,
		itemized("{max: 3, retired: a, removed: a}"):  `f:1:66: items of "r": retired and removed are both "a": name two states`,
		itemized("{max: 0}"):                          `f:1:42: max of items of "r" is a number from 1 to 10000, not "0"`,
		itemized("{max: 10001}"):                      `is a number from 1 to 10000, not "10001"`,
		itemized("{max: 03}"):                         `is a number from 1 to 10000, not "03"`,
		itemized("{max: {}}"):                         `is a number from 1 to 10000, not a map`,
		itemized("{min: -1, max: 3}"):                 `min of items of "r" is a number from 0 to 10000, not "-1"`,
		itemized("{min: 4, max: 3}"):                  `f:1:50: items of "r": min, 4, is more than max, 3`,
		itemized("{max: 3, lifespan: 2w}"):            `f:1:55: lifespan of items of "r": "2w" is not a duration: write days, hours, minutes and seconds, such as 30d, 48h, 1h30m or 90s`,
		itemized("{max: 3, lifespan: 9000h}"):         `"9000h" is too long: the maximum is 8784h`,
		itemized("{max: 3, ttl: 169h}"):               `"169h" is too long: the maximum is 168h`,
		itemized("{max: 3, ttl: 0s}"):                 `"0s" is not positive`,
		itemized("{max: 3, ttl: -1s}"):                `"-1s" is not positive`,
		itemized("{max: 3, ttl: 1us}"):                `"1us" is not a whole number of milliseconds`,
		itemized("{max: 3, ttl: 30}"):                 `"30" is not a duration`,
		itemized("{max: 3, ttl: [30s]}"):              `ttl of items of "r" is a time, such as 90s, 30m, 1h30m or 30d, not a list`,
		itemized("{max: 3, state: ''}"):               `state of items of "r" is the word for a state, such as free or dirty, of up to 63 bytes`,
		itemized("{max: 3, expired: {}}"):             `expired of items of "r" is the word for a state`,
		itemized("{max: 3, queueing: fifo}"):          `f:1:55: queueing of items of "r" must be strict or best-effort, not "fifo"`,
		itemized("{max: 3, turns: {}}"):               `turns is a list, not a map`,
		itemized("{max: 3, turns: [dirty]}"):          `turn 1 of items of "r" is a map of after, new-state, state, not "dirty"`,
		itemized("{max: 3, turns: [{state: dirty}]}"): `turn 1 of items of "r" has no "new-state": write {state: dirty, new-state: free, after: 5m}`,
		itemized("{max: 3, turns: [{state: a, new-state: b, after: 1m}, {state: a, new-state: c, after: 1m}]}"): `turn 2 of items of "r": there is already a turn from "a", in line 1`,
		itemized("{max: 3, turns: [{state: a, new-state: a, after: 1m}]}"):                                      `turn 1 of items of "r" leads from "a" to itself`,
		"trees: {t: {resources: {r: {unit: items}}}}":                                                           `the unit of "r" must be one of count, milli, bytes; named items are written {items: {names: [a, b]}}`,
		"trees: {t: {resources: {r: {unit: count, items: {max: 1}}}}}":                                          `f:1:25: resource "r" has a unit and items: leave one of them out`,
		settings("leases: {}"):                              `f:1:52: leases of tree "t" are empty: write leases: {default-ttl: 30m}, or leave the line out`,
		settings("leases: 30m"):                             `leases of tree "t" is a map of default-ttl, grace, max-ttl, not "30m"`,
		settings("leases: {default-ttl: 2h, max-ttl: 1h}"):  `leases of tree "t": their default-ttl, 2h, is longer than their max-ttl, 1h`,
		settings("leases: {grace: 61m}"):                    `grace of leases of tree "t": "61m" is too long: the maximum is 1h`,
		settings("overtake: 1000000h"):                      `overtake of tree "t": "1000000h" is too long: the maximum is 168h`,
		settings("queueing: {}"):                            `queueing of tree "t" must be strict or best-effort, not a map`,
		settings("nodes: {n: {overtake: 1m}}"):              `node "n" has no key "overtake"`,
		settings("nodes: {n: {leases: {default-ttl: 1m}}}"): `node "n" has no key "leases"`,
		settings("nodes: {n: {queueing: strictly}}"):        `queueing of node "n" must be strict or best-effort, not "strictly"`,
	} {
		if got, err := parseTrees("f", []byte(text)); err == nil || got != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse answers %v, %v; want an error that says %q\n%s", got, err, want, text)
		}
	}
}

func TestItemBounds(t *testing.T) {
	names := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("i%d", i))
		}
		return itemized("{names: [" + strings.Join(list, ",") + "]}")
	}
	turns := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("{state: s%d, new-state: free, after: 1m}", i))
		}
		return itemized("{max: 10000, turns: [" + strings.Join(list, ",") + "]}")
	}
	long := strings.Repeat("x", 253)
	for text, want := range map[string]string{
		names(10_000):                        "",
		names(10_001):                        "names has 10001 entries; 10000 are allowed",
		turns(16):                            "",
		turns(17):                            "turns has 17 entries; 16 are allowed",
		itemized("{names: [" + long + "]}"):  "",
		itemized("{names: [" + long + "x]}"): "is not a valid item name",
	} {
		_, err := parseTrees("f", []byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Parse says %v, want %q", err, want)
		}
	}
}

// TestFormatRefusesWhatCannotBeRead: items without their unit and the reverse, and times beyond all bounds.
func TestFormatRefusesHalfItems(t *testing.T) {
	resource := func(r *quoratev1.Resource) []*quoratev1.Tree {
		r.Name = "r"
		return []*quoratev1.Tree{{Name: "t", Resources: []*quoratev1.Resource{r}}}
	}
	for want, trees := range map[string][]*quoratev1.Tree{
		"has the unit items, and items: false": resource(&quoratev1.Resource{Unit: quoratev1.Unit_UNIT_ITEMS}),
		"has the unit bytes, and items: true": resource(
			&quoratev1.Resource{Unit: octet, Items: &quoratev1.ItemSpec{Max: 1}}),
		"is not a duration": resource(&quoratev1.Resource{
			Unit: quoratev1.Unit_UNIT_ITEMS, Items: &quoratev1.ItemSpec{Max: 1, LifespanMs: 1 << 62},
		}),
	} {
		if text, err := formatTrees(trees); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Format answers %s, %v; want an error that says %q", text, err, want)
		}
	}
}

func spans(most int64) *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, most),
		rapid.SampledFrom([]int64{1, 1000, 60_000, 3_600_000, most}))
}

func queueingWords() *rapid.Generator[quoratev1.Queueing] {
	return rapid.SampledFrom(
		[]quoratev1.Queueing{0, quoratev1.Queueing_QUEUEING_STRICT, quoratev1.Queueing_QUEUEING_BEST_EFFORT})
}

func leaseSettings() *rapid.Generator[*quoratev1.LeaseSettings] {
	return rapid.Custom(func(t *rapid.T) *quoratev1.LeaseSettings {
		most := spans(maxTTL.Milliseconds()).Draw(t, "max-ttl")
		longest := most
		if most == 0 {
			longest = maxTTL.Milliseconds()
		}
		s := &quoratev1.LeaseSettings{
			DefaultTtlMs: min(longest, spans(longest).Draw(t, "ttl")), MaxTtlMs: most,
			GraceMs: spans(maxGrace.Milliseconds()).Draw(t, "grace"),
		}
		if s.GetDefaultTtlMs()+s.GetMaxTtlMs()+s.GetGraceMs() == 0 {
			return nil
		}
		return s
	})
}

func itemSpecs() *rapid.Generator[*quoratev1.ItemSpec] {
	states := texts(maxWord)
	return rapid.Custom(func(t *rapid.T) *quoratev1.ItemSpec {
		spec := &quoratev1.ItemSpec{
			State: states.Draw(t, "state"), Released: states.Draw(t, "released"), Expired: states.Draw(t, "expired"),
			TtlMs: spans(maxTTL.Milliseconds()).Draw(t, "ttl"), Queueing: queueingWords().Draw(t, "queueing"),
		}
		if rapid.Bool().Draw(t, "named") {
			spec.Names = rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,30}`), 1, 12,
				rapid.ID).Draw(t, "names")
		} else {
			spec.Max = rapid.Int64Range(1, maxItems).Draw(t, "max")
			spec.Min = rapid.Int64Range(0, spec.GetMax()).Draw(t, "min")
			spec.LifespanMs = spans(maxLifespan.Milliseconds()).Draw(t, "lifespan")
			if rapid.Bool().Draw(t, "retires") {
				spec.Retired, spec.Removed = "toBeDeleted", "tombstone"
			}
		}
		for _, from := range rapid.SliceOfNDistinct(states, 0, 3, rapid.ID).Draw(t, "turns") {
			if to := states.Draw(t, "to"); from != "" && to != "" && from != to {
				after := rapid.Int64Range(1, maxLifespan.Milliseconds()).Draw(t, "after")
				spec.Turns = append(spec.Turns, &quoratev1.ItemTurn{State: from, NewState: to, AfterMs: after})
			}
		}
		return spec
	})
}
