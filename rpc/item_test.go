package rpc

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

func (d *testServer) items(options ...connect.ClientOption) quoratev1connect.ItemServiceClient {
	return quoratev1connect.NewItemServiceClient(overHTTP2, d.url, options...)
}

// plantLab creates a tree with three items, of which a team may hold two, and items on demand.
func (d *testServer) plantLab(t *testing.T) {
	t.Helper()
	tree := &quoratev1.Tree{
		Name: "lab", Policy: "open",
		Resources: []*quoratev1.Resource{
			{
				Name: "bench", Unit: quoratev1.Unit_UNIT_ITEMS,
				Items: &quoratev1.ItemSpec{Names: []string{"b2", "b1", "b3"}, Released: "dirty", TtlMs: 60_000},
			},
			{Name: "slice", Unit: quoratev1.Unit_UNIT_ITEMS, Items: &quoratev1.ItemSpec{Min: 1, Max: 2}},
		},
		Nodes: []*quoratev1.Node{
			{Path: "team", Limits: map[string]*quoratev1.Limit{"bench": {Value: &quoratev1.Limit_Amount{Amount: 2}}}},
		},
	}
	if _, err := d.trees().ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}}); err != nil {
		t.Fatal(err)
	}
}

func pick(id, node string, picks ...*quoratev1.ItemPick) *quoratev1.AllocateRequest {
	return &quoratev1.AllocateRequest{
		Id: id, Claims: []*quoratev1.Claim{{Tree: "lab", Node: node, Items: picks}},
		Principal: &quoratev1.Principal{User: "ann"},
	}
}

func bench(name string) *quoratev1.ItemName {
	return &quoratev1.ItemName{Tree: "lab", Resource: "bench", Name: name}
}

func list(t *testing.T, client quoratev1connect.ItemServiceClient, r *quoratev1.ListItemsRequest) string {
	t.Helper()
	var all []string
	for {
		page, err := client.ListItems(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range page.GetItems() {
			all = append(
				all, strings.TrimSpace(fmt.Sprintf("%s %s %s", i.GetName().GetName(), i.GetState(), i.GetOwner())))
		}
		if r.PageToken = page.GetNextPageToken(); r.GetPageToken() == "" {
			return strings.Join(all, ", ")
		}
	}
}

func TestItems(t *testing.T) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			d := oneNode(t)
			d.plantLab(t)
			items, client := d.items(options...), d.allocations(options...)
			granted, err := client.Allocate(t.Context(),
				pick("a", "team", &quoratev1.ItemPick{Resource: "bench", Count: 2, HeldState: "busy"},
					&quoratev1.ItemPick{Resource: "slice"}))
			if err != nil {
				t.Fatal(err)
			}
			held := granted.GetAllocation().GetClaims()[0]
			if len(held.GetItems()) != 3 || held.GetItems()[0].GetState() != "busy" ||
				held.GetPicks()[0].GetCount() != 2 || granted.GetAllocation().GetTtlMs() != 60_000 {
				t.Errorf("granted %v", granted)
			}
			all := &quoratev1.ListItemsRequest{Tree: "lab", PageSize: 2}
			if got := list(t, items, all); got != "b1 busy ann, b2 busy ann, b3 free, slice-1 leased ann" {
				t.Errorf("there are %s", got)
			}
			if got := list(
				t, items, &quoratev1.ListItemsRequest{
					Tree: "lab", Resource: "bench", Owner: "ann", State: "busy",
					Name: "b2",
				}); got != "b2 busy ann" {
				t.Errorf("the filters let pass %s", got)
			}
			_, err = client.Allocate(t.Context(), pick("b", "team", &quoratev1.ItemPick{Resource: "bench"}))
			if decision, ok := detailOf[*quoratev1.Decision](err); !ok ||
				decision.GetViolations()[0].GetNode() != "team" {
				t.Errorf("over the limit of the team: %v", err)
			}
			_, err = client.Allocate(t.Context(), pick("c", "", &quoratev1.ItemPick{Resource: "bench", Count: 2}))
			if decision, ok := detailOf[*quoratev1.Decision](err); !ok ||
				decision.GetViolations()[0].GetKind() != quoratev1.ViolationKind_VIOLATION_KIND_ITEMS ||
				decision.GetViolations()[0].GetItem() != "free" {
				t.Errorf("more than there are: %v", err)
			}
			released, err := client.Release(t.Context(),
				&quoratev1.ReleaseRequest{Id: "a", Items: []*quoratev1.ItemName{bench("b1")}})
			if err != nil || stateOf(released.GetAllocation()) != "HELD" ||
				len(released.GetAllocation().GetClaims()[0].GetItems()) != 2 {
				t.Errorf("given back in part: %v, %v", released, err)
			}
			counts, err := items.CountItems(t.Context(), &quoratev1.CountItemsRequest{Tree: "lab", Resource: "bench"})
			if err != nil || len(counts.GetCounts()) != 1 ||
				fmt.Sprint(counts.GetCounts()[0].GetStates(),
					counts.GetCounts()[0].GetOwners()) != "map[busy:1 dirty:1 free:1] map[:2 ann:1]" {
				t.Errorf("the counts are %v, %v", counts, err)
			}
		})
	}
}

