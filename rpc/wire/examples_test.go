package wire

import quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"

// exampleTree is a small strict tree: 100 cores, of which physics has 20 and operations 80.
func exampleTree() *quoratev1.Tree {
	return &quoratev1.Tree{
		Name: "cern", Policy: "strict", Resources: []*quoratev1.Resource{
			{Name: "cores", Unit: quoratev1.Unit_UNIT_COUNT},
		},
		Limits: coreLimits(100),
		Nodes: []*quoratev1.Node{
			{Path: "physics/higgs", Limits: coreLimits(10)},
			{Path: "physics", Limits: coreLimits(20)},
			{Path: "operations", Limits: coreLimits(80)},
		},
	}
}

func coreLimits(n int64) map[string]*quoratev1.Limit {
	return map[string]*quoratev1.Limit{"cores": {Value: &quoratev1.Limit_Amount{Amount: n}}}
}

func exampleClaims() []*quoratev1.Claim {
	return []*quoratev1.Claim{{Tree: "cern", Node: "physics", Amounts: map[string]int64{"cores": 3}}}
}
