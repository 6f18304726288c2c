package yunikorn_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/quorate/quorate/compat/yunikorn"
)

// partitions, inRoot and onRoot write configurations around what a rule is about, in flow style.
func partitions(text string) string { return "partitions: [" + text + "]" }

func inRoot(queues string) string {
	return partitions("{name: default, queues: [{name: root, queues: [" + queues + "]}]}")
}

func onRoot(limits string) string {
	return partitions("{name: default, queues: [{name: root, limits: [" + limits + "]}]}")
}

// levels are limits on root, on root.a and on root.a.b.
func levels(root, a, b string) string {
	return partitions(fmt.Sprintf("{queues: [{name: root, limits: [%s], queues: [{name: a, limits: [%s], "+
		"queues: [{name: b, limits: [%s]}]}]}]}", root, a, b))
}

func named(kind, name, rest string) string { return fmt.Sprintf("{%s: [%q], %s}", kind, name, rest) }

type rules map[string]struct {
	text string
	want string // the rule that is named first; empty if the text is accepted
}

func (r rules) run(t *testing.T, options ...yunikorn.Option) {
	t.Helper()
	for name, test := range r {
		t.Run(name, func(t *testing.T) {
			if _, rule := judge(t, []byte(test.text), options...); rule != test.want {
				t.Errorf("the first rule is %q, want %q, of\n%s\n%v", rule, test.want, test.text,
					yunikorn.Validate([]byte(test.text), options...))
			}
		})
	}
}

func TestReading(t *testing.T) {
	rules{
		"nothing at all":           {"", ""},
		"a comment":                {"# nothing\n", ""},
		"no partitions":            {"partitions: []", ""},
		"null":                     {"~", ""},
		"not a map":                {"hello", "yaml"},
		"not YAML":                 {"partitions: [", "yaml"},
		"an unknown key":           {partitions("{queues: [], quota: 1}"), "yaml"},
		"a key in the wrong case":  {partitions("{Queues: []}"), "yaml"},
		"a double key":             {partitions("{name: a, name: b, queues: []}"), "yaml"},
		"a checksum":               {"checksum: abc\npartitions: []", ""},
		"only the first document":  {"partitions: []\n---\nnonsense: true", ""},
		"all the other keys":       {partitions(otherKeys), ""},
		"a key that is gone":       {partitions("{queues: [], statedumpfilepath: x}"), "yaml"},
		"a list in place of a map": {inRoot("{name: a, resources: [1]}"), "yaml"},
		"an anchor": {
			"partitions: [{queues: [{name: a, limits: &l [{users: [sue], maxapplications: 1}]}, {name: " +
				"b, limits: *l}]}]", "",
		},
		"a queue that is not a map": {inRoot("text"), "yaml"},
		"too large":                 {"#" + strings.Repeat("x", yunikorn.MaxSize), "bounds"},
		"as large as may be":        {"#" + strings.Repeat("x", yunikorn.MaxSize-1), ""},
		"64 levels below root":      {inRoot(nested(64)), ""},
		"65 levels below root":      {inRoot(nested(65)), "bounds"},
		"too many keys in a map":    {onRoot("{users: [sue], maxresources: {" + types(257) + "}}"), "bounds"},
		"as many keys as may be":    {onRoot("{users: [sue], maxresources: {" + types(256) + "}}"), ""},
		"aliases that multiply": {"partitions: [{queues: [" +
			repeated(2000, "{name: q%d, limits: &l%[1]d [{users: [sue], maxapplications: 1}]}") + "]}, " +
			"{name: more, queues: &q [" + repeated(2000, "{name: q%d}") + "]}, " +
			repeated(100, "{name: p%d, queues: *q}") + "]", "bounds"},
		"an anchor in itself": {"partitions: &p [*p]", "yaml"},
		"wide and named": {
			partitions("{limits: [{users: [" + repeated(9000, "u%d") + "], maxapplications: 1}], queues: [" +
				repeated(9000, "{name: q%d, limits: [{users: [u%[1]d], maxapplications: 1}]}") + "]}"), "",
		},
		"true or false, in YAML 1.1": {inRoot("{name: a, parent: yes}"), ""},
	}.run(t)
}

const otherKeys = `{name: default, preemption: {enabled: true, quotapreemptionenabled: false}, usergroupresolver: {type: os},
  nodesortpolicy: {type: fair, resourceweights: {memory: 1.5}},
  placementrules: [{name: tag, value: namespace, create: true, filter: {type: allow, users: [sue]},
    parent: {name: user}}],
  queues: [{name: root, parent: true, submitacl: "*", adminacl: "sue,bob ops", properties: {a: b},
    childtemplate: {maxapplications: 1, properties: {a: b}, resources: {max: {memory: x}}}}]}`

