package browsertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// picturedPages are the views that are compared with pictures, by the cluster that they show.
var picturedPages = map[string][]tourPage{
	"laboratory": append(tourPages[:len(tourPages):len(tourPages)], []tourPage{
		{name: "trees", address: "/ui/tree", until: `document.querySelectorAll(".overview-usage").length > 10`},
		{name: "found", address: "/ui/tree?tree=cern&full=1", until: `document.querySelector("[role=rowheader]")`},
		{name: "node-cordoned", address: "/ui/node?tree=cern&node=cms/trigger", until: `document.querySelector("main table")`},
		{
			name: "allocation", address: "/ui/allocation?id=higgs-fit",
			until: `document.querySelectorAll("main h2").length > 1`,
		},
		{
			name: "allocation-waiting", address: "/ui/allocation?id=mc23-wjets",
			until: `document.querySelector(".who")`,
		},
		{name: "revisions", address: "/ui/history", until: `document.querySelector("main table, main ol, main li")`},
		{name: "audit", address: "/ui/audit", until: `document.querySelector("main table")`},
	}...),
	"tenant": {
		{name: "my-work", address: "/ui/mine", until: `document.querySelector("table.queue")`},
		{name: "limit-requests", address: "/ui/requests", until: `document.querySelector("main table")`},
	},
	"stranger": {{name: "sign-in", address: "/ui/mine", until: `document.querySelector("main .sign-in")`}},
}

// recordAll records what the pictured pages show.
func recordAll(t *testing.T) {
	t.Helper()
	servers := startServers(t, 3, "--ui", "write")
	script, err := os.ReadFile("testdata/tour.txt")
	if err != nil {
		t.Fatal(err)
	}
	play(t, servers[0], string(script))
	recordPages(t, "laboratory", servers[0], "")

	s := startGuarded(t)
	s.Run(t, "apply", "-f", root+"/examples/guarded.yaml")
	hans := s.Client
	hans.Token = tokenFor(t, s, "hans")
	ask := "allocate --ttl 2h --at cern:atlas/physics --id "
	hans.Run(t, strings.Fields(ask+"fit-7 --amount cores=40")...)
	_, _ = hans.Try(t, strings.Fields(ask+"fit-8 --amount cores=3 --wait "+never+" --keep 1h --async")...)
	hans.Run(t, strings.Fields("request create cern:atlas/physics cores=60 --reason campaign")...)
	recordPages(t, "tenant", s, hans.Token)
	recordPages(t, "stranger", s, "")
}

func recordPages(t *testing.T, cluster string, s *server, token string) {
	t.Helper()
	r := newRecorder()
	address := r.listen(t, s)
	b := emptyTab(t)
	b.freeze(r.at, false)
	if token != "" {
		b.open(address + "/ui/")
		b.askForToken()
		b.signIn(token)
		b.awaitTrue("the user is signed in", `sessionStorage.getItem("quorate-token")`)
	}
	for _, p := range picturedPages[cluster] {
		b.show(looks[0])
		b.reach(address, p)
		for _, l := range pictured { // some parts are read only where there is room for them
			b.show(l)
			b.still()
		}
	}
	if err := r.recording(t).save(filepath.Join(recordingsFolder, cluster+".json.gz")); err != nil {
		t.Fatal(err)
	}
}
