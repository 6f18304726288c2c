# The pinned tools, which make installs into .bin.

TOOL_VERSIONS := tools/make/tools.mk
BUF_VERSION := v1.73.0
PROTOC_GEN_GO_VERSION := v1.36.12
PROTOC_GEN_CONNECT_GO_VERSION := v1.21.1
PROTOC_GEN_GO_VTPROTO_VERSION := v0.6.1-0.20240319094008-0393e58bdf10
GOLANGCI_LINT_VERSION := v2.12.2
GOVULNCHECK_VERSION := v1.9.0
BENCHSTAT_VERSION := v0.0.0-20260908200009-22c9c6c9d4da
TOOLS := $(addprefix $(BIN)/,buf protoc-gen-go protoc-gen-connect-go protoc-gen-go-vtproto golangci-lint)
GORELEASER_VERSION := v2.15.1
CYCLONEDX_VERSION := v1.10.0

# install installs the pinned version of a tool: $(call install,package,version). A tool that has it already is kept, so
# that editing this file does not cost four minutes of building linters.
define install
@if go version -m $@ 2>/dev/null | grep -qE "^	mod	[^	]+	$(2)	"; then touch $@; \
else echo "go install $(1)@$(2)"; GOBIN=$(BIN) go install $(1)@$(2); fi
endef

$(BIN)/buf: $(TOOL_VERSIONS)
	$(call install,github.com/bufbuild/buf/cmd/buf,$(BUF_VERSION))
$(BIN)/protoc-gen-go: $(TOOL_VERSIONS)
	$(call install,google.golang.org/protobuf/cmd/protoc-gen-go,$(PROTOC_GEN_GO_VERSION))
$(BIN)/protoc-gen-connect-go: $(TOOL_VERSIONS)
	$(call install,connectrpc.com/connect/cmd/protoc-gen-connect-go,$(PROTOC_GEN_CONNECT_GO_VERSION))
$(BIN)/protoc-gen-go-vtproto: $(TOOL_VERSIONS)
	$(call install,github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto,$(PROTOC_GEN_GO_VTPROTO_VERSION))
$(BIN)/golangci-lint: $(TOOL_VERSIONS)
	$(call install,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$(GOLANGCI_LINT_VERSION))

$(BIN)/goreleaser: $(TOOL_VERSIONS)
	$(call install,github.com/goreleaser/goreleaser/v2,$(GORELEASER_VERSION))
$(BIN)/cyclonedx-gomod: $(TOOL_VERSIONS)
	$(call install,github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod,$(CYCLONEDX_VERSION))
$(BIN)/benchstat: $(TOOL_VERSIONS)
	$(call install,golang.org/x/perf/cmd/benchstat,$(BENCHSTAT_VERSION))
$(BIN)/govulncheck: $(TOOL_VERSIONS)
	$(call install,golang.org/x/vuln/cmd/govulncheck,$(GOVULNCHECK_VERSION))