func nested(depth int) string {
	return strings.Repeat("{name: a, queues: [", depth-1) + "{name: a}" + strings.Repeat("]}", depth-1)
}

func types(count int) string { return repeated(count, "t%d: 1") }

// manyTypes limits one user in so many types whose names begin with a letter.
func manyTypes(count int, letter string) string {
	return "{users: [" + letter + "], maxresources: {" + repeated(count, letter+"%d: 1") + "}}"
}

// repeated writes a text for every number from 0.
func repeated(count int, format string) string {
	list := make([]string, count)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(list, ", ")
}

func TestCounts(t *testing.T) {
	verdicts := map[string]string{
		"0": "limit-nothing", "~": "limit-nothing", "-0.5": "limit-nothing", "0.9": "limit-nothing", // all are zero
		"1": "", "0x10": "", "0o17": "", "017": "", "1_000": "", "1e1": "", "2.9": "", "+3": "",
		// the second is read as a float, which is rounded down to fit
		"18446744073709551615": "", "18446744073709551616": "",
		"-1": "yaml", `"2"`: "yaml", "true": "yaml", "two": "yaml", "[1]": "yaml", "1e300": "yaml",
	}
	for count, want := range verdicts {
		t.Run(count, func(t *testing.T) {
			if _, rule := judge(t, []byte(onRoot("{users: [sue], maxapplications: "+count+"}"))); rule != want {
				t.Errorf("the rule is %q, want %q", rule, want)
			}
		})
	}
	t.Run("a fraction is cut off", func(t *testing.T) {
		rules{
			"2.9 is 2":  {queueAndLimit("2", "2.9"), ""},
			"1e1 is 10": {queueAndLimit("9", "1e1"), "limit-apps-over-queue"},
		}.run(t)
	})
	t.Run("a negative fraction wraps", func(t *testing.T) {
		if runtime.GOARCH != "amd64" {
			t.Skip("what becomes of a negative fraction is the processor's, here as there")
		}
		rules{"-1.5 is endless": {queueAndLimit("9223372036854775807", "-1.5"), "limit-apps-over-queue"}}.run(t)
	})
}

func queueAndLimit(queue, limit string) string {
	return inRoot("{name: a, maxapplications: " + queue + ", limits: [{users: [sue], maxapplications: " + limit + "}]}")
}

func TestStructure(t *testing.T) {
	rules{
		"two partitions": {partitions("{name: a, queues: []}, {name: b, queues: []}"), ""},
		"two of a name": {
			partitions("{name: a, queues: []}, {name: A, queues: []}"),
			"partition-duplicate",
		},
		"two that are default": {
			partitions("{name: DEFAULT, queues: []}, {queues: []}"),
			"partition-duplicate",
		},
		"no queues":        {partitions("{name: a}"), "queues-missing"},
		"null queues":      {partitions("{name: a, queues: ~}"), "queues-missing"},
		"empty queues":     {partitions("{name: a, queues: []}"), ""},
		"root in capitals": {partitions("{queues: [{name: ROOT}]}"), ""},
		"root beside another is below root": {
			partitions("{queues: [{name: root, resources: {max: {memory: 1}}}, {name: a}]}"), "",
		},
		"root with max": {
			partitions("{queues: [{name: root, resources: {max: {memory: 1}}}]}"),
			"root-resources",
		},
		"root with an empty guarantee": {
			partitions("{queues: [{name: root, resources: {guaranteed: {}}}]}"),
			"root-resources",
		},
		"root with empty resources":    {partitions("{queues: [{name: root, resources: {}}]}"), ""},
		"limits of the partition only": {partitions("{limits: [" + sue + "], queues: [{name: root}]}"), ""},
		"limits of the partition are root's": {
			partitions("{limits: [" + sue + "], queues: [{name: a, limits: [{users: [sue], maxapplications: 2}]}]}"),
			"user-apps-over-parent",
		},
		"limits of partition and root, equal": {
			partitions("{limits: [" + sue + "], queues: [{name: root, limits: [" + sue + "]}]}"), "",
		},
		"limits of partition and root, not equal": {
			partitions("{limits: [" + sue + "], queues: [{name: root, limits: [" + bob + "]}]}"),
			"root-partition-mismatch",
		},
		"limits of partition and root, other words": {
			partitions("{limits: [" + sue + "], queues: [{name: root, limits: [{limit: x, users: [sue], " +
				"maxapplications: 1}]}]}"), "root-partition-mismatch",
		},
		"limits of the partition are checked": {
			partitions("{limits: [{maxapplications: 1}], queues: []}"),
			"limit-nobody",
		},
		"an access list of two":        {inRoot("{name: a, submitacl: ' sue,bob  ops '}"), ""},
		"an access list of three":      {inRoot("{name: a, submitacl: 'sue bob ops'}"), "acl"},
		"an admin list of three":       {inRoot("{name: a, adminacl: 'sue bob ops'}"), "acl"},
		"a queue without a name":       {inRoot("{}"), "queue-name"},
		"a queue with a dot":           {inRoot("{name: a.b}"), "queue-name"},
		"a queue with all signs":       {inRoot(`{name: "_:#/@-Az09"}`), ""},
		"64 letters":                   {inRoot("{name: " + strings.Repeat("a", 64) + "}"), ""},
		"65 letters":                   {inRoot("{name: " + strings.Repeat("a", 65) + "}"), "queue-name"},
		"a line after the name":        {inRoot(`{name: "a\n"}`), "queue-name"},
		"siblings that differ in case": {inRoot("{name: a}, {name: A}"), "queue-duplicate"},
		"cousins of one name": {
			inRoot("{name: a, queues: [{name: c}]}, {name: b, queues: [{name: c}]}"), "",
		},
		"a node order that is": {
			partitions("{queues: [], nodesortpolicy: {type: binpacking}}"), "",
		},
		"a node order that is not": {
			partitions("{queues: [], nodesortpolicy: {type: random}}"),
			"node-sort-policy",
		},
		"a negative weight": {
			partitions("{queues: [], nodesortpolicy: {resourceweights: {memory: -1}}}"), "node-sort-policy",
		},
	}.run(t)
}

