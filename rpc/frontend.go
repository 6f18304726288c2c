package rpc

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/handlers"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/inprocess"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// Services are clients of the API for code in the process of a node. Their calls reach the node's own handler without
// a socket: it serves reads, and relays a write to the leader as it does for any other caller. A write is also
// repeated under its id, for as long as the caller's deadline allows, while leaders change.
type Services struct {
	Allocations quoratev1connect.AllocationServiceClient
	Trees       quoratev1connect.TreeServiceClient
	// Configuration reads the whole configuration and its history.
	Configuration adminv1connect.ConfigurationServiceClient
	Events        quoratev1connect.EventServiceClient
	Items         quoratev1connect.ItemServiceClient
	Cluster       adminv1connect.ClusterServiceClient
}

// FrontEnd serves the protocol of another system by calling the API
// (docs/adr/0010-front-ends-speak-the-public-api.md).
type FrontEnd struct {
	// Name is that of the system in the callers that come through the front end, for example "boskos". It is a name as
	// those of nodes: letters, digits and _ . @ + -.
	Name string
	// Pattern is one of [http.ServeMux], for example "/ws/v1/"; it is not used if the front end owns an address.
	Pattern string
	// TokenHeader names a header of the system that has a token, for example "X-Auth-Token"; empty for none. Its value is
	// a bearer token for a call without the header Authorization.
	TokenHeader string
	// WriteError writes the answer to a call that is refused before it reaches the handler, because of its credential,
	// with the status and the text that clients of the system understand. Nil writes an error of the API.
	WriteError func(http.ResponseWriter, *http.Request, error)
	// NeedsCaller reports whether a call cannot be allowed to a caller without a credential; nil means that none is such.
	// A guarded cluster refuses it with WriteError, where the handler would be told that what it asks for does not exist.
	NeedsCaller func(*http.Request) bool
	// New makes its handler.
	New func(Services) http.Handler
}

// FrontEnd is the handler of a front end behind what every call passes: a look at what carries it, observation,
// recovery, a place, a deadline, and the bounds of bodies. It is for those that own an address; those of Config are
// on the API's port already.
func (s *Server) FrontEnd(f FrontEnd) http.Handler {
	a := s.admission
	return s.screenCalls(s.newPipeline(f.New(s.services),
		s.observer.ObserveCall, a.IssueTicket, s.refuseInternal, readTokenHeader(f.TokenHeader),
		s.identifier.AuthenticateFrontEnd(f.Name, s.refuseFrontEndCall(f)),
		s.refuseWithoutCaller(f), a.AttributeUser,
		s.traces.LimitAsked(a.IsRelayed), s.traces.TraceFrontEnd,
		a.AdmitFrontEnd, setDefaultDeadline, a.LimitFrontEndBody, forbidCaching))
}

// Off is the front end on a node that does not serve it: it answers every call with 404 and the text, as clients of the
// system understand it. The text says what to set.
func (f FrontEnd) Off(text string) FrontEnd {
	f.TokenHeader, f.NeedsCaller = "", nil
	f.New = func(Services) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f.WriteError(w, r, connect.NewError(connect.CodeNotFound, errors.New(text)))
		})
	}
	return f
}

// LimitConnections makes an HTTP server keep to this server's limits for connections, together with all others that
// it was called for.
func (s *Server) LimitConnections(server *http.Server) { s.admission.LimitConnections(server) }

func (s *Server) mountFrontEnds(mux *http.ServeMux, frontEnds []FrontEnd) {
	for _, f := range frontEnds {
		mux.Handle(f.Pattern, s.FrontEnd(f))
	}
}

func readTokenHeader(name string) pipeline.Step {
	return func(x *pipeline.Exchange) bool {
		token := x.Request.Header.Get(name)
		if name == "" || token == "" || len(x.Request.Header["Authorization"]) > 0 {
			return true
		}
		x.Request.Header.Set("Authorization", "Bearer "+token)
		return true
	}
}

// refuseWithoutCaller enforces FrontEnd.NeedsCaller.
func (s *Server) refuseWithoutCaller(f FrontEnd) pipeline.Step {
	refuse := s.refuseFrontEndCall(f)
	return func(x *pipeline.Exchange) bool {
		if f.NeedsCaller == nil || !s.IsGuarded() || !f.NeedsCaller(x.Request) ||
			identify.CallerOf(x.Request.Context()).Kind != access.Anonymous {
			return true
		}
		refuse(x.Writer, x.Request, wire.UnauthenticatedError(
			"this cluster is guarded: present a token as the password of HTTP Basic, or as a bearer token"))
		return false
	}
}

// refuseFrontEndCall writes the errors of a front end's calls whose body has not been read.
func (s *Server) refuseFrontEndCall(f FrontEnd) func(http.ResponseWriter, *http.Request, error) {
	if f.WriteError == nil {
		return s.admission.RefuseCall
	}
	return func(w http.ResponseWriter, r *http.Request, err error) {
		observe.CallOf(r.Context()).Code = connect.CodeOf(err).String()
		admission.LimitRest(w, r)
		f.WriteError(w, r, err)
	}
}

func setDefaultDeadline(x *pipeline.Exchange) bool {
	x.LimitTime(admission.DefaultDeadline)
	return true
}

// localHost stands for this node in the URLs of calls that do not leave the process.
const localHost = "http://in-process"

