package boskos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

const accounts = `
resources:
- {type: account, names: [a1, a2]}
- {type: network, names: [n1]}
- {type: cluster, max-count: 1, lifespan: 1h}
- {type: raw, max-count: 1, state: dirty}
`

// call takes parameters as "key=value key=value".
func call(t *testing.T, h http.Handler, status int, path, pairs string) string {
	t.Helper()
	q := url.Values{}
	for pair := range strings.FieldsSeq(pairs) {
		key, value, _ := strings.Cut(pair, "=")
		q.Set(key, value)
	}
	method := http.MethodPost
	if path == "metric" {
		method = http.MethodGet
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, "/"+path+"?"+q.Encode(), nil))
	if w.Code != status {
		t.Fatalf("%s %s: %d %s, want %d", path, pairs, w.Code, w.Body, status)
	}
	return strings.TrimSuffix(w.Body.String(), "\n")
}

// acquired calls /acquire for an owner and expects a resource.
func acquired(t *testing.T, h http.Handler, pairs string) resource {
	t.Helper()
	var got resource
	body := call(t, h, http.StatusOK, "acquire", "state=free dest=busy "+pairs)
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func refused(t *testing.T, h http.Handler, pairs string) {
	t.Helper()
	call(t, h, http.StatusNotFound, "acquire", "state=free dest=busy "+pairs)
}

func released(t *testing.T, h http.Handler, name, owner string) {
	t.Helper()
	call(t, h, http.StatusOK, "release", "dest=free name="+name+" owner="+owner)
}

// TestALostAnswerLeaksNothing: repeating a request id returns the same resource while it is leased, and another one
// afterwards.
func TestALostAnswerLeaksNothing(t *testing.T) {
	f := loaded(t, accounts)
	h := NewHandler(f.api(), Options{})
	first := acquired(t, h, "type=account owner=me request_id=1")
	if again := acquired(t, h, "type=account owner=me request_id=1"); again.Name != first.Name {
		t.Errorf("got %s, and then %s", first.Name, again.Name)
	}
	other := acquired(t, h, "type=account owner=you request_id=1")
	if other.Name == first.Name {
		t.Errorf("the same id of two owners gives %s to both", other.Name)
	}
	refused(t, h, "type=account owner=me request_id=2")
	released(t, h, first.Name, "me")
	if got := acquired(t, h, "type=account owner=me request_id=2"); got.Name != first.Name {
		t.Errorf("got %s, want %s", got.Name, first.Name)
	}
	refused(t, h, "type=account owner=me request_id=1") // its lease has ended, so it is a new request
	released(t, h, other.Name, "you")
	if got := acquired(t, h, "type=account owner=me request_id=1"); got.Name != other.Name {
		t.Errorf("got %s, want %s", got.Name, other.Name)
	}
}

// TestAnotherDestinationKeepsThePlace: a request that is repeated with another destination stays the same request: it
// keeps its place in the queue and its grant, and gets the state that was asked for last.
func TestAnotherDestinationKeepsThePlace(t *testing.T) {
	f := loaded(t, accounts)
	h := NewHandler(f.api(), Options{})
	ask := func(status int, owner, dest string) string {
		t.Helper()
		return call(t, h, status, "acquire", "type=network state=free request_id=1 owner="+owner+" dest="+dest)
	}
	acquired(t, h, "type=network owner=holder")
	ask(http.StatusNotFound, "first", "busy")
	ask(http.StatusNotFound, "second", "busy")
	ask(http.StatusNotFound, "first", "leased")
	if len(f.queue) != 2 {
		t.Errorf("%d requests wait, want 2", len(f.queue))
	}
	released(t, h, "n1", "holder")
	ask(http.StatusNotFound, "second", "leased")
	for _, dest := range []string{"leased", "leased", "busy", "leased"} {
		body := ask(http.StatusOK, "first", dest)
		if !strings.Contains(body, `"name":"n1","state":"`+dest+`","owner":"first"`) {
			t.Errorf("asked for the state %s: %s", dest, body)
		}
		call(t, h, http.StatusOK, "update", "name=n1 owner=first state="+dest)
	}
	released(t, h, "n1", "first")
	ask(http.StatusNotFound, "first", "third") // its lease has ended, so it is a new request behind the second
	if body := ask(http.StatusOK, "second", "busy"); !strings.Contains(body, `"state":"busy","owner":"second"`) {
		t.Errorf("the second got %s", body)
	}
}

// TestOneIDForEver: a request id that was used very often is still looked up quickly.
func TestOneIDForEver(t *testing.T) {
	f := loaded(t, accounts)
	h := NewHandler(f.api(), Options{})
	for range 300 {
		got := acquired(t, h, "type=network owner=me request_id=1")
		released(t, h, got.Name, "me")
	}
	calls := 0
	life := allocationIDs{"x"}
	for n := range 300 {
		got, err := life.firstUnended(n, func(n int) (bool, error) {
			calls++
			return n < 300, nil
		})
		if err != nil || got != 300 {
			t.Fatalf("after %d comes %d, %v; want 300", n, got, err)
		}
	}
	if calls > 300*2*10 {
		t.Errorf("%d looks for 300 searches", calls)
	}
	if _, err := life.firstUnended(0, func(int) (bool, error) { return false, errUnknown }); err == nil {
		t.Error("an error is lost")
	}
}

// TestWaitersMeetExpiry: a resource whose lease expires is granted to the first waiting request.
func TestWaitersMeetExpiry(t *testing.T) {
	f := loaded(t, accounts)
	h := NewHandler(f.api(), Options{})
	acquired(t, h, "type=network owner=silent")
	refused(t, h, "type=network owner=me request_id=1")
	f.expire("n1", "free")
	refused(t, h, "type=network owner=you")
	if got := acquired(t, h, "type=network owner=me request_id=1"); got.Owner != "me" {
		t.Errorf("got %v", got)
	}
	call(t, h, http.StatusUnauthorized, "update", "name=n1 owner=silent state=busy")
	call(t, h, http.StatusUnauthorized, "release", "name=n1 owner=silent dest=free")
}

// TestDynamicTypes: a resource is created for the first request, up to the maximum; one that is returned as dirty must
// be cleaned first.
func TestDynamicTypes(t *testing.T) {
	f := loaded(t, accounts)
	h := NewHandler(f.api(), Options{})
	call(t, h, http.StatusNotFound, "metric", "type=cluster")
	got := acquired(t, h, "type=cluster owner=me")
	if got.ExpirationDate != nil {
		t.Errorf("one that was never released expires at %v", got.ExpirationDate)
	}
	refused(t, h, "type=cluster owner=you")
	released(t, h, got.Name, "me")
	if got = acquired(t, h, "type=cluster owner=you"); got.ExpirationDate == nil ||
		got.ExpirationDate.Sub(got.LastUpdate) > time.Hour {
		t.Errorf("it expires at %v, and was updated at %v", got.ExpirationDate, got.LastUpdate)
	}
	if body := call(t, h, http.StatusNotFound, "acquire",
		"type=raw state=free dest=busy owner=me request_id=1"); body !=
		"Acquire failed: no available resource raw, try again later." {
		t.Errorf("got %q", body)
	}
	dirty := call(t, h, http.StatusOK, "acquire", "type=raw state=dirty dest=cleaning owner=janitor")
	released(t, h, "raw-1", "janitor")
	if clean := acquired(t, h, "type=raw owner=me request_id=1"); clean.Name != "raw-1" {
		t.Errorf("the janitor got %s, and then came %v", dirty, clean)
	}
}

// TestNamesAreAllOrNothing: if a name is unavailable, nothing is held, while the original keeps the names that it has
// acquired.
func TestNamesAreAllOrNothing(t *testing.T) {
	f := loaded(t, accounts)
	h := NewHandler(f.api(), Options{})
	acquired(t, h, "type=network owner=other")
	call(t, h, http.StatusNotFound, "acquirebystate", "state=free dest=used owner=me names=a1,n1")
	call(t, h, http.StatusNotFound, "acquirebystate", "state=free dest=used owner=me names=a1,unknown")
	released(t, h, "n1", "other")
	body := call(t, h, http.StatusOK, "acquirebystate", "state=free dest=used owner=me names=n1,a2,a1")
	if at := strings.Index(body, `"a1"`); at < 0 || at > strings.Index(body, `"a2"`) ||
		strings.Index(body, `"a2"`) > strings.Index(body, `"n1"`) {
		t.Errorf("the one that was left alone for longest does not come first: %s", body)
	}
	for _, name := range []string{"a2", "n1", "a1"} {
		released(t, h, name, "me")
	}
	call(t, h, http.StatusNotFound, "acquirebystate", "state=free dest=used owner=me names="+strings.Repeat("a", 254))
}

// TestTypesThatComeLater: types that are added later are found at once.
func TestTypesThatComeLater(t *testing.T) {
	f := loaded(t, accounts)
	h := NewHandler(f.api(), Options{})
	acquired(t, h, "type=account owner=me")
	refused(t, h, "type=late owner=me")
	late, err := Convert([]byte("resources: [{type: late, names: [l1]}]"))
	if err != nil {
		t.Fatal(err)
	}
	late.Trees[0].Name = "boskos-2"
	f.apply(late.Trees...)
	acquired(t, h, "type=late owner=me")
	released(t, h, "l1", "me")
	if body := call(t, h, http.StatusOK, "metric",
		"type=late"); body != `{"type":"late","current":{"free":1},"owner":{"":1}}` {
		t.Errorf("got %s", body)
	}
}

const tenants = `
quorate:
  tenants:
  - {node: ci/nightly, owners: ["*-nightly", "nightly"], limits: {account: 1}}
  - {node: ci, owners: ["ci-*"], limits: {account: 2}}
  - {node: others, owners: ["*"], also: "teams:rest"}
resources:
- {type: account, names: [a1, a2, a3, a4]}
- {type: network, names: [n1, n2]}
`

// TestTenants: the most specific pattern applies, and an exceeded limit of its node is answered like an exhausted pool.
func TestTenants(t *testing.T) {
	f := loaded(t, tenants)
	f.apply(&quoratev1.Tree{
		Name: "teams", Resources: []*quoratev1.Resource{{Name: "account", Unit: quoratev1.Unit_UNIT_COUNT}},
		Nodes: []*quoratev1.Node{{Path: "rest", Limits: map[string]*quoratev1.Limit{
			"account": {Value: &quoratev1.Limit_Amount{Amount: 1}},
		}}},
	})
	h := NewHandler(f.api(), Options{})
	acquired(t, h, "type=account owner=ci-nightly")
	refused(t, h, "type=account owner=a-nightly")
	acquired(t, h, "type=account owner=ci-1")
	acquired(t, h, "type=network owner=sue") // teams knows no networks
	got := acquired(t, h, "type=account owner=sue")
	refused(t, h, "type=account owner=sue")
	released(t, h, got.Name, "sue")
	call(t, h, http.StatusOK, "acquirebystate", "state=free dest=used owner=else names=n2,"+got.Name)
	refused(t, h, "type=account owner=sue")
	released(t, h, "n2", "else")
	refused(t, h, "type=account owner=sue")
	released(t, h, got.Name, "else")
	acquired(t, h, "type=account owner=sue")
}

// TestChangeBetweenReadAndWrite: if an item changes between its read and the write, it is read again.
func TestChangeBetweenReadAndWrite(t *testing.T) {
	f := loaded(t, accounts)
	h := NewHandler(f.api(), Options{})
	acquired(t, h, "type=network owner=me")
	aborted := connect.NewError(connect.CodeAborted, errors.New("says the test"))
	f.failures = []error{aborted, aborted}
	call(t, h, http.StatusOK, "update", "name=n1 owner=me state=busy")
	f.failures = []error{aborted, aborted, aborted, aborted, aborted}
	call(t, h, http.StatusServiceUnavailable, "update", "name=n1 owner=me state=busy")
	race := &racing{fake: f}
	h = NewHandler(API{race, f, f}, Options{})
	race.before = func() { f.expire("n1", "dirty") }
	call(t, h, http.StatusUnauthorized, "release", "name=n1 owner=me dest=free")
	call(t, h, http.StatusOK, "acquire", "type=network state=dirty dest=busy owner=me")
	race.before = func() { released(t, NewHandler(f.api(), Options{}), "n1", "me") }
	call(t, h, http.StatusOK, "release", "name=n1 owner=me dest=free") // by a first attempt
}

// TestWhatANodeRemembers: a cached lease is only a hint, because leases end, are released and are acquired again at
// other nodes.
func TestWhatANodeRemembers(t *testing.T) {
	f := loaded(t, accounts)
	first, second := NewHandler(f.api(), Options{}), NewHandler(f.api(), Options{})
	acquired(t, first, "type=network owner=me")
	released(t, second, "n1", "me")
	acquired(t, second, "type=network owner=me")
	released(t, first, "n1", "me") // not the cached lease but the present one
	acquired(t, first, "type=network owner=you")
	f.expire("n1", "free")
	acquired(t, second, "type=network owner=me")
	call(t, first, http.StatusUnauthorized, "release", "name=n1 owner=you dest=free")
	released(t, second, "n1", "me")
	call(t, second, http.StatusUnauthorized, "release", "name=n1 owner=me dest=free")

	race := &racing{fake: f, before: func() { f.failures = []error{errors.New("says the test")} }}
	lost := NewHandler(API{race, f, f}, Options{})
	acquired(t, lost, "type=network owner=me")
	call(t, lost, http.StatusInternalServerError, "release", "name=n1 owner=me dest=free")
	call(t, lost, http.StatusUnauthorized, "release", "name=n1 owner=me dest=free")
	acquired(t, lost, "type=network owner=me")
	race.before = func() { released(t, second, "n1", "me") }
	call(t, lost, http.StatusOK, "release", "name=n1 owner=me dest=free") // by a first attempt
}

func TestMemoryIsBounded(t *testing.T) {
	m := newGrantMemory()
	for n := range mostRemembered + 1 {
		m.noteGrant(holding{fmt.Sprint(n), "me"}, "id")
	}
	if len(m.ids) != 1 || m.takeGrant(holding{fmt.Sprint(mostRemembered), "me"}) != "id" || len(m.ids) != 0 {
		t.Errorf("%d grants are remembered", len(m.ids))
	}
}

// racing runs a function just before a release.
type racing struct {
	*fake

	before func()
}

func (r *racing) Release(ctx context.Context, request *quoratev1.ReleaseRequest) (*quoratev1.ReleaseResponse, error) {
	r.before()
	return r.fake.Release(ctx, request)
}

// TestTextOnly: texts that cannot be stored are refused at once.
func TestTextOnly(t *testing.T) {
	h := NewHandler(loaded(t, accounts).api(), Options{})
	for _, path := range []string{"acquire", "acquirebystate", "release", "update", "reset"} {
		if body := call(t, h, http.StatusBadRequest, path,
			"owner=\xff"); body != `The parameter "owner" is not UTF-8.` {
			t.Errorf("%s: %q", path, body)
		}
	}
	acquired(t, h, "type=account owner=Zoë")
}

// TestOutages: during an outage, no answer claims that another owner has the resource.
func TestOutages(t *testing.T) {
	for code, want := range map[connect.Code]int{
		connect.CodeUnavailable:       http.StatusServiceUnavailable,
		connect.CodeDeadlineExceeded:  http.StatusServiceUnavailable,
		connect.CodeCanceled:          http.StatusServiceUnavailable,
		connect.CodeResourceExhausted: http.StatusServiceUnavailable,
		connect.CodePermissionDenied:  http.StatusForbidden,
		connect.CodeUnauthenticated:   http.StatusForbidden, connect.CodeInvalidArgument: http.StatusBadRequest,
		connect.CodeInternal: http.StatusInternalServerError,
	} {
		f := loaded(t, accounts)
		h := NewHandler(f.api(), Options{})
		fail := func() {
			f.failures = []error{fmt.Errorf("twice tried: %w", connect.NewError(code, errors.New("says the test")))}
		}
		fail()
		body := call(t, h, want, "acquire", "type=account state=free dest=busy owner=me request_id=1")
		said := "says the test"
		if slices.Contains(outageCodes, code) {
			said = "the cluster did not answer in time, the call may have been carried out, try again later."
		}
		if body != "Acquire failed: "+said {
			t.Errorf("%v: %q", code, body)
		}
		acquired(t, h, "type=account owner=me request_id=1")
		fail()
		call(t, h, want, "update", "name=a1 owner=me state=busy")
		fail()
		call(t, h, want, "reset", "type=account state=busy dest=free expire=-1s")
		fail()
		call(t, h, want, "acquirebystate", "names=n1 state=free dest=busy owner=me")
		fail()
		call(t, h, want, "release", "name=n1 dest=free owner=me")
	}
}

// TestTimeIsUp: a deadline is an outage, with whatever error it arrives.
func TestTimeIsUp(t *testing.T) {
	for _, err := range []error{context.DeadlineExceeded, context.Canceled} {
		f := loaded(t, accounts)
		f.failures = []error{fmt.Errorf("calling http://10.0.0.1: %w", err)}
		body := call(t, NewHandler(f.api(), Options{}), http.StatusServiceUnavailable, "acquire",
			"type=account state=free dest=busy owner=me")
		if strings.Contains(body, "10.0.0.1") {
			t.Errorf("%v: %q", err, body)
		}
	}
}

// TestOutagesTellNoAddresses: texts about leaders, which say where nodes listen, do not reach clients of Boskos; what a
// server says about itself does.
func TestOutagesTellNoAddresses(t *testing.T) {
	for reason, want := range map[string]string{
		"NO_LEADER":       "the leader of the cluster cannot be reached now, nothing was changed, try again later.",
		"LEADERSHIP_LOST": "the leader of the cluster cannot be reached now, nothing was changed, try again later.",
		"OVERLOADED":      "n1 at 10.0.0.1:7102",
	} {
		f := loaded(t, accounts)
		unavailable := connect.NewError(connect.CodeUnavailable, errors.New("n1 at 10.0.0.1:7102"))
		detail, err := connect.NewErrorDetail(&quoratev1.Problem{Reason: reason, NotApplied: true})
		if err != nil {
			t.Fatal(err)
		}
		unavailable.AddDetail(detail)
		f.failures = []error{unavailable}
		body := call(t, NewHandler(f.api(), Options{}), http.StatusServiceUnavailable, "acquire",
			"type=account state=free dest=busy owner=me request_id=1")
		if body != "Acquire failed: "+want {
			t.Errorf("%s: %q, want %q", reason, body, want)
		}
	}
}

// TestRefusedCallersAreToldSo: a call that is refused for its credential is 403 with a text, as in the handler. 401
// would tell a client that another owner has the resource.
func TestRefusedCallersAreToldSo(t *testing.T) {
	w := httptest.NewRecorder()
	WriteError(w, nil, connect.NewError(connect.CodeUnauthenticated, errors.New("says the test")))
	if w.Code != http.StatusForbidden || w.Body.String() != "says the test\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}
