package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/notify"
	"github.com/quorate/quorate/rpc/wire"
)

// WebhookService configures where events are delivered.
type WebhookService struct {
	Service

	// CheckURL refuses a receiver that this server does not deliver to; nil refuses all.
	CheckURL func(url string) error
}

// Types of events that are not about allocations.
const crossedType, clearedType, configuredType = "limit.crossed", "limit.cleared", "configuration.changed"

// nodeEventTypes are the types of events about nodes.
var nodeEventTypes = map[quota.EventKind]string{
	quota.EventLimitScheduled: "limit.scheduled", quota.EventLimitStarted: "limit.started",
	quota.EventLimitEnding: "limit.ending", quota.EventLimitEnded: "limit.ended",
	quota.EventLimitSkipped: "limit.skipped", quota.EventDrained: "node.drained",
}

// EventType is the type of an event for webhooks, such as "allocation.granted".
func EventType(e cluster.WatchEvent) string {
	switch e.Kind {
	case ledger.FactCrossed:
		return crossedType
	case ledger.FactCleared:
		return clearedType
	case ledger.FactConfigured:
		return configuredType
	case ledger.FactNode:
		return nodeEventTypes[e.Event.Kind]
	case ledger.FactWaiting, ledger.FactGranted, ledger.FactConfirmed, ledger.FactRevoked, ledger.FactEnded,
		ledger.FactRestored, ledger.FactShrunk, ledger.FactResized, ledger.FactResizeWaits, ledger.FactResizeDropped:
	}
	return eventTypeOf(AllocationChanges[e.Kind])
}

func eventTypeOf(change quoratev1.AllocationChangeKind) string {
	return "allocation." + strings.ToLower(strings.TrimPrefix(change.String(), "ALLOCATION_CHANGE_KIND_"))
}

