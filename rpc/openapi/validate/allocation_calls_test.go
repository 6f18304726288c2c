package validate

const physics = `"claims": [{"tree": "cern", "node": "atlas/physics", "amounts": {"cores": 8}}]`

// allocationCalls hold, wait, change and release.
var allocationCalls = []call{
	{
		procedure: "v1.AllocationService/Allocate", token: "hans",
		body: `{"id": "job-1", "ttlMs": 3600000, "labels": {"run": "7"}, ` + physics + `}`,
	},
	{
		procedure: "v1.AllocationService/Allocate", token: "hans",
		body: `{"id": "job-1", "ttlMs": 3600000, "labels": {"run": "7"}, ` + physics + `}`,
	},
	{
		procedure: "v1.AllocationService/Allocate", token: "hans", status: 409,
		body: `{"id": "job-1", "ttlMs": 3600001, ` + physics + `}`,
	},
	{
		procedure: "v1.AllocationService/Allocate", token: "hans", status: 429,
		body: `{"id": "large", "nameHolders": true,
			"claims": [{"tree": "cern", "node": "atlas/physics", "amounts": {"cores": 90}}]}`,
	},
	{
		procedure: "v1.AllocationService/Allocate", token: "hans",
		body: `{"id": "waits", "mode": "MODE_WAIT",
			"claims": [{"tree": "cern", "node": "atlas/physics", "amounts": {"cores": 36}}],
			"principal": {"application": "analysis"}}`,
	},
	{procedure: "v1.AllocationService/ListWaiting", body: `{"tree": "cern", "nameBlockers": true}`},
	{procedure: "v1.AllocationService/Explain", body: `{"namespace": "account/hans", "id": "waits"}`},
	{procedure: "v1.AllocationService/Explain", body: `{"request": {"id": "q", ` + physics + `}}`, token: "hans"},
	{procedure: "v1.AllocationService/Cancel", body: `{"id": "job-1"}`, token: "hans", status: 400},
	{procedure: "v1.AllocationService/Release", body: `{"id": "waits"}`, token: "hans"},
	{
		procedure: "v1.AllocationService/Allocate", token: "hans",
		body: `{"id": "later", "mode": "MODE_RESERVE", "reserveMs": 3600000, ` + physics + `}`,
	},
	{procedure: "v1.AllocationService/Confirm", body: `{"id": "later"}`, token: "hans"},
	{
		procedure: "v1.AllocationService/Allocate", token: "hans",
		body: `{"id": "never", "mode": "MODE_RESERVE", ` + physics + `}`,
	},
	{procedure: "v1.AllocationService/Cancel", body: `{"id": "never"}`, token: "hans"},
	{procedure: "v1.AllocationService/Confirm", body: `{"id": "never"}`, token: "hans", status: 400},
	{procedure: "v1.AllocationService/Renew", body: `{"id": "job-1", "userData": {"host": "a"}}`, token: "hans"},
	{
		procedure: "v1.AllocationService/BatchRenew", token: "hans",
		body: `{"renewals": [{"id": "job-1"}, {"id": "unknown"}]}`,
	},
	{
		procedure: "v1.AllocationService/Renew", token: "hans", status: 409,
		body: `{"id": "job-1", "fence": "9999999"}`,
	},
	{
		procedure: "v1.AllocationService/Resize", token: "hans",
		body: `{"id": "job-1", "claims": [{"tree": "cern", "node": "atlas/physics", "amounts": {"cores": "6"}}]}`,
	},
	{
		procedure: "v1.AllocationService/Split", token: "hans",
		body: `{"id": "job-1", "parts": [{"id": "job-1b",
			"claims": [{"tree": "cern", "node": "atlas/physics", "newNode": "atlas/physics", "amounts": {"cores": 2}}]}]}`,
	},
	{
		procedure: "v1.AllocationService/Transfer", token: "hans",
		body: `{"id": "job-1b", "moves": [{"tree": "cern", "node": "atlas/physics", "newNode": "atlas/physics"}], "dryRun": true}`,
	},
	{
		procedure: "v1.AllocationService/BatchAllocate", token: "hans",
		body: `{"requests": [{"id": "b-1", ` + physics + `}, {"id": "b-2", "claims": [{"tree": "no such tree"}]},
			{"id": "b-3", "claims": [{"tree": "cern", "node": "atlas/physics", "amounts": {"cores": 99}}]}]}`,
	},
	{procedure: "v1.AllocationService/BatchRelease", body: `{"requests": [{"id": "b-1"}, {"id": "unknown"}]}`, token: "hans"},
	{procedure: "v1.AllocationService/GetAllocation", body: `{"id": "job-1"}`, token: "hans"},
	{procedure: "v1.AllocationService/GetAllocation", body: `{"id": "unknown"}`, token: "hans", status: 404},
	{
		procedure: "v1.AllocationService/ListAllocations",
		body:      `{"tree": "cern", "pageSize": 2, "state": "ALLOCATION_STATE_HELD"}`,
	},
	{procedure: "v1.EventService/ListEvents", body: `{"newestFirst": true, "pageSize": 100}`},
	{procedure: "v1.TreeService/GetUsage", body: `{"tree": "cern", "subtree": true, "countWaiting": true}`},
	{procedure: "v1.TreeService/ListPrincipals", body: `{"tree": "cern", "kind": "HOLDER_KIND_USER"}`},
	{procedure: "v1beta1.ActivityService/GetActivity", body: `{"tree": "cern", "nodes": ["atlas", "cms"]}`},
}

