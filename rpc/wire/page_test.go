package wire

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// reopened is the page that a token of the page asks for.
func reopened(t *testing.T, r PagedRequest, token string) Page {
	t.Helper()
	page, err := OpenPage(withToken(r, token), 10)
	if err != nil {
		t.Fatalf("token %q: %v", token, err)
	}
	return page
}

func withToken(r PagedRequest, token string) PagedRequest {
	next := proto.CloneOf(r)
	field := next.ProtoReflect().Descriptor().Fields().ByName("page_token")
	next.ProtoReflect().Set(field, protoreflect.ValueOfString(token))
	return next
}

// TestPositionsRoundTrip: a token continues at the position that it was made of.
func TestPositionsRoundTrip(t *testing.T) {
	allocations := &quoratev1.ListAllocationsRequest{}
	first := reopened(t, allocations, "")
	for _, number := range []uint64{1, 127, 128, 1 << 63} {
		got, err := reopened(t, allocations, first.TokenAfterNumber(number)).Number()
		if err != nil || got != number {
			t.Errorf("%d became %d, %v", number, got, err)
		}
	}
	if got := reopened(t, allocations, first.TokenAfterName("ann")).Name(); got != "ann" {
		t.Errorf("ann became %q", got)
	}
	for _, path := range []string{"", "a", strings.Repeat("a/", 511) + "b"} {
		for fullest, share := range map[bool]quota.Share{
			false: {}, true: {Used: quota.MaxAmount, Limit: quota.MaxAmount},
		} {
			r := &quoratev1.GetUsageRequest{FullestFirst: fullest}
			after := quota.UsagePosition{Path: path, Share: share}
			token := reopened(t, r, "").TokenAfterUsage(&after, fullest)
			got, err := reopened(t, r, token).UsagePosition(fullest)
			if err != nil || got == nil || *got != after || len(token) > 2048 {
				t.Errorf("%q became %v, %v", path, got, err)
			}
		}
	}
	item := quota.ItemName{Tree: "t", Resource: "lab", Name: "x"}
	if got, err := reopened(t, allocations, first.TokenAfterItem(&item)).ItemPosition("t"); err != nil || *got != item {
		t.Errorf("got %v, %v", got, err)
	}
	turn := quota.QueueTurn{Priority: -3, Arrival: 7}
	if got, err := reopened(t, allocations, first.TokenAfterQueued(&turn)).QueuePosition(); err != nil || *got != turn {
		t.Errorf("got %v, %v", got, err)
	}
	last := first.TokenAfterNumber(0) + first.TokenAfterName("") + first.TokenAfterUsage(nil, false) +
		first.TokenAfterUsage(nil, true) + first.TokenAfterItem(nil) + first.TokenAfterQueued(nil)
	if last != "" {
		t.Errorf("the last page has the token %q", last)
	}
}

// TestTokensAreOfOneList: a token is refused by another list and by the same list with other filters, another order or
// other bounds. The size of the page and the freshness of the answer may change.
func TestTokensAreOfOneList(t *testing.T) {
	r := &quoratev1.GetUsageRequest{Tree: "cern", Node: "atlas"}
	token := reopened(t, r, "").TokenAfter([]byte("a"))
	if page := reopened(t, &quoratev1.GetUsageRequest{
		Tree: "cern", Node: "atlas", PageSize: 7,
		Read: &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE},
	}, token); page.Max != 7 || page.Name() != "a" {
		t.Errorf("got %+v", page)
	}
	for name, other := range map[string]PagedRequest{
		"list":  &quoratev1.ListAllocationsRequest{Tree: "cern", Node: "atlas"},
		"node":  &quoratev1.GetUsageRequest{Tree: "cern", Node: "cms"},
		"order": &quoratev1.GetUsageRequest{Tree: "cern", Node: "atlas", FullestFirst: true},
	} {
		if _, err := OpenPage(withToken(other, token), 10); err == nil || !strings.Contains(err.Error(), "page token") {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if _, err := OpenPage(withToken(r, token), 10, "n1"); err == nil {
		t.Error("a token with other bounds was taken")
	}
}

// TestPositionsOfAnotherShapeAreRefused: a token with the right digest and a position that the list cannot have, which
// only a caller makes who forges it.
func TestPositionsOfAnotherShapeAreRefused(t *testing.T) {
	r := &quoratev1.ListAllocationsRequest{}
	for _, position := range []string{"", "\x01\x02", "\x80"} {
		page := reopened(t, r, reopened(t, r, "").TokenAfter([]byte(position)))
		if _, err := page.Number(); err == nil {
			t.Errorf("%q is a number", position)
		}
		if _, err := page.ItemPosition("t"); err == nil {
			t.Errorf("%q is an item", position)
		}
	}
	for _, position := range []string{"", "\x02", "\x02\x03\x04"} {
		page := reopened(t, r, reopened(t, r, "").TokenAfter([]byte(position)))
		if _, err := page.QueuePosition(); err == nil {
			t.Errorf("%q is a place in the queue", position)
		}
	}
}

// FuzzPageToken: an arbitrary text as a page token is refused, or is the token that its page makes of its position.
func FuzzPageToken(f *testing.F) {
	r := &quoratev1.ListAllocationsRequest{}
	first, err := OpenPage(r, 10)
	if err != nil {
		f.Fatal(err)
	}
	for _, token := range []string{
		"", "a", "%", first.TokenAfterNumber(1), first.TokenAfterNumber(1 << 63), first.TokenAfterName("a/b"),
	} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		page, err := OpenPage(withToken(r, token), 10)
		if err == nil && !page.IsFirst() && page.TokenAfter(page.position) != token {
			t.Errorf("%q continues at %q, whose token is %q", token, page.position, page.TokenAfter(page.position))
		}
	})
}

// TestPagesAreTheWholeList: pages of any size, of sizes that change too, are together the whole list. Records that come
// and go between two pages neither repeat nor omit one that stays.
func TestPagesAreTheWholeList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.StringMatching(`[a-c/]{0,3}`), rapid.ID[string])
		stays, comes, goes := names.Draw(t, "stays"), names.Draw(t, "comes"), names.Draw(t, "goes")
		var seen []string
		for token, i := "", 0; ; i++ {
			list := slices.Clone(stays)
			for n, name := range append(slices.Clone(comes), goes...) {
				isThere := i > n%3
				if n >= len(comes) {
					isThere = !isThere
				}
				if isThere {
					list = append(list, name)
				}
			}
			slices.Sort(list)
			size := rapid.Int32Range(1, 5).Draw(t, "size")
			page, err := OpenPage(&adminv1.ListAccountsRequest{PageSize: size, PageToken: token}, 10)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			names, token = CutPage(page, slices.Values(slices.Compact(list)), func(name string) string { return name })
			if len(names) > int(size) || token != "" && len(names) < int(size) {
				t.Fatalf("a page of %d has %d names, and the token %q", size, len(names), token)
			}
			if seen = append(seen, names...); token == "" {
				break
			}
		}
		if !slices.IsSorted(seen) || len(slices.Compact(slices.Clone(seen))) != len(seen) {
			t.Fatalf("out of order or repeated: %q", seen)
		}
		for _, name := range stays {
			if !slices.Contains(seen, name) {
				t.Fatalf("%q is missing in %q", name, seen)
			}
		}
		for _, name := range seen {
			if !slices.Contains(slices.Concat(stays, comes, goes), name) {
				t.Fatalf("%q is not in the list", name)
			}
		}
	})
}
