package podgate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/adapters/gate"
)

func works(pods []*corev1.Pod, mapping Mapping) []gate.Work {
	byKey := map[string][]*corev1.Pod{}
	for _, pod := range pods {
		byKey[workKey(pod)] = append(byKey[workKey(pod)], pod)
	}
	made := make([]gate.Work, 0, len(byKey))
	for key, members := range byKey {
		slices.SortFunc(members, func(a, b *corev1.Pod) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
		})
		made = append(made, makeWork(key, members, mapping))
	}
	return made
}

// workKey is the uid of a pod, or for a group a digest of its namespace and name, which can be too long for an id.
func workKey(pod *corev1.Pod) string {
	group := pod.Labels[GroupLabel]
	if group == "" {
		return string(pod.UID)
	}
	return groupKey(pod.Namespace, group)
}

func groupKey(namespace, group string) string {
	digest := sha256.Sum256([]byte(namespace + "/" + group))
	return "group-" + hex.EncodeToString(digest[:16])
}

// makeWork makes one work. The pods of a group have one principal and priority, those of the first.
func makeWork(key string, pods []*corev1.Pod, mapping Mapping) gate.Work {
	first := pods[0]
	w := gate.Work{
		Key: key, Wanted: 1, User: first.Annotations[UserAnnotation], Application: first.Labels[ApplicationLabel],
		Labels: map[string]string{labelNamespace: first.Namespace, labelPod: first.Name},
	}
	if first.Spec.Priority != nil {
		w.Priority = int64(*first.Spec.Priority)
	}
	if group := first.Labels[GroupLabel]; group != "" {
		w.Labels = map[string]string{labelNamespace: first.Namespace, labelGroup: group}
	}
	for _, pod := range pods {
		tree, node, err := parseNode(pod.Annotations[NodeAnnotation])
		switch size, malformed := strconv.Atoi(pod.Annotations[GroupSizeAnnotation]); {
		case err != nil:
			w.Problem = err.Error()
		case pod.Labels[GroupLabel] == "":
		case malformed != nil:
			w.Problem = fmt.Sprintf("%s of the pod %s is not a number", GroupSizeAnnotation, pod.Name)
		default:
			w.Wanted = max(w.Wanted, size)
		}
		if pod.Annotations[UserAnnotation] != w.User || pod.Labels[ApplicationLabel] != w.Application {
			w.Problem = fmt.Sprintf("the pods %s and %s of the group have different users or applications",
				first.Name, pod.Name)
		}
		w.Members = append(w.Members, gate.Member{
			Key: memberKey(pod), State: stateOf(pod), Claims: mapping.claims(pod, tree, node),
		})
	}
	return w
}

// stateOf takes a pod that is deleted before it was opened as one that never runs.
func stateOf(pod *corev1.Pod) gate.MemberState {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return gate.Ended
	case isClosed(pod) && pod.DeletionTimestamp != nil:
		return gate.Ended
	case isClosed(pod):
		return gate.Closed
	case pod.DeletionTimestamp != nil:
		return gate.Stopping
	}
	return gate.Open
}

// memberKey is NAMESPACE/NAME/UID.
func memberKey(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name + "/" + string(pod.UID) }

func parseMemberKey(key string) (namespace, name, uid string, err error) {
	parts := strings.Split(key, "/")
	if len(parts) != 3 {
		return "", "", "", fmt.Errorf("%q is not NAMESPACE/NAME/UID", key)
	}
	return parts[0], parts[1], parts[2], nil
}
