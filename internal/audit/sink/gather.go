package sink

import (
	"strings"
	"time"

	"github.com/quorate/quorate/internal/audit"
)

const (
	// MaxPerSecond is how many refusals of one address a second are recorded one by one; further ones are gathered into
	// one record for each second.
	MaxPerSecond = 10
	// maxAddresses bounds the addresses that are told apart at once; all others share one count.
	maxAddresses = 4096
	otherAddress = "others"
)

type gathering struct {
	began   time.Time
	single  int
	further audit.Record // with the number of calls in Count
}

// gatherings count refusals by address. It is not safe for concurrent use.
type gatherings struct {
	now       func() time.Time
	byAddress map[string]*gathering
}

// take is false for a record that is counted and not written by itself.
func (g *gatherings) take(r audit.Record) bool {
	if r.Kind != audit.Refusal {
		return true
	}
	if g.byAddress == nil {
		g.byAddress = map[string]*gathering{}
	}
	address := r.Address
	if _, known := g.byAddress[address]; !known && len(g.byAddress) >= maxAddresses {
		address = otherAddress
	}
	current := g.byAddress[address]
	if current == nil {
		current = &gathering{began: g.now()}
		g.byAddress[address] = current
	}
	if current.single < MaxPerSecond {
		current.single++
		return true
	}
	if current.further.Count == 0 {
		current.further = audit.Record{
			Chain: audit.Server, Server: r.Server, WallMs: r.WallMs, Kind: audit.Refusal, Outcome: audit.Refused,
			Address: strings.Clone(address), Detail: "further refusals of this address within a second",
		}
	}
	current.further.Count++
	return false
}

func (g *gatherings) any() bool { return len(g.byAddress) > 0 }

// due returns the records of the seconds that are over, and forgets them.
func (g *gatherings) due() []audit.Record {
	var list []audit.Record
	for address, current := range g.byAddress {
		if g.now().Sub(current.began) < time.Second {
			continue
		}
		if current.further.Count > 0 {
			list = append(list, current.further)
		}
		delete(g.byAddress, address)
	}
	return list
}