func TestItemsAreChangedAndReset(t *testing.T) {
	d := oneNode(t)
	d.plantLab(t)
	items := d.items()
	if _, err := d.allocations().Allocate(t.Context(),
		pick("a", "team", &quoratev1.ItemPick{Resource: "bench", Names: []string{"b1"}})); err != nil {
		t.Fatal(err)
	}
	update := &quoratev1.UpdateItemsRequest{Updates: []*quoratev1.ItemUpdate{
		{Item: bench("b3"), State: "broken", UserData: map[string]string{"password": "secret"}},
		{Item: bench("b2"), State: "used"},
	}}
	answer, err := items.UpdateItems(t.Context(), update)
	if err != nil || answer.GetItems()[0].GetState() != "broken" || answer.GetItems()[1].GetName().GetName() != "b2" ||
		len(answer.GetItems()[0].GetUserData()) != 0 {
		t.Errorf("got %v, %v", answer, err)
	}
	for data, want := range map[bool]string{true: "secret", false: ""} {
		page, err := items.ListItems(t.Context(), &quoratev1.ListItemsRequest{Tree: "lab", Name: "b3", UserData: data})
		if err != nil || page.GetItems()[0].GetUserData()["password"] != want {
			t.Errorf("asked for data: %v, got %v, %v", data, page, err)
		}
	}
	for name, c := range map[string]struct {
		item   *quoratev1.ItemName
		code   connect.Code
		reason string
	}{
		"one that is held": {bench("b1"), connect.CodeFailedPrecondition, "IN_USE"},
		"one that is not":  {bench("b9"), connect.CodeNotFound, "NOT_FOUND"},
	} {
		_, err := items.UpdateItems(t.Context(),
			&quoratev1.UpdateItemsRequest{Updates: []*quoratev1.ItemUpdate{{Item: c.item, State: "x"}}})
		if connect.CodeOf(err) != c.code || problemOf(t, err).GetReason() != c.reason ||
			!strings.Contains(err.Error(), c.item.GetName()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	reset := &quoratev1.ResetItemsRequest{
		Tree: "lab", Resource: "bench", State: "leased",
		IdleMs: 1_000_000, NewState: "dirty",
	}
	if got, err := items.ResetItems(t.Context(), reset); err != nil || len(got.GetItems()) != 0 {
		t.Errorf("a holder that is not idle loses %v, %v", got, err)
	}
	reset.IdleMs = 0
	for _, dryRun := range []bool{true, true, false} { // a dry run takes nothing, so that the next call finds the same
		reset.DryRun = dryRun
		got, err := items.ResetItems(t.Context(), reset)
		if err != nil || len(got.GetItems()) != 1 || got.GetItems()[0].GetName() != "b1" ||
			got.GetItems()[0].GetOwner() != "ann" || got.GetItems()[0].GetAllocation().GetId() != "a" ||
			got.GetItems()[0].GetUpdatedLedgerMs() == 0 {
			t.Errorf("dry run: %v: got %v, %v", dryRun, got, err)
		}
	}
	reset.DryRun, reset.Resource = true, "none"
	if _, err := items.ResetItems(t.Context(), reset); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a dry run of a resource that does not exist: %v", err)
	}
	if ended, err := d.allocations().GetAllocation(t.Context(), &quoratev1.GetAllocationRequest{Id: "a"}); err != nil ||
		stateOf(ended.GetAllocation()) != "EXPIRED" {
		t.Errorf("who lost all is %v, %v", ended, err)
	}
	for _, call := range []func() error{
		func() error {
			_, err := items.ListItems(t.Context(), &quoratev1.ListItemsRequest{Tree: "nowhere"})
			return err
		},
		func() error {
			_, err := items.CountItems(t.Context(), &quoratev1.CountItemsRequest{Tree: "lab", Resource: "x"})
			return err
		},
		func() error {
			_, err := items.ResetItems(t.Context(),
				&quoratev1.ResetItemsRequest{Tree: "lab", Resource: "x", State: "a", NewState: "b"})
			return err
		},
	} {
		if err := call(); connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("got %v", err)
		}
	}
}

