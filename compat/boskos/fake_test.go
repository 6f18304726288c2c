package boskos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// In-process handlers and network clients both implement the interfaces that the front end requires.
var (
	_ Allocations = quoratev1connect.AllocationServiceHandler(nil)
	_ Allocations = quoratev1connect.AllocationServiceClient(nil)
	_ Items       = quoratev1connect.ItemServiceHandler(nil)
	_ Items       = quoratev1connect.ItemServiceClient(nil)
	_ Trees       = quoratev1connect.TreeServiceHandler(nil)
	_ Trees       = quoratev1connect.TreeServiceClient(nil)
)

// fake is a small in-memory ledger behind the interfaces of the API. The tests in the folder conformance run the same
// exchanges against the real one.
type fake struct {
	mu       sync.Mutex
	trees    map[string]*quoratev1.Tree
	items    []*fakeItem
	held     map[string]*fakeAllocation
	queue    []*fakeAllocation
	fence    uint64
	made     map[string]int
	now      time.Time
	failures []error // of the next calls that write
}

type fakeItem struct {
	name    *quoratev1.ItemName
	state   string
	data    map[string]string
	holder  *fakeAllocation
	changed int // counts up, for the order of age
	updated time.Time
	back    time.Time // when it was last given back
}

type fakeAllocation struct {
	request *quoratev1.AllocateRequest
	state   quoratev1.AllocationState
	fence   uint64
	since   time.Time
}

