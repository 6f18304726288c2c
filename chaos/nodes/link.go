package nodes

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Link describes the faults of the link from one node to another, in that direction only. The zero value has none.
type Link struct {
	// Cut drops every packet.
	Cut bool
	// Loss is the share of dropped packets, 0 to 1.
	Loss float64
	// Delay delays each packet, and Jitter adds a random delay of at most so much without changing the order.
	Delay, Jitter time.Duration
	// Reorder is the share of packets that later ones overtake, 0 to 1. Their delay is doubled, or 2 ms longer if
	// that is more.
	Reorder float64
}

// minOvertaken is the least additional delay of an overtaken packet.
const minOvertaken = 2 * time.Millisecond

type packet struct {
	due    time.Time
	number uint64 // breaks ties in the order of arrival
	to     int
	data   []byte
}

// packetHeap is ordered by the time of delivery.
type packetHeap []packet

func (p packetHeap) Len() int { return len(p) }

func (p packetHeap) Less(i, j int) bool {
	if p[i].due.Equal(p[j].due) {
		return p[i].number < p[j].number
	}
	return p[i].due.Before(p[j].due)
}

func (p packetHeap) Swap(i, j int) { p[i], p[j] = p[j], p[i] }

// Push is for container/heap.
func (p *packetHeap) Push(x any) { *p = append(*p, x.(packet)) } //nolint:errcheck // only this file pushes

// Pop is for container/heap.
func (p *packetHeap) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

type packetSwitch struct {
	mu      sync.Mutex
	links   [][]Link      // from, to
	last    [][]time.Time // when the last packet in order arrives
	held    packetHeap
	number  uint64
	random  *rand.Rand
	changed chan struct{}
	closed  chan struct{}
	// deliver sends a packet to its node.
	deliver func(to int, data []byte)
}

func newPacketSwitch(size int, seed uint64, deliver func(to int, data []byte)) *packetSwitch {
	f := &packetSwitch{
		random: rand.New(rand.NewPCG(seed, 1)), changed: make(chan struct{}, 1), closed: make(chan struct{}),
		deliver: deliver,
	}
	for range size {
		f.links = append(f.links, make([]Link, size))
		f.last = append(f.last, make([]time.Time, size))
	}
	return f
}

// setLink changes one link. Packets already delayed still arrive, unless the link is cut.
func (f *packetSwitch) setLink(from, to int, link Link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.links[from][to] = link
	if link.Cut {
		f.held = slices.DeleteFunc(f.held, func(p packet) bool {
			return p.to == to && p.sender() == from
		})
		heap.Init(&f.held)
	}
}

func (p packet) sender() int { return int(p.data[15]) - 1 }

// sendPacket takes a packet from a node. It does not retain data.
func (f *packetSwitch) sendPacket(from, to int, data []byte) {
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
	f.delayPacket(link, from, packet{due: now.Add(link.Delay), to: to, data: slices.Clone(data)})
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// delayPacket needs the lock to be held.
func (f *packetSwitch) delayPacket(link Link, from int, p packet) {
	if link.Jitter > 0 {
		p.due = p.due.Add(time.Duration(f.random.Int64N(int64(link.Jitter))))
	}
	last := &f.last[from][p.to]
	if link.Reorder > 0 && f.random.Float64() < link.Reorder {
		p.due = p.due.Add(max(link.Delay, minOvertaken))
	} else {
		if p.due.Before(*last) {
			p.due = *last
		}
		*last = p.due
	}
	f.number++
	p.number = f.number
	heap.Push(&f.held, p)
}

func (f *packetSwitch) deliverLoop() {
	for {
		timer := time.NewTimer(f.deliverDue(time.Now()))
		select {
		case <-timer.C:
		case <-f.changed:
		case <-f.closed:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// deliverDue delivers all packets that are due and returns how long it is until the next.
func (f *packetSwitch) deliverDue(now time.Time) time.Duration {
	for {
		f.mu.Lock()
		if len(f.held) == 0 {
			f.mu.Unlock()
			return time.Hour
		}
		if wait := f.held[0].due.Sub(now); wait > 0 {
			f.mu.Unlock()
			return wait
		}
		p, _ := heap.Pop(&f.held).(packet)
		f.mu.Unlock()
		f.deliver(p.to, p.data)
	}
}