// TestItemIsGrantedInTheEntryThatFreesIt: the watch shows the release and the grant under one index.
func TestItemIsGrantedInTheEntryThatFreesIt(t *testing.T) {
	follower, leader := twoNodes(t)
	leader.plantLab(t)
	wanted := pick("a", "team", &quoratev1.ItemPick{Resource: "bench", State: "clean"})
	wanted.Mode, wanted.PollMs = quoratev1.Mode_MODE_WAIT, 30_000
	answered := make(chan polled, 1)
	go func() {
		answer, err := follower.allocations().Allocate(t.Context(), wanted)
		answered <- polled{answer: answer, err: err}
	}()
	leader.until(t, func() bool { return leader.waiting("a") })
	if got, err := follower.items().CountItems(t.Context(), &quoratev1.CountItemsRequest{Tree: "lab"}); err != nil ||
		got.GetCounts()[0].GetWaiting() != 1 {
		t.Errorf("who waits is not counted: %v, %v", got, err)
	}
	cleaned, err := follower.services.Items.UpdateItems(t.Context(),
		&quoratev1.UpdateItemsRequest{Updates: []*quoratev1.ItemUpdate{{Item: bench("b2"), State: "clean"}}})
	if err != nil {
		t.Fatal(err)
	}
	got := <-answered
	if got.err != nil || got.answer.GetAllocation().GetClaims()[0].GetItems()[0].GetName() != "b2" {
		t.Fatalf("got %+v", got)
	}
	stream := follower.watch(
		t, &quoratev1.WatchEventsRequest{
			AfterIndex:  cleaned.GetWrite().GetIndex() - 1,
			Allocations: []*quoratev1.AllocationRef{{Id: "a"}},
		})
	if granted := changes(t, stream, 1)[0]; granted.GetIndex() != cleaned.GetWrite().GetIndex() ||
		granted.GetChange().GetKind() != quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_GRANTED {
		t.Errorf("cleaned in entry %d, but granted in %v", cleaned.GetWrite().GetIndex(), granted)
	}
	if taken, err := follower.services.Items.ResetItems(t.Context(),
		&quoratev1.ResetItemsRequest{Tree: "lab", Resource: "bench", State: "leased", NewState: "dirty"}); err != nil ||
		len(taken.GetItems()) != 1 {
		t.Errorf("got %v, %v", taken, err)
	}
}

// TestItemsByHand checks the JSON answers of the item calls over plain HTTP.
func TestItemsByHand(t *testing.T) {
	d := oneNode(t)
	d.plantLab(t)
	body := `{"id":"a","mode":"MODE_WAIT","claims":[{"tree":"lab","node":"team","items":[{"resource":"bench","count":2}]}],"principal":{"user":"ann"}}`
	if got := send(t, "POST", d.url+allocatePath, body); got.status != 200 ||
		!strings.Contains(got.body, `"name":"b1","state":"leased"`) {
		t.Errorf("got %v", got)
	}
	again := strings.NewReplacer(`"a"`, `"b"`, `"node":"team",`, "").Replace(body)
	if got := send(t, "POST", d.url+allocatePath, again); got.status != 200 ||
		!strings.Contains(got.body, `"outcome":"OUTCOME_WAITING"`) {
		t.Errorf("got %v", got)
	}
	const waiting = "/quorate.v1.AllocationService/ListWaiting"
	if got := send(t, "POST", d.url+waiting, `{"tree":"lab","resource":"bench"}`); !strings.Contains(got.body,
		`"line":"bench free of lab"`) {
		t.Errorf("got %v", got)
	}
	if got := send(t, "POST", d.url+"/quorate.v1.ItemService/CountItems", `{"tree":"lab"}`); got.status != 200 ||
		!strings.Contains(got.body, `"states":{"free":"1","leased":"2"}`) ||
		!strings.Contains(got.body, `"waiting":"1"`) {
		t.Errorf("got %v", got)
	}
	if got := send(t, "POST", d.url+"/quorate.v1.ItemService/UpdateItems",
		`{"updates":[{"state":"x"}]}`); got.status != 400 || !strings.Contains(got.body, `updates[0].item`) {
		t.Errorf("got %v", got)
	}
	began := time.Now()
	poll := strings.Replace(again, `"mode"`, `"pollMs":100,"mode"`, 1)
	if got := send(t, "POST", d.url+allocatePath, poll); got.status != 200 || time.Since(began) < 100*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(began), got)
	}
}
