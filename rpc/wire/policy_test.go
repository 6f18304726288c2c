package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// TestEveryFieldOfAPolicyIsConverted sets all fields; one that is forgotten would come back empty.
func TestEveryFieldOfAPolicyIsConverted(t *testing.T) {
	filled := &quoratev1.Policy{}
	fields := filled.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		value := protoreflect.ValueOfString("of " + string(fields.Get(i).Name()))
		if fields.Get(i).Enum() != nil {
			value = protoreflect.ValueOfEnum(2)
		}
		filled.ProtoReflect().Set(fields.Get(i), value)
	}
	command, _, err := ToApplyTrees(&quoratev1.ApplyTreesRequest{Policies: []*quoratev1.Policy{filled}})
	if err != nil {
		t.Fatal(err)
	}
	again := FromPolicySpecs(command.Policies)
	if diff := cmp.Diff([]*quoratev1.Policy{filled}, again, protocmp.Transform()); diff != "" {
		t.Errorf("a policy comes back different (-want +got):\n%s", diff)
	}
}

// TestPoliciesInAnyOrder: callers send policies and names in any order, and refusals name their positions.
func TestPoliciesInAnyOrder(t *testing.T) {
	command, moved, err := ToApplyTrees(&quoratev1.ApplyTreesRequest{
		Policies:       []*quoratev1.Policy{{Name: "c"}, {Name: "a"}, {Name: "b"}},
		RemovePolicies: []string{"z", "x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := quota.ApplyTrees{
		Trees: []quota.TreeSpec{}, Policies: []quota.PolicySpec{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		RemovePolicies: []string{"x", "z"},
	}
	if diff := cmp.Diff(want, command); diff != "" {
		t.Errorf("the command (-want +got):\n%s", diff)
	}
	for sorted, written := range map[string]string{
		"policies[0].sum": "policies[1].sum", "policies[1].base": "policies[2].base", "policies[2]": "policies[0]",
		"remove_policies[0]": "remove_policies[1]", "policies": "policies", "trees[0].policy": "trees[0].policy",
	} {
		if got := moved.RestoreField(&quota.Error{Field: sorted}); got.Field != written {
			t.Errorf("%s is named as %s, want %s", sorted, got.Field, written)
		}
	}
}
