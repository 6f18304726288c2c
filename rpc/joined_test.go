package rpc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// TestJoinedCallsAnswerLikeUnaryCalls makes the same random calls to two clusters, joined and one by one. Each caller
// has a node of its own, so that the order of concurrent calls does not matter, and must get the same answers and
// errors, with the same details, from both.
func TestJoinedCallsAnswerLikeUnaryCalls(t *testing.T) {
	t.Parallel()
	const callers, rounds = 24, 60
	joined, batches := comparedClient(t, callers)
	alone, none := comparedClient(t, callers, client.WithoutJoining())
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			one, other := newComparedCaller(joined, caller), newComparedCaller(alone, caller)
			for range rounds {
				got, want := one.callRandomly(t), other.callRandomly(t)
				if got != want {
					t.Errorf("caller %d, %s\n joined: %s\n  alone: %s", caller, one.last, got, want)
					return
				}
			}
		})
	}
	all.Wait()
	if batches.Load() < rounds || none.Load() != 0 {
		t.Errorf("%d batches with joining, %d without", batches.Load(), none.Load())
	}
}

type batchCounter struct {
	*http.Client

	batches *atomic.Int64
}

func (b batchCounter) Do(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/Batch") {
		b.batches.Add(1)
	}
	return b.Client.Do(r)
}

// comparedClient starts a server with a node of ten cores for each caller.
func comparedClient(t *testing.T, callers int, options ...client.Option) (*client.Client, *atomic.Int64) {
	t.Helper()
	d := oneNode(t)
	tree := &quoratev1.Tree{
		Name: "own", Policy: "strict", Limits: cores(1000),
		Resources: []*quoratev1.Resource{{Name: "cores", Unit: quoratev1.Unit_UNIT_COUNT}},
	}
	for i := range callers {
		tree.Nodes = append(tree.Nodes, &quoratev1.Node{Path: fmt.Sprintf("n%d", i), Limits: cores(10)})
	}
	apply := &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}}
	if _, err := d.trees().ApplyTrees(t.Context(), apply); err != nil {
		t.Fatal(err)
	}
	batches, transport := &atomic.Int64{}, &http.Transport{MaxIdleConnsPerHost: callers}
	t.Cleanup(transport.CloseIdleConnections) // before the server stops, which waits for unused connections
	counter := batchCounter{&http.Client{Transport: transport}, batches}
	c, err := client.New([]string{d.url}, append(options, client.WithHTTPClient(counter))...)
	if err != nil {
		t.Fatal(err)
	}
	return c, batches
}

type comparedCaller struct {
	calls  *client.Client
	name   string
	random *rand.Rand
	last   string
}

func newComparedCaller(calls *client.Client, number int) *comparedCaller {
	return &comparedCaller{
		calls: calls, name: fmt.Sprintf("n%d", number), random: rand.New(rand.NewPCG(7, uint64(number))),
	}
}

func (c *comparedCaller) callRandomly(t *testing.T) string {
	t.Helper()
	id := fmt.Sprintf("%s-%d", c.name, c.random.IntN(6))
	var answer proto.Message
	var err error
	switch c.random.IntN(5) {
	case 0, 1:
		r := c.randomRequest(id)
		c.last = fmt.Sprint(r)
		answer, err = c.calls.Allocations.Allocate(t.Context(), r)
	case 2:
		r := &quoratev1.RenewRequest{Id: id, TtlMs: c.random.Int64N(3) * 30_000}
		if c.random.IntN(8) == 0 {
			r.Fence = 1 << 40
		}
		if c.random.IntN(8) == 0 {
			r.TtlMs = -1
		}
		c.last = fmt.Sprint(r)
		answer, err = c.calls.Allocations.Renew(t.Context(), r)
	default:
		r := &quoratev1.ReleaseRequest{Id: id}
		if c.random.IntN(8) == 0 {
			r.Id = []string{"", "two words", strings.Repeat("x", 129)}[c.random.IntN(3)]
		}
		if c.random.IntN(8) == 0 {
			r.Items = []*quoratev1.ItemName{{Resource: "cores", Name: "a"}}
		}
		c.last = fmt.Sprint(r)
		answer, err = c.calls.Allocations.Release(t.Context(), r)
	}
	return answerText(answer, err)
}

func (c *comparedCaller) randomRequest(id string) *quoratev1.AllocateRequest {
	r := request(id, "own:"+c.name, 1+c.random.Int64N(12))
	r.TtlMs = c.random.Int64N(2) * 60_000
	for _, change := range []func(){
		func() { r.Id = "two words" },
		func() { r.Claims = nil },
		func() { r.Claims[0].Tree = "" },
		func() { r.Claims[0].Tree = "unknown" },
		func() { r.Claims[0].Node = c.name + "/unknown" },
		func() { r.Claims[0].Amounts["cores"] = -1 },
		func() { r.Claims[0].Amounts = map[string]int64{"gpus": 1} },
		func() { r.Claims = append(r.Claims, r.GetClaims()[0]) },
		func() { r.Mode = 99 },
		func() { r.Mode = quoratev1.Mode_MODE_WAIT },
		func() { r.Mode = quoratev1.Mode_MODE_RESERVE },
		func() { r.Labels = map[string]string{"": "x"} },
		func() { r.TtlMs, r.ReserveMs, r.KeepMs = -1, -1, -1 },
		func() { r.Principal = &quoratev1.Principal{Application: "without a user"} },
		func() { r.Labels = map[string]string{"text": "\xff"} },
	} {
		if c.random.IntN(30) == 0 && len(r.GetClaims()) > 0 {
			change()
		}
	}
	return r
}

var orderInText = regexp.MustCompile(`(has fence|ends at) \d+`)

// answerText returns an answer, or the code, text and details of an error, without what depends on the calls of others:
// times, fences, log indexes and positions in the queue.
func answerText(answer proto.Message, err error) string {
	if err == nil {
		answer = proto.Clone(answer)
		clearOrder(answer.ProtoReflect())
		return fmt.Sprintf("%T %s", answer, canonicalText(answer))
	}
	text := orderInText.ReplaceAllString(err.Error(), "$1 N")
	text = fmt.Sprintf("%s, from a server: %t, may be done: %t", text, connect.IsWireError(err), client.MayBeDone(err))
	if decision, found := client.DecisionOf(err); found {
		clearOrder(decision.ProtoReflect())
		text += "; decision " + canonicalText(decision)
	}
	if problem, found := client.ProblemOf(err); found {
		text += "; problem " + canonicalText(problem)
	}
	if failed := (*connect.Error)(nil); errors.As(err, &failed) {
		text += "; code " + failed.Code().String()
	}
	return text
}

// canonicalText is the same for equal messages.
func canonicalText(m proto.Message) string {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	return fmt.Sprintf("%q %v", encoded, err)
}

// clearOrder clears the fields that depend on the order of concurrent calls.
func clearOrder(m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		name := string(field.Name())
		switch {
		case strings.HasSuffix(name, "_ledger_ms"), strings.HasSuffix(name, "_time_ms"), strings.HasSuffix(name, "_at"),
			name == "fence", name == "index", name == "since":
			m.Clear(field)
		case field.Message() != nil && field.IsList():
			for i := range value.List().Len() {
				clearOrder(value.List().Get(i).Message())
			}
		case field.Message() != nil && !field.IsMap():
			clearOrder(value.Message())
		}
		return true
	})
}
