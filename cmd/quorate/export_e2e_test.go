package main_test

import (
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExportForOtherSystems: an export has all limits and all that is held, whatever the policy counts where, and its
// SQL says the same as its CSV.
func TestExportForOtherSystems(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	folder := filepath.Join(t.TempDir(), "export")
	playSteps(t, f, []step{
		{
			"apply -f ../../examples/ci.yaml -f ../../examples/zuul.yaml -f ../../examples/cohort.yaml " +
				"-f ../../examples/borrowing.yaml", 0, "applied",
		},
		{
			"allocate --id o'hara --user kim --label who=it's --ttl 1h --at ci:tenants/web --item aws-account " +
				"--amount cores=2", 0, "",
		},
		{"allocate --id below --at tenants:unheard-of --amount cores=3", 0, "counted at"},
		{"allocate --id lent --at gpus:speech --amount gpu=8", 0, ""},
		{
			"allocate --id borrows --at ContextTree:Org-A/Context-2 --amount cpu=3 --at ServiceTree:Srvc-Y --amount cpu=1 " +
				"--amount disk=1", 0, "counted at ContextTree:Org-A",
		},
		{"allocate --id promised --reserve 1h --at ci:tenants/data --amount cores=1", 0, "reserved"},
		{"allocate --id waits --wait 1h --async --at gpus:speech --amount gpu=1", 9, ""},
		{"cluster export " + folder, 0, "held.csv with 8 rows"},
		{"cluster export " + folder, 1, "file exists"},
	})
	held := readExport(t, filepath.Join(folder, "held.csv"))
	limits := readExport(t, filepath.Join(folder, "limits.csv"))
	want := []string{
		"o'hara ci tenants/web aws-account account-1 1 held kim", "o'hara ci tenants/web cores  2 held kim",
		"below tenants  cores  3 held ", "lent gpus speech gpu  8 held ",
		"borrows ContextTree Org-A cpu  3 held ", "borrows ServiceTree Srvc-Y cpu  1 held ",
		"borrows ServiceTree Srvc-Y disk  1 held ", "promised ci tenants/data cores  1 reserved ",
	}
	var got []string
	for _, row := range held {
		got = append(got, strings.Join([]string{
			row["id"], row["tree"], row["node"], row["resource"], row["item"], row["amount"], row["state"], row["user_name"],
		}, " "))
		if isTimed := row["id"] == "o'hara" || row["id"] == "promised"; isTimed != (row["ends_at"] != "") {
			t.Errorf("%s ends at %q", row["id"], row["ends_at"])
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("held.csv has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if held[0]["labels"] != `{"who":"it's"}` {
		t.Errorf("labels are %s", held[0]["labels"])
	}
	text, err := os.ReadFile(filepath.Join(folder, "quorate.sql"))
	if err != nil {
		t.Fatal(err)
	}
	if rows := strings.Count(string(text), "\n    ('"); rows != len(held)+len(limits) {
		t.Errorf("the SQL has %d rows, the CSV %d and %d", rows, len(held), len(limits))
	}
	sqlite, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Log("sqlite3 is not installed: the SQL is not loaded")
		return
	}
	sums := `SELECT count(*) FROM quorate_limits l WHERE held_here <> (SELECT coalesce(sum(amount), 0)
		FROM quorate_held h WHERE (h.tree, h.node, h.resource) = (l.tree, l.node, l.resource));
		SELECT sum(amount) FROM quorate_held; SELECT labels FROM quorate_held WHERE item = 'account-1';`
	load := exec.CommandContext(t.Context(), sqlite, ":memory:")
	load.Stdin = strings.NewReader(string(text) + sums)
	said, err := load.CombinedOutput()
	if err != nil || string(said) != "0\n20\n{\"who\":\"it's\"}\n" {
		t.Errorf("sqlite says %q: %v", said, err)
	}
}

// readExport returns the rows of a CSV file by the names of their columns.
func readExport(t *testing.T, file string) []map[string]string {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // reading only
	lines, err := csv.NewReader(in).ReadAll()
	if err != nil || len(lines) < 2 {
		t.Fatalf("%s has %d lines: %v", file, len(lines), err)
	}
	rows := make([]map[string]string, len(lines)-1)
	for i, line := range lines[1:] {
		rows[i] = map[string]string{}
		for j, cell := range line {
			rows[i][lines[0][j]] = cell
		}
	}
	return rows
}
