package rpc

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/procedures"
)

// strangersBodies are requests for each procedure that changes state and whose rights the ledger knows: for what
// exists, for what does not, and for nothing.
var strangersBodies = map[string][]string{
	"/quorate.admin.v1.AccessService/Bootstrap":     {`{"secret": "sssssssssssssssssssssssssssssssssssssssssss"}`},
	"/quorate.admin.v1.AccessService/RotateToken":   {`{"id": "aaaaaaaaaaaaa"}`},
	"/quorate.v1beta1.WebhookService/RemoveWebhook": {`{"name": "none"}`},
	"/quorate.v1beta1.WebhookService/ResumeWebhook": {`{"name": "none"}`},
	"/quorate.v1beta1.WebhookService/SetWebhook":    {`{"webhook": {"name": "w", "url": "https://example.org/", "secret": "s"}}`},
	"/quorate.v1.AllocationService/Allocate": {
		`{"id": "x", "claims": [{"tree": "cern", "node": "physics", "amounts": {"cores": 1}}]}`,
		`{"id": "x", "claims": [{"tree": "none", "amounts": {"cores": 1}}]}`,
		`{"id": "held", "claims": [{"tree": "cern", "node": "physics", "amounts": {"cores": 1}}]}`,
	},
	"/quorate.v1.AllocationService/AllocateStream": {
		`{"number": "1", "allocate": {"id": "x", "claims": [{"tree": "cern", "amounts": {"cores": 1}}]}}`,
		`{"number": "1", "release": {"id": "none"}}`, `{"number": "1", "release": {"id": "held"}}`,
	},
	"/quorate.v1.AllocationService/BatchAllocate": {
		`{"requests": [{"id": "x", "claims": [{"tree": "cern", "amounts": {"cores": 1}}]}]}`,
	},
	"/quorate.v1.AllocationService/BatchRelease": {`{"requests": [{"id": "none"}, {"id": "held"}]}`},
	"/quorate.v1.AllocationService/BatchRenew":   {`{"renewals": [{"id": "none"}, {"id": "held"}]}`},
	"/quorate.v1.AllocationService/Cancel":       {`{"id": "none"}`, `{"id": "held"}`},
	"/quorate.v1.AllocationService/Confirm":      {`{"id": "none"}`, `{"id": "held"}`},
	"/quorate.v1.AllocationService/Release":      {`{"id": "none"}`, `{"id": "held"}`},
	"/quorate.v1.AllocationService/Renew":        {`{"id": "none"}`, `{"id": "held"}`},
	"/quorate.v1.AllocationService/Resize": {
		`{"id": "none", "claims": [{"tree": "cern", "node": "physics", "amounts": {"cores": 1}}]}`,
		`{"id": "held", "claims": [{"tree": "cern", "node": "physics", "amounts": {"cores": 1}}]}`,
	},
	"/quorate.v1.AllocationService/Split": {
		`{"id": "none", "parts": [{"id": "y",
			"claims": [{"tree": "cern", "node": "physics", "newNode": "it", "amounts": {"cores": 1}}]}]}`,
		`{"id": "held", "parts": [{"id": "y",
			"claims": [{"tree": "cern", "node": "physics", "newNode": "it", "amounts": {"cores": 1}}]}]}`,
	},
	"/quorate.v1.AllocationService/Transfer": {
		`{"id": "none", "moves": [{"tree": "cern", "node": "physics", "newNode": "it"}]}`,
		`{"id": "held", "moves": [{"tree": "cern", "node": "physics", "newNode": "it"}]}`,
	},
	"/quorate.v1.ItemService/ResetItems": {
		`{"tree": "cern", "resource": "machine", "state": "dirty", "newState": "free"}`,
		`{"tree": "none", "resource": "machine", "state": "dirty", "newState": "free"}`,
	},
	"/quorate.v1.ItemService/UpdateItems": {
		`{"updates": [{"item": {"tree": "cern", "resource": "machine", "name": "m1"}, "state": "free"}]}`,
		`{"updates": [{"item": {"tree": "none", "resource": "machine", "name": "m1"}, "state": "free"}]}`,
	},
	"/quorate.v1beta1.LimitRequestService/RequestLimits": {
		`{"place": {"tree": "cern", "node": "physics"}, "limits": {"cores": {"amount": "9"}}, "reason": "x"}`,
		`{"place": {"tree": "none"}, "limits": {"cores": {"amount": "9"}}, "reason": "x"}`,
	},
	"/quorate.v1beta1.LimitRequestService/ApproveRequest":  {`{"id": "9", "digest": "old"}`},
	"/quorate.v1beta1.LimitRequestService/RejectRequest":   {`{"id": "9", "reason": "x"}`},
	"/quorate.v1beta1.LimitRequestService/WithdrawRequest": {`{"id": "9"}`},
	"/quorate.v1.TreeService/ApplyTrees": {
		`{"trees": [{"name": "new", "resources": [{"name": "cores"}]}]}`,
		`{"trees": [{"name": "cern", "resources": [{"name": "cores"}]}]}`,
		`{"prune": true}`, `{"removePolicies": ["none"]}`, `{"access": {}}`, `{"policies": [{"name": "p"}]}`,
		`{"requestId": "r"}`,
	},
	"/quorate.v1.TreeService/CancelScheduledLimit": {`{"id": "none"}`},
	"/quorate.v1.TreeService/DeleteTree":           {`{"name": "cern"}`, `{"name": "none"}`},
	"/quorate.admin.v1.CordonService/CordonNode":   {`{"tree": "cern", "node": "physics"}`, `{"tree": "cern", "node": "none"}`},
	"/quorate.admin.v1.CordonService/UncordonNode": {`{"tree": "cern", "node": "physics"}`, `{"tree": "none"}`},
	"/quorate.v1.TreeService/MoveNode": {
		`{"tree": "cern", "node": "physics", "newNode": "it"}`, `{"tree": "cern", "node": "none", "newNode": "it/none"}`,
	},
	"/quorate.admin.v1.ConfigurationService/RollBack": {`{"revision": "1"}`, `{"revision": "99"}`},
	"/quorate.v1.TreeService/ScheduleLimits": {
		`{"id": "s", "place": {"tree": "cern", "node": "physics"},
			"adjustments": {"cores": {"set": "10"}}, "endsAt": "2100-01-01T00:00:00Z"}`,
	},
	"/quorate.v1.TreeService/SetLimits": {
		`{"tree": "cern", "node": "physics", "limits": {"cores": {"amount": "10"}}}`,
		`{"tree": "cern", "node": "none", "limits": {"cores": {"amount": "10"}}}`,
	},
}

