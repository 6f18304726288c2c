package yunikorn_test

import (
	"testing"

	"github.com/quorate/quorate/compat/yunikorn"
)

func TestLimitsOverLevels(t *testing.T) {
	res := func(name, amounts string) string { return named("users", name, "maxresources: {"+amounts+"}") }
	apps := func(name, count string) string {
		return named("users", name, "maxresources: {vcore: 1}, maxapplications: "+count)
	}
	group := func(names, rest string) string { return "{groups: [" + names + "], " + rest + "}" }
	rules{
		"the same": {
			levels(res("sue", "memory: 9"), res("sue", "memory: 9"), res("sue", "memory: 9")), "",
		},
		"more below": {
			levels(res("sue", "memory: 9"), res("sue", "memory: 10"), ""),
			"user-res-over-parent",
		},
		"more two levels below": {
			levels(res("sue", "memory: 9"), "", res("sue", "memory: 10")),
			"user-res-over-parent",
		},
		"more below a level of others": {
			levels(res("sue", "memory: 9"), res("bob", "memory: 9"), res("sue", "memory: 10")), "user-res-over-parent",
		},
		"other names are free": {levels(res("sue", "memory: 9"), res("bob", "memory: 10"), ""), ""},
		"a group of the same name": {
			levels(res("sue", "memory: 9"), group("sue", "maxresources: {memory: 10}"), ""), "",
		},
		"more for a group": {
			levels(group("a", "maxresources: {memory: 9}"), group("a", "maxresources: {memory: 10}"), ""),
			"group-res-over-parent",
		},
		"a type above stays": {
			levels(res("sue", "memory: 9"), res("sue", "vcore: 1"), res("sue", "memory: 10")), "user-res-over-parent",
		},
		"a type between stays": {
			levels(res("sue", "memory: 9"), res("sue", "vcore: 1"), res("sue", "vcore: 2")), "user-res-over-parent",
		},
		"the smaller stays": {
			levels(res("sue", "memory: 9"), res("sue", "memory: 8"), res("sue", "memory: 9")), "user-res-over-parent",
		},
		"over the wildcard": {
			levels(res("*", "memory: 9"), res("sue", "memory: 10"), ""),
			"user-res-over-wildcard",
		},
		"over the wildcard, a group": {
			levels(group(`a, "*"`, "maxresources: {memory: 9}"), group("b", "maxresources: {memory: 10}"), ""),
			"group-res-over-wildcard",
		},
		"named beside the wildcard": {
			levels(res("sue", "memory: 99")+","+res("*", "memory: 9"), res("sue", "memory: 10"), ""), "",
		},
		"a wildcard over the wildcard": {
			levels(res("*", "memory: 9"), res("*", "memory: 10"), ""),
			"user-res-over-parent",
		},
		"a wildcard over names": {levels(res("sue", "memory: 9"), res("*", "memory: 10"), ""), ""},
		"a name hides the wildcard's types": {
			levels(res("*", "memory: 9"), res("sue", "vcore: 1"), res("sue", "memory: 10")), "",
		},
		"an entry without resources hides it": {
			levels(res("*", "memory: 9"), named("users", "sue", "maxapplications: 1"),
				apps("sue", "1")+","+res("x", "memory: 9")), "",
		},
		"siblings are not summed": {
			partitions("{limits: [" + res("sue", "memory: 9") + "], queues: [{name: a, limits: [" +
				res("sue", "memory: 9") + "]}, {name: b, limits: [" + res("sue", "memory: 9") + "]}]}"), "",
		},
		"siblings do not hold each other": {
			partitions("{queues: [{name: a, limits: [" + res("sue", "memory: 1") + "]}, {name: b, limits: [" +
				res("sue", "memory: 9") + "]}]}"), "",
		},
		"applications, the same": {levels(apps("sue", "2"), apps("sue", "2"), apps("sue", "1")), ""},
		"more applications": {
			levels(apps("sue", "2"), apps("sue", "3"), ""),
			"user-apps-over-parent",
		},
		"resources under none": {
			levels(named("users", "sue", "maxapplications: 1"),
				named("users", "sue", "maxresources: {memory: 9}, maxapplications: 1"),
				named("users", "sue", "maxresources: {memory: 10}, maxapplications: 1")), "user-res-over-parent",
		},
		"no count under a count": {
			levels(apps("sue", "2"), res("sue", "vcore: 1"), ""),
			"user-apps-over-parent",
		},
		"a count under no count": {levels(res("sue", "vcore: 1"), apps("sue", "3"), apps("sue", "3")), ""},
		"more applications than *": {
			levels(apps("*", "2"), apps("sue", "3"), ""),
			"user-apps-over-wildcard",
		},
		"no count under a counted *": {
			levels(apps("*", "2"), res("sue", "vcore: 1"), ""),
			"user-apps-over-wildcard",
		},
		"the new count holds below": {
			levels(apps("sue", "3"), apps("sue", "2"), apps("sue", "3")),
			"user-apps-over-parent",
		},
		"transparent for applications": {
			levels(apps("sue", "2"), "", apps("sue", "3")),
			"user-apps-over-parent",
		},
		"other users between": {
			levels(apps("sue", "2"), apps("bob", "2"), apps("sue", "3")),
			"user-apps-over-parent",
		},
		"* over * in applications":     {levels(apps("*", "2"), apps("*", "3"), ""), "user-apps-over-parent"},
		"* over names in applications": {levels(apps("sue", "2"), apps("*", "3"), ""), ""},
		"groups' applications": {
			levels(group("a", "maxapplications: 2"), group("a", "maxapplications: 3"), ""), "group-apps-over-parent",
		},
		"groups' applications under *": {
			levels(group(`a, "*"`, "maxapplications: 2"), group("b", "maxapplications: 3"), ""),
			"group-apps-over-wildcard",
		},
		"resources before applications": {
			levels(apps("sue", "2"), apps("sue", "3")+","+res("bob", "memory: 1"),
				"{users: [bob], maxresources: {memory: 2}}"), "user-res-over-parent",
		},
		"a queue called root below root": {
			partitions("{queues: [{name: root, limits: [" + res("sue", "memory: 9") +
				"], queues: [{name: root, limits: [" + res("sue", "memory: 10") + "]}]}]}"), "user-res-over-parent",
		},
	}.run(t)
}

