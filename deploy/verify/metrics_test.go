package verify

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	klabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// portNumber is 0 if the name is not in the list.
func portNumber(ports []corev1.ServicePort, name string) int32 {
	for _, p := range ports {
		if p.Name == name {
			return p.Port
		}
	}
	return 0
}

// scraped are the services that a ServiceMonitor selects, and its endpoint.
func scraped(t *testing.T, all map[string]*unstructured.Unstructured) ([]string, map[string]any) {
	t.Helper()
	monitor := all["ServiceMonitor/quorate"].Object
	labels, _, err := unstructured.NestedStringMap(monitor, "spec", "selector", "matchLabels")
	if err != nil || len(labels) == 0 {
		t.Fatalf("labels %v, %v", labels, err)
	}
	var services []string
	for key, object := range all {
		if strings.HasPrefix(key, "Service/") && klabels.SelectorFromSet(labels).Matches(klabels.Set(object.GetLabels())) {
			services = append(services, key)
		}
	}
	endpoints, _, err := unstructured.NestedSlice(monitor, "spec", "endpoints")
	if err != nil || len(endpoints) != 1 {
		t.Fatalf("endpoints %v, %v", endpoints, err)
	}
	return services, endpoints[0].(map[string]any)
}

// admittedTo is nil if no rule of the policy has the port.
func admittedTo(t *testing.T, all map[string]*unstructured.Unstructured, port int) []networkingv1.NetworkPolicyPeer {
	t.Helper()
	policy := &networkingv1.NetworkPolicy{}
	convert(t, all["NetworkPolicy/quorate"], policy)
	for _, rule := range policy.Spec.Ingress {
		for _, p := range rule.Ports {
			if *p.Port != intstr.FromInt(port) {
				continue
			}
			if len(rule.From) == 0 {
				t.Errorf("all reach the port %d", port)
			}
			return rule.From
		}
	}
	return nil
}

// TestMetricsPort: the port of the metrics is in the pods and in the headless service, only named sources reach it, and
// Prometheus needs no credential there.
func TestMetricsPort(t *testing.T) {
	all := release{values: "serviceMonitor: {enabled: true, tokenSecret: {name: prometheus}}"}.objects(t)
	headless, clients := &corev1.Service{}, &corev1.Service{}
	convert(t, all["Service/quorate-headless"], headless)
	convert(t, all["Service/quorate"], clients)
	if a, b := portNumber(headless.Spec.Ports, "metrics"), portNumber(clients.Spec.Ports, "metrics"); a != 7401 || b != 0 {
		t.Errorf("the port is %d of the headless service, and %d of that of the clients", a, b)
	}
	ports := statefulSet(t, release{}).Spec.Template.Spec.Containers[0].Ports
	if !slices.Contains(ports, corev1.ContainerPort{Name: "metrics", ContainerPort: 7401}) {
		t.Errorf("ports of the pods: %v", ports)
	}
	services, endpoint := scraped(t, all)
	if !slices.Equal(services, []string{"Service/quorate-headless"}) || endpoint["port"] != "metrics" ||
		endpoint["scheme"] != "http" || endpoint["authorization"] != nil || endpoint["tlsConfig"] != nil {
		t.Errorf("scrapes %v: %v", services, endpoint)
	}
	if from := admittedTo(t, all, 7401); len(from) != 1 ||
		from[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "monitoring" {
		t.Errorf("sources %v", from)
	}
	if from := admittedTo(t, release{values: "networkPolicy: {monitoring: []}"}.objects(t), 7401); from != nil {
		t.Errorf("without a source in the values, the policy has %v", from)
	}
}

// TestWithoutMetricsPort: nothing has the port, and Prometheus scrapes the API with its authority and a token.
func TestWithoutMetricsPort(t *testing.T) {
	r := release{values: "metrics: {enabled: false}\nnetworkPolicy: {monitoring: []}\n" +
		"serviceMonitor: {enabled: true, tokenSecret: {name: prometheus}}"}
	if text := r.manifest(t); strings.Contains(text, "7401") || strings.Contains(text, "metrics-addr") {
		t.Errorf("the port is rendered:\n%s", text)
	}
	services, endpoint := scraped(t, r.objects(t))
	name, _, err := unstructured.NestedString(endpoint, "authorization", "credentials", "name")
	if !slices.Equal(services, []string{"Service/quorate"}) || endpoint["port"] != "api" ||
		endpoint["scheme"] != "https" || endpoint["tlsConfig"] == nil || err != nil || name != "prometheus" {
		t.Errorf("scrapes %v: %v", services, endpoint)
	}
}

// TestScrapedLabels: Prometheus gives all series the labels that the alerts select by.
func TestScrapedLabels(t *testing.T) {
	for _, values := range []string{"", "metrics: {enabled: false}\n"} {
		r := release{values: values + "clusterName: \"1\"\nserviceMonitor: {enabled: true}"}
		_, endpoint := scraped(t, r.objects(t))
		labels := map[any]any{}
		for _, rule := range endpoint["relabelings"].([]any) {
			labels[rule.(map[string]any)["targetLabel"]] = rule.(map[string]any)["replacement"]
		}
		want := map[any]any{"job": "quorate", "cluster": "1"}
		if !maps.Equal(labels, want) || endpoint["honorLabels"] != true {
			t.Errorf("%q: labels %v, honored: %v", values, labels, endpoint["honorLabels"])
		}
	}
}

// TestNotesOfMetrics: what an installation prints says who reaches the port.
func TestNotesOfMetrics(t *testing.T) {
	for values, says := range map[string]string{
		"":                                "The sources in networkPolicy.monitoring reach it.\n\nThe claims",
		"networkPolicy: {monitoring: []}": "networkPolicy.monitoring is empty.\n\nThe claims",
		"networkPolicy: {enabled: false}": "every pod can read them.\n\nThe claims",
		"metrics: {enabled: false}":       " 7101\n\nThe claims",
	} {
		files, err := release{values: values}.render()
		if err != nil {
			t.Fatal(err)
		}
		if notes := files["quorate/templates/NOTES.txt"]; !strings.Contains(notes, says) {
			t.Errorf("%s: the notes do not say %q:\n%s", values, says, notes)
		}
	}
}
