package rpc

import (
	"net/http"

	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// procedures is what the descriptors say about each method, by its path ("/quorate.v1.TreeService/GetTree"). A new
// method is known here on the day it is born.
type procedures map[string]procedure

type procedure struct {
	kind serviceKind
	// changesState is true unless the method is declared without side effects: then only the leader can serve it. What a caller
	// streams cannot be sent twice: such a method finds the leader by itself.
	changesState bool
	// streams is true if either side sends more than one message, uploads if the caller does.
	streams, uploads bool
	// input is the type of the request.
	input protoreflect.MessageDescriptor
}

// serviceKind is for whom a procedure is. The zero value is a procedure that nobody serves.
type serviceKind int

const (
	servesNone serviceKind = iota
	servesClients
	servesMembers
	servesHealth
	// servesTools are gRPC's reflection and the stream of its health protocol: streams that need neither to be many nor to last.
	servesTools
)

// toolStreams are the procedures of gRPC's own world that stream.
var toolStreams = []string{
	"/" + grpcreflect.ReflectV1ServiceName + "/ServerReflectionInfo", "/" + grpcreflect.ReflectV1AlphaServiceName + "/ServerReflectionInfo",
	"/" + grpchealth.HealthV1ServiceName + "/Watch",
}

// publicFiles hold the services for clients. Peers ask one certain node, so their calls are never relayed.
func publicFiles() []protoreflect.FileDescriptor {
	return []protoreflect.FileDescriptor{
		quoratev1.File_quorate_v1_allocation_proto, quoratev1.File_quorate_v1_tree_proto, quoratev1.File_quorate_v1_cluster_proto,
		quoratev1.File_quorate_v1_item_proto, quoratev1.File_quorate_v1_activity_proto, quoratev1.File_quorate_v1_debug_proto,
		quoratev1.File_quorate_v1_snapshot_proto,
	}
}

func newProcedures() procedures {
	known := procedures{}
	for _, file := range publicFiles() {
		known.addServices(file, true)
	}
	known.addServices(peerv1.File_quorate_peer_v1_peer_proto, false)
	known["/"+grpchealth.HealthV1ServiceName+"/Check"] = procedure{kind: servesHealth}
	for _, path := range toolStreams {
		known[path] = procedure{kind: servesTools, streams: true, uploads: true}
	}
	return known
}

func (p procedures) addServices(file protoreflect.FileDescriptor, public bool) {
	kind := servesMembers
	if public {
		kind = servesClients
	}
	services := file.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			options, _ := m.Options().(*descriptorpb.MethodOptions)
			harmless := options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
			p["/"+string(services.Get(i).FullName())+"/"+string(m.Name())] = procedure{
				kind: kind, changesState: public && !harmless && !m.IsStreamingClient(),
				streams: m.IsStreamingClient() || m.IsStreamingServer(), uploads: m.IsStreamingClient(),
				input: m.Input(),
			}
		}
	}
}

// isUnary tells whether the path is a known method with one request and one answer.
func (p procedures) isUnary(path string) bool {
	known, found := p[path]
	return found && !known.streams
}

// needsLeader tells whether only the leader can serve a request.
func (p procedures) needsLeader(r *http.Request) bool {
	return r.Method == http.MethodPost && p[r.URL.Path].changesState
}

// metricName is the path of a known method, and otherwise one word, so that metrics stay few whatever callers ask for.
func (p procedures) metricName(path string) string {
	if _, found := p[path]; found {
		return path
	}
	return "other"
}
