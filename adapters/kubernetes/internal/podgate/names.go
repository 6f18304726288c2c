// Package podgate makes work of Quorate out of pods: the webhook that closes their gate, and the source of the loop.
package podgate

// The names that users and operators write, and that this adapter writes. docs/with-kubernetes.md explains them.
const (
	// Gate is the scheduling gate that keeps a pod from the scheduler.
	Gate = "quorate.io/quota"
	// NamespaceLabel with the value Enabled opts a namespace in.
	NamespaceLabel = "quorate.io/gate"
	// Enabled is the value of NamespaceLabel.
	Enabled = "enabled"
	// NodeAnnotation is the node, as TREE or TREE:PATH, that pods are counted at: of a namespace for all its pods, of a
	// pod for itself, at the node of its namespace or below. The webhook writes it to every gated pod.
	NodeAnnotation = "quorate.io/node"
	// PodLabel marks the pods that the webhook has gated; its value is PodLabelValue.
	PodLabel = "quorate.io/quota"
	// PodLabelValue is the value of PodLabel.
	PodLabelValue = "gated"
	// UserAnnotation is the user that a pod counts for.
	UserAnnotation = "quorate.io/user"
	// ApplicationLabel is the application that a pod belongs to.
	ApplicationLabel = "quorate.io/application"
	// GroupLabel names the group of a pod: all its pods are granted together.
	GroupLabel = "quorate.io/group"
	// GroupSizeAnnotation is how many pods the group has.
	GroupSizeAnnotation = "quorate.io/group-size"
	// ConditionType is the condition of a pod that says how its request stands.
	ConditionType = "quorate.io/QuotaGranted"
)

// MaxGroupSize bounds the pods of a group.
const MaxGroupSize = 1000

// The labels of allocations.
const (
	labelNamespace = "kubernetes/namespace"
	labelPod       = "kubernetes/pod"
	labelGroup     = "kubernetes/group"
	// LabelCluster has the UID of the namespace kube-system, so that two clusters with one name leave each other alone.
	LabelCluster = "kubernetes/cluster-uid"
)
