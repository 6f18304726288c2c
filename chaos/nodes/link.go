package nodes

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Link is what is wrong with the way from one node to another, in that direction only. The zero value is a good link.
type Link struct {
	// Cut loses every packet.
	Cut bool
	// Loss is the share of packets that get lost, 0 to 1.
	Loss float64
	// Delay holds packets up, Jitter up to so much more, each packet differently but in order.
	Delay, Jitter time.Duration
	// Reorder is the share of packets that are overtaken by those behind them, 0 to 1. They take Delay once more, at least
	// 2 ms.
	Reorder float64
}

// minOvertaken is how much longer an overtaken packet takes at least.
const minOvertaken = 2 * time.Millisecond

// packet is one IP packet on its way.
type packet struct {
	at     time.Time
	number uint64 // breaks ties in the order of arrival
	to     int
	data   []byte
}

// packets is a heap of what is held up, the next to arrive first.
type packets []packet

func (p packets) Len() int { return len(p) }

func (p packets) Less(i, j int) bool {
	if p[i].at.Equal(p[j].at) {
		return p[i].number < p[j].number
	}
	return p[i].at.Before(p[j].at)
}

func (p packets) Swap(i, j int) { p[i], p[j] = p[j], p[i] }

// Push is for container/heap.
func (p *packets) Push(x any) { *p = append(*p, x.(packet)) } //nolint:errcheck // only this file pushes

// Pop is for container/heap.
func (p *packets) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// fabric decides what happens to each packet between any two nodes.
type fabric struct {
	mu     sync.Mutex
	links  [][]Link      // from, to
	last   [][]time.Time // when the last packet of a link arrives that nobody overtakes
	held   packets
	number uint64
	random *rand.Rand
	wake   chan struct{}
	closed chan struct{}
	// deliver gives a packet to its node.
	deliver func(to int, data []byte)
}

func newFabric(size int, seed uint64, deliver func(to int, data []byte)) *fabric {
	f := &fabric{
		random: rand.New(rand.NewPCG(seed, 1)), wake: make(chan struct{}, 1), closed: make(chan struct{}), deliver: deliver,
	}
	for range size {
		f.links = append(f.links, make([]Link, size))
		f.last = append(f.last, make([]time.Time, size))
	}
	return f
}

// set changes one link; what is on its way already arrives as it would have, unless it is cut.
func (f *fabric) set(from, to int, link Link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.links[from][to] = link
	if link.Cut {
		f.held = slices.DeleteFunc(f.held, func(p packet) bool { return p.to == to && f.links[from][to].Cut && p.from() == from })
		heap.Init(&f.held)
	}
}

// from is the node that sent a packet, by its source address.
func (p packet) from() int { return int(p.data[15]) - 1 }

// send takes a packet from a node. It may keep data only as a copy.
func (f *fabric) send(from, to int, data []byte) {
	now := time.Now()
	f.mu.Lock()
	link := f.links[from][to]
	if link.Cut || link.Loss > 0 && f.random.Float64() < link.Loss {
		f.mu.Unlock()
		return
	}
	if link.Delay == 0 && link.Jitter == 0 && link.Reorder == 0 {
		f.mu.Unlock()
		f.deliver(to, data)
		return
	}
	f.hold(link, from, packet{at: now.Add(link.Delay), to: to, data: slices.Clone(data)})
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// hold puts a packet on the way. The lock is held.
func (f *fabric) hold(link Link, from int, p packet) {
	if link.Jitter > 0 {
		p.at = p.at.Add(time.Duration(f.random.Int64N(int64(link.Jitter))))
	}
	last := &f.last[from][p.to]
	if link.Reorder > 0 && f.random.Float64() < link.Reorder {
		p.at = p.at.Add(max(link.Delay, minOvertaken))
	} else {
		if p.at.Before(*last) {
			p.at = *last
		}
		*last = p.at
	}
	f.number++
	p.number = f.number
	heap.Push(&f.held, p)
}

// run delivers what was held up until the fabric is closed.
func (f *fabric) run() {
	for {
		timer := time.NewTimer(f.arrive(time.Now()))
		select {
		case <-timer.C:
		case <-f.wake:
		case <-f.closed:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// arrive delivers what is due, and says how long it is until the next.
func (f *fabric) arrive(now time.Time) time.Duration {
	for {
		f.mu.Lock()
		if len(f.held) == 0 {
			f.mu.Unlock()
			return time.Hour
		}
		if wait := f.held[0].at.Sub(now); wait > 0 {
			f.mu.Unlock()
			return wait
		}
		p, _ := heap.Pop(&f.held).(packet)
		f.mu.Unlock()
		f.deliver(p.to, p.data)
	}
}
