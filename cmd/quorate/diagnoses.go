package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/common/expfmt"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc"
)

// diagnoses are what a node tells of itself to those who look for a fault. None has a secret in it, and none has allocations.
func diagnoses(node *cluster.Node, s settings, measured *telemetry) []rpc.Diagnosis {
	return []rpc.Diagnosis{
		{Name: "build.txt", Collect: buildText},
		{Name: "settings.yaml", Collect: func(context.Context) ([]byte, error) { return yaml.Marshal(s.told()) }},
		{Name: "standing.json", Collect: func(context.Context) ([]byte, error) { return asJSON(node.Standing()) }},
		{Name: "members.json", Collect: func(context.Context) ([]byte, error) { return asJSON(node.Members()) }},
		{Name: "snapshots.json", Collect: func(context.Context) ([]byte, error) { return snapshotsText(node) }},
		{Name: "metrics.txt", Collect: func(context.Context) ([]byte, error) { return measured.text() }},
		{Name: "goroutines.txt", Collect: func(context.Context) ([]byte, error) { return profile("goroutine", 1) }},
		{Name: "heap.pprof", Collect: func(context.Context) ([]byte, error) { return profile("heap", 0) }},
		{Name: "log.txt", Collect: func(context.Context) ([]byte, error) { return measured.lately.told() }},
	}
}

func asJSON(value any) ([]byte, error) { return json.MarshalIndent(value, "", "  ") }

var processStarted = time.Now()

func buildText(context.Context) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "quorate %s\nrunning since %s\n%s %s/%s, %d of %d processors, %d goroutines\n", version,
		processStarted.UTC().Format(time.RFC3339), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0),
		runtime.NumCPU(), runtime.NumGoroutine())
	if info, ok := debug.ReadBuildInfo(); ok {
		out.WriteString(info.String())
	}
	return out.Bytes(), nil
}

func snapshotsText(node *cluster.Node) ([]byte, error) {
	list, err := node.Snapshots()
	if err != nil {
		return nil, err
	}
	return asJSON(list)
}

// profile is one of the runtime's: 1 for text that merges equal stacks, 0 for the form of "go tool pprof".
func profile(name string, form int) ([]byte, error) {
	var out bytes.Buffer
	err := pprof.Lookup(name).WriteTo(&out, form)
	return out.Bytes(), err
}

// text is the page of metrics.
func (t *telemetry) text() ([]byte, error) {
	families, err := t.registry.Gather()
	var out bytes.Buffer
	for _, family := range families {
		if _, failed := expfmt.MetricFamilyToText(&out, family); failed != nil {
			return nil, failed
		}
	}
	if out.Len() > 0 {
		err = nil // what could be gathered is worth more than nothing
	}
	return out.Bytes(), err
}

// told is the log, unless it is not remembered.
func (l *lately) told() ([]byte, error) {
	if l == nil {
		return nil, errors.New("this process does not remember its log")
	}
	return []byte(hideSecrets(string(l.text()))), nil
}

// hidden stands where a secret was.
const hidden = "(hidden)"

// secretive are keys whose values are not told. Keys of files are: a path is no secret.
var secretive = regexp.MustCompile(`(?i)(secret|token|password|passphrase|credential|private|headers|key)s?$`)

// told is every setting under its key, without secrets.
func (s settings) told() yaml.MapSlice {
	var list yaml.MapSlice
	values := reflect.ValueOf(s)
	for _, one := range allSettings() {
		value := values.FieldByIndex(one.field.Index).Interface()
		list = append(list, yaml.MapItem{Key: one.key, Value: tell(one.key, value)})
	}
	return list
}

// tell is a value that may be shown.
func tell(key string, value any) any {
	if secretive.MatchString(key) && !reflect.ValueOf(value).IsZero() {
		return hidden
	}
	switch v := value.(type) {
	case string:
		return hideSecrets(v)
	case []string:
		list := make([]string, len(v))
		for i := range v {
			list[i] = hideSecrets(v[i])
		}
		return list
	case time.Duration:
		return v.String()
	}
	return value
}

// urls are those with something in front of the host, or behind a question mark.
var urls = regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^\s"'<>]+`)

// hideSecrets takes the passwords and the queries out of URLs.
func hideSecrets(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return urls.ReplaceAllStringFunc(text, func(found string) string {
		parsed, err := url.Parse(found)
		if err != nil || parsed.User == nil && parsed.RawQuery == "" {
			return found
		}
		if parsed.User != nil {
			parsed.User = url.User(hidden)
		}
		if parsed.RawQuery != "" {
			parsed.RawQuery = hidden
		}
		return strings.ReplaceAll(parsed.String(), url.PathEscape(hidden), hidden)
	})
}