func loaded(t *testing.T, config string) *fake {
	t.Helper()
	conversion, err := Convert([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{
		held: map[string]*fakeAllocation{}, made: map[string]int{}, trees: map[string]*quoratev1.Tree{},
		now: time.Date(2020, 11, 20, 12, 0, 0, 0, time.UTC),
	}
	f.apply(conversion.Trees...)
	return f
}

func (f *fake) apply(trees ...*quoratev1.Tree) {
	for _, tree := range trees {
		f.trees[tree.GetName()] = tree
		for _, r := range tree.GetResources() {
			for _, name := range r.GetItems().GetNames() {
				f.add(tree.GetName(), r, name)
			}
			for range r.GetItems().GetMin() {
				f.makeOne(tree.GetName(), r)
			}
		}
	}
}

func (f *fake) api() API { return API{f, f, f} }

func (f *fake) add(tree string, r *quoratev1.Resource, name string) *fakeItem {
	item := &fakeItem{name: &quoratev1.ItemName{Tree: tree, Resource: r.GetName(), Name: name}}
	f.items = append(f.items, item)
	f.put(item, cmp.Or(r.GetItems().GetState(), "free"))
	return item
}

func (f *fake) makeOne(tree string, r *quoratev1.Resource) *fakeItem {
	f.made[r.GetName()]++
	return f.add(tree, r, fmt.Sprintf("%s-%d", strings.ReplaceAll(r.GetName(), "/", "-"), f.made[r.GetName()]))
}

// put changes the state of an item, which makes it the newest in that state.
func (f *fake) put(item *fakeItem, state string) {
	f.now = f.now.Add(time.Millisecond)
	f.fence++
	item.state, item.updated, item.changed = state, f.now, int(f.fence)
}

func (f *fake) fails() error {
	if len(f.failures) == 0 {
		return nil
	}
	err := f.failures[0]
	f.failures = f.failures[1:]
	return err
}

func unknown(what string) error {
	return connect.NewError(connect.CodeNotFound, errors.New("there is no "+what))
}

func (f *fake) GetTree(_ context.Context, r *quoratev1.GetTreeRequest) (*quoratev1.GetTreeResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trees[r.GetName()] == nil {
		return nil, unknown(r.GetName())
	}
	return &quoratev1.GetTreeResponse{Tree: f.trees[r.GetName()]}, nil
}

func (f *fake) resource(tree, name string) (*quoratev1.Resource, error) {
	for _, r := range f.trees[tree].GetResources() {
		if r.GetName() == name {
			return r, nil
		}
	}
	return nil, unknown(tree + " " + name)
}

func (f *fake) Allocate(_ context.Context, r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.held[r.GetId()]
	if a != nil && itemPickOf(a.request).GetHeldState() != itemPickOf(r).GetHeldState() {
		return nil, connect.NewError(connect.CodeAlreadyExists, errors.New("it exists with other content"))
	}
	if a == nil {
		a = &fakeAllocation{request: proto.CloneOf(r), since: f.now}
		switch err := f.try(a, f.queue); {
		case err == nil:
			f.held[r.GetId()] = a
		case connect.CodeOf(err) == connect.CodeResourceExhausted && r.GetMode() == quoratev1.Mode_MODE_WAIT:
			a.state = quoratev1.AllocationState_ALLOCATION_STATE_WAITING
			f.held[r.GetId()], f.queue = a, append(f.queue, a)
		default:
			return nil, err
		}
	}
	if a.state > quoratev1.AllocationState_ALLOCATION_STATE_HELD &&
		a.state != quoratev1.AllocationState_ALLOCATION_STATE_WAITING {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("it has ended"))
	}
	if err := f.fails(); err != nil {
		return nil, err
	}
	return &quoratev1.AllocateResponse{Allocation: f.record(a)}, nil
}

// try grants a request if no earlier request waits for the same items.
func (f *fake) try(a *fakeAllocation, before []*fakeAllocation) error {
	for _, other := range before {
		if lineOf(other) == lineOf(a) {
			return denial()
		}
	}
	var taken []*fakeItem
	states := map[*fakeItem]string{}
	for _, claim := range a.request.GetClaims() {
		if err := f.fits(claim); err != nil {
			return err
		}
		for _, pick := range claim.GetItems() {
			r, err := f.resource(claim.GetTree(), pick.GetResource())
			if err != nil {
				return err
			}
			found := f.pick(claim.GetTree(), r, pick)
			if found == nil {
				return denial()
			}
			for _, item := range found {
				taken, states[item] = append(taken, item), pick.GetHeldState()
			}
		}
	}
	f.fence++
	a.fence, a.state = f.fence, quoratev1.AllocationState_ALLOCATION_STATE_HELD
	for _, item := range taken {
		f.put(item, states[item])
		item.holder = a
	}
	return nil
}

func lineOf(a *fakeAllocation) string {
	pick := a.request.GetClaims()[0].GetItems()[0]
	return pick.GetResource() + " " + pick.GetState()
}

func (f *fake) fits(claim *quoratev1.Claim) error {
	asked := maps.Clone(claim.GetAmounts())
	if asked == nil {
		asked = map[string]int64{}
	}
	for _, pick := range claim.GetItems() {
		asked[pick.GetResource()] += max(pick.GetCount(), int64(len(pick.GetNames())))
	}
	var limits map[string]*quoratev1.Limit
	for _, node := range f.trees[claim.GetTree()].GetNodes() {
		if node.GetPath() == claim.GetNode() {
			limits = node.GetLimits()
		}
	}
	for name, limit := range limits {
		if asked[name] > 0 && f.used(claim.GetTree(), claim.GetNode(), name)+asked[name] > limit.GetAmount() {
			return denial()
		}
	}
	return nil
}

func (f *fake) used(tree, node, resource string) (sum int64) {
	for _, a := range f.held {
		for _, claim := range a.request.GetClaims() {
			isCounted := a.state == quoratev1.AllocationState_ALLOCATION_STATE_HELD && claim.GetTree() == tree &&
				claim.GetNode() == node
			if isCounted {
				sum += claim.GetAmounts()[resource]
			}
			for _, item := range f.items {
				if isCounted && item.holder == a && item.name.GetResource() == resource {
					sum++
				}
			}
		}
	}
	return sum
}

func denial() error {
	err := connect.NewError(connect.CodeResourceExhausted, errors.New("denied"))
	detail, broken := connect.NewErrorDetail(&quoratev1.Decision{Outcome: quoratev1.Outcome_OUTCOME_DENIED})
	if broken != nil {
		panic(broken)
	}
	err.AddDetail(detail)
	return err
}

// pick finds the oldest item in a state, or all of the names; a dynamic type gets one more if there is room.
func (f *fake) pick(tree string, r *quoratev1.Resource, pick *quoratev1.ItemPick) []*fakeItem {
	slices.SortFunc(f.items, func(a, b *fakeItem) int { return cmp.Compare(a.changed, b.changed) })
	var found []*fakeItem
	total := 0
	for _, item := range f.items {
		if item.name.GetTree() != tree || item.name.GetResource() != r.GetName() {
			continue
		}
		total++
		named := len(pick.GetNames()) == 0 || slices.Contains(pick.GetNames(), item.name.GetName())
		if item.holder == nil && item.state == pick.GetState() && named {
			found = append(found, item)
		}
	}
	wanted := max(int(pick.GetCount()), len(pick.GetNames()))
	for len(found) < wanted && total < int(r.GetItems().GetMax()) && len(pick.GetNames()) == 0 {
		total++
		item := f.makeOne(tree, r)
		if item.state != pick.GetState() {
			break
		}
		found = append(found, item)
	}
	if len(found) < wanted {
		return nil
	}
	return found[:wanted]
}

func (f *fake) record(a *fakeAllocation) *quoratev1.Allocation {
	record := &quoratev1.Allocation{
		Id: a.request.GetId(), State: a.state, Fence: a.fence, Principal: a.request.GetPrincipal(),
		Waiting: &quoratev1.Waiting{ArrivedAt: timestamppb.New(a.since)},
	}
	for _, claim := range a.request.GetClaims() {
		held := &quoratev1.HeldClaim{
			Tree: claim.GetTree(), Node: claim.GetNode(), Amounts: claim.GetAmounts(), Picks: claim.GetItems(),
		}
		for _, item := range f.items {
			if item.holder == a && item.name.GetTree() == claim.GetTree() {
				held.Items = append(held.Items, &quoratev1.HeldItem{
					Resource: item.name.GetResource(), Name: item.name.GetName(), State: item.state,
					UserData: maps.Clone(item.data), UpdatedAt: timestamppb.New(item.updated),
				})
			}
		}
		record.Claims = append(record.Claims, held)
	}
	return record
}

func (f *fake) GetAllocation(_ context.Context,
	r *quoratev1.GetAllocationRequest,
) (*quoratev1.GetAllocationResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.held[r.GetId()]; a != nil {
		return &quoratev1.GetAllocationResponse{Allocation: f.record(a)}, nil
	}
	return nil, unknown(r.GetId())
}

func (f *fake) Renew(_ context.Context, r *quoratev1.RenewRequest) (*quoratev1.RenewResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.held[r.GetId()]
	if a == nil || a.state != quoratev1.AllocationState_ALLOCATION_STATE_HELD || a.fence != r.GetFence() {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("it is not held"))
	}
	f.now = f.now.Add(time.Millisecond)
	for _, item := range f.items {
		if item.holder == a {
			item.updated = f.now
			item.data = merged(item, r.GetItems())
			for _, u := range r.GetItems() {
				if u.GetItem().GetName() == item.name.GetName() && u.GetState() != "" {
					f.put(item, u.GetState())
				}
			}
		}
	}
	return &quoratev1.RenewResponse{Allocation: f.record(a)}, f.fails()
}

