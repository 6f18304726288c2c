package wire

import (
	"github.com/quorate/quorate/cluster"
	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
)

// NoticeToWire is what a leader sends. It does not contain From, which the called node takes from the certificate.
func NoticeToWire(notice cluster.Notice) *peerv1.NotifyRequest {
	return &peerv1.NotifyRequest{
		LeaderId: notice.Leader, Instance: notice.Instance, Candidate: notice.PromoteWhenStable, Index: notice.Index,
	}
}

// NoticeFromWire is the notice of a caller whose certificate names the node from; empty in plain text.
func NoticeFromWire(r *peerv1.NotifyRequest, from string) cluster.Notice {
	return cluster.Notice{
		Leader: r.GetLeaderId(), From: from, Instance: r.GetInstance(), PromoteWhenStable: r.GetCandidate(),
		Index: r.GetIndex(),
	}
}
