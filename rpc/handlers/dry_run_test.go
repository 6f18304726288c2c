package handlers

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/quorate/quorate/client/gen/quorate/v1" // registers the messages
	"github.com/quorate/quorate/quota"
)

// TestDryRunsAreThoseOfTheTable: the request for a command has a field dry_run exactly if the table of commands has a
// dry run for it. Explain tells what Allocate would do.
func TestDryRunsAreThoseOfTheTable(t *testing.T) {
	for _, facts := range quota.Commands() {
		hasDryRun := false
		name := protoreflect.FullName("quorate.v1." + facts.Name + "Request")
		if found, err := protoregistry.GlobalFiles.FindDescriptorByName(name); err == nil {
			request, _ := found.(protoreflect.MessageDescriptor)
			hasDryRun = request.Fields().ByName("dry_run") != nil
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
