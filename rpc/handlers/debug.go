package handlers

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/relay"
)

// MaxDiagnostic is the largest content of one diagnostic in bytes; all of them fit into an answer between nodes.
const MaxDiagnostic = 512 << 10

// diagnosticsPatience is how long another member may take to tell.
const diagnosticsPatience = 10 * time.Second

// WholeMember is the name of what a member that does not answer lacks.
const WholeMember = "everything"

// Diagnosis is one thing that a node can tell of itself to those who look for a fault.
type Diagnosis struct {
	// Name is that of a file: small letters, digits, dots and dashes.
	Name string
	// Collect returns its content, without secrets. Content beyond 512 KiB is cut off.
	Collect func(context.Context) ([]byte, error)
}

// debugService serves one caller at a time: a dump of all goroutines stops the process for a moment. Others wait, so
// that one that asks again and again does not keep others out.
type debugService struct {
	Service

	peers     relay.Peers
	diagnoses []Diagnosis
	waiting   *admission.Limiter
	Busy      chan struct{}
}

// NewDebugService makes the service that collects diagnostics.
func NewDebugService(base Service, p relay.Peers, diagnoses []Diagnosis, waiting *admission.Limiter) debugService {
	return debugService{Service: base, peers: p, diagnoses: diagnoses, waiting: waiting, Busy: make(chan struct{}, 1)}
}

// GetDiagnostics returns the diagnostics of this node, or relays the call to another member.
func (s debugService) GetDiagnostics(
	ctx context.Context, r *adminv1.GetDiagnosticsRequest,
) (*adminv1.GetDiagnosticsResponse, error) {
	if r.GetMember() == "" || r.GetMember() == s.ID {
		return s.collectOwn(ctx)
	}
	for _, m := range s.Node.Members() {
		if m.ID == r.GetMember() {
			return s.askMember(ctx, m)
		}
	}
	return nil, connect.NewError(connect.CodeNotFound,
		fmt.Errorf("node %s knows no member %s; see quorate status", s.ID, r.GetMember()))
}

func (s debugService) collectOwn(ctx context.Context) (*adminv1.GetDiagnosticsResponse, error) {
	caller := admission.TicketOf(ctx).Caller
	if err := s.waiting.TryAcquire(caller, 1); err != nil {
		return nil, err
	}
	defer s.waiting.Release(caller, 1)
	select {
	case s.Busy <- struct{}{}:
		defer func() { <-s.Busy }()
	case <-ctx.Done():
		return nil, connect.NewError(connect.CodeDeadlineExceeded,
			fmt.Errorf("node %s collects for other callers; try again in a few seconds", s.ID))
	}
	answer := &adminv1.GetDiagnosticsResponse{Member: s.ID}
	for _, d := range s.diagnoses {
		answer.Diagnostics = append(answer.Diagnostics, d.collectOne(ctx))
	}
	return answer, nil
}

func (d Diagnosis) collectOne(ctx context.Context) *adminv1.Diagnostic {
	content, err := d.Collect(ctx)
	if err != nil {
		return &adminv1.Diagnostic{Name: d.Name, Missing: err.Error()}
	}
	return &adminv1.Diagnostic{
		Name: d.Name, Content: content[:min(len(content), MaxDiagnostic)],
		Truncated: len(content) > MaxDiagnostic,
	}
}

// askMember returns an answer also for a member that does not answer: repeating the question would not help.
func (s debugService) askMember(ctx context.Context, m cluster.Member) (*adminv1.GetDiagnosticsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, diagnosticsPatience)
	defer cancel()
	answer, err := (*adminv1.GetDiagnosticsResponse)(nil), relay.ErrNoAddress
	if s.peers.URLOf(m) != "" {
		answer, err = s.peers.GetDiagnostics(ctx, m)
	}
	if err == nil && answer.GetMember() != m.ID {
		err = fmt.Errorf("it is the address of %s", answer.GetMember())
	}
	if err != nil {
		answer = &adminv1.GetDiagnosticsResponse{Member: m.ID, Diagnostics: []*adminv1.Diagnostic{{
			Name: WholeMember, Missing: fmt.Sprintf("%s did not tell at %q: %v", m.ID, s.peers.AddressOf(m), err),
		}}}
	}
	return answer, nil
}
