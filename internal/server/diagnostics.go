package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/yamldoc"
	"github.com/quorate/quorate/rpc"
)

// diagnostics are what "quorate cluster dump" collects from a node. None contains a secret or an allocation.
func diagnostics(node *cluster.Node, s Settings, p Process) []rpc.Diagnosis {
	return []rpc.Diagnosis{
		{Name: "build.txt", Collect: func(context.Context) ([]byte, error) { return buildText(p.Version), nil }},
		{Name: "settings.yaml", Collect: func(context.Context) ([]byte, error) {
			return yamldoc.Marshal(s.redacted())
		}},
		{Name: "standing.json", Collect: func(context.Context) ([]byte, error) { return indentedJSON(node.Status()) }},
		{Name: "members.json", Collect: func(context.Context) ([]byte, error) { return indentedJSON(node.Members()) }},
		{Name: "snapshots.json", Collect: func(context.Context) ([]byte, error) { return snapshotsText(node) }},
		{Name: "metrics.txt", Collect: func(context.Context) ([]byte, error) { return p.Telemetry.exposition() }},
		{Name: "goroutines.txt", Collect: func(context.Context) ([]byte, error) {
			return runtimeProfile("goroutine", 1)
		}},
		{Name: "heap.pprof", Collect: func(context.Context) ([]byte, error) { return runtimeProfile("heap", 0) }},
		{Name: "log.txt", Collect: func(context.Context) ([]byte, error) { return p.recent.redacted() }},
	}
}

func indentedJSON(value any) ([]byte, error) { return json.MarshalIndent(value, "", "  ") }

var processStarted = time.Now()

func buildText(version string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "quorate %s\nrunning since %s\n%s %s/%s, %d of %d processors, %d goroutines\n", version,
		processStarted.UTC().Format(time.RFC3339), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.GOMAXPROCS(0),
		runtime.NumCPU(), runtime.NumGoroutine())
	if info, ok := debug.ReadBuildInfo(); ok {
		out.WriteString(info.String())
	}
	return out.Bytes()
}

func snapshotsText(node *cluster.Node) ([]byte, error) {
	list, err := node.Snapshots()
	if err != nil {
		return nil, err
	}
	return indentedJSON(list)
}

// runtimeProfile takes form 1 for text that merges equal stacks, form 0 for "go tool pprof".
func runtimeProfile(name string, form int) ([]byte, error) {
	var out bytes.Buffer
	err := pprof.Lookup(name).WriteTo(&out, form)
	return out.Bytes(), err
}

// hiddenText stands where a secret was.
const hiddenText = "(hidden)"

// secretKeys matches keys whose values are not shown. It does not match keys of files, because a path is not a secret.
var secretKeys = regexp.MustCompile(`(?i)(secret|token|password|passphrase|credential|private|headers|key)s?$`)

func (s Settings) redacted() []yamldoc.Field {
	var list []yamldoc.Field
	values := reflect.ValueOf(s)
	for _, one := range settingFields() {
		value := values.FieldByIndex(one.field.Index).Interface()
		list = append(list, yamldoc.Field{Key: one.key, Value: redactValue(one.key, value)})
	}
	return list
}

func redactValue(key string, value any) any {
	if secretKeys.MatchString(key) && !reflect.ValueOf(value).IsZero() {
		return hiddenText
	}
	switch v := value.(type) {
	case string:
		return redactURLs(v)
	case []string:
		list := make([]string, len(v))
		for i := range v {
			list[i] = redactURLs(v[i])
		}
		return list
	case time.Duration:
		return v.String()
	}
	return value
}

// urlPattern matches URLs in a text.
var urlPattern = regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^\s"'<>]+`)

// redactURLs takes the passwords and the queries out of the URLs in a text.
func redactURLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return urlPattern.ReplaceAllStringFunc(text, func(found string) string {
		parsed, err := url.Parse(found)
		if err != nil || parsed.User == nil && parsed.RawQuery == "" {
			return found
		}
		if parsed.User != nil {
			parsed.User = url.User(hiddenText)
		}
		if parsed.RawQuery != "" {
			parsed.RawQuery = hiddenText
		}
		return strings.ReplaceAll(parsed.String(), url.PathEscape(hiddenText), hiddenText)
	})
}
