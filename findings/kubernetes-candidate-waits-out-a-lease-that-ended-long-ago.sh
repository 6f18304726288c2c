#!/usr/bin/env bash
# One would believe: a candidate for a leader's Lease in Kubernetes takes it at once if its renewTime plus its
# leaseDurationSeconds is over, and never takes it from a holder that has renewed it just now.
# What happens (k8s.io/client-go v0.37.2, leaderelection): the times in the record do not count. A candidate that has
# just started waits for the whole duration from the moment when it first saw the record, although the holder was last
# heard of an hour ago; and one with the identity of the holder, such as a second process on the same host, leads at
# once beside it.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module finding

go 1.26

require (
	k8s.io/api v0.37.2
	k8s.io/apimachinery v0.37.2
	k8s.io/client-go v0.37.2
)
MOD
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const duration = 6 * time.Second

// wait is how long a candidate that has just started waits for a lease that its holder renewed some time ago.
func wait(holder, candidate string, renewed time.Duration) time.Duration {
	seconds, at := int32(duration.Seconds()), meta.NewMicroTime(time.Now().Add(-renewed))
	name := meta.ObjectMeta{Namespace: "default", Name: "lock"}
	client := fake.NewSimpleClientset(&coordination.Lease{ObjectMeta: name, Spec: coordination.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &at, RenewTime: &at,
	}})
	ctx, cancel := context.WithCancel(context.Background())
	begin, waited := time.Now(), time.Duration(0)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: name, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: candidate},
		},
		LeaseDuration: duration, RenewDeadline: duration / 2, RetryPeriod: duration / 30,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { waited = time.Since(begin); cancel() },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	elector.Run(ctx)
	return waited
}

func main() {
	old, own := wait("gone", "new", time.Hour), wait("same", "same", 0)
	log.Println("waited for a lease of 6 s that was renewed an hour ago:", old)
	log.Println("waited for a lease of the same identity that was renewed just now:", own)
	fmt.Println("the ended lease is waited out:", old >= duration-duration/10)
	fmt.Println("the present one of the same name is not:", own < duration/2)
}
GO
go mod tidy >/dev/null 2>&1
go run . 2>log | tee seen || { cat log; exit 1; }
grep waited log
diff - seen <<'SEEN'
the ended lease is waited out: true
the present one of the same name is not: true
SEEN
echo "as described"
