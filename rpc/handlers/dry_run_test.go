package handlers

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/procedures"
)

// TestDryRunsAreThoseOfTheTable: the request for a command has a field dry_run exactly if the table of commands has a
// dry run for it. Explain tells what Allocate would do.
func TestDryRunsAreThoseOfTheTable(t *testing.T) {
	for _, facts := range quota.Commands() {
		hasDryRun := false
		for _, file := range procedures.PublicFiles() {
			if request := file.Messages().ByName(protoreflect.Name(facts.Name + "Request")); request != nil {
				hasDryRun = request.Fields().ByName("dry_run") != nil
			}
		}
		if hasDryRun != (facts.DryRun != quota.NoDryRun) {
			t.Errorf("the request for %s has a dry run: %v, and the table says %d", facts.Name, hasDryRun, facts.DryRun)
		}
	}
}

// TestWhatHasNoDryRunIsNotTried: such a call is a mistake in the server.
func TestWhatHasNoDryRunIsNotTried(t *testing.T) {
	var s Service
	if _, _, err := s.tryCommand(t.Context(), quota.Release{ID: "i"}); err == nil {
		t.Error("a release was tried")
	}
}
