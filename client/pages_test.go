package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
)

// TestPages: all pages are read with the filters of the request, an empty one in the middle too, until the last page,
// an error, or the end of the loop.
func TestPages(t *testing.T) {
	request := &adminv1.ListAccountsRequest{PageSize: 2}
	calls := 0
	list := func(_ context.Context, r *adminv1.ListAccountsRequest) (*adminv1.ListAccountsResponse, error) {
		if calls++; r.GetPageSize() != 2 {
			t.Errorf("asked %v", r)
		}
		switch r.GetPageToken() {
		case "":
			return &adminv1.ListAccountsResponse{NextPageToken: "empty", Accounts: []*adminv1.Account{{Name: "a"}}}, nil
		case "empty":
			return &adminv1.ListAccountsResponse{NextPageToken: "last"}, nil
		case "last":
			return &adminv1.ListAccountsResponse{Accounts: []*adminv1.Account{{Name: "b"}}}, nil
		}
		return nil, errors.New("not a token")
	}
	read := func() (names string, failure error) {
		for page, err := range client.Pages(t.Context(), list, request) {
			if err != nil {
				return names, err
			}
			for _, a := range page.GetAccounts() {
				names += a.GetName() + " "
			}
		}
		return names, nil
	}
	if names, err := read(); names != "a b " || err != nil || calls != 3 || request.GetPageToken() != "" {
		t.Errorf("%q, %v after %d calls", names, err, calls)
	}
	request.PageToken = "last"
	if names, err := read(); names != "b " || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	request.PageToken = "bad"
	if names, err := read(); names != "" || err == nil || !strings.Contains(err.Error(), "not a token") {
		t.Errorf("%q, %v", names, err)
	}
	request.PageToken, calls = "", 0
	for range client.Pages(t.Context(), list, request) {
		break
	}
	if calls != 1 {
		t.Errorf("a loop that ends has called %d times", calls)
	}
}
