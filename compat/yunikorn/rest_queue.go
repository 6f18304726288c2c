package yunikorn

import (
	"context"
	"math"
	"math/bits"
	"net/http"
	"strconv"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// queueInfo is the answer about a queue. What has no meaning here is empty, and written all the same if the original
// always writes it; sorting, templates and delays, which it leaves out when they are empty, are left out.
type queueInfo struct {
	QueueName              string            `json:"queuename"`
	Status                 string            `json:"status"`
	Partition              string            `json:"partition"` // of the top queue of the answer
	PendingResource        map[string]int64  `json:"pendingResource"`
	MaxResource            map[string]int64  `json:"maxResource"`
	GuaranteedResource     map[string]int64  `json:"guaranteedResource"`
	AllocatedResource      map[string]int64  `json:"allocatedResource"`
	PreemptingResource     map[string]int64  `json:"preemptingResource"`
	Headroom               map[string]int64  `json:"headroom"`
	IsLeaf                 bool              `json:"isLeaf"`
	IsManaged              bool              `json:"isManaged"`
	Properties             map[string]string `json:"properties"`
	Parent                 string            `json:"parent,omitempty"`
	Children               []*queueInfo      `json:"children"`
	ChildNames             []string          `json:"childNames"`
	AbsUsedCapacity        map[string]int64  `json:"absUsedCapacity"` // in percent of maxResource
	MaxRunningApps         int64             `json:"maxRunningApps,omitempty"`
	RunningApps            int64             `json:"runningApps,omitempty"`
	CurrentPriority        int32             `json:"currentPriority"`
	AllocatingAcceptedApps []string          `json:"allocatingAcceptedApps"`
	PrioritySorting        bool              `json:"prioritySorting"`
	PreemptionEnabled      bool              `json:"preemptionEnabled"`
	IsPreemptionFence      bool              `json:"isPreemptionFence"`
	IsPriorityFence        bool              `json:"isPriorityFence"`
}

func (s *server) handleQueues(r *http.Request) (any, error) {
	v, err := s.findView(r)
	if err != nil {
		return nil, err
	}
	return s.readQueue(r, v, "", true)
}

func (s *server) handleQueue(r *http.Request) (any, error) {
	name, readable := lastName(r)
	for part := range strings.SplitSeq(name, ".") {
		readable = readable && queueName().MatchString(part)
	}
	if !readable {
		return nil, &failure{http.StatusBadRequest, badQueue}
	}
	v, err := s.findView(r)
	if err != nil {
		return nil, err
	}
	path, found := v.pathOf(name)
	if !found {
		return nil, &failure{http.StatusNotFound, noQueue}
	}
	return s.readQueue(r, v, path, r.URL.Query().Has("subtree"))
}

// readQueue reads the usage of a queue, with those below it or without.
func (s *server) readQueue(r *http.Request, v *view, path string, subtree bool) (*queueInfo, error) {
	found, err := collectPages(
		r.Context(),
		func(ctx context.Context, token string) ([]*quoratev1.NodeUsage, string, error) {
			page, err := s.trees.GetUsage(ctx, &quoratev1.GetUsageRequest{
				Tree: v.tree, Node: path, Subtree: subtree, PageSize: pageSize, PageToken: token,
			})
			return page.GetNodes(), page.GetNextPageToken(), err
		},
	)
	if err != nil {
		return nil, err
	}
	usage := map[string]*quoratev1.NodeUsage{}
	for _, node := range found {
		usage[node.GetNode()] = node
	}
	top := v.queueInfoOf(path, usage, subtree)
	top.Partition = r.PathValue("partition")
	return top, nil
}

func (v *view) queueInfoOf(path string, usage map[string]*quoratev1.NodeUsage, subtree bool) *queueInfo {
	node := usage[path] // nil, which reads as nothing, if the node has gone meanwhile
	q := &queueInfo{
		QueueName: v.queues[path], Status: "Active", IsManaged: true, CurrentPriority: math.MinInt32,
		PendingResource: map[string]int64{}, PreemptingResource: map[string]int64{}, MaxResource: map[string]int64{},
		AllocatedResource: map[string]int64{}, Headroom: map[string]int64{}, AbsUsedCapacity: map[string]int64{},
		GuaranteedResource: guaranteedIn(v.nodes[path].GetLabels()[LabelGuaranteed]), Properties: map[string]string{},
		IsLeaf: len(v.below[path]) == 0, Children: []*queueInfo{}, ChildNames: []string{},
		AllocatingAcceptedApps: []string{},
		MaxRunningApps:         node.GetMaxApplications().GetAmount(), RunningApps: node.GetRunningApplications(),
	}
	if path != "" {
		parent, _ := splitPath(path)
		q.Parent = v.queues[parent]
	}
	for _, r := range node.GetResources() {
		q.addUsage(r)
	}
	for _, child := range v.below[path] {
		q.ChildNames = append(q.ChildNames, v.queues[child])
		if subtree {
			q.Children = append(q.Children, v.queueInfoOf(child, usage, true))
		}
	}
	return q
}

func (q *queueInfo) addUsage(r *quoratev1.ResourceUsage) {
	name := r.GetResource()
	if r.GetSubtree() != 0 {
		q.AllocatedResource[name] = r.GetSubtree()
	}
	if r.Headroom != nil {
		q.Headroom[name] = r.GetHeadroom()
	}
	if most, limited := r.GetLimit().GetValue().(*quoratev1.Limit_Amount); limited {
		q.MaxResource[name] = most.Amount
		if most.Amount > 0 {
			q.AbsUsedCapacity[name] = percentOf(r.GetSubtree(), most.Amount)
		}
	}
}

// percentOf is how much of a positive whole a part is, rounded down; at most what an int64 holds.
func percentOf(part, whole int64) int64 {
	high, low := bits.Mul64(uint64(part), 100)
	if high >= uint64(whole) {
		return math.MaxInt64
	}
	result, _ := bits.Div64(high, low, uint64(whole))
	return int64(min(result, math.MaxInt64))
}

// guaranteedIn reads the label of a converted node. A label that was edited is read as far as possible.
func guaranteedIn(text string) map[string]int64 {
	given := map[string]int64{}
	for word := range strings.FieldsSeq(text) {
		kind, amount, _ := strings.Cut(word, "=")
		if n, err := strconv.ParseInt(amount, 10, 64); err == nil {
			given[kind] = n
		}
	}
	return given
}
