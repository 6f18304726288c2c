package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// civilModel is civil time as the design says it: the sum of ledger time and the offset, and never less than before.
type civilModel struct {
	isSet      bool
	at, offset int64
	latest     int64
}

func (m *civilModel) advance(at int64) {
	m.at = max(m.at, at)
	if m.isSet {
		m.latest = max(m.latest, m.at+m.offset)
	}
}

// TestCivilTime: it follows the model, also over snapshots, and no deadline of the ledger moves with it.
func TestCivilTime(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		l, m := ledger.New(quota.DefaultBounds()), civilModel{}
		l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{{
			Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{{Policy: "open", Limits: cores(5)}},
		}}})
		l.Apply(quota.Stamp{}, quota.Allocate{ID: "lease", TTL: 7000, Claims: []quota.Claim{
			{Tree: "t", Amounts: quota.Vector{{Resource: "cores", Amount: 1}}},
		}})
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			at := m.at + rapid.Int64Range(-5, 1000).Draw(t, "pause")
			offsets := []int64{-1, 0, 1, 100, 5000, quota.MaxCivilTime, quota.MaxCivilTime + 1}
			offset := rapid.SampledFrom(offsets).Draw(t, "offset")
			out := l.Apply(quota.Stamp{At: quota.Instant(at)}, quota.SetCivilOffset{Offset: quota.Span(offset)})
			valid := offset >= 1 && offset <= quota.MaxCivilTime
			if (out.Refused == nil) != valid || out.Repeated != (valid && m.isSet && m.offset == offset) {
				t.Fatalf("an offset of %d after %d: %+v", offset, m.offset, out)
			}
			m.advance(at)
			if valid {
				m.isSet, m.offset = true, offset
			}
			m.advance(at)
			if quotatest.Die(t, 3, "restore") == 0 {
				l = restoredWith(t, l, quota.DefaultBounds())
			}
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
			if got := l.Reader().CivilTime(); int64(got) != m.latest || int64(l.Reader().CivilOffset()) != m.offset {
				t.Fatalf("civil time is %d with an offset of %d, want %+v", got, l.Reader().CivilOffset(), m)
			}
			if due, waits := l.Reader().NextDue(); !waits || due != 7000 {
				t.Fatalf("the lease ends at %d, %v", due, waits)
			}
		}
	})
}

// TestCivilTimeOfASuccessor: a restored backup continues the later civil time of the two, and dates neither come again
// nor are passed over.
func TestCivilTimeOfASuccessor(t *testing.T) {
	for name, c := range map[string]struct {
		own, former ledger.Header
		want        quota.CivilTime
	}{
		"neither has agreed": {},
		"only the backup":    {own: ledger.Header{Now: quota.Stamp{At: 5}, CivilOffset: 100, Civil: 105}, want: 105},
		"only the cluster": {
			former: ledger.Header{Now: quota.Stamp{At: 5}, CivilOffset: 100, Civil: 105}, want: 105,
		},
		"the cluster is later, on a shorter ledger time": {
			own:    ledger.Header{Now: quota.Stamp{At: 90}, CivilOffset: 100, Civil: 190},
			former: ledger.Header{Now: quota.Stamp{At: 5}, CivilOffset: 900, Civil: 905}, want: 905,
		},
	} {
		l, err := ledger.NewRestorer(quota.DefaultBounds(), c.own).Finish()
		if err != nil {
			t.Fatal(err)
		}
		l.Supersede(c.former, 1)
		if got := l.Reader().CivilTime(); got != c.want {
			t.Errorf("%s: civil time is %d, want %d", name, got, c.want)
		}
		at := l.Reader().Now()
		l.Apply(quota.Stamp{At: at + 10}, quota.Release{ID: "none"})
		if got := l.Reader().CivilTime(); c.want != 0 && got != c.want+10 {
			t.Errorf("%s: civil time is %d after 10 ms more, want %d", name, got, c.want+10)
		}
		if err := l.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
