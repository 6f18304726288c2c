package rpc

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/notify"
)

// holderNode starts a guarded cluster in which the account plain may hold, and the allocation "holder" has all of
// physics.
func holderNode(t *testing.T) *testServer {
	t.Helper()
	d := oneNode(t)
	d.node.bookWith(t, access.Open)
	section := d.node.Book().Section()
	section.Bindings = append(section.Bindings, access.Binding{
		Role: "holder", To: []access.Subject{{Kind: access.AccountSubject, Name: "plain"}},
	})
	section.Bindings = access.CanonicalBindings(section.Bindings)
	d.node.useSection(t, section)
	d.hold(t, "holder")
	d.node.changeBook(t, access.SetMode{Mode: access.Guarded})
	return d
}

func (d *testServer) allocationsAs(a as) allocationCalls {
	return allocationCallsOf(a, d.url)
}

// TestAWaitingCallEndsWithItsCredentialOrRights: a call that waits for its grant ends when its token is revoked, and
// when its caller may no longer hold, long before its time is over.
func TestAWaitingCallEndsWithItsCredentialOrRights(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(d *testServer)
		code connect.Code
		says string
	}{
		"the token is revoked": {
			func(d *testServer) { d.node.changeBook(t, access.RevokeToken{ID: plainToken}) },
			connect.CodeUnauthenticated, "token",
		},
		"the binding is removed": {
			func(d *testServer) {
				section := d.node.Book().Section()
				section.Bindings = section.Bindings[:0:0]
				for _, b := range d.node.Book().Section().Bindings {
					if b.Role != "holder" {
						section.Bindings = append(section.Bindings, b)
					}
				}
				d.node.useSection(t, section)
			},
			connect.CodeNotFound, "may not see it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := holderNode(t)
			ended := make(chan error, 1)
			go func() {
				_, err := d.allocationsAs(byToken(plainToken)).Allocate(t.Context(), waitingRequest("w", time.Minute))
				ended <- err
			}()
			waits := notify.AllocationKey("account/plain w")
			eventually(t, "the call waits", func() bool { return d.notifier.HasSubscriber(waits) })
			select {
			case err := <-ended:
				t.Fatalf("the call has ended before: %v", err)
			case <-time.After(1500 * time.Millisecond): // it was looked at once, and goes on
			}
			c.lose(d)
			err := <-ended
			if connect.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the call ends with %v, want %v: %s", err, c.code, c.says)
			}
		})
	}
}

// TestUsersShareAServer: streams and waiting calls of one user leave room for another, at the same address too, and
// without a credential an address has its share as before.
func TestUsersShareAServer(t *testing.T) {
	c := newFakeCluster()
	d := openWith(t, c, "n1", admission.Limits{Streams: 40, Calls: 40})
	c.lead("n1")
	d.applyCERN(t)
	d.node.bookWith(t, access.Guarded)
	watch := func(caller as) error {
		stream, err := d.allocationsAs(caller).WatchEvents(t.Context(), &quoratev1.WatchEventsRequest{})
		if err == nil {
			stream.Receive()
			err = stream.Err()
		}
		return err
	}
	for range 40 / admission.UserStreams {
		if err := watch(byToken(plainToken)); err != nil {
			t.Fatal(err)
		}
	}
	err := watch(byToken(plainToken))
	wantOverloaded(t, err, "user account/plain has 5 of the 40 streams and waiting requests that this server takes")
	if err := watch(byToken(operatorToken)); err != nil {
		t.Errorf("another user: %v", err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := byToken(adminToken).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	page, err := io.ReadAll(answer.Body)
	if series := `quorate_rpc_shed_total{limit="streams",reason="user"} 1`; err != nil || !strings.Contains(string(page), series) {
		t.Errorf("the metrics lack %s: %v", series, err)
	}
}
