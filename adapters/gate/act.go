package gate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// handleWork decides and acts once for a work. It stops at the first failure: what follows may depend on it.
func (l *Loop) handleWork(ctx context.Context, w *Work) error {
	if !validKey.MatchString(w.Key) {
		return fmt.Errorf("%q is not a key of 1 to 48 letters, digits, dots, dashes or underscores", w.Key)
	}
	for _, action := range Decide(*w, l.book.grants(w.Key)) {
		if err := l.act(ctx, w, action); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loop) act(ctx context.Context, w *Work, a Action) error {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	switch a.Kind {
	case Request:
		return l.request(ctx, w, a.Grant)
	case Readmit:
		return l.readmit(ctx, w)
	case OpenMember:
		if err := l.source.Open(ctx, *w, a.Member); err != nil {
			return fmt.Errorf("opening the gate of %s: %w", a.Member.Key, err)
		}
	case EvictMember:
		if err := l.source.Evict(ctx, *w, a.Member, a.Grant.Until, a.Text); err != nil {
			return fmt.Errorf("evicting %s: %w", a.Member.Key, err)
		}
	case ReleaseGrant:
		if a.Grant.State == Waiting || a.isSpare {
			return l.release(ctx, a.Grant.ID)
		}
		return l.releaseIdle(ctx, w.Key, w.Labels, a.Grant.ID)
	case Keep:
		return l.keep(ctx, w, a.Grant)
	case Tell:
		kind := StatusIncomplete
		if w.Problem != "" {
			kind = StatusFailed
		}
		l.tell(ctx, w, Status{kind, a.Text})
	}
	return nil
}

// request asks for the allocation of a work, or repeats that if it waits already and the repetition is due.
func (l *Loop) request(ctx context.Context, w *Work, waiting Grant) error {
	if kept, _ := l.book.keptAt(waiting.ID); waiting.ID != "" && l.now().Sub(kept) < l.settings.Refresh {
		return nil
	}
	attempt, claims := waiting.attempt, waiting.Claims
	if waiting.ID == "" {
		attempt, claims = l.book.lastAttempt(w.Key)+1, w.total(Closed, Open, Stopping)
	}
	for tries := 1; ; tries++ {
		answer, err := l.allocate(ctx, w, attempt, claims, quoratev1.Mode_MODE_WAIT)
		switch reason := reasonOf(err); {
		case err == nil:
			l.Notify()
			l.tell(ctx, w, statusOf(answer))
			return nil
		case tries >= mostAttempts || reason != reasonEnded && reason != reasonIDTaken:
			return l.refused(ctx, w, err)
		case reason == reasonIDTaken && waiting.ID != "": // the settings have changed since it was made
			if err := l.release(ctx, waiting.ID); err != nil {
				return err
			}
			waiting, claims = Grant{}, w.total(Closed, Open, Stopping)
		}
		attempt++
	}
}

// refused tells users why a request was not accepted. A denial is tried again later: limits may be raised.
func (l *Loop) refused(ctx context.Context, w *Work, err error) error {
	status := Status{StatusFailed, err.Error()}
	decision, denied := client.DecisionOf(err)
	switch {
	case denied:
		status = Status{StatusDenied, decision.GetExplanation()}
	case !isAnswer(err):
		status.Text = unavailable(err)
	}
	l.tell(ctx, w, status)
	if !denied && !isAnswer(err) {
		return err
	}
	l.changePace(w.Key, func(p *pace) { p.next = l.now().Add(deniedPause) })
	return nil
}

func (l *Loop) allocate(
	ctx context.Context, w *Work, attempt int, claims []Claim, mode quoratev1.Mode,
) (*quoratev1.AllocateResponse, error) {
	request := &quoratev1.AllocateRequest{
		Id: makeID(l.settings.Prefix, w.Key, attempt), Mode: mode, Priority: w.Priority,
		Labels: map[string]string{}, TtlMs: l.settings.TTL.Milliseconds(),
	}
	maps.Copy(request.GetLabels(), w.Labels)
	maps.Copy(request.GetLabels(), l.settings.Identity)
	if mode == quoratev1.Mode_MODE_WAIT {
		request.KeepMs = keepQueue.Milliseconds()
	}
	if w.User != "" {
		request.Principal = &quoratev1.Principal{User: w.User, Application: w.Application}
	}
	for _, c := range claims {
		request.Claims = append(request.Claims, &quoratev1.Claim{Tree: c.Tree, Node: c.Node, Amounts: c.Amounts})
	}
	answer, err := l.quorate.Allocate(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("allocating %s: %w", request.GetId(), err)
	}
	l.book.note(answer.GetAllocation(), answer.GetWrite().GetIndex(), answer.GetWrite().GetLedgerTimeMs())
	l.book.markKept(request.GetId())
	return answer, nil
}

// readmit finds out what has become of the allocation of a work that runs. If it has ended, the work is evicted; if
// nothing is known of it, the work may keep what it has if that fits now.
func (l *Loop) readmit(ctx context.Context, w *Work) error {
	for attempt := 1; attempt <= mostAttempts; attempt++ {
		id := makeID(l.settings.Prefix, w.Key, attempt)
		answer, err := l.quorate.GetAllocation(ctx, &quoratev1.GetAllocationRequest{Id: id})
		switch a := answer.GetAllocation(); {
		case reasonOf(err) == reasonNotFound:
			return l.readmitAs(ctx, w, attempt)
		case err != nil:
			return fmt.Errorf("looking for %s: %w", id, err)
		case l.book.isOurs(a) && rank(a) != endedRank:
			l.book.note(a, answer.GetRead().GetIndex(), answer.GetRead().GetLedgerTimeMs())
			l.Notify()
			return nil
		case l.book.isOurs(a) && a.GetFence() > 0 && l.isLastAttempt(ctx, w, attempt):
			return l.evictAll(ctx, w, describeEnd(a))
		}
	}
	return l.evictAll(ctx, w, "too many of its allocations have ended")
}

// isLastAttempt reports whether the servers know no later allocation of a work.
func (l *Loop) isLastAttempt(ctx context.Context, w *Work, attempt int) bool {
	_, err := l.quorate.GetAllocation(ctx,
		&quoratev1.GetAllocationRequest{Id: makeID(l.settings.Prefix, w.Key, attempt+1)})
	return reasonOf(err) == reasonNotFound
}

func (l *Loop) readmitAs(ctx context.Context, w *Work, attempt int) error {
	_, err := l.allocate(ctx, w, attempt, w.total(Open, Stopping), quoratev1.Mode_MODE_REJECT)
	decision, denied := client.DecisionOf(err)
	switch {
	case err == nil:
		l.Notify()
		return nil
	case denied:
		return l.evictAll(ctx, w, "it has no allocation, and does not fit: "+decision.GetExplanation())
	}
	return err
}

func (l *Loop) evictAll(ctx context.Context, w *Work, why string) error {
	var failures []error
	for _, a := range evict(*w, Grant{}, why) {
		failures = append(failures, l.act(ctx, w, a))
	}
	return errors.Join(failures...)
}

func describeEnd(a *quoratev1.Allocation) string {
	state := strings.ToLower(strings.TrimPrefix(a.GetState().String(), "ALLOCATION_STATE_"))
	text := "its allocation has ended: " + state
	if preemptor := a.GetPreemptedBy(); preemptor.GetId() != "" {
		text += " in favor of " + preemptor.GetId()
		if preemptor.GetNamespace() != a.GetNamespace() {
			text += " of " + preemptor.GetNamespace()
		}
	}
	return text
}

// release takes an allocation that the servers do not know as ended.
func (l *Loop) release(ctx context.Context, id string) error {
	answer, err := l.quorate.Release(ctx, &quoratev1.ReleaseRequest{Id: id})
	switch {
	case reasonOf(err) == reasonNotFound:
		l.book.forget(id)
		return nil
	case err != nil:
		return fmt.Errorf("releasing %s: %w", id, err)
	}
	l.book.note(answer.GetAllocation(), answer.GetWrite().GetIndex(), 0)
	return nil
}

// releaseIdle releases what a work holds once the scheduler itself says that nothing of it runs: the list may lag, and
// show a gate as closed that is open, or not show what has just been opened.
func (l *Loop) releaseIdle(ctx context.Context, key string, labels map[string]string, ids ...string) error {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	idle, err := l.source.IsIdle(ctx, key, labels)
	if err != nil {
		return fmt.Errorf("asking whether anything runs: %w", err)
	}
	if !idle {
		l.changePace(key, func(p *pace) { p.next = l.now().Add(firstPause) })
		return nil
	}
	for _, id := range ids {
		if err := l.release(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// releaseUnlisted releases what is held for work that the scheduler does not list.
func (l *Loop) releaseUnlisted(ctx context.Context, key string, labels map[string]string) error {
	var ids []string
	for _, g := range l.book.grants(key) {
		ids = append(ids, g.ID)
	}
	return l.releaseIdle(ctx, key, labels, ids...)
}

// keep renews a lease when a third of its time has passed, and tells users that the work was granted.
func (l *Loop) keep(ctx context.Context, w *Work, g Grant) error {
	kept, ttl := l.book.keptAt(g.ID)
	if ttl > 0 && l.now().Sub(kept) > ttl/3 {
		answer, err := l.quorate.Renew(ctx, &quoratev1.RenewRequest{Id: g.ID})
		if err != nil {
			return fmt.Errorf("renewing %s: %w", g.ID, err)
		}
		l.book.note(answer.GetAllocation(), answer.GetWrite().GetIndex(), answer.GetWrite().GetLedgerTimeMs())
		l.book.markKept(g.ID)
	}
	l.tell(ctx, w, Status{StatusGranted, "granted as " + g.ID})
	return nil
}

// tell shows users a status that has changed. A failure is logged and tried again in the next pass: it must not keep a
// gate closed. A changed position is told once in a refresh at most, because only repetitions bring one.
func (l *Loop) tell(ctx context.Context, w *Work, s Status) {
	s.Text = clip(s.Text)
	if l.paceOf(w.Key).lastTold == s {
		return
	}
	if err := l.source.Tell(ctx, *w, s); err != nil {
		if ctx.Err() == nil {
			l.settings.Log.Warn("users are not told how work stands", "key", w.Key, "error", err)
		}
		return
	}
	l.changePace(w.Key, func(p *pace) { p.lastTold = s })
}

// tellUnavailable tells users of all waiting work that Quorate does not answer.
func (l *Loop) tellUnavailable(ctx context.Context, cause error) {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	works, err := l.source.List(ctx)
	if err != nil {
		l.settings.Log.Warn("cannot list the work of the scheduler", "error", err)
	}
	for i := range works {
		if works[i].count(Closed) > 0 {
			l.tell(ctx, &works[i], Status{StatusFailed, unavailable(cause)})
		}
	}
}

func unavailable(err error) string { return "no server of Quorate answers: " + err.Error() }

func statusOf(answer *quoratev1.AllocateResponse) Status {
	a := answer.GetAllocation()
	if rank(a) > 0 {
		return Status{StatusGranted, "granted as " + a.GetId()}
	}
	text := answer.GetDecision().GetExplanation()
	if w := a.GetWaiting(); w.GetPosition() > 0 {
		text = fmt.Sprintf("position %d for %s; %s", w.GetPosition(), w.GetLine(), text)
	}
	return Status{StatusWaiting, text}
}

// clip cuts a text at MaxText bytes, between characters.
func clip(text string) string {
	if len(text) <= MaxText {
		return text
	}
	const dots = "…"
	cut := MaxText - len(dots)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + dots
}
