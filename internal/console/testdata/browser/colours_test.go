package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"slices"
)

// withFewColours reduces a picture to 256 of its colours, and replaces each other colour
// with the nearest of them. The result needs a third of the bytes, without a visible
// difference.
func withFewColours(text []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	bounds := from.Bounds()
	seen := make(map[color.RGBA]int)
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			seen[at(x, y)]++
		}
	}
	palette, often := chosen(seen)
	nearest := make(map[color.RGBA]uint8, len(often))
	for _, c := range often {
		nearest[c] = uint8(palette.Index(c))
	}
	to := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			to.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&out, to)
	return out.Bytes(), err
}

// chosen returns the palette of a picture, and all its colours by frequency. The palette
// starts with the most frequent colour, and repeatedly adds the colour with the largest
// error. So a rare colour that resembles no other precedes a frequent colour that
// resembles another.
func chosen(seen map[color.RGBA]int) (palette color.Palette, often []color.RGBA) {
	often = slices.SortedFunc(maps.Keys(seen), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(seen[b], seen[a]), slices.Compare([]byte{a.R, a.G, a.B, a.A}, []byte{b.R, b.G, b.B, b.A}))
	})
	far := make([]int, len(often)) // distances from the palette
	for i := range far {
		far[i] = math.MaxInt32
	}
	for range min(len(often), 256) {
		missed := 0
		for i, c := range often {
			if far[i]*seen[c] > far[missed]*seen[often[missed]] {
				missed = i
			}
		}
		next := often[missed]
		palette = append(palette, next)
		for i, c := range often {
			far[i] = min(far[i], apart(c, next))
		}
	}
	return palette, often
}

// apart returns the distance between two colours.
func apart(a, b color.RGBA) int {
	red, green, blue := int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B)
	return red*red + green*green + blue*blue
}
