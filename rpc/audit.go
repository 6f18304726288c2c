package rpc

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// AuditLog takes what a server records of its own calls. Its methods may be called concurrently; only Require waits.
type AuditLog interface {
	Note(audit.Record)
	// Require returns when the records are on disk, or with the reason why they may not be.
	Require(context.Context, ...audit.Record) error
	// Recent returns the newest records, oldest first, and the sequence number of the last of them. Sequence numbers have
	// no gaps, and those of a server are higher after a restart.
	Recent() (records []audit.Record, newest uint64)
}

// recordedVerbs are those of calls that a server records although the ledger has no record of them: what they read is
// secret, or what they change is not in the ledger. The ledger records changes of the configuration and of access.
const recordedVerbs = access.Verbs(access.ClusterOperate | access.ClusterDebug | access.SnapshotSave |
	access.SnapshotRestore | access.AuditRead)

// auditCall records refusals for a credential or for rights, and calls with recordedVerbs. They are recorded by the
// server that the caller has called, not again by the leader.
func (s *Server) auditCall(r *http.Request, call *observe.Call, code string) {
	ctx, isRecorded := r.Context(), isRefusal(code) || call.ReadsData || s.isRecorded(r)
	if s.audit == nil || !isRecorded || relay.NodeCallOf(ctx).Internal {
		return
	}
	if relayed := r.Header.Get(wire.RelayedByHeader) != "" && s.mayBeRelayed(r); relayed {
		return
	}
	record := audit.Record{
		Kind: audit.Call, Action: actionOf(s.procedures, r.URL.Path), Address: hostOf(r.RemoteAddr),
		Actor: cluster.AuditActor(identify.CallerOf(ctx)), Call: call.RequestID,
	}
	switch {
	case isRefusal(code):
		record.Kind, record.Outcome, record.Detail = audit.Refusal, audit.Refused, code
	case code == observe.CodeOK:
		record.Outcome = audit.Done
	default:
		record.Outcome, record.Detail = audit.Failed, code
	}
	if call.ReadsData {
		record.Detail = "the answer has user data of others"
	}
	s.audit.Note(record)
}

func (s *Server) isRecorded(r *http.Request) bool {
	known := s.procedures[r.URL.Path]
	return r.URL.Path == adminv1connect.AccessServiceBootstrapProcedure || recordedVerbs.Has(known.Rule.Verb) ||
		s.auditReads && known.Kind == procedures.ServesClients && !known.ChangesState && !known.Uploads
}

// isRefusal knows the code of a relayed call only by its status.
func isRefusal(code string) bool {
	switch code {
	case "permission_denied", "unauthenticated", "http_401", "http_403":
		return true
	}
	return false
}

// actionOf is the name of a procedure, such as "TreeService/SetLimits", or the path of another call.
func actionOf(table procedures.Table, path string) string {
	if _, known := table[path]; !known {
		return path
	}
	return path[strings.LastIndexByte(path[:strings.LastIndexByte(path, '/')], '.')+1:]
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

func (s *Server) recentAudit() (records []audit.Record, newest uint64) {
	if s.audit == nil {
		return nil, 0
	}
	return s.audit.Recent()
}