const (
	sue = "{users: [sue], maxapplications: 1}"
	bob = "{users: [bob], maxapplications: 1}"
)

func TestLimitsOfOneQueue(t *testing.T) {
	rules{
		"no names":                      {onRoot("{maxapplications: 1}"), "limit-nobody"},
		"empty lists of names":          {onRoot("{users: [], groups: [], maxapplications: 1}"), "limit-nobody"},
		"only a group":                  {onRoot(named("groups", "ops", "maxapplications: 1")), ""},
		"user that begins with a digit": {onRoot(named("users", "1sue", "maxapplications: 1")), "user-name"},
		"user with two dollars":         {onRoot(named("users", "sue$$", "maxapplications: 1")), "user-name"},
		"user with a space":             {onRoot(named("users", "sue bob", "maxapplications: 1")), "user-name"},
		"user with a line after it":     {onRoot(named("users", "sue\n", "maxapplications: 1")), "user-name"},
		"user with all signs":           {onRoot(named("users", "_:#/_.@-9$", "maxapplications: 1")), ""},
		"group with an at":              {onRoot(named("groups", "a@b", "maxapplications: 1")), "group-name"},
		"group with a dollar":           {onRoot(named("groups", "ops$", "maxapplications: 1")), "group-name"},
		"group with all signs":          {onRoot(named("groups", "_:_.-9", "maxapplications: 1")), ""},
		"user again in the list":        {onRoot("{users: [sue, sue], maxapplications: 1}"), "user-duplicate"},
		"user again in another entry":   {onRoot(sue + "," + sue), "user-duplicate"},
		"user in another case":          {onRoot("{users: [sue, Sue], maxapplications: 1}"), ""},
		"group again":                   {onRoot("{groups: [a, a], maxapplications: 1}"), "group-duplicate"},
		"wildcard again": {
			onRoot(`{users: ["*"], maxapplications: 1}, {users: ["*"], maxapplications: 1}`), "user-duplicate",
		},
		"name after the wildcard":      {onRoot(`{users: ["*", sue], maxapplications: 1}`), "user-after-wildcard"},
		"name in an entry after it":    {onRoot(`{users: ["*"], maxapplications: 1}, ` + sue), "user-after-wildcard"},
		"group after the wildcard":     {onRoot(`{groups: [a, "*", b], maxapplications: 1}`), "group-after-wildcard"},
		"the wildcard closes the list": {onRoot(`{users: [sue, "*"], maxapplications: 1}`), ""},
		"groups after a wildcard user": {
			onRoot(`{users: ["*"], maxapplications: 1}, {groups: [a], maxapplications: 1}`), "",
		},
		"the wildcard of another queue": {levels(`{users: ["*"], maxapplications: 1}`, sue, ""), ""},
		"wildcard group alone":          {onRoot(`{groups: ["*"], maxapplications: 1}`), "group-wildcard-alone"},
		"wildcard group, named above": {
			levels("{groups: [a], maxapplications: 1}", `{groups: ["*"], maxapplications: 1}`, ""),
			"group-wildcard-alone",
		},
		"wildcard group, named before": {onRoot(`{groups: [a, "*"], maxapplications: 1}`), ""},
		"wildcard group, named after":  {onRoot(`{groups: ["*", a], maxapplications: 1}`), "group-after-wildcard"},
		"wildcard user alone":          {onRoot(`{users: ["*"], maxapplications: 1}`), ""},
		"unreadable":                   {onRoot(named("users", "sue", "maxresources: {memory: lots}")), "quantity"},
		"all zero": {
			onRoot(named("users", "sue", "maxresources: {memory: 0, vcore: 0}, maxapplications: 1")),
			"limit-zero-resources",
		},
		"one zero":                      {onRoot(named("users", "sue", "maxresources: {memory: 0, vcore: 1}")), ""},
		"an empty map":                  {onRoot(named("users", "sue", "maxresources: {}, maxapplications: 1")), ""},
		"nothing set":                   {onRoot("{users: [sue]}"), "limit-nothing"},
		"an empty map and nothing":      {onRoot(named("users", "sue", "maxresources: {}")), "limit-nothing"},
		"applications over the queue's": {queueAndLimit("1", "2"), "limit-apps-over-queue"},
		"applications over root's": {
			partitions("{queues: [{name: root, maxapplications: 1, limits: [{users: [sue], maxapplications: 2}]}]}"),
			"limit-apps-over-queue",
		},
		"applications equal":            {queueAndLimit("2", "2"), ""},
		"applications, queue unlimited": {queueAndLimit("0", "2"), ""},
		"resources only, queue counted": {
			inRoot("{name: a, maxapplications: 1, limits: [{users: [sue], maxresources: {memory: 1}}]}"), "",
		},
		"resources over the queue's": {resourcesUnder("memory: 10", "memory: 11"), "limit-res-over-queue"},
		"resources equal":            {resourcesUnder("memory: 10", "memory: 10"), ""},
		"resources of other types":   {resourcesUnder("memory: 10", "vcore: 99"), ""},
		"a zero maximum counts":      {resourcesUnder("memory: 0", "memory: 1"), "limit-res-over-queue"},
		"the maximum is unreadable":  {resourcesUnder("memory: x", "memory: 1"), "quantity"},
		"in another queue called root": {
			inRoot("{name: root, resources: {max: {memory: 1}}, limits: [{users: [sue], maxresources: {memory: 2}}]}"),
			"",
		},
		"in a queue called Root": {
			inRoot("{name: Root, resources: {max: {memory: 1}}, limits: [{users: [sue], maxresources: {memory: 2}}]}"),
			"limit-res-over-queue",
		},
		"users come before groups": {onRoot(`{groups: ["1"], users: ["2"], maxapplications: 1}`), "user-name"},
		"names come before values": {onRoot(`{groups: ["1"], maxresources: {memory: x}}`), "group-name"},
		"entries come in order": {
			onRoot(`{users: [a], maxresources: {memory: x}}, {users: ["1"], maxapplications: 1}`), "quantity",
		},
		"a parent comes before children": {
			levels("{users: [sue]}", `{users: ["1"], maxapplications: 1}`, ""),
			"limit-nothing",
		},
		"limits come before names": {
			inRoot("{name: a, limits: [{users: [sue]}], queues: [{name: a.b}]}"),
			"limit-nothing",
		},
		"limits come before maxima": {
			inRoot("{name: a, resources: {max: {memory: 1}}, queues: [{name: b, resources: {max: {memory: 2}}, " +
				"limits: [{users: [sue]}]}]}"), "limit-nothing",
		},
	}.run(t)
}

