package podgate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/adapters/gate"
)

// Source is the gated pods of a cluster as work of the loop.
type Source struct {
	// Pods reads pods from a copy that may lag.
	Pods client.Reader
	// Live reads from the API server.
	Live client.Reader
	// API changes pods.
	API client.Client
	// Events tells users what happens to their pods.
	Events events.EventRecorder
	// Mapping tells which requests are counted.
	Mapping Mapping
}

var _ gate.Source = (*Source)(nil)

// List implements gate.Source.
func (s *Source) List(ctx context.Context) ([]gate.Work, error) {
	var list corev1.PodList
	if err := s.Pods.List(ctx, &list, client.MatchingLabels{PodLabel: PodLabelValue}); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return works(pods, s.Mapping), nil
}

// IsIdle implements gate.Source.
func (s *Source) IsIdle(ctx context.Context, key string, labels map[string]string) (bool, error) {
	namespace, group := labels[labelNamespace], labels[labelGroup]
	if namespace == "" {
		return false, fmt.Errorf("the allocation of %s has no label %s", key, labelNamespace)
	}
	var list corev1.PodList
	if group == "" {
		var pod corev1.Pod
		err := s.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: labels[labelPod]}, &pod)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return false, fmt.Errorf("reading the pod: %w", err)
		default:
			list.Items = append(list.Items, pod)
		}
	} else if err := s.Live.List(ctx, &list, client.InNamespace(namespace),
		client.MatchingLabels{PodLabel: PodLabelValue, GroupLabel: group}); err != nil {
		return false, fmt.Errorf("listing the pods of the group: %w", err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if state := stateOf(pod); workKey(pod) == key && (state == gate.Open || state == gate.Stopping) {
			return false, nil
		}
	}
	return true, nil
}

// find returns the pod as the copy has it; nil if that is gone.
func (s *Source) find(ctx context.Context, from client.Reader, m gate.Member) (*corev1.Pod, error) {
	namespace, name, uid, err := parseMemberKey(m.Key)
	if err != nil {
		return nil, err
	}
	var pod corev1.Pod
	err = from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &pod)
	switch {
	case apierrors.IsNotFound(err) || err == nil && string(pod.UID) != uid:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the pod: %w", err)
	}
	return &pod, nil
}

// Open implements gate.Source: it removes the gate. The patch names the pod and the gate that it expects, so that it
// cannot remove another gate, or that of a later pod of the same name.
func (s *Source) Open(ctx context.Context, _ gate.Work, m gate.Member) error {
	var failure error
	for _, reader := range []client.Reader{s.Pods, s.Live} { // the copy may lag
		pod, err := s.find(ctx, reader, m)
		if err != nil || pod == nil || !isClosed(pod) || pod.DeletionTimestamp != nil {
			return err
		}
		if failure = s.removeGate(ctx, pod); failure == nil {
			return nil
		}
	}
	return failure
}

func (s *Source) removeGate(ctx context.Context, pod *corev1.Pod) error {
	at := fmt.Sprintf("/spec/schedulingGates/%d", gateIndex(pod))
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": string(pod.UID)},
		{"op": "test", "path": at + "/name", "value": Gate},
		{"op": "remove", "path": at},
	})
	if err != nil {
		return fmt.Errorf("making the patch: %w", err)
	}
	if err := s.API.Patch(ctx, pod, client.RawPatch(types.JSONPatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the gate: %w", err)
	}
	return nil
}

// killMargin is the time before the end of a grant at which pods must have ended.
const killMargin = 2 * time.Second

// Evict implements gate.Source. It asks for an eviction, which disruption budgets may refuse, as long as the pod still
// has its whole grace period before the end of the grant. Then it deletes the pod.
func (s *Source) Evict(ctx context.Context, _ gate.Work, m gate.Member, until time.Time, why string) error {
	pod, err := s.find(ctx, s.Live, m)
	if err != nil || pod == nil || pod.DeletionTimestamp != nil {
		return err
	}
	period, patient := evictionPeriod(pod, until, time.Now())
	options := metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(pod.UID)), GracePeriodSeconds: &period,
	}
	s.Events.Eventf(pod, nil, corev1.EventTypeWarning, "QuotaRevoked", "Evicting", "%s", why)
	err = s.API.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &options,
	})
	if apierrors.IsTooManyRequests(err) && !patient {
		err = s.API.Delete(ctx, pod, &client.DeleteOptions{Raw: &options})
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("evicting the pod: %w", err)
}

// evictionPeriod returns the grace period in seconds that fits before the end of a grant, and whether there is time to
// wait for a disruption budget.
func evictionPeriod(pod *corev1.Pod, until, now time.Time) (seconds int64, patient bool) {
	seconds = corev1.DefaultTerminationGracePeriodSeconds
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	if until.IsZero() {
		return seconds, false // the capacity is gone already; the containers still end in order
	}
	left := int64((until.Sub(now) - killMargin) / time.Second)
	return max(1, min(seconds, left)), left > seconds+int64(killMargin/time.Second)
}

// Tell implements gate.Source: it sets the condition of all pods that have not ended, and makes an event when its
// reason has changed.
func (s *Source) Tell(ctx context.Context, w gate.Work, status gate.Status) error {
	for _, m := range w.Members {
		if m.State == gate.Ended || m.State == gate.Stopping {
			continue
		}
		pod, err := s.find(ctx, s.Pods, m)
		if err != nil {
			return err
		}
		if pod == nil {
			continue
		}
		if err := s.tellPod(ctx, pod, status); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) tellPod(ctx context.Context, pod *corev1.Pod, status gate.Status) error {
	updated := condition(status)
	previous := findCondition(pod)
	if previous != nil && previous.Status == updated.Status && previous.Reason == updated.Reason &&
		previous.Message == updated.Message {
		return nil
	}
	if previous == nil || previous.Reason != updated.Reason {
		kind := corev1.EventTypeNormal
		if status.Kind == gate.StatusDenied || status.Kind == gate.StatusFailed {
			kind = corev1.EventTypeWarning
		}
		s.Events.Eventf(pod, nil, kind, updated.Reason, "Requesting", "%s", updated.Message)
	}
	if previous != nil && previous.Status == updated.Status {
		updated.LastTransitionTime = previous.LastTransitionTime
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID}, // so that it does not reach a later pod of the same name
		"status":   map[string]any{"conditions": []corev1.PodCondition{updated}},
	})
	if err != nil {
		return fmt.Errorf("making the patch: %w", err)
	}
	err = s.API.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch))
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("setting the condition: %w", err)
}

func findCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == ConditionType {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func condition(status gate.Status) corev1.PodCondition {
	c := corev1.PodCondition{
		Type: ConditionType, Status: corev1.ConditionFalse, Message: status.Text, LastTransitionTime: metav1.Now(),
	}
	switch status.Kind {
	case gate.StatusIncomplete:
		c.Reason = "QuotaGroupIncomplete"
	case gate.StatusWaiting:
		c.Reason = "QuotaWaiting"
	case gate.StatusDenied:
		c.Reason = "QuotaDenied"
	case gate.StatusFailed:
		c.Reason = "QuotaRequestFailed"
	case gate.StatusGranted:
		c.Status, c.Reason = corev1.ConditionTrue, "QuotaGranted"
	}
	return c
}
