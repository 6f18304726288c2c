package browsertest

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
)

const (
	// grain is how many pixels of a page, in both directions, become one pixel of its committed picture.
	grain = 8
	// blockGrains is how many of those, in both directions, are compared as one.
	blockGrains = 2
	// gap is between two looks of a sheet.
	gap = 4
	// tolerance is by how much the mean of a block may differ, of 255, in red, green or blue. Other edges of letters
	// make a difference of up to 6.
	tolerance = 12
)

// grains reduces a picture of a page: each pixel is the mean of a square.
func grains(page image.Image) *image.RGBA {
	from := page.Bounds()
	small := image.NewRGBA(image.Rect(0, 0, (from.Dx()+grain-1)/grain, (from.Dy()+grain-1)/grain))
	for y := range small.Rect.Dy() {
		for x := range small.Rect.Dx() {
			square := image.Rect(x*grain, y*grain, (x+1)*grain, (y+1)*grain).Add(from.Min).Intersect(from)
			small.SetRGBA(x, y, mean(page, square))
		}
	}
	return small
}

func mean(picture image.Image, area image.Rectangle) color.RGBA {
	var r, g, b, count uint32
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			pr, pg, pb, _ := picture.At(x, y).RGBA()
			r, g, b, count = r+pr>>8, g+pg>>8, b+pb>>8, count+1
		}
	}
	if count == 0 {
		return color.RGBA{}
	}
	return color.RGBA{uint8(r / count), uint8(g / count), uint8(b / count), 255}
}

// differingBlocks are the blocks in which two reduced pictures differ, as areas of the page.
func differingBlocks(a, b image.Image) []image.Rectangle {
	var differ []image.Rectangle
	bounds := a.Bounds()
	for y := 0; y < bounds.Dy(); y += blockGrains {
		for x := 0; x < bounds.Dx(); x += blockGrains {
			block := image.Rect(x, y, x+blockGrains, y+blockGrains)
			in := func(p image.Image) color.RGBA {
				return mean(p, block.Add(p.Bounds().Min).Intersect(p.Bounds()))
			}
			if distance(in(a), in(b)) > tolerance {
				differ = append(differ, image.Rect(x, y, x+blockGrains, y+blockGrains))
			}
		}
	}
	return differ
}

func distance(a, b color.RGBA) uint8 {
	far := func(x, y uint8) uint8 { return max(x, y) - min(x, y) }
	return max(far(a.R, b.R), far(a.G, b.G), far(a.B, b.B))
}

// places are those of the looks in a sheet: a row for each scheme, the narrowest first.
func places() (map[look]image.Rectangle, image.Rectangle) {
	at, all := map[look]image.Rectangle{}, image.Rectangle{}
	y := 0
	for _, scheme := range []string{"light", "dark"} {
		x, bottom := 0, y
		for _, l := range pictured {
			if l.scheme != scheme {
				continue
			}
			size := image.Pt((int(l.width)+grain-1)/grain, (int(l.height)+grain-1)/grain)
			at[l] = image.Rectangle{image.Pt(x, y), image.Pt(x, y).Add(size)}
			all = all.Union(at[l])
			x, bottom = at[l].Max.X+gap, max(bottom, at[l].Max.Y)
		}
		y = bottom + gap
	}
	return at, all
}

// sheet puts the looks of a view beside each other.
func sheet(of map[look]*image.RGBA) *image.RGBA {
	at, all := places()
	whole := image.NewRGBA(all)
	for l, picture := range of {
		draw.Draw(whole, at[l], picture, image.Point{}, draw.Src)
	}
	return whole
}

// coarse keeps five bits of each colour: files become smaller by a half, and means differ by less than 4.
func coarse(picture *image.RGBA) *image.RGBA {
	few := image.NewRGBA(picture.Rect)
	for i, v := range picture.Pix {
		few.Pix[i] = v&^7 | v>>5
	}
	return few
}

func readPNG(path string) (image.Image, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return png.Decode(bytes.NewReader(content))
}

func writePNG(path string, picture image.Image) error {
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, picture); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// outlined draws frames around the blocks of a page that differ.
func outlined(page image.Image, blocks []image.Rectangle) *image.RGBA {
	marked := image.NewRGBA(page.Bounds())
	draw.Draw(marked, marked.Rect, page, page.Bounds().Min, draw.Src)
	red := color.RGBA{255, 0, 0, 255}
	for _, b := range blocks {
		area := image.Rectangle{b.Min.Mul(grain), b.Max.Mul(grain)}.Intersect(marked.Rect)
		for x := area.Min.X; x < area.Max.X; x++ {
			marked.SetRGBA(x, area.Min.Y, red)
			marked.SetRGBA(x, area.Max.Y-1, red)
		}
		for y := area.Min.Y; y < area.Max.Y; y++ {
			marked.SetRGBA(area.Min.X, y, red)
			marked.SetRGBA(area.Max.X-1, y, red)
		}
	}
	return marked
}
