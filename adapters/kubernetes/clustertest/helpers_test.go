package clustertest

import "sigs.k8s.io/controller-runtime/pkg/client"

// now deletes without a grace period, as there is no kubelet that would end the pod.
var now = client.GracePeriodSeconds(0)
