package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// tallest is the maximum height of a screenshot in pixels.
const tallest = 1000

// saveScreenshot saves the top of the page, without the empty part below a short page.
func (c *checker) saveScreenshot(ctx context.Context, name string) error {
	end, err := chromedp.Run(ctx, chromedp.Evaluate[float64](
		`document.activeElement.blur(), scrollTo(0, 0), Math.ceil(document.body.getBoundingClientRect().height)`))
	if err != nil {
		return err
	}
	beyond := true
	shot, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		Clip: &page.Viewport{Width: wide, Height: min(end, tallest), Scale: 1}, CaptureBeyondViewport: &beyond,
	})
	if err != nil {
		return fmt.Errorf("take a screenshot: %w", err)
	}
	full, err := png.Decode(bytes.NewReader(shot.Data))
	if err != nil {
		return fmt.Errorf("decode a screenshot: %w", err)
	}
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&small, reduceColors(full)); err != nil {
		return fmt.Errorf("encode a screenshot: %w", err)
	}
	return os.WriteFile(filepath.Join(c.screenshots, strings.ReplaceAll(name, " ", "-")+".png"), small.Bytes(), 0o644)
}

// reduceColors keeps the most frequent colors of an image, which makes its file much smaller. Other
// colors are rare shades at the edges of letters.
func reduceColors(full image.Image) image.Image {
	const most = 255
	count := map[color.Color]int{}
	for y := full.Bounds().Min.Y; y < full.Bounds().Max.Y; y++ {
		for x := full.Bounds().Min.X; x < full.Bounds().Max.X; x++ {
			count[full.At(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return cmp.Compare(count[b], count[a]) })
	reduced := image.NewPaletted(full.Bounds(), frequent[:min(len(frequent), most)])
	draw.Draw(reduced, reduced.Bounds(), full, full.Bounds().Min, draw.Src)
	return reduced
}