// localServices are clients of this server's API. What their calls pass is less than the network's callers do: a
// front end was admitted and observed for the call that it serves, and its requests are no larger than that one.
func (s *Server) localServices(streams context.Context, api http.Handler) Services {
	client := s.localTransport(streams, api)
	options := []connect.ClientOption{
		connect.WithAcceptCompression("gzip", nil, nil), // it would only cost time
		connect.WithInterceptors(connect.UnaryInterceptorFunc(s.repeatWrites),
			connect.UnaryInterceptorFunc(s.skipEncoding)),
	}
	return Services{
		Allocations:   quoratev1connect.NewAllocationServiceClient(client, localHost, options...),
		Trees:         quoratev1connect.NewTreeServiceClient(client, localHost, options...),
		Configuration: adminv1connect.NewConfigurationServiceClient(client, localHost, options...),
		Events:        quoratev1connect.NewEventServiceClient(client, localHost, options...),
		Items:         quoratev1connect.NewItemServiceClient(client, localHost, options...),
		Cluster:       adminv1connect.NewClusterServiceClient(client, localHost, options...),
	}
}

// localAllocations makes the calls of AllocateStream: one attempt each, on this node or through the leader.
func (s *Server) localAllocations(streams context.Context, api http.Handler) quoratev1connect.AllocationServiceClient {
	return quoratev1connect.NewAllocationServiceClient(s.localTransport(streams, api), localHost,
		connect.WithAcceptCompression("gzip", nil, nil),
		connect.WithInterceptors(connect.UnaryInterceptorFunc(s.skipEncoding)))
}

func (s *Server) localTransport(streams context.Context, api http.Handler) *inprocess.Transport {
	a := s.admission
	handler := s.newPipeline(api,
		observe.ShareRecord, a.ShareTicket, identify.AttributeOwnCalls, a.EndWithServer(streams), a.LimitTime,
		s.forwarder.ForwardWrites, s.authorizer.AuthorizeCall)
	return &inprocess.Transport{
		Handler: handler, Whole: func(r *http.Request) bool { return s.procedures.IsUnary(r.URL.Path) },
	}
}

// repeatWrites retries a write that another attempt may complete, also when its answer was lost: under the same id it
// is executed once.
func (s *Server) repeatWrites(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		for {
			answer, err := next(ctx, r)
			if err == nil || !s.procedures[r.Spec().Procedure].ChangesState || !isTransient(err) || !hasTime(ctx) ||
				!relay.SleepContext(ctx, relay.RelayPause) {
				return answer, err
			}
		}
	}
}

// directCalls are the procedures that a front end calls for nearly every call of its own. Encoding and decoding their
// messages in the process costs the server a quarter of what a pair of acquire and release of Boskos costs in all.
func directCalls(a handlers.AllocationService, i handlers.ItemService) map[string]connect.UnaryFunc {
	return map[string]connect.UnaryFunc{
		quoratev1connect.AllocationServiceAllocateProcedure:      callDirectly(a.Allocate),
		quoratev1connect.AllocationServiceReleaseProcedure:       callDirectly(a.Release),
		quoratev1connect.AllocationServiceRenewProcedure:         callDirectly(a.Renew),
		quoratev1connect.AllocationServiceBatchAllocateProcedure: callDirectly(a.BatchAllocate),
		quoratev1connect.AllocationServiceBatchReleaseProcedure:  callDirectly(a.BatchRelease),
		quoratev1connect.AllocationServiceBatchRenewProcedure:    callDirectly(a.BatchRenew),
		quoratev1connect.AllocationServiceGetAllocationProcedure: callDirectly(a.GetAllocation),
		quoratev1connect.ItemServiceListItemsProcedure:           callDirectly(i.ListItems),
	}
}

// callDirectly makes a method of a handler the end of a chain of client interceptors.
func callDirectly[Request, Response any](method func(context.Context, *Request) (*Response, error)) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		message, _ := r.Any().(*Request)
		answer, err := method(ctx, message)
		if err != nil {
			return nil, err
		}
		return connect.NewResponse(answer), nil
	}
}

// skipEncoding hands the messages of frequent calls to the handler as they are, if this node can serve them. All other
// calls use the transport.
func (s *Server) skipEncoding(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		call, frequent := s.direct[r.Spec().Procedure]
		message, _ := r.Any().(proto.Message)
		if !frequent || s.procedures[r.Spec().Procedure].ChangesState && !s.node.IsLeader() {
			return next(ctx, r)
		}
		if err := s.validator.Validate(message); err != nil {
			return nil, wire.InvalidRequestError(err)
		}
		return call(ctx, r)
	}
}

// hasTime reports whether another attempt could end before the deadline; if not, the error of this attempt is more
// useful than a timeout.
func hasTime(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return !limited || time.Until(deadline) > admission.AnswerMargin+relay.RelayPause
}

// isTransient reports whether another attempt may succeed: leaders come and go, but too much work stays too much.
func isTransient(err error) bool {
	lasting := []string{cluster.Overloaded.String(), cluster.NotUpgraded.String()}
	return connect.CodeOf(err) == connect.CodeUnavailable && !slices.Contains(lasting, reasonOf(err))
}

func reasonOf(err error) string { return wire.ToFailure(wire.ToError(err)).GetProblem().GetReason() }
