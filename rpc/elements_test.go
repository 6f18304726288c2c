package rpc

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/wire"
)

func packed(t testing.TB, body []byte) []byte {
	t.Helper()
	var into bytes.Buffer
	w := gzip.NewWriter(&into)
	if _, err := w.Write(body); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return into.Bytes()
}

// repeated encodes a field with n empty messages.
func repeated(field byte, n int) []byte { return bytes.Repeat([]byte{field<<3 | 2, 0}, n) }

// nested encodes a message as field 1 of another.
func nested(inside []byte) []byte {
	return append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(inside))), inside...)
}

// TestElementsAreCountedBeforeMessagesAreBuilt: requests with too many elements are refused before decoding, in each
// protocol, encoding and kind of caller.
func TestElementsAreCountedBeforeMessagesAreBuilt(t *testing.T) {
	const many = 200_000
	list := func(before, after string) []byte { return []byte(before + strings.Repeat("{},", many) + "{}" + after) }
	const services = "/quorate.v1."
	claims := byte((&quoratev1.AllocateRequest{}).ProtoReflect().Descriptor().Fields().ByName("claims").Number())
	attacks := map[string]struct {
		path, field  string
		binary, json []byte
	}{
		"Allocate": {
			services + "AllocationService/Allocate", "claims", repeated(claims, many),
			list(`{"claims":[`, `]}`),
		},
		"BatchAllocate": {
			services + "AllocationService/BatchAllocate", "requests", repeated(1, many),
			list(`{"requests":[`, `]}`),
		},
		"ApplyTrees": {
			services + "TreeService/ApplyTrees", "trees[0].nodes", nested(repeated(5, many)),
			list(`{"trees":[{"nodes":[`, `]}]}`),
		},
		"UpdateItems": {
			services + "ItemService/UpdateItems", "updates", repeated(1, many),
			list(`{"updates":[`, `]}`),
		},
		"a batch of batches": {
			services + "AllocationService/BatchAllocate", "",
			nested(repeated(claims, 3*many)), []byte(`{"requests":[{"claims":[` + strings.Repeat("{},", 3*many) + `{}]}]}`),
		},
	}
	follower, leader := twoNodes(t)
	for name, a := range attacks {
		for _, asked := range []*testServer{follower, leader} {
			for form, body := range map[string][]byte{"application/proto": a.binary, "application/json": a.json} {
				t.Run(fmt.Sprintf("%s to %s as %s", name, asked.id, form), func(t *testing.T) {
					got := send(t, "POST", asked.url+a.path, string(packed(t, body)), "Content-Type", form,
						"Content-Encoding", "gzip")
					var refused struct {
						Code    string
						Details []struct {
							Debug struct{ Field, Reason string }
						}
					}
					if err := json.Unmarshal([]byte(got.body), &refused); err != nil {
						t.Fatal(err)
					}
					if got.status != 400 || refused.Code != "invalid_argument" || len(got.body) > 1000 {
						t.Fatalf("got %d %.300s", got.status, got.body)
					}
					if d := refused.Details; len(d) == 0 || d[0].Debug.Field != a.field ||
						d[0].Debug.Reason != "INVALID" {
						t.Errorf("got %s, want the field %q", got.body, a.field)
					}
				})
			}
			t.Run(fmt.Sprintf("%s to %s by gRPC", name, asked.id), func(t *testing.T) {
				body := packed(t, a.binary)
				sent := binary.BigEndian.AppendUint32([]byte{1}, uint32(len(body)))
				got := send(t, "POST", asked.url+a.path, string(append(sent, body...)), "Content-Type",
					"application/grpc-web+proto", "Grpc-Encoding", "gzip")
				if got.header.Get("Grpc-Status") != "3" || !strings.HasPrefix(got.header.Get("Grpc-Message"), a.field) {
					t.Errorf("got %v", got)
				}
			})
		}
	}
	if got := send(t, "GET", follower.url+"/metrics", ""); !strings.Contains(got.body, "quorate_rpc_relayed_total 0") {
		t.Error("the follower relayed what it should have refused")
	}
}