func merged(item *fakeItem, updates []*quoratev1.ItemUpdate) map[string]string {
	data := map[string]string{}
	maps.Copy(data, item.data)
	for _, u := range updates {
		if u.GetItem().GetName() == item.name.GetName() {
			maps.Copy(data, u.GetUserData())
		}
	}
	maps.DeleteFunc(data, func(_, value string) bool { return value == "" })
	return data
}

func (f *fake) Release(_ context.Context, r *quoratev1.ReleaseRequest) (*quoratev1.ReleaseResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.held[r.GetId()]
	if a == nil {
		return nil, unknown(r.GetId())
	}
	repeated := a.state != quoratev1.AllocationState_ALLOCATION_STATE_HELD
	for _, item := range f.items {
		if item.holder == a && (len(r.GetItems()) == 0 || r.GetItems()[0].GetName() == item.name.GetName()) {
			f.giveBack(item, r.GetItemState())
		}
	}
	if !repeated {
		f.endIfEmpty(a, len(r.GetItems()) == 0)
	}
	f.wake()
	return &quoratev1.ReleaseResponse{
		Allocation: f.record(a),
		Write:      &quoratev1.WriteInfo{Repetition: repeated},
	}, f.fails()
}

func (f *fake) giveBack(item *fakeItem, state string) {
	item.holder = nil
	f.put(item, state)
	item.back = f.now
}

