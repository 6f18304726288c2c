##@ Dashboard, clients and site

.PHONY: ui ui-test check-ui browser browser-test pictures looks check-looks sdk-typescript sdks verify-sdks docs-site

# What the dashboard is made of and with, as package-lock.json pins it.
web/ui/node_modules/.package-lock.json: web/ui/package.json web/ui/package-lock.json
	@command -v npm >/dev/null || { echo "make ui needs Node 20 or later with npm: https://nodejs.org"; exit 1; }
	cd web/ui && npm ci --no-fund --no-audit --ignore-scripts --loglevel=error && touch node_modules/.package-lock.json

ui: web/ui/node_modules/.package-lock.json $(BIN)/buf ## build the dashboard from web/ui into web/dist; needs Node
	buf generate --template proto/buf.gen.ui.yaml
	cd web/ui && npm run --silent check && npm run --silent build

ui-test: ui #: test the scripts of the dashboard; needs Node
	cd web/ui && npm run --silent test

check-ui: ui #: fail if web/dist is not what web/ui builds; needs Node
	@test -z "$$(git status --porcelain -- web/dist | tee /dev/stderr)"

browser: #: install what browser-test needs and this machine lacks: Node, Chromium without a window, a font
	web/browsertest/install.sh

browser-test: ui #: look at every view of the dashboard of real servers with a real browser; see make browser
	cd web/browsertest && go test $(TEST_FLAGS) -count=1 -timeout 20m .

pictures: ui #: take the pictures of docs/dashboard.md of a real cluster, and those that check-looks compares
	cd web/browsertest && QUORATE_TOUR=$(CURDIR)/docs/pictures go test $(TEST_FLAGS) -count=1 -timeout 20m -run '^Test(Tour|Pictures)$$' .

looks: ui #: take the pictures that check-looks compares again, of what was recorded with make pictures
	cd web/browsertest && QUORATE_LOOKS=renew go test $(TEST_FLAGS) -count=1 -timeout 20m -run '^TestPictures$$' .

check-looks: ui #: compare every view in both schemes and four widths with the committed pictures
	cd web/browsertest && QUORATE_VERIFY=1 go test $(TEST_FLAGS) -count=1 -timeout 20m -run '^TestPictures$$' .

# What the client for TypeScript is made with, as its package-lock.json pins it.
sdk/typescript/node_modules/.package-lock.json: sdk/typescript/package.json sdk/typescript/package-lock.json
	@command -v npm >/dev/null || { echo "make sdk-typescript needs Node 20 or later with npm: https://nodejs.org"; exit 1; }
	cd sdk/typescript && npm ci --no-fund --no-audit --ignore-scripts --loglevel=error && touch node_modules/.package-lock.json

sdk-typescript: sdk/typescript/node_modules/.package-lock.json $(BIN)/buf #: generate and build the client for TypeScript; needs Node
	buf generate --template proto/buf.gen.typescript.yaml
	cd sdk/typescript && npm run --silent build

sdks: #: install what verify-sdks needs and this machine lacks: Node, a JDK, mypy, jq
	sdk/scenarios/install.sh

verify-sdks: sdk-typescript #: let the clients of all languages play one script against real servers; see make sdks
	QUORATE_VERIFY=1 QUORATE_SDKS=require go test -count=1 -timeout 20m ./sdk/...

# What the site of the documentation is made with, as its package-lock.json pins it.
docs/site/node_modules/.package-lock.json: docs/site/package.json docs/site/package-lock.json
	@command -v npm >/dev/null || { echo "make docs-site needs Node 20 or later with npm: https://nodejs.org"; exit 1; }
	cd docs/site && npm ci --no-fund --no-audit --ignore-scripts --loglevel=error && touch node_modules/.package-lock.json

docs-site: build docs/site/node_modules/.package-lock.json ## build docs/ and references as a site in docs/site/dist; needs Node
	cd docs/site && VERSION="$(VERSION)" npm run --silent build
