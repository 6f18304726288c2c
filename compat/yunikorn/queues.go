package yunikorn

// guaranteed checks max and guaranteed of a queue and of all below it; most is the smallest maximum of the levels
// above, by type. It returns what the queue reports to its parent: its own guarantee, or the sum of its children's if
// that is zero.
func (v *validator) guaranteed(n *node, most *scoped[int64]) amounts {
	v.understood(n.guaranteed)
	v.understood(n.max)
	own, max := n.guaranteed.amounts, n.max.amounts
	if which, more := over(max, own); more {
		v.fail(n.path+".resources.guaranteed."+clip(which), n.name, ruleQueueGuaranteedOverMax,
			"%d %s guaranteed is more than the maximum of %d", own[which], clip(which), max[which])
	}
	if which, more := over(most.values, max); more {
		v.fail(n.path+".resources.max."+clip(which), n.name, ruleQueueMaxOverParent,
			"%d %s is more than the maximum of %d above", max[which], clip(which), most.values[which])
	}
	mark := most.mark()
	lower(most, max)
	sum := amounts{}
	for _, child := range n.children {
		sum.add(v.guaranteed(child, most))
	}
	if which, more := over(own, sum); more {
		v.fail(n.path+".resources.guaranteed."+clip(which), n.name, ruleQueueGuaranteedSum,
			"the queues below are guaranteed %d %s together, more than the %d of this queue", sum[which], clip(which), own[which])
	}
	if which, more := over(most.values, sum); more {
		v.fail(n.path+".queues", n.name, ruleQueueSumOverMax,
			"the queues below are guaranteed %d %s together, more than the maximum of %d", sum[which], clip(which),
			most.values[which])
	}
	most.back(mark)
	if own.isZero() {
		return sum
	}
	return own
}

// lower takes the type by type minimum.
func lower(most *scoped[int64], max amounts) {
	for kind, amount := range max {
		if above, limited := most.values[kind]; !limited || amount < above {
			most.set(kind, amount)
		}
	}
}

// queueApplications checks that under a counted queue every child is counted, and not higher.
func (v *validator) queueApplications(n *node) {
	for _, child := range n.children {
		switch {
		case n.MaxApplications == 0:
		case child.MaxApplications == 0:
			v.fail(child.path+".maxapplications", child.name, ruleQueueAppsOverParent,
				"the queue above may run %d applications, so this one needs a maximum too", n.MaxApplications)
		case child.MaxApplications > n.MaxApplications:
			v.fail(child.path+".maxapplications", child.name, ruleQueueAppsOverParent,
				"%d applications are more than the %d of the queue above", child.MaxApplications, n.MaxApplications)
		}
		v.queueApplications(child)
	}
}
