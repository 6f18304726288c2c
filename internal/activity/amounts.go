package activity

import (
	"context"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// Amount is what there is of a resource in the subtree of a node at the end of a step.
type Amount struct {
	Resource string
	Unit     quota.Unit
	// Used is what is held, Waiting what waiting requests ask for: of several alternatives the first, and items count as
	// one each.
	Used, Waiting quota.Amount
	// Limit is the limit in force at the node.
	Limit quota.Limit
}

// askedAmounts are the amounts and the items of a waiting claim.
func askedAmounts(w quota.WaitingClaim) quota.Vector {
	if len(w.Picks) == 0 {
		return w.Amounts
	}
	asked := levels{asked: slices.Clone(w.Amounts)}
	for _, pick := range w.Picks {
		asked.add(levels{asked: quota.Vector{{Resource: pick.Resource, Amount: quota.Amount(pick.Count)}}})
	}
	return asked.asked
}

// sampleAmounts reads some nodes at a time, so that no read of the ledger takes long.
func (r *Recorder) sampleAmounts(ctx context.Context, now stepNumber) error {
	for keys := range slices.Chunk(r.nodeKeys(), amountsPerRead) {
		sampled := make([][]quota.HeldAmount, len(keys))
		err := r.readLocal(ctx, func(v ledger.Reader) {
			for i, key := range keys {
				sampled[i] = v.HeldAmounts(key.Tree, key.Node, r.bounds.Amounts)
			}
		})
		if err != nil {
			return err
		}
		r.recordAmounts(keys, sampled, now)
	}
	return nil
}

func (r *Recorder) nodeKeys() []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := make([]Key, 0, len(r.nodes.byKey))
	for s := range r.nodes.allSeries() {
		keys = append(keys, s.key)
	}
	return keys
}

func (r *Recorder) recordAmounts(keys []Key, sampled [][]quota.HeldAmount, now stepNumber) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, key := range keys {
		if s := r.nodes.findSeries(key); s != nil { // else it was dropped meanwhile
			r.nodes.setAmounts(s, now, sampled[i])
		}
	}
	r.nodes.shrinkAmounts(r.bounds.AmountBytes)
}

// setAmounts removes resources that are not in the sample.
func (c *seriesCache) setAmounts(s *series, now stepNumber, sampled []quota.HeldAmount) {
	before := s.amountBytes()
	for _, log := range s.amounts {
		if !slices.ContainsFunc(sampled, log.isOf) {
			log.set(now, levelOf{})
		}
	}
	for _, h := range sampled {
		s.amountLogOf(h).set(now, levelOf{
			exists: true, used: h.Used, limit: h.Limit, waiting: s.levels.askedOf(h.Resource),
		})
	}
	s.amounts = slices.DeleteFunc(s.amounts, func(log *amountLog) bool { return log.isEmptySince(now.firstShown()) })
	c.amountBytes += s.amountBytes() - before
}

// shrinkAmounts drops the amounts of the least active nodes.
func (c *seriesCache) shrinkAmounts(most int) {
	for e := c.order.Back(); e != nil && c.amountBytes > most; e = e.Prev() {
		c.forgetAmounts(seriesOf(e))
	}
}

func (c *seriesCache) forgetAmounts(s *series) {
	c.amountBytes -= s.amountBytes()
	s.amounts = nil
}

func (s *series) amountBytes() int {
	bytes := 0
	for _, log := range s.amounts {
		bytes += log.size()
	}
	return bytes
}

func (s *series) amountLogOf(h quota.HeldAmount) *amountLog {
	i, _ := slices.BinarySearchFunc(s.amounts, h.Resource, func(log *amountLog, name string) int {
		return strings.Compare(log.resource, name)
	})
	for ; i < len(s.amounts) && s.amounts[i].resource == h.Resource; i++ {
		if s.amounts[i].isOf(h) {
			return s.amounts[i]
		}
	}
	log := &amountLog{resource: h.Resource, unit: h.Unit}
	s.amounts = slices.Insert(s.amounts, i, log)
	return log
}
