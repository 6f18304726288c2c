package main_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/internal/verify"
)

// modeCallers are the columns in which the modes and the protocols are compared: those without rights, and one of each
// kind of rights.
var modeCallers = []string{
	"anonymous", "owner", "dummy", "viewer", "holder", "operator", "node-admin", "root", "c-viewer",
	"c-cluster-operator", "c-security-admin", "stranger",
}

// goldenMatrix is testdata/access_matrix.golden: the cells of each call by the name of the caller.
type goldenMatrix map[string]map[string]string

var matrixColumn = regexp.MustCompile(`^ *\d+ (\S+)$`)

func readGoldenMatrix(t *testing.T) goldenMatrix {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "access_matrix.golden"))
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	golden := goldenMatrix{}
	for line := range strings.Lines(strings.TrimPrefix(string(text), matrixLegend)) {
		line = strings.TrimSuffix(line, "\n")
		if column := matrixColumn.FindStringSubmatch(line); column != nil {
			columns = append(columns, column[1])
			continue
		}
		cells, call, found := strings.Cut(line, "  ")
		if !found || len(cells) != len(columns) {
			t.Fatalf("%q is not a row", line)
		}
		golden[call] = map[string]string{}
		for i, column := range columns {
			golden[call][column] = cells[i : i+1]
		}
	}
	return golden
}

// isWider is true if a call was answered that is refused in normal times, or one that is answered with nothing then was
// answered with something.
func isWider(normal, now string) bool {
	switch normal {
	case "-", "u", "n", "i":
		return now == "+" || now == "."
	case ".":
		return now == "+"
	}
	return false // it has the right, and other things stood in the way
}

// TestAccessMatrixInOtherModes: a cluster that is busy with something, or lacks something, allows nothing that it does
// not allow in normal times.
func TestAccessMatrixInOtherModes(t *testing.T) {
	verify.Only(t) // two minutes
	t.Parallel()
	list, processes, admin, callers := matrixCluster(t)
	callers = callersFor(false, callers)
	golden, owner := readGoldenMatrix(t), matrixClient(t, list[0], callers, "owner")
	prepare := func(r matrixRun) matrixRun {
		r.since = prepareMatrix(t, owner, r.name, callers)
		return r
	}
	leader := matrixLeader(t, admin, list)

	run := prepare(matrixRun{name: "restoring", server: list[(leader+1)%3], protocol: connect.WithProtoJSON()})
	stream, err := admin.Snapshots.Restore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range []*adminv1.RestoreRequest{
		{Message: &adminv1.RestoreRequest_Confirmation{
			Confirmation: &adminv1.RestoreConfirmation{ClusterName: "quorate", Size: 1 << 20},
		}},
		{Message: &adminv1.RestoreRequest_Chunk{Chunk: make([]byte, 1<<10)}},
	} {
		if err := stream.Send(message); err != nil {
			t.Fatal(err)
		}
	}
	run.compare(t, golden, callers)
	if _, err := stream.CloseAndReceive(); err == nil {
		t.Error("the beginning of a file was restored")
	}

	run = prepare(matrixRun{name: "full-disk", protocol: connect.WithGRPCWeb(), mayFail: true})
	for i := range list {
		processes[i].stopCleanly(t)
		list[i].more = append(list[i].more, "--disk-reserve", fmt.Sprint(1<<30))
	}
	for i := range list {
		processes[i] = startProcess(t, list[i].commandLine()...)
	}
	for i := range list {
		awaitReady(t, processes[i], list[i])
	}
	leader = matrixLeader(t, admin, list)
	run.server = list[leader]
	run.compare(t, golden, callers)

	run = matrixRun{ // without a leader; its calls are about what the run before was prepared for
		name: run.name, since: run.since, server: run.server, protocol: connect.WithGRPC(), mayFail: true, stale: true,
	}
	for i := range 2 {
		processes[(leader+1+i)%3].sendSignal(t, syscall.SIGKILL)
	}
	awaitCondition(t, "a server alone is ready",
		func() bool { status, _ := httpGet(t, run.server.baseURL()+"/readyz"); return status != http.StatusOK })
	run.compare(t, golden, callers)
}

// compare makes all calls, many at a time, and reports those that are answered more than in normal times.
func (r matrixRun) compare(t *testing.T, golden goldenMatrix, callers []matrixCaller) {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	var calls sync.WaitGroup
	var mu sync.Mutex
	cells := map[string]int{}
	room := make(chan struct{}, 48)
	row := 0
	for _, c := range matrixCalls {
		for place := range strings.SplitSeq(c.places, " ") {
			name := strings.TrimSpace(c.method + " " + place)
			row++
			for _, caller := range callers {
				number := row
				room <- struct{}{}
				calls.Go(func() {
					defer func() { <-room }()
					now := r.call(t, transport, number, c.method, c.body, place, caller)
					mu.Lock()
					defer mu.Unlock()
					cells[now]++
					if normal := golden[name][caller.name]; normal == "" || isWider(normal, now) {
						t.Errorf("%s: %s of %s is %q, and %q in normal times", r.name, name, caller.name, now, normal)
					}
				})
			}
		}
	}
	calls.Wait()
	t.Logf("%s: %v", r.name, cells)
	if cells["+"] == 0 || cells["-"] == 0 || cells["n"] == 0 {
		t.Errorf("%s: nothing was allowed, refused or hidden: %v", r.name, cells)
	}
}

// askStale makes a read stale, if the request is one.
func askStale(request *dynamicpb.Message) {
	field := request.Descriptor().Fields().ByName("read")
	if field == nil {
		return
	}
	options := request.Mutable(field).Message()
	consistency := options.Descriptor().Fields().ByName("consistency")
	stale := consistency.Enum().Values().ByName("CONSISTENCY_STALE").Number()
	options.Set(consistency, protoreflect.ValueOfEnum(stale))
}
