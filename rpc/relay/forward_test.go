package relay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
)

type alwaysLed struct{}

func (alwaysLed) IsLeader() bool { return false }

func (alwaysLed) WaitLeader(context.Context) (cluster.Member, error) {
	return cluster.Member{ID: "n2", HTTPAddr: "127.0.0.1:1"}, nil
}

// slowDial refuses the first connection; the deadline of the call passes while it dials the second.
type slowDial struct{ dialed int }

func (d *slowDial) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.dialed++; d.dialed == 1 {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestDeadlineDuringADial: nothing was sent, so the caller learns that nothing was done and why, not that time ran out.
func TestDeadlineDuringADial(t *testing.T) {
	metrics, err := observe.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	known, err := procedures.New()
	if err != nil {
		t.Fatal(err)
	}
	var refused error
	f := Forwarder{
		ID: "n1", Node: alwaysLed{}, Peers: Peers{Self: "n1"}, Transport: &slowDial{},
		Table: known, Metrics: metrics,
		WriteError: func(_ http.ResponseWriter, _ *http.Request, err error) { refused = err },
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*RelayPause)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, quoratev1connect.AllocationServiceAllocateProcedure, nil)
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(nil)), nil }
	start := time.Now()
	if f.ForwardWrites(&pipeline.Exchange{Writer: httptest.NewRecorder(), Request: r}) {
		t.Error("the call goes on")
	}
	if refused == nil || !strings.Contains(refused.Error(), "connection refused") ||
		!strings.Contains(refused.Error(), "nothing was done") {
		t.Fatalf("after %v: got %v", time.Since(start), refused)
	}
}