// TestStrangersWriteNothing: in a guarded cluster, no call without a credential writes to the log.
func TestStrangersWriteNothing(t *testing.T) {
	d := accessNode(t, access.Guarded)
	held := quota.Allocate{ID: "held", Claims: []quota.Claim{{
		Tree: "cern", Node: "physics", Amounts: quota.Vector{{Resource: "cores", Amount: 1}},
	}}}
	if outcomes, _ := d.node.apply(held); outcomes[0].Refused != nil {
		t.Fatal(outcomes[0].Refused)
	}
	for path, known := range d.procedures {
		if !known.ChangesState || known.Kind != procedures.ServesClients {
			continue
		}
		bodies := append([]string{"{}"}, strangersBodies[path]...)
		scope := known.Rule.Scope
		isRefusedByRule := scope == procedures.ScopeCluster ||
			scope == procedures.ScopeAuthenticated
		if len(bodies) == 1 && !isRefusedByRule {
			t.Errorf("add requests of %s to strangersBodies", path)
		}
		for _, body := range bodies {
			before := d.node.index
			answer := d.callAsStranger(t, path, known, body)
			if d.node.index != before {
				t.Errorf("%s with %s was written to the log and answered %s", path, body, answer.body)
			}
			if body != "{}" && strings.Contains(answer.body, "buf.validate") {
				t.Errorf("%s is not asked for its rights, because %s is malformed: %s", path, body, answer.body)
			}
		}
	}
}

// callAsStranger calls a procedure without a credential.
func (d *testServer) callAsStranger(t *testing.T, path string, known procedures.Info, body string) answer {
	t.Helper()
	if !known.Streams {
		return send(t, "POST", d.url+path, body)
	}
	framed := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body)))
	return send(t, "POST", d.url+path, string(framed)+body, "Content-Type", "application/connect+json")
}