func resourcesUnder(max, limit string) string {
	return inRoot("{name: a, resources: {max: {" + max + "}}, limits: [{users: [sue], maxresources: {" + limit + "}}]}")
}

func TestQueues(t *testing.T) {
	own := func(max, guaranteed, children string) string {
		return inRoot(fmt.Sprintf("{name: a, resources: {max: {%s}, guaranteed: {%s}}, queues: [%s]}", max,
			guaranteed, children))
	}
	child := func(name, max, guaranteed string) string {
		return fmt.Sprintf("{name: %s, resources: {max: {%s}, guaranteed: {%s}}}", name, max, guaranteed)
	}
	most := int64(9223372036854775807)
	rules{
		"guaranteed within max": {own("memory: 10", "memory: 10, vcore: 3", ""), ""},
		"guaranteed over max":   {own("memory: 10", "memory: 11", ""), "queue-guaranteed-over-max"},
		"guaranteed unreadable": {own("", "memory: -1", ""), "quantity"},
		"max unreadable":        {own("memory: 1.5", "", ""), "quantity"},
		"child within max":      {own("memory: 10", "", child("b", "memory: 10, vcore: 1", "")), ""},
		"child over max": {
			own("memory: 10", "", child("b", "memory: 11", "")),
			"queue-max-over-parent",
		},
		"grandchild over an inherited": {
			own("memory: 10", "", "{name: b, queues: ["+child("c", "memory: 11", "")+"]}"), "queue-max-over-parent",
		},
		"a type of a level between": {
			own("memory: 10", "", "{name: b, resources: {max: {vcore: 1}}, queues: ["+child("c", "vcore: 2", "")+"]}"),
			"queue-max-over-parent",
		},
		"a maximum does not reach aside": {
			own("memory: 10", "", child("b", "memory: 1", "")+","+child("c", "memory: 9", "")), "",
		},
		"sum within guaranteed": {
			own("", "memory: 10", child("b", "", "memory: 4")+","+child("c", "", "memory: 6")), "",
		},
		"sum over guaranteed": {
			own("", "memory: 10", child("b", "", "memory: 5")+","+child("c", "", "memory: 6")), "queue-guaranteed-sum",
		},
		"sum over a guarantee of zero": {own("", "memory: 0", child("b", "", "memory: 5")), "queue-guaranteed-sum"},
		"sum over max": {
			own("memory: 10", "", child("b", "", "memory: 5")+","+child("c", "", "memory: 6")),
			"queue-guaranteed-sum-over-max",
		},
		"sum over an inherited max": {
			own("memory: 10", "", "{name: b, queues: ["+child("c", "", "memory: 5")+","+child("d", "", "memory: 6")+
				"]}"), "queue-guaranteed-sum-over-max",
		},
		"guaranteed over an inherited": {
			own("memory: 10", "", child("b", "", "memory: 11")),
			"queue-guaranteed-sum-over-max",
		},
		"grandchildren are reported": {
			own("", "memory: 10", "{name: b, queues: ["+child("c", "", "memory: 11")+"]}"), "queue-guaranteed-sum",
		},
		"own hides the grandchildren": {
			own("", "memory: 10", "{name: b, resources: {guaranteed: {vcore: 1}}, queues: ["+
				child("c", "", "memory: 11")+"]}"), "",
		},
		"a sum stops at the top": {
			own(fmt.Sprintf("memory: %d", most), "",
				child("b", "", fmt.Sprintf("memory: %d", most))+","+child("c", "", "memory: 1")), "",
		},
		"applications uncounted": {inRoot("{name: a, queues: [{name: b, maxapplications: 3}]}"), ""},
		"applications within": {
			inRoot("{name: a, maxapplications: 3, queues: [{name: b, maxapplications: 3}, {name: c, " +
				"maxapplications: 3}]}"), "",
		},
		"applications above": {
			inRoot("{name: a, maxapplications: 3, queues: [{name: b, maxapplications: 4}]}"), "queue-apps-over-parent",
		},
		"applications missing below": {
			inRoot("{name: a, maxapplications: 3, queues: [{name: b}]}"),
			"queue-apps-over-parent",
		},
		"applications of root": {
			partitions("{queues: [{name: root, maxapplications: 3, queues: [{name: b}]}]}"), "queue-apps-over-parent",
		},
		"a gap is not looked through": {
			inRoot("{name: a, queues: [{name: b, maxapplications: 3, queues: [{name: c, maxapplications: 1}]}]}"), "",
		},
		"resources before placement": {
			partitions("{placementrules: [{name: '1'}], queues: [{name: a, resources: {max: {memory: x}}}]}"),
			"quantity",
		},
		"placement before applications": {
			partitions("{placementrules: [{name: '1'}], queues: [{name: a, maxapplications: 1, queues: [{name: b}]}]}"),
			"placement-name",
		},
		"applications before limits": {
			partitions("{limits: [" + sue + "], queues: [{name: a, maxapplications: 9, limits: [{users: [sue], " +
				"maxapplications: 2}], queues: [{name: b}]}]}"), "queue-apps-over-parent",
		},
		"a later partition comes later": {
			partitions("{name: x, queues: [{name: a, maxapplications: 1, queues: [{name: b}]}]}, {name: x, queues: []}"),
			"queue-apps-over-parent",
		},
		"its own applications, then down": {
			inRoot("{name: a, maxapplications: 1, queues: [{name: b, maxapplications: 1, queues: [{name: c}]}]}"),
			"queue-apps-over-parent",
		},
	}.run(t)
}