// TestElementsOfReadsAreCounted: the bounds apply to requests in a URL (GET) and in a stream (watch) too.
func TestElementsOfReadsAreCounted(t *testing.T) {
	d := oneNode(t)
	labels := map[string]string{}
	for i := range 33 {
		labels[fmt.Sprint(i)] = ""
	}
	list, err := proto.Marshal(&quoratev1.ListAllocationsRequest{Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/quorate.v1.AllocationService/ListAllocations"
	address := path + "?encoding=json&message=" + url.QueryEscape(fmt.Sprintf(`{"labels":{%s"x":""}}`, labelText(32)))
	if got := send(t, http.MethodGet, d.url+address, ""); got.status != 400 ||
		!strings.Contains(got.body, "labels: must contain no more than 32 pairs") {
		t.Errorf("JSON: got %v", got)
	}
	address = path + "?encoding=proto&compression=gzip&base64=1&message=" + base64URL(packed(t, list))
	if got := send(t, http.MethodGet, d.url+address, ""); got.status != 400 ||
		!strings.Contains(got.body, "labels: must contain no more than 32 pairs") {
		t.Errorf("protobuf: got %v", got)
	}
	for name, options := range protocols {
		stream, err := d.allocations(options...).WatchEvents(t.Context(),
			&quoratev1.WatchEventsRequest{Allocations: make([]*quoratev1.AllocationRef, 1001)})
		if err != nil {
			t.Fatal(err)
		}
		if stream.Receive() || connect.CodeOf(stream.Err()) != connect.CodeInvalidArgument ||
			!strings.Contains(stream.Err().Error(), "allocations: must contain no more than 1000 items") {
			t.Errorf("%s: got %v", name, stream.Err())
		}
	}
}

func labelText(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":"",`, i)
	}
	return b.String()
}

func base64URL(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// TestDecodedRequestsShareABound: the memory of decoded requests counts against one total, and only until the call
// ends.
func TestDecodedRequestsShareABound(t *testing.T) {
	d := oneNode(t)
	claims := make([]*quoratev1.AllocateRequest, 1000)
	for i := range claims {
		claims[i] = request(fmt.Sprint("a", i), "cern:physics", 0)
	}
	batch := &quoratev1.BatchAllocateRequest{Requests: claims}
	d.admission.Limiters.Clients.Decoded.InUse.Store(admission.MaxAllDecoded - 10_000)
	_, err := d.allocations().BatchAllocate(t.Context(), batch)
	wantOverloaded(t, err, "all calls together")
	d.admission.Limiters.Clients.Decoded.InUse.Store(0)
	if _, err := d.allocations().BatchAllocate(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if left := d.admission.Limiters.Clients.Decoded.InUse.Load(); left != 0 {
		t.Errorf("%d bytes are still counted", left)
	}
}

// TestErrorsStayShort: quotations of the request in an error have a bounded length.
func TestErrorsStayShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	pairs := map[string]string{}
	for i := range 30 {
		pairs[fmt.Sprint(i)+long[:50_000]] = "x"
	}
	follower, leader := twoNodes(t)
	for name, call := range map[string]func(d *testServer) error{
		"a key": func(d *testServer) error {
			r := request("a", "cern:physics", 1)
			r.Labels = pairs
			_, err := d.allocations().Allocate(t.Context(), r)
			return err
		},
		"a key of a batch": func(d *testServer) error {
			r := request("a", "cern:physics", 1)
			r.Labels = pairs
			answer, err := d.allocations().BatchAllocate(t.Context(),
				&quoratev1.BatchAllocateRequest{Requests: []*quoratev1.AllocateRequest{r}})
			if err != nil {
				return err
			}
			return fmt.Errorf("%v", answer)
		},
		"data": func(d *testServer) error {
			r := request("a", "cern:physics", 1)
			r.UserData, r.TtlMs = map[string]string{long: "x"}, 1000
			_, err := d.allocations().Allocate(t.Context(), r)
			return err
		},
		"a path": func(d *testServer) error {
			tree := cern()
			tree.Moves = []*quoratev1.NodeMove{{Node: long, NewNode: "physics"}}
			_, err := d.trees().ApplyTrees(t.Context(), &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}})
			return err
		},
		"an unknown name": func(d *testServer) error {
			got := send(t, "POST", d.url+allocatePath, `{"`+long+`":1}`)
			return fmt.Errorf("%s", got.body)
		},
		"many faults": func(d *testServer) error {
			r := &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{{}}}
			for range 1000 {
				r.Trees[0].Nodes = append(r.GetTrees()[0].GetNodes(), &quoratev1.Node{})
			}
			_, err := d.trees().ApplyTrees(t.Context(), r)
			return err
		},
	} {
		for _, asked := range []*testServer{follower, leader} {
			err := call(asked)
			if err == nil || len(err.Error()) > wire.MaxErrorText+1000 {
				t.Errorf("%s at %s: %d bytes: %.200v", name, asked.id, len(fmt.Sprint(err)), err)
			}
			size := 0
			var failed *connect.Error
			if errors.As(err, &failed) {
				for _, detail := range failed.Details() {
					size += len(detail.Bytes())
				}
			}
			if size > 16<<10 {
				t.Errorf("%s at %s: details of %d bytes", name, asked.id, size)
			}
		}
	}
}

// TestAllFaultsOfASmallRequestAreNamed: an error lists every invalid field, so that a user can correct them all at
// once.
func TestAllFaultsOfASmallRequestAreNamed(t *testing.T) {
	d := oneNode(t)
	_, err := d.allocations().Allocate(t.Context(),
		&quoratev1.AllocateRequest{Id: "a b", Claims: []*quoratev1.Claim{{Node: "x"}}, ReserveMs: -1})
	for _, want := range []string{"id:", "claims[0].tree:", "reserve_ms:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	r := &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{{}}}
	for range 100 {
		r.Trees[0].Nodes = append(r.GetTrees()[0].GetNodes(), &quoratev1.Node{})
	}
	if _, err = d.trees().ApplyTrees(t.Context(), r); err == nil ||
		!strings.Contains(err.Error(), "more violations are left out") {
		t.Errorf("got %v", err)
	}
}
