package browsertest

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// pictured are the looks that are compared with pictures.
var pictured = []look{
	{"light", 390, 1200}, {"light", 768, 1100}, {"light", 1280, 1000}, {"light", 1920, 1080},
	{"dark", 390, 1200}, {"dark", 768, 1100}, {"dark", 1280, 1000}, {"dark", 1920, 1080},
}

const (
	picturesFolder   = "testdata/pictures"
	recordingsFolder = "testdata/recordings"
)

// TestPictures compares every view, in both schemes and four widths, with committed pictures. What the pages show is
// recorded, and so is their time, so that only the dashboard itself can make a difference. QUORATE_LOOKS=renew makes
// the pictures instead, and QUORATE_TOUR makes them after a new recording; QUORATE_VERIFY=1 compares.
func TestPictures(t *testing.T) {
	renew := os.Getenv("QUORATE_LOOKS") == "renew"
	if !renew && os.Getenv("QUORATE_TOUR") == "" && !exhaustive() {
		t.Skip("another version of the browser draws differently: QUORATE_VERIFY=1 runs it")
	}
	if os.Getenv("QUORATE_TOUR") != "" {
		recordAll(t)
		renew = true
	}
	for _, cluster := range []string{"laboratory", "tenant", "stranger"} {
		r, err := loadRecording(filepath.Join(recordingsFolder, cluster+".json.gz"))
		if err != nil {
			t.Fatal(err)
		}
		b := emptyTab(t)
		b.freeze(r.At, cluster == "tenant")
		address := r.listen(t)
		for _, p := range picturedPages[cluster] {
			b.show(looks[0])
			b.reach(address, p)
			if renew {
				b.renewPictures(p.name)
			} else {
				b.comparePictures(p.name)
			}
		}
		b.leave()
	}
}

// frozen stops what differs from run to run: the clock, random ids, the cursor in fields, the frame around what has the
// focus, and fonts that a system chooses. It counts the calls that were not answered.
const frozen = `(() => {
	const at = %d, Real = Date, call = fetch;
	globalThis.Date = class extends Real {
		constructor(...a) { if (a.length) super(...a); else super(at); }
		static now() { return at; }
	};
	crypto.getRandomValues = (bytes) => bytes.fill(7);
	globalThis.openCalls = 0;
	globalThis.fetch = async (url, ...more) => {
		if (String(url.url ?? url).endsWith("/WatchChanges")) return call(url, ...more);
		openCalls++;
		try { return await call(url, ...more); } finally { openCalls--; }
	};
	if (%t && location.protocol === "http:") sessionStorage.setItem("quorate-token", "recorded");
	const style = new CSSStyleSheet();
	style.replaceSync(":root { --mono: var(--sans) !important } * { caret-color: transparent !important; outline: none !important }");
	document.adoptedStyleSheets = [style];
})()`

func (b *tab) freeze(at int64, signedIn bool) {
	b.t.Helper()
	b.do("freezing the clock", command(page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: fmt.Sprintf(frozen, at, signedIn)}),
		command(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"}))
}

// reach opens a page and brings it into the state that is pictured.
func (b *tab) reach(server string, p tourPage) {
	b.t.Helper()
	b.open(server + p.address)
	if p.act != "" {
		b.awaitTrue("the page of "+p.name+" is ready", p.ready)
		eval[any](b, "void "+p.act)
	}
	if p.until != "" {
		b.awaitTrue("the picture of "+p.name+" can be taken", p.until)
	}
	b.awaitView()
}

// still takes pictures until two are the same, after all calls were answered.
func (b *tab) still() image.Image {
	b.t.Helper()
	var before []byte
	for deadline := time.Now().Add(patience); ; {
		b.awaitTrue("all calls are answered", "document.fonts.status === 'loaded' && openCalls === 0")
		eval[any](b, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))")
		shot := perform(b, "taking a picture", chromedp.CaptureScreenshot())
		if bytes.Equal(shot, before) {
			picture, err := png.Decode(bytes.NewReader(shot))
			if err != nil {
				b.t.Fatal(err)
			}
			return picture
		}
		if time.Now().After(deadline) {
			b.t.Fatal("the page never stands still")
		}
		before = shot
	}
}

func (b *tab) renewPictures(name string) {
	b.t.Helper()
	of := map[look]*image.RGBA{}
	for _, l := range pictured {
		b.show(l)
		of[l] = grains(b.still())
	}
	if err := writePNG(filepath.Join(picturesFolder, name+".png"), coarse(sheet(of))); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) comparePictures(name string) {
	b.t.Helper()
	known, err := readPNG(filepath.Join(picturesFolder, name+".png"))
	if err != nil {
		b.t.Error(err)
		return
	}
	at, all := places()
	if known.Bounds() != all {
		b.t.Errorf("the pictures of %s have the size %v, not %v: make looks", name, known.Bounds(), all)
		return
	}
	for _, l := range pictured {
		b.show(l)
		seen := b.still()
		want := known.(interface {
			SubImage(image.Rectangle) image.Image
		}).SubImage(at[l])
		if differ := differingBlocks(grains(seen), want); len(differ) > 0 {
			b.t.Errorf("%s-%s differs from its picture in %d of its blocks of %d pixels, the first at %v; %s. "+
				"If that is meant: make looks", name, l, len(differ), grain*blockGrains, differ[0].Min.Mul(grain),
				b.keepSeen(name+"-"+l.String(), outlined(seen, differ)))
		}
	}
}

// seenFolder keeps the pictures of pages that differ.
var seenFolder string

// keepSeen writes a picture that outlives the test, and says where.
func (b *tab) keepSeen(name string, seen image.Image) string {
	b.t.Helper()
	var err error
	if seenFolder == "" {
		if seenFolder = os.Getenv("QUORATE_PICTURES"); seenFolder == "" {
			seenFolder, err = os.MkdirTemp("", "quorate-seen-")
		}
	}
	path := filepath.Join(seenFolder, strings.ReplaceAll(name, "/", "-")+".png")
	if err == nil {
		err = writePNG(path, seen)
	}
	if err != nil {
		return err.Error()
	}
	return "see " + path
}
