package rpc

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/cluster"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
)

// maxDiagnostic is the largest content of one diagnostic in bytes; all of them fit into an answer between nodes.
const maxDiagnostic = 512 << 10

// diagnosticsPatience is how long another member may take to tell.
const diagnosticsPatience = 10 * time.Second

// wholeMember is the name of what a member that does not answer lacks.
const wholeMember = "everything"

// Diagnosis is one thing that a node can tell of itself to those who look for a fault.
type Diagnosis struct {
	// Name is that of a file: small letters, digits, dots and dashes.
	Name string
	// Collect answers its content, without secrets. What is longer than 512 KiB is cut off.
	Collect func(context.Context) ([]byte, error)
}

// debugService collects for one caller at a time: a dump of all goroutines stops the process for a moment. Others wait, so that
// one that asks again and again does not keep others out.
type debugService struct {
	service

	peers     peers
	diagnoses []Diagnosis
	waiting   *limiter
	busy      chan struct{}
}

func newDebugService(base service, p peers, diagnoses []Diagnosis, waiting *limiter) debugService {
	return debugService{service: base, peers: p, diagnoses: diagnoses, waiting: waiting, busy: make(chan struct{}, 1)}
}

// GetDiagnostics answers for this node, or asks another member for its own.
func (s debugService) GetDiagnostics(ctx context.Context, r *quoratev1.GetDiagnosticsRequest) (*quoratev1.GetDiagnosticsResponse, error) {
	if r.GetMember() == "" || r.GetMember() == s.id {
		return s.collectOwn(ctx)
	}
	for _, m := range s.node.Members() {
		if m.ID == r.GetMember() {
			return s.askMember(ctx, m)
		}
	}
	return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("node %s knows no member %s; see quorate status", s.id, r.GetMember()))
}

func (s debugService) collectOwn(ctx context.Context) (*quoratev1.GetDiagnosticsResponse, error) {
	by := ticketOf(ctx).caller
	if err := s.waiting.TryAcquire(by, 1); err != nil {
		return nil, err
	}
	defer s.waiting.Release(by, 1)
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return nil, connect.NewError(connect.CodeDeadlineExceeded, fmt.Errorf("node %s collects for other callers; try again in a few seconds", s.id))
	}
	answer := &quoratev1.GetDiagnosticsResponse{Member: s.id}
	for _, d := range s.diagnoses {
		answer.Diagnostics = append(answer.Diagnostics, d.collectOne(ctx))
	}
	return answer, nil
}

func (d Diagnosis) collectOne(ctx context.Context) *quoratev1.Diagnostic {
	content, err := d.Collect(ctx)
	if err != nil {
		return &quoratev1.Diagnostic{Name: d.Name, Missing: err.Error()}
	}
	return &quoratev1.Diagnostic{Name: d.Name, Content: content[:min(len(content), maxDiagnostic)], Truncated: len(content) > maxDiagnostic}
}

// askMember asks a member. That it does not answer is an answer too: repeating the question would not help.
func (s debugService) askMember(ctx context.Context, m cluster.Member) (*quoratev1.GetDiagnosticsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, diagnosticsPatience)
	defer cancel()
	answer, err := (*quoratev1.GetDiagnosticsResponse)(nil), errNoAddress
	if s.peers.urlOf(m) != "" {
		answer, err = s.peers.debugClient(m).GetDiagnostics(ctx, &quoratev1.GetDiagnosticsRequest{})
	}
	if err == nil && answer.GetMember() != m.ID {
		err = fmt.Errorf("it is the address of %s", answer.GetMember())
	}
	if err != nil {
		answer = &quoratev1.GetDiagnosticsResponse{Member: m.ID, Diagnostics: []*quoratev1.Diagnostic{{
			Name: wholeMember, Missing: fmt.Sprintf("%s did not tell at %q: %v", m.ID, s.peers.addressOf(m), err),
		}}}
	}
	return answer, nil
}

func (p peers) debugClient(m cluster.Member) quoratev1connect.DebugServiceClient {
	return quoratev1connect.NewDebugServiceClient(&http.Client{Transport: p.transport}, p.urlOf(m), connect.WithReadMaxBytes(MaxBody))
}
