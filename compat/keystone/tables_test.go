package keystone

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
)

const limitTable = `[{"ID": "l1", "Project ID": "p1", "Domain ID": null, "Resource Name": "cores",
	"Resource Limit": 10, "Description": null, "Service ID": "nova", "Region ID": null}]`

// TestTables: the lists that the command openstack prints mean the same as those of the API.
func TestTables(t *testing.T) {
	tables := `[{"ID": "r1", "Service ID": "nova", "Resource Name": "cores", "Default Limit": 5, "Description": null,
		"Region ID": null}]` + limitTable + `[{"ID": "p1", "Name": "Atlas"}]`
	api := `{"registered_limits": [{"service_id": "nova", "resource_name": "cores", "default_limit": 5}],
		"limits": [{"service_id": "nova", "resource_name": "cores", "project_id": "p1", "resource_limit": 10}],
		"projects": [{"id": "p1", "name": "Atlas"}]}`
	want, err := Convert([]byte(api))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Convert([]byte(tables))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// TestLimitsAlone: without registered limits nothing is admitted beyond the limits that are there.
func TestLimitsAlone(t *testing.T) {
	c, err := Convert([]byte(limitTable))
	if err != nil {
		t.Fatal(err)
	}
	tree := c.Trees[0]
	if limit := tree.GetDefaults()["cores"]; limit == nil || limit.GetAmount() != 0 || limit.GetUnlimited() {
		t.Errorf("the default is %v, want 0", limit)
	}
	if amount := tree.GetNodes()[0].GetLimits()["cores"].GetAmount(); amount != 10 || len(c.Notes) == 0 {
		t.Errorf("the limit of p1 is %d, and the notes are %q", amount, c.Notes)
	}
}