func TestPlacement(t *testing.T) {
	placed := func(rules string) string {
		return partitions("{placementrules: [" + rules +
			"], queues: [{name: root, queues: [{name: leaf}, {name: up, parent: true, queues: [{name: in}]}, " +
			"{name: Big}]}]}")
	}
	rules{
		"a leaf":                {placed("{name: fixed, value: root.leaf}"), ""},
		"a leaf, short":         {placed("{name: fixed, value: leaf}"), ""},
		"a leaf in a parent":    {placed("{name: fixed, value: in, parent: {name: fixed, value: root.up}}"), ""},
		"a parent":              {placed("{name: fixed, value: root.up}"), "placement-queue"},
		"a parent, then a user": {placed("{name: user, parent: {name: fixed, value: root.up}, create: true}"), ""},
		"a leaf, then a user": {
			placed("{name: user, parent: {name: fixed, value: root.leaf}, create: true}"),
			"placement-queue",
		},
		"below a leaf":        {placed("{name: fixed, value: root.leaf.x, create: true}"), "placement-queue"},
		"unknown":             {placed("{name: fixed, value: root.none}"), "placement-queue"},
		"unknown, but made":   {placed("{name: fixed, value: root.none, create: true}"), ""},
		"a queue in capitals": {placed("{name: fixed, value: root.Big}"), "placement-queue"},
		"full path further in": {
			placed("{name: fixed, value: root.leaf, parent: {name: fixed, value: root.up}}"),
			"placement-queue",
		},
		"dynamic, then anything": {placed("{name: fixed, value: root.none, parent: {name: user}}"), ""},
		"dynamic":                {placed("{name: tag, value: namespace}"), ""},
		"no name":                {placed("{value: x}"), "placement-name"},
		"a bad name in a parent": {placed("{name: user, parent: {name: a-b}}"), "placement-name"},
		"a filter": {
			placed("{name: user, filter: {type: DENY, users: [sue], groups: ['dev.*']}}"), "",
		},
		"a filter of another type":  {placed("{name: user, filter: {type: maybe}}"), "placement-filter"},
		"one user that is none":     {placed("{name: user, filter: {users: ['1']}}"), "placement-filter"},
		"one broken expression":     {placed("{name: user, filter: {users: ['(']}}"), "placement-filter"},
		"one group that is none":    {placed("{name: user, filter: {groups: ['a@b']}}"), "placement-filter"},
		"several are not looked at": {placed("{name: user, filter: {users: ['1', '2']}}"), ""},
	}.run(t)
}

func TestStrict(t *testing.T) {
	hidden := levels(`{users: ["*"], maxresources: {memory: 9}}`, "{users: [sue], maxresources: {vcore: 1}}",
		"{users: [sue], maxresources: {memory: 10}}")
	inherited := inRoot("{name: a, resources: {max: {memory: 10}}, queues: [{name: b, limits: [{users: [sue], " +
		"maxresources: {memory: 11}}]}]}")
	fraction := onRoot("{users: [sue], maxapplications: 2.9}")
	rules{
		"a hidden wildcard":    {hidden, ""},
		"an inherited maximum": {inherited, ""},
		"a fraction":           {fraction, ""},
	}.run(t)
	rules{
		"strictly, a hidden wildcard":    {hidden, "user-res-over-parent"},
		"strictly, an inherited maximum": {inherited, "strict-inherited-max"},
		"strictly, a fraction":           {fraction, "strict-count"},
		"strictly, an exponent":          {onRoot("{users: [sue], maxapplications: 1e1}"), "strict-count"},
		"strictly, digits":               {onRoot("{users: [sue], maxapplications: 10}"), ""},
		"strictly, nothing":              {"", ""},
	}.run(t, yunikorn.Strict())
}
