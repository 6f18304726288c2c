package rpc

import (
	"bytes"
	"context"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/fsm/backup"
	"github.com/quorate/quorate/rpc/wire"
)

func (s *threeNodes) snapshots(id string, over connect.HTTPClient) adminv1connect.SnapshotServiceClient {
	return adminv1connect.NewSnapshotServiceClient(over, s.url(id))
}

func (s *threeNodes) save(t *testing.T, id string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	stream, err := s.snapshots(id, http.DefaultClient).Save(ctx, &adminv1.SaveRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	var file bytes.Buffer
	for stream.Receive() {
		if summary := stream.Msg().GetSummary(); summary != nil {
			if summary.GetSize() != uint64(file.Len()) || summary.GetServedBy() != id {
				t.Errorf("the summary of %s is %v after %d bytes", id, summary, file.Len())
			}
			return file.Bytes()
		}
		file.Write(stream.Msg().GetChunk())
	}
	t.Fatalf("no summary: %v", stream.Err())
	return nil
}

func (s *threeNodes) restore(
	t *testing.T, id string, over connect.HTTPClient, cluster string, size int, file []byte,
) (*adminv1.RestoreResponse, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	stream, err := s.snapshots(id, over).Restore(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// An error while sending is reported by the answer.
	_ = stream.Send(&adminv1.RestoreRequest{Message: &adminv1.RestoreRequest_Confirmation{
		Confirmation: &adminv1.RestoreConfirmation{ClusterName: cluster, Size: uint64(size), RaiseLevel: true},
	}})
	for len(file) > 0 {
		n := min(len(file), 1000)
		_ = stream.Send(&adminv1.RestoreRequest{Message: &adminv1.RestoreRequest_Chunk{Chunk: file[:n]}})
		file = file[n:]
	}
	return stream.CloseAndReceive()
}

// TestBackupsThroughAnyNode saves and restores backups through each node, over HTTP/1.1 and HTTP/2.
func TestBackupsThroughAnyNode(t *testing.T) {
	s := startThreeNodes(t)
	leader := s.Leader().Status().ID
	for _, id := range []string{"n1", "n2", "n3"} {
		file := s.save(t, id)
		contents, err := backup.Read(bytes.NewReader(file), fsm.Options{}, nil)
		if err != nil || contents.Node != id || contents.Counts.Trees != 1 {
			t.Fatalf("%s saved %+v, %v", id, contents, err)
		}
		for _, over := range []connect.HTTPClient{http.DefaultClient, overHTTP2} {
			answer, err := s.restore(t, id, over, "test", len(file), file)
			if err != nil || answer.GetServedBy() != leader || answer.GetBackupIndex() != contents.Index ||
				answer.GetIndex() <= contents.Index {
				t.Errorf("restored through %s: %v, %v", id, answer, err)
			}
		}
	}
}

func TestRestoresThatAreRefused(t *testing.T) {
	s := startThreeNodes(t)
	file := s.save(t, "n1")
	bad := bytes.Clone(file)
	bad[len(bad)/2] ^= 1
	for name, c := range map[string]struct {
		cluster string
		size    int
		file    []byte
	}{
		"another cluster":     {"other", len(file), file},
		"no cluster":          {"", len(file), file},
		"a file of no bytes":  {"test", 0, nil},
		"less than announced": {"test", len(file) + 1, file},
		"more than announced": {"test", len(file) - 1, file},
		"damaged":             {"test", len(bad), bad},
	} {
		for _, id := range []string{"n1", "n2", "n3"} {
			_, err := s.restore(t, id, overHTTP2, c.cluster, c.size, c.file)
			// the leader has not yet noticed that the previous restore was aborted
			for connect.CodeOf(err) == connect.CodeFailedPrecondition {
				time.Sleep(10 * time.Millisecond)
				_, err = s.restore(t, id, overHTTP2, c.cluster, c.size, c.file)
			}
			if connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Errorf("%s, through %s: %v", name, id, err)
			}
			if problem := wire.ToFailure(wire.ToError(err)).GetProblem(); !problem.GetNotApplied() {
				t.Errorf("%s, through %s: the problem is %v", name, id, problem)
			}
		}
	}
}

// TestSlowBackupUpload: a caller that announces a file and sends it too slowly, or not at all, does not block other
// restores.
func TestSlowBackupUpload(t *testing.T) {
	s := startThreeNodes(t)
	leader := s.Leader().Status().ID
	s.servers[leader].admission.Limits.SendPatience = time.Second
	for name, every := range map[string]time.Duration{"nothing": time.Hour, "next to nothing": 100 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		stream, err := s.snapshots(leader, overHTTP2).Restore(ctx)
		if err != nil {
			t.Fatal(err)
		}
		err = stream.Send(&adminv1.RestoreRequest{Message: &adminv1.RestoreRequest_Confirmation{
			Confirmation: &adminv1.RestoreConfirmation{ClusterName: "test", Size: 1000, RaiseLevel: true},
		}})
		begun := time.Now()
		for err == nil {
			time.Sleep(min(every, 3*time.Second))
			err = stream.Send(&adminv1.RestoreRequest{Message: &adminv1.RestoreRequest_Chunk{}})
		}
		_, err = stream.CloseAndReceive()
		if connect.CodeOf(err) != connect.CodeDeadlineExceeded ||
			!wire.ToFailure(wire.ToError(err)).GetProblem().GetNotApplied() {
			t.Errorf("%s: got %v after %v, want that the backup came too slowly", name, err, time.Since(begun))
		}
	}
	file := s.save(t, leader)
	eventually(t, "a restore after slow ones succeeds", func() bool { // on a busy machine it may be slow too
		_, err := s.restore(t, leader, overHTTP2, "test", len(file), file)
		return err == nil
	})
}
