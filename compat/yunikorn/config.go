// Package yunikorn validates and converts the queue configuration of Apache YuniKorn, and serves its REST calls about
// queues, users and groups from the public API.
//
// The reference is release 1.9.0 of the scheduler core: a configuration is accepted exactly if that accepts it.
// docs/from-yunikorn.md lists where the answers differ, and why.
package yunikorn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The configuration as YAML spells it: all keys are the lower case names of the fields, and there are no others.
type (
	config struct {
		Partitions []partition
		Checksum   string
	}
	partition struct {
		Name              string
		Queues            []queue
		PlacementRules    []placementRule
		Limits            []limit
		Preemption        preemption
		NodeSortPolicy    nodeSortPolicy
		UserGroupResolver userGroupResolver
	}
	queue struct {
		Name            string
		Parent          bool
		Resources       resources
		MaxApplications uint64
		Properties      map[string]string
		AdminACL        string
		SubmitACL       string
		ChildTemplate   childTemplate
		Queues          []queue
		Limits          []limit
	}
	resources struct {
		Guaranteed map[string]string
		Max        map[string]string
	}
	childTemplate struct {
		MaxApplications uint64
		Properties      map[string]string
		Resources       resources
	}
	limit struct {
		Limit           string
		Users           []string
		Groups          []string
		MaxResources    map[string]string
		MaxApplications uint64
	}
	placementRule struct {
		Name   string
		Create bool
		Filter filter
		Parent *placementRule
		Value  string
	}
	filter struct {
		Type   string
		Users  []string
		Groups []string
	}
	preemption struct {
		Enabled                *bool
		QuotaPreemptionEnabled *bool
	}
	nodeSortPolicy struct {
		Type            string
		ResourceWeights map[string]float64
	}
	userGroupResolver struct {
		Type string
	}
)

// parseConfig reads the first document of a text, strictly, and also answers its nodes; nil if it is empty. It uses the
// YAML library that the original uses, because what counts as a number, a text or nothing is that library's: 1e1 is a
// count of ten, "2" is none, and ~ is zero.
func parseConfig(text []byte) (*config, *yaml.Node, ConfigErrors) {
	root, problem := readNodes(text)
	if problem != nil {
		return nil, nil, ConfigErrors{*problem}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	c := &config{}
	err := decoder.Decode(c)
	if err == nil || errors.Is(err, io.EOF) { // an empty text is a configuration without partitions
		return c, root, nil
	}
	lines := []string{err.Error()}
	var several *yaml.TypeError
	if errors.As(err, &several) {
		lines = several.Errors
	}
	v := &validator{}
	for _, line := range lines {
		v.keepProblem(yamlProblem(line))
	}
	return nil, nil, v.allProblems()
}

var (
	yamlLine   = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)
	unknownKey = regexp.MustCompile(`^field (.*) not found in type yunikorn\.(\w+)$`)
	wrongType  = regexp.MustCompile("(?s)^cannot unmarshal !!(\\w+)(?: `(.*)`)? into (\\S+)$")
)

// typeNames translates the Go types in errors of the library to words for users.
var typeNames = map[string]string{
	"yunikorn.config": "a map that begins with partitions", "[]yunikorn.partition": "a list of partitions",
	"yunikorn.partition": "a partition", "[]yunikorn.queue": "a list of queues", "yunikorn.queue": "a queue",
	"[]yunikorn.limit": "a list of limits", "yunikorn.limit": "a limit", "yunikorn.resources": "guaranteed and max",
	"map[string]string": "a map of texts", "[]string": "a list of texts", "string": "a text", "bool": "true or false",
	"uint64": "a count (a whole number that is not negative, without quotes)",
}

// yamlProblem converts an error of the library to a problem.
func yamlProblem(line string) Problem {
	p := Problem{Rule: ruleYAML}
	if at := yamlLine.FindStringSubmatch(line); at != nil {
		p.Path = "line " + at[1]
		line = line[len(at[0]):]
	}
	line = strings.TrimPrefix(line, "yaml: ")
	if found := unknownKey.FindStringSubmatch(line); found != nil {
		p.Text = fmt.Sprintf("unknown key %q: keys are case-sensitive and in lower case",
			clipText(found[1]))
		return p
	}
	if found := wrongType.FindStringSubmatch(line); found != nil && typeNames[found[3]] != "" {
		line = fmt.Sprintf("found %s, expected %s", foundValue(found[1], found[2]), typeNames[found[3]])
	}
	p.Text = line
	return p
}

func foundValue(tag, text string) string {
	switch tag {
	case "map":
		return "a map"
	case "seq":
		return "a list"
	default:
		return strconv.Quote(text)
	}
}