// itemCalls hold and clean items.
var itemCalls = []call{
	{
		procedure: "v1.AllocationService/Allocate", token: "hans",
		body: `{"id": "machine", "claims": [{"tree": "cern", "node": "atlas/physics",
			"items": [{"resource": "node", "count": 1, "state": "free"}]}]}`,
	},
	{procedure: "v1.ItemService/ListItems", body: `{"tree": "cern", "userData": true}`},
	{procedure: "v1.ItemService/CountItems", body: `{"tree": "cern"}`},
	{
		procedure: "v1.ItemService/UpdateItems",
		body:      `{"updates": [{"item": {"tree": "cern", "resource": "node", "name": "b"}, "state": "broken"}]}`,
	},
	{
		procedure: "v1.ItemService/ResetItems",
		body:      `{"tree": "cern", "resource": "node", "state": "broken", "newState": "free"}`,
	},
	{procedure: "v1.AllocationService/Release", body: `{"id": "machine"}`, token: "hans"},
	{procedure: "v1.ItemService/ListItems", body: `{"tree": "unknown"}`, status: 404},
}

// limitCalls ask for limits and decide.
var limitCalls = []call{
	{
		procedure: "v1beta1.LimitRequestService/RequestLimits", token: "hans", keep: []string{"first=request.id"},
		body: `{"tree": "cern", "node": "atlas/physics",
			"limits": {"cores": {"amount": 45}}, "reason": "more jobs"}`,
	},
	{procedure: "v1beta1.LimitRequestService/ListRequests", body: `{}`, keep: []string{"digest=requests.0.digest"}},
	{procedure: "v1beta1.LimitRequestService/ApproveRequest", body: `{"id": "{{first}}", "digest": "stale"}`, status: 409},
	{procedure: "v1beta1.LimitRequestService/ApproveRequest", body: `{"id": "{{first}}", "digest": "{{digest}}"}`},
	{
		procedure: "v1beta1.LimitRequestService/RequestLimits", token: "hans", keep: []string{"second=request.id"},
		body: `{"tree": "cern", "node": "atlas/physics",
			"limits": {"cores": {"amount": "46"}}, "reason": "still more"}`,
	},
	{procedure: "v1beta1.LimitRequestService/RejectRequest", body: `{"id": "{{second}}", "reason": "no room"}`},
	{
		procedure: "v1beta1.LimitRequestService/RequestLimits", token: "hans", keep: []string{"third=request.id"},
		body: `{"tree": "cern", "node": "atlas/physics",
			"limits": {"cores": {"amount": 47}}, "reason": "please"}`,
	},
	{procedure: "v1beta1.LimitRequestService/WithdrawRequest", body: `{"id": {{third}}}`, token: "hans"},
}
