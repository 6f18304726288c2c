package rpc

import (
	"math"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func TestBadInput(t *testing.T) {
	d := oneNode(t)
	allocate := func(change func(*quoratev1.AllocateRequest)) func() error {
		return func() error {
			r := request("x", "cern:physics", 1)
			change(r)
			_, err := d.allocations().Allocate(t.Context(), r)
			return err
		}
	}
	apply := func(change func(*quoratev1.Tree)) func() error {
		return func() error {
			tree := cern()
			change(tree)
			_, err := d.trees().ApplyTrees(t.Context(), &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}})
			return err
		}
	}
	if _, err := d.allocations().Allocate(t.Context(), request("held", "cern:physics", 5)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		call  func() error
		code  connect.Code
		field string
		says  string
	}{
		"unknown tree": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Claims[0].Tree = "cren" }),
			connect.CodeNotFound, "claims[0].tree", `no tree "cren"`,
		},
		"unknown node": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Claims[0].Node = "physics/hgigs" }),
			connect.CodeNotFound, "claims[0].node", `"physics/hgigs"`,
		},
		"unknown resource": {allocate(func(r *quoratev1.AllocateRequest) {
			r.Claims[0].Amounts = map[string]int64{"coers": 1}
		}), connect.CodeNotFound, "claims[0].amounts[coers]", `"coers"`},
		"negative amount": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Claims[0].Amounts["cores"] = -1 }),
			connect.CodeInvalidArgument, `claims[0].amounts["cores"]`, `claims[0].amounts["cores"]`,
		},
		"huge amount": {allocate(func(r *quoratev1.AllocateRequest) {
			r.Claims[0].Amounts["cores"] = math.MaxInt64
		}), connect.CodeInvalidArgument, "claims[0].amounts[cores]", "more than any request may name"},
		"no id": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Id = "" }),
			connect.CodeInvalidArgument, "id", "id",
		},
		"id with a space": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Id = "a b" }),
			connect.CodeInvalidArgument, "id", "id",
		},
		"no claims": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Claims = nil }),
			connect.CodeInvalidArgument, "claims", "claims",
		},
		"unknown mode": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Mode = 99 }), connect.CodeInvalidArgument,
			"mode", "mode",
		},
		"claimed twice": {allocate(func(r *quoratev1.AllocateRequest) {
			r.Claims = append(r.Claims, r.GetClaims()[0])
		}), connect.CodeInvalidArgument, "claims[1].node", "twice"},
		"id taken": {
			allocate(func(r *quoratev1.AllocateRequest) { r.Id = "held" }), connect.CodeAlreadyExists,
			"id", "other content",
		},
		"bad tree name": {
			apply(func(t *quoratev1.Tree) { t.Name = "a b" }), connect.CodeInvalidArgument,
			"trees[0].name", "trees[0].name",
		},
		"no resources": {
			apply(func(t *quoratev1.Tree) { t.Resources = nil }), connect.CodeInvalidArgument,
			"trees[0].resources", "trees[0].resources",
		},
		"duplicate node": {
			apply(func(t *quoratev1.Tree) { t.Nodes = append(t.Nodes, t.GetNodes()[0]) }),
			connect.CodeInvalidArgument, "trees[0].nodes[3].path", "twice",
		},
		"orphan": {
			apply(func(t *quoratev1.Tree) { t.Nodes[0].Path = "chemistry/higgs" }),
			connect.CodeInvalidArgument, "trees[0].nodes[0].path", "chemistry",
		},
		"too deep": {
			apply(func(t *quoratev1.Tree) { t.Nodes[0].Path = strings.Repeat("a/", 16) + "a" }),
			connect.CodeInvalidArgument, "trees[0].nodes[0].path", "17 levels",
		},
		"malformed path": {
			apply(func(t *quoratev1.Tree) { t.Nodes[0].Path = "physics//higgs" }),
			connect.CodeInvalidArgument, "trees[0].nodes[0].path", "physics//higgs",
		},
		"unknown policy": {
			apply(func(t *quoratev1.Tree) { t.Nodes[0].Policy = "strcit" }),
			connect.CodeInvalidArgument, "trees[0].nodes[0].policy", "strcit",
		},
		"negative limit": {
			apply(func(t *quoratev1.Tree) { t.Limits = cores(-1) }), connect.CodeInvalidArgument,
			`trees[0].limits["cores"].amount`, "limits",
		},
		"limit of nothing": {
			apply(func(t *quoratev1.Tree) { t.Limits["cores"] = &quoratev1.Limit{} }),
			connect.CodeInvalidArgument, `trees[0].limits["cores"].value`, "limits",
		},
		"policy breach": {
			apply(func(t *quoratev1.Tree) { t.Nodes[2].Limits = cores(81) }),
			connect.CodeFailedPrecondition, "", "100",
		},
		"node in use": {
			apply(func(t *quoratev1.Tree) { t.Nodes = t.GetNodes()[2:] }),
			connect.CodeFailedPrecondition, "", "physics",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.call()
			if connect.CodeOf(err) != c.code || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %s saying %q", err, c.code, c.says)
			}
			if p := problemOf(t, err); p.GetField() != c.field || !p.GetNotApplied() {
				t.Errorf("got %v, want field %q", p, c.field)
			}
		})
	}
}

func TestANodeNeedsItsTree(t *testing.T) {
	d := oneNode(t)
	for path, more := range map[string]string{
		"admin.v1.ConfigurationService/GetConfiguration": "",
		"admin.v1.ConfigurationService/ListRevisions":    "",
		"v1.TreeService/ListScheduledLimits":             "",
		"v1beta1.LimitRequestService/ListRequests":       "",
		"admin.v1.AuditService/ListRecords":              "",
		"admin.v1.AccessService/WhoCan":                  `"verb":"limits.set",`,
	} {
		got := send(t, "POST", d.url+"/quorate."+path, `{`+more+`"node":"physics"}`)
		if got.status != http.StatusBadRequest || !strings.Contains(got.body, "node: it needs tree") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}
