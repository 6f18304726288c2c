package nodes

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func numberedPacket(from, number int) []byte {
	data := make([]byte, 24)
	data[15], data[23] = byte(from+1), byte(number)
	return data
}

type arrivals struct {
	mu      sync.Mutex
	numbers []int
	at      []time.Time
}

func (a *arrivals) addPacket(_ int, data []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.numbers = append(a.numbers, int(data[23]))
	a.at = append(a.at, time.Now())
}

// sendAll sends numbered packets from node 0 to node 1 over a link, in virtual time. It returns what has arrived
// after a minute, and when the sending began.
func sendAll(t *testing.T, link Link, count int) (*arrivals, time.Time) {
	t.Helper()
	got := &arrivals{}
	f := newPacketSwitch(2, 7, got.addPacket)
	go f.deliverLoop()
	f.setLink(0, 1, link)
	start := time.Now()
	for i := range count {
		f.sendPacket(0, 1, numberedPacket(0, i))
	}
	time.Sleep(time.Minute)
	close(f.closed)
	synctest.Wait()
	return got, start
}

func TestLinks(t *testing.T) {
	for name, c := range map[string]struct {
		link  Link
		check func(t *testing.T, got *arrivals, start time.Time)
	}{
		"a good link": {Link{}, func(t *testing.T, got *arrivals, start time.Time) {
			t.Helper()
			if len(got.numbers) != 200 || got.at[199] != start {
				t.Errorf("%d of 200 arrived, the last after %v", len(got.numbers), got.at[len(got.at)-1].Sub(start))
			}
		}},
		"a cut": {Link{Cut: true}, func(t *testing.T, got *arrivals, _ time.Time) {
			t.Helper()
			if len(got.numbers) != 0 {
				t.Errorf("%d arrived", len(got.numbers))
			}
		}},
		"loss": {Link{Loss: 0.5}, func(t *testing.T, got *arrivals, _ time.Time) {
			t.Helper()
			if n := len(got.numbers); n < 60 || n > 140 {
				t.Errorf("%d of 200 arrived", n)
			}
		}},
		"delay and jitter keep the order": {
			Link{Delay: time.Second, Jitter: time.Second},
			func(t *testing.T, got *arrivals, start time.Time) {
				t.Helper()
				if len(got.numbers) != 200 || !isAscending(got.numbers) {
					t.Errorf("arrived: %v", got.numbers)
				}
				if first := got.at[0].Sub(start); first < time.Second || first > 2*time.Second {
					t.Errorf("the first took %v", first)
				}
			},
		},
		"reordering": {Link{Reorder: 0.3}, func(t *testing.T, got *arrivals, _ time.Time) {
			t.Helper()
			if len(got.numbers) != 200 || isAscending(got.numbers) {
				t.Errorf("arrived: %v", got.numbers)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, start := sendAll(t, c.link, 200)
				c.check(t, got, start)
			})
		})
	}
}

func isAscending(numbers []int) bool {
	for i := 1; i < len(numbers); i++ {
		if numbers[i] < numbers[i-1] {
			return false
		}
	}
	return true
}

// TestCutDropsDelayedPackets: packets on their way do not survive a cut link.
func TestCutDropsDelayedPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := &arrivals{}
		f := newPacketSwitch(2, 7, got.addPacket)
		go f.deliverLoop()
		f.setLink(0, 1, Link{Delay: time.Second})
		f.sendPacket(0, 1, numberedPacket(0, 1))
		f.setLink(0, 1, Link{Cut: true})
		f.setLink(0, 1, Link{})
		f.sendPacket(0, 1, numberedPacket(0, 2))
		time.Sleep(time.Minute)
		close(f.closed)
		synctest.Wait()
		if len(got.numbers) != 1 || got.numbers[0] != 2 {
			t.Errorf("arrived: %v", got.numbers)
		}
	})
}
