package quota_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/quota"
)

// TestEachCommandHasOneRow: the sources name the number of each command, and the row at that number is about it.
func TestEachCommandHasOneRow(t *testing.T) {
	names, numbers := map[int32]string{}, map[string]int32{}
	for _, facts := range quota.Commands() {
		if names[facts.Number] != "" {
			t.Errorf("two rows have the number %d", facts.Number)
		}
		if numbers[facts.Name] != 0 {
			t.Errorf("%s has two rows", facts.Name)
		}
		names[facts.Number], numbers[facts.Name] = facts.Name, facts.Number
	}
	methods := commandMethods(t)
	for name, number := range methods {
		if names[number] != name {
			t.Errorf("%s has the number %d, whose row is about %q", name, number, names[number])
		}
	}
	if len(methods) != len(names) {
		t.Errorf("%d types are commands, and the table has %d rows", len(methods), len(names))
	}
}

// commandMethods returns the result of each method command in the sources of package quota, by its type.
func commandMethods(t *testing.T) map[string]int32 {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	methods := map[string]int32{}
	for _, entry := range files {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			method, isFunc := declaration.(*ast.FuncDecl)
			if !isFunc || method.Recv == nil || method.Name.Name != "command" {
				continue
			}
			result, _ := method.Body.List[0].(*ast.ReturnStmt)
			number, err := strconv.Atoi(result.Results[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			methods[method.Recv.List[0].Type.(*ast.Ident).Name] = int32(number)
		}
	}
	return methods
}

// TestFactsAgree: what only the cluster proposes needs no right of a client, is never tried and leaves no record of its
// own, and a command that may hold quota is not a change of the configuration.
func TestFactsAgree(t *testing.T) {
	for _, facts := range quota.Commands() {
		if facts.SystemTask != "" &&
			(facts.Verb != 0 || facts.NeedsPlan || facts.DryRun != quota.NoDryRun || facts.Record != quota.NoRecord) {
			t.Errorf("%s is for the cluster itself: %+v", facts.Name, facts)
		}
		if facts.HoldsQuota && facts.Record != quota.NoRecord {
			t.Errorf("%s both holds quota and changes the configuration or access: %+v", facts.Name, facts)
		}
		if facts.NeedsPlan && facts.DryRun != quota.TriesEffects {
			t.Errorf("%s needs a plan, and cannot be planned: %+v", facts.Name, facts)
		}
	}
}

// TestWhatFreesDoesNotGrow: a nearly full disk takes the commands that free something and none
// that adds; and every change whose effects a
// dry run tells of has an audit record.
func TestWhatFreesDoesNotGrow(t *testing.T) {
	for _, c := range []quota.Command{
		quota.Release{},
		quota.Cancel{},
		quota.Expire{},
		quota.DeleteTree{},
		quota.RejectRequest{},
		quota.WithdrawRequest{},
		quota.CancelScheduledLimit{},
		quota.UncordonNode{},
	} {
		if facts := quota.FactsOf(c); facts.GrowsLedger {
			t.Errorf("a nearly full disk would refuse %s", facts.Name)
		}
	}
	for _, c := range []quota.Command{
		quota.Allocate{},
		quota.ApplyTrees{},
		quota.SetLimits{},
		quota.RequestLimits{},
		quota.Split{},
		quota.ScheduleLimits{},
		quota.SetWebhook{},
	} {
		if facts := quota.FactsOf(c); !facts.GrowsLedger {
			t.Errorf("a nearly full disk would take %s", facts.Name)
		}
	}
	for _, facts := range quota.Commands() {
		if facts.DryRun == quota.TriesEffects && facts.Record == quota.NoRecord {
			t.Errorf("%s changes the configuration without an audit record", facts.Name)
		}
	}
}
