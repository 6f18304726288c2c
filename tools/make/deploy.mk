##@ Packages, images and adapters

.PHONY: package release pin-client verify-package licences fixture image verify-image deploy-tools kubernetes-servers
.PHONY: verify-chart dashboards prometheus verify-metrics adapters-test verify-adapters verify-kubernetes openstack
.PHONY: verify-openstack original

# The version that the next release has; packages of commits before it are development versions of it.
export NEXT_VERSION := 1.0.0
package release: export COMMIT := $(COMMIT)
package release: export DATE := $(DATE)
package release: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null)
package: $(BIN)/goreleaser $(BIN)/cyclonedx-gomod sdk-typescript ## build all files of a release into .cache/package; publishes nothing
	goreleaser release --snapshot --clean

release: $(BIN)/goreleaser $(BIN)/cyclonedx-gomod sdk-typescript #: make a draft of a release from the tag of this commit; see CONTRIBUTING.md
	goreleaser release --clean

# go install refuses a program whose go.mod replaces a module, so the commit of a release has no replace.
pin-client: #: let go.mod require the released client of VERSION=v1.0.0 in place of the one in this clone
	@[ "$(origin VERSION)" = "command line" ] || { echo "make pin-client needs VERSION=v1.0.0"; exit 2; }
	go mod edit -dropreplace=github.com/quorate/quorate/client -require=github.com/quorate/quorate/client@$(VERSION)
	go mod tidy

verify-package: package #: install, start, upgrade and remove the packages in clean roots; needs Debian and root
	deploy/package/install.sh
	QUORATE_PACKAGES=require go test -count=1 -timeout 20m -v ./deploy/package

licences: web/ui/node_modules/.package-lock.json #: write the licences of everything that the binary contains; needs Node
	go run ./internal/licences -o deploy/licences.txt

fixture: #: keep a data folder of VERSION=v0.4.0 for later versions; its commit must be in released/commits.txt
	go test -count=1 ./cmd/quorate -run '^TestFoldersOfReleasedVersions$$' -args -write-fixture=$(VERSION)

# The image has the binaries of these architectures, the certificates of public authorities in AUTHORITIES, and the time
# of the commit: the same commit, Go and authorities give the same bytes.
ARCHITECTURES ?= amd64 arm64
AUTHORITIES ?= /etc/ssl/certs/ca-certificates.crt
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
IMAGE ?= $(CURDIR)/.cache/image

image: ## build the container image into IMAGE (.cache/image, an OCI layout)
	@for architecture in $(ARCHITECTURES); do \
	  echo "go build, linux/$$architecture"; \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$$architecture go build $(RELEASE_FLAGS) \
	    -o $(IMAGE).binaries/quorate-$$architecture ./cmd/quorate; \
	done
	cd tools/image && SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) go run . -out $(IMAGE) -reference $(VERSION) \
	  -version $(VERSION) -commit '$(COMMIT)' -authorities $(AUTHORITIES) \
	  $(foreach architecture,$(ARCHITECTURES),-binary $(architecture)=$(IMAGE).binaries/quorate-$(architecture))

verify-image: image deploy-tools #: run the images with podman and qemu, build them and deploy/Dockerfile again: the same bytes
	cd tools/image && QUORATE_IMAGE=$(IMAGE) QUORATE_VERSION=$(VERSION) go test -count=1 -v -timeout 20m .

deploy-tools: #: install what verify-image and verify-kubernetes run: podman, runc, busybox, qemu (Debian)
	deploy/install.sh

kubernetes-servers: #: build the kube-apiserver and etcd that verify-chart asks; 20 minutes the first time
	@cd adapters/kubernetes/apiservers && \
	folder=$${XDG_CACHE_HOME:-$$HOME/.cache}/quorate-adapters/kubernetes-$$(sha256sum go.sum | cut -c1-16) && \
	mkdir -p "$$folder" && \
	for program in go.etcd.io/etcd/server/v3=etcd k8s.io/kubernetes/cmd/kube-apiserver=kube-apiserver; do \
	  [ -x "$$folder/$${program#*=}" ] || { echo "go build $${program%=*}"; \
	    go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$$folder/$${program#*=}" "$${program%=*}"; }; \
	done

verify-chart: kubernetes-servers #: lint, render and dry-run deploy/chart; load deploy/compose.yaml and start its servers
	cd deploy/verify && QUORATE_CHART=require go test -count=1 -timeout 20m .

dashboards: #: write the dashboards for Grafana in deploy/grafana from tools/dashboards
	cd tools && go run ./dashboards ../deploy/grafana

prometheus: #: install what verify-metrics needs and this machine lacks: Prometheus and promtool (Debian)
	deploy/deploytest/install.sh

verify-metrics: prometheus #: run alerts, recording rules and dashboards with a real Prometheus and three servers; 2 minutes
	QUORATE_VERIFY=1 QUORATE_PROMETHEUS=require go test -count=1 -v -timeout 20m ./deploy/...

adapters-test: #: quick tests of the adapters, which are modules of their own
	cd adapters/kubernetes && go vet ./... && go test -timeout 10m ./...

verify-adapters: verify-kubernetes verify-openstack #: run the adapters and front ends with the real systems that they serve

verify-kubernetes: deploy-tools #: real API servers and schedulers on one tree; builds them the first time (20 minutes)
	cd adapters/kubernetes && QUORATE_VERIFY=1 QUORATE_PODMAN=require go test -count=1 -timeout 30m ./...

openstack: #: install what verify-openstack runs and this machine lacks: oslo.limit, openstackclient, Glance (Debian)
	compat/keystone/install.sh

verify-openstack: openstack #: three servers hold oslo.limit, openstackclient and Glance to their limits; 2 minutes
	QUORATE_VERIFY=1 go test -count=1 -timeout 20m ./cmd/quorate -run OpenStack

original: #: replay the recorded exchanges against Boskos itself; builds half of Kubernetes the first time
	cd compat/boskos/conformance && go test -count=1 -timeout 10m ./original
