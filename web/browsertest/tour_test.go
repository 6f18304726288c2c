package browsertest

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestTour makes the pictures of docs/dashboard.md if QUORATE_TOUR names their folder; make pictures does.
func TestTour(t *testing.T) {
	folder := os.Getenv("QUORATE_TOUR")
	if folder == "" {
		t.Skip("QUORATE_TOUR names no folder for the pictures")
	}
	servers := startServers(t, 3, "--ui", "write")
	script, err := os.ReadFile("testdata/tour.txt")
	if err != nil {
		t.Fatal(err)
	}
	play(t, servers[0], string(script))
	b := openTab(t, servers[0].URL()+"/ui/")
	for _, p := range tourPages {
		b.reach(servers[0].URL(), p)
		b.wholePicture(filepath.Join(folder, p.name+".png"))
		b.show(looks[0])
	}
}

// mostPictured is how many pixels of a page a picture has below each other at most.
const mostPictured = 1300

func (b *tab) wholePicture(path string) {
	b.t.Helper()
	content := eval[float64](b, `document.querySelector("main").lastElementChild.getBoundingClientRect().bottom + scrollY +
		document.querySelector("footer").offsetHeight + 16`)
	b.do("making the window as high as the page",
		chromedp.EmulateViewport(looks[0].width, min(int64(content), mostPictured)))
	b.awaitView()
	shot := perform(b, "taking a picture", chromedp.CaptureScreenshot())
	small, err := reduce(shot)
	if err == nil {
		err = os.WriteFile(path, small, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// colors is how many colors a picture keeps.
const colors = 96

// reduce writes a picture with a few colors: the most frequent ones, and for each other pixel the nearest of them. It
// does not dither, because dots look like noise on even areas, and compress badly.
func reduce(content []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	few := image.NewPaletted(full.Bounds(), frequent(full))
	nearest := map[color.Color]uint8{}
	for y := few.Rect.Min.Y; y < few.Rect.Max.Y; y++ {
		for x := few.Rect.Min.X; x < few.Rect.Max.X; x++ {
			c := full.At(x, y)
			at, known := nearest[c]
			if !known {
				at = uint8(few.Palette.Index(c))
				nearest[c] = at
			}
			few.SetColorIndex(x, y, at)
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few)
	return out.Bytes(), err
}

// frequent has the most frequent colors of a picture, without those that are almost the same as a more frequent one.
func frequent(picture image.Image) color.Palette {
	count := map[color.RGBA]int{}
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y++ {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x++ {
			count[color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)]++
		}
	}
	all := make([]color.RGBA, 0, len(count))
	for c := range count {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return int(a.R)<<16 + int(a.G)<<8 + int(a.B) - int(b.R)<<16 - int(b.G)<<8 - int(b.B)
	})
	var kept color.Palette
	for _, c := range all {
		if len(kept) < colors && !slices.ContainsFunc(kept, func(k color.Color) bool { return alike(c, k.(color.RGBA)) }) {
			kept = append(kept, c)
		}
	}
	return kept
}

func alike(a, b color.RGBA) bool {
	const step = 6
	near := func(x, y uint8) bool { return max(x, y)-min(x, y) < step }
	return near(a.R, b.R) && near(a.G, b.G) && near(a.B, b.B)
}
