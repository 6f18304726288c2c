package browsertest

// tourPage is a view that testdata/tour.txt fills, as a picture shows it.
type tourPage struct {
	name, address string
	// act is done once ready is true; both are empty for nothing.
	ready, act string
	// until is true once the picture may be taken; empty for at once.
	until string
}

var tourPages = []tourPage{
	{name: "overview", address: "/ui/", until: `document.querySelectorAll(".overview-usage").length > 10`},
	{
		name: "tree", address: "/ui/tree?tree=cern&open=atlas,cms",
		until: `document.querySelectorAll("[role=rowheader]").length > 9`,
	},
	{
		name: "map", address: "/ui/tree?tree=cern&tab=map&resource=cores",
		until: `document.querySelectorAll(".map-cell").length > 9`,
	},
	{
		name: "node", address: "/ui/node?tree=cern&node=atlas&tab=activity",
		until: `document.querySelectorAll(".chart").length > 3`,
	},
	{name: "queue", address: "/ui/queue?tree=cern&open=mc23-wjets", until: `document.querySelector(".who")`},
	{
		name: "what-if", address: "/ui/what-if?at=cern%3Aatlas%2Fhiggs&amount=gpus%3D12&user=maria",
		until: `document.querySelector(".verdict") && document.querySelector(".command")`,
	},
	{
		name: "items", address: "/ui/items?tree=ci&resource=gcp-project",
		ready: `document.querySelector(".cell[role=option]")`,
		act:   `document.querySelector(".cell[role=option]").click()`, until: `document.querySelector(".chart")`,
	},
	{name: "leases", address: "/ui/leases", until: `document.querySelectorAll(".lease-bar").length > 5`},
	{
		name: "plan", address: "/ui/plan?tree=cern",
		ready: `document.querySelector("main textarea")?.value.includes("cores: 320")`, act: `(() => {
			const area = document.querySelector("main textarea");
			area.value = area.value.replace("cores: 320", "cores: 100").replace("cores: 1500", "cores: 1700")
				.replace("cores: 900", "cores: 1100");
			area.dispatchEvent(new Event("input", {bubbles: true}));
			setTimeout(() => [...document.querySelectorAll("main button")].find((e) => e.innerText === "Plan").click(), 300);
		})()`, until: `document.querySelector(".plan")`,
	},
	{name: "history", address: "/ui/history?from=1&to=4", until: `document.querySelector(".diff-added")`},
	{name: "cluster", address: "/ui/cluster", until: `document.querySelectorAll("main h2").length > 2`},
}
