package quota

import (
	"fmt"
	"maps"
	"slices"
)

// JQuotaTree is a QuotaTree document.
type JQuotaTree struct {
	Kind     string    `json:"kind"`
	MetaData JMetaData `json:"metadata"`
	Spec     JTreeSpec `json:"spec"`
}

// JMetaData is the metadata of a document.
type JMetaData struct {
	Name string `json:"name"`
}

// JTreeSpec is the part of a QuotaTree document that describes the tree.
type JTreeSpec struct {
	ResourceNames []string             `json:"resourceNames"`
	Nodes         map[string]JNodeSpec `json:"nodes"`
}

// JNodeSpec describes one node.
type JNodeSpec struct {
	// Parent is the name of the parent; empty or "nil" for the root.
	Parent string `json:"parent"`
	// Quota is the limits by resource, as texts.
	Quota map[string]string `json:"quota"`
	// Hard is "true" if claims that do not fit may not borrow further up.
	Hard string `json:"hard"`
}

// JTreeInfo is the name of a tree and its resources.
type JTreeInfo struct {
	Name          string   `json:"name"`
	ResourceNames []string `json:"resourceNames"`
}

// JConsumer is a Consumer document.
type JConsumer struct {
	Kind     string        `json:"kind"`
	MetaData JMetaData     `json:"metadata"`
	Spec     JConsumerSpec `json:"spec"`
}

// JConsumerSpec describes a consumer.
type JConsumerSpec struct {
	ID    string              `json:"id"`
	Trees []JConsumerTreeSpec `json:"trees"`
}

// JConsumerTreeSpec is what a consumer requests on one tree.
type JConsumerTreeSpec struct {
	// ID is not used.
	ID            string         `json:"id"`
	TreeName      string         `json:"treeName"`
	GroupID       string         `json:"groupID"`
	Request       map[string]int `json:"request"`
	Priority      int            `json:"priority"`
	CType         int            `json:"type"`
	UnPreemptable bool           `json:"unPreemptable"`
}

// AllocationResponse answers a call that allocates.
type AllocationResponse struct {
	consumerID string
	message    string
	fence      uint64
	preempted  map[string]bool
}

// GetConsumerID returns the id of the consumer.
func (r *AllocationResponse) GetConsumerID() string { return r.consumerID }

// IsAllocated is always true: a consumer that is not allocated is an error of the call.
func (r *AllocationResponse) IsAllocated() bool { return true }

// GetMessage explains the decision.
func (r *AllocationResponse) GetMessage() string { return r.message }

// GetPreemptedIds returns the ids of the consumers that were preempted, each once, sorted.
func (r *AllocationResponse) GetPreemptedIds() []string { //nolint:revive // the name is the library's
	return slices.Sorted(maps.Keys(r.preempted))
}

// String shows the answer.
func (r *AllocationResponse) String() string {
	return fmt.Sprintf("AllocationResponse: consumer=%s; allocated=true; message=%q; preemptedIds=%v\n", r.consumerID,
		r.message, r.GetPreemptedIds())
}

// TreeCacheCreateResponse says what became of the nodes of a TreeCache.
type TreeCacheCreateResponse struct {
	// TreeName is the name of the tree.
	TreeName string
	// RootNodeName is the name of the root; empty if there is none.
	RootNodeName string
	// DanglingNodeNames are the nodes that are left out because no path of parents leads to the root, sorted.
	DanglingNodeNames []string
}

// IsClean reports whether the tree has a root and all nodes.
func (r *TreeCacheCreateResponse) IsClean() bool {
	return r.RootNodeName != "" && len(r.DanglingNodeNames) == 0
}

// String shows the response.
func (r *TreeCacheCreateResponse) String() string {
	return fmt.Sprintf("Response: {TreeName=%s; RootNodeName=%q; DanglingNodeNames=%s}", r.TreeName, r.RootNodeName,
		r.DanglingNodeNames)
}
