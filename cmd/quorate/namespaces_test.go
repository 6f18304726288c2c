package main

import (
	"testing"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// TestIDsNameTheirNamespace: every command about one allocation takes the id as lists of several namespaces print it.
func TestIDsNameTheirNamespace(t *testing.T) {
	f, server := startFake(t)
	const id = "account/hans job-1"
	for _, test := range []struct {
		line []string
		want proto.Message
	}{
		{[]string{"renew", id}, &quoratev1.RenewRequest{Namespace: "account/hans", Id: "job-1"}},
		{[]string{"release", id}, &quoratev1.ReleaseRequest{Namespace: "account/hans", Id: "job-1"}},
		{[]string{"release", "--restore", id}, &quoratev1.CancelRequest{Namespace: "account/hans", Id: "job-1"}},
		{[]string{"allocation", "confirm", id}, &quoratev1.ConfirmRequest{Namespace: "account/hans", Id: "job-1"}},
	} {
		_, _, stderr := runQuorate(server, "", test.line...)
		if sent := f.lastRequest(t); !proto.Equal(sent, test.want) {
			t.Errorf("quorate %q sends %v, want %v: %s", test.line, sent, test.want, stderr)
		}
	}
	code, _, stderr := runQuorate(server, "", "allocation", "show", id, "--namespace", "account/heidi")
	if code != cli.ExitUsage {
		t.Errorf("two namespaces: exit code %d: %s", code, stderr)
	}
}
