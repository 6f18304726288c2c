package systems

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// nodeCount is the number of nodes of every cluster.
const nodeCount = 3

// prototype is the server of tools/bench/floor.
type prototype struct {
	processGroup
	name, binary, store string
	urls                []string
	transport           *http.Transport
}

// NewPrototype returns the prototype with a log store, "wal" or "bolt".
func NewPrototype(binary, store string) System {
	return &prototype{name: "prototype-" + store, binary: binary, store: store, transport: newTransport()}
}

func (p *prototype) Name() string { return p.name }

func (p *prototype) Supports(c Case) bool { return c.Kind != Reads && !c.Follower && !c.Client }

func (p *prototype) Start(ctx context.Context, folder string) error {
	addresses, err := freeAddresses(ctx, 2*nodeCount)
	if err != nil {
		return err
	}
	api, raft := addresses[:nodeCount], addresses[nodeCount:]
	var members []string
	for i, address := range raft {
		members = append(members, fmt.Sprintf("n%d=%s", i+1, address))
	}
	for i, address := range api {
		id := fmt.Sprintf("n%d", i+1)
		cmd := exec.Command(p.binary, "-id", id, "-http", address, //nolint:noctx // Stop ends it
			"-members", strings.Join(members, ","), "-data", filepath.Join(folder, id), "-store", p.store)
		started, err := startProcess(id, folder, cmd)
		if err != nil {
			return err
		}
		p.processGroup = append(p.processGroup, started)
		p.urls = append(p.urls, "http://"+address)
	}
	return p.awaitLeader(ctx)
}

func (p *prototype) awaitLeader(ctx context.Context) error {
	return p.await(ctx, "wait for a leader of the prototype", p.CheckEmpty)
}

func (p *prototype) Resume(ctx context.Context) error {
	return errors.Join(p.signalAll(syscall.SIGCONT), p.awaitLeader(ctx))
}

type prototypeState struct {
	IsLeader    bool
	Allocations int
	Used        map[string][2]int64
}

func (p *prototype) state(ctx context.Context, node int) (s prototypeState, err error) {
	return s, p.getJSON(ctx, p.urls[node]+"/state", &s)
}

func (p *prototype) getJSON(ctx context.Context, url string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: p.transport}).Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: %s", url, response.Status, body)
	}
	return json.Unmarshal(body, answer)
}

func (p *prototype) Leader(ctx context.Context) (int, error) {
	for i := range p.urls {
		if s, err := p.state(ctx, i); err == nil && s.IsLeader {
			return i, nil
		}
	}
	return 0, errors.New("no node of the prototype leads")
}

func (p *prototype) Measure(ctx context.Context, c Case, w Window) (Work, error) {
	leader, err := p.Leader(ctx)
	if err != nil {
		return Work{}, err
	}
	switch url := p.urls[leader]; c.Kind {
	case Raft:
		return p.measureRaft(ctx, c, w, url)
	case Empty:
		api := newLeanClient(p.transport, url+"/empty")
		request := newRequest("compare", leafNode(0))
		return measureCallers(ctx, c, w, func(int) callerWork {
			return func(ctx context.Context, it *iteration) error {
				return it.call(1, func() error {
					_, err := api.Allocate(ctx, request)
					return err
				})
			}
		})
	case Pairs:
		return measureCallers(ctx, c, w, pairCallers(c, newLeanClient(p.transport, url)))
	case Reads:
	}
	return Work{}, fmt.Errorf("the prototype does not support %s", c.Name)
}

// measureRaft lets the leader load raft: a call first for the warm-up, then one for the window.
func (p *prototype) measureRaft(ctx context.Context, c Case, w Window, url string) (Work, error) {
	var done struct {
		Entries int64
		Seconds float64
		Failure string
	}
	loadURL := func(span fmt.Stringer) string {
		return fmt.Sprintf("%s/raft?inflight=%d&for=%s", url, c.Callers, span)
	}
	if err := p.getJSON(ctx, loadURL(w.Warmup), &done); err != nil {
		return Work{}, err
	}
	w.Begin()
	if err := p.getJSON(ctx, loadURL(w.Duration), &done); err != nil {
		return Work{}, err
	}
	w.End()
	if done.Failure != "" {
		return Work{}, errors.New(done.Failure)
	}
	return Work{Operations: done.Entries, Seconds: done.Seconds}, nil
}

func (p *prototype) CheckEmpty(ctx context.Context) error {
	// A write through the log first: then the leader has applied all writes before it.
	leader, err := p.Leader(ctx)
	if err != nil {
		return err
	}
	_, err = newLeanClient(p.transport, p.urls[leader]).Release(ctx, &quoratev1.ReleaseRequest{Id: "unknown"})
	if !isNotFound(err) {
		return fmt.Errorf("release an unknown id: %w", err)
	}
	s, err := p.state(ctx, leader)
	if err == nil && (s.Allocations != 0 || len(s.Used) != 0) {
		err = fmt.Errorf("%d allocations are left, and use %v", s.Allocations, s.Used)
	}
	return err
}

func (p *prototype) Stop() error {
	p.transport.CloseIdleConnections()
	return p.stopAll(syscall.SIGTERM)
}
