// Package procedures lists the properties of each method in the descriptors of the API: its audience, who may call it,
// whether only the leader can serve it, and whether it streams.
package procedures

import (
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
)

// Table is what the descriptors and methodRules say about each method, by its path
// ("/quorate.v1.TreeService/GetTree").
type Table map[string]Info

// Info is what is known of one procedure.
type Info struct {
	Kind Audience
	// Rule says who may call the procedure.
	Rule Rule
	// ChangesState is true unless the method is declared without side effects: then only the leader can serve it.
	// What a caller streams cannot be sent twice: such a method finds the leader by itself.
	ChangesState bool
	// Streams is true if either side sends more than one message, uploads if the caller does.
	Streams, Uploads bool
	// Input is the type of the request.
	Input protoreflect.MessageDescriptor
	// Level is the feature level that the procedure needs; 0 if it needs none.
	Level uint32
}

// Audience is the kind of callers that a procedure serves. The zero value means that the procedure does not exist.
type Audience int

// The callers of procedures.
const (
	servesNone Audience = iota
	ServesClients
	ServesMembers
	ServesHealth
	// ServesTools are gRPC's reflection and the stream of its health protocol: few streams that do not last.
	ServesTools
)

// toolStreams are the procedures of gRPC's own world that stream. The schema is for callers with an identity; that the
// server is healthy is for everyone.
var toolStreams = map[string]Rule{
	"/" + grpcreflect.ReflectV1ServiceName + "/ServerReflectionInfo": {
		Scope: ScopeAuthenticated,
	},
	"/" + grpcreflect.ReflectV1AlphaServiceName + "/ServerReflectionInfo": {
		Scope: ScopeAuthenticated,
	},
	"/" + grpchealth.HealthV1ServiceName + "/Watch": {Scope: ScopePublic},
}

// publicPackages are the packages of the public API: its core, what operators of a cluster need, and what may still
// change.
var publicPackages = []protoreflect.FullName{
	quoratev1.File_quorate_v1_tree_proto.Package(),
	adminv1.File_quorate_admin_v1_cluster_proto.Package(),
	quoratev1beta1.File_quorate_v1beta1_webhook_proto.Package(),
}

// PublicFiles are the files of the public API, by name. Peers ask one certain node, so their calls are never relayed.
func PublicFiles() []protoreflect.FileDescriptor {
	var files []protoreflect.FileDescriptor
	for _, name := range publicPackages {
		protoregistry.GlobalFiles.RangeFilesByPackage(name, func(f protoreflect.FileDescriptor) bool {
			files = append(files, f)
			return true
		})
	}
	slices.SortFunc(files, func(a, b protoreflect.FileDescriptor) int { return strings.Compare(a.Path(), b.Path()) })
	return files
}

// New reads the descriptors of all services. It is an error if a method has no rule, or one that contradicts itself: a
// method that was forgotten must not be open to every caller.
func New() (Table, error) {
	return newTable(PublicFiles(), []protoreflect.FileDescriptor{peerv1.File_quorate_peer_v1_peer_proto}, methodRules)
}

func newTable(public, peers []protoreflect.FileDescriptor, rules map[string]map[string]Rule) (Table, error) {
	known := Table{}
	for _, file := range public {
		if err := known.addServices(file, true, rules); err != nil {
			return nil, err
		}
	}
	for _, file := range peers {
		if err := known.addServices(file, false, rules); err != nil {
			return nil, err
		}
	}
	everyone := Rule{Scope: ScopePublic}
	known["/"+grpchealth.HealthV1ServiceName+"/Check"] = Info{Kind: ServesHealth, Rule: everyone}
	for path, rule := range toolStreams {
		known[path] = Info{Kind: ServesTools, Rule: rule, Streams: true, Uploads: true}
	}
	return known, nil
}

func (p Table) addServices(
	file protoreflect.FileDescriptor, public bool, rules map[string]map[string]Rule,
) error {
	kind := ServesMembers
	if public {
		kind = ServesClients
	}
	services := file.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			rule := rules[string(services.Get(i).FullName())][string(m.Name())]
			if err := rule.check(m, public); err != nil {
				return err
			}
			options, _ := m.Options().(*descriptorpb.MethodOptions)
			harmless := options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
			p["/"+string(services.Get(i).FullName())+"/"+string(m.Name())] = Info{
				Kind: kind, Rule: rule, ChangesState: public && !harmless && !m.IsStreamingClient(),
				Streams: m.IsStreamingClient() || m.IsStreamingServer(), Uploads: m.IsStreamingClient(),
				Input: m.Input(), Level: methodLevels[m.FullName()],
			}
		}
	}
	return nil
}

// IsUnary reports whether the path is a known method with one request and one answer.
func (p Table) IsUnary(path string) bool {
	known, found := p[path]
	return found && !known.Streams
}

// NeedsLeader reports whether only the leader can serve a request.
func (p Table) NeedsLeader(r *http.Request) bool {
	return r.Method == http.MethodPost && p[r.URL.Path].ChangesState
}

// MetricName returns the path of a known method and one constant for all unknown ones, so that callers cannot create
// metrics.
func (p Table) MetricName(path string) string {
	if _, found := p[path]; found {
		return path
	}
	return "other"
}

// PublicServices are the full names of the services for clients.
func PublicServices() []string {
	var names []string
	for _, file := range PublicFiles() {
		for i := range file.Services().Len() {
			names = append(names, string(file.Services().Get(i).FullName()))
		}
	}
	return names
}
