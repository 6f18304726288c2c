package main

// The places of the CERN example.
const (
	atlas      = "atlas"
	physics    = "atlas/physics"
	higgs      = "atlas/physics/higgs"
	simulation = "atlas/physics/simulation"
	operations = "atlas/operations"
	workflow   = "atlas/operations/workflow"
	web        = "atlas/operations/web"
)

// demoStep is one line of the script: one or more moves, each with what must come of it.
type demoStep struct {
	title string
	moves []demoMove
}

// demoMove is one call.
type demoMove struct {
	do moveKind
	// node is where; id names the allocation; amount is the limit or the claim.
	node   string
	id     string
	amount int64
	// refusedAt are exactly the levels that a refusal must name, from the leaf up; empty if the move must succeed.
	refusedAt []string
	// over is by how much the node must be reported above its limit afterwards.
	over int64
	// usage is what must be used afterwards, by node.
	usage map[string]int64
}

// moveKind is what a move does.
type moveKind int

const (
	setLimit moveKind = iota
	claim
	release
)

// demoSeed is who holds what before the script begins.
var demoSeed = []demoMove{
	{do: claim, id: "simulation-1", node: simulation, amount: 5},
	{do: claim, id: "simulation-2", node: simulation, amount: 5},
	{do: claim, id: "workflow-1", node: workflow, amount: 30},
	{do: claim, id: "web-1", node: web, amount: 5, usage: map[string]int64{simulation: 10, physics: 10, operations: 35, atlas: 45}},
}

// killAfter is the step after which the leader is killed.
const killAfter = 9

// demoScript is the story of the text: who may give what to whom, and what stands in the way.
var demoScript = []demoStep{
	{"ATLAS has given away all it has, so Physics cannot get more", []demoMove{
		{do: setLimit, node: physics, amount: 21, refusedAt: []string{atlas}},
	}},
	{"... and Operations cannot either", []demoMove{
		{do: setLimit, node: operations, amount: 81, refusedAt: []string{atlas}},
	}},
	{"Physics has 10 left for Higgs, not 11", []demoMove{
		{do: setLimit, node: higgs, amount: 11, refusedAt: []string{physics}},
	}},
	{"10 it is", []demoMove{
		{do: setLimit, node: higgs, amount: 10},
	}},
	{"Operations has nothing left for Workflow or Web", []demoMove{
		{do: setLimit, node: workflow, amount: 51, refusedAt: []string{operations}},
		{do: setLimit, node: web, amount: 31, refusedAt: []string{operations}},
	}},
	{"Operations cannot shrink below what it has given away", []demoMove{
		{do: setLimit, node: operations, amount: 50, refusedAt: []string{operations}},
	}},
	{"Simulation's limit may go below its use: nobody is evicted", []demoMove{
		{do: setLimit, node: simulation, amount: 5, over: 5},
	}},
	{"... but it cannot grow while it is over", []demoMove{
		{do: claim, node: simulation, id: "simulation-3", amount: 1, refusedAt: []string{simulation}},
	}},
	{"What Simulation gave up, Higgs can have", []demoMove{
		{do: setLimit, node: higgs, amount: 15},
	}},
	{"Higgs takes 10, which fills Physics", []demoMove{
		{do: claim, node: higgs, id: "higgs-1", amount: 10, usage: map[string]int64{higgs: 10, physics: 20, atlas: 55}},
	}},
	{"Higgs has 5 left of its own, and still cannot grow: Physics is full", []demoMove{
		{do: claim, node: higgs, id: "higgs-2", amount: 1, refusedAt: []string{physics}},
	}},
	{"Web has 25 left, not 26", []demoMove{
		{do: claim, node: web, id: "web-2", amount: 26, refusedAt: []string{web}},
	}},
	{"25 it is", []demoMove{
		{do: claim, node: web, id: "web-3", amount: 25, usage: map[string]int64{web: 30, operations: 60, atlas: 80}},
	}},
	{"Now Web is full", []demoMove{
		{do: claim, node: web, id: "web-4", amount: 1, refusedAt: []string{web}},
	}},
	{"A claim that is too large for every level names every level", []demoMove{
		{do: claim, node: workflow, id: "workflow-2", amount: 21, refusedAt: []string{workflow, operations, atlas}},
	}},
	{"A group in the middle may hold something itself", []demoMove{
		{do: claim, node: operations, id: "operations-1", amount: 21, refusedAt: []string{operations, atlas}},
		{do: claim, node: operations, id: "operations-2", amount: 20, usage: map[string]int64{operations: 80, atlas: 100}},
		{do: release, id: "operations-2", usage: map[string]int64{operations: 60, atlas: 80}},
	}},
	{"Simulation gives 5 back, and Higgs can have exactly these", []demoMove{
		{do: release, id: "simulation-2", usage: map[string]int64{simulation: 5, physics: 15}},
		{do: claim, node: higgs, id: "higgs-3", amount: 6, refusedAt: []string{higgs, physics}},
		{do: claim, node: higgs, id: "higgs-4", amount: 5, usage: map[string]int64{higgs: 15, physics: 20}},
		{do: release, id: "higgs-4", usage: map[string]int64{higgs: 10, physics: 15}},
	}},
	{"Simulation is no longer over its limit, but at it", []demoMove{
		{do: claim, node: simulation, id: "simulation-4", amount: 1, refusedAt: []string{simulation}},
	}},
}