func (f *fake) endIfEmpty(a *fakeAllocation, whole bool) {
	left := slices.ContainsFunc(f.items, func(i *fakeItem) bool { return i.holder == a }) ||
		slices.ContainsFunc(a.request.GetClaims(), func(c *quoratev1.Claim) bool { return len(c.GetAmounts()) > 0 })
	if whole || !left {
		a.state = quoratev1.AllocationState_ALLOCATION_STATE_RELEASED
	}
}

func (f *fake) expire(name, state string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, item := range f.items {
		if item.name.GetName() == name && item.holder != nil {
			item.holder.state = quoratev1.AllocationState_ALLOCATION_STATE_EXPIRED
			f.giveBack(item, state)
		}
	}
	f.wake()
}

func (f *fake) wake() {
	var waiting []*fakeAllocation
	for _, a := range f.queue {
		if f.try(a, waiting) != nil {
			waiting = append(waiting, a)
		}
	}
	f.queue = waiting
}

func (f *fake) ListItems(_ context.Context, r *quoratev1.ListItemsRequest) (*quoratev1.ListItemsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trees[r.GetTree()] == nil {
		return nil, unknown(r.GetTree())
	}
	if r.GetPageToken() == "" {
		return &quoratev1.ListItemsResponse{NextPageToken: "a page may be short although more follow"}, nil
	}
	found := &quoratev1.ListItemsResponse{}
	for _, item := range f.items {
		if item.name.GetTree() != r.GetTree() || item.name.GetName() != r.GetName() {
			continue
		}
		shown := &quoratev1.Item{Name: item.name, State: item.state, UpdatedLedgerMs: item.updated.UnixMilli()}
		if spec, err := f.resource(r.GetTree(), item.name.GetResource()); err == nil && !item.back.IsZero() {
			if life := spec.GetItems().GetLifespanMs(); life > 0 {
				shown.ExpiresAt = timestamppb.New(item.back.Add(time.Duration(life) * time.Millisecond))
			}
		}
		if a := item.holder; a != nil {
			shown.Allocation = &quoratev1.AllocationRef{Namespace: a.request.GetNamespace(), Id: a.request.GetId()}
			shown.Fence, shown.Owner = a.fence, a.request.GetPrincipal().GetUser()
		}
		found.Items = append(found.Items, shown)
	}
	return found, nil
}

func (f *fake) CountItems(_ context.Context, r *quoratev1.CountItemsRequest) (*quoratev1.CountItemsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := map[string]*quoratev1.ItemCount{}
	for _, item := range f.items {
		name := item.name.GetResource()
		if item.name.GetTree() != r.GetTree() || r.GetResource() != "" && r.GetResource() != name {
			continue
		}
		if counts[name] == nil {
			counts[name] = &quoratev1.ItemCount{
				Tree: r.GetTree(), Resource: name, States: map[string]int64{}, Owners: map[string]int64{},
			}
		}
		owner := ""
		if item.holder != nil {
			owner = item.holder.request.GetPrincipal().GetUser()
		}
		counts[name].States[item.state]++
		counts[name].Owners[owner]++
	}
	return &quoratev1.CountItemsResponse{Counts: slices.Collect(maps.Values(counts))}, nil
}

func (f *fake) ResetItems(_ context.Context, r *quoratev1.ResetItemsRequest) (*quoratev1.ResetItemsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	done := &quoratev1.ResetItemsResponse{}
	for _, item := range f.items {
		idle := f.now.Sub(item.updated).Milliseconds() >= r.GetIdleMs()
		if item.name.GetResource() == r.GetResource() && item.state == r.GetState() && item.holder != nil && idle {
			a := item.holder
			done.Items = append(done.Items, &quoratev1.ResetItem{
				Name: item.name.GetName(), Owner: a.request.GetPrincipal().GetUser(),
				Allocation: &quoratev1.AllocationRef{Namespace: a.request.GetNamespace(), Id: a.request.GetId()},
			})
			f.giveBack(item, r.GetNewState())
			f.endIfEmpty(a, true)
			a.state = quoratev1.AllocationState_ALLOCATION_STATE_EXPIRED
		}
	}
	f.wake()
	return done, f.fails()
}
