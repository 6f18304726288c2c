//go:build unix

package lease

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

const (
	// parentPoll is the time between two checks whether the parent has ended.
	parentPoll = 500 * time.Millisecond
	// socketFile and outcomeFile are in the folder of a keeper. The outcome stays after the keeper.
	socketFile, outcomeFile = "keeper.sock", "outcome.json"
	// File descriptors that a keeper inherits.
	reportedFD, confirmedFD = 3, 4
)

// outcome is how a keeper ended.
type outcome struct {
	// Released is true if the lease was held until "quorate lease end" asked for its release.
	Released bool `json:"released"`
	// Text says what happened.
	Text string `json:"text"`
}

type keeper struct {
	*leaseHoldOptions
	lease  *client.Lease
	folder string
}

// keep waits for the lease, reports it to the command that started this process, and holds it.
func (o *leaseHoldOptions) keep(ctx context.Context) error {
	reported, confirmed := os.NewFile(reportedFD, "reports"), os.NewFile(confirmedFD, "confirmation")
	signals := make(chan os.Signal, 1)
	defer notifySignals(signals)()
	answered := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(confirmed, make([]byte, 1))
		if err != nil { // the command that started this process has ended
			signals <- syscall.SIGTERM
		}
		answered <- err
	}()
	lease, err := o.acquireLease(context.WithoutCancel(ctx), signals)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "quorate-lease-")
	if err != nil {
		o.releaseLease(lease)
		return fmt.Errorf("make the folder of the keeper: %w", err)
	}
	k := &keeper{o, lease, folder}
	listener, err := k.listen() // before the report: lease end may follow it at once
	if err == nil {
		defer listener.Close() //nolint:errcheck // the process ends
		err = k.report(reported, answered)
	}
	if err != nil {
		o.releaseLease(lease)
		return errors.Join(err, os.RemoveAll(folder))
	}
	k.hold(signals, listener)
	return nil
}

func (k *keeper) listen() (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "unix", filepath.Join(k.folder, socketFile))
	if err != nil {
		return nil, fmt.Errorf("listen for quorate lease end (TMPDIR chooses the folder): %w", err)
	}
	return listener, nil
}

// report waits until the command that started this process has passed the variables on.
func (k *keeper) report(reported *os.File, answered <-chan error) error {
	variables := append(k.jobEnvironment(k.lease), keeperPathVariable+"="+k.folder)
	text, err := json.Marshal(held{variables, fmt.Sprintf("leased %s under fence %d",
		k.Units.ClaimsText(k.lease.Allocation()), k.lease.Fence())})
	if err == nil {
		_, err = reported.Write(text)
	}
	if err := errors.Join(err, reported.Close()); err != nil {
		return fmt.Errorf("report the lease: %w", err)
	}
	if <-answered != nil {
		return errKeeperEnded
	}
	return nil
}

// hold keeps the lease until it is lost, or released because "quorate lease end" asks, the parent has ended, or the
// deadline has passed. From here on messages are discarded: the streams belong to a step that has ended.
func (k *keeper) hold(signals <-chan os.Signal, listener net.Listener) {
	k.ErrOut = io.Discard
	calls := make(chan net.Conn)
	go acceptCalls(listener, calls)
	poll := time.NewTicker(parentPoll)
	defer poll.Stop()
	var deadline <-chan time.Time
	if k.deadline > 0 {
		deadline = time.After(k.deadline)
	}
	parent, parentError := startOf(k.parent)
	for {
		select {
		case call := <-calls:
			end := outcome{Released: true, Text: "released"}
			if k.lease.Context().Err() != nil { // it was lost at the same time
				k.terminateJob()
				end = outcome{Text: context.Cause(k.lease.Context()).Error()}
			}
			k.end(end, call)
			return
		case <-deadline:
			k.end(outcome{Text: fmt.Sprintf("the lease was released after its --deadline of %v", k.deadline)}, nil)
			return
		case s := <-signals:
			k.end(outcome{Text: fmt.Sprintf("the keeper was ended by signal %v, and released the lease", s)}, nil)
			return
		case <-k.lease.Context().Done():
			cause := context.Cause(k.lease.Context())
			k.terminateJob()
			k.end(outcome{Text: cause.Error()}, nil)
			return
		case <-poll.C:
			if k.parent == 0 {
				continue
			}
			if now, err := startOf(k.parent); err != nil || parentError != nil || now != parent {
				k.end(outcome{Text: fmt.Sprintf("process %d ended, and the lease was released", k.parent)}, nil)
				return
			}
		}
	}
}

func acceptCalls(listener net.Listener, calls chan<- net.Conn) {
	for {
		call, err := listener.Accept()
		if err != nil {
			return
		}
		calls <- call
	}
}

// end releases the lease, and tells the caller, or leaves behind, what has happened. What is left behind comes first:
// who asks while the servers are called must learn that the lease has ended.
func (k *keeper) end(result outcome, call net.Conn) {
	if call == nil {
		if text, err := json.Marshal(result); err == nil {
			_ = os.WriteFile(filepath.Join(k.folder, outcomeFile), text, 0o600) // without it, lease end asks the servers
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), k.Timeout)
	defer cancel()
	if err := k.lease.Release(ctx); err != nil {
		result.Text += fmt.Sprintf("; no server has confirmed the release, so it ends within %v: %s", cli.FormatSpan(k.TTL),
			cli.ErrorText(err))
	}
	if call == nil {
		return
	}
	if text, err := json.Marshal(result); err == nil {
		_, _ = call.Write(append(text, '\n'))
	}
	_ = call.Close()
	_ = os.RemoveAll(k.folder)
}

// terminateJob ends the processes that the job has named: SIGTERM first, SIGKILL when the time is over.
func (k *keeper) terminateJob() {
	left := max(0, min(k.stopTime(), time.Until(k.lease.Ends())))
	starts := map[int]string{}
	for _, pid := range k.terminate {
		starts[pid], _ = startOf(pid)
		_ = syscall.Kill(pid, syscall.SIGTERM) // one that has ended is not an error
	}
	for end := time.Now().Add(left); time.Now().Before(end); time.Sleep(groupPollInterval) {
		if !k.isAnyRunning(starts) {
			return
		}
	}
	for pid, start := range starts {
		if now, _ := startOf(pid); now == start { // the number does not belong to another process now
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func (k *keeper) isAnyRunning(starts map[int]string) bool {
	for pid, start := range starts {
		if now, err := startOf(pid); err == nil && now == start {
			return true
		}
	}
	return false
}

// askKeeper asks the keeper of a folder to release its lease. If it has ended, the outcome that it has left behind is
// returned, and known is false if there is none.
func askKeeper(
	ctx context.Context, folder string, patience time.Duration,
) (result outcome, known bool, err error) {
	text, err := callKeeper(ctx, folder, patience)
	if err != nil {
		if text, err = os.ReadFile(filepath.Join(folder, outcomeFile)); err != nil {
			return result, false, nil //nolint:nilerr // the keeper was killed
		}
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return result, false, fmt.Errorf("read the answer of the keeper: %w", err)
	}
	return result, true, nil
}

func callKeeper(ctx context.Context, folder string, patience time.Duration) ([]byte, error) {
	dialer := &net.Dialer{Timeout: time.Second}
	call, err := dialer.DialContext(ctx, "unix", filepath.Join(folder, socketFile))
	if err != nil {
		return nil, err
	}
	defer call.Close() //nolint:errcheck // it was only read
	if err := call.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	return bufio.NewReader(call).ReadBytes('\n')
}