func eventTypes() []string {
	list := append(slices.Collect(maps.Values(nodeEventTypes)), crossedType, clearedType, configuredType)
	for _, change := range AllocationChanges {
		list = append(list, eventTypeOf(change))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// EncodeEvent is an event for a webhook: the JSON of the message that a watch sends, without user data, which may be
// secret. That of a webhook with an owner has what the owner may see in this state; nil if that is nothing. The same
// event has the same bytes on all servers of a version, unless rights have changed meanwhile.
func EncodeEvent(v ledger.Reader, hook *quota.Webhook, e cluster.WatchEvent) ([]byte, error) {
	message := wholeMessage(&e)
	if hook.Owner != "" {
		reader, refused := v.ReaderOfUser(hook.Owner)
		if refused != nil {
			return nil, nil //nolint:nilerr // the account was disabled or deleted: it sees nothing
		}
		w := Watcher{filter: notify.Filter{Tree: hook.Tree, Node: hook.Node}}
		if message = w.shown(reader, &e); message == nil {
			return nil, nil
		}
	}
	if a := message.GetChange().GetAllocation(); a != nil {
		a.UserData = nil
	}
	text, err := protojson.Marshal(message)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer // protojson varies the white space from build to build
	err = json.Compact(&compact, text)
	return compact.Bytes(), err
}

func wholeMessage(e *cluster.WatchEvent) *quoratev1.WatchEventsResponse {
	message := placeMessage(e)
	switch {
	case e.Crossing != nil:
		message.Payload = crossingPayload(e)
	case e.Revision != nil:
		message.Payload = &quoratev1.WatchEventsResponse_Revision{Revision: wire.FromRevision(*e.Revision)}
	case e.Event != nil:
		message.Payload = eventPayload(e)
	case e.Allocation != nil:
		message.Payload = changePayload(e, e.Allocation.Info())
	}
	return message
}

// ListWebhooks lists all webhooks with how far they are.
func (s WebhookService) ListWebhooks(
	ctx context.Context, r *quoratev1beta1.ListWebhooksRequest,
) (*quoratev1beta1.ListWebhooksResponse, error) {
	page, err := wire.OpenPage(r, wire.DefaultShortPage)
	if err != nil {
		return nil, wire.ToError(err)
	}
	answer := &quoratev1beta1.ListWebhooksResponse{}
	read, err := s.readState(ctx, r.GetRead(), func(v ledger.Reader) error {
		hooks, next := wire.CutPage(page, slices.Values(v.Webhooks()), func(w *quota.Webhook) string { return w.Name })
		answer.NextPageToken = next
		for _, hook := range hooks {
			shown := s.fromWebhook(hook)
			if !v.ManagesWebhook(hook) {
				shown.Spec.Url = originOf(hook.URL)
			}
			answer.Webhooks = append(answer.Webhooks, shown)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer.Read = read
	return answer, nil
}

// originOf is a URL without path and query, which may be secret.
func originOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// fromWebhook includes what this node knows of the events that are not delivered yet.
func (s WebhookService) fromWebhook(hook *quota.Webhook) *quoratev1beta1.Webhook {
	shown := wire.FromWebhook(hook)
	page, err := s.Node.ReadFeed(cluster.Position{Index: hook.Cursor.Index, Number: hook.Cursor.Number}, 1)
	shown.Behind = int64(len(page.Events) + page.Behind)
	shown.Forgotten = cluster.ReasonOf(err) == cluster.Forgotten
	return shown
}

// SetWebhook adds or changes a webhook.
func (s WebhookService) SetWebhook(
	ctx context.Context, r *quoratev1beta1.SetWebhookRequest,
) (*quoratev1beta1.SetWebhookResponse, error) {
	command := quota.SetWebhook{WebhookSpec: wire.ToWebhookSpec(r.GetWebhook()), Reason: r.GetReason()}
	if err := s.refuseSetting(ctx, command); err != nil {
		return nil, err
	}
	known := eventTypes()
	for _, name := range command.Types {
		if !slices.Contains(known, name) {
			return nil, wire.ToError(wire.InvalidField("webhook.types", "there is no type of events %q; there are: %s",
				quota.Clip(name), strings.Join(known, ", ")))
		}
	}
	if err := s.checkURL(command.URL); err != nil {
		return nil, wire.ToError(wire.InvalidField("webhook.url", "%v", err))
	}
	present, err := s.presentPosition(ctx)
	if err != nil {
		return nil, err
	}
	command.After = present
	out, index, err := s.proposeOne(ctx, command)
	if err != nil {
		return nil, err
	}
	if out.Refused != nil {
		return nil, wire.RefusalError(out.Refused)
	}
	return &quoratev1beta1.SetWebhookResponse{Webhook: s.fromWebhook(out.Webhook), Write: fromWrite(out, index)}, nil
}

// refuseSetting hides the settings of the server from callers that may not set the webhook. The ledger asks again.
func (s WebhookService) refuseSetting(ctx context.Context, command quota.SetWebhook) error {
	refused, err := s.refuseEarly(ctx, []quota.Command{command})
	if err == nil && refused != nil {
		err = wire.RefusalError(refused.outcomes[0].Refused)
	}
	return err
}

func (s WebhookService) checkURL(url string) error {
	if s.CheckURL == nil {
		return errors.New("this server delivers no events")
	}
	return s.CheckURL(url)
}

func (s WebhookService) presentPosition(ctx context.Context) (quota.EventPosition, error) {
	info, err := s.Node.Read(ctx, cluster.ReadOptions{Stale: true}, func(ledger.Reader) {})
	if err != nil {
		return quota.EventPosition{}, wire.ToError(err)
	}
	return quota.EventPosition{Index: info.Index, Number: math.MaxUint32}, nil
}

// RemoveWebhook removes a webhook.
func (s WebhookService) RemoveWebhook(
	ctx context.Context, r *quoratev1beta1.RemoveWebhookRequest,
) (*quoratev1beta1.RemoveWebhookResponse, error) {
	out, index, err := s.manage(ctx, quota.ManageWebhook{
		Name: r.GetName(), Action: quota.RemoveWebhook, Reason: r.GetReason(),
	})
	if err != nil {
		return nil, err
	}
	return &quoratev1beta1.RemoveWebhookResponse{Webhook: s.fromWebhook(out.Webhook), Write: fromWrite(out, index)}, nil
}

// ResumeWebhook makes a dead webhook deliver again.
func (s WebhookService) ResumeWebhook(
	ctx context.Context, r *quoratev1beta1.ResumeWebhookRequest,
) (*quoratev1beta1.ResumeWebhookResponse, error) {
	command := quota.ManageWebhook{Name: r.GetName(), Action: quota.ResumeWebhook, Reason: r.GetReason()}
	after, err := s.resumePosition(ctx, r)
	if err != nil {
		return nil, err
	}
	command.After = after
	out, index, err := s.manage(ctx, command)
	if err != nil {
		return nil, err
	}
	return &quoratev1beta1.ResumeWebhookResponse{Webhook: s.fromWebhook(out.Webhook), Write: fromWrite(out, index)}, nil
}

// resumePosition is where a resumed webhook continues; nil for where it stopped.
func (s WebhookService) resumePosition(
	ctx context.Context, r *quoratev1beta1.ResumeWebhookRequest,
) (*quota.EventPosition, error) {
	if !r.GetFromNow() && r.GetAfter() == nil {
		return nil, nil
	}
	present, err := s.presentPosition(ctx)
	if err != nil || r.GetFromNow() {
		return &present, err
	}
	after := quota.EventPosition{Index: r.GetAfter().GetIndex(), Number: r.GetAfter().GetNumber()}
	if after.Number == 0 && after.Index > 0 {
		after.Number = math.MaxUint32
	}
	if after.Compare(present) > 0 {
		return nil, wire.ToError(wire.InvalidField("after.index",
			"the log ends at index %d; name a position in it", present.Index))
	}
	return &after, nil
}

func (s WebhookService) manage(ctx context.Context, command quota.ManageWebhook) (ledger.Outcome, uint64, error) {
	out, index, err := s.proposeOne(ctx, command)
	if err == nil && out.Refused != nil {
		err = wire.RefusalError(out.Refused)
	}
	return out, index, err
}
