package podgate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Stamper is the webhook: it closes the gate of new pods, and writes down what they count for. It calls no server of
// Quorate, so that pods can be created while none answers.
type Stamper struct {
	// Namespaces reads namespaces from a copy that may lag.
	Namespaces client.Reader
	// Live reads a namespace whose copy has no node yet.
	Live client.Reader
	// Mapping tells which requests are counted.
	Mapping Mapping
	// Trusted are users, and groups as "group:NAME", whose pods may name another user: controllers that create pods for
	// others.
	Trusted []string
}

// DefaultTrusted are the controllers of Kubernetes itself.
func DefaultTrusted() []string { return []string{"group:system:serviceaccounts:kube-system"} }

// Default implements admission.Defaulter.
func (s *Stamper) Default(ctx context.Context, pod *corev1.Pod) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	node, err := s.nodeOf(ctx, request.Namespace)
	if err != nil {
		return err
	}
	return s.stamp(pod, node, request.UserInfo)
}

func (s *Stamper) nodeOf(ctx context.Context, name string) (string, error) {
	var namespace corev1.Namespace
	for _, reader := range []client.Reader{s.Namespaces, s.Live} {
		if err := reader.Get(ctx, types.NamespacedName{Name: name}, &namespace); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue // the copy may lag
			}
			return "", fmt.Errorf("reading the namespace: %w", err)
		}
		if node := namespace.Annotations[NodeAnnotation]; node != "" {
			_, _, err := parseNode(node)
			return node, err
		}
	}
	return "", fmt.Errorf("the namespace %s has the label %s=%s, and no annotation %s that names the node of its pods",
		name, NamespaceLabel, Enabled, NodeAnnotation)
}

// stamp closes the gate of a pod. Its errors can be corrected by the author of the pod.
func (s *Stamper) stamp(pod *corev1.Pod, namespaceNode string, author authenticationv1.UserInfo) error {
	annotations := pod.Annotations
	node := namespaceNode
	if wanted := annotations[NodeAnnotation]; wanted != "" {
		if _, _, err := parseNode(wanted); err != nil {
			return err
		}
		if !isWithin(wanted, namespaceNode) {
			return fmt.Errorf("%s: %s is not at or below %s, the node of the namespace", NodeAnnotation, wanted, namespaceNode)
		}
		node = wanted
	}
	user := author.Username
	if s.trusts(author) {
		user = annotations[UserAnnotation]
	} else if named := annotations[UserAnnotation]; named != "" && named != user {
		return fmt.Errorf("%s: %s may not create pods for the user %s", UserAnnotation, user, named)
	}
	if len(user) > 256 {
		return fmt.Errorf("%s: the name has %d bytes; 256 are allowed", UserAnnotation, len(user))
	}
	if pod.Labels[ApplicationLabel] != "" && user == "" {
		return fmt.Errorf("%s: an application needs a user: set the annotation %s too", ApplicationLabel, UserAnnotation)
	}
	if err := checkGroup(pod); err != nil {
		return err
	}
	if len(s.Mapping.Amounts(pod)) == 0 {
		return fmt.Errorf("the pod requests nothing that is counted here (%s): set resources.requests of its containers",
			s.Mapping.names())
	}
	s.mark(pod, node, user)
	return nil
}

// trusts reports whether an author may name the users of pods.
func (s *Stamper) trusts(author authenticationv1.UserInfo) bool {
	return slices.ContainsFunc(s.Trusted, func(name string) bool {
		group, isGroup := strings.CutPrefix(name, "group:")
		return isGroup && slices.Contains(author.Groups, group) || !isGroup && name == author.Username
	})
}

func checkGroup(pod *corev1.Pod) error {
	group, size := pod.Labels[GroupLabel], pod.Annotations[GroupSizeAnnotation]
	switch number, err := strconv.Atoi(size); {
	case group == "" && size == "":
		return nil
	case group == "":
		return fmt.Errorf("%s: set the label %s too, which names the group", GroupSizeAnnotation, GroupLabel)
	case err != nil || number < 1 || number > MaxGroupSize:
		return fmt.Errorf("%s: %q is not a number of pods from 1 to %d", GroupSizeAnnotation, size, MaxGroupSize)
	}
	return nil
}

func (s *Stamper) mark(pod *corev1.Pod, node, user string) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[PodLabel] = PodLabelValue
	pod.Annotations[NodeAnnotation] = node
	pod.Annotations[UserAnnotation] = user
	if user == "" {
		delete(pod.Annotations, UserAnnotation)
	}
	if !isClosed(pod) {
		pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: Gate})
	}
}

func isClosed(pod *corev1.Pod) bool { return gateIndex(pod) >= 0 }

// gateIndex returns -1 if the pod has no gate of ours.
func gateIndex(pod *corev1.Pod) int {
	return slices.IndexFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == Gate })
}
