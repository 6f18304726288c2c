package handlers

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/internal/manifest"
	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/wire"
)

// maxManifestMarks bounds the values in a manifest before it is parsed. A list of two million names fits into a request
// and would take a gigabyte, and ten seconds; this many take a hundred megabytes and two seconds at most, and a tree
// with 20,000 nodes has fewer.
const maxManifestMarks = 300_000

// ParseManifest returns what ApplyTrees takes for a manifest. It takes its turn like a large read, because it computes
// as long.
func (s ConfigurationService) ParseManifest(
	ctx context.Context, r *adminv1.ParseManifestRequest,
) (*adminv1.ParseManifestResponse, error) {
	if marks := countMarks(r.GetText()); marks > maxManifestMarks {
		return nil, wire.ToError(wire.InvalidField("text", "it has %d commas, colons, opening brackets and ends of lines; "+
			"%d are allowed: write the trees in several manifests", marks, maxManifestMarks))
	}
	answer := &adminv1.ParseManifestResponse{}
	err := s.inTurn(ctx, func(admit func() error) error {
		if err := admit(); err != nil {
			return wire.ToError(err)
		}
		answer = parseManifest(r.GetText())
		return nil
	})
	return answer, err
}

// countMarks counts the characters of which each value of a manifest but the first has one in front.
func countMarks(text string) int {
	marks := 0
	for _, mark := range []string{",", ":", "[", "{", "\n", "\r"} {
		marks += strings.Count(text, mark)
	}
	return marks
}

func parseManifest(text string) *adminv1.ParseManifestResponse {
	m, warnings, err := manifest.ParseWithWarnings("manifest", []byte(text))
	answer := &adminv1.ParseManifestResponse{}
	if err != nil {
		for _, problem := range manifest.Problems(err) {
			answer.Problems = append(answer.Problems, manifestProblem(problem.Line, problem.Column, problem.Message))
		}
		return answer
	}
	answer.Request = m.ApplyRequest()
	if size := proto.Size(answer.GetRequest()); size > codec.MaxBody {
		answer.Request, answer.Problems = nil, []*adminv1.ManifestProblem{manifestProblem(0, 0,
			"the request that applies it would be larger than 4 MiB: write the trees in several manifests")}
		return answer
	}
	for _, warning := range warnings {
		answer.Warnings = append(answer.Warnings, manifestProblem(warning.Line, warning.Column, warning.Message))
	}
	return answer
}

func manifestProblem(line, column int, message string) *adminv1.ManifestProblem {
	return &adminv1.ManifestProblem{Line: int32(line), Column: int32(column), Message: message}
}

// writeManifest has a configuration, or that of a subtree, as text.
func writeManifest(
	c *adminv1.GetConfigurationResponse, tree, node string,
) (*adminv1.GetConfigurationResponse, error) {
	m := &manifest.Manifest{Access: c.GetAccess(), Policies: c.GetPolicies(), Trees: c.GetTrees()}
	if tree != "" {
		m.At = &manifest.Subtree{Tree: tree, Node: node}
	}
	text, err := manifest.Format(m)
	if err != nil {
		return nil, wire.ToError(wire.InvalidField("manifest", "%v; ask for single trees with the field tree, "+
			"or leave out manifest", err))
	}
	return &adminv1.GetConfigurationResponse{Manifest: string(text), Revision: c.GetRevision(), Read: c.GetRead()}, nil
}
