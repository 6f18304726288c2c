package wire

import (
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// use is what makes a violation useful to a caller when not all can be listed.
type use struct {
	// decisive is true if nothing helps until this limit changes.
	decisive bool
	missing  int64
	of       limited
}

// limited is what is limited at several levels.
type limited struct {
	tree, resource, item string
	kind                 quoratev1.ViolationKind
	alternative          int32
}

func wireUse(v *quoratev1.Violation) use {
	return use{
		v.GetNeverFits() || v.GetKind() == quoratev1.ViolationKind_VIOLATION_KIND_CORDON, v.GetMissing(),
		limited{v.GetTree(), v.GetResource(), v.GetItem(), v.GetKind(), v.GetAlternative()},
	}
}

func quotaUse(v quota.Violation) use {
	return use{
		v.NeverFits() || v.Kind == quota.OfHold, int64(v.Missing()),
		limited{v.Tree, v.Resource, v.Item, violationKinds[v.Kind], int32(v.Alternative)},
	}
}

// byUse returns violations in the order of their use: the decisive ones, then of each thing that is limited the one at
// which most is missing, then the others; equally useful ones stay in their order.
func byUse[V any](list []V, useOf func(V) use) []V {
	tightest := map[limited]int{}
	for i, v := range list {
		this := useOf(v)
		if best, known := tightest[this.of]; !known || this.missing > useOf(list[best]).missing {
			tightest[this.of] = i
		}
	}
	var ranks [3][]V
	for i, v := range list {
		this, rank := useOf(v), 2
		switch {
		case this.decisive:
			rank = 0
		case tightest[this.of] == i:
			rank = 1
		}
		ranks[rank] = append(ranks[rank], v)
	}
	return append(append(ranks[0], ranks[1]...), ranks[2]...)
}
