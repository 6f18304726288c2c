package handlers

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
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
func (s TreeService) ParseManifest(
	ctx context.Context, r *quoratev1.ParseManifestRequest,
) (*quoratev1.ParseManifestResponse, error) {
	if marks := countMarks(r.GetText()); marks > maxManifestMarks {
		return nil, wire.ToError(wire.InvalidField("text", "it has %d commas, colons, opening brackets and ends of lines; "+
			"%d are allowed: write the trees in several manifests", marks, maxManifestMarks))
	}
	answer := &quoratev1.ParseManifestResponse{}
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

func parseManifest(text string) *quoratev1.ParseManifestResponse {
	m, warnings, err := manifest.ParseWithWarnings("manifest", []byte(text))
	answer := &quoratev1.ParseManifestResponse{}
	if err != nil {
		for _, problem := range manifest.Problems(err) {
			answer.Problems = append(answer.Problems, manifestProblem(problem.Line, problem.Column, problem.Message))
		}
		return answer
	}
	answer.Request = m.ApplyRequest()
	if size := proto.Size(answer.GetRequest()); size > codec.MaxBody {
		answer.Request, answer.Problems = nil, []*quoratev1.ManifestProblem{manifestProblem(0, 0,
			"the request that applies it would be larger than 4 MiB: write the trees in several manifests")}
		return answer
	}
	for _, warning := range warnings {
		answer.Warnings = append(answer.Warnings, manifestProblem(warning.Line, warning.Column, warning.Message))
	}
	return answer
}

func manifestProblem(line, column int, message string) *quoratev1.ManifestProblem {
	return &quoratev1.ManifestProblem{Line: int32(line), Column: int32(column), Message: message}
}

// writeManifest has a configuration, or that of a subtree, as text.
func writeManifest(
	c *quoratev1.GetConfigurationResponse, tree, node string,
) (*quoratev1.GetConfigurationResponse, error) {
	m := &manifest.Manifest{Access: c.GetAccess(), Policies: c.GetPolicies(), Trees: c.GetTrees()}
	if tree != "" {
		m.At = &manifest.Subtree{Tree: tree, Node: node}
	}
	text, err := manifest.Format(m)
	if err != nil {
		return nil, wire.ToError(wire.InvalidField("manifest", "%v; ask for single trees with the field tree, "+
			"or leave out manifest", err))
	}
	return &quoratev1.GetConfigurationResponse{Manifest: string(text), Revision: c.GetRevision(), Read: c.GetRead()}, nil
}
