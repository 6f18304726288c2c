package wire_test

import (
	"testing"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc/wire"
)

func TestANoticeArrivesWhole(t *testing.T) {
	sent := cluster.Notice{Leader: "n1", From: "n2", Instance: "x", PromoteWhenStable: true, Index: 47}
	if got := wire.NoticeFromWire(wire.NoticeToWire(sent), "n2"); got != sent {
		t.Errorf("%+v arrives as %+v", sent, got)
	}
}
