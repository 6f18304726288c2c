package identify_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/pipeline"
)

// stream opens a stream, which lasts until its context ends, and returns how it ended.
func (b *testIdentifier) stream(path, token string) <-chan error {
	ended := make(chan error, 1)
	calls := &pipeline.Pipeline{
		Steps: []pipeline.Step{b.Authenticate, b.EndWithCredential},
		Last: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			ended <- identify.TellEnd(r.Context(), r.Context().Err())
		}),
	}
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Hour)
	r := httptest.NewRequest(http.MethodPost, path, http.NoBody).WithContext(ctx)
	if token != "" {
		r.Header = bearer(token)
	}
	go func() {
		defer cancel()
		calls.ServeHTTP(httptest.NewRecorder(), r)
	}()
	return ended
}

// TestStreamsEndWithTheirCredential: in a guarded cluster a stream ends within a second after its credential ceases to
// hold; in others it goes on.
func TestStreamsEndWithTheirCredential(t *testing.T) {
	t.Parallel()
	revoke := func(s *access.State) {
		s.Tokens = append([]access.Token(nil), s.Tokens...)
		s.Tokens[0].Revoked = 9
	}
	for name, c := range map[string]struct {
		change func(*access.State)
		after  time.Duration // 0 if the stream goes on
	}{
		"the token ends":   {func(*access.State) {}, time.Hour},
		"another change":   {func(s *access.State) { s.Revision++ }, time.Hour},
		"it is revoked":    {revoke, time.Second},
		"it is forgotten":  {func(s *access.State) { s.Tokens = s.Tokens[1:] }, time.Second},
		"it is disabled":   {func(s *access.State) { s.Accounts = []access.Account{{Name: "ci", Disabled: true}, s.Accounts[1]} }, time.Second},
		"it is deleted":    {func(s *access.State) { s.Accounts, s.Tokens = s.Accounts[1:], s.Tokens[3:] }, time.Second},
		"the user refused": {func(s *access.State) { s.Refused = refusedUser("account/ci", 0) }, time.Second},
		"older tokens": {
			func(s *access.State) { s.Refused = refusedUser("account/ci", time.Now().UnixMilli()+1) }, time.Second,
		},
		"an open cluster": {func(s *access.State) { revoke(s); s.Mode = access.Open }, 0},
		"a watching one":  {func(s *access.State) { revoke(s); s.Mode = access.Watching }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				state, all := guarded(t)
				b := newTestIdentifier(t, state)
				ended, began := b.stream(watchPath, all.valid.Reveal()), time.Now()
				synctest.Wait()
				c.change(&state)
				b.use(t, state)
				err := <-ended
				took := time.Since(began)
				if c.after == 0 {
					if took != 12*time.Hour || connect.CodeOf(err) == connect.CodeUnauthenticated {
						t.Errorf("it ended after %s: %v", took, err)
					}
					return
				}
				if connect.CodeOf(err) != connect.CodeUnauthenticated || took > c.after+time.Second || took < c.after-time.Second {
					t.Errorf("it ended after %s: %v", took, err)
				}
			})
		})
	}
}

func refusedUser(user string, before int64) []access.Refused {
	return []access.Refused{{
		RefusedKey:   access.RefusedKey{Kind: access.RefusedUser, Name: user},
		IssuedBefore: before, Until: time.Now().Add(10 * time.Hour).UnixMilli(),
	}}
}

// TestStreamsThatGoOn: calls with one answer and anonymous streams are left alone, and nothing runs without streams.
func TestStreamsThatGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		state, all := guarded(t)
		b := newTestIdentifier(t, state)
		unary, anonymous := b.stream(allocatePath, all.valid.Reveal()), b.stream(watchPath, "")
		synctest.Wait()
		b.use(t, access.State{Mode: access.Guarded})
		for _, ended := range []<-chan error{unary, anonymous} {
			if err := <-ended; connect.CodeOf(err) == connect.CodeUnauthenticated {
				t.Errorf("it ended with %v", err)
			}
		}
	}) // a goroutine that went on would be a deadlock of the bubble
}

// TestStreamsOfCertificates: a stream ends when its certificate is no longer trusted, or is that of another user.
func TestStreamsOfCertificates(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *testIdentifier, access.State){
		"the authority changes": func(t *testing.T, b *testIdentifier, _ access.State) { t.Helper(); b.trustAuthority(t) },
		"the rule changes": func(t *testing.T, b *testIdentifier, s access.State) {
			t.Helper()
			s.Section.Certificates = []access.CertificateRule{{Name: "robot", User: "other"}}
			b.use(t, s)
		},
		"the certificate ends": func(*testing.T, *testIdentifier, access.State) { time.Sleep(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				state, _ := guarded(t)
				b := newTestIdentifier(t, state)
				b.chain = append(b.chain, certificateOf(t, b.trustAuthority(t), "robot"))
				ended := b.stream(watchPath, "")
				time.Sleep(10 * time.Second)
				select {
				case err := <-ended:
					t.Fatalf("it ended with %v", err)
				default:
				}
				change(t, b, state)
				time.Sleep(2 * time.Second)
				select {
				case err := <-ended:
					if connect.CodeOf(err) != connect.CodeUnauthenticated {
						t.Errorf("it ended with %v", err)
					}
				default:
					t.Error("it goes on")
				}
				if b.failures(t, authn.CredentialEnded)+b.failures(t, authn.CertificateUntrusted)+
					b.failures(t, authn.Withdrawn) != 1 {
					t.Error("its end is not counted")
				}
			})
		})
	}
}
