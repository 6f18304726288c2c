package yunikorn

// checkGuaranteed checks max and guaranteed of a queue and of all below it; most is the smallest maximum of the levels
// above, by type. It returns what the queue reports to its parent: its own guarantee, or the sum of its children's if
// that is zero.
func (v *validator) checkGuaranteed(n *node, most *scopedMap[int64]) amounts {
	v.reportUnread(n.guaranteed)
	v.reportUnread(n.max)
	own, max := n.guaranteed.amounts, n.max.amounts
	if kind, more := exceedsAny(max, own); more {
		v.addProblem(n.path+".resources.guaranteed."+clipText(kind), n.name, ruleQueueGuaranteedOverMax,
			"%d %s guaranteed is more than the maximum of %d", own[kind], clipText(kind), max[kind])
	}
	if kind, more := exceedsAny(most.values, max); more {
		v.addProblem(n.path+".resources.max."+clipText(kind), n.name, ruleQueueMaxOverParent,
			"%d %s is more than the maximum of %d above", max[kind], clipText(kind), most.values[kind])
	}
	mark := most.undoMark()
	lowerTo(most, max)
	sum := amounts{}
	for _, child := range n.children {
		sum.addAmounts(v.checkGuaranteed(child, most))
	}
	if kind, more := exceedsAny(own, sum); more {
		v.addProblem(
			n.path+".resources.guaranteed."+clipText(kind),
			n.name,
			ruleQueueGuaranteedSum,
			"the queues below are guaranteed %d %s together, more than the %d of this queue",
			sum[kind],
			clipText(kind),
			own[kind],
		)
	}
	if kind, more := exceedsAny(most.values, sum); more {
		v.addProblem(n.path+".queues", n.name, ruleQueueSumOverMax,
			"the queues below are guaranteed %d %s together, more than the maximum of %d", sum[kind], clipText(kind),
			most.values[kind])
	}
	most.undoTo(mark)
	if own.isZero() {
		return sum
	}
	return own
}

func lowerTo(most *scopedMap[int64], max amounts) {
	for kind, amount := range max {
		if above, limited := most.values[kind]; !limited || amount < above {
			most.setValue(kind, amount)
		}
	}
}

// queueApplications checks that under a counted queue every child is counted, and not higher.
func (v *validator) queueApplications(n *node) {
	for _, child := range n.children {
		switch {
		case n.MaxApplications == 0:
		case child.MaxApplications == 0:
			v.addProblem(child.path+".maxapplications", child.name, ruleQueueAppsOverParent,
				"the queue above is limited to %d applications, so this queue needs a maximum too", n.MaxApplications)
		case child.MaxApplications > n.MaxApplications:
			v.addProblem(child.path+".maxapplications", child.name, ruleQueueAppsOverParent,
				"%d applications are more than the %d of the queue above", child.MaxApplications, n.MaxApplications)
		}
		v.queueApplications(child)
	}
}
